#include "base/dense.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "../matrices.hpp"

namespace saltus {
namespace {

/// Small whole numbers: sums of products of them are exact in whatever order they are formed.
Mat whole_numbers(Index rows, Index columns, unsigned seed) {
  std::mt19937 engine(seed);
  return made(rows, columns, [&] { return static_cast<double>(engine() % 19) - 9; });
}

Mat product_by_definition(const ConstView& a, const ConstView& b) {
  return made(a.rows(), b.cols(), [&](Index i, Index j) {
    double sum = 0;
    for (Index k = 0; k < a.cols(); ++k) sum += a(i, k) * b(k, j);
    return sum;
  });
}

TEST(Dense, ProductsOfEveryShapeAndStrideAreSumsOverInnerIndices) {
  for (const Index rows : {0, 1, 2, 5, 63, 64, 65, 130}) {
    for (const Index inner : {0, 1, 3, 4, 7}) {
      for (const Index columns : {0, 1, 2, 6}) {
        const Mat a = whole_numbers(rows, inner, 1), b = whole_numbers(inner, columns, 2);
        const Mat across_a = a.transpose(), across_b = b.transpose(), wanted = product_by_definition(a, b);
        EXPECT_EQ(a * b, wanted);
        EXPECT_EQ(across_a.transpose() * b, wanted);
        EXPECT_EQ(a * across_b.transpose(), wanted);
        EXPECT_EQ(across_a.transpose() * across_b.transpose(), wanted);
        Mat around = Mat::Ones(rows + 2, columns + 3);
        add_product(around.block(1, 2, rows, columns), a, b, -2);
        EXPECT_EQ(around.block(1, 2, rows, columns), Mat::Ones(rows, columns) - 2 * wanted);
        around.block(1, 2, rows, columns).setOnes();
        EXPECT_EQ(around, Mat::Ones(rows + 2, columns + 3));
        Mat turned = Mat::Zero(columns, rows);
        add_product(turned.transpose(), a, b);
        EXPECT_EQ(turned, wanted.transpose());
      }
    }
  }
}

TEST(Dense, ProductsKeepWhatIsNotANumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Mat a = Mat::Ones(3, 3);
  a(1, 2) = nan;
  const Vec y = a * Vec::Zero(3);
  EXPECT_EQ(y[0], 0);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_FALSE(y.allFinite());
  EXPECT_FALSE((-std::numeric_limits<double>::infinity() * Vec::Ones(2)).allFinite());
}

TEST(Dense, ArithmeticIsEntryByEntry) {
  const Mat a = whole_numbers(4, 3, 1), b = whole_numbers(4, 3, 2);
  const Mat sum = a + b, difference = a - b, scaled = 2 * a, halved = a / 2, negative = -a;
  const Mat chained = 3 * (a - 2 * b) + -(b / 4 - a) * 2.0 - (a + b);
  for (Index i = 0; i < 4; ++i) {
    for (Index j = 0; j < 3; ++j) {
      EXPECT_EQ(sum(i, j), a(i, j) + b(i, j));
      EXPECT_EQ(difference(i, j), a(i, j) - b(i, j));
      EXPECT_EQ(scaled(i, j), 2 * a(i, j));
      EXPECT_EQ(halved(i, j), a(i, j) / 2);
      EXPECT_EQ(negative(i, j), -a(i, j));
      EXPECT_EQ(chained(i, j), 3 * (a(i, j) - 2 * b(i, j)) - (b(i, j) / 4 - a(i, j)) * 2 - (a(i, j) + b(i, j)));
    }
  }
  EXPECT_EQ(a.cwiseProduct(b)(3, 2), a(3, 2) * b(3, 2));
  EXPECT_EQ((Vec{1, 2, 3}).asDiagonal() * Mat::Ones(3, 2), (Vec{1, 2, 3}) * Mat::Ones(1, 2));
  EXPECT_EQ(Mat::Ones(2, 3) * (Vec{1, 2, 3}).asDiagonal(), Mat::Ones(2, 1) * (Vec{1, 2, 3}).transpose());
  EXPECT_EQ((Vec{-1, 5, 2}).cwiseMax(0).cwiseMin(3), (Vec{0, 3, 2}));
  EXPECT_EQ((Vec{-1, 5, 2}).cwiseMax(Vec{1, 1, 4}), (Vec{1, 5, 4}));
  EXPECT_EQ((Vec{2, 4}).cwiseInverse(), (Vec{0.5, 0.25}));
}

TEST(Dense, SumsOfEverySizeHaveEveryEntryOnce) {
  for (Index n = 0; n < 20; ++n) {
    const Vec x = made(n, [](Index i) { return static_cast<double>(i + 1); });
    const Mat as_row = Mat(x.transpose()), apart = Mat(x * Vec{1, 2}.transpose()).transpose();
    const double wanted = static_cast<double>(n * (n + 1) / 2),
                 squares = static_cast<double>(n * (n + 1) * (2 * n + 1) / 6);
    EXPECT_EQ(x.sum(), wanted);
    EXPECT_EQ((-x).sum_abs(), wanted);
    EXPECT_EQ(apart.row(1).sum(), 2 * wanted);
    EXPECT_EQ(x.squaredNorm(), squares);
    EXPECT_EQ(x.norm(), std::sqrt(squares));
    EXPECT_EQ(x.dot(x), squares);
    EXPECT_EQ(apart.row(1).dot(as_row), 2 * squares);
  }
}

TEST(Dense, LargestEntriesAreFoundWithTheirPlaces) {
  const Vec x{3, -7, 5, 5};
  Index where = -1;
  EXPECT_EQ(x.maxCoeff(&where), 5);
  EXPECT_EQ(where, 2);
  EXPECT_EQ(x.minCoeff(&where), -7);
  EXPECT_EQ(where, 1);
  EXPECT_EQ(x.max_abs(), 7);
  EXPECT_EQ(Vec().max_abs(), 0);
  EXPECT_TRUE(Vec::Zero(3).isZero(0));
  EXPECT_FALSE((Vec{0, 1e-9}).isZero(1e-10));
  const Mat a = (Mat(2, 3) << 1, -2, 3, -4, 0, 4).finished();
  EXPECT_EQ(a.row_max_abs(), (Vec{3, 4}));
  EXPECT_EQ(a.column_max_abs(), (Vec{4, 2, 4}));
  EXPECT_EQ(a.row_sums(), (Vec{2, 0}));
  EXPECT_EQ(a.column_norms(), (Vec{std::sqrt(17), 2, 5}));
}

TEST(Dense, ViewsWriteIntoTheMatrixTheyLookAt) {
  Mat a = Mat::Zero(3, 4);
  a.row(1) = Vec{1, 2, 3, 4};
  a.col(0).tail(2) = Vec{5, 6};
  a.diagonal() += Vec{10, 20, 30};
  a.topRightCorner(1, 2).setConstant(7);
  a.col(1).swap(a.col(2));
  EXPECT_EQ(a, (Mat(3, 4) << 10, 7, 0, 7, 5, 3, 22, 4, 6, 30, 0, 0).finished());
  EXPECT_EQ(a.transpose().row(0), (Vec{10, 5, 6}).transpose());
  EXPECT_EQ(a.rows_at(std::vector<int>{2, 0}), (Mat(2, 4) << 6, 30, 0, 0, 10, 7, 0, 7).finished());
  EXPECT_EQ(a.columns_at(std::vector<Index>{3}), (Vec{7, 4, 0}));
  EXPECT_EQ(a.part(std::vector<int>{0, 1}), (Mat(2, 2) << 10, 7, 5, 3).finished());
  Vec x = Vec::Zero(4);
  x.set_entries_at(std::vector<int>{3, 1}, Vec{8, 9});
  EXPECT_EQ(x, (Vec{0, 9, 0, 8}));
  EXPECT_EQ(x.entries_at(std::vector<Index>{1, 3}), (Vec{9, 8}));
}

TEST(Dense, AssignmentsOfPartsOfItselfAreSafe) {
  Mat a = (Mat(2, 2) << 1, 2, 3, 4).finished();
  a = a.transpose();
  EXPECT_EQ(a, (Mat(2, 2) << 1, 3, 2, 4).finished());
  a = a.col(1);
  EXPECT_EQ(a, (Vec{3, 4}));
  Vec x{1, 2, 3, 4, 5};
  x = x.tail(2);
  EXPECT_EQ(x, (Vec{4, 5}));
  x = a * x.transpose() * x;
  EXPECT_EQ(x, (Vec{123, 164}));
  x.conservativeResize(3);
  x[2] = 1;
  EXPECT_EQ(x, (Vec{123, 164, 1}));
  a.conservativeResize(1, 2);
  a(0, 1) = 9;
  EXPECT_EQ(a, (Vec{3, 9}).transpose());
}

TEST(Dense, WhatWasMovedFromIsEmptyOrWhatItWasSwappedFor) {
  Vec x{1, 2, 3}, y = std::move(x);
  EXPECT_EQ(y.size(), 3);
  EXPECT_EQ(x.size(), 0);
  Mat a = std::move(y);
  EXPECT_EQ(y.size(), 0);
  EXPECT_EQ(a.cols(), 1);
  y = std::move(a);
  EXPECT_EQ(y, (Vec{1, 2, 3}));
}

// Few entries lie in the object itself, many elsewhere: 12 and 13 are the last and the first of them.
TEST(Dense, SmallAndLargeOnesAreMovedSwappedAndResizedAlike) {
  for (const Index a : {0, 1, 4, 12, 13, 40}) {
    for (const Index b : {0, 1, 4, 12, 13, 40}) {
      const Vec one = Vec::LinSpaced(a, 1, 2), other = Vec::LinSpaced(b, 3, 4);
      Vec x = one, y = other;
      x.swap(y);
      EXPECT_EQ(x, other);
      EXPECT_EQ(y, one);
      x = std::move(y);
      EXPECT_EQ(x, one);
      x.resize(b);
      x = other;
      EXPECT_EQ(x, other);
      const Mat first = whole_numbers(a, 2, 3), second = whole_numbers(2, b, 4);
      Mat p = first, q = second;
      p.swap(q);
      EXPECT_EQ(p, second);
      EXPECT_EQ(q, first);
      p = std::move(q);
      EXPECT_EQ(p, first);
      p.resize(2, b);
      p = second;
      EXPECT_EQ(p, second);
      Vec column = Mat(one);
      EXPECT_EQ(column, one);
      const Mat back = std::move(column);
      EXPECT_EQ(back, Mat(one));
      std::vector<Mat> grown;
      for (int k = 0; k < 9; ++k) grown.push_back(first);
      for (const Mat& m : grown) EXPECT_EQ(m, first);
    }
  }
}

TEST(Dense, OneIndexCountsTheColumnsOfAMatrixThrough) {
  Mat a = (Mat(2, 3) << 1, 2, 3, 4, 5, 6).finished();
  a[3] = 7;
  EXPECT_EQ(a(1), 4);
  EXPECT_EQ(a, (Mat(2, 3) << 1, 2, 3, 4, 7, 6).finished());
}

TEST(Dense, SpacesEvenly) { EXPECT_EQ(Vec::LinSpaced(3, 1, 2), (Vec{1, 1.5, 2})); }

TEST(Dense, NormalisesWhatIsNotZero) {
  EXPECT_EQ((Vec{3, 4}).normalized(), (Vec{0.6, 0.8}));
  EXPECT_EQ(Vec::Zero(2).normalized(), Vec::Zero(2));
}

}  // namespace
}  // namespace saltus
