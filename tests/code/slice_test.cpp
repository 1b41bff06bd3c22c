// Slices of tapes: the same values and series as the whole, and equal slices for equal parts.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "code/jet.hpp"
#include "code/slice.hpp"

namespace saltus {
namespace {

Expr node(int i) { return Expr::symbol(SymbolKind::state, i, "x" + std::to_string(i)); }

/// Rates of a ring of n states, each read by its neighbours through functions of several slots.
std::vector<Expr> ring(int n) {
  const Expr t = Expr::symbol(SymbolKind::time, 0, "t"), p = Expr::symbol(SymbolKind::parameter, 0, "p");
  std::vector<Expr> out;
  for (int i = 0; i < n; ++i) {
    const Expr a = node((i + n - 1) % n), b = node(i), c = node((i + 1) % n);
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
  std::vector<int> slots;
  const std::vector<int> outputs{2, -1};
  slicer.write(outputs, inputs_of(support), part, slots);
  std::vector<double> constants;
  for (const int slot : slots) constants.push_back(slicer.value(slot));
  EXPECT_LT(part.free.size(), whole.free.size() / 3);
  Jet<double> small(part, order);
  small.bind(constants);
  const std::vector<double> own{x[1], x[2], x[3]};
  small.load({.states = own, .t = 0.3}, order);
  for (int k = 0; k <= order; ++k) small.free(k);
  for (int k = 0; k <= order; ++k) EXPECT_EQ(small.output(0)[k], jet.output(2)[k]) << k;
  EXPECT_EQ(small.output(1)[0], 0);
}

TEST(Slice, OfEqualPartsAreSpeltAlike) {
  const int n = 8;
  const Tape whole = build_tape(ring(n), {n, 0, 0, 0});
  const std::vector<double> parameters{0.7};
  Slicer slicer(whole, parameters);
  struct Spelling {
    std::vector<int> words, states;
    std::vector<double> constants;
  };
  const auto spell = [&](size_t i) {
    TapeSupport support;
    slicer.gather(i, support);
    Spelling out;
    std::vector<TapeLeaf> leaves;
    slicer.spell(std::vector<size_t>{i}, out.words, leaves);
    for (const TapeLeaf& leaf : leaves) {
      if (leaf.kind == TapeLeaf::Kind::state) out.states.push_back(leaf.index);
      if (leaf.kind == TapeLeaf::Kind::constant) out.constants.push_back(slicer.value(leaf.index));
    }
    return out;
  };
  const Spelling third = spell(3), fifth = spell(5);
  EXPECT_EQ(third.words, fifth.words);
  ASSERT_EQ(third.states.size(), 3u);
  for (size_t k = 0; k < 3; ++k) EXPECT_EQ(third.states[k] + 2, fifth.states[k]);
  EXPECT_NE(third.constants, fifth.constants);  // their numbers differ
  std::vector<Expr> other = ring(n);
  other[5] = other[5] + make(Op::sin, node(5));
  const Tape changed = build_tape(other, {n, 0, 0, 0});
  Slicer second(changed, parameters);
  TapeSupport support;
  second.gather(5, support);
  std::vector<int> words;
  std::vector<TapeLeaf> leaves;
  second.spell(std::vector<size_t>{5}, words, leaves);
  EXPECT_NE(words, fifth.words);
}

}  // namespace
}  // namespace saltus
