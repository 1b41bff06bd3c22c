#include "model/period.hpp"

#include <numbers>

#include <gtest/gtest.h>

#include "expr/print.hpp"
#include "model/model_builder.hpp"

namespace saltus {
namespace {

constexpr double pi_value = std::numbers::pi;

std::optional<Period> period_of(const std::string& rate, double w = 2, double c = 3) {
  const Model m = ModelBuilder("m")
                      .equations("x' = " + rate)
                      .parameter("w", w)
                      .parameter("c", c)
                      .parameter("f0", 50)
                      .parameter("T", 0.25)
                      .initial("x", 0)
                      .build();
  return period_in_time(m, parameter_values(m));
}

void expect_period(const std::string& rate, const std::string& formula, double value) {
  const auto p = period_of(rate);
  ASSERT_TRUE(p) << rate;
  EXPECT_EQ(print(p->formula), formula) << rate;
  EXPECT_NEAR(p->value, value, 1e-14 * value) << rate;
}

TEST(Period, OfOneHarmonicIsItsTurn) {
  expect_period("sin(w*t)", "2*pi/w", pi_value);
  expect_period("x - c*cos(t*w + x)^2", "2*pi/w", pi_value);
  expect_period("tan(w*t/c)", "pi/(w/c)", pi_value * 1.5);
  expect_period("sin(t)", "2*pi", 2 * pi_value);
}

TEST(Period, CancelsPi) {
  expect_period("sign(sin(2*pi*f0*t))", "1/f0", 0.02);
  expect_period("cos(pi*t)", "2", 2);
}

TEST(Period, OfModIsItsModulusOverTheSlope) {
  expect_period("mod(t, T)/T - x", "T", 0.25);
  expect_period("mod(w*t, T)", "T/w", 0.125);
}

TEST(Period, OfANegativeFrequencyIsPositive) {
  const auto p = period_of("sin(w*t)", -4);
  ASSERT_TRUE(p);
  EXPECT_NEAR(p->value, pi_value / 2, 1e-14);
}

TEST(Period, OfCommensurableHarmonicsIsTheLeastCommonMultiple) {
  expect_period("sin(w*t) + sin(2*w*t)", "2*pi/w", pi_value);
  const auto p = period_of("sin(w*t) + cos(c*t)");  // pi and 2*pi/3
  ASSERT_TRUE(p);
  EXPECT_NEAR(p->value, 2 * pi_value, 1e-13);
  const auto q = period_of("sin(t/4) + sin(t/6)");  // 8*pi and 12*pi
  ASSERT_TRUE(q);
  EXPECT_NEAR(q->value, 24 * pi_value, 1e-12);
}

TEST(Period, OfIncommensurableHarmonicsIsNotEvident) {
  EXPECT_FALSE(period_of("sin(t) + sin(sqrt(2)*t)"));
  EXPECT_FALSE(period_of("sin(w*t) + mod(t, T)"));
}

TEST(Period, IsNotEvidentWhereTimeStandsElsewhere) {
  EXPECT_FALSE(period_of("t"));
  EXPECT_FALSE(period_of("sin(t^2)"));
  EXPECT_FALSE(period_of("sin(x*t)"));
  EXPECT_FALSE(period_of("exp(-t)*sin(w*t)"));
  EXPECT_FALSE(period_of("floor(t/T)"));
  EXPECT_FALSE(period_of("-x"));
}

TEST(Period, IgnoresTimeThatCancelsOrHasNoFrequency) {
  expect_period("sin(w*t) + ((c*t - x) - c*t)", "2*pi/w", pi_value);
  EXPECT_FALSE(period_of("sin(w*t)", 0));
}

TEST(Period, LooksThroughNamesAndAtGaps) {
  const Model m = ModelBuilder("m")
                      .equations("q' = v\n v' = -1 + N\n table = A*sin(phase)\n phase = w*t\n unused = t^2")
                      .parameter("A", 0.1)
                      .parameter("w", 4)
                      .initial("q", 1)
                      .initial("v", 0)
                      .constraint("N", "q - table", "0.5")
                      .build();
  const auto p = period_in_time(m, parameter_values(m));
  ASSERT_TRUE(p);
  EXPECT_EQ(print(p->formula), "2*pi/w");
}

TEST(Period, SurvivesTenThousandChainedNames) {
  std::string lines = "x' = a9999\n a0 = w*t\n";
  for (int i = 1; i < 10000; ++i) lines += "a" + std::to_string(i) + " = a" + std::to_string(i - 1) + " + 1\n";
  const Model m = ModelBuilder("m").equations(lines).parameter("w", 4).initial("x", 0).build();
  EXPECT_FALSE(period_in_time(m, parameter_values(m)));
}

}  // namespace
}  // namespace saltus
