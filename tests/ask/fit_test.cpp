#include "ask/fit.hpp"

#include <cmath>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ask/run.hpp"

namespace saltus {
namespace {

const char* const switched_text = R"toml(
equations = "f' = if(t < p, 10 - f, -f)"
[parameters]
p = 1.8
[initial]
f = 3
[data.d]
points = [[0.5, 6.2], [1.1, 8.1], [1.5, 8.8], [2.1, 8.3], [2.3, 6.8], [3.1, 2.9]]
of = { f = 2 }
)toml";

const char* const ball_text = R"(
equations = """
x' = v
v' = -g + N
"""
[parameters]
g = 7
r = 0.6
[initial]
x = 1
v = 0
[constraint.N]
gap = "x"
restitution = "r"
)";

FitAnswer fit(const System& system, std::vector<FreeValue> free, std::vector<DataTable> data = {}) {
  FitQuestion question{.system = system};
  question.free = std::move(free);
  question.data = std::move(data);
  return ask(question);
}

std::string complaint(const FitQuestion& question) {
  try {
    plan(question);
    ask(question);
  } catch (const Error& error) {
    return error.message();
  }
  return "none";
}

TEST(Fit, FindsTheTimeOfASwitchAndTheStart) {
  // By hand: f = 10 + (q - 10) e^-t up to p, then it decays; Newton's method on the normal equations in mpmath.
  const FitAnswer answer = fit(System::from_text(switched_text), {{"p"}, {"f(0)"}});
  EXPECT_EQ(answer.why, "converged");
  EXPECT_NEAR(answer.values[0].value, 1.99613488, 1e-8);
  EXPECT_NEAR(answer.values[1].value, 3.93526639, 1e-8);
  EXPECT_NEAR(answer.cost, 0.07437310, 1e-8);
  ASSERT_EQ(answer.series.size(), 1U);
  EXPECT_NEAR(answer.series[0].rms * answer.series[0].rms * 6, answer.cost, 1e-12);
}

TEST(Fit, FindsGravityAndRestitutionFromTimesOfImpacts) {
  DataTable bounces{.name = "bounces", .events = DataEvents{"N", "impact"}};
  double t = std::sqrt(2 / 9.81), v = 9.81 * t * 0.8;
  for (int k = 0; k < 10; ++k, v *= 0.8) {
    bounces.times.push_back(t);
    t += 2 * v / 9.81;
  }
  const FitAnswer answer = fit(System::from_text(ball_text), {{"g"}, {"r", 0.1, 0.99}}, {bounces});
  EXPECT_EQ(answer.why, "converged");
  EXPECT_NEAR(answer.values[0].value, 9.81, 1e-8);
  EXPECT_NEAR(answer.values[1].value, 0.8, 1e-9);
}

TEST(Fit, ADatumAtAnEventIsTheStateBehindItAndTheFirstOfTwoTheOneBefore) {
  // At t = sqrt(2/g) the ball turns: v = -sqrt(2 g) before, r sqrt(2 g) behind.
  const double g = 9.81, t = std::sqrt(2 / g), v = std::sqrt(2 * g);
  DataTable two{.name = "two", .times = {t, t}};
  two.series.push_back({"v", "2", {-v, 0.8 * v}, {}, {}, {}});
  const System ball = System::from_text(ball_text).with({{"g", g}});
  const FitAnswer answer = fit(ball, {{"r"}}, {two});
  EXPECT_NEAR(answer.values[0].value, 0.8, 1e-9);
  EXPECT_LT(answer.cost, 1e-18);
}

TEST(Fit, SlopesOfNamedQuantitiesCountWhatSlides) {
  // A block held by friction F >= |force|: the friction force is -k x, whatever F is; then it slips.
  const System block = System::from_text(R"(
equations = """
x' = v
v' = k*(c*t - x) + friction
friction = -F*sign(v)
"""
[parameters]
k = 2
c = 0.1
F = 1
[initial]
x = 0
v = 0
)");
  DataTable held{.name = "held", .times = {1, 2, 3, 4}};
  held.series.push_back({"friction", "2", {-0.3, -0.6, -0.9, -1.2}, {}, {}, {}});  // -k c t with k c = 0.3
  const FitAnswer answer = fit(block.with({{"F", 2.0}}), {{"k"}}, {held});
  EXPECT_NEAR(answer.values[0].value, 3, 1e-9);
}

TEST(Fit, ErrorsAreThoseOfManyNoisyExperiments) {
  const System ball = System::from_text(switched_text).with({{"p", 2.0}}, {{"f", 4.0}});
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, 0.05);
  DataTable exact{.name = "d"};
  for (int k = 1; k <= 20; ++k) exact.times.push_back(0.2 * k);
  exact.series.push_back({"f", "2", {}, {}, {}, {}});
  for (const double t : exact.times)
    exact.series[0].values.push_back(t < 2 ? 10 - 6 * std::exp(-t) : (10 - 6 * std::exp(-2.0)) * std::exp(2 - t));
  double sum[2] = {}, squares[2] = {}, told[2] = {}, both = 0, correlation = 0;
  constexpr int count = 200;
  for (int k = 0; k < count; ++k) {
    DataTable noisy = exact;
    for (double& value : noisy.series[0].values) value += noise(random);
    const FitAnswer answer = fit(ball, {{"p"}, {"f(0)"}}, {noisy});
    double off[2];
    for (size_t i = 0; i < 2; ++i) {
      off[i] = answer.values[i].value - (i == 0 ? 2.0 : 4.0);
      sum[i] += off[i];
      squares[i] += off[i] * off[i];
      told[i] += answer.values[i].error;
    }
    both += off[0] * off[1];
    correlation += answer.correlation[0][1];
  }
  for (size_t i = 0; i < 2; ++i) {
    const double spread = std::sqrt(squares[i] / count);
    EXPECT_NEAR(told[i] / count, spread, 0.15 * spread);
    EXPECT_LT(std::abs(sum[i] / count), 0.3 * spread);
  }
  EXPECT_NEAR(correlation / count, both / std::sqrt(squares[0] * squares[1]), 0.15);
}

TEST(Fit, SeveralExperimentsHaveValuesOfTheirOwn) {
  const System decay = System::from_text("equations = \"y' = -k*y\"\n[parameters]\nk = 1\n[initial]\ny = 1\n");
  std::vector<DataTable> data;
  for (const double start : {2.0, 5.0}) {
    DataTable d{.name = start == 2 ? "low" : "high", .times = {0.5, 1, 2}};
    d.series.push_back({"y", "2", {}, {}, {}, {}});
    for (const double t : d.times) d.series[0].values.push_back(start * std::exp(-0.7 * t));
    data.push_back(d);
  }
  data[0].with = {{"y(0)", "2"}};
  const FitAnswer answer = fit(decay, {{"k"}, {"y(0)@high"}}, data);
  EXPECT_NEAR(answer.values[0].value, 0.7, 1e-9);
  EXPECT_NEAR(answer.values[1].value, 5, 1e-8);
}

TEST(Fit, BoundsLogarithmsAndManyStarts) {
  FitQuestion question{.system = System::from_text(switched_text)};
  question.free = {{"p", 0.5, 1.9}, {"f(0)", 0.1, 9, true}};
  const FitAnswer bounded = ask(question);
  EXPECT_EQ(bounded.values[0].value, 1.9);
  EXPECT_TRUE(bounded.values[0].at_bound);
  question.free[0].high = 3;
  question.starts = 5;
  question.profile = true;
  const FitAnswer best = ask(question);
  EXPECT_NEAR(best.values[0].value, 1.99613488, 1e-7);
  EXPECT_NEAR(best.values[1].value, 3.93526639, 1e-7);
  ASSERT_EQ(best.profiles.size(), 2U);
  ASSERT_TRUE(best.profiles[0].low && best.profiles[0].high);
  // Nearly linear: 1.96 errors each way.
  EXPECT_NEAR(*best.profiles[0].high - *best.profiles[0].low, 2 * 1.96 * best.values[0].error,
              0.1 * best.values[0].error);
}

TEST(Fit, ARobustOneForgivesAFewWildData) {
  const System line = System::from_text("equations = \"y' = a\"\n[parameters]\na = 1\n[initial]\ny = 0\n");
  DataTable d{.name = "d"};
  d.series.push_back({"y", "2", {}, {}, {}, {}});
  for (int k = 1; k <= 20; ++k) {
    d.times.push_back(k);
    d.series[0].values.push_back(2.0 * k + 0.01 * std::sin(7.0 * k) + (k == 18 ? 30 : 0));
  }
  FitQuestion question{.system = line, .free = {{"a"}}, .data = {d}};
  EXPECT_GT(std::abs(ask(question).values[0].value - 2), 0.1);
  question.robust = true;
  EXPECT_NEAR(ask(question).values[0].value, 2, 0.002);
}

TEST(Fit, SaysWhatIsWrongWithDataAndNames) {
  const System system = System::from_text(switched_text);
  const auto of = [&](std::vector<FreeValue> free) { return complaint({.system = system, .free = std::move(free)}); };
  EXPECT_EQ(of({}), "nothing is free");
  EXPECT_EQ(of({{"q"}}), "`free`: there is no parameter 'q'");
  EXPECT_EQ(of({{"p"}, {"p"}}), "`free` p is given twice");
  EXPECT_EQ(of({{"p", 3, 1}}), "`free` p: the bounds 3 and 1 leave nothing");
  EXPECT_EQ(of({{"p@e"}}), "`free` p@e: there is no experiment 'e'");
  std::string two = switched_text;
  two.replace(two.find("if(t"), 4, "max(k - 50, 0) + if(t");
  two.replace(two.find("p = 1.8"), 7, "p = 1.8\nk = 2");
  EXPECT_EQ(complaint({.system = System::from_text(two), .free = {{"k"}}}),
            "`free` k: nothing in the data depends on it");
  const System none = System::from_text("equations = \"y' = -y\"\n[initial]\ny = 1\n");
  EXPECT_EQ(complaint({.system = none, .free = {{"y(0)"}}}), "the model has no data");
}

TEST(Fit, NamesWhatTheDataDoNotTellApart) {
  const System system =
      System::from_text("equations = \"y' = -a*b*y\"\n[parameters]\na = 1\nb = 1\n[initial]\ny = 1\n");
  DataTable d{.name = "d", .times = {1, 2, 3}};
  d.series.push_back({"y", "2", {0.5, 0.26, 0.12}, {}, {}, {}});
  const FitAnswer answer = fit(system, {{"a"}, {"b"}}, {d});
  ASSERT_FALSE(answer.notes.empty());
  EXPECT_EQ(answer.notes[0], "the data do not tell a and b apart: a combination of them may have any value");
  EXPECT_TRUE(std::isinf(answer.values[0].error));
}

}  // namespace
}  // namespace saltus
