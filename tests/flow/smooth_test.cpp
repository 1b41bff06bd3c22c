// One smooth step in one mode.
#include "flow/smooth.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "model/read.hpp"

namespace saltus {
namespace {

TEST(Smooth, StepsFollowTheFlowOfTheirModeThroughItsSurfaces) {
  // Frozen in '+', the flow of x' = v, v' = -x - sign(v) goes on where v < 0: v = -sin(t)(x0 + 1), no event is looked
  // for.
  const Program program(read_model_text(
      "name = \"m\"\nequations = \"\"\"\nx' = v\nv' = -x - sign(v)\n\"\"\"\n[initial]\nx = 1\nv = 0\n", "test.toml"));
  constexpr int order = 20;
  Series series(program, {}, order);
  const std::vector<double> ratio(order + 1, 1.0);
  RunOptions options{.initial = {1, 0}, .until = 5, .tolerance = 1e-12};
  Smooth smooth(series, order, ratio, options);
  Moment now{.x = {1, 0}, .mode = {"+", ""}, .known = {0}};
  while (now.t() < 5) {
    ASSERT_EQ(smooth.begin(now), SeriesStatus::ok);
    double length = std::min(smooth.natural({}), 5 - now.t());
    smooth.cut(now, length);
    ASSERT_TRUE(smooth.trusts(now, length, {}));
    now.x = smooth.end();
    now.clock.advance(length);
  }
  EXPECT_NEAR(now.x[0], -1 + 2 * std::cos(5.0), 1e-11);
  EXPECT_NEAR(now.x[1], -2 * std::sin(5.0), 1e-11);
}

TEST(Smooth, TellsWhereASeriesEnds) {
  const Program program(
      read_model_text("name = \"m\"\nequations = \"x' = sqrt(x) + 1\"\n[initial]\nx = 0\n", "test.toml"));
  constexpr int order = 10;
  Series series(program, {}, order);
  const std::vector<double> ratio(order + 1, 1.0);
  RunOptions options{.initial = {0}, .until = 1, .tolerance = 1e-10};
  Smooth smooth(series, order, ratio, options);
  const Moment now{.x = {0}, .mode = {}};
  ASSERT_EQ(smooth.begin(now), SeriesStatus::ok);
  EXPECT_EQ(smooth.natural({}), 0);
  EXPECT_EQ(smooth.analytic_order(), 1);
  EXPECT_GT(smooth.tangent_length(now, 1, 1), 0);
  EXPECT_LT(smooth.tangent_length(now, 1, 1), 1e-7) << "sqrt(tau) stays below 1e-4";
}

}  // namespace
}  // namespace saltus
