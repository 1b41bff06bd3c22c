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

// Not every last bit is the same with a schedule and without one.
TEST(Series, LargeModesGetTheirScheduleAtTheSameUseOfEveryRun) {
  const Program program(read_model_text(
      "name = \"m\"\nequations = \"\"\"\nx[i]' = tanh(x[i]) - sign(x[i])*cos(x[i]) for i = 1..200\n\"\"\"\n"
      "[initial]\n\"x[i]\" = 0.5\n",
      "test.toml"));
  const Mode mode{std::string(200, '+'), ""};
  const std::vector<double> x(200, 0.5);
  const auto first_scheduled = [&](Series& series) {
    series.reset();
    series.set_mode(mode);
    for (int use = 1; use < 1000; ++use) {
      if (series.expand(x, 0, {}, order) != SeriesStatus::ok) return -1;
      if (series.plain()) return use;
    }
    return 0;
  };
  Series series(program, {}, order);
  const int first = first_scheduled(series);
  EXPECT_GT(first, 1);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(first_scheduled(series), first);
}

// Plans are forgotten where a run meets many modes; what a run finds does not depend on how many were met before it.
TEST(Series, WhatARunForgetsIsItsOwn) {
  const Program program(read_model_text(
      "name = \"m\"\nequations = \"x[i]' = -sign(x[i]) for i = 1..12\"\n[initial]\n\"x[i]\" = 0.5\n", "test.toml"));
  const auto mode = [](int k) {
    Mode out{std::string(12, '+'), ""};
    for (size_t i = 0; i < 12; ++i) out.switches[i] = (k >> i) % 2 == 1 ? '-' : '+';
    return out;
  };
  constexpr int best = 7, other = 9;
  const auto order_on_return = [&](Series& series, int first, int count) {
    series.reset();
    series.set_mode(mode(0));
    series.usual_order() = best;
    series.set_mode(mode(first));
    series.usual_order() = other;
    for (int k = 1; k < count; ++k) series.set_mode(mode(first + k));
    series.set_mode(mode(0));
    return series.usual_order();
  };
  Series series(program, {}, order);
  for (const int first : {1, 1001, 2001, 3001}) EXPECT_EQ(order_on_return(series, first, 1000), best);
  EXPECT_EQ(order_on_return(series, 1, 4000), other) << "memory has a bound";
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
