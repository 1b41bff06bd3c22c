// Values with bounds of their rounding errors, evaluated at one point after another.
#include "code/rounding.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace saltus {
namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();

Expr symbol(SymbolKind kind, int i = 0) { return Expr::symbol(kind, i, "s" + std::to_string(i)); }

/// sin(t - k) x0 + s (x1 - p),  x0 x1,  s l + k,  cos(t)
Tape formulas() {
  const Expr t = symbol(SymbolKind::time), k = symbol(SymbolKind::counter), p = symbol(SymbolKind::parameter);
  const Expr x0 = symbol(SymbolKind::state, 0), x1 = symbol(SymbolKind::state, 1);
  const Expr s = symbol(SymbolKind::sigma), l = symbol(SymbolKind::lambda);
  const std::vector<Expr> outputs{make(Op::sin, t - k) * x0 + s * (x1 - p), x0 * x1, s * l + k, make(Op::cos, t)};
  return build_tape(outputs, {.states = 2, .sigmas = 1, .lambdas = 1, .counters = 1});
}

TEST(Rounding, EvaluatesAtAnyPointAsIfItWereTheFirst) {
  const Tape tape = formulas();
  const std::vector<double> parameters{0.3};
  Rounding used(tape, parameters);
  std::vector<Rounding> alone;  // each output by itself
  for (size_t o = 0; o < tape.outputs.size(); ++o) alone.emplace_back(tape, parameters, std::span(&o, 1));
  struct Point {
    std::vector<double> x;
    double t, sigma, counter, lambda;
  };
  const std::vector<Point> points{
      {{0.5, -2}, 0.7, 1, 0, 0},    {{0.5, -2}, 0.7, 1, 0, 0},   {{0.5, -2}, 0.7, -1, 0, 0},
      {{0.5, -2}, 0.7, 0.25, 3, 0}, {{0.5, 1}, 0.7, 0.25, 3, 0}, {{0.5, 1}, 0.7, 0.25, 4, 0},
      {{0.1, 1}, 0.7, 0.25, 5, 2},  {{0.1, 1}, 1.9, 0.25, 5, 2}, {{0.1, 1}, 1.9, 0.25, 5, 7},
      {{0.0, 1}, 1.9, 1, 0, 7},     {{-0.0, 1}, 1.9, 1, 0, 7},   {{NAN, 1}, 1.9, 1, 0, 7},
      {{0.2, 1}, 1.9, 1, 0, 7},
  };
  for (size_t i = 0; i < points.size(); ++i) {
    const auto& [x, t, sigma, counter, lambda] = points[i];
    Rounding fresh(tape, parameters);
    for (Rounding* r : {&used, &fresh})
      r->evaluate(x, t, std::span(&sigma, 1), std::span(&counter, 1), std::span(&lambda, 1));
    for (Rounding& r : alone) r.evaluate(x, t, std::span(&sigma, 1), std::span(&counter, 1), std::span(&lambda, 1));
    for (size_t o = 0; o < tape.outputs.size(); ++o) {
      if (std::isnan(fresh.value(o))) {
        EXPECT_TRUE(std::isnan(used.value(o)) && std::isnan(alone[o].value(o))) << i << ' ' << o;
        continue;
      }
      EXPECT_EQ(used.value(o), fresh.value(o)) << i << ' ' << o;
      EXPECT_EQ(std::signbit(used.value(o)), std::signbit(fresh.value(o))) << i << ' ' << o;
      EXPECT_EQ(used.error(o), fresh.error(o)) << i << ' ' << o;
      EXPECT_EQ(alone[o].value(o), fresh.value(o)) << i << ' ' << o;
      EXPECT_EQ(alone[o].error(o), fresh.error(o)) << i << ' ' << o;
    }
    const double expected = std::sin(t - counter) * x[0] + sigma * (x[1] - 0.3);
    if (std::isnan(expected)) continue;
    EXPECT_NEAR(used.value(0), expected, 8 * eps) << i;
  }
}

}  // namespace
}  // namespace saltus
