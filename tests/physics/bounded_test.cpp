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

// Two genes that switch each other: rates at (0.4, 0.6) make turns as large as the turn before to first order, so that
// their size shrinks like 1/n, time goes like log(n), and the rest point is not reached at any time.
TEST(Bounded, TurnsThatShrinkTooSlowlyToEnd) {
  expect_stall(system("x' = step(0.6 - y) - x\ny' = step(x - 0.4) - y", "x = 0.1\ny = 0.2"), 0, 50, 600'000);
  const Trajectory soon = system("x' = step(0.6 - y) - x\ny' = step(x - 0.4) - y", "x = 0.1\ny = 0.2").run(5);
  EXPECT_EQ(soon.end.why, Why::time) << soon.end.message;
}

TEST(Bounded, RootsEndAtRest) {  // x = (1 - t/2)^2 until t = 2, and so on
  for (const char* rate : {"-sqrt(x)", "-sqrt(9.81*x)", "-0.7*sqrt(x)", "-1.3*x^0.5", "-cbrt(x)", "-x^(1/2)*(1 + x)"}) {
    const System s = system(std::string("x' = ") + rate, "x = 1");
    const Trajectory run = s.run(s.options(10, 1e-10));
    EXPECT_EQ(run.end.why, Why::time) << rate << run.end.message;
    EXPECT_EQ(run.end.state[0], 0) << rate;
    EXPECT_LT(run.cost.steps, 1000) << rate;
  }
}

TEST(Bounded, StepsThatAreTooShortForTheTimeOfTheRun) {
  const System s = gallery_system("dry_friction");
  expect_stall(s, 0, 60, 100'000, StepOptions{.dt = 1e-300});
  expect_stall(s, 0, 60, 100'000, StepOptions{.dt = 1e-12});
  expect_stall(s, 1e17, 1e17 + 1e4, 100'000, StepOptions{.dt = 1e-3});
  expect_stall(system("x' = mod(t, 1e-12)", "x = 0"), 0, 1, 100'000, StepOptions{.dt = 0.01});
}

TEST(Bounded, StepsThatAreTooShortForTheNextPointOfAClock) {
  const System s = gallery_system("dry_friction");
  RunOptions o = s.options(1e9, 1e-10);
  o.step = StepOptions{.dt = 1e-300};
  o.keep_events = false;
  o.section = 0;
  o.section_count = 10;
  const Trajectory run = s.run(o);
  EXPECT_EQ(run.end.why, Why::stalled) << story(run);
  EXPECT_LT(run.cost.steps, 100'000);
}

TEST(Bounded, TimeThatIsTooLargeToMoveIsNoSingularity) {
  const System s = gallery_system("lorenz");
  for (const bool step : {false, true}) {
    RunOptions o = s.options(1e18, 1e-10);
    o.from = 1e17;
    if (step) o.step = StepOptions{};
    const Trajectory run = s.run(o);
    EXPECT_EQ(run.end.why, Why::stalled) << story(run);
    EXPECT_NE(run.end.message.find("does not move time"), std::string::npos) << run.end.message;
  }
  const System root = system("x' = -1/x", "x = 1");
  RunOptions o = root.options(10, 1e-10);
  EXPECT_NE(root.run(o).end.message.find("singularity"), std::string::npos) << root.run(o).end.message;
}

TEST(Bounded, EventsAtOneInstantAreNamed) {
  const System s = system("x' = mod(t, 1e-300)", "x = 0");
  RunOptions o = s.options(1, 1e-10);
  o.step = StepOptions{};
  const Trajectory run = s.run(o);
  EXPECT_EQ(run.end.why, Why::zeno) << story(run);
  EXPECT_NE(run.end.message.find("'wraps1'"), std::string::npos) << run.end.message;
}

TEST(Bounded, ManyEventsThatGetAheadAreNoStall) {
  RunOptions o = system("x' = sign(sin(1000*t))", "x = 0").options(200, 1e-10);
  o.keep_events = false;
  const Trajectory run = system("x' = sign(sin(1000*t))", "x = 0").run(o);
  EXPECT_EQ(run.end.why, Why::time) << story(run);
  EXPECT_GT(run.cost.events, 60'000);
}

// Squares of such states are infinite: what events there would need has no value.
TEST(Bounded, AStateThatIsTooLargeEndsTheRunAtItsFirstEventToo) {
  for (const double y : {1e308, -1e200}) {
    const System s = system("y' = v\nv' = -y - 0.4*sign(v)", fmt::format("y = {}\nv = {}", y, y > 0 ? 2 : -2));
    const Trajectory run = s.run(20);
    EXPECT_EQ(run.end.why, Why::diverged) << story(run);
    for (const double x : run.end.state) EXPECT_TRUE(std::isfinite(x)) << story(run);
  }
}

}  // namespace
}  // namespace saltus::physics
