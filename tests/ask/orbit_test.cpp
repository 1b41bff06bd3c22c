#include "ask/orbit.hpp"

#include <cmath>
#include <filesystem>
#include <numbers>
#include <set>

#include <unistd.h>

#include <fmt/format.h>
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
  EXPECT_EQ(complaint_of([] { plan(OrbitQuestion{.system = cycles(), .solve = {.engine = "step"}}); }),
            "orbits are found by the engine 'event', not 'step'");
  EXPECT_EQ(complaint_of([] { plan(OrbitQuestion{.system = cycles(), .solve = {.attract = 5}}); }),
            "orbits are found with slid surfaces held exactly: `attract` is for runs");
  EXPECT_EQ(complaint_of([] { plan(OrbitQuestion{.system = cycles(), .time = 3}); }), "`time` goes with `guess`");
  EXPECT_EQ(complaint_of([] {
              plan(OrbitQuestion{.system = cycles(), .modulo = {{"z", 1}}});
            }),
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

// The logistic map at r = 3.5: 0 and 5/7 are fixed points, whatever rounding leaves of 0.
TEST(OrbitsQuestion, ListsAnOrbitAtZeroOnce) {
  const System system = System::from_text(R"M(
equations = "x' = 0"
[jump.tick]
every = 1
set = { x = "3.5*x*(1 - x)" }
[section.ticks]
on = "tick"
[initial]
x = 0.3
)M",
                                          "logistic");
  const OrbitsAnswer answer = ask(OrbitsQuestion{.orbit = {.system = system}, .starts = 30, .box = {{0.1, 0.9}}});
  EXPECT_EQ(std::count_if(answer.orbits.begin(), answer.orbits.end(),
                          [](const Orbit& o) { return std::abs(o.state[0]) < 1e-9; }),
            1);
  EXPECT_LE(answer.orbits.size(), 4u);
}

/// A file that goes away.
class Kept {
 public:
  Kept() : path_(std::filesystem::temp_directory_path() / fmt::format("saltus-kept-{}", ::getpid())) { remove(); }
  ~Kept() { remove(); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  Keep keep() const { return {path_, "a test"}; }

 private:
  void remove() const { std::filesystem::remove(path_); }

  std::filesystem::path path_;
};

/// All numbers of the orbits, bit for bit.
std::vector<double> numbers_of(const OrbitsAnswer& answer) {
  std::vector<double> out;
  for (const Orbit& o : answer.orbits) {
    out.push_back(o.period);
    out.insert(out.end(), o.state.begin(), o.state.end());
    for (const auto& mu : o.multipliers) out.insert(out.end(), {mu.real(), mu.imag()});
  }
  return out;
}

TEST(OrbitsQuestion, GivesTheSameForAnyNumberOfThreadsAndAfterAStop) {
  OrbitsQuestion question{.orbit = {.system = cycles()}, .starts = 8, .box = {{0.9, 2.1}, {0, 0.1}}, .seed = 2};
  const OrbitsAnswer whole = ask(question);
  ASSERT_EQ(whole.orbits.size(), 2u);
  for (const int threads : {1, 3}) {
    question.orbit.solve.threads = threads;
    EXPECT_EQ(numbers_of(ask(question)), numbers_of(whole)) << threads;
  }
  const Kept kept;
  question.orbit.solve.threads = 1;
  std::size_t asked = 0;
  const Observer impatient{.progress = [&](const Progress& p) { return p.now < 2 || ++asked < 2; }};
  const OrbitsAnswer part = ask(plan(question), impatient, kept.keep());
  const OrbitsAnswer rest = ask(plan(question), {}, kept.keep());
  EXPECT_FALSE(rest.cancelled);
  EXPECT_LE(part.orbits.size(), rest.orbits.size());
  EXPECT_EQ(numbers_of(rest), numbers_of(whole));
}

TEST(OrbitsQuestion, IsStoppedWithWhatThereIs) {
  const OrbitsQuestion question{.orbit = {.system = cycles()}, .starts = 1000, .box = {{0.9, 2.1}, {0, 0.1}}};
  std::stop_source source;
  source.request_stop();
  const OrbitsAnswer answer = ask(question, {.stop = source.get_token()});
  EXPECT_TRUE(answer.cancelled);
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
  const FollowAnswer answer =
      ask(FollowQuestion{.start = {.system = fold()}, .equilibrium = true, .ranges = {{"1/mu", "1/2", 4}}});
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

/// All that is told of a branch, bit for bit.
std::vector<double> numbers_of(const Branch& branch) {
  std::vector<double> out;
  const auto add = [&](const auto& p) {
    for (const std::vector<double>* v : {&p.values, &p.state}) out.insert(out.end(), v->begin(), v->end());
    for (const auto& mu : p.spectrum) out.insert(out.end(), {mu.real(), mu.imag()});
    out.insert(out.end(), {p.t, p.period});
  };
  for (const BranchPoint& p : branch.points) add(p);
  for (const SpecialPoint& s : branch.special) add(s);
  for (const BranchEnd& e : branch.ends) out.push_back(e.value);
  return out;
}

TEST(FollowQuestion, GoesOnAfterAStopToTheBranchItWouldHaveFound) {
  const System friction = System::example("dry_friction");
  const FollowQuestion question{.start = {.system = friction}, .ranges = {{"1/omega", 1.2, 6}}};
  const FollowAnswer whole = ask(question);
  ASSERT_EQ(whole.branches[0].special.size(), 2u);
  const size_t many = whole.branches[0].points.size();
  for (const size_t stop_at : {size_t{3}, many / 2, many - 5}) {
    const Kept kept;
    std::stop_source source;
    size_t points = 0;
    const Observer impatient{.stop = source.get_token(), .on_point = [&](const BranchPoint&) {
                               if (++points == stop_at) source.request_stop();
                             }};
    const FollowAnswer part = ask(plan(question), impatient, kept.keep());
    EXPECT_TRUE(part.cancelled);
    std::vector<std::string> labels;
    size_t again = 0;
    const Observer patient{.on_point = [&](const BranchPoint&) { ++again; },
                           .on_special = [&](const SpecialPoint& s) { labels.push_back(s.label); }};
    const FollowAnswer rest = ask(plan(question), patient, kept.keep());
    EXPECT_FALSE(rest.cancelled);
    EXPECT_EQ(numbers_of(rest.branches[0]), numbers_of(whole.branches[0])) << stop_at;
    EXPECT_EQ(labels, (std::vector<std::string>{"AS1", "CS1"})) << stop_at;
    if (stop_at == many - 5) {
      EXPECT_LT(again, many - 5) << "what was finished is not followed again";
    }
  }
}

TEST(FollowQuestion, TellsWhereItStartsAndWhyItEnds) {
  std::vector<double> starts;
  std::vector<std::string> ends;
  const Observer observer{.on_start = [&](const BranchPoint& p) { starts.push_back(p.values[0]); },
                          .on_end = [&](const BranchEnd& e) { ends.push_back(e.why); }};
  ask(FollowQuestion{.start = {.system = fold()}, .equilibrium = true, .ranges = {{"mu", -1, 2}}}, observer);
  EXPECT_EQ(starts, std::vector<double>{1});
  EXPECT_EQ(ends, (std::vector<std::string>{"range", "range"}));
}

TEST(FollowQuestion, TellsPointsSoNearThatTheCurveLooksSmooth) {
  const FollowAnswer answer =
      ask(FollowQuestion{.start = {.system = System::example("dry_friction")}, .ranges = {{"1/omega", 4.85, 6}}});
  const std::vector<BranchPoint>& points = answer.branches[0].points;
  ASSERT_GT(points.size(), 20u);
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const BranchPoint& p : points) low = std::min(low, p.state[0]), high = std::max(high, p.state[0]);
  // A point between two others lies near their chord: within a fiftieth of the picture.
  for (size_t i = 1; i + 1 < points.size(); ++i) {
    const auto x = [&](size_t k) { return 1 / points[k].values[0]; };
    const double u = (x(i) - x(i - 1)) / (x(i + 1) - x(i - 1));
    const double chord = points[i - 1].state[0] + u * (points[i + 1].state[0] - points[i - 1].state[0]);
    EXPECT_NEAR(points[i].state[0], chord, 0.02 * (high - low)) << x(i);
  }
}

TEST(FollowQuestion, RefusesRangesThatAreNone) {
  const auto of = [](std::vector<FollowRange> ranges) {
    return complaint_of([&] { plan(FollowQuestion{.start = {.system = fold()}, .ranges = std::move(ranges)}); });
  };
  EXPECT_EQ(of({}), "nothing is followed");
  EXPECT_EQ(of({{"mu", 1, 1}}), "mu=1:1: the range is empty");
  EXPECT_EQ(of({{"mu", 1, 2}, {"mu", 1, 2}}), "two ranges follow a special point, and none is named");
}

// The van der Pol oscillator has one periodic orbit (Lienard), which each start meets at a plane of its own.
TEST(OrbitsQuestion, ListsAnOrbitOnceHoweverItIsMet) {
  const System oscillator = System::from_text(
      "equations = \"\"\"\nx' = y\ny' = (1 - x^2)*y - x\n\"\"\"\n[initial]\nx = 2\ny = 0\n", "van_der_pol");
  const OrbitsAnswer answer =
      ask(OrbitsQuestion{.orbit = {.system = oscillator}, .starts = 8, .box = {{-3, 3}, {-3, 3}}});
  ASSERT_EQ(answer.orbits.size(), 1u);
  EXPECT_NEAR(answer.orbits[0].period, 6.66328685932313, 1e-9);
}

// r' = r (mu (1 - mu) - r^2): cycles are born at mu = 0 and are gone at mu = 1.
TEST(FollowQuestion, OfAllBranchesFollowsEachOnceAndUsesNoLabelTwice) {
  const System both = System::from_text(
      "equations = \"\"\"\nx' = x*(mu*(1 - mu) - x^2 - y^2) - y\ny' = y*(mu*(1 - mu) - x^2 - y^2) + x\n\"\"\"\n"
      "[parameters]\nmu = -0.5\n[initial]\nx = 0\ny = 0\n",
      "both");
  const FollowAnswer answer =
      ask(FollowQuestion{.start = {.system = both}, .equilibrium = true, .ranges = {{"mu", -0.5, 1.5}}, .all = true});
  ASSERT_EQ(answer.branches.size(), 2u);
  std::set<std::string> labels;
  for (const Branch& branch : answer.branches) {
    for (const SpecialPoint& s : branch.special) EXPECT_TRUE(labels.insert(s.label).second) << s.label;
  }
  EXPECT_EQ(labels.count("HB1") + labels.count("HB2") + labels.count("HB3"), 3u);
  EXPECT_NEAR(answer.branches[1].special.back().values[0], 1, 1e-9);
}

// x -> -(0.5 + 4 mu (1 - mu)) x + x^3: two periods between the flips of x = 0 at mu = (1 -+ sqrt(1/2))/2, x^2 = 1/2 in
// the middle.
TEST(FollowQuestion, OfAllBranchesFollowsADoubledOneAndWhatItDoublesOnce) {
  const System bubble = System::from_text(
      "equations = \"x' = 0\"\n[parameters]\nmu = 0.5\n[initial]\nx = 0.7\n[jump.m]\nevery = 1\n"
      "set = { x = \"-(0.5 + 4*mu*(1 - mu))*x + x^3\" }\n[section.s]\nevery = 1\n",
      "bubble");
  const FollowAnswer answer =
      ask(FollowQuestion{.start = {.system = bubble}, .ranges = {{"mu", 0.05, 0.95}}, .all = true});
  ASSERT_EQ(answer.branches.size(), 2u);
  EXPECT_NEAR(answer.branches[0].points.front().period, 2, 1e-12);
  EXPECT_NEAR(answer.branches[1].points.front().period, 1, 1e-12);
  std::vector<double> flips;
  for (const SpecialPoint& s : answer.branches[1].special) flips.push_back(s.values[0]);
  std::sort(flips.begin(), flips.end());
  ASSERT_EQ(flips.size(), 2u);
  EXPECT_NEAR(flips[0], (1 - std::sqrt(0.5)) / 2, 1e-10);
  EXPECT_NEAR(flips[1], (1 + std::sqrt(0.5)) / 2, 1e-10);
}

}  // namespace
}  // namespace saltus
