#include <cmath>

#include <gtest/gtest.h>

#include "branches.hpp"
#include "model/read.hpp"
#include "run_of.hpp"

// Curves of special points in two parameters, and what is special on them.

namespace saltus {
namespace {

// A fixed point has y = x, a = x^2 + (1 - b) x and the trace -2x: a multiplier is -1 at x = (1 - b)/2, the other one is
// b then. Both are -1 at b = -1, x = 1, a = 3 (Kuznetsov, sec. 4.4); at b = 1 the other one is 1, a = 0.
TEST(SpecialCurve, OfTheHenonMapsFlipsPassesAStrongResonance) {
  const Model model = read_model_text(R"M(
equations = """
  x' = 0
  y' = 0
"""
[parameters]
a = 0.2
b = 0.3
[jump.tick]
every = 1
set = { x = "a - x^2 + b*y", y = "x" }
[section.ticks]
on = "tick"
[initial]
x = 0.3
y = 0.3
)M");
  const OrbitOptions start{.run = run_of(model), .section = 0};
  BranchOptions range{.parameter = 0, .low = 0.2, .high = 0.6};
  const Branch first = follow_orbit(model, start, range);
  const auto flips = of_type(first, "flip");
  ASSERT_EQ(flips.size(), 1u);
  range = {.parameter = 0, .low = -1, .high = 4, .second = 1, .second_low = -1.3, .second_high = 1.2};
  const Branch curve = begun_at(*flips[0], model, start, range);
  ASSERT_TRUE(curve.found) << curve.message;
  const auto resonances = of_type(curve, "resonance 1:2"), both = of_type(curve, "fold-flip");
  ASSERT_EQ(resonances.size(), 1u);
  EXPECT_NEAR(resonances[0]->values[0], 3, 1e-9);
  EXPECT_NEAR(resonances[0]->values[1], -1, 1e-9);
  ASSERT_EQ(both.size(), 1u);
  EXPECT_NEAR(both[0]->values[0], 0, 1e-9);
  EXPECT_NEAR(both[0]->values[1], 1, 1e-9);
}

// x' = -k x + c + A cos t - sign(x). A slide is split where its forcing c + A cos t touches -1, at t = pi: A = c + 1.
// It is left where the forcing rises to 1, cos t0 = (1 - c)/A, and entered after a free motion with x > 0; that this
// ends at t = 3 pi is one equation for c (mpmath, 30 digits): beyond, the slide begins after the place where it would
// split.
TEST(SpecialCurve, OfAddingSlidingEndsWhereTheSlideIsEnteredThere) {
  const Model model = read_model_text(R"M(
equations = """
  x' = -k*x + c + A*cos(t) - F*sign(x)
"""
[parameters]
c = 1.2
A = 1.8
F = 1
k = 0.3
[section.strobe]
every = "2*pi"
[initial]
x = 5
)M");
  const OrbitOptions start{.run = run_of(model), .section = 0};
  BranchOptions range{.parameter = 0, .low = 0.2, .high = 1.4};
  const auto splits = [&] {
    const Branch first = follow_orbit(model, start, range);
    for (const SpecialPoint& s : first.special)
      if (s.type == "adding-sliding") return s;
    return SpecialPoint{};
  }();
  ASSERT_FALSE(splits.values.empty());
  EXPECT_NEAR(splits.values[0], 0.8, 1e-9);
  range = {.parameter = 0, .low = 0.4, .high = 1.5, .second = 1, .second_low = 1.3, .second_high = 2.4};
  const Branch curve = begun_at(splits, model, start, range);
  ASSERT_TRUE(curve.found) << curve.message;
  const auto ends = of_type(curve, "degenerate");
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_NEAR(ends[0]->values[0], 1.04211587949473, 1e-9);
  EXPECT_NEAR(ends[0]->values[1], 2.04211587949473, 1e-9);
  for (const BranchPoint& p : curve.points) EXPECT_NEAR(p.values[1] - p.values[0], 1, 1e-9);
}

// The Bautin normal form: r' = r (b1 + b2 r^2 - r^4) has a fold of cycles at r^2 = b2/2, b1 = -b2^2/4. By its symmetry
// the whole row of an equation vanishes there but for the parameters.
TEST(SpecialCurve, OfFoldsGoesThroughASymmetricNormalForm) {
  const Model model = read_model_text(R"M(
equations = """
  x' = b1*x - y + x*(b2*r2 - r2^2)
  y' = x + b1*y + y*(b2*r2 - r2^2)
  r2 = x^2 + y^2
"""
[parameters]
b1 = -0.1
b2 = 1
[section.turn]
on = "y"
direction = "rising"
[initial]
x = 1
y = 0
)M");
  const OrbitOptions start{.run = run_of(model), .section = 0};
  BranchOptions range{.parameter = 0, .low = -0.3, .high = 0.3};
  const Branch first = follow_orbit(model, start, range);
  ASSERT_EQ(of_type(first, "fold").size(), 1u);
  range = {.parameter = 0, .low = -1, .high = 0.5, .second = 1, .second_low = 0.1, .second_high = 2};
  const Branch curve = begun_at(*of_type(first, "fold")[0], model, start, range);
  ASSERT_TRUE(curve.found) << curve.message;
  EXPECT_GT(curve.points.size(), 20u);
  for (const BranchPoint& p : curve.points) EXPECT_NEAR(p.values[0], -p.values[1] * p.values[1] / 4, 1e-12);
  for (const BranchEnd& end : curve.ends) EXPECT_EQ(end.why, "range") << end.detail;
}

// The FitzHugh-Nagumo system: on the Hopf curve v^2 = 1 - ep b the first Lyapunov coefficient has the sign of
// -1 + 2 b - ep b^2 (Guckenheimer & Holmes, eq. 3.4.11).
TEST(SpecialCurve, OfHopfPointsHasABautinPoint) {
  const Model model = read_model_text(R"M(
equations = """
  v' = v - v^3/3 - w + I
  w' = ep*(v + a - b*w)
"""
[parameters]
I = 0
b = 0.4
ep = 0.08
a = 0.7
[initial]
v = -1
w = -0.7
)M");
  const EquilibriumOptions start{run_of(model)};
  BranchOptions range{.parameter = 0, .low = -1, .high = 0.8};
  const Branch rest = follow_equilibrium(model, start, range);
  const auto hopfs = of_type(rest, "hopf");
  ASSERT_EQ(hopfs.size(), 1u);
  EXPECT_TRUE(hopfs[0]->detail.ends_with("supercritical")) << hopfs[0]->detail;
  EquilibriumOptions near = start;
  near.run.parameters[0] = hopfs[0]->near_values[0];
  near.run.initial = hopfs[0]->near_state;
  range = {.parameter = 0, .low = -2, .high = 2, .second = 1, .second_low = 0.1, .second_high = 0.9};
  range.seek = {"hopf", hopfs[0]->values[0]};
  const Branch curve = follow_equilibrium(model, near, range);
  ASSERT_TRUE(curve.found) << curve.message;
  const auto bautin = of_type(curve, "bautin");
  ASSERT_EQ(bautin.size(), 1u);
  const double b = (1 - std::sqrt(1 - 0.08)) / 0.08, v = -std::sqrt(1 - 0.08 * b);
  EXPECT_NEAR(bautin[0]->values[1], b, 1e-9);
  EXPECT_NEAR(bautin[0]->values[0], v * v * v / 3 - v + (v + 0.7) / b, 1e-9);
}

}  // namespace
}  // namespace saltus
