#include "ask/orbit.hpp"

#include <cmath>
#include <numbers>
#include <set>

#include <gtest/gtest.h>

#include "ask/follow.hpp"

namespace saltus {
namespace {

const char* const cycles_text = R"(
# r' = r (1 - r^2)(4 - r^2): a stable cycle of radius 1 and an unstable one of radius 2, both of period 2 pi
equations = """
  x' = x*(1 - x^2 - y^2)*(4 - x^2 - y^2)*a - y
  y' = y*(1 - x^2 - y^2)*(4 - x^2 - y^2)*a + x
"""
[parameters]
a = 0.02
[initial]
x = 1.2
y = 0.1
[section.axis]
on = "y"
direction = "rising"
)";

System cycles() { return System::from_text(cycles_text, "cycles"); }
System fold() {
  return System::from_text("equations = \"x' = mu - x^2\"\n[parameters]\nmu = 1\n[initial]\nx = 1\n", "fold");
}

template <class Action>
std::string complaint_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.message();
  }
  ADD_FAILURE() << "no complaint";
  return "";
}

TEST(OrbitQuestion, GivesThePeriodAndTheMultiplierOfACycle) {
  const OrbitAnswer answer = ask(OrbitQuestion{.system = cycles()});
  ASSERT_TRUE(answer.orbit.found) << answer.orbit.message;
  EXPECT_NEAR(answer.orbit.period, 2 * std::numbers::pi, 1e-9);
  ASSERT_EQ(answer.orbit.multipliers.size(), 1u);
  // d/dr of the radial rate at r = 1 is -6 a, over a time of 2 pi.
  EXPECT_NEAR(answer.orbit.multipliers[0].real(), std::exp(-0.12 * 2 * std::numbers::pi), 1e-8);
  EXPECT_FALSE(answer.cancelled);
}

TEST(OrbitQuestion, FindsAnUnstableOrbitFromAGuess) {
  const OrbitAnswer answer = ask(OrbitQuestion{.system = cycles(), .start = {{1.97, 0.0}}, .guess = true});
  ASSERT_TRUE(answer.orbit.found) << answer.orbit.message;
  EXPECT_NEAR(std::hypot(answer.orbit.state[0], answer.orbit.state[1]), 2, 1e-8);
  EXPECT_FALSE(answer.orbit.stable);
}

TEST(OrbitQuestion, IsStoppedByItsToken) {
  std::stop_source source;
  source.request_stop();
  const OrbitAnswer answer = ask(OrbitQuestion{.system = cycles()}, {.stop = source.get_token()});
  EXPECT_FALSE(answer.orbit.found);
  EXPECT_TRUE(answer.cancelled);
}

TEST(OrbitQuestion, RefusesWhatSearchesDoNotTake) {
  EXPECT_EQ(complaint_of([] { plan(OrbitQuestion{.system = cycles(), .solve = {.engine = TimeStepping{}}}); }),
            "orbits are found by the engine 'event', not 'step'");
  EXPECT_EQ(complaint_of([] { plan(OrbitQuestion{.system = cycles(), .solve = {.attract = 5}}); }),
            "orbits are found with slid surfaces held exactly: `attract` is for runs");
  EXPECT_EQ(complaint_of([] { plan(OrbitQuestion{.system = cycles(), .time = 3}); }), "`time` goes with `guess`");
  EXPECT_EQ(complaint_of([] { plan(OrbitQuestion{.system = cycles(), .modulo = {{"z", 1}}}); }),
            "`modulo`: there is no state 'z'");
}

TEST(OrbitsQuestion, TellsDistinctOrbitsByThePeriod) {
  OrbitsQuestion question{.orbit = {.system = cycles()}, .starts = 6, .box = {{0.9, 2.1}, {0, 0.1}}, .seed = 2};
  const OrbitsAnswer answer = ask(question);
  ASSERT_FALSE(answer.orbits.empty());
  std::vector<double> radii;
  for (const Orbit& o : answer.orbits) radii.push_back(std::round(1e6 * std::hypot(o.state[0], o.state[1])) / 1e6);
  EXPECT_EQ(std::set<double>(radii.begin(), radii.end()).size(), radii.size()) << "an orbit is listed twice";
  EXPECT_TRUE(std::count(radii.begin(), radii.end(), 1.0) == 1);
}

TEST(EquilibriumQuestion, GivesTheEigenvalue) {
  const EquilibriumAnswer answer = ask(EquilibriumQuestion{.system = fold()});
  ASSERT_EQ(answer.equilibrium.kind, Equilibrium::Kind::equilibrium);
  EXPECT_NEAR(answer.equilibrium.eigenvalues[0].real(), -2, 1e-9);
}

TEST(FollowQuestion, TellsPointsAndSpecialPointsAsTheyAreFound) {
  size_t points = 0;
  std::vector<std::string> types;
  const Observer observer{.on_point = [&](const BranchPoint&) { ++points; },
                          .on_special = [&](const SpecialPoint& s) { types.push_back(s.type); }};
  const FollowAnswer answer =
      ask(FollowQuestion{.start = {.system = fold()}, .equilibrium = true, .ranges = {{"mu", -1, 2}}}, observer);
  ASSERT_TRUE(answer.branches[0].found);
  EXPECT_EQ(types, std::vector<std::string>{"fold"});
  EXPECT_GT(points, 5u);
  ASSERT_EQ(answer.branches[0].special.size(), 1u);
  EXPECT_NEAR(answer.branches[0].special[0].values[0], 0, 1e-10);
}

TEST(FollowQuestion, OfAFormulaGivesValuesOfTheFormula) {
  const FollowAnswer answer = ask(
      FollowQuestion{.start = {.system = fold()}, .equilibrium = true, .ranges = {{"1/mu", "1/2", 4}}});
  ASSERT_TRUE(answer.branches[0].found);
  for (const BranchPoint& p : answer.branches[0].points)
    EXPECT_NEAR(value_of(answer.ranges[0], answer.system.model(), p.values[0]), 1 / p.values[0], 1e-12);
}

TEST(FollowQuestion, BeginsAtASpecialPointOfAnother) {
  const System hopf = System::from_text(
      "equations = \"\"\"\nx' = mu*x - y - x*(x^2 + y^2)\ny' = x + mu*y - y*(x^2 + y^2)\n\"\"\"\n"
      "[parameters]\nmu = -0.5\n[initial]\nx = 0\ny = 0\n");
  const FollowQuestion question{.start = {.system = hopf}, .equilibrium = true, .ranges = {{"mu", -1, 1}}};
  const FollowAnswer rest = ask(question);
  ASSERT_EQ(rest.branches[0].special.size(), 1u);
  const FollowAnswer cycles = ask(begin_at(question, question.ranges, rest.branches[0].special[0]));
  ASSERT_TRUE(cycles.branches[0].found) << cycles.branches[0].message;
  EXPECT_EQ(cycles.of, "HB1");
  const BranchPoint& last = cycles.branches[0].points.back();
  EXPECT_NEAR(std::hypot(last.state[0], last.state[1]), std::sqrt(last.values[0]), 1e-8);
}

TEST(FollowQuestion, StopsWithWhatThereIs) {
  std::stop_source source;
  long seen = 0;
  const Observer observer{.stop = source.get_token(), .on_point = [&](const BranchPoint&) {
                            if (++seen == 5) source.request_stop();
                          }};
  const FollowAnswer answer =
      ask(FollowQuestion{.start = {.system = fold()}, .equilibrium = true, .ranges = {{"mu", -1, 2}}, .step = 1e-3},
          observer);
  EXPECT_TRUE(answer.cancelled);
  EXPECT_TRUE(answer.branches[0].found);
  EXPECT_LE(seen, 10);
}

TEST(FollowQuestion, RefusesRangesThatAreNone) {
  const auto of = [](std::vector<FollowRange> ranges) {
    return complaint_of([&] { plan(FollowQuestion{.start = {.system = fold()}, .ranges = std::move(ranges)}); });
  };
  EXPECT_EQ(of({}), "nothing is followed");
  EXPECT_EQ(of({{"mu", 1, 1}}), "mu=1:1: the range is empty");
  EXPECT_EQ(of({{"mu", 1, 2}, {"mu", 1, 2}}), "two ranges follow a special point, and none is named");
}

}  // namespace
}  // namespace saltus
