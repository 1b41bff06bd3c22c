#include "analysis/settle.hpp"

#include <cmath>
#include <complex>
#include <functional>
#include <optional>

#include <gtest/gtest.h>

namespace saltus {
namespace {

/// The cycle on which a sequence settles, given by a map of one number; nothing if it does not.
std::optional<Attractor> settle(double x, const std::function<double(double)>& map, double tolerance = 1e-6,
                                long most = 20000) {
  Settling settling({tolerance}, 64);
  for (long i = 0; i < most; ++i, x = map(x)) {
    if (settling.add({&x, 1})) return settling.cycle();
  }
  return std::nullopt;
}

/// Likewise for z = multiplier * z, seen as (Re, Im): a node or a spiral around 0.
std::optional<Attractor> settle_linear(std::complex<double> multiplier, std::complex<double> z = {1, 0.3}) {
  Settling settling({1e-6, 1e-6}, 64);
  for (long i = 0; i < 100000; ++i, z *= multiplier) {
    const double x[2] = {z.real(), z.imag()};
    if (settling.add(x)) return settling.cycle();
  }
  return std::nullopt;
}

TEST(Settling, FindsTheFixedPointHoweverSlowlyItIsApproached) {
  for (const double q : {0.0, 0.1, 0.5, 0.9, 0.99, 0.999, -0.1, -0.5, -0.9, -0.99, -0.999}) {
    const auto found = settle(1, [&](double x) { return 3 + q * (x - 3); });
    ASSERT_TRUE(found) << q;
    EXPECT_EQ(found->period, 1) << q;
    EXPECT_NEAR(found->points[0], 3, 2e-6) << q;
  }
}

TEST(Settling, IsNotFooledBySpirals) {
  for (const double size : {0.5, 0.8, 0.95, 0.99, 0.998}) {
    for (const double angle : {0.01, 0.3, 1.256, 2.09, 2.5, 3.0}) {
      const auto found = settle_linear(std::polar(size, angle));
      ASSERT_TRUE(found) << size << " " << angle;
      EXPECT_EQ(found->period, 1) << size << " " << angle;
      EXPECT_NEAR(std::hypot(found->points[0], found->points[1]), 0, 4e-6) << size << " " << angle;
    }
  }
}

TEST(Settling, IsNotFooledWhereAQuickApproachHidesASlowOne) {
  for (const double start : {1e-3, 1e-2, 0.1, 1.0}) {
    for (const double slow : {0.99, -0.99, 0.995}) {
      Settling settling({1e-6}, 64);
      double quick = 1, other = start;
      bool settled = false;
      for (int i = 0; i < 20000 && !settled; ++i, quick *= -0.25, other *= slow) {
        const double x = quick - other;
        settled = settling.add({&x, 1});
      }
      ASSERT_TRUE(settled);
      EXPECT_EQ(settling.cycle().period, 1) << start << " " << slow;
      EXPECT_NEAR(settling.cycle().points[0], 0, 4e-6) << start << " " << slow;
    }
  }
}

TEST(Settling, FindsTheCyclesOfTheLogisticMap) {
  const auto logistic = [](double r) { return [r](double x) { return r * x * (1 - x); }; };
  const auto two = settle(0.4, logistic(3.2));
  ASSERT_TRUE(two);
  ASSERT_EQ(two->period, 2);
  const double root = std::sqrt((3.2 - 3) * (3.2 + 1));
  EXPECT_NEAR(two->points[0], (3.2 + 1 - root) / 6.4, 1e-6);
  EXPECT_NEAR(two->points[1], (3.2 + 1 + root) / 6.4, 1e-6);
  EXPECT_EQ(settle(0.4, logistic(2.9))->period, 1);
  EXPECT_EQ(settle(0.4, logistic(3.001))->period, 2);
  EXPECT_EQ(settle(0.4, logistic(3.5))->period, 4);
  EXPECT_EQ(settle(0.4, logistic(3.83))->period, 3);
  EXPECT_EQ(settle(0.4, logistic(3.845))->period, 6);  // three doubles at 3.8415
  EXPECT_FALSE(settle(0.4, logistic(3.9)));            // chaos
  EXPECT_FALSE(settle(0.4, logistic(3.8284)));         // just before the window of period 3: long laminar phases
}

TEST(Settling, DoesNotSettleOnACircle) { EXPECT_FALSE(settle_linear(std::polar(1.0, 1.0))); }

TEST(Settling, DoesNotLookAtStatesOfInfiniteTolerance) {
  Settling settling({1e-6, HUGE_VAL}, 8);
  bool settled = false;
  double x[2] = {1, 0};
  for (int i = 0; i < 100 && !settled; ++i, x[0] *= 0.1, x[1] += 6.28) settled = settling.add(x);
  EXPECT_TRUE(settled);
}

TEST(SameAttractor, ComparesCyclesWhereverTheyBegin) {
  const double tolerance[2] = {1e-6, 1e-3};
  const Attractor a{.period = 2, .points = {0, 1, 2, 3}}, b{.period = 2, .points = {2, 3.0005, 5e-6, 1}},
      c{.period = 2, .points = {2, 3, 0, 1.5}}, d{.period = 1, .points = {0, 1}};
  EXPECT_TRUE(same_attractor(a, b, tolerance));
  EXPECT_FALSE(same_attractor(a, c, tolerance));
  EXPECT_FALSE(same_attractor(a, d, tolerance));
  EXPECT_FALSE(same_attractor(d, a, tolerance));
}

TEST(SameAttractor, ComparesChaosByWhatItCovers) {
  const auto sample = [](double r, double x, double shift) {
    Attractor a;
    for (int i = 0; i < 500; ++i, x = r * x * (1 - x)) {
      if (i >= 244) a.points.push_back(x + shift);
    }
    return a;
  };
  const double tolerance[1] = {1e-6};
  EXPECT_TRUE(same_attractor(sample(3.9, 0.3, 0), sample(3.9, 0.7123, 0), tolerance));
  EXPECT_FALSE(same_attractor(sample(3.9, 0.3, 0), sample(3.9, 0.7123, 0.8), tolerance));
}

// To +-1 by 0.999 from point to point: after 600 points more than half of the way is left, after 30000 nothing.
TEST(Settling, GivesNoVerdictOnPointsThatAreOnTheirWay) {
  for (const double start : {0.2, 0.5, 2.0}) {
    Settling settling({1e-6}, 64);
    for (int k = 0; k < 600; ++k) {
      const double x = (k % 2 == 0 ? 1 : -1) * (1 + start * std::pow(0.999, k));
      settling.add({&x, 1});
    }
    EXPECT_FALSE(settling.verdict(256)) << start;
    for (int k = 600; k < 30000; ++k) {
      const double x = (k % 2 == 0 ? 1 : -1) * (1 + start * std::pow(0.999, k));
      settling.add({&x, 1});
    }
    const auto end = settling.verdict(256);
    ASSERT_TRUE(end) << start;
    EXPECT_EQ(end->period, 2);
    EXPECT_NEAR(end->points[0], -1, 1e-6);
  }
}

}  // namespace
}  // namespace saltus
