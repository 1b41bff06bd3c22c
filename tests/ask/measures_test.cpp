#include "ask/measures.hpp"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "ask/many.hpp"
#include "ask/run.hpp"

namespace saltus {
namespace {

constexpr double pi = std::numbers::pi;

/// The measures of a run of a model given as text, in order.
std::vector<double> measured(const std::string& model, const std::string& until, std::vector<std::string> measures,
                             const std::string& window = "", const std::string& engine = "event") {
  const RunAnswer answer = ask(RunQuestion{.system = System::from_text(model),
                                           .solve = {.until = until, .tolerance = 1e-12, .engine = engine},
                                           .measures = std::move(measures),
                                           .window = window,
                                           .dense = false});
  std::vector<double> values;
  for (const auto& [name, value] : answer.measures) values.push_back(value);
  return values;
}

const char* const circle = R"(
equations = """
y' = v
v' = -y
P = y*v
"""
[initial]
y = 1
v = 0
)";

TEST(Measures, OfACircleAreItsIntegrals) {
  const auto m = measured(
      circle, "4*pi", {"mean(y)", "rms(y)", "pp(y)", "min(P)", "max(P)", "above(y, 0.5)", "mean(abs(v))", "mean(t)"});
  EXPECT_NEAR(m[0], 0, 1e-12);
  EXPECT_NEAR(m[1], std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(m[2], 2, 1e-12);
  EXPECT_NEAR(m[3], -0.5, 1e-12);  // of cos*sin
  EXPECT_NEAR(m[4], 0.5, 1e-12);
  EXPECT_NEAR(m[5], 4 * pi / 3, 1e-11);  // cos > 1/2 for a third of the time
  EXPECT_NEAR(m[6], 2 / pi, 1e-8);       // |v| has corners that no event marks: the formula is of the measure alone
  EXPECT_NEAR(m[7], 2 * pi, 1e-12);
}

TEST(Measures, AreThoseOfTheWindowForwardAndBackward) {
  // The mean of cos over [a, b] is (sin b - sin a)/(b - a).
  for (const char* until : {"6", "-6"}) {
    const std::string window = *until == '-' ? "-3:-1" : "1:3";
    const auto m = measured(circle, until, {"mean(y)", "max(y)", "above(y, 0)"}, window);
    EXPECT_NEAR(m[0], (std::sin(3) - std::sin(1)) / 2, 1e-12) << until;
    EXPECT_NEAR(m[1], std::cos(1), 1e-12) << until;
    EXPECT_NEAR(m[2], pi / 2 - 1, 1e-12) << until;
  }
}

TEST(Measures, GoThroughSwitchesSlidingAndImpactsExactly) {
  // A full-wave rectifier: the mean of |sin| is 2/pi, its root mean square 1/sqrt(2).
  const auto rectified = measured("equations = \"\"\"\nx' = cos(t)\nu = abs(x)\n\"\"\"\n[initial]\nx = 0\n", "2*pi",
                                  {"mean(u)", "rms(u)", "max(u)", "above(u, 0.5)"});
  EXPECT_NEAR(rectified[0], 2 / pi, 1e-12);
  EXPECT_NEAR(rectified[1], std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(rectified[2], 1, 1e-12);
  EXPECT_NEAR(rectified[3], 4 * pi / 3, 1e-11);
  // x' = -sign(x) rests at 0 after 1: over [0, 2] the mean of x is 1/4 and sigma is 1 for half of the time.
  const auto sliding =
      measured("equations = \"x' = -sign(x)\"\n[initial]\nx = 1\n", "2", {"mean(x)", "mean(sigma(x))"});
  EXPECT_NEAR(sliding[0], 0.25, 1e-12);
  EXPECT_NEAR(sliding[1], 0.5, 1e-12);
  // A ball from height 1 that rebounds fully: mean height 2/3, mean square of the velocity 2/3 for g = 1.
  const char* ball = R"(
equations = """
q' = v
v' = -1 + N
"""
[constraint.N]
gap = "q"
restitution = 1
[initial]
q = 1
v = 0
)";
  const auto bouncing = measured(ball, "6*sqrt(2)", {"mean(q)", "rms(v)", "pp(v)", "min(q)"});
  EXPECT_NEAR(bouncing[0], 2.0 / 3, 1e-11);
  EXPECT_NEAR(bouncing[1], std::sqrt(2.0 / 3), 1e-11);
  EXPECT_NEAR(bouncing[2], 2 * std::sqrt(2), 1e-11);
  EXPECT_NEAR(bouncing[3], 0, 1e-11);
}

TEST(Measures, OfBothEnginesAgree) {
  const char* model = "equations = \"\"\"\nx' = cos(t) - 0.3*sign(x)\nP = x^2\n\"\"\"\n[initial]\nx = 0.1\n";
  const auto event = measured(model, "10", {"mean(P)", "max(P)"});
  const auto step = measured(model, "10", {"mean(P)", "max(P)"}, "", "step");
  EXPECT_NEAR(event[0], step[0], 1e-8);
  EXPECT_NEAR(event[1], step[1], 1e-8);
}

TEST(Measures, OfASweepBalanceThePowerOverAPeriod) {
  // Over a period what the drive puts in, mean(sin(omega*t)*v), is what friction takes out, mean(F*|v|).
  const SweepAnswer answer = ask(SweepQuestion{.system = System::example("dry_friction"),
                                               .vary = {{"omega", {0.5, 0.6, 0.8, 1.25}}},
                                               .skip = 200,
                                               .count = 20,
                                               .measures = {"mean(sin(omega*t)*v)", "mean(F*abs(v))", "max(y)"}});
  int periodic = 0;
  for (const auto& run : answer.runs) {
    ASSERT_TRUE(run);
    if (run->period == 0) continue;
    ++periodic;
    EXPECT_NEAR(run->measures[0], run->measures[1], 1e-8);
    const size_t width = 2;
    for (size_t i = 0; i < run->points.size(); i += width) EXPECT_LE(run->points[i], run->measures[2] + 1e-9);
  }
  EXPECT_GE(periodic, 3);
}

TEST(Measures, OfARunThatCannotStartAreNoNumbers) {
  const System walled = System::from_text(
      "equations = \"\"\"\nx' = v\nv' = -x + N\n\"\"\"\n[parameters]\na = 0\n[constraint.N]\ngap = \"x - a\"\n"
      "restitution = 0.5\n[initial]\nx = 1\nv = 0\n[section.turn]\non = \"v\"\n");
  const SweepAnswer answer = ask(SweepQuestion{.system = walled,
                                               .vary = {{"a", {-0.5, 2}}},  // from 2 on the start is inside the wall
                                               .skip = 1,
                                               .count = 5,
                                               .measures = {"mean(x)"}});
  ASSERT_TRUE(answer.runs[1]);
  ASSERT_EQ(answer.runs[1]->measures.size(), 1u);
  EXPECT_TRUE(std::isnan(answer.runs[1]->measures[0]));
}

TEST(Measures, ThatAreNoneSayWhatThereIs) {
  const Model model = System::from_text(circle).model();
  const auto complaint = [&](const std::string& text) {
    try {
      read_measures({text}, model);
    } catch (const Error& error) {
      return error.message() + " | " + error.hint();
    }
    return std::string("none");
  };
  EXPECT_EQ(
      complaint("mean(Q)"),
      "`measure` mean(Q): unknown name 'Q' | a quantity is a state, a name with an equation of its own, a multiplier, "
      "or sigma(SURFACE)");
  EXPECT_EQ(complaint("maen(y)"), "`measure` maen(y): this is no measure | did you mean 'mean'?");
  for (const char* text : {"", "(", "mean", "mean(", "mean()", "y", "mean(y", "above(y)", "above(y, v)", "mean(y))"})
    EXPECT_NE(complaint(text), "none") << text;
}

TEST(Window, IsRefusedWhereItShowsNothing) {
  for (const char* window : {"7:8", "3", "a:b", "1:2:3", "2:2"})
    EXPECT_THROW(measured(circle, "6", {}, window), Error) << window;
  EXPECT_NO_THROW(measured(circle, "6", {}, "5:8"));
}

}  // namespace
}  // namespace saltus
