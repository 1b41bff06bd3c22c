#include "expr/interpolant.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace saltus {
namespace {

const std::vector<double> xs{-1, 0.5, 2, 2.25, 6}, ys{3, -1, 0.5, 2, 2};

double polynomial(const Interpolant::Polynomial& p, double d) { return p[0] + d * (p[1] + d * (p[2] + d * p[3])); }

TEST(Interpolant, IsStraightBetweenPoints) {
  const Interpolant f(xs, ys, Between::linear, Outside::error);
  for (size_t i = 0; i < xs.size(); ++i) EXPECT_EQ(f(xs[i]), ys[i]);
  EXPECT_DOUBLE_EQ(f(1.25), -0.25);
  EXPECT_DOUBLE_EQ(f(1.25, 1), 1);
  EXPECT_EQ(f(1.25, 2), 0);
}

TEST(Interpolant, KeepsTheValueOfThePointToTheLeft) {
  const Interpolant f(xs, ys, Between::step, Outside::error);
  for (size_t i = 0; i < xs.size(); ++i) EXPECT_EQ(f(xs[i]), ys[i]);
  EXPECT_EQ(f(0.49), 3);
  EXPECT_EQ(f(5.9), 2);
  EXPECT_TRUE(f.jumps());
}

TEST(Interpolant, IsTheNaturalSpline) {  // through (0,0), (1,1), (2,0): (3x - x^3)/2 on the first half
  const Interpolant f({0, 1, 2}, {0, 1, 0}, Between::cubic, Outside::error);
  for (const double x : {0.1, 0.5, 0.9}) {
    EXPECT_NEAR(f(x), (3 * x - x * x * x) / 2, 1e-15);
    EXPECT_NEAR(f(2 - x), f(x), 1e-15);
    EXPECT_NEAR(f(x, 1), (3 - 3 * x * x) / 2, 1e-15);
    EXPECT_NEAR(f(x, 2), -3 * x, 1e-15);
  }
}

TEST(Interpolant, GoesOnOutsideAsItWasTold) {
  EXPECT_EQ(Interpolant(xs, ys, Between::linear, Outside::hold)(-7), 3);
  EXPECT_EQ(Interpolant(xs, ys, Between::linear, Outside::hold)(70), 2);
  EXPECT_EQ(Interpolant(xs, ys, Between::cubic, Outside::zero)(-1.001), 0);
  EXPECT_TRUE(std::isnan(Interpolant(xs, ys, Between::linear, Outside::error)(6.001)));
  const Interpolant f(xs, ys, Between::linear, Outside::repeat);
  for (const double x : {-0.9, 0.6, 2.1, 5.9}) {
    EXPECT_NEAR(f(x + 7 * 7), f(x), 1e-12);
    EXPECT_NEAR(f(x - 7 * 3), f(x), 1e-12);
  }
  EXPECT_EQ(f(6), 3);
}

TEST(Interpolant, EndsWhereItsPointsEndUpToRounding) {
  const Interpolant f(xs, ys, Between::linear, Outside::error);
  EXPECT_NEAR(f(6 + 1e-14), 2, 1e-12);
  EXPECT_NEAR(f(-1 - 1e-14), 3, 1e-12);
}

TEST(Interpolant, KnowsItsNeighboursFromOnePiece) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> number(0, 1);
  for (const Between between : {Between::linear, Between::cubic, Between::step}) {
    for (const Outside outside : {Outside::hold, Outside::repeat, Outside::zero, Outside::error}) {
      std::vector<double> x{-2}, y{number(random)};
      for (int i = 0; i < 9; ++i) {
        x.push_back(x.back() + 0.05 + number(random));
        y.push_back(number(random));
      }
      const Interpolant f(x, y, between, outside);
      ASSERT_TRUE(f.finite());
      const double u0 = outside == Outside::error ? x[0] : -5, u1 = outside == Outside::error ? x.back() : 12;
      for (int k = 0; k < 200; ++k) {
        const double u = u0 + (u1 - u0) * number(random), n = f.number_at(u);
        const Interpolant::Piece p = f.piece(n);
        ASSERT_LE(p.from, u);
        ASSERT_LT(u, p.to);
        EXPECT_NEAR(polynomial(p.value, u - p.origin), f(u), 1e-14);
        const auto agrees = [&](double neighbour, const Interpolant::Polynomial& difference, double at) {
          if (std::abs(at) > 1e100 || !f.given(neighbour)) return;
          const Interpolant::Piece q = f.piece(neighbour);
          for (const double d : {-0.01, 0.0, 0.02}) {
            EXPECT_NEAR(polynomial(q.value, at + d - q.origin),
                        polynomial(p.value, at + d - p.origin) + polynomial(difference, d), 1e-12)
                << n << " " << u;
          }
        };
        agrees(n - 1, p.below, p.from);
        agrees(n + 1, p.above, p.to);
        const double nearest = f.nearest_break(u);
        EXPECT_TRUE(nearest == n || nearest == n + 1);
      }
    }
  }
}

TEST(Interpolant, KnowsWhetherItJumps) {
  EXPECT_FALSE(Interpolant({0, 1, 2}, {1, 5, 1}, Between::linear, Outside::repeat).jumps());
  EXPECT_TRUE(Interpolant({0, 1, 2}, {1, 5, 2}, Between::linear, Outside::repeat).jumps());
  EXPECT_FALSE(Interpolant({0, 1, 2}, {1, 5, 2}, Between::cubic, Outside::hold).jumps());
  EXPECT_TRUE(Interpolant({0, 1, 2}, {1, 5, 2}, Between::linear, Outside::zero).jumps());
  EXPECT_FALSE(Interpolant({0, 1, 2}, {0, 5, 0}, Between::linear, Outside::zero).jumps());
}

}  // namespace
}  // namespace saltus
