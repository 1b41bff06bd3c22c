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

Program oscillator(const std::string& friction) {
  return Program(read_model_text("name = \"m\"\nequations = \"\"\"\ny' = v\nv' = sin(3*t) - y - " + friction +
                                     "\n\"\"\"\n[parameters]\nF = 2\n[initial]\ny = 0\nv = 0\n",
                                 "test.toml"));
}

TEST(Series, StickingIsAFormulaWhereFrictionDependsOnWhatSticks) {
  const Program program = oscillator("F*sign(v)*(0.25 + 0.75*exp(-abs(v)))");
  Series series(program, std::vector{2.0}, order);
  for (int use = 0; use < 20; ++use) {
    series.set_mode({"0", ""});
    EXPECT_FALSE(series.slope_varies()) << "v does not move";
    expect_sticking(series, 2);
    series.set_mode({use % 2 ? "+" : "-", ""});
    ASSERT_EQ(series.expand(std::vector{0.3, 0.0}, 0.7, {}, order), SeriesStatus::ok);
    EXPECT_NEAR(series.rate(1)[0], std::sin(2.1) - 0.3 + (use % 2 ? -2 : 2), 1e-15);
  }
  const Program pressed = oscillator("F*sign(v)*(1 + y^2)");
  Series varying(pressed, std::vector{2.0}, order);
  varying.set_mode({"0", ""});
  EXPECT_TRUE(varying.slope_varies()) << "y is moved by nothing that is known to rest";
  ASSERT_EQ(varying.expand(std::vector{0.3, 0.0}, 0.7, {}, order), SeriesStatus::ok);
  EXPECT_NEAR(varying.unknown(0)[0], (std::sin(2.1) - 0.3) / (2 * 1.09), 1e-15);
}

TEST(Series, GoOnFromTheCoefficientsTheyHave) {
  const Program program = oscillator("F*sign(v)");
  Series parts(program, std::vector{2.0}, order), whole(program, std::vector{2.0}, order);
  for (int use = 0; use < 20; ++use) {
    for (const char* mode : {"+", "0"}) {
      const std::vector<double> x{0.3 + use, mode[0] == '0' ? 0.0 : 0.5}, elsewhere{1.0, 0.0};
      const double t = 0.1 * use;
      for (Series* series : {&parts, &whole}) series->set_mode({mode, ""});
      for (const int up_to : {0, 1, 5, order}) ASSERT_EQ(parts.expand(x, t, {}, up_to), SeriesStatus::ok);
      ASSERT_EQ(whole.expand(elsewhere, t, {}, order), SeriesStatus::ok);
      ASSERT_EQ(whole.expand(x, t, {}, order), SeriesStatus::ok);
      for (int k = 0; k <= order; ++k) {
        EXPECT_EQ(parts.state(0)[k], whole.state(0)[k]);
        EXPECT_EQ(parts.rate(1)[k], whole.rate(1)[k]);
        EXPECT_EQ(parts.unknown(0)[k], whole.unknown(0)[k]);
      }
    }
  }
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
