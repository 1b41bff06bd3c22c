// One smooth step in one mode.
#include "flow/smooth.hpp"

#include <cmath>

#include <fmt/format.h>
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
  RunOptions options{.initial = {1, 0}, .until = 5, .tolerance = 1e-12};
  const OrderTable orders = order_table(local_tolerance(options.tolerance), order);
  Smooth smooth(series, order, orders, options);
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
  RunOptions options{.initial = {0}, .until = 1, .tolerance = 1e-10};
  const OrderTable orders = order_table(local_tolerance(options.tolerance), order);
  Smooth smooth(series, order, orders, options);
  const Moment now{.x = {0}, .mode = {}};
  ASSERT_EQ(smooth.begin(now), SeriesStatus::ok);
  EXPECT_EQ(smooth.natural({}), 0);
  EXPECT_EQ(smooth.analytic_order(), 1);
  EXPECT_GT(smooth.tangent_length(now, 1, 1), 0);
  EXPECT_LT(smooth.tangent_length(now, 1, 1), 1e-7) << "sqrt(tau) stays below 1e-4";
}

TEST(Smooth, TrustsLinearFlowsNoFartherThanTheirSinesAreKnown) {
  // At t = 0 the first terms of the drive vanish: x looks constant, and is not.
  const std::vector<double> frequency{1, 2, 3, 4, 5, 6};
  // Weights w with sum w_j f_j^k = 0 for k = 1, 3, .. 9: from Lagrange's polynomials in f^2, divided by f.
  std::vector<double> w;
  std::string sum;
  for (const double f : frequency) {
    double product = f;
    for (const double g : frequency) product *= g == f ? 1 : f * f - g * g;
    w.push_back(1e6 / product);
    sum += fmt::format("{}{:.17g}*sin({}*t)", sum.empty() ? "" : " + ", w.back(), f);
  }
  const Program program(
      read_model_text("name = \"m\"\nequations = \"x' = " + sum + "\"\n[initial]\nx = 0\n", "test.toml"));
  constexpr int order = 9;
  Series series(program, {}, order);
  RunOptions options{.initial = {0}, .until = 5, .tolerance = 1e-9};
  const OrderTable orders = order_table(local_tolerance(options.tolerance), order);
  Smooth smooth(series, order, orders, options);
  const Moment now{.x = {0}, .mode = {}};
  ASSERT_EQ(smooth.begin(now), SeriesStatus::ok);
  ASSERT_LT(std::abs(series.state(0)[order]), 1e-6) << "the series tells nothing";
  smooth.natural({});
  smooth.cut(now, 1.0);
  EXPECT_FALSE(smooth.trusts(now, 1.0, {}));
}

}  // namespace
}  // namespace saltus
