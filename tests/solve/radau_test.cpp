#include "solve/radau.hpp"

#include <cmath>
#include <complex>

#include <gtest/gtest.h>

#include "solve/radau_step.hpp"

namespace saltus {
namespace {

using Complex = Radau::Complex;

TEST(Radau, HasTheConstantsOfThreeStagesThatBooksPrint) {
  // Hairer & Wanner, Solving Ordinary Differential Equations II, table 5.6 and section IV.8.
  const Radau& r = radau(3);
  const double root = std::sqrt(6.0);
  EXPECT_NEAR(r.c[0], (4 - root) / 10, 1e-16);
  EXPECT_NEAR(r.c[1], (4 + root) / 10, 1e-16);
  EXPECT_EQ(r.c[2], 1);
  EXPECT_NEAR(r.A[0], (88 - 7 * root) / 360, 1e-16);
  EXPECT_NEAR(r.A[8], 1.0 / 9, 1e-16);
  EXPECT_NEAR(r.mu[0].real(), 3 + std::cbrt(3.0) * std::cbrt(3.0) - std::cbrt(3.0), 1e-14);
  EXPECT_NEAR(r.compare[0] * r.mu[0].real(), -(13 + 7 * root) / 3, 1e-13);
  EXPECT_NEAR(r.compare[1] * r.mu[0].real(), (-13 + 7 * root) / 3, 1e-13);
  EXPECT_NEAR(r.compare[2] * r.mu[0].real(), -1.0 / 3, 1e-14);
}

TEST(Radau, IntegratesPowersExactlyAndTheLastWeightsUpToTheDoubleDegree) {
  for (const int stages : {3, 5, 7}) {
    const Radau& r = radau(stages);
    const auto s = static_cast<size_t>(stages);
    for (size_t i = 0; i < s; ++i) {
      const int most = i + 1 == s ? 2 * stages - 1 : stages;  // the end of the step is of order 2s - 1
      for (int k = 1; k <= most; ++k) {
        double sum = 0;
        for (size_t j = 0; j < s; ++j) sum += r.A[i * s + j] * std::pow(r.c[j], k - 1);
        EXPECT_NEAR(sum, std::pow(r.c[i], k) / k, 1e-15) << stages << ' ' << i << ' ' << k;
      }
    }
  }
}

TEST(Radau, TransformsToEigenvaluesAndBack) {
  for (const int stages : {3, 5, 7}) {
    const Radau& r = radau(stages);
    const auto s = static_cast<size_t>(stages);
    for (size_t k = 0; k < r.mu.size(); ++k) {  // A v = v / mu
      double largest = 0;
      for (size_t i = 0; i < s; ++i) largest = std::max(largest, std::abs(r.from[k * s + i]));
      for (size_t i = 0; i < s; ++i) {
        Complex sum = 0;
        for (size_t j = 0; j < s; ++j) sum += r.A[i * s + j] * r.from[k * s + j];
        EXPECT_LT(std::abs(sum - r.from[k * s + i] / r.mu[k]), 1e-14 * largest) << stages << ' ' << k;
      }
    }
    for (size_t column = 0; column < s; ++column) {  // of the unit matrix
      for (size_t i = 0; i < s; ++i) {
        double sum = 0;
        for (size_t k = 0; k < r.mu.size(); ++k)
          sum += (k == 0 ? 1 : 2) * (r.from[k * s + i] * r.to[k * s + column]).real();
        EXPECT_NEAR(sum, i == column ? 1 : 0, 1e-9) << stages;
      }
    }
  }
}

/// x' = -rate (x - cos s) - sin s, whose slow solution is cos s.
struct Relaxing {
  double rate;
  bool operator()(double s, const double* x, double* out) const {
    out[0] = -rate * (x[0] - std::cos(s)) - std::sin(s);
    return true;
  }
};

double value_of(const RadauStep& step, double s) {
  double value = 0;
  for (size_t k = step.degree() + 1; k-- > 0;) value = value * s + step.polynomial()[k];
  return value;
}

TEST(RadauStep, StepsOverWhatHasSettled) {
  Mat J(1, 1);
  J(0, 0) = -1e8;
  RadauStep step(7, 1);
  step.linearise(J);
  const std::vector<double> x{1}, unit{1e-11};
  ASSERT_EQ(step.solve(Relaxing{1e8}, x, 0, 0.3, unit), RadauStep::Outcome::solved);
  EXPECT_LT(step.error(Relaxing{1e8}, x, 0, false), 1);
  for (const double s : {0.05, 0.1, 0.2, 0.3}) EXPECT_NEAR(value_of(step, s), std::cos(s), 1e-11) << s;
}

TEST(RadauStep, TellsErrorsBetweenStagesAndAtTheEnd) {
  // What it tells is no less than a hundredth of the truth, and never nothing.
  for (const double rate : {1.0, 1e3, 1e8}) {
    for (const double h : {0.5, 1.0, 2.0}) {
      Mat J(1, 1);
      J(0, 0) = -rate;
      RadauStep step(5, 1);
      step.linearise(J);
      const std::vector<double> x{1}, unit{1e-9};
      ASSERT_EQ(step.solve(Relaxing{rate}, x, 0, h, unit), RadauStep::Outcome::solved);
      const double told = 1e-9 * step.error(Relaxing{rate}, x, 0, false);
      double worst = 0;
      for (int k = 1; k <= 20; ++k)
        worst = std::max(worst, std::abs(value_of(step, k * h / 20) - std::cos(k * h / 20)));
      EXPECT_GT(told, 0.2 * worst) << rate << ' ' << h;
    }
  }
}

TEST(RadauStep, EndsStepsWithTwiceTheOrder) {
  // x' = -x: errors at the end fall like h^(2s) in one step.
  const auto decay = [](double, const double* x, double* out) {
    out[0] = -x[0];
    return true;
  };
  Mat J(1, 1);
  J(0, 0) = -1;
  const std::vector<double> x{1}, unit{1e-15};
  const auto error_of = [&](double h) {
    RadauStep step(3, 1);
    step.linearise(J);
    EXPECT_EQ(step.solve(decay, x, 0, h, unit), RadauStep::Outcome::solved);
    return std::abs(value_of(step, h) - std::exp(-h));
  };
  EXPECT_NEAR(std::log2(error_of(0.25) / error_of(0.125)), 6, 0.3);
}

TEST(RadauStep, SaysWhereRatesHaveNoValue) {
  const auto root = [](double, const double* x, double* out) {
    out[0] = -std::sqrt(x[0]);
    return x[0] >= 0;
  };
  Mat J(1, 1);
  J(0, 0) = -0.5;
  RadauStep step(3, 1);
  step.linearise(J);
  const std::vector<double> x{1}, unit{1e-9};
  EXPECT_EQ(step.solve(root, x, 0, 10, unit), RadauStep::Outcome::undefined);
}

}  // namespace
}  // namespace saltus
