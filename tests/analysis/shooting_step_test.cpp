#include "analysis/shooting_step.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "analysis/orbit.hpp"
#include "model/read.hpp"
#include "run_of.hpp"

namespace saltus {
namespace {

/// What x, v and times are measured by.
constexpr double unit_of[] = {1e-3, 1, 50, 50};

/// Legs of two states with slopes at random; some are as long as the next one, some half of the one before.
struct RandomLegs {
  RandomLegs(size_t count, double growth, unsigned seed) : legs(count), slopes(count) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> number(-1, 1);
    for (size_t i = 0; i < count; ++i) {
      legs[i].end = i + 1 == count ? Leg::End::clock : Leg::End::guard;
      if (i % 5 == 2) legs[i].end = Leg::End::part;
      if (i % 7 == 5 && legs[i].end == Leg::End::guard) legs[i].end = Leg::End::time, legs[i].share = 0.5;
      legs[i].x = Vec::Zero(2);
      slopes[i].z = Mat::Zero(2, 4), slopes[i].h = Mat::Zero(1, 4);
      for (Index k = 0; k < 4; ++k) {
        for (Index j = 0; j < 2; ++j) slopes[i].z(j, k) = growth * number(random) * unit_of[j] / unit_of[k];
        // Ends are met with speed, and come and go little with time.
        slopes[i].h(0, k) = ((k == 2 ? 2 : 0) + (k == 3 ? 0.05 : 1) * number(random)) * unit_of[2] / unit_of[k];
      }
      if (legs[i].end == Leg::End::part || legs[i].share > 0) slopes[i].h = Mat::Zero(1, 4), slopes[i].h(0, 2) = 1;
    }
    r = Vec::Zero(3 * static_cast<Index>(count));
    for (Index k = 0; k < r.size(); ++k) r[k] = number(random) * unit_of[k % 3];
  }
  std::vector<Leg> legs;
  std::vector<LegSlopes> slopes;
  Vec r;
};

/// How far J x is from r, of the largest x, in units; x is the solution leg by leg.
double left_over(RandomLegs system, bool forced, bool free) {
  for (LegSlopes& of_leg : system.slopes) {  // nothing depends on a state that is free
    if (free) of_leg.z(0, 0) = 1, of_leg.z(1, 0) = of_leg.h(0, 0) = 0;
  }
  const Model model = read_model_text("equations = \"\"\"\n x' = v\n v' = -x\n\"\"\"\n[initial]\nx = 1\nv = 0\n");
  const Program program(model);
  const Shooting shooting(program, run_of(model), forced, 1);
  const Closing closing{.free = {free, false}, .sign = Vec::Ones(2), .shift = Vec::Zero(2)};
  Vec units(system.r.size());
  for (Index k = 0; k < units.size(); ++k) units[k] = unit_of[k % 3];
  const ShootingStep step(shooting, system.legs, closing, system.slopes, units, units);
  EXPECT_FALSE(step.family());
  Vec right = system.r;
  if (free) right[right.size() - 3] = 0;
  const Mat J = shooting.matrix_of(system.legs, closing, system.slopes);
  const Vec y = step.solve(right);
  return (J * units.cwiseProduct(y) - right).cwiseQuotient(units).max_abs() / y.max_abs();
}

TEST(ShootingStep, OfManyLegsSolvesTheMatrixOfAll) {
  for (const bool forced : {false, true}) {
    for (const bool free : {false, true}) {
      for (const double growth : {0.3, 1.0, 10.0}) {
        EXPECT_LT(left_over({40, growth, 1}, forced, free), 1e-12) << forced << free << growth;
        EXPECT_LT(left_over({173, growth, 2}, forced, free), 1e-12) << forced << free << growth;
      }
    }
  }
}

// x' = -x + cos(t) + 0.3 s(t), s a square wave with steps every h = pi/1000: x(0) = 1/2 - 0.3 tanh(h/2) by
// superposition. Work that grew with the cube of the number of legs took a minute for each of these.
TEST(ShootingStep, SolvesOrbitsWithTwoThousandEvents) {
  const double expected = 0.5 - 0.3 * std::tanh(M_PI / 2000);
  const Model driven = read_model_text(R"M(
equations = "x' = -x + cos(t) + 0.3*sign(sin(1000*t))"
[initial]
x = 0.4
[section.s]
every = "2*pi"
)M");
  const Orbit by_clock = find_orbit(driven, {.run = run_of(driven), .section = 0, .guess = true});
  ASSERT_TRUE(by_clock.found) << by_clock.message;
  EXPECT_NEAR(by_clock.state[0], expected, 1e-12);
  EXPECT_GE(by_clock.legs.size(), 1999u);
  EXPECT_NEAR(by_clock.multipliers[0].real(), std::exp(-2 * M_PI), 1e-12);
  EXPECT_LE(by_clock.iterations, 4);

  const Model turning = read_model_text(R"M(
equations = """
  x' = -x + cos(a) + 0.3*sign(sin(1000*a))
  a' = 1
"""
[initial]
x = 0.4
a = 0.001
[section.s]
on = "sin(a - 0.001)"
direction = "rising"
)M");
  const Orbit by_section =
      find_orbit(turning, {.run = run_of(turning), .section = 0, .guess = true, .modulo = {{1, 2 * M_PI}}});
  ASSERT_TRUE(by_section.found) << by_section.message;
  // From x(0) = `expected` by the closed form: the steady (cos + sin)/2, and the rest, which decays towards 0.3.
  const double a = 0.001, steady = 0.5 * (std::cos(a) + std::sin(a));
  EXPECT_NEAR(by_section.state[0], steady + 0.3 + (expected - 0.5 - 0.3) * std::exp(-a), 1e-11);
  EXPECT_NEAR(by_section.period, 2 * M_PI, 1e-11);
  ASSERT_EQ(by_section.multipliers.size(), 1u);
  EXPECT_NEAR(by_section.multipliers[0].real(), std::exp(-2 * M_PI), 1e-11);
  EXPECT_LE(by_section.iterations, 4);
}

}  // namespace
}  // namespace saltus
