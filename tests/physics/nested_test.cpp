// Random nested kinks of time against plain quadrature of the formula as written.
#include <random>

#include "code/plain.hpp"
#include "physics.hpp"

namespace saltus::physics {
namespace {

std::string random_formula(std::mt19937& random, int depth, bool steps) {
  const auto number = [&](double lo, double hi) { return std::uniform_real_distribution<double>(lo, hi)(random); };
  const auto part = [&] { return random_formula(random, depth - 1, steps); };
  if (depth == 0) {
    switch (random() % 4) {
      case 0: return fmt::format("{:.3f}*sin({:.3f}*t + {:.3f})", number(0.5, 3), number(0.5, 3), number(0, 6));
      case 1: return fmt::format("({:.3f} - {:.3f}*t)", number(-1, 2), number(0.1, 0.8));
      case 2: return fmt::format("cos({:.3f}*t)", number(0.5, 3));
      default: return fmt::format("{:.3f}", number(-1, 1));
    }
  }
  switch (random() % (steps ? 10 : 8)) {
    case 0: return fmt::format("min({}, {})", part(), part());
    case 1: return fmt::format("max({}, {})", part(), part());
    case 2: return fmt::format("abs({})", part());
    case 3: return fmt::format("sat({}, {:.3f}, {:.3f})", part(), number(-1, -0.1), number(0.1, 1));
    case 4: return fmt::format("if({} > {}, {}, {})", part(), part(), part(), part());
    case 5: return fmt::format("sign({})*{}", part(), part());
    case 6: return fmt::format("step({})", part());
    case 7: return fmt::format("({} + {})", part(), part());
    case 8: return fmt::format("floor({})", part());
    default: return fmt::format("mod({}, {:.3f})", part(), number(0.3, 1.5));
  }
}

/// Adaptive Simpson down to intervals that do not matter: jumps cost their width.
double integral(Plain& f, double a, double b, double fa, double fm, double fb, double tolerance, int depth, int least) {
  const auto at = [&](double t) { return f({.parameters = {}, .states = {}, .t = t}); };
  const double m = (a + b) / 2, left = at((a + m) / 2), right = at((m + b) / 2);
  const double whole = (b - a) / 6 * (fa + 4 * fm + fb);
  const double halves = (b - a) / 12 * (fa + 4 * left + 2 * fm + 4 * right + fb);
  if (depth > 44 || (depth > least && std::abs(halves - whole) < 15 * tolerance)) return halves + (halves - whole) / 15;
  return integral(f, a, m, fa, left, fm, tolerance / 1.6, depth + 1, least) +
         integral(f, m, b, fm, right, fb, tolerance / 1.6, depth + 1, least);
}

void expect_integral(const std::string& formula) {
  const System s = system("x' = " + formula, "x = 0");
  Plain f(s.program.model().states[0].rate);
  const auto at = [&](double t) { return f({.parameters = {}, .states = {}, .t = t}); };
  const double until = 4.3;
  const auto quadrature = [&](int least) {
    return integral(f, 0, until, at(0), at(until / 2), at(until), 1e-9, 0, least);
  };
  double expected = quadrature(7);
  const Trajectory run = s.run(until, 1e-10);
  ASSERT_EQ(run.end.why, Why::time) << formula << "\n" << story(run);
  if (std::abs(run.end.state[0] - expected) > 3e-7) expected = quadrature(18);  // it may have missed something narrow
  ASSERT_NEAR(run.end.state[0], expected, 3e-7) << formula;
}

void compare(unsigned seed, int count, int deepest, bool steps) {
  std::mt19937 random(seed);
  for (int k = 0; k < count; ++k) {
    expect_integral(random_formula(random, 1 + k % deepest, steps));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Nested, RandomKinksOfTimeAreIntegratedAsWritten) { compare(1, 1500, 4, false); }
TEST(Nested, RandomStepsOfTimeAreIntegratedAsWritten) { compare(2, 500, 3, true); }
TEST(Nested, AFloorThatJumpsOntoAStepOfAModIsCountedOnce) {
  expect_integral("mod(floor(abs(1.849*sin(0.558*t + 0.822))), 0.682)");
}

// Where a surface rests at zero its functions have the values that are written, however they are nested: sign 0, step
// 1/2, both > and < false.
TEST(Nested, WhatRestsOnItsSurfaceIsAsWritten) {
  const std::string dead = "(max(2*sin(t) - 1, 0) + min(2*sin(t) + 1, 0))";
  for (const std::string& formula :
       {"if(" + dead + " > 0, 1, if(" + dead + " < 0, -2, 0.5))", "if(" + dead + " >= 0 and " + dead + " <= 0, 0, 1)",
        "abs(sign(" + dead + "))", "exp(sign(" + dead + "))", "sign(" + dead + ")^2",
        std::string("floor(step(floor(0.1*sin(1.52*t - 2))))"), std::string("mod(sign(floor(t)), 1.7)"),
        std::string("max(mod(sign(0.16*sin(3.3*t + 1)), 1.19), step(floor(sin(0.8*t - 0.5))))"),
        std::string("floor(mod(floor(floor(-0.25*sin(1.82*t + 2.37))), 2.39))"),
        std::string("step(step(ceil(0.73*sin(1.86*t + 2.44))))")}) {
    expect_integral(formula);
    EXPECT_EQ(system("x' = " + formula, "x = 0").run(4.3, 1e-10).messages, std::vector<std::string>{}) << formula;
  }
}

// A discrete variable that equals what it is compared with; expected: the formula as written, by hand.
TEST(Nested, ADiscreteVariableOnItsThresholdIsComparedAsWritten) {
  const std::vector<std::pair<std::string, double>> cases = {
      {"if(n > 2 or n < 2, 1, 0)", 0}, {"if(n >= 2 and n <= 2, 0, 1)", 0}, {"abs(sign(n - 2))", 0},
      {"exp(sign(n - 2))", 1},         {"max(sign(n - 2), -0.5)", 0},      {"max(step(n - 2), step(x + 5))", 1},
      {"floor(step(n - 2) + 0.2)", 0}, {"sign(sign(n - 2) + 0.5)", 1},     {"step(n - 2)", 0.5}};
  for (const auto& [formula, expected] : cases) {
    const Trajectory run = system("x' = " + formula + "\nn' = 0", "x = 0\nn = 2").run_both(1);
    EXPECT_NEAR(run.end.state[0], expected, 1e-13) << formula << "\n" << story(run);
    EXPECT_EQ(run.messages, std::vector<std::string>{}) << formula;
  }
}

}  // namespace
}  // namespace saltus::physics
