// Runs that would never end: each ends by itself, soon, and says why.
#include <optional>

#include <gtest/gtest.h>

#include "physics.hpp"

namespace saltus::physics {
namespace {

void expect_stall(const System& s, double from, double until, long steps, std::optional<StepOptions> step = {}) {
  RunOptions o = s.options(until, 1e-10);
  o.from = from;
  o.step = step;
  o.keep_events = false;
  const Trajectory run = s.run(o);
  EXPECT_EQ(run.end.why, Why::stalled) << story(run);
  EXPECT_LT(run.cost.steps, steps) << story(run);
  EXPECT_FALSE(run.end.message.empty());
}

TEST(Bounded, EventsThatAreTooManyForTheTimeOfTheRun) {
  expect_stall(system("x' = mod(t, 1e-300)", "x = 0"), 0, 1, 100'000);
  expect_stall(system("x' = mod(t, 1e-12)", "x = 0"), 0, 1, 100'000);
  expect_stall(system("x' = sign(sin(1e12*t))", "x = 0"), 0, 1, 100'000);
}

TEST(Bounded, EventsThatAccumulateInNoSequence) {
  expect_stall(system("x' = sin(1/t)\ny' = sign(sin(1/t))", "x = 0\ny = 0"), -1, 1, 500'000);
}

TEST(Bounded, RootsThatDoNotSayWhatFollows) {
  expect_stall(system("x' = -sqrt(x)", "x = 1"), 0, 10, 100'000);
  expect_stall(system("x' = -cbrt(x)", "x = 1"), 0, 10, 100'000);
}

TEST(Bounded, StepsThatAreTooShortForTheTimeOfTheRun) {
  const System s = gallery_system("dry_friction");
  expect_stall(s, 0, 60, 100'000, StepOptions{.dt = 1e-300});
  expect_stall(s, 0, 60, 100'000, StepOptions{.dt = 1e-12});
  expect_stall(s, 1e17, 1e17 + 1e4, 100'000, StepOptions{.dt = 1e-3});
  expect_stall(system("x' = mod(t, 1e-12)", "x = 0"), 0, 1, 100'000, StepOptions{.dt = 0.01});
}

TEST(Bounded, ManyEventsThatGetAheadAreNoStall) {
  RunOptions o = system("x' = sign(sin(1000*t))", "x = 0").options(200, 1e-10);
  o.keep_events = false;
  const Trajectory run = system("x' = sign(sin(1000*t))", "x = 0").run(o);
  EXPECT_EQ(run.end.why, Why::time) << story(run);
  EXPECT_GT(run.cost.events, 60'000);
}

}  // namespace
}  // namespace saltus::physics
