#include "expr/diff.hpp"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "expr/interpolant.hpp"
#include "expr/print.hpp"
#include "random_expr.hpp"

namespace saltus {
namespace {

using testing::parsed;
using testing::RandomExpr;

/// A number with its derivative: a second way to differentiate, written from the definitions and not from the rules
/// of diff.cpp.
struct Dual {
  double v = 0, d = 0;
};

Dual dual_apply(Op op, const std::vector<Dual>& a) {
  const auto chain = [&](double value, double slope) { return Dual{value, slope * a[0].d}; };
  const double u = a.empty() ? 0 : a[0].v;
  switch (op) {
    case Op::add: return {a[0].v + a[1].v, a[0].d + a[1].d};
    case Op::sub: return {a[0].v - a[1].v, a[0].d - a[1].d};
    case Op::mul: return {a[0].v * a[1].v, a[0].d * a[1].v + a[0].v * a[1].d};
    case Op::div: return {a[0].v / a[1].v, (a[0].d * a[1].v - a[0].v * a[1].d) / (a[1].v * a[1].v)};
    case Op::neg: return {-a[0].v, -a[0].d};
    case Op::pow: {
      const double p = std::pow(a[0].v, a[1].v);
      double d = 0;
      if (a[0].d != 0) d += a[1].v * std::pow(a[0].v, a[1].v - 1) * a[0].d;
      if (a[1].d != 0) d += p * std::log(a[0].v) * a[1].d;
      return {p, d};
    }
    case Op::sin: return chain(std::sin(u), std::cos(u));
    case Op::cos: return chain(std::cos(u), -std::sin(u));
    case Op::tan: return chain(std::tan(u), 1 / (std::cos(u) * std::cos(u)));
    case Op::asin: return chain(std::asin(u), 1 / std::sqrt((1 - u) * (1 + u)));
    case Op::acos: return chain(std::acos(u), -1 / std::sqrt((1 - u) * (1 + u)));
    case Op::atan: return chain(std::atan(u), 1 / (1 + u * u));
    case Op::sinh: return chain(std::sinh(u), std::cosh(u));
    case Op::cosh: return chain(std::cosh(u), std::sinh(u));
    case Op::tanh: return chain(std::tanh(u), 1 / (std::cosh(u) * std::cosh(u)));
    case Op::exp: return chain(std::exp(u), std::exp(u));
    case Op::log: return chain(std::log(u), 1 / u);
    case Op::sqrt: return chain(std::sqrt(u), 0.5 / std::sqrt(u));
    case Op::cbrt: return chain(std::cbrt(u), 1 / (3 * std::cbrt(u) * std::cbrt(u)));
    case Op::log10: return chain(std::log10(u), 1 / (u * std::log(10.0)));
    case Op::log2: return chain(std::log2(u), 1 / (u * std::log(2.0)));
    case Op::expm1: return chain(std::expm1(u), std::exp(u));
    case Op::log1p: return chain(std::log1p(u), 1 / (1 + u));
    case Op::hypot: {
      const double r = std::hypot(a[0].v, a[1].v);
      return {r, (a[0].v * a[0].d + a[1].v * a[1].d) / r};
    }
    case Op::atan2: {
      const double y = a[0].v, x = a[1].v, r = x * x + y * y;
      return {std::atan2(y, x), (a[0].d * x - a[1].d * y) / r};
    }
    case Op::sign:
    case Op::hold_sign: return {u > 0 ? 1.0 : u < 0 ? -1.0 : 0.0, 0};
    case Op::components: {
      const double r = std::hypot(a[0].v, a[1].v);
      return {r, (a[0].v * a[0].d + a[1].v * a[1].d) / r};
    }
    case Op::unit: {
      const double r = std::hypot(a[0].v, a[1].v), dr = (a[0].v * a[0].d + a[1].v * a[1].d) / r;
      return {a[0].v / r, a[0].d / r - a[0].v * dr / (r * r)};
    }
    case Op::abs: return u < 0 ? Dual{-a[0].v, -a[0].d} : a[0];
    case Op::min: return a[1].v < a[0].v ? a[1] : a[0];
    case Op::max: return a[1].v > a[0].v ? a[1] : a[0];
    case Op::sat: return a[0].v < a[1].v ? a[1] : a[0].v > a[2].v ? a[2] : a[0];
    case Op::step: return {u > 0 ? 1.0 : 0.0, 0};
    case Op::select: return a[0].v != 0 ? a[1] : a[2];
    case Op::mod: {
      const double n = std::floor(a[0].v / a[1].v);
      return {a[0].v - n * a[1].v, a[0].d - n * a[1].d};
    }
    case Op::floor: return {std::floor(u), 0};
    case Op::less: return {a[0].v < a[1].v ? 1.0 : 0, 0};
    case Op::greater: return {a[0].v > a[1].v ? 1.0 : 0, 0};
    case Op::less_equal: return {a[0].v <= a[1].v ? 1.0 : 0, 0};
    case Op::greater_equal: return {a[0].v >= a[1].v ? 1.0 : 0, 0};
    case Op::both: return {a[0].v != 0 && a[1].v != 0 ? 1.0 : 0, 0};
    case Op::either: return {a[0].v != 0 || a[1].v != 0 ? 1.0 : 0, 0};
    case Op::negation: return {a[0].v == 0 ? 1.0 : 0, 0};
    case Op::table:
    case Op::number:
    case Op::symbol: break;
  }
  ADD_FAILURE() << "operation without a rule";
  return {};
}

using Values = std::array<double, 5>;  // three states, time, a parameter

size_t slot(const Symbol& s) {
  return s.kind == SymbolKind::state ? static_cast<size_t>(s.index) : s.kind == SymbolKind::time ? 3 : 4;
}

Dual dual(const Expr& root, const Values& values, size_t along) {
  std::unordered_map<const Node*, Dual> done;
  for (const Expr& e : postorder(std::span(&root, 1))) {
    Dual r;
    if (e.is_number()) {
      r = {e.value(), 0};
    } else if (e.is_symbol(SymbolKind::constant)) {
      r = {e.symbol().name == "pi" ? M_PI : M_E, 0};
    } else if (e.is_symbol()) {
      r = {values[slot(e.symbol())], slot(e.symbol()) == along ? 1.0 : 0.0};
    } else {
      std::vector<Dual> a;
      for (size_t i = 0; i < e.size(); ++i) a.push_back(done.at(e.argument(i).node()));
      r = dual_apply(e.op(), a);
    }
    if (!std::isfinite(r.v)) return {std::nan(""), 0};  // outside of the domain
    done.emplace(e.node(), r);
  }
  return done.at(root.node());
}

double at(const Expr& e, const Values& values) {
  return evaluate(e, [&](const Symbol& s) { return values[slot(s)]; });
}

/// Central differences of steps h and h/2, extrapolated; NaN where the two disagree (a kink, or too curved).
double finite_difference(const Expr& e, Values values, size_t along) {
  const double x = values[along];
  const auto slope = [&](double h) {
    values[along] = x + h;
    const double right = at(e, values);
    values[along] = x - h;
    return (right - at(e, values)) / (2 * h);
  };
  const double coarse = slope(2e-3), middle = slope(1e-3), fine = slope(5e-4);
  const double a = (4 * middle - coarse) / 3, b = (4 * fine - middle) / 3;
  return std::abs(a - b) <= 1e-7 * (1 + std::abs(b)) ? b : std::nan("");
}

void agree_on_random_formulas(bool smooth_only, unsigned seed, int wanted) {
  RandomExpr random(seed, smooth_only);
  std::array<int, 64> seen{};
  int by_dual = 0, by_difference = 0;
  for (int k = 0; (by_dual < wanted || by_difference < wanted) && k < 100000; ++k) {
    const Expr e = random.number(4);
    Values values{};
    for (double& v : values) v = random.uniform(0.1, 0.9) * (random.pick(3) == 0 ? -1 : 1);
    const size_t along = random.pick(4);
    const Expr symbol = along < 3 ? random.symbols()[along] : time_symbol();
    if (!depends_on(e, symbol)) continue;
    const double ours = at(differentiate(e, symbol), values);
    const Dual other = dual(e, values, along);
    if (!std::isfinite(ours) || !std::isfinite(other.d) || !std::isfinite(other.v)) continue;
    const double size = 1 + std::abs(ours) + std::abs(other.v);
    if (size > 1e6) continue;
    for (const Expr& n : postorder(std::span(&e, 1))) ++seen[static_cast<size_t>(n.op())];
    const double error = std::abs(ours - other.d);
    EXPECT_LE(error, 1e-9 * size) << print(e) << "\nd/d" << print(symbol) << ": " << print(differentiate(e, symbol));
    ++by_dual;
    const double difference = finite_difference(e, values, along);
    if (!std::isfinite(difference)) continue;
    EXPECT_LE(std::abs(ours - difference), 1e-5 * size) << print(e);
    ++by_difference;
  }
  EXPECT_GE(by_dual, wanted);
  EXPECT_GE(by_difference, wanted);
  for (int op = static_cast<int>(Op::add); op <= static_cast<int>(smooth_only ? Op::log1p : Op::negation); ++op) {
    if (static_cast<Op>(op) == Op::table) continue;  // below
    if (static_cast<Op>(op) == Op::unit || static_cast<Op>(op) == Op::components) continue;
    EXPECT_GE(seen[static_cast<size_t>(op)], 10) << op_name(static_cast<Op>(op)) << " was hardly tested";
  }
}

TEST(Differentiate, FollowsADirectionAwayFromZero) {
  const Expr a = Expr::symbol(SymbolKind::state, 0, "a"), b = Expr::symbol(SymbolKind::state, 1, "b");
  const Expr e = make(Op::unit, std::array{a, b, Expr(1.0)});
  const auto at = [](const Expr& f) { return evaluate(f, [](const Symbol& s) { return s.index == 0 ? 3.0 : 4.0; }); };
  EXPECT_NEAR(at(e), 0.6, 1e-15);
  EXPECT_NEAR(at(differentiate(e, a)), 16.0 / 125, 1e-15);   // b^2/|h|^3
  EXPECT_NEAR(at(differentiate(e, b)), -12.0 / 125, 1e-15);  // -a b/|h|^3
}

TEST(Differentiate, FollowsATable) {
  const auto curve = std::make_shared<const Interpolant>(std::vector<double>{0, 1, 3}, std::vector<double>{1, 2, -1},
                                                         Between::cubic, Outside::hold);
  const Expr x = Expr::symbol(SymbolKind::state, 0, "x");
  const Expr e = x * make(Op::table, pow(x, 2), Expr::table(curve, "road"));
  const auto at = [](const Expr& f, double value) { return evaluate(f, [&](const Symbol&) { return value; }); };
  for (const double v : {0.3, 0.9, 1.2, 1.9}) {
    EXPECT_NEAR(at(differentiate(e, x), v), (at(e, v + 1e-6) - at(e, v - 1e-6)) / 2e-6, 1e-8) << v;
  }
  EXPECT_EQ(print(differentiate(e, x)), "road(x^2) + x*(road'(x^2)*(2*x))");
}

TEST(Differentiate, AgreesWithTwoOtherMethodsOnSmoothFormulas) { agree_on_random_formulas(true, 1, 1000); }
TEST(Differentiate, AgreesWithTwoOtherMethodsOnAllFormulas) { agree_on_random_formulas(false, 2, 1000); }

TEST(Differentiate, GivesTheFormulasOfTheTextbook) {
  const Expr x = Expr::symbol(SymbolKind::state, 0, "x"), y = Expr::symbol(SymbolKind::state, 1, "y");
  const auto d = [&](const std::string& text) { return print(differentiate(parsed(text), x)); };
  EXPECT_EQ(d("x^2"), "2*x");
  EXPECT_EQ(d("x^3"), "3*x^2");
  EXPECT_EQ(d("sin(2*x)"), "cos(2*x)*2");
  EXPECT_EQ(d("exp(x)"), "exp(x)");
  EXPECT_EQ(d("y"), "0");
  EXPECT_EQ(d("x*y"), "y");
  EXPECT_EQ(d("sign(x)*x"), "sign(x)");
  EXPECT_EQ(d("abs(x)"), "sign(x)");
}

TEST(Differentiate, ASwitchIsAConstantOfTheStates) {
  const Expr x = Expr::symbol(SymbolKind::state, 0, "x"), s = Expr::symbol(SymbolKind::sigma, 0, "s");
  EXPECT_EQ(differentiate(s * x, x), s);
  EXPECT_EQ(differentiate(s * x, s), x);
}

TEST(Differentiate, ThePowerRuleHoldsWhereTheLogarithmDoesNotExist) {
  const Expr x = Expr::symbol(SymbolKind::state, 0, "x");
  const Values values{-1.5, 2, 0, 0, 0};
  EXPECT_NEAR(at(differentiate(parsed("x^3"), x), values), 3 * 1.5 * 1.5, 1e-14);
  EXPECT_NEAR(at(differentiate(parsed("x^y"), x), values), 2 * -1.5, 1e-14);
}

TEST(Differentiate, ALogisticFunctionHasSlopesWhereItsExponentialOverflows) {
  const Expr x = Expr::symbol(SymbolKind::state, 0, "x");
  const Expr slope = differentiate(parsed("x*y/(exp(2*x) + 1)"), x);
  for (const double v : {-0.7, 0.3, 2.0}) {
    const double q = 1 / (1 + std::exp(2 * v));
    EXPECT_NEAR(at(slope, Values{v, 3, 0, 0, 0}), 3 * q - 6 * v * q * (1 - q), 1e-14) << v;
  }
  EXPECT_EQ(at(slope, Values{1000, 3, 0, 0, 0}), 0);
  EXPECT_EQ(at(slope, Values{-1000, 3, 0, 0, 0}), 3);
}

TEST(Gradient, ListsNonzeroDerivativesByIndex) {
  const auto g = gradient(parsed("z*2 + sin(x) + 0*y"), SymbolKind::state);
  ASSERT_EQ(g.size(), 2u);
  EXPECT_EQ(g[0].symbol.symbol().name, "x");
  EXPECT_EQ(print(g[0].value), "cos(x)");
  EXPECT_EQ(g[1].symbol.symbol().name, "z");
  EXPECT_EQ(print(g[1].value), "2");
}

// A symbol at a time through a sum of n terms would be n^2 steps: this would take minutes.
TEST(Gradients, OfLongSumsTakeEachTermOnce) {
  constexpr int n = 20'000;
  const Expr x = Expr::symbol(SymbolKind::state, 0, "x");
  Expr sum = 0.0;
  for (int i = 0; i < n; ++i) {
    const Expr s = Expr::symbol(SymbolKind::sigma, i, "s");
    sum = i % 3 == 0 ? sum - s * x : i % 3 == 1 ? sum + Expr(i) * s : sum + make(Op::sin, s);
  }
  sum = -(x - sum / 2.0) * x;
  const auto g = gradient(sum, SymbolKind::sigma);
  ASSERT_EQ(g.size(), n);
  const double at = 1.5, angle = 0.25;
  for (int i = 0; i < n; ++i) {
    const double term = i % 3 == 0 ? -at : i % 3 == 1 ? i : std::cos(angle);
    const auto value = [&](const Symbol& s) { return s.kind == SymbolKind::state ? at : angle; };
    ASSERT_NEAR(evaluate(g[static_cast<size_t>(i)].value, value), term / 2 * at, 1e-12 * (1 + i)) << i;
  }
}

TEST(Gradients, OfFormulasThatContainEachOtherAreThoseOfEachAlone) {
  // A chain of kinks: h(k+1) = s(k)*h(k) - 1, whose derivatives by s(j) are products of the later switches and h(j).
  Gradients all;
  Expr h = Expr::symbol(SymbolKind::state, 0, "x");
  for (int k = 0; k < 200; ++k) {
    h = Expr::symbol(SymbolKind::sigma, k, "s" + std::to_string(k)) * h - Expr(1);
    const auto shared = all(h, SymbolKind::sigma);
    ASSERT_EQ(shared.size(), static_cast<size_t>(k + 1));
    if (k % 20 != 0) continue;
    const auto alone = gradient(h, SymbolKind::sigma);
    for (size_t j = 0; j < shared.size(); ++j) EXPECT_EQ(shared[j].value, alone[j].value) << k << ' ' << j;
  }
  EXPECT_TRUE(all(h, SymbolKind::lambda).empty());
  EXPECT_EQ(all(h, SymbolKind::state).size(), 1u);
}

TEST(ContainsKind, SeesSymbolsAtAnyDepth) {
  const Expr x = Expr::symbol(SymbolKind::state, 0, "x"), s = Expr::symbol(SymbolKind::sigma, 0, "s");
  const Expr e = make(Op::sin, make(Op::exp, s * Expr(2)) + time_symbol());
  EXPECT_TRUE(contains_kind(e, SymbolKind::sigma));
  EXPECT_TRUE(contains_kind(e, SymbolKind::time));
  EXPECT_FALSE(contains_kind(e, SymbolKind::state));
  EXPECT_FALSE(contains_kind(e * Expr(0), SymbolKind::sigma));
  EXPECT_TRUE(contains_kind(e + x, SymbolKind::state));
}

}  // namespace
}  // namespace saltus
