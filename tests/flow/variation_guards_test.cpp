#include <gtest/gtest.h>

#include "flow/variation.hpp"
#include "model/read.hpp"

namespace saltus {
namespace {

/// At rest a spring is held by sigma = -k*x/mu, up to the ratio s.
TEST(VariationGuards, BoundsOfSigmaMoveWithForceAndRatio) {
  const Program program(read_model_text(R"M(
equations = """
  x' = v
  v' = -k*x - mu*sign(v, s)
"""
[parameters]
k = 2
mu = 4
s = 1.5
[initial]
x = -1
v = 0
)M"));
  RunOptions options;
  options.parameters = parameter_values(program.model());
  Variation variation(program, options);
  const Arc held{Mode{"0", ""}, {}};
  const std::vector<double> x{-1, 0};
  const Mat each = Mat::Identity(3, 3);
  for (const auto& [kind, bound, by_ratio] :
       {std::tuple{GuardKind::sigma, 1.5, -1.0}, std::tuple{GuardKind::slip, 1.0, 0.0}}) {
    const Variation::GuardSlope slope = variation.guard({kind, 0, 1}, held, x, 0, each);
    EXPECT_NEAR(slope.value, 0.5 - bound, 1e-14);
    EXPECT_NEAR(slope.by_state[0], -0.5, 1e-14);        // -k/mu
    EXPECT_NEAR(slope.by_parameter[0], 0.25, 1e-14);    // -x/mu
    EXPECT_NEAR(slope.by_parameter[1], -0.125, 1e-14);  // k*x/mu^2
    EXPECT_NEAR(slope.by_parameter[2], by_ratio, 1e-14);
    EXPECT_NEAR(slope.by_time, 0, 1e-14);
    Mat X = Mat::Zero(2, 5), P = Mat::Zero(3, 5);
    X.leftCols(2).setIdentity();
    P.rightCols(3) = each;
    const Variation::GuardSeries series = variation.guard_series({kind, 0, 1}, held, x, 0, 2, X, P);
    EXPECT_NEAR(series.value[0], slope.value, 1e-14);
    EXPECT_LT((series.tangent.row(0).head(2).transpose() - slope.by_state).norm(), 1e-14);
    EXPECT_LT((series.tangent.row(0).tail(3).transpose() - slope.by_parameter).norm(), 1e-14);
  }
}

}  // namespace
}  // namespace saltus
