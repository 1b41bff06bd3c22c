// Jumps that are found beyond their levels: a peak-current controller whose current is above its limit.
#include <gtest/gtest.h>

#include "physics.hpp"

namespace saltus::physics {
namespace {

/// i' = 100 q - i; a clock switches on, a comparator off.
System converter(double i, std::string_view more, std::string_view when = "") {
  std::string jumps = "[jump.off]\non = \"i - 5\"\ndirection = \"rising\"\nset = { q = \"0\" }\n";
  jumps += fmt::format("{}{}\n[jump.clk]\nevery = 0.25\nset = {{ q = \"1\" }}", more, when);
  return system("i' = 100*q - i\nq' = 0", fmt::format("i = {:.17g}\nq = 1", i), jumps);
}

long waits(const Trajectory& run) {
  return std::count_if(run.messages.begin(), run.messages.end(),
                       [](const std::string& m) { return m.find("beyond its level") != m.npos; });
}

// Off at once, and at each tick as long as the current is above: i = 8 exp(-t) up to t = ln(8/5), the tick at 0.5 is
// the first below it.
TEST(Level, HappensAtTheStartAndAfterAnotherJump) {
  const System s = converter(8, "level = true");
  const double until = 0.499;
  for (const bool steps : {false, true}) {
    RunOptions o = s.options(until, 1e-11);
    if (steps) o.step.emplace();
    const Trajectory run = s.run(o);
    EXPECT_EQ(waits(run), 0);
    EXPECT_NEAR(run.end.state[0], 8 * std::exp(-until), 1e-6);
    EXPECT_EQ(run.end.state[1], 0);
  }
}

// Without it the rule is a crossing, which never comes, and the run says so once.
TEST(Level, WithoutItTheWaitIsTold) {
  const System s = converter(8, "");
  for (const bool steps : {false, true}) {
    RunOptions o = s.options(1, 1e-11);
    if (steps) o.step.emplace();
    const Trajectory run = s.run(o);
    EXPECT_EQ(waits(run), 1);
    EXPECT_NEAR(run.end.state[0], 100 - 92 * std::exp(-1.0), 1e-5);
  }
}

// The current passes 5 while the condition is false; the tick at 0.25 finds it true.
TEST(Level, IsFoundWhereAConditionHasBecomeTrue) {
  const double at_tick = 100 - 99 * std::exp(-0.25);
  const Trajectory on = converter(1, "level = true\n", "when = \"t > 0.2\"").run(0.4);
  EXPECT_EQ(waits(on), 0);
  EXPECT_NEAR(on.end.state[0], at_tick * std::exp(-0.15), 1e-9);
  EXPECT_EQ(waits(converter(1, "", "when = \"t > 0.2\"").run(0.4)), 1);
}

// A comparator that works is told nothing of, nor is a counter that stays beyond its own level.
TEST(Level, NothingIsToldOfWhatCrosses) {
  EXPECT_EQ(waits(converter(1, "").run(2)), 0);
  const System count = system("x' = 1\nn' = 0\nk' = 0", "x = -1\nn = 0\nk = 0",
                              "[jump.pass]\non = \"x\"\ndirection = \"rising\"\nset = { n = \"n + 1\" }\n"
                              "[jump.clk]\nevery = 0.3\nset = { k = \"k + 1\" }");
  const Trajectory run = count.run(3);
  EXPECT_EQ(waits(run), 0);
  EXPECT_EQ(run.end.state[1], 1);
}

}  // namespace
}  // namespace saltus::physics
