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

}  // namespace
}  // namespace saltus::physics
