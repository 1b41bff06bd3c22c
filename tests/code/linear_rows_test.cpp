// Rows of weights against the operations they are made of.
#include <cmath>
#include <numeric>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "code/jet.hpp"
#include "formulas.hpp"

namespace saltus {
namespace {

/// Rates that are sums of neighbours, of time and of numbers, with a wave where that is wanted, and one function more.
std::vector<Expr> chain(int n, bool wave) {
  const Expr t = Expr::symbol(SymbolKind::time, 0, "t"), p = Expr::symbol(SymbolKind::parameter, 0, "p");
  std::vector<Expr> out;
  for (int i = 0; i < n; ++i) {
    const Expr left = state((i + n - 1) % n), own = state(i), right = state((i + 1) % n);
    Expr rate = p * (left - own) - (own - right) / Expr(0.7 + 0.1 * i) + Expr(0.3) * t - Expr(1.5);
    if (wave) rate = rate + make(Op::sin, Expr(2.0) * t) * Expr(0.4);
    out.push_back(rate);
  }
  out.push_back(Expr(2.0) - (state(0) + state(2) * p));
  return out;
}

struct Expansion {
  std::vector<double> series;
  bool folded = false;
};

Expansion expand(const Tape& tape, double p, int first_order, int order, bool fold) {
  Jet<double> jet(tape, order);
  const std::vector<double> parameters{p};
  jet.bind(parameters);
  std::vector<size_t> outputs(tape.outputs.size());
  std::iota(outputs.begin(), outputs.end(), size_t{0});
  Schedule schedule = jet.schedule(outputs, {});
  jet.enter(schedule);
  if (fold) jet.fold(schedule);
  std::vector<double> x;
  std::mt19937 draw(7);
  for (size_t i = 0; i < tape.states.size(); ++i) x.push_back(static_cast<double>(draw()) / 0x1p31 - 1);
  jet.load({.states = x, .t = 0.4}, order);
  jet.expand(schedule, first_order);
  jet.expand(schedule, order, first_order + 1);
  Expansion out{.folded = !schedule.rows.empty()};
  for (const int slot : tape.states) out.series.insert(out.series.end(), jet[slot], jet[slot] + order + 1);
  for (const int slot : tape.outputs) out.series.insert(out.series.end(), jet[slot], jet[slot] + order + 1);
  return out;
}

TEST(LinearRows, GiveTheSeriesOfTheOperations) {
  const int n = 7, order = 14;
  for (const bool wave : {false, true}) {
    const Tape tape = build_tape(chain(n, wave), {n, 0, 0, 0});
    const Expansion plain = expand(tape, 1.3, 5, order, false), rows = expand(tape, 1.3, 5, order, true);
    ASSERT_TRUE(rows.folded);
    ASSERT_EQ(rows.series.size(), plain.series.size());
    for (size_t k = 0; k < plain.series.size(); ++k)
      EXPECT_NEAR(rows.series[k], plain.series[k], 1e-14 * std::max(1.0, std::abs(plain.series[k]))) << k;
  }
}

TEST(LinearRows, AreNotMadeOfProducts) {
  std::vector<Expr> rates = chain(5, false);
  rates[2] = rates[2] + state(1) * state(2);
  const Tape tape = build_tape(rates, {5, 0, 0, 0});
  EXPECT_FALSE(expand(tape, 1.3, 3, 9, true).folded);
}

// Everybody feels the sum of all: as rows that would be n^2 terms.
TEST(LinearRows, AreNotMadeWhereTheyAreLonger) {
  const int n = 40;
  Expr all = state(0);
  for (int i = 1; i < n; ++i) all = all + state(i);
  std::vector<Expr> rates;
  for (int i = 0; i < n; ++i) rates.push_back(all - state(i) * Expr(2.0 + i));
  const Tape tape = build_tape(rates, {n, 0, 0, 0});
  EXPECT_FALSE(expand(tape, 1.3, 3, 9, true).folded);
}

}  // namespace
}  // namespace saltus
