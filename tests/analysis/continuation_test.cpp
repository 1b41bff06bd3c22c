// Curves with closed forms, followed by the driver alone.
#include "analysis/continuation.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace saltus {
namespace {

// On the circle x^2 + p^2 = 1 the test x - 0.6 vanishes twice, wherever the walk begins: also between the point that
// closes the curve and the first one.
TEST(Continuation, OfAClosedCurveSeesAllOfIt) {
  for (int k = 0; k < 60; ++k) {
    const double angle = 0.05 + 2 * M_PI * k / 60;
    if (std::abs(std::abs(std::sin(angle)) - 1) < 0.02) continue;  // there p is no unknown to begin with
    std::vector<double> zeros;
    int points = 0;
    Followed circle;
    circle.equations = [](const Vec& z, Vec& r, Mat& J) {
      r.resize(1);
      r[0] = z[0] * z[0] + z[1] * z[1] - 1;
      J.resize(1, 2);
      J(0, 0) = 2 * z[0];
      J(0, 1) = 2 * z[1];
      return true;
    };
    circle.scale = [] { return Vec::Ones(2); };
    circle.tests = [](const CurvePoint& p) { return std::vector<saltus::Test>{{.name = "x", .value = p.z[0] - 0.6}}; };
    circle.point = [&](const CurvePoint&) { return ++points > 0; };
    circle.special = [&](const Located& l) {
      zeros.push_back(l.point.last());
      return true;
    };
    Continuation curve(circle, {.bounds = {{-2, 2}}, .largest_step = 0.2});
    Vec z(2);
    z[0] = std::cos(angle);
    z[1] = std::sin(angle);
    const std::optional<CurvePoint> start = curve.start(z);
    ASSERT_TRUE(start) << angle;
    EXPECT_EQ(curve.walk(*start).why, "closed") << angle;
    ASSERT_EQ(zeros.size(), 2u) << angle;
    EXPECT_NEAR(std::abs(zeros[0]), 0.8, 1e-12);
    EXPECT_NEAR(zeros[0] + zeros[1], 0, 1e-12);
  }
}

}  // namespace
}  // namespace saltus
