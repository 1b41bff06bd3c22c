// Slices of tapes: the same values and series as the whole, and equal slices for equal parts.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "code/jet.hpp"
#include "code/slice.hpp"

namespace saltus {
namespace {

Expr state(int i) { return Expr::symbol(SymbolKind::state, i, "x" + std::to_string(i)); }

/// Rates of a ring of n states, each read by its neighbours through functions of several slots.
std::vector<Expr> ring(int n) {
  const Expr t = Expr::symbol(SymbolKind::time, 0, "t"), p = Expr::symbol(SymbolKind::parameter, 0, "p");
  std::vector<Expr> out;
  for (int i = 0; i < n; ++i) {
    const Expr a = state((i + n - 1) % n), b = state(i), c = state((i + 1) % n);
    out.push_back(make(Op::cos, a * b) * p + make(Op::exp, c - b) * Expr(0.5 + i) + make(Op::sin, t * p) -
                  make(Op::sqrt, b * b + Expr(1.0)));
  }
  return out;
}

SliceInputs inputs_of(const TapeSupport& support) {
  SliceInputs inputs;
  inputs.states = support.states;
  return inputs;
}

TEST(Slice, HasTheSeriesOfTheWhole) {
  const int n = 6, order = 9;
  const Tape whole = build_tape(ring(n), {n, 0, 0, 0});
  const std::vector<double> parameters{1.3}, x{0.1, -0.4, 0.7, 0.2, -0.9, 0.5};
  Jet<double> jet(whole, order);
  jet.bind(parameters);
  jet.load({.states = x, .t = 0.3}, order);
  for (int k = 0; k <= order; ++k) jet.free(k);  // states that stand still

  Slicer slicer(whole, parameters);
  TapeSupport support;
  slicer.gather(2, support);
  std::sort(support.states.begin(), support.states.end());
  EXPECT_EQ(support.states, (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(support.time);
  Tape part;
  std::vector<double> constants;
  const std::vector<int> outputs{2, -1};
  slicer.write(outputs, inputs_of(support), part, constants);
  EXPECT_LT(part.free.size(), whole.free.size() / 3);
  Jet<double> small(part, order);
  small.bind(constants);
  const std::vector<double> own{x[1], x[2], x[3]};
  small.load({.states = own, .t = 0.3}, order);
  for (int k = 0; k <= order; ++k) small.free(k);
  for (int k = 0; k <= order; ++k) EXPECT_EQ(small.output(0)[k], jet.output(2)[k]) << k;
  EXPECT_EQ(small.output(1)[0], 0);
}

TEST(Slice, OfEqualPartsAreEqual) {
  const int n = 8;
  const Tape whole = build_tape(ring(n), {n, 0, 0, 0});
  const std::vector<double> parameters{0.7};
  Slicer slicer(whole, parameters);
  const auto cut = [&](int i, std::vector<double>& constants) {
    TapeSupport support;
    slicer.gather(static_cast<size_t>(i), support);
    std::sort(support.states.begin(), support.states.end());
    Tape part;
    slicer.write(std::vector<int>{i}, inputs_of(support), part, constants);
    return part;
  };
  std::vector<double> a, b, c;
  const Tape third = cut(3, a), fifth = cut(5, b), first = cut(0, c);
  EXPECT_TRUE(same_tape(third, fifth));
  EXPECT_EQ(tape_key(third), tape_key(fifth));
  EXPECT_NE(a, b);                        // their numbers differ
  EXPECT_FALSE(same_tape(third, first));  // the neighbours of the first are not in order
}

}  // namespace
}  // namespace saltus
