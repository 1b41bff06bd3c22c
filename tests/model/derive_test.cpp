#include "model/derive.hpp"

#include <gtest/gtest.h>

#include "expr/print.hpp"
#include "model/model_builder.hpp"
#include "model/read.hpp"
#include "model_files.hpp"

namespace saltus {
namespace {

using saltus::testing::random_values;
using saltus::testing::Values;

double& slot(Values& v, const Symbol& s) {
  const size_t i = static_cast<size_t>(s.index);
  switch (s.kind) {
    case SymbolKind::state: return v.x[i];
    case SymbolKind::parameter: return v.p[i];
    case SymbolKind::sigma: return v.sigma[i];
    case SymbolKind::lambda: return v.lambda[i];
    default: return v.t;
  }
}

double difference(const Expr& e, Values v, const Symbol& s) {
  const double x = slot(v, s), h = 1e-4 * (x == 0 ? 1 : std::abs(x));
  const auto at = [&](double value) {
    slot(v, s) = value;
    return evaluate(e, v);
  };
  return (8 * (at(x + h) - at(x - h)) - (at(x + 2 * h) - at(x - 2 * h))) / (12 * h);
}

TEST(Derive, LieDerivativesOfThePendulumAreItsAccelerations) {
  const Model m = ModelBuilder("m").equations("q' = v\nv' = -sin(q)").initial("q", 0).initial("v", 0).build();
  const Expr q = state_symbol(m, 0);
  EXPECT_EQ(print(lie_derivative(q, m.form)), "v");
  EXPECT_EQ(print(lie_derivative(lie_derivative(q, m.form), m.form)), "-sin(q)");
  EXPECT_EQ(print(lie_derivative(time_symbol(), m.form)), "1");
}

TEST(Derive, KnowsEveryDerivativeOfAMovingSurface) {
  const Model m = ModelBuilder("m").equations("x' = -sign(x - A*sin(t))").parameter("A", 2).initial("x", 0).build();
  const FunctionDerivatives d = derive(m.form.switches[0].surface, m.form);
  ASSERT_EQ(d.by_state.size(), 1u);
  EXPECT_EQ(print(d.by_state[0].value), "1");
  EXPECT_EQ(print(d.by_time), "-(A*cos(t))");
  ASSERT_EQ(d.by_parameter.size(), 1u);
  EXPECT_EQ(print(d.by_parameter[0].value), "-sin(t)");
  EXPECT_EQ(d.rate, lie_derivative(m.form.switches[0].surface, m.form));
}

TEST(Derive, JacobiansAgreeWithFiniteDifferencesOnEveryModel) {
  std::mt19937 random(4);
  size_t compared = 0;
  for (const std::string& path : saltus::testing::all_models()) {
    const Model m = read_model(path);
    for (const SymbolKind kind : {SymbolKind::state, SymbolKind::parameter, SymbolKind::sigma, SymbolKind::lambda}) {
      const auto rows = jacobian(m.form, kind);
      ASSERT_EQ(rows.size(), m.states.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        for (size_t k = 1; k < rows[i].size(); ++k) {
          EXPECT_LT(rows[i][k - 1].symbol.symbol().index, rows[i][k].symbol.symbol().index);
        }
        const auto listed = gradient(m.form.f[i], kind);
        ASSERT_EQ(listed.size(), rows[i].size());
        for (const Partial& d : rows[i]) {
          const Values v = random_values(m, random);
          const double exact = evaluate(d.value, v), other = difference(m.form.f[i], v, d.symbol.symbol());
          const double size = std::abs(evaluate(m.form.f[i], v)) + std::abs(exact) + 1;
          if (!std::isfinite(exact) || !std::isfinite(other) || size > 1e9) continue;
          EXPECT_NEAR(exact, other, 1e-6 * size) << path << " " << print(m.form.f[i]) << " by " << print(d.symbol);
          ++compared;
        }
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 1000u);
}

TEST(Derive, LieDerivativesAgreeWithDifferencesAlongTheFlow) {
  std::mt19937 random(5);
  size_t compared = 0;
  for (const std::string& path : saltus::testing::all_models()) {
    const Model m = read_model(path);
    std::vector<Expr> functions;
    for (const Switch& s : m.form.switches) functions.push_back(s.surface);
    for (const Gap& g : m.form.gaps) functions.push_back(g.gap);
    for (const Expr& y : functions) {
      const Values v = random_values(m, random);
      std::vector<double> f;
      for (const Expr& r : m.form.f) f.push_back(evaluate(r, v));
      const double speed =
          *std::max_element(f.begin(), f.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
      const auto along = [&](double h) {
        Values w = v;
        for (size_t i = 0; i < f.size(); ++i) w.x[i] += h * f[i];
        w.t += h;
        return evaluate(y, w);
      };
      const double h = 1e-5 / (1 + std::abs(speed)), exact = evaluate(lie_derivative(y, m.form), v);
      const double other = (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h);
      if (!std::isfinite(exact) || !std::isfinite(other)) continue;
      EXPECT_NEAR(exact, other, 1e-5 * (1 + std::abs(speed)) * (1 + std::abs(evaluate(y, v))))
          << path << " " << print(y);
      ++compared;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 150u);
}

TEST(Derive, WhatRatesShareIsDifferentiatedOnce) {
  std::string text = "mean = (x0";
  const int n = 200;
  for (int i = 1; i < n; ++i) text += " + x" + std::to_string(i);
  text += ")/" + std::to_string(n) + "\n";
  ModelBuilder builder("mean field");
  for (int i = 0; i < n; ++i) {
    const std::string x = "x" + std::to_string(i);
    text += x + "' = sin(mean - " + x + ")\n";
    builder.initial(x, i);
  }
  const Model m = builder.equations(text).build();
  const auto rows = jacobian(m.form, SymbolKind::state);
  EXPECT_EQ(rows[7].size(), static_cast<size_t>(n));
}

}  // namespace
}  // namespace saltus
