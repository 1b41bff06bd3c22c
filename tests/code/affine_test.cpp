// Outputs of a tape as weighted sums: the values that the formulas have, and none where they are no sums.
#include "code/affine.hpp"

#include <string>

#include <gtest/gtest.h>

#include "code/slice.hpp"
#include "formulas.hpp"

namespace saltus {
namespace {

TEST(AffineRows, AreTheWeightsOfInputs) {
  const Expr t = Expr::symbol(SymbolKind::time, 0, "t"), p = Expr::symbol(SymbolKind::parameter, 0, "p");
  const Expr sigma = Expr::symbol(SymbolKind::sigma, 0, "s"), a = state(0), b = state(1);
  const std::vector<Expr> formulas{p * (Expr(3.0) * t - a) - (b - a) / Expr(4.0) + Expr(2.0) * sigma + Expr(7.0), a * b,
                                   make(Op::sin, t) + a, b, a - a + Expr(5.0)};
  const Tape tape = build_tape(formulas, {.states = 2, .sigmas = 1});
  const std::vector<double> parameters{0.5};
  const Slicer slicer(tape, parameters);
  const AffineRows rows(tape, slicer.values(), std::vector<size_t>{0, 1, 2, 3, 4});

  double weight[3] = {0, 0, 0};
  for (const AffineRows::Term& term : rows[0].terms) weight[term.from] += term.weight;
  EXPECT_TRUE(rows[0].affine);
  EXPECT_DOUBLE_EQ(weight[0], -0.25);
  EXPECT_DOUBLE_EQ(weight[1], -0.25);
  EXPECT_DOUBLE_EQ(weight[2], 2);
  EXPECT_DOUBLE_EQ(rows[0].time, 1.5);
  EXPECT_DOUBLE_EQ(rows[0].constant, 7);

  EXPECT_FALSE(rows[1].affine);
  EXPECT_FALSE(rows[2].affine);
  ASSERT_TRUE(rows[3].affine);
  ASSERT_EQ(rows[3].terms.size(), 1u);
  EXPECT_EQ(rows[3].terms[0].from, 1);
  EXPECT_EQ(rows[3].terms[0].weight, 1);
  EXPECT_TRUE(rows[4].affine);
  EXPECT_TRUE(rows[4].terms.empty());
  EXPECT_EQ(rows[4].constant, 5);
}

}  // namespace
}  // namespace saltus
