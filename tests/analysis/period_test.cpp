#include "analysis/settle.hpp"

#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace saltus {
namespace {

std::vector<double> sequence(int from, int count, const std::function<double(int)>& x) {
  std::vector<double> points;
  for (int k = from; k < from + count; ++k) points.push_back(x(k));
  return points;
}

const std::vector<double> kTolerance{1e-6};

TEST(Period, OfAPeriodicSequenceIsItsSmallestOne) {
  for (const int p : {1, 2, 3, 4, 7, 12}) {
    const auto points = sequence(0, 100, [&](int k) { return std::sin(2 * M_PI * k / p) + 0.1 * (k % p); });
    EXPECT_EQ(find_period(points, kTolerance, 64).period, p);
  }
}

TEST(Period, LongerThanAThirdOfThePointsOrThanAskedForIsNotFound) {
  const auto points = sequence(0, 100, [](int k) { return k % 34; });
  EXPECT_EQ(find_period(points, kTolerance, 64).period, 0);
  EXPECT_EQ(find_period(sequence(0, 100, [](int k) { return k % 9; }), kTolerance, 8).period, 0);
  EXPECT_EQ(find_period(sequence(0, 100, [](int k) { return k % 9; }), kTolerance, 9).period, 9);
}

TEST(Period, OfAChaoticSequenceIsNone) {
  double x = 0.3;
  const auto points = sequence(0, 1000, [&](int) { return x = 4 * x * (1 - x); });
  const Recurrence found = find_period(points, kTolerance, 300);
  EXPECT_EQ(found.period, 0);
  EXPECT_FALSE(found.slow);
}

// Just before a period doubling: x = (-0.9995)^k agrees with x two places on, to within the tolerance, from k = 14000
// on; the points themselves still alternate a thousand times as far. What they go to is one point all the same.
TEST(Period, OfAnAlternatingApproachIsNotTwo) {
  const auto x = [](int k) { return 1 + std::pow(-0.9995, k); };
  for (const int from : {0, 2000, 10000, 13000, 14000, 15000, 20000, 26000, 35000})
    EXPECT_EQ(find_period(sequence(from, 100, x), kTolerance, 64).period, 1) << from;
}

// One that slows down as it comes does not show where it goes.
TEST(Period, OfAnAlternatingApproachThatSlowsDownIsNotTold) {
  const auto x = [](int k) { return 1 + (k % 2 == 0 ? 1 : -1) / std::sqrt(k + 1.0); };
  for (const int from : {400, 10000, 1000000})
    EXPECT_EQ(find_period(sequence(from, 100, x), kTolerance, 64).period, 0) << from;
}

// The spiral into a point at a rotation of almost a fifth of a turn.
TEST(Period, OfASlowSpiralIsNotThatOfItsArms) {
  const auto x = [](int k) { return std::pow(0.9999, k) * std::cos(2 * M_PI * k / 5); };
  for (const int from : {0, 50000, 70000, 80000, 90000, 120000}) {
    EXPECT_EQ(find_period(sequence(from, 100, x), kTolerance, 64).period, 0) << from;
  }
  EXPECT_EQ(find_period(sequence(170000, 100, x), kTolerance, 64).period, 1);
}

TEST(Period, OfAFastApproachIsThatOfTheLatestPoints) {
  // The first points are two tolerances apart, those two places on a tenth of one; all later ones agree.
  const auto x = [](int k) { return 1e-6 * std::pow(-0.97, k); };
  EXPECT_EQ(find_period(sequence(0, 100, x), kTolerance, 64).period, 1);
}

TEST(Period, OfAnAlternatingApproachIsNeverTwoAtAnyRate) {
  for (const double factor : {-0.5, -0.9, -0.97, -0.99, -0.997, -0.999}) {
    const auto x = [&](int k) { return std::pow(factor, k); };
    for (int from = 0; from < 30000; from += 50) {
      const long period = find_period(sequence(from, 100, x), kTolerance, 64).period;
      ASSERT_TRUE(period == 0 || period == 1) << factor << " from " << from << ": " << period;
    }
    EXPECT_EQ(find_period(sequence(30000, 100, x), kTolerance, 64).period, 1) << factor;
  }
}

// x -> -(1 + mu) x + x^3 goes to zero below mu = 0, and to the two points +-sqrt(mu) above; the nearer mu is to zero,
// the longer the way, and the more it looks like the other.
TEST(Period, NextToADoublingIsToldRightlyOrNotAtAll) {
  int told = 0;
  for (const double mu : {-0.3, -0.1, -0.03, -0.01, -0.003, -0.001, -1e-4, 1e-4, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3}) {
    for (const double start : {0.5, 0.1, 0.01, 1e-4}) {
      for (const int skip : {0, 50, 400, 3000}) {
        double x = start;
        for (int k = 0; k < skip; ++k) x = -(1 + mu) * x + x * x * x;
        const auto points = sequence(0, 100, [&](int) { return 1 + (x = -(1 + mu) * x + x * x * x); });
        const long period = find_period(points, kTolerance, 64).period, right = mu < 0 ? 1 : 2;
        EXPECT_TRUE(period == 0 || period == right) << mu << " from " << start << " after " << skip << ": " << period;
        told += period == right;
      }
    }
  }
  EXPECT_GT(told, 120);
}

TEST(Period, OfASlowDriftIsNotOne) {
  const auto drift = [](int k) { return 1e-7 * k; };
  EXPECT_TRUE(find_period(sequence(0, 100, drift), kTolerance, 64).slow);
  EXPECT_EQ(find_period(sequence(0, 100, drift), kTolerance, 64).period, 0);
}

// 5 + q^k by hand: more than a tolerance from point to point, too slow to tell a limit. Phases may do so each for
// itself.
TEST(Period, OfAnApproachThatStillMovesIsSlow) {
  for (const double a : {1e-5, 1e-4, 3e-4}) {
    const auto one = [&](int k) { return 5 + std::exp(-a * k); };
    const auto three = [&](int k) { return k % 3 + (k % 3 - 0.5) * std::exp(-a * k); };
    const auto root = [&](int k) { return (k % 2 == 0 ? 1 : -1) / std::sqrt(k / (50 * a) + 1.0); };
    for (const auto& points : {sequence(400, 100, one), sequence(400, 100, three), sequence(400, 100, root)}) {
      const Recurrence found = find_period(points, kTolerance, 64);
      EXPECT_EQ(found.period, 0) << a;
      EXPECT_TRUE(found.slow) << a;
    }
  }
}

TEST(Period, OfWhatGrowsOrGoesRoundOrWandersIsNotSlow) {
  double x = 0.3;
  const auto even = [](int k) { return 0.01 * k; };
  const auto faster = [](int k) { return std::exp(1e-3 * k); };
  const auto torus = [](int k) { return std::sin(2 * M_PI * 0.6180339887 * k); };
  const auto chaos = [&](int) { return x = 3.9 * x * (1 - x); };
  for (const auto& points :
       {sequence(0, 100, even), sequence(0, 100, faster), sequence(0, 100, torus), sequence(0, 100, chaos)}) {
    const Recurrence found = find_period(points, kTolerance, 64);
    EXPECT_EQ(found.period, 0);
    EXPECT_FALSE(found.slow);
  }
}

TEST(Period, IsNotDisturbedByRounding) {
  const auto noisy = [](int k) { return (k % 3) + 1e-9 * std::sin(1e4 * k); };
  EXPECT_EQ(find_period(sequence(0, 100, noisy), kTolerance, 64).period, 3);
}

TEST(Period, CountsEveryComponentInItsOwnUnit) {
  std::vector<double> points;
  for (int k = 0; k < 60; ++k) {
    points.push_back(1000 + k % 2);  // period 2 if a difference of 1 counts
    points.push_back(1e-3 * (k % 3));
  }
  EXPECT_EQ(find_period(points, std::vector{0.5, 1e-4}, 20).period, 6);
  EXPECT_EQ(find_period(points, std::vector{5.0, 1e-4}, 20).period, 3);
  EXPECT_EQ(find_period(points, std::vector{0.5, 1.0}, 20).period, 2);
  EXPECT_EQ(find_period(points, std::vector{HUGE_VAL, 1e-4}, 20).period, 3);
}

TEST(Period, OfPointsThatAreNoNumbersIsNone) {
  EXPECT_EQ(find_period(sequence(0, 30, [](int) { return std::nan(""); }), kTolerance, 5).period, 0);
  EXPECT_EQ(find_period({}, kTolerance, 5).period, 0);
}

}  // namespace
}  // namespace saltus
