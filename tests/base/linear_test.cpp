#include "base/linear.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace saltus {
namespace {

Mat matrix(int rows, int columns, const std::vector<double>& by_rows) {
  Mat A(rows, columns);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) A(i, j) = by_rows[static_cast<size_t>(i * columns + j)];
  return A;
}

const Mat regular = matrix(3, 3, {0, 2, 1, 4, 1, -1, 2, 3, 5});
const Mat rank_two = matrix(3, 3, {1, 2, 3, 4, 5, 6, 5, 7, 9});  // the last row is the sum of the others

TEST(Lu, SolvesARegularSystemInEveryForm) {
  const Lu lu(regular);
  const Vec b = Vec{{1, 2, 3}};
  EXPECT_LT((regular * lu.solve(b) - b).norm(), 1e-14);
  Vec x = b;
  lu.solve_in_place(x);
  EXPECT_EQ(x, lu.solve(b));
  EXPECT_LT((regular * lu.solve_columns(Mat::Identity(3, 3)) - Mat::Identity(3, 3)).norm(), 1e-14);
  EXPECT_LT((regular * lu.inverse() - Mat::Identity(3, 3)).norm(), 1e-14);
  EXPECT_NEAR(lu.determinant(), -34, 1e-12);
  EXPECT_NEAR(std::abs(lu.pivots().prod()), 34, 1e-12);
  EXPECT_GT(lu.rcond(), 0.01);
}

TEST(Lu, SolvesForNoColumnsAtAll) {
  const Mat none = Lu(regular).solve_columns(Mat(3, 0));
  EXPECT_EQ(none.rows(), 3);
  EXPECT_EQ(none.cols(), 0);
}

TEST(Lu, TellsASingularMatrixByItsCondition) { EXPECT_LT(Lu(rank_two).rcond(), 1e-14); }

TEST(Lu, TellsAZeroPivotByItsCondition) {  // a loop of friction: the last row is the third less the second
  Mat loop(4, 4);
  loop << -1.5, -3, -6, 0, -1, -4, -6, 1.0 / 3, -1, -3, -8, -1.0 / 3, 0, 1, -2, -2.0 / 3;
  for (int i = 0; i < 4; ++i) loop.row(i) /= loop.row(i).cwiseAbs().maxCoeff();
  EXPECT_LT(Lu(loop).rcond(), 1e-14);
  EXPECT_EQ(Lu(Mat::Zero(3, 3)).rcond(), 0);
}

TEST(Lu, IsAValueThatCanBeCopiedAndFactoredAgain) {
  Lu lu(regular);
  const Lu copy = lu;
  lu.factor(2 * regular);
  const Vec b = Vec{{1, 2, 3}};
  EXPECT_LT((copy.solve(b) - 2 * lu.solve(b)).norm(), 1e-14);
}

TEST(FullLu, NamesRowsAndColumnsThatCarryTheRank) {
  const FullLu lu(rank_two, 1e-12);
  ASSERT_EQ(lu.rank(), 2);
  std::vector<int> rows = lu.rows(), columns = lu.columns();
  rows.resize(2), columns.resize(2);
  EXPECT_GT(std::abs(Lu(rank_two(rows, columns)).determinant()), 1);
  // the first pivot is the largest entry, 9
  EXPECT_EQ(rows[0], 2);
  EXPECT_EQ(columns[0], 2);
  const Vec b = rank_two * Vec{{1, -1, 2}};
  EXPECT_LT((rank_two * lu.solve(b) - b).norm(), 1e-13);
}

TEST(Orthogonal, GivesTheShortestSolutionOfASingularSystem) {
  const Orthogonal factors(rank_two, 1e-12);
  EXPECT_EQ(factors.rank(), 2);
  const Vec b = rank_two * Vec{{1, -1, 2}}, x = factors.solve(b);
  EXPECT_LT((rank_two * x - b).norm(), 1e-13);
  EXPECT_LT((null_space(rank_two, 1e-12).transpose() * x).norm(), 1e-14);
  EXPECT_LT((factors.pseudo_inverse() * b - x).norm(), 1e-13);
}

TEST(NullSpace, IsOrthonormalAndMapsToZero) {
  const Mat N = null_space(rank_two, 1e-12);
  ASSERT_EQ(N.cols(), 1);
  EXPECT_NEAR(N.norm(), 1, 1e-14);
  EXPECT_LT((rank_two * N).norm(), 1e-13);
  EXPECT_EQ(null_space(regular).cols(), 0);
}

TEST(Qr, MakesColumnsOrthonormalAndLeavesATriangle) {
  const Mat A = matrix(4, 2, {1, 2, 3, 4, 5, 6, 7, 9});
  const Qr factors = qr(A);
  EXPECT_LT((factors.Q.transpose() * factors.Q - Mat::Identity(2, 2)).norm(), 1e-14);
  EXPECT_LT((factors.Q * factors.R - A).norm(), 1e-13);
  EXPECT_EQ(factors.R(1, 0), 0);
}

TEST(Eigenvalues, OfARotationAreComplex) {
  ComplexVec values = eigenvalues(matrix(2, 2, {0, -3, 3, 0}));
  ASSERT_EQ(values.size(), 2);
  EXPECT_NEAR(values[0].real(), 0, 1e-14);
  EXPECT_NEAR(std::abs(values[0].imag()), 3, 1e-14);
  EXPECT_NEAR(values[0].imag() + values[1].imag(), 0, 1e-14);
}

TEST(SparseLu, SolvesAnotherMatrixWithTheSameAnalysis) {
  SparseMat A = regular.sparseView();
  A.makeCompressed();
  SparseLu lu;
  lu.analyse(A);
  const Vec b = Vec{{1, 2, 3}};
  ASSERT_TRUE(lu.factor(A));
  EXPECT_LT((regular * lu.solve(b) - b).norm(), 1e-14);
  ASSERT_TRUE(lu.factor(2 * A));
  EXPECT_LT((2 * regular * lu.solve(b) - b).norm(), 1e-14);
}

}  // namespace
}  // namespace saltus
