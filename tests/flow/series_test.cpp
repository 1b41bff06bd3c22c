// The series of a mode.
#include "flow/series.hpp"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "model/read.hpp"

namespace saltus {
namespace {

constexpr int order = 15;

/// sigma = (sin(w t) - y)/F and all its derivatives while v = 0.
void expect_sticking(Series& series, double F) {
  constexpr double y = 0.3, t = 0.7, w = 3;
  ASSERT_EQ(series.expand(std::vector{y, 0.0}, t, {}, order), SeriesStatus::ok);
  double factor = 1 / F;
  for (int k = 0; k <= order; ++k) {
    const double expected = factor * std::sin(w * t + k * std::numbers::pi / 2) - (k == 0 ? y / F : 0);
    EXPECT_NEAR(series.unknown(0)[k], expected, 4e-15 * factor) << "coefficient " << k;
    EXPECT_EQ(series.state(1)[k], 0) << "v stays where it is, exactly";
    factor *= w / (k + 1);
  }
}

TEST(Series, StickingIsAFormulaOnceItsModeIsUsedOften) {
  const Program program(
      read_model_text("name = \"m\"\nequations = \"\"\"\ny' = v\nv' = sin(3*t) - y - F*sign(v)\n\"\"\"\n"
                      "[parameters]\nF = 2\n[initial]\ny = 0\nv = 0\n",
                      "test.toml"));
  Series series(program, std::vector{2.0}, order);
  for (int use = 0; use < 20; ++use) {
    series.set_mode({"0", ""});
    expect_sticking(series, 2);
    series.set_mode({use % 2 ? "+" : "-", ""});
    ASSERT_EQ(series.expand(std::vector{0.3, 0.0}, 0.7, {}, order), SeriesStatus::ok);
    EXPECT_NEAR(series.rate(1)[0], std::sin(2.1) - 0.3 + (use % 2 ? -2 : 2), 1e-15);
    EXPECT_EQ(series.unknown(0)[1], 0) << "the series of sticking are gone";
  }
  series.bind(std::vector{5.0});
  series.set_mode({"0", ""});
  expect_sticking(series, 5);
}

TEST(Series, KnowsHowSigmaMovesARateWhereThatIsANumber) {
  const Program program(read_model_text(
      "name = \"m\"\nequations = \"\"\"\nx' = v\nv' = -x - F*sign(v) - sign(x)\n\"\"\"\n[parameters]\nF = 2\n"
      "[initial]\nx = 0\nv = 0\n",
      "test.toml"));
  Series series(program, std::vector{2.0}, order);
  series.set_mode({"++", ""});
  EXPECT_EQ(series.side_slope(0), -2.0);
  EXPECT_EQ(series.side_slope(1), 0.0) << "x' = v, whatever sigma is";
}

}  // namespace
}  // namespace saltus
