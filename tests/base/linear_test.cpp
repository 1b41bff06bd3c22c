#include "../matrices.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <random>
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

/// Entries between -1 and 1 without a pattern.
Mat scattered(int rows, int columns, int seed) {
  std::mt19937 engine(static_cast<unsigned>(seed));
  return made(rows, columns, [&] { return 2.0 * engine() / 4294967295.0 - 1; });
}

TEST(Lu, SolvesARegularSystemInEveryForm) {
  const Lu lu(regular);
  const Vec b = Vec{1, 2, 3};
  EXPECT_LT((regular * lu.solve(b) - b).norm(), 1e-14);
  Vec x = b;
  lu.solve_in_place(x);
  EXPECT_EQ(x, lu.solve(b));
  EXPECT_LT((regular * lu.solve_columns(Mat::Identity(3, 3)) - Mat::Identity(3, 3)).norm(), 1e-14);
  EXPECT_LT((regular * lu.inverse() - Mat::Identity(3, 3)).norm(), 1e-14);
  EXPECT_NEAR(lu.determinant(), -34, 1e-12);
  const Vec pivots = lu.pivots();
  EXPECT_NEAR(std::abs(pivots[0] * pivots[1] * pivots[2]), 34, 1e-12);
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
  for (int i = 0; i < 4; ++i) loop.row(i) /= loop.row(i).max_abs();
  EXPECT_LT(Lu(loop).rcond(), 1e-14);
  EXPECT_EQ(Lu(Mat::Zero(3, 3)).rcond(), 0);
}

TEST(Lu, IsAValueThatCanBeCopiedAndFactoredAgain) {
  Lu lu(regular);
  const Lu copy = lu;
  lu.factor(2 * regular);
  const Vec b = Vec{1, 2, 3};
  EXPECT_LT((copy.solve(b) - 2 * lu.solve(b)).norm(), 1e-14);
}

TEST(Lu, SolvesLargeSystemsInPanels) {
  for (const int n : {1, 5, 31, 32, 33, 100}) {
    const Mat A = scattered(n, n, n);
    const Lu lu(A);
    const Vec x = scattered(n, 1, 7);
    EXPECT_LT((lu.solve(A * x) - x).norm(), 1e-13 / lu.rcond()) << n;
    EXPECT_LT((A * lu.inverse() - Mat::Identity(n, n)).norm(), 1e-13 / lu.rcond()) << n;
    EXPECT_LT((lu.solve_columns(A) - Mat::Identity(n, n)).norm(), 1e-13 / lu.rcond()) << n;
  }
}

TEST(Lu, HasTheSignOfItsExchangesInTheDeterminant) {
  EXPECT_EQ(Lu(matrix(3, 3, {0, 1, 0, 0, 0, 1, 1, 0, 0})).determinant(), 1);   // a cycle of three
  EXPECT_EQ(Lu(matrix(3, 3, {0, 1, 0, 1, 0, 0, 0, 0, 1})).determinant(), -1);  // an exchange
  EXPECT_EQ(Lu(Mat(0, 0)).determinant(), 1);
}

TEST(Lu, EstimatesTheConditionOfHilbertsMatrices) {
  // 1/(|H| |H^-1|) in the 1-norm: the inverses are of integers, their column sums known
  const double exact[] = {1.0, 27, 748, 28375, 943656, 29070279, 985194886.5};
  for (int n = 1; n <= 7; ++n) {
    const Mat H = made(n, n, [](Index i, Index j) { return 1.0 / static_cast<double>(i + j + 1); });
    EXPECT_NEAR(Lu(H).rcond() * exact[n - 1], 1, 1e-6) << n;
  }
}

TEST(Orthogonal, GivesTheShortestSolutionOfASingularSystem) {
  const Orthogonal factors(rank_two, 1e-12);
  EXPECT_EQ(factors.rank(), 2);
  const Vec b = rank_two * Vec{1, -1, 2}, x = factors.solve(b);
  EXPECT_LT((rank_two * x - b).norm(), 1e-13);
  EXPECT_LT((null_space(rank_two, 1e-12).transpose() * x).norm(), 1e-14);
  EXPECT_LT((factors.pseudo_inverse() * b - x).norm(), 1e-13);
}

TEST(Orthogonal, HasTheRankOfEntriesWhoseSquaresAreOutOfRange) {
  for (const double size : {1e-300, 1e-200, 1e-160, 1e160, 1e200, 1e300}) {
    const Mat A = size * rank_two;
    const Orthogonal factors(A, 1e-12);
    EXPECT_EQ(factors.rank(), 2) << size;
    const Vec x = Orthogonal(rank_two, 1e-12).solve(Vec{1, -1, 0});
    EXPECT_LT((factors.solve(Vec{size, -size, 0}) - x).norm(), 1e-13) << size;
    EXPECT_EQ(null_space(A, 1e-12).cols(), 1) << size;
    EXPECT_EQ(Orthogonal(size * regular).rank(), 3) << size;
    const Qr both = qr(size * regular);
    EXPECT_LT(((1 / size) * (both.Q * both.R) - regular).norm(), 1e-13) << size;
  }
}

TEST(Orthogonal, GivesThePseudoInverseOfAnyShapeAndRank) {  // the four conditions of Penrose
  struct Shape {
    int rows, columns, rank;
  };
  for (const auto [rows, columns, rank] :
       {Shape{7, 4, 4}, {4, 7, 4}, {7, 4, 2}, {4, 7, 3}, {6, 6, 5}, {3, 3, 0}, {1, 1, 1}}) {
    const Mat A =
        rank > 0 ? Mat(scattered(rows, rank, 3) * scattered(rank, columns, 4)) : Mat(Mat::Zero(rows, columns));
    const Orthogonal factors(A, 1e-12);
    ASSERT_EQ(factors.rank(), rank);
    const Mat X = factors.pseudo_inverse();
    const double tolerance = 1e-13 * (1 + X.norm());
    EXPECT_LT((A * X * A - A).norm(), tolerance);
    EXPECT_LT((X * A * X - X).norm(), tolerance * (1 + X.norm()));
    EXPECT_LT(((A * X).transpose() - A * X).norm(), tolerance);
    EXPECT_LT(((X * A).transpose() - X * A).norm(), tolerance);
  }
}

TEST(Orthogonal, FindsTheLineOfLeastSquares) {  // through (0,1), (1,3), (2,4), (3,4): y = 1.5 + x
  EXPECT_LT((Orthogonal(matrix(4, 2, {1, 0, 1, 1, 1, 2, 1, 3})).solve(Vec{1, 3, 4, 4}) - Vec{1.5, 1}).norm(), 1e-14);
}

TEST(NullSpace, IsOrthonormalAndMapsToZero) {
  const Mat N = null_space(rank_two, 1e-12);
  ASSERT_EQ(N.cols(), 1);
  EXPECT_NEAR(N.norm(), 1, 1e-14);
  EXPECT_LT((rank_two * N).norm(), 1e-13);
  EXPECT_EQ(null_space(regular).cols(), 0);
  EXPECT_EQ(null_space(Mat(0, 3)), Mat::Identity(3, 3));
  const Mat wide = scattered(3, 9, 5), rest = null_space(wide);
  ASSERT_EQ(rest.cols(), 6);
  EXPECT_LT((rest.transpose() * rest - Mat::Identity(6, 6)).norm(), 1e-14);
  EXPECT_LT((wide * rest).norm(), 1e-14);
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
  ASSERT_EQ(values.size(), 2u);
  EXPECT_NEAR(values[0].real(), 0, 1e-14);
  EXPECT_NEAR(std::abs(values[0].imag()), 3, 1e-14);
  EXPECT_NEAR(values[0].imag() + values[1].imag(), 0, 1e-14);
}

/// The largest distance of a wanted value from the nearest found that is not taken yet.
double mismatch(ComplexVec found, const std::vector<std::complex<double>>& wanted) {
  double out = 0;
  for (const std::complex<double>& w : wanted) {
    const auto nearest = std::min_element(
        found.begin(), found.end(), [&](const auto& a, const auto& b) { return std::abs(a - w) < std::abs(b - w); });
    out = std::max(out, std::abs(*nearest - w));
    *nearest = 1e300;
  }
  return out;
}

TEST(Eigenvalues, OfACycleAreTheRootsOfUnity) {  // without an exceptional shift the iteration stands still
  for (const int n : {1, 2, 3, 4, 7, 16}) {
    Mat A = Mat::Zero(n, n);
    std::vector<std::complex<double>> wanted;
    for (int i = 0; i < n; ++i) {
      A((i + 1) % n, i) = 1;
      wanted.push_back(std::polar(1.0, 2 * std::numbers::pi * i / n));
    }
    EXPECT_LT(mismatch(eigenvalues(A), wanted), 1e-14 * n) << n;
    ComplexVec tiny = eigenvalues(1e-200 * A);
    for (std::complex<double>& value : tiny) value *= 1e200;
    EXPECT_LT(mismatch(tiny, wanted), 1e-14 * n) << n;
  }
}

TEST(Eigenvalues, AreKeptBySimilarity) {
  const std::vector<std::complex<double>> wanted = {{3, 0},    {-2, 1}, {-2, -1},  {0.5, 4},
                                                    {0.5, -4}, {0, 0},  {1e-3, 0}, {-5, 0}};
  Mat D = Mat::Zero(8, 8);
  for (int i = 0; i < 8; ++i) {
    D(i, i) = wanted[static_cast<size_t>(i)].real();
    if (const double w = wanted[static_cast<size_t>(i)].imag(); w > 0) D(i, i + 1) = w, D(i + 1, i) = -w;
  }
  const Mat Q = qr(scattered(8, 8, 1)).Q;
  EXPECT_LT(mismatch(eigenvalues(Q * D * Q.transpose()), wanted), 1e-14);
  const Mat X = scattered(8, 8, 2);
  EXPECT_LT(mismatch(eigenvalues(X * D * Lu(X).inverse()), wanted), 1e-13 / Lu(X).rcond());
}

/// Q R Q' for a reflection Q and a block diagonal R: a normal matrix, whose eigenvalues are as exact as its entries.
Mat normal_matrix(const std::vector<std::complex<double>>& pairs, int seed) {
  const int n = 2 * static_cast<int>(pairs.size());
  Mat R = Mat::Zero(n, n);
  for (int k = 0; k < n / 2; ++k) {
    const std::complex<double> z = pairs[static_cast<size_t>(k)];
    R(2 * k, 2 * k) = R(2 * k + 1, 2 * k + 1) = z.real();
    R(2 * k, 2 * k + 1) = z.imag(), R(2 * k + 1, 2 * k) = -z.imag();
  }
  Vec v = scattered(n, 1, seed);
  v /= v.norm();
  const Mat Q = Mat::Identity(n, n) - 2 * v * v.transpose();
  return Q * R * Q.transpose();
}

TEST(Eigenvalues, DoNotDependOnTheUnitsOfStates) {
  std::mt19937 engine(5);
  const auto uniform = [&] { return 2.0 * engine() / 4294967295.0 - 1; };
  for (int round = 0; round < 300; ++round) {
    std::vector<std::complex<double>> pairs;
    ComplexVec wanted;
    for (int k = 0; k < 1 + round % 6; ++k) {
      pairs.push_back({-0.02 - std::abs(uniform()), uniform()});
      wanted.push_back(pairs.back()), wanted.push_back(std::conj(pairs.back()));
    }
    Mat A = normal_matrix(pairs, round);
    for (Index i = 0; i < A.rows(); ++i) {
      const double unit = std::pow(10.0, 6 * uniform());  // spread by up to 1e12
      A.row(i) *= unit, A.col(i) *= 1 / unit;
    }
    const ComplexVec values = eigenvalues(A);
    EXPECT_LT(mismatch(values, wanted), 1e-10) << round;
    for (const std::complex<double>& z : values) EXPECT_LT(z.real(), 0) << round;
  }
}

TEST(Eigenvalues, OfReducibleMatricesInMixedUnits) {  // two triangles of blocks: balancing comes to an end
  Mat A = Mat::Zero(4, 4);
  A << -1, 1e6, 1e9, 3e-8, -1e-6, -1, 5, 1e7, 0, 0, -2, 1e-9, 0, 0, -1e9, -2;
  EXPECT_LT(mismatch(eigenvalues(A), {{-1, 1}, {-1, -1}, {-2, 1}, {-2, -1}}), 1e-10);
}

TEST(Eigenvalues, OfManyRowsHaveTheMatrixsTraces) {
  const Mat A = scattered(60, 60, 9);
  const ComplexVec values = eigenvalues(A);
  std::complex<double> sum = 0, sum_of_squares = 0;
  for (const std::complex<double>& value : values) sum += value, sum_of_squares += value * value;
  EXPECT_NEAR(std::abs(sum - A.trace()), 0, 1e-12);
  EXPECT_NEAR(std::abs(sum_of_squares - (A * A).trace()), 0, 1e-11);
  for (size_t i = 0; i < 60; ++i) {
    if (values[i].imag() <= 0) continue;
    EXPECT_EQ(values[i + 1], std::conj(values[i]));
  }
}

TEST(Eigenvalues, OfADefectiveMatrixAndOfNone) {
  EXPECT_LT(mismatch(eigenvalues(matrix(3, 3, {2, 1, 0, 0, 2, 1, 0, 0, 2})), {2.0, 2.0, 2.0}), 1e-15);
  EXPECT_LT(mismatch(eigenvalues(matrix(2, 2, {1, 1, -1, -1})), {0.0, 0.0}), 1e-15);
  EXPECT_EQ(eigenvalues(Mat(0, 0)).size(), 0u);
  EXPECT_EQ(eigenvalues(Mat::Zero(3, 3)), ComplexVec(3));
  EXPECT_TRUE(std::isnan(eigenvalues(matrix(2, 2, {1, NAN, 0, 1}))[0].real()));
  EXPECT_TRUE(std::isnan(eigenvalues(matrix(3, 3, {1, INFINITY, 0, 1, 1, 1, 2, 3, 4}))[0].real()));
}

TEST(SparseLu, SolvesAnotherMatrixWithTheSameAnalysis) {
  const SparseMat A(regular);
  SparseLu lu;
  lu.analyse(A);
  const Vec b = Vec{1, 2, 3};
  ASSERT_TRUE(lu.factor(A));
  EXPECT_LT((regular * lu.solve(b) - b).norm(), 1e-14);
  ASSERT_TRUE(lu.factor(2 * A));
  EXPECT_LT((2 * regular * lu.solve(b) - b).norm(), 1e-14);
}

TEST(SparseLu, SolvesWhatDenseFactorsSolve) {  // zeros on the diagonal and no symmetry
  std::mt19937 engine(5);
  const auto number = [&] { return 2.0 * engine() / 4294967295.0 - 1; };
  int solved = 0;
  for (int round = 0; round < 300; ++round) {
    const int n = 1 + static_cast<int>(engine() % 40);
    const unsigned rare = 1 + engine() % 8;
    const Mat dense = made(n, n, [&] { return engine() % rare == 0 ? number() : 0.0; });
    const Vec x = made(n, number);
    const SparseMat A(dense);
    const Lu reference(dense);
    SparseLu lu;
    lu.analyse(A);
    const bool regular_here = lu.factor(A);
    if (!(reference.rcond() > 1e-10)) continue;
    ASSERT_TRUE(regular_here) << round;
    EXPECT_LT((lu.solve(dense * x) - x).norm(), 1e-13 * n / reference.rcond()) << round;
    ++solved;
  }
  EXPECT_GT(solved, 100);
}

TEST(SparseLu, TellsWhatIsSingular) {
  SparseLu lu;
  for (const Mat& A :
       {matrix(2, 2, {1, 2, 2, 4}), Mat(Mat::Zero(3, 3)), matrix(2, 2, {1, 0, 1, 0}), matrix(2, 2, {1, NAN, 0, 1})}) {
    lu.analyse(SparseMat(A));
    EXPECT_FALSE(lu.factor(SparseMat(A)));
  }
  lu.analyse(SparseMat(0, 0));
  EXPECT_TRUE(lu.factor(SparseMat(0, 0)));
  EXPECT_EQ(lu.solve(Vec(0)).size(), 0);
}

/// Each unknown of a square of them coupled with its four neighbours.
SparseMat lattice(int side) {
  std::vector<SparseEntry> entries;
  const auto couple = [&](int a, int b) { entries.push_back({a, b, -1}), entries.push_back({b, a, -1}); };
  for (int i = 0; i < side * side; ++i) {
    entries.push_back({i, i, 4.5});
    if (i % side + 1 < side) couple(i, i + 1);
    if (i + side < side * side) couple(i, i + side);
  }
  return SparseMat(side * side, side * side, entries);
}

TEST(SparseLu, FillsLittle) {
  const SparseMat plate = lattice(64);  // as a band: 2 * 64 entries for each unknown and more
  SparseLu lu;
  lu.analyse(plate);
  ASSERT_TRUE(lu.factor(plate));
  EXPECT_LT(lu.entries(), 64 * 64 * 45);
  const Vec x = scattered(64 * 64, 1, 3);
  EXPECT_LT((lu.solve(plate * x) - x).norm(), 1e-12);

  const int n = 20000;  // one unknown that all others see: no fill at all, if it comes last
  std::vector<SparseEntry> star;
  for (int i = 0; i < n; ++i) star.push_back({i, i, i == 0 ? 2.0 * n : 2.0});
  for (int i = 1; i < n; ++i) star.push_back({0, i, 1}), star.push_back({i, 0, 1});
  const SparseMat A(n, n, star);
  lu.analyse(A);
  ASSERT_TRUE(lu.factor(A));
  EXPECT_EQ(lu.entries(), 3 * n - 2);
}

}  // namespace
}  // namespace saltus
