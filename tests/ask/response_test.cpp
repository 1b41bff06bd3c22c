#include "ask/response.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ask/run.hpp"

namespace saltus {
namespace {

using Complex = std::complex<double>;
constexpr Complex j{0, 1};

const std::string buck_text = R"(
equations = """
  v' = (i - v/R)/C
  i' = (Vin*u - v)/L
  u = if(mod(t, T) < D*T, 1, 0)
"""
[parameters]
L = 0.001
C = 0.0001
R = 10
T = 0.0001
D = 0.4
Vin = 20
[initial]
v = 8
i = 0.8
[section.clock]
every = "T"
)";

/// SIGNAL stands where the input goes; N is the force of the wall.
const std::string wall_text = R"(
equations = """
  x' = v
  v' = -x - 0.2*v + cos(1.1*t) - N
  CORRELATE
"""
[parameters]
w = 0.6
[initial]
x = 0
v = 0
MORE
[constraint.N]
gap = "SIGNAL - x"
restitution = 0.7
[section.strobe]
every = "2*pi/1.1"
)";

const std::string discontinuous_text = R"(
equations = """
  i' = (Vin*u - v + N)/L
  v' = (i - v/R)/C
  u = if(mod(t, T) < (SIGNAL)*T, 1, 0)
  CORRELATE
"""
[parameters]
Vin = 20
L = 0.5
C = 2
R = 10
T = 1
w = 0.3
[initial]
i = 0
v = 12
MORE
[constraint.N]
gap = "i"
[section.clock]
every = "T"
)";

std::string with(std::string text, const std::string& word, const std::string& by) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + by.size()))
    text.replace(at, word.size(), by);
  return text;
}

ResponseAnswer respond(const std::string& text, const std::string& input, const std::string& output, double from,
                       double to, int points) {
  ResponseQuestion question{.orbit = {.system = System::from_text(text)}, .inputs = {input}, .outputs = {output}};
  question.from = from;
  question.to = to;
  question.points = points;
  return ask(question);
}

Complex response_at(const std::string& text, const std::string& input, const std::string& output, double f) {
  const ResponseAnswer answer = respond(text, input, output, f, f, 1);
  EXPECT_TRUE(answer.found) << answer.message;
  return answer.curves.at(0).points.at(0).value;
}

/// By two runs with a signal of amplitude +-a: their difference at its frequency, over periods that hold both.
Complex measured(const std::string& text, const std::string& output, double f, double common, int settle) {
  constexpr double a = 1e-5;
  std::array<Complex, 2> found;
  for (const int sign : {1, -1}) {
    const std::string angle = fmt::format("{:.17g}*t", 2 * M_PI * f);
    std::string run = with(text, "SIGNAL", fmt::format("w + {:.17g}*sin({})", sign * a, angle));
    run = with(run, "CORRELATE", fmt::format("c' = ({0})*cos({1})\n  s' = ({0})*sin({1})", output, angle));
    run = with(run, "MORE", "c = 0\ns = 0");
    RunQuestion question{.system = System::from_text(run), .solve = {.until = (settle + 1) * common}};
    question.solve.tolerance = 1e-13;
    question.dense = true;
    const RunAnswer answer = ask(question);
    const std::vector<double> begin = answer.trajectory(settle * common), end = answer.trajectory.end.state;
    found[sign > 0 ? 0 : 1] = (Complex(end[2] - begin[2], begin[3] - end[3])) / common;
  }
  return (found[0] - found[1]) / (2 * a) * 2.0 * j;
}

TEST(Response, OfABuckConverterIsThatOfItsFilter) {
  const ResponseAnswer answer = respond(buck_text, "D", "v", 20, 20000, 7);
  ASSERT_TRUE(answer.found) << answer.message;
  for (const ResponsePoint& p : answer.curves[0].points) {
    const Complex s = 2 * M_PI * p.frequency * j, filter = 1.0 / (1.0 + s * 1e-4 + s * s * 1e-7);
    EXPECT_LT(std::abs(p.value - 20.0 * filter), 1e-7 * std::max(1.0, std::abs(20.0 * filter))) << p.frequency;
    // The mean of u Vin, with u as it is without a signal; sampling adds nothing to harmonic 0.
    EXPECT_LT(std::abs(response_at(buck_text, "Vin", "v", p.frequency) - 0.4 * filter), 1e-7) << p.frequency;
  }
  ASSERT_EQ(answer.means.mean.size(), 1U);
  EXPECT_NEAR(answer.means.mean[0], 8, 1e-9);
  const auto by = [&](const std::string& name) {
    const auto at = std::find(answer.parameters.begin(), answer.parameters.end(), name) - answer.parameters.begin();
    return answer.means.by[0][static_cast<size_t>(at)];
  };
  EXPECT_NEAR(by("D"), 20, 1e-7);
  EXPECT_NEAR(by("Vin"), 0.4, 1e-8);
  EXPECT_NEAR(by("R"), 0, 1e-8);
  EXPECT_NEAR(by("L") * 1e-3, 0, 1e-7);
  EXPECT_NEAR(by("T") * 1e-4, 0, 1e-7);
}

TEST(Response, AtFrequencyZeroIsTheDerivativeOfTheMean) {
  const std::string text = with(with(with(wall_text, "SIGNAL", "w"), "CORRELATE", ""), "MORE", "");
  const ResponseAnswer answer = respond(text, "w", "x", 1e-8, 1e-8, 1);
  ASSERT_TRUE(answer.found);
  EXPECT_NEAR(answer.curves[0].points[0].value.real(), answer.means.by[0][0], 1e-7);
  EXPECT_NEAR(answer.curves[0].points[0].value.imag(), 0, 1e-5);
}

TEST(Response, AStateThatStaysAtZeroCountsForNothing) {
  // The derivative of the mean is the response at frequency 0, found in another way.
  const std::string text = R"(
equations = """
x' = v
v' = 0.5*cos(t/3) - x - 0.1*v - mu*9.81*sign(v - V)
y' = -y
"""
[parameters]
mu = 0.02
V = 0.1
[initial]
x = 0.3
v = 0
y = 0
[section.strobe]
every = "6*pi"
)";
  const ResponseAnswer answer = respond(text, "V", "x", 1e-8, 1e-8, 1);
  ASSERT_TRUE(answer.found) << answer.message;
  EXPECT_NEAR(answer.means.by[0][1], answer.curves[0].points[0].value.real(), 1e-7);
}

TEST(Response, OfAnOscillatorAtAMovingWallIsThatOfRunsWithASignal) {
  const double T = 2 * M_PI / 1.1;
  const std::string still = with(with(with(wall_text, "SIGNAL", "w"), "CORRELATE", ""), "MORE", "");
  for (const double turns : {0.1, 0.25, 1.25, 2.3}) {
    const double f = turns / T;
    const Complex exact = response_at(still, "w", "x", f);
    EXPECT_LT(std::abs(exact - measured(wall_text, "x", f, 20 * T, 6)), 1e-6) << turns;
    // The force of the wall, impulses and their moving times included, is what the motion asks for.
    const Complex s = 2 * M_PI * f * j;
    EXPECT_LT(std::abs(response_at(still, "w", "N", f) + exact * (s * s + 0.2 * s + 1.0)), 1e-8) << turns;
  }
}

TEST(Response, ThroughDiscontinuousConductionIsThatOfRunsWithASignal) {
  const std::string still = with(with(with(discontinuous_text, "SIGNAL", "w"), "CORRELATE", ""), "MORE", "");
  for (const double f : {0.01, 0.3, 0.8}) {
    const Complex exact = response_at(still, "w", "v", f);
    EXPECT_LT(std::abs(exact - measured(discontinuous_text, "v", f, 100, 3)), 1e-6 * std::abs(exact)) << f;
  }
}

TEST(Response, AboutAnEquilibriumIsTheTransferFunction) {
  const std::string text = R"(
equations = """
  y' = z
  z' = -y - 0.4*z + u
  u = k*(r - y)
"""
[parameters]
k = 3
r = 0.5
[initial]
y = 0
z = 0
)";
  const ResponseAnswer answer = respond(text, "r", "y", 0.01, 10, 9);
  ASSERT_TRUE(answer.found) << answer.message;
  EXPECT_TRUE(answer.rests);
  for (const ResponsePoint& p : answer.curves[0].points) {
    const Complex s = 2 * M_PI * p.frequency * j;
    EXPECT_LT(std::abs(p.value - 3.0 / (s * s + 0.4 * s + 4.0)), 1e-11) << p.frequency;
  }
  EXPECT_NEAR(answer.means.by[0][1], 0.75, 1e-12);  // y = k r/(1 + k)
  EXPECT_NEAR(answer.means.by[0][0], 0.5 / 16, 1e-12);
  ResponseQuestion loop{.orbit = {.system = System::from_text(text)}, .loop = "u"};
  loop.from = 0.01;
  loop.to = 10;
  const ResponseAnswer opened = ask(loop);
  ASSERT_TRUE(opened.found);
  for (const ResponsePoint& p : opened.curves[0].points) {
    const Complex s = 2 * M_PI * p.frequency * j;
    EXPECT_LT(std::abs(p.value - 3.0 / (s * s + 0.4 * s + 1.0)), 1e-10) << p.frequency;
  }
  // |L| = 1: w^4 - 1.84 w^2 - 8 = 0
  const double w = std::sqrt(0.92 + std::sqrt(0.92 * 0.92 + 8));
  ASSERT_TRUE(opened.curves[0].phase_margin);
  EXPECT_NEAR(opened.curves[0].phase_margin->frequency, w / (2 * M_PI), 1e-10);
  EXPECT_NEAR(opened.curves[0].phase_margin->value, std::atan2(0.4 * w, w * w - 1) * 180 / M_PI, 1e-8);
}

TEST(Response, SaysWhatIsMissing) {
  const auto complaint = [](ResponseQuestion question) {
    question.orbit.system = System::from_text(buck_text);
    try {
      plan(question);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("none");
  };
  const OrbitQuestion of{.system = System::from_text(buck_text)};
  EXPECT_EQ(complaint({.orbit = of}), "no `input` is given");
  EXPECT_EQ(complaint({.orbit = of, .inputs = {"D"}}), "no `output` is given");
  EXPECT_EQ(complaint({.orbit = of, .inputs = {"d"}, .outputs = {"v"}}), "`input`: there is no parameter 'd'");
  EXPECT_EQ(complaint({.orbit = of, .inputs = {"D"}, .outputs = {"w"}}), "`output` w: unknown name 'w'");
  EXPECT_EQ(complaint({.orbit = of, .inputs = {"D"}, .outputs = {"v"}, .from = -1}), "`lowest` -1 is no frequency");
  EXPECT_EQ(complaint({.orbit = of, .loop = "D"}), "`loop` D: the model has no named quantity of this name");
}

}  // namespace
}  // namespace saltus
