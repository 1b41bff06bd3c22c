#include "solve/band_factor.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "random.hpp"

namespace saltus {
namespace {

SparseMat random_band(Random& random, int n, int lower, int upper, double diagonal, int empty_row = -1) {
  std::vector<SparseEntry> entries;
  for (int i = 0; i < n; ++i) {
    if (i == empty_row) continue;
    for (int j = std::max(0, i - lower); j <= std::min(n - 1, i + upper); ++j)
      if (i == j || random.uniform(0, 1) < 0.7) entries.push_back({i, j, random.normal() + (i == j ? diagonal : 0)});
  }
  return SparseMat(n, n, entries);
}

std::vector<char> random_choice(Random& random, int n) {
  std::vector<char> free(at(n));
  for (char& f : free) f = random.uniform(0, 1) < 0.6;
  return free;
}

/// Rows and columns that are not free as those of the identity.
Mat chosen(const SparseMat& M, const std::vector<char>& free) {
  Mat A = M;
  for (int i = 0; i < A.rows(); ++i) {
    for (int j = 0; j < A.cols(); ++j)
      if (!free[at(i)] || !free[at(j)]) A(i, j) = i == j;
  }
  return A;
}

TEST(BandFactor, SolvesWithAnyFreeUnknowns) {
  Random random(1);
  for (int trial = 0; trial < 60; ++trial) {
    const int n = 1 + trial, lower = trial % 7, upper = (trial / 7) % 8;
    const SparseMat M = random_band(random, n, lower, upper, 4);
    BandFactor factor;
    ASSERT_TRUE(factor.take(M, 16));
    for (int choice = 0; choice < 3; ++choice) {
      const std::vector<char> free = random_choice(random, n);
      if (!factor.factor(free)) continue;
      const Vec b = random.normals(n);
      Vec x = b;
      factor.solve_in_place(x);
      EXPECT_LT((chosen(M, free) * x - b).max_abs(), 1e-11 * (1 + x.max_abs()));
      Vec residual, size;
      factor.products(b, x, residual, size);
      EXPECT_LT((residual - (b - M * x)).max_abs(), 1e-13 * size.max_abs());
      EXPECT_LT((size - (b.cwiseAbs() + Mat(M).cwiseAbs() * x.cwiseAbs())).max_abs(), 1e-13 * size.max_abs());
    }
  }
}

TEST(BandFactor, EliminatesNearChangesOnlyAndToTheSameBits) {
  Random random(2);
  const int n = 4000;
  const SparseMat M = random_band(random, n, 4, 3, 60);
  BandFactor kept;
  ASSERT_TRUE(kept.take(M, 16));
  std::vector<char> free = random_choice(random, n);
  ASSERT_TRUE(kept.factor(free));
  EXPECT_EQ(kept.eliminated(), n);
  const Vec b = random.normals(n);
  for (int trial = 0; trial < 50; ++trial) {
    for (int k = 0; k < trial % 4; ++k) free[at(static_cast<int>(random.uniform(0, n)))] ^= 1;
    const long before = kept.eliminated();
    ASSERT_TRUE(kept.factor(free));
    EXPECT_LE(kept.eliminated() - before, 160 * (trial % 4));
    BandFactor fresh;
    ASSERT_TRUE(fresh.take(M, 16));
    ASSERT_TRUE(fresh.factor(free));
    EXPECT_EQ(kept.largest(), fresh.largest());
    Vec x = b, y = b;
    kept.solve_in_place(x);
    fresh.solve_in_place(y);
    EXPECT_EQ(x, y) << trial;
  }
}

TEST(BandFactor, TellsWideAndSingularMatrices) {
  Random random(3);
  BandFactor factor;
  EXPECT_FALSE(factor.take(random_band(random, 50, 3, 5, 4), 4));
  ASSERT_TRUE(factor.take(random_band(random, 50, 2, 2, 9, 20), 16));
  std::vector<char> free(50, 1);
  EXPECT_FALSE(factor.factor(free));
  EXPECT_TRUE(factor.factor(free, 1e-3));
  free[20] = 0;
  EXPECT_TRUE(factor.factor(free));
  free[20] = 1;
  EXPECT_FALSE(factor.factor(free));
}

}  // namespace
}  // namespace saltus
