#include "base/sparse.hpp"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "../matrices.hpp"

namespace saltus {
namespace {

/// Whole numbers, most of them zero.
Mat mostly_zero(Index rows, Index columns, unsigned seed) {
  std::mt19937 engine(seed);
  return made(rows, columns, [&] { return engine() % 3 > 0 ? 0.0 : static_cast<double>(engine() % 9) - 4; });
}

TEST(Sparse, EntriesComeInAnyOrderAndAreAddedAtOnePlace) {
  const std::vector<SparseEntry> entries = {{2, 1, 5}, {0, 0, 1}, {2, 1, -2}, {1, 1, 4}, {0, 2, 7}, {2, 1, 0.5}};
  const SparseMat a(3, 3, entries);
  EXPECT_EQ(Mat(a), (Mat(3, 3) << 1, 0, 7, 0, 4, 0, 0, 3.5, 0).finished());
  EXPECT_EQ(a.starts(), (std::vector<int>{0, 1, 3, 4}));
  EXPECT_EQ(a.places(), (std::vector<int>{0, 1, 2, 0}));
  EXPECT_EQ(a.nonZeros(), 4);
}

TEST(Sparse, ArithmeticIsThatOfDenseMatrices) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Mat a = mostly_zero(6, 5, seed), b = mostly_zero(6, 5, seed + 100), c = mostly_zero(5, 7, seed + 200);
    const SparseMat A(a), B(b), C(c);
    EXPECT_EQ(Mat(A), a);
    EXPECT_EQ(Mat(A + B), a + b);
    EXPECT_EQ(Mat(A - B), a - b);
    EXPECT_EQ(Mat(-2 * A), -2 * a);
    EXPECT_EQ(Mat(A * C), a * c);
    EXPECT_EQ(Mat(A.transpose()), a.transpose());
    EXPECT_EQ(Mat(A.cwiseAbs()), a.cwiseAbs());
    EXPECT_EQ(A * c.col(0), a * c.col(0));
    EXPECT_EQ(A.diagonal(), a.diagonal());
    EXPECT_EQ(A.max_abs(), a.max_abs());
    EXPECT_EQ(Mat(b.col(0).asDiagonal() * A), b.col(0).asDiagonal() * a);
    const std::vector<int> kept = {1, 3, 4}, place = {-1, 0, -1, 1, 2, -1};
    EXPECT_EQ(Mat(A.part(kept, place)), a.part(kept));
    EXPECT_EQ(A.transpose().transpose(), A);
  }
  EXPECT_EQ(Mat(SparseMat::Identity(3)), Mat::Identity(3, 3));
}

}  // namespace
}  // namespace saltus
