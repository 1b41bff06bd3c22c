#include "analysis/shooting_step.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "analysis/branch.hpp"
#include "analysis/leg_chain.hpp"
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
      const bool behind_parts = i >= 2 && legs[i - 2].end == Leg::End::part;  // it would be a share of two legs
      if (i % 7 == 5 && legs[i].end == Leg::End::guard && !behind_parts)
        legs[i].end = Leg::End::time, legs[i].share = 0.5;
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
  EXPECT_TRUE(LegChain::fits(system.legs));
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

/// With a parameter that moves all legs, and a border at random: how far the solution leg by leg is from that of the
/// whole matrix; not a number where the signs of the determinants differ.
double off_with_border(RandomLegs system, bool forced, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> number(-1, 1);
  for (LegSlopes& of_leg : system.slopes) {
    of_leg.z.conservativeResize(2, 5), of_leg.h.conservativeResize(1, 5);
    for (Index j = 0; j < 2; ++j) of_leg.z(j, 4) = number(random) * unit_of[j];
    of_leg.h(0, 4) = number(random) * unit_of[2];
  }
  const Model model = read_model_text(
      "equations = \"\"\"\n x' = v\n v' = -a*x\n\"\"\"\n[parameters]\na = 1\n[initial]\nx = 1\nv = 0\n");
  const Program program(model);
  Shooting shooting(program, run_of(model), forced, 1);
  shooting.bind({1.0}, Mat::Identity(1, 1));
  const Closing closing{.free = {false, false}, .sign = Vec::Ones(2), .shift = Vec::Zero(2)};
  const Index size = system.r.size();
  Vec units(size + 1), border(size + 1), right(size + 1);
  for (Index k = 0; k < size; ++k) units[k] = unit_of[k % 3];
  units[size] = 1;
  for (Index k = 0; k <= size; ++k) border[k] = number(random);
  const Vec start_by = Vec::Constant(1, 0.3 * unit_of[2]);
  Mat all(size + 1, size + 1);
  all.topRows(size) = shooting.matrix_of(system.legs, closing, system.slopes, start_by) * units.asDiagonal();
  all.row(size) = border.transpose();
  right.head(size) = system.r;
  right[size] = 0.7;
  for (Index i = 0; i < size; ++i) {
    const double length = all.row(i).norm();
    all.row(i) /= length;
    right[i] /= length;
  }
  EXPECT_TRUE(LegChain::fits(system.legs));
  LegChain chain(shooting, system.legs, closing, system.slopes, units, Vec::Zero(size), start_by);
  chain.set_border(border);
  const Lu whole(all), ends(chain.ends());
  if (!(chain.sign() * ends.determinant() * whole.determinant() > 0)) return std::nan("");
  const LegChain::RightSide reduced = chain.reduce(system.r, 0.7);
  const Vec expected = whole.solve(right);
  return (chain.expand(reduced, ends.solve(reduced.ends)) - expected).max_abs() / expected.max_abs();
}

TEST(LegChain, WithAParameterAndABorderSolvesTheMatrixOfAllAndKnowsTheSignOfItsDeterminant) {
  for (const bool forced : {false, true}) {
    for (const size_t legs : {25, 26, 27, 30}) {
      for (unsigned seed = 1; seed < 9; ++seed)
        EXPECT_LT(off_with_border({legs, 1.0, seed}, forced, seed), 1e-10) << forced << " " << legs << " " << seed;
    }
  }
}

// As below, with the amplitude A of the drive: x(0) = A/2 - 0.3 tanh(h/2), h = pi/100, and no point is special.
TEST(LegChain, CarriesABranchWithTwoHundredEvents) {
  const Model model = read_model_text(R"M(
equations = "x' = -x + A*cos(t) + 0.3*sign(sin(100*t))"
[parameters]
A = 0.5
[initial]
x = 0.2
[section.s]
every = "2*pi"
)M");
  const Branch branch = follow_orbit(model, {.run = run_of(model), .section = 0, .guess = true},
                                     {.parameter = 0, .low = 0.5, .high = 0.51});
  ASSERT_TRUE(branch.found) << branch.message;
  EXPECT_TRUE(branch.special.empty());
  EXPECT_EQ(branch.points.back().values[0], 0.51);
  for (const auto& point : branch.points)
    EXPECT_NEAR(point.state[0], 0.5 * point.values[0] - 0.3 * std::tanh(M_PI / 200), 1e-11) << point.values[0];
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
