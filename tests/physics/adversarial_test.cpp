// Situations made to be hard: touches, cusps, corners, redundant surfaces, accumulations, extreme scales. Every answer
// is a closed form, derived beside the test.

#include <gtest/gtest.h>

#include "physics.hpp"

namespace saltus::physics {
namespace {

using enum EventKind;

// ---- touching ---------------------------------------------------------------------------------------------------

// x = t - 1, y = x^2/2 + (y0 - 1/2): a parabola over the surface y = 0, z counts the sides.
System parabola(double y0) {
  return system("x' = 1\ny' = x\nz' = sign(y)", fmt::format("x = -1\ny = {:.17g}\nz = 0", y0));
}

TEST(Touching, FromAboveChangesNothing) { expect_end(parabola(0.5).run_both(2), {1, 0.5, 2}, 1e-6); }

TEST(Touching, FromBelowChangesNothing) {
  const System s = system("x' = 1\ny' = -x\nz' = sign(y)", "x = -1\ny = -0.5\nz = 0");
  expect_end(s.run_both(2), {1, -0.5, -2}, 1e-6);
}

TEST(Touching, MissByABillionthIsNoEvent) {
  const Trajectory run = parabola(0.5 + 1e-9).run_both(2);
  expect_events(run, {}, 0);
  expect_end(run, {1, 0.5 + 1e-9, 2}, 1e-12);
}

TEST(Touching, HitByABillionthIsTwoEvents) {
  const double d = 1e-9, half = std::sqrt(2 * d);
  const Trajectory run = parabola(0.5 - d).run_both(2);
  expect_events(run, {{1 - half, cross}, {1 + half, cross}}, 1e-10);
  expect_end(run, {1, 0.5 - d, 2 - 4 * half}, 1e-9);
}

TEST(Touching, HitByABillionthAtLooseToleranceIsTwoEvents) {
  // The flow is polynomial, so that a loose tolerance loses nothing.
  const double half = std::sqrt(2e-9);
  for (const double tolerance : {1e-3, 1e-6, 1e-9})
    expect_events(parabola(0.5 - 1e-9).run_both(2, tolerance), {{1 - half, cross}, {1 + half, cross}}, 1e-10);
}

TEST(Touching, CubicSurfaceIsCrossedOnce) {
  const System s = system("x' = 1\nz' = sign(x^3)", "x = -1\nz = 0");
  const Trajectory run = s.run_both(2);
  expect_events(run, {{1, cross}}, 1e-9);
  expect_end(run, {1, 0}, 1e-9);
}

TEST(Touching, QuarticSurfaceIsTouched) {
  const System s = system("x' = 1\nz' = sign(x^4)", "x = -1\nz = 0");
  const Trajectory run = s.run_both(2);
  expect_events(run, {}, 0);
  expect_end(run, {1, 2}, 1e-9);
}

TEST(Touching, DoubleThenSimpleRoot) {
  const System s = system("x' = 1\nz' = sign(x^2*(x - 1))", "x = -1\nz = 0");
  const Trajectory run = s.run_both(3);
  expect_events(run, {{2, cross}}, 1e-10);
  expect_end(run, {2, -1}, 1e-9);
}

// Field (1, x^3) above and (1, 1) below: slides for x < 0; at x = 0 the upper field is tangent to third order and
// leaves as y = x^4/4.
TEST(Touching, SlidingLeavesAtATangencyOfThirdOrder) {
  const System s = system("x' = 1\ny' = if(y > 0, x^3, 1)", "x = -1\ny = 0");
  const Trajectory run = s.run_both(2.5);
  expect_events(run, {{1, leave}}, 1e-4);  // sigma - 1 has a triple root: rounding moves it by its cube root
  expect_end(run, {1.5, std::pow(1.5, 4) / 4}, 1e-9);
}

// Field (1, -x^2) above: sigma = (1 - x^2)/(1 + x^2) touches 1 at x = 0 and goes back, so sliding goes on.
TEST(Touching, SigmaTouchesItsBoundAndSlidingGoesOn) {
  const System s = system("x' = 1\ny' = if(y > 0, -x^2, 1)\nz' = sign(y)", "x = -1\ny = 0\nz = 0");
  const Trajectory run = s.run_both(2);
  expect_events(run, {}, 0);
  expect_end(run, {1, 0, pi - 2}, 1e-10);  // integral of 2/(1 + x^2) - 1 over (-1, 1)
}

// The lower field (1, -x) has a visible fold at x = 0: the motion leaves downward as y = -x^2/2.
TEST(Touching, SlidingLeavesDownwardAtAVisibleFold) {
  const System s = system("x' = 1\ny' = if(y > 0, -1, -x)", "x = -1\ny = 0");
  const Trajectory run = s.run_both(2);
  expect_events(run, {{1, leave}}, 1e-11);
  expect_end(run, {1, -0.5}, 1e-11);
}

// ---- corners ----------------------------------------------------------------------------------------------------

TEST(Corners, StartPassingThrough) {
  const Trajectory run = system("x' = 1\ny' = 1\nz' = sign(x) + sign(y)", "x = 0\ny = 0\nz = 0").run_both(1);
  EXPECT_EQ(run.start_mode.text(), "++");
  expect_end(run, {1, 1, 2}, 1e-12);
}

TEST(Corners, StartPassingThroughBackward) {
  const Trajectory run = system("x' = 1\ny' = 2\nz' = sign(x) + sign(y)", "x = 0\ny = 0\nz = 0").run(-1);
  EXPECT_EQ(run.start_mode.text(), "--");
  expect_end(run, {-1, -2, 2}, 1e-12);
}

TEST(Corners, AttractingCornerHolds) {
  const System s =
      system("x' = -sign(x) + 0.5*sign(y) + 0.1\ny' = -sign(y) - 0.5*sign(x)\nz' = sign(x)", "x = 0\ny = 0\nz = 0");
  const Trajectory run = s.run_both(5);
  EXPECT_EQ(run.start_mode.text(), "00");
  expect_end(run, {0, 0, 0.4}, 1e-12);  // a = 0.1 + 0.5*b, b = -0.5*a: a = 0.08
}

TEST(Corners, RepellingCornerIsNotUnique) {
  const Trajectory run = system("x' = sign(x)\ny' = sign(y)", "x = 0\ny = 0").run_both(1);
  EXPECT_TRUE(says_not_unique(run)) << story(run);
}

TEST(Corners, SaddleCornerIsNotUnique) {
  const Trajectory run = system("x' = sign(x)\ny' = -sign(y)", "x = 0\ny = 0").run_both(1);
  EXPECT_TRUE(says_not_unique(run)) << story(run);
}

TEST(Corners, StartOnOneSurfaceOfACorner) {
  // x slides while y falls; at y = 0 the drive changes and x leaves.
  const System s = system("x' = -sign(x) + if(y > 0, 0.5, 2)\ny' = -1", "x = 0\ny = 1");
  const Trajectory run = s.run_both(2);
  expect_events(run, {{1, EventKind::mode}}, 1e-12);
  expect_end(run, {1, -1}, 1e-12);
}

TEST(Corners, ThreeSurfacesInOnePoint) {
  const System s = system("x' = -1\ny' = -2\nz' = sign(x) + 10*sign(y) + 100*sign(x + y)", "x = 1\ny = 2\nz = 0");
  const Trajectory run = s.run_both(2);
  expect_events(run, {{1, EventKind::mode}}, 1e-12);
  expect_end(run, {-1, -2, 0}, 1e-11);
}

TEST(Corners, TwoEventsAPicosecondApart) {
  const System s = system("x' = 1\ny' = 1\nz' = sign(x) + sign(y)", "x = -1\ny = -1.000000000001\nz = 0");
  const Trajectory run = s.run_both(2);
  EXPECT_LE(changes(run).size(), 2u) << story(run);
  EXPECT_GE(changes(run).size(), 1u) << story(run);
  expect_end(run, {1, 1 - 1e-12, 0}, 1e-11);
}

// ---- spirals and accumulations ----------------------------------------------------------------------------------

// In each quadrant a straight line; from (0, a) to (a q, 0) with q = (1 - b)/(1 + b) in time a/(1 + b).
System spiral(double b, double a) {
  return system("x' = -b*sign(x) + sign(y)\ny' = -sign(x) - b*sign(y)\nz' = sign(x)",
                fmt::format("x = 0\ny = {:.17g}\nz = 0", a), fmt::format("[parameters]\nb = {:.17g}", b));
}

TEST(Spirals, IntoACornerEndsThere) {
  // b = 1/2: q = 1/3, times 2/3 (1/3)^k, in all 1; z = 2/3 (1 + 1/3 - 1/9 - 1/27 + ...) = 4/5
  const Trajectory run = spiral(0.5, 1).run_both(3);
  EXPECT_EQ(count(run, chatter), 1) << story(run);
  EXPECT_NEAR(changes(run).back().t, 1, 1e-9) << story(run);
  EXPECT_EQ(run.end.mode.text(), "00");
  expect_end(run, {0, 0, 0.8}, 1e-9);
}

TEST(Spirals, SlowSpiralIsCompletedToo) {
  // b = 0.01: q = 0.99/1.01; the limit is at a/(2 b) = 50
  const Trajectory run = spiral(0.01, 1).run_both(60);
  EXPECT_NEAR(changes(run).back().t, 50, 1e-8) << story(run);
  expect_end(run, {0, 0, run.end.state[2]}, 1e-9);
}

TEST(Spirals, ClosedPolygonIsNoChatter) {
  const Trajectory run = spiral(0, 1).run_both(4000.5);
  EXPECT_EQ(count(run, chatter), 0);
  EXPECT_EQ(count(run, cross), 4000);
  expect_end(run, {0.5, 0.5, 0.5}, 1e-9);
}

TEST(Spirals, GrowingSpiralIsNoChatter) {
  // b = -0.5: every quarter is 3 times as wide; from (0, 1e-6) quarter k takes 2e-6 3^k
  const Trajectory run = spiral(-0.5, 1e-6).run_both(1);
  EXPECT_EQ(count(run, chatter), 0);
  double t = 0;
  const auto found = changes(run);
  size_t i = 0;
  for (double step = 2e-6; t + step < 1; step *= 3, ++i) {
    t += step;
    ASSERT_LT(i, found.size());
    EXPECT_NEAR(found[i].t, t, 1e-11);
  }
  EXPECT_EQ(found.size(), i);
}

TEST(Spirals, BackwardIntoTheCornerOfAGrowingSpiral) {
  // (0, 1) backward with b = -1/2 is the mirror image of the spiral with b = 1/2: the corner is reached at -1.
  const Trajectory run = spiral(-0.5, 1).run(-3);
  EXPECT_NEAR(run.end.state[0], 0, 1e-9) << story(run);
  EXPECT_NEAR(run.end.state[1], 0, 1e-9) << story(run);
}

TEST(Spirals, TwistingControllerReachesTheOrigin) {
  for (const double b : {1.0, 3.0, 4.5}) {
    const double a = 5, s = 1;
    const double first = std::sqrt(2 * s / (a - b));         // to x1 = 0 with friction helping
    const double v = (a - b) * first, second = v / (a + b);  // to x2 = 0 against both
    const double q = std::sqrt((a - b) / (a + b));           // ratio of one half turn to the next
    const System system_ =
        system("x1' = x2\nx2' = -5*sign(x1) - b*sign(x2)", "x1 = 1\nx2 = 0", fmt::format("[parameters]\nb = {}", b));
    const Trajectory run = system_.run_both(30);
    EXPECT_NEAR(changes(run).back().t, (first + second) / (1 - q), 1e-7) << "b = " << b << "\n" << story(run);
    expect_end(run, {0, 0}, 1e-9);
  }
}

TEST(Spirals, TwistingAboutOneEndsOnBothSurfacesAtItsTime) {
  // Away from zero the last turns are lower than the last digit of x: the limit is foretold before.
  const double first = std::sqrt(2.0), turn = first / 3 + std::sqrt(2.0 / 3);
  const System s = system("x' = v\nv' = -2*sign(x - 1) - sign(v)", "x = 2\nv = 0");
  const Trajectory run = s.run(12);
  EXPECT_NEAR(changes(run).back().t, first + turn / (1 - 1 / std::sqrt(3.0)), 1e-12) << story(run);
  EXPECT_EQ(run.end.mode.text(), "00") << story(run);
  expect_end(run, {1, 0}, 0);
}

TEST(Spirals, TwistingControllerHoldsAgainstADisturbance) {
  const System s = system("x1' = x2\nx2' = -5*sign(x1) - 3*sign(x2) + 0.5*sin(10*t)", "x1 = 1\nx2 = 0");
  const Trajectory run = s.run_both(10);
  expect_end(run, {0, 0}, 1e-8);
  EXPECT_EQ(run.end.mode.text(), "00") << story(run);
}

TEST(Spirals, TwistingWithTooMuchFrictionSticksBesideTheOrigin) {
  // b > a: from (0, 1) down to x2 = 0 at x1 = 1/(2 (a + b)), where friction holds.
  const Trajectory run = system("x1' = x2\nx2' = -2*sign(x1) - 3*sign(x2)", "x1 = 0\nx2 = 1").run_both(1);
  expect_events(run, {{0.2, slide}}, 1e-11);
  expect_end(run, {0.1, 0}, 1e-11);
}

TEST(Spirals, ChatterOfABoundedSequenceIsNotCutOff) {
  // Twisting whose gain vanishes at t = 0.75 (the limit would be at 2.5): the run must go on to the end without
  // chatter.
  const System s = system("x1' = x2\nx2' = if(t < 2, -5*sign(x1) - 3*sign(x2), 1)", "x1 = 1\nx2 = 0");
  const Trajectory run = s.run_both(4);
  EXPECT_EQ(count(run, chatter), 0) << story(run);
  // Half turns end at 5/4, 15/8: at (-1/4, 0), (1/16, 0); from there 1/8 at -2 (a - b = 2): (1/16 - 1/64, -1/4)
  const double x = 1.0 / 16 - 1.0 / 64, v = -0.25;
  expect_end(run, {x + 2 * v + 2, v + 2}, 1e-10);
}

// ---- two-folds --------------------------------------------------------------------------------------------------

TEST(TwoFolds, FusedCentreTurnsForEver) {
  // Above y' = -x, x' = 1; below x' = -1: from (-1, 0) to (1, 0) and back, two each.
  const System s = system("x' = if(y > 0, 1, -1)\ny' = -x", "x = -1\ny = 0");
  const Trajectory run = s.run_both(401);
  EXPECT_EQ(count(run, cross), 200) << story(run);
  EXPECT_EQ(changes(run).size(), 200u);
  expect_end(run, {0, 0.5}, 1e-9);
}

TEST(TwoFolds, InvisibleInvisibleSlidesAwayFromTheFold) {
  const System s = system("x' = 1\ny' = if(y > 0, -x, x)", "x = -1\ny = 0.5");
  const Trajectory run = s.run_both(5);
  expect_events(run, {{1 + std::sqrt(2.0), slide}}, 1e-11);
  expect_end(run, {4, 0}, 1e-11);
}

TEST(TwoFolds, SlidingIntoAnInvisibleInvisibleFoldBranches) {
  // x' = -1: sliding for x > 0 reaches the fold at t = 1, beyond which the surface repels.
  const System s = system("x' = -1\ny' = if(y > 0, -x, x)", "x = 1\ny = 0");
  const Trajectory run = s.run_both(2);
  EXPECT_TRUE(says_not_unique(run)) << story(run);
  EXPECT_NEAR(run.end.t, 1, 1e-9) << story(run);
}

TEST(TwoFolds, OrdinaryFoldLeavesOnItsSide) {
  // Above (1, x) has a visible fold at x = 0, below (1, 1) has none: leaves upward there.
  const System s = system("x' = 1\ny' = if(y > 0, x, 1)", "x = -2\ny = 0");
  const Trajectory run = s.run_both(3);
  expect_events(run, {{2, leave}}, 1e-11);
  expect_end(run, {1, 0.5}, 1e-11);
}

// ---- redundant and idle surfaces --------------------------------------------------------------------------------

TEST(Redundant, FactorThatIsZeroIsCrossedWithoutFuss) {
  const System s = system("x' = cos(t)\ny' = 0\nz' = y*sign(x)", "x = 0\ny = 0\nz = 0");
  const Trajectory run = s.run_both(10);
  expect_events(run, {{pi, cross}, {2 * pi, cross}, {3 * pi, cross}}, 1e-10);
  expect_end(run, {std::sin(10.0), 0, 0}, 1e-10);
}

TEST(Redundant, SameSurfaceWithAParameterFactorSlides) {
  const System s = system("x' = 0.5 - sign(x) - sign(K*x)", "x = 1", "[parameters]\nK = 3");
  const Trajectory run = s.run_both(2);
  ASSERT_GE(changes(run).size(), 1u);
  EXPECT_NEAR(changes(run)[0].t, 2.0 / 3, 1e-12);
  EXPECT_EQ(changes(run).size(), 1u) << story(run);
  expect_end(run, {0}, 1e-12);
}

TEST(Redundant, OppositeSurfacesThatCancelAreCrossed) {
  const System s = system("x' = 0.5 - sign(x) - sign(K*x)", "x = -1", "[parameters]\nK = -3");
  const Trajectory run = s.run_both(4);
  expect_events(run, {{2, EventKind::mode}}, 1e-12);
  expect_end(run, {1}, 1e-12);
}

TEST(Redundant, OneOfTwoEqualSurfacesIsStronger) {
  // 3 sign(x) against sign(-2x): the sum 2 sign(x) attracts; x = 0 from 1/1.5.
  const System s = system("x' = 0.5 - 3*sign(x) - sign(K*x)", "x = 1", "[parameters]\nK = -2");
  const Trajectory run = s.run_both(2);
  EXPECT_NEAR(changes(run).at(0).t, 2.0 / 3, 1e-12);
  expect_end(run, {0}, 1e-12);
}

TEST(Redundant, FrictionTwiceOnOneBlockWithParameterFactor) {
  // v' = 2 sin t - sign(v) - 0.5 sign(K v): sticks while |2 sin t| <= 1.5
  const System s = system("v' = 2*sin(t) - sign(v) - 0.5*sign(K*v)", "v = 0", "[parameters]\nK = 7");
  const Trajectory run = s.run_both(1.5);
  const double t0 = std::asin(0.75);
  ASSERT_EQ(changes(run).size(), 1u) << story(run);
  EXPECT_NEAR(changes(run)[0].t, t0, 1e-11);
  expect_end(run, {2 * std::cos(t0) - 2 * std::cos(1.5) - 1.5 * (1.5 - t0)}, 1e-10);
}

TEST(Redundant, RingOfRubbingMassesSticksTogether) {
  // The surfaces v1-v2, v2-v3, ..., vn-v1 add up to zero: friction forces are not unique, velocities are.
  constexpr int n = 12;
  std::string equations, initial;
  for (int i = 0; i < n; ++i) {
    const int next = (i + 1) % n, last = (i + n - 1) % n;
    equations +=
        fmt::format("v{}' = sign(v{} - v{}) - sign(v{} - v{}) + {}\n", i, last, i, i, next, i % 2 ? 0.5 : -0.5);
    initial += fmt::format("v{} = 0.25\n", i);
  }
  const Trajectory run = system(equations, initial).run_both(3);
  expect_end(run, std::vector<double>(n, 0.25), 1e-10);
  EXPECT_EQ(changes(run).size(), 0u) << story(run);
}

TEST(Redundant, LoopWhoseMatrixHasAZeroPivot) {
  // Five blocks with three loops of friction. Times from a march that asks at each instant for the acceleration of
  // least energy (bounded least squares), which needs no distribution of the forces.
  const System s = system(
      "x0' = v0\nv0' = (0.75*sin(1.74*t) - 0.25*sign(v0) - 0.25*a - 0.75*b - 1.5*c)/0.25\n"
      "x1' = v1\nv1' = (0.75*sin(0.63*t) - 1.5*x1 + 1.5*(x2 - x1) + 0.25*a)/0.5\n"
      "x2' = v2\nv2' = (1.5*sin(0.91*t + 3.42) - 0.5*x2 + 1.5*(x1 - x2) - 0.5*sign(v2) + 0.75*b - 0.75*d - "
      "0.25*f)/0.75\n"
      "x3' = v3\nv3' = (-1.5*x3 - sign(v3) + 0.75*d)/1.5\n"
      "x4' = v4\nv4' = (0.25*sin(1.55*t) - 0.5*x4 - 0.5*sign(v4) + 1.5*c + 0.25*f)/0.75\n"
      "a = sign(v0 - v1)\nb = sign(v0 - v2)\nc = sign(v0 - v4)\nd = sign(v2 - v3)\nf = sign(v2 - v4)",
      "x0 = -0.37\nv0 = 0\nx1 = -0.17\nv1 = 0\nx2 = -0.28\nv2 = 0\nx3 = 0.07\nv3 = 0\nx4 = -0.12\nv4 = 0");
  const std::vector<double> times = {0.341246941, 2.294448033, 3.836006556, 3.985987582,
                                     5.682416536, 5.760989091, 6.063709085, 7.800087068};
  std::vector<double> found;
  for (const Event& e : changes(s.run(8))) {
    if (found.empty() || e.t > found.back() + 1e-9) found.push_back(e.t);
  }
  ASSERT_EQ(found.size(), times.size());
  for (size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(found[i], times[i], 1e-8);
}

TEST(Redundant, RingOfSixtyRelays) {
  // x_i' = -s_i + 0.4 s_{i+1} + 0.3: every sigma is 1/2.
  constexpr int n = 60;
  std::string equations, initial, sum = "0";
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("x{}' = -sign(x{}) + 0.4*sign(x{}) + 0.3\n", i, i, (i + 1) % n);
    initial += fmt::format("x{} = 0\n", i);
    sum += fmt::format(" + sign(x{})", i);
  }
  const Trajectory run = system(equations + "z' = " + sum, initial + "z = 0").run_both(2);
  std::vector<double> wanted(n, 0.0);
  wanted.push_back(0.5 * n * 2);
  expect_end(run, wanted, 1e-9);
  EXPECT_EQ(changes(run).size(), 0u);
}

TEST(Redundant, FiftySurfacesCrossedAtOnce) {
  std::string equations, initial, sum = "0";
  for (int i = 0; i < 50; ++i) {
    equations += fmt::format("x{}' = 1 + {}/10\n", i, i);
    initial += fmt::format("x{} = -1 - {}/10\n", i, i);
    sum += fmt::format(" + sign(x{})", i);
  }
  for (auto at = initial.find("= "); at != std::string::npos; at = initial.find("= ", at + 2)) {
    const auto end = initial.find('\n', at);
    initial.insert(end, "\"");
    initial.insert(at + 2, "\"");
  }
  const Trajectory run = system(equations + "z' = " + sum, initial + "z = 0").run_both(2);
  EXPECT_NEAR(run.end.state.back(), 0, 1e-9);
  for (const Event& e : changes(run)) EXPECT_NEAR(e.t, 1, 1e-12);
  EXPECT_EQ(run.end.mode.text(), std::string(50, '+'));
}

TEST(Redundant, FiftyRelaysStopAtOnce) {
  std::string equations, initial;
  for (int i = 0; i < 50; ++i) {
    equations += fmt::format("x{}' = 0.5 - sign(x{})\n", i, i);
    initial += fmt::format("x{} = 1\n", i);
  }
  const Trajectory run = system(equations, initial).run_both(3);
  expect_events(run, {{2, EventKind::mode}}, 1e-12);
  expect_end(run, std::vector<double>(50, 0.0), 1e-12);
}

// ---- curved and moving surfaces ---------------------------------------------------------------------------------

TEST(Curved, CircleForALongTime) {
  const System s = system("x' = -y - sign(x^2 + y^2 - 1)*x\ny' = x - sign(x^2 + y^2 - 1)*y", "x = 1\ny = 0");
  const Trajectory run = s.run_both(2000, 1e-12, 1e-4);
  expect_end(run, {std::cos(2000.0), std::sin(2000.0)}, 1e-9);
  EXPECT_NEAR(std::hypot(run.end.state[0], run.end.state[1]), 1, 1e-14);
}

TEST(Curved, EllipseForALongTime) {
  // Without its relay the field keeps x^2/4 + y^2: on the ellipse sigma = 0 and the motion is (2 cos t, sin t).
  const System s = system("x' = -2*y - x*sign(h)\ny' = x/2 - y*sign(h)\nh = x^2/4 + y^2 - 1", "x = 2\ny = 0");
  const Trajectory run = s.run_both(1000, 1e-12, 1e-4);
  expect_end(run, {2 * std::cos(1000.0), std::sin(1000.0)}, 1e-9);
}

TEST(Curved, MovingLine) {
  const System s = system("x' = -3*sign(x + y - sin(3*t))\ny' = 1 - 3*sign(x + y - sin(3*t))", "x = 1\ny = -1");
  const Trajectory run = s.run_both(50);
  expect_events(run, {}, 0);
  expect_end(run, {1 - 25 + std::sin(150.0) / 2, -1 + 25 + std::sin(150.0) / 2}, 1e-9);
}

TEST(Curved, SphereInThreeDimensions) {
  // Rotation about z plus attraction to the sphere: the latitude and the angle are known.
  const System s = system("x' = -y - x*sign(h)\ny' = x - y*sign(h)\nz' = -z*sign(h)\nh = x^2 + y^2 + z^2 - 1",
                          "x = 0.6\ny = 0\nz = 0.8");
  expect_end(s.run_both(300), {0.6 * std::cos(300.0), 0.6 * std::sin(300.0), 0.8}, 1e-9);
}

TEST(Curved, SphereAndPlaneMeetInACircle) {
  // Slides on the unit sphere and the plane z = 0.6 at once; sigma are zero, the rotation goes on.
  const System s =
      system("x' = -y - x*sign(h)\ny' = x - y*sign(h)\nz' = -z*sign(h) - sign(z - 0.6)\nh = x^2 + y^2 + z^2 - 1",
             "x = 1.6\ny = 0\nz = 1.2");
  const Trajectory run = s.run_both(200);
  EXPECT_EQ(run.end.mode.text(), "00") << story(run);
  EXPECT_NEAR(std::hypot(run.end.state[0], run.end.state[1]), 0.8, 1e-12);
  EXPECT_NEAR(run.end.state[2], 0.6, 1e-13);
  EXPECT_NEAR(run.end.state[0], 0.8 * std::cos(200.0), 1e-9);
}

// ---- friction on the edge ---------------------------------------------------------------------------------------

TEST(Friction, SigmaExactlyOneStaysAtRest) {
  for (const double y : {-1.0, 1.0}) {
    const System s = system("y' = v\nv' = -y - sign(v)", fmt::format("y = {}\nv = 0", y));
    expect_end(s.run_both(10), {y, 0}, 1e-12);
  }
}

TEST(Friction, ComesToRestWithSigmaExactlyOne) {
  // Each half turn moves the turning point by 2: 3 -> -1, where the spring is as strong as friction.
  const System s = system("y' = v\nv' = -y - sign(v)", "y = 3\nv = 0");
  expect_end(s.run_both(10), {-1, 0}, 1e-6);
}

TEST(Friction, ReleasesAtTheSameTimeAtEveryTolerance) {
  // v' = 2 sin t - sign(v) from rest: releases at pi/6, then v = sqrt(3) - 2 cos t - (t - pi/6) until it is 0 again.
  for (const double tolerance : {1e-3, 1e-4, 1e-5, 1e-6, 1e-9, 1e-12}) {
    const Trajectory run = system("v' = 2*sin(t) - sign(v)", "v = 0").run_both(3, tolerance);
    ASSERT_EQ(changes(run).size(), 1u) << tolerance << story(run);
    EXPECT_NEAR(changes(run)[0].t, pi / 6, 10 * tolerance);
    EXPECT_NEAR(run.end.state[0], std::sqrt(3.0) - 2 * std::cos(3.0) - (3 - pi / 6), 30 * tolerance);
  }
}

TEST(Friction, HoldsUntilTheStaticBound) {
  const Trajectory run = system("v' = t - sign(v, 2)", "v = 0").run_both(4);
  expect_events(run, {{2, leave}}, 1e-12);
  expect_end(run, {4}, 1e-11);  // integral of t - 1 from 2 to 4
}

TEST(Friction, PassesThroughWhereStaticFrictionCannotHold) {
  const Trajectory run = system("v' = 3 - sign(v, 2)", "v = -4").run_both(2);
  expect_events(run, {{1, cross}}, 1e-12);
  expect_end(run, {2}, 1e-12);
}

TEST(Friction, SticksWherePassingWouldBeConsistentToo) {
  const Trajectory run = system("v' = 1.5 - sign(v, 2)", "v = -2.5").run_both(2);
  expect_events(run, {{1, slide}}, 1e-12);
  expect_end(run, {0}, 1e-12);
}

TEST(Friction, HoldingRatioOneIsPlainFriction) {
  const Trajectory a = system("v' = 2*sin(t) - sign(v, 1)", "v = 0.3").run_both(30);
  const Trajectory b = system("v' = 2*sin(t) - sign(v)", "v = 0.3").run_both(30);
  ASSERT_EQ(a.events.size(), b.events.size());
  for (size_t i = 0; i < a.events.size(); ++i) EXPECT_NEAR(a.events[i].t, b.events[i].t, 1e-12);
}

TEST(Friction, TwoBlocksStickToEachOtherAndToTheFloor) {
  // Upper block rubs on the lower one (1), the lower one on the floor (3): a pull of 0.5 on the upper moves nothing.
  const System s = system("v1' = 0.5 - sign(v1 - v2)\nv2' = sign(v1 - v2) - 3*sign(v2)", "v1 = 0\nv2 = 0");
  expect_end(s.run_both(3), {0, 0}, 1e-13);
}

TEST(Friction, AttractingOnlyTogether) {
  // Mass ratio makes the pair of surfaces non-nodal: pull 2.5 on the lower block (friction 1 on top, 3 below): all
  // rest.
  const System s = system("v1' = -sign(v1 - v2)\nv2' = (2.5 + sign(v1 - v2) - 3*sign(v2))/0.1", "v1 = 0\nv2 = 0");
  expect_end(s.run_both(3), {0, 0}, 1e-13);
}

// ---- scales -----------------------------------------------------------------------------------------------------

TEST(Scales, TinyAndHugeTimes) {
  for (const double k : {1e-9, 1e-6, 1e6, 1e9}) {  // time runs 1/k times as fast
    const System s =
        system("y' = v/k\nv' = (-y - 0.3*sign(v))/k", "y = 1\nv = 0", fmt::format("[parameters]\nk = {:.17g}", k));
    const Trajectory run = s.run_both(12 * k);
    // Every half turn brings the turning point 0.6 nearer: 1, -0.4, and -0.2 on the other side, where friction holds.
    expect_events(run, {{pi * k, cross}, {2 * pi * k, slide}}, 1e-9 * k);
    expect_end(run, {-0.2, 0}, 1e-9);
  }
}

TEST(Scales, ABallBouncesAlikeHoweverLongTheRunMayBe) {
  // A flight is a parabola: nothing in it says how long is long but its own size.
  const System s = system("q' = v\nv' = N - 2", "q = 1\nv = 0",
                          "[constraint.N]\ngap = \"q\"\nrestitution = 1\n[section.bounce]\non = \"N\"");
  for (const double until : {1e2, 1e6, 1e12, 1e15}) {
    RunOptions options = s.options(until);
    options.section = 0;
    options.section_count = 20;
    const Trajectory run = s.run(options);
    EXPECT_EQ(run.end.why, Why::count) << until;
    EXPECT_NEAR(run.end.t, 39, 1e-10) << until;  // sqrt(2 q/g) = 1 down, twice that between bounces
    EXPECT_NEAR(run.end.state[1], 2, 1e-10) << until;
  }
}

TEST(Scales, StartAtTimeAHundredMillion) {
  const System s = system("v' = 2*sin(t - 1e8) - sign(v)", "v = 0");
  RunOptions o = s.options(1e8 + 1.5, 1e-12);
  o.from = 1e8;
  const Trajectory run = s.run(o);
  expect_events(run, {{1e8 + pi / 6, leave}}, 4e-8);
  expect_end(run, {std::sqrt(3.0) - 2 * std::cos(1.5) - (1.5 - pi / 6)}, 1e-6);
}

TEST(Scales, StatesOfVeryDifferentSize) {
  const System s = system("x' = 1e12\ny' = 1e-12*sign(x)\nw' = -1e-6*sign(y - 1e-13)", "x = -1e12\ny = 0\nw = 0");
  const Trajectory run = s.run_both(3);
  // y falls to -1e-12 at t = 1, then rises to 1e-12 at t = 3 and passes 1e-13 at 2.1.
  expect_events(run, {{1, cross}, {2.1, cross}}, 1e-10);
  EXPECT_NEAR(run.end.state[1], 1e-12, 1e-22);
}

TEST(Scales, SurfaceOfAlmostNoSize) {
  for (const char* factor : {"1e-200", "1e-30", "1e30", "1e200"}) {
    const System s =
        system(fmt::format("x' = 0.5 - sign({}*x^3 + {}*x)\nz' = sign({}*x^3 + {}*x)", factor, factor, factor, factor),
               "x = 1\nz = 0");
    const Trajectory run = s.run_both(4);
    expect_events(run, {{2, slide}}, 1e-11);
    expect_end(run, {0, 3}, 1e-10);
  }
}

TEST(Scales, SteepSurface) {
  const System s = system("x' = 1\nz' = sign(exp(40*x) - 1)", "x = -1\nz = 0");
  expect_events(s.run_both(2), {{1, cross}}, 1e-10);
}

TEST(Scales, ManyCrossingsPerUnitOfTime) {
  const System s = system("x' = 1\nz' = sign(sin(1000*x))", "x = 0.0001\nz = 0");
  const Trajectory run = s.run(10);
  EXPECT_EQ(count(run, cross), static_cast<long>(std::floor(1000 * 10.0001 / pi)));
}

// ---- ends, starts, trivial fields -------------------------------------------------------------------------------

TEST(Ends, ExactlyOnAnEvent) {
  const System s = system("x' = 1\nz' = sign(x)", "x = -1\nz = 0");
  expect_end(s.run_both(1), {0, -1}, 1e-14);
}

TEST(Ends, RunOfNoLength) {
  const System s = system("x' = 1 - 2*sign(x)\nz' = sign(x)", "x = 0\nz = 3");
  const Trajectory run = s.run_both(0);
  expect_end(run, {0, 3}, 0);
  EXPECT_EQ(run.events.size(), 0u);
}

TEST(Ends, ConstantFieldForAMillionUnits) { expect_end(system("x' = 3", "x = 1").run_both(1e6), {3e6 + 1}, 1e-9); }

TEST(Ends, NoMotionAtAll) { expect_end(system("x' = 0\ny' = 0*x", "x = 1\ny = -2").run_both(1e9), {1, -2}, 0); }

TEST(Ends, NoMotionOnASurface) {
  // Nothing determines sigma here but its bounds.
  expect_end(system("x' = 0\ny' = sign(x)", "x = 0\ny = 0").run_both(1), {0, 0}, 1);
}

TEST(Ends, StartAHairBeforeTheSurface) {
  const System s = system("x' = 1\nz' = sign(x)", "x = -1e-14\nz = 0");
  expect_end(s.run_both(1), {1 - 1e-14, 1}, 1e-12);
}

TEST(Ends, SurfaceThatNeverMoves) {
  const System s = system("x' = sign(a)\nz' = if(a > 3, 1, 2)", "x = 0\nz = 0", "[parameters]\na = 2");
  const Trajectory run = s.run_both(1);
  expect_events(run, {}, 0);
  expect_end(run, {1, 2}, 1e-13);
}

TEST(Ends, BlowUpEndsWithItsTime) {
  const Trajectory run = system("x' = x^2", "x = 1").run(2);
  EXPECT_NE(run.end.why, Why::time);
  EXPECT_NEAR(run.end.t, 1, 1e-6);
  EXPECT_FALSE(run.end.message.empty());
}

TEST(Ends, SingularFieldEndsWithItsTime) {
  const Trajectory run = system("x' = -1/x", "x = 1").run_both(2);  // x = sqrt(1 - 2 t)
  EXPECT_NE(run.end.why, Why::time);
  EXPECT_NEAR(run.end.t, 0.5, 1e-6);
}

TEST(Ends, OutOfTheDomainOfALogarithm) {
  const Trajectory run = system("x' = -1\ny' = log(x)", "x = 1\ny = 0").run_both(2);
  EXPECT_NE(run.end.why, Why::time) << story(run);
  EXPECT_NEAR(run.end.t, 1, 1e-6);
}

// ---- fields undefined beyond their surface ----------------------------------------------------------------------

TEST(Undefined, LogarithmsOnBothSidesAreEvaluatedWhereTheyHold) {
  const System s = system("x' = 1\ny' = if(x < 1, log(1.5 - x), log(x - 0.5))", "x = 0\ny = 0");
  // 2 * integral of log(1.5 - x) over (0, 1): u log u - u from 0.5 to 1.5
  const auto f = [](double u) { return u * std::log(u) - u; };
  const Trajectory run = s.run_both(2);
  expect_events(run, {{1, cross}}, 1e-12);
  expect_end(run, {2, 2 * (f(1.5) - f(0.5))}, 1e-10);
}

TEST(Undefined, SquareRootEndsAtItsSurface) {
  const System s = system("x' = 1\ny' = if(x < 1, sqrt(1 - x), 0)", "x = 0\ny = 0");
  expect_end(s.run_both(2), {2, 2.0 / 3}, 1e-9);
}

TEST(Undefined, SlidingBesideANotANumber) {
  // Above y > 0 the field is log(y + 0.2) < 0 near 0; below it is 1.
  const System s = system("y' = if(y > 0, log(y + 0.2), 1)\nz' = sign(y)", "y = 0\nz = 0");
  const double l = std::log(0.2), sigma = (1 + l) / (1 - l);  // (1+s)/2 l + (1-s)/2 = 0
  expect_end(s.run_both(2), {0, 2 * sigma}, 1e-11);
}

TEST(Undefined, ARootBeginsWhereverRoundingPutsItsZero) {
  // u = sin(t - a) comes from below; the integral of sqrt(sin) over half a turn is sqrt(pi) Gamma(3/4)/Gamma(5/4).
  const double whole = std::sqrt(pi) * std::tgamma(0.75) / std::tgamma(1.25);
  for (const char* rate : {"if(u > 0, sqrt(u), 0)", "sqrt(max(u, 0))"}) {
    for (int k = 1; k <= 20; ++k) {
      const double a = 0.15 * k;
      const System s = system(fmt::format("u' = w\nw' = -u\ny' = {}", rate),
                              fmt::format("u = {:.17g}\nw = {:.17g}\ny = 0", -std::sin(a), std::cos(a)));
      EXPECT_NEAR(s.run(a + pi + 1).end.state[2], whole, 1e-9) << rate << ' ' << a;
    }
    // The first step ends on the surface, so that u has been nothing but small at the ends of steps (quadrature in 30
    // digits).
    const System first = system(fmt::format("u' = w\nw' = -(u + 0.4)\ny' = {}", rate),
                                "u = -1.2142333285920066\nw = -0.5805377564034757\ny = 0");
    EXPECT_NEAR(first.run(8).end.state[2], 1.389552227318872901, 1e-9) << rate;
  }
}

TEST(Undefined, SuperTwistingReachesTheOrigin) {
  const System s = system("x1' = -2*sqrt(abs(x1))*sign(x1) + x2\nx2' = -3*sign(x1)", "x1 = 1\nx2 = 0");
  const Trajectory run = s.run_both(10);
  EXPECT_NEAR(run.end.state[0], 0, 1e-6) << story(run);
  EXPECT_NEAR(run.end.state[1], 0, 1e-4) << story(run);
}

// ---- functions of the language ----------------------------------------------------------------------------------

TEST(Language, SaturationIsAKink) {
  const Trajectory run = system("x' = -sat(x, -1, 1)", "x = 3").run_both(5);
  expect_events(run, {{2, cross}}, 1e-11);
  expect_end(run, {std::exp(-3.0)}, 1e-11);
}

TEST(Language, MinOfMax) {
  const Trajectory run = system("x' = max(min(x, 2), 1)", "x = 0").run_both(3);
  // x' = 1 to x = 1 at t = 1, e^(t-1) to 2 at 1 + ln 2, then 2
  expect_end(run, {2 + 2 * (2 - std::log(2.0))}, 1e-10);
}

TEST(Language, TriangleWaveFromMod) {
  const Trajectory run = system("x' = if(mod(t, 2) < 1, 1, -1)", "x = 0").run_both(100.5);
  EXPECT_EQ(count(run, cross), 100) << story(run);
  EXPECT_EQ(changes(run).size(), 100u);
  expect_end(run, {0.5}, 1e-10);
}

TEST(Language, StaircaseFromFloor) {
  const Trajectory run = system("x' = floor(t)", "x = 0").run_both(10);
  expect_end(run, {45}, 1e-10);
}

TEST(Language, ClockOfAStateFromMod) {
  // phase grows as t^2/2; mod(phase, 1) saws; x gathers it.
  const Trajectory run = system("w' = 1\nphase' = w\nx' = w*mod(phase, 1)", "w = 0.5\nphase = 0\nx = 0").run_both(3);
  const double p = 0.5 * 3 + 4.5;  // = 6 teeth of 1/2
  expect_end(run, {3.5, p, 3}, 1e-9);
}

TEST(Language, SwitchInsideASwitch) {
  // Surface x - sign(y)/2: for y < 0 it is x = -1/2, for y > 0 x = 1/2.
  const System s = system("x' = 1\ny' = 1\nz' = sign(x - sign(y)/2)", "x = -1\ny = -0.75\nz = 0");
  const Trajectory run = s.run_both(3);
  // x passes -1/2 at 0.5 (z to +), y passes 0 at 0.75 where x = -1/4 < 1/2 (z to -), x passes 1/2 at 1.5.
  ASSERT_EQ(run.end.why, Why::time) << story(run);
  EXPECT_NEAR(run.end.state[2], -0.5 + 0.25 - 0.75 + 1.5, 1e-11) << story(run);
}

// ---- more than one way to say or meet a surface -----------------------------------------------------------------

TEST(Odd, SurfaceOfAProductHasTwoBranches) {
  // x = t - 1, y = t - 2: + - +
  const Trajectory run = system("x' = 1\ny' = 1\nz' = sign(x*y)", "x = -1\ny = -2\nz = 0").run_both(3);
  expect_events(run, {{1, cross}, {2, cross}}, 1e-11);
  expect_end(run, {2, 1, 1}, 1e-11);
}

TEST(Odd, ProductTouchesWhereBothFactorsVanish) {
  const Trajectory run = system("x' = 1\ny' = 2\nz' = sign(x*y)", "x = -1\ny = -2\nz = 0").run_both(3);
  expect_end(run, {2, 4, 3}, 1e-6);
}

TEST(Odd, SlidesAlongTheDiagonalOfACross) {
  // h = x^2 - y^2 attracts to its branch x = y and slides through the crossing of the branches at the origin.
  const System s = system("x' = 1 - sign(x - y)\ny' = 1 + sign(x - y)\nz' = sign(x^2 - y^2)", "x = -1\ny = -1\nz = 0");
  const Trajectory run = s.run_both(2);
  EXPECT_NEAR(run.end.state[0], 1, 1e-10) << story(run);
  EXPECT_NEAR(run.end.state[1], 1, 1e-10);
}

TEST(Odd, TwoRelaysOnParallelSurfaces) {
  // 1 below 0, 1/2 between 0 and 1, -1/2 above: crosses 0 at t = 1 and stops at 1 at t = 3.
  const Trajectory run = system("x' = 1 - 0.5*step(x) - step(x - 1)", "x = -1").run_both(6);
  expect_events(run, {{1, cross}, {3, slide}}, 1e-12);
  expect_end(run, {1}, 1e-12);
}

TEST(Odd, SlidingSurfaceEndsInTime) {
  // The relay is switched off at t = 2 by another switch; what held is let go.
  const Trajectory run = system("x' = 0.5 - if(t < 2, sign(x), 0)", "x = 1").run_both(4);
  ASSERT_EQ(run.end.why, Why::time) << story(run);
  EXPECT_NEAR(changes(run).at(0).t, 2, 1e-11);  // 1 - t/2 reaches 0 just then
  EXPECT_NEAR(run.end.state[0], 1, 1e-10) << story(run);
}

TEST(Odd, SlidingIsLetGoByAnotherSwitch) {
  const Trajectory run = system("x' = 0.5 - if(t < 3, sign(x), 0)", "x = 1").run_both(5);
  ASSERT_EQ(run.end.why, Why::time) << story(run);
  EXPECT_NEAR(changes(run).at(0).t, 2, 1e-12);
  EXPECT_NEAR(run.end.state[0], 1, 1e-11) << story(run);
}

TEST(Odd, RelayBehindALagHasEverShorterTurns) {
  // p lags behind x: every turn is smaller than the last, but only infinite time would end them. No chatter, no
  // sliding.
  const Trajectory run = system("x' = -sign(p)\np' = x - p", "x = 1\np = 1").run_both(12);
  EXPECT_EQ(run.end.why, Why::time);
  EXPECT_EQ(count(run, slide) + count(run, chatter), 0) << story(run);
  const auto turns = changes(run);
  ASSERT_GT(turns.size(), 20u);
  for (size_t i = 2; i < turns.size(); ++i) EXPECT_LT(turns[i].t - turns[i - 1].t, turns[i - 1].t - turns[i - 2].t);
}

TEST(Odd, FrictionlessPendulumOverManyTurns) {
  // Harmonic motion cut by a switch that does nothing to it: 2000 crossings at multiples of pi.
  const Trajectory run = system("x' = v\nv' = -x\nz' = sign(x)", "x = 0\nv = 1\nz = 0").run_both(2000 * pi + 1);
  ASSERT_EQ(count(run, cross), 2000);
  EXPECT_NEAR(changes(run).back().t, 2000 * pi, 1e-9);
}

TEST(Odd, CrossingWithinTheFirstStepOfAStiffLookingField) {
  const System s = system("x' = -1000*(x - cos(t)) - 50*sign(y)\ny' = -1", "x = 0\ny = 0.5");
  const Trajectory run = s.run_both(2, 1e-10);
  expect_events(run, {{0.5, cross}}, 1e-10);
  // Settled solution of x' = -k (x - cos t) + c: k^2/(k^2+1) cos t + k/(k^2+1) sin t + c/k
  const double k = 1000, settled = (k * k * std::cos(2.0) + k * std::sin(2.0)) / (k * k + 1) + 50 / k;
  EXPECT_NEAR(run.end.state[0], settled, 1e-8);
}

TEST(Odd, NarrowBumpIsNotOverlooked) {
  // y rises above 0 only for |t - 7| < 0.001.
  const Trajectory run = system("x' = 1\nz' = sign(1e-6 - (x - 7)^2)", "x = 0\nz = 0").run_both(20);
  expect_events(run, {{7 - 1e-3, cross}, {7 + 1e-3, cross}}, 1e-9);
}

TEST(Odd, RepellingSurfaceMissedByABillionth) {
  const Trajectory run = system("x' = sign(x)", "x = 1e-9").run_both(1);
  EXPECT_FALSE(says_not_unique(run));
  expect_end(run, {1 + 1e-9}, 1e-14);
}

TEST(Odd, StartOnASurfaceThatMovesAway) {
  // The surface x = sin t leaves upward faster than x' = 0.5 - 0.2 sign: x falls behind at once, is overtaken later.
  const System s = system("x' = 0.5 - 0.2*sign(x - sin(t))", "x = 0");
  const Trajectory run = s.run_both(1);
  EXPECT_EQ(run.start_mode.text(), "-") << story(run);
  expect_end(run, {0.7}, 1e-12);
}

TEST(Odd, FiveHundredStates) {
  std::string equations, initial;
  for (int i = 0; i < 500; ++i) {
    equations += fmt::format("x{}' = -0.1*sign(x{})\n", i, i);
    initial += fmt::format("x{} = {:.17g}\n", i, 0.01 * (i + 1));
  }
  const Trajectory run = system(equations, initial).run_both(20);
  // x_i reaches 0 at 0.1 (i + 1): 199 or 200 of them within 20.
  EXPECT_NEAR(static_cast<double>(count(run, slide)), 200, 1);
  EXPECT_NEAR(run.end.state[499], 3, 1e-11);
}

// ---- backward time ----------------------------------------------------------------------------------------------

TEST(Backward, AttractingAndRepellingSwap) {
  const Trajectory run = system("x' = 0.3 + sign(x)\nz' = sign(x)", "x = 0\nz = 0").run(-2);
  EXPECT_FALSE(says_not_unique(run)) << story(run);
  expect_end(run, {0, 0.6}, 1e-12);
}

TEST(Backward, ForwardSlidingIsRepelling) {
  const Trajectory run = system("x' = 0.3 - sign(x)", "x = 0").run(-2);
  EXPECT_TRUE(says_not_unique(run)) << story(run);
}

TEST(Backward, SurfaceThatHoldsIsLeftWhereSigmaComesDownToOne) {
  // v = 0 holds while |1.5 sin t| <= 1.2; backward from v > 0 it is caught in the band above 1, left at asin(1/1.5).
  const System s = system("v' = 1.5*sin(t) - sign(v, 1.2)", "v = 0.235");
  RunOptions o = s.options(0);
  o.from = 1.5;
  const double caught = 0.8407536633856387;  // 1.5 (cos t - cos 1.5) - (1.5 - t) = 0.235
  EXPECT_NEAR(1.5 * (std::cos(caught) - std::cos(1.5)) - (1.5 - caught), 0.235, 1e-12);
  const double left = std::asin(1 / 1.5);
  const Trajectory run = s.run(o);
  expect_events(run, {{caught, slide}, {left, leave}}, 1e-9);
  expect_end(run, {-(1.5 * (1 - std::cos(left)) - left)}, 1e-9);
}

TEST(Backward, UserChoosesTheSide) {
  const System s = system("x' = 0.3 + sign(x)", "x = 0");
  for (const auto& [side, end] : {std::pair{'+', 1.3}, std::pair{'-', -0.7}, std::pair{'0', 0.0}}) {
    RunOptions o = s.options(1);
    o.leave["x"] = side;
    expect_end(s.run(o), {end}, 1e-12);
  }
}

}  // namespace
TEST(Odd, TanhThatLooksConstant) {
  // Saturated at the start: a series there sees a constant; the flank is at t = 50.
  const Trajectory run = system("x' = 1\ny' = tanh(20*(x - 50))\nz' = sign(y)", "x = 0\ny = 10\nz = 0").run_both(100);
  // y = 10 + integral of tanh: -(50) + 50 by symmetry; it falls through 0 at t = 10 and comes back through it at 90.
  ASSERT_EQ(changes(run).size(), 2u) << story(run);
  EXPECT_NEAR(changes(run)[0].t, 10, 1e-9);
  EXPECT_NEAR(changes(run)[1].t, 90, 1e-8);
  EXPECT_NEAR(run.end.state[1], 10, 1e-8);
}

// ---- the order of sliding changes with the mode -------------------------------------------------------------------

// On x = y = 0, y' = 0 gives sign(x) = -2 p; where |p| passes 1/2, x leaves and goes on as -p -+ 1/2, so that y' stays
// zero: y'' = 0 gives sign(y) = (-p' - 0.2 +- 1.5)/3, inside its range.
TEST(SecondOrder, RelayLeavesWhileTheOtherIsHeldThroughIt) {
  const System s = system("x' = 0.2 + 3*sign(y) - 1.5*sign(x)\ny' = -x - 0.6*sin(t) - 0.5*sign(x)", "x = 0\ny = 0");
  const double first = std::asin(5.0 / 6);
  const Trajectory run = s.run_both(2 * pi);
  expect_events(run, {{first, leave}, {pi - first, slide}, {pi + first, leave}, {2 * pi - first, slide}}, 1e-12);
  expect_end(run, {0, 0}, 1e-12);
  expect_end(s.run(pi / 2, 1e-12), {-0.1, 0}, 1e-12);
  expect_end(s.run(3 * pi / 2, 1e-12), {0.1, 0}, 1e-12);
}

// On x = y = z = 0, x' = 0 gives sign(y) = -1.2 sin(t). Where y has left, x' and z' have the sigma of z alone: z' = 0
// gives it, so that x' = 0 is y = 0.8 (0.5 sign - 0.6 sin(t)) and y' = 0.48 cos(t) gives sign(x).
TEST(SecondOrder, TwoSurfacesThatAreLeftWithOneSigmaAreHeldByTheNextDerivative) {
  const System s =
      system("x' = y + 0.6*sin(t) + 0.5*sign(y) + sign(z)\ny' = -1.5*sign(x) - 0.5*sign(y)\nz' = 0.5*y - 2*sign(z)",
             "x = 0\ny = 0\nz = 0");
  const double first = std::asin(5.0 / 6);
  const Trajectory run = s.run_both(2 * pi);
  expect_events(run, {{first, leave}, {pi - first, slide}, {pi + first, leave}, {2 * pi - first, slide}}, 1e-12);
  expect_end(run, {0, 0, 0}, 1e-12);
  expect_end(s.run(pi / 2, 1e-12), {0, -0.08, 0}, 1e-12);
  expect_end(s.run(3 * pi / 2, 1e-12), {0, 0.08, 0}, 1e-12);
}

// On x = y = z = 0, x' = 0 gives sign(y) = -0.9 - 0.5 t + 0.3 t^2. Where y has left, at -1, y = 0.1 - 0.5 t + 0.3 t^2
// keeps x' = 0: sign(x) has jumped, and y leaves with a rate, not along the tangent that y'' > 0 would forbid.
TEST(SecondOrder, OneThatLeavesWhileAnotherIsHeldByAHigherDerivativeHasARate) {
  const System s =
      system("x' = -y - 0.9 - 0.5*t + 0.3*t^2 - sign(y)\ny' = -0.2 + 0.6*sign(x)\nz' = 0.3 + 0.5*sign(x) - 2*sign(z)",
             "x = 0\ny = 0\nz = 0");
  const Trajectory run = s.run(0.6, 1e-12);
  expect_events(run, {{(0.5 - std::sqrt(0.13)) / 0.6, leave}}, 1e-12);
  expect_end(run, {0, -0.092, 0}, 1e-12);
}

// A spiral ends in x = y = 0; there sign(x) = -0.1 t, until t = 10; then y'' = -1.75 - 2 sign(y) = 0 and x = 1/2 -
// t/20.
TEST(SecondOrder, SpiralEndsAndOneRelayLeavesLater) {
  const System s = system("x' = 0.2 + 2*sign(y) - 1.5*sign(x)\ny' = -x - 0.05*t - 0.5*sign(x)", "x = 0.3\ny = 0.2");
  const Trajectory run = s.run_both(12);
  EXPECT_EQ(count(run, leave), 1) << story(run);
  expect_end(run, {-0.1, 0}, 1e-12);
}

// While z > 0, x' = y + 1/2 is zero and y' = 0.3 - sign(x) keeps it so: second-order sliding behind a switch with a
// letter. From t = 1 on x' = -1 + 1.3 (t - 1).
TEST(SecondOrder, StartRestsBehindALetter) {
  const System s = system("x' = y + 0.5*sign(z)\ny' = -sign(x) + 0.3\nz' = -1", "x = 0\ny = -0.5\nz = 1");
  expect_end(s.run(1, 1e-12), {0, -0.5, 0}, 1e-12);  // by events alone: beside this rest there are oscillations
  expect_end(s.run(2, 1e-12), {-0.35, 0.8, -1}, 1e-12);
}

// The same reached by a spiral, which 0.8 sign(y + 1/2) makes smaller with every turn. Rest until z changes sign.
TEST(SecondOrder, SpiralEndsBehindALetter) {
  const System s =
      system("x' = y + 0.5*sign(z)\ny' = -2*sign(x) - 0.8*sign(y + 0.5) + 0.3\nz' = -1", "x = 1\ny = -0.5\nz = 10");
  const Trajectory run = s.run_both(9);
  EXPECT_EQ(count(run, chatter), 1) << story(run);
  expect_end(run, {0, -0.5, 1}, 1e-12);
}

// A spiral that shrinks a thousandfold with each turn ends before time tells four of them apart. At its end all three
// surfaces are slid on, sigma by a linear system: that of x reaches 1 where SciPy's brentq finds it, x leaves there.
TEST(Chatter, ThatShrinksAThousandfoldPerTurnEnds) {
  const System s = system(
      "x' = -0.25*x - 0.28*y - 0.88*z + 0.59*sin(0.38*t) + 1.11*sign(z + 0.05*x)\n"
      "y' = 0.74*x + 0.99*y + 0.67*z - 0.95*sin(0.31*t) + 0.81*sign(x) - 1.25*sign(y) + 0.70*sign(z + 0.05*x)\n"
      "z' = -0.05*x + 0.44*y - 0.45*z - 0.60*sin(1.18*t) - 0.85*sign(x) - 1.07*sign(y) - 1.26*sign(z + 0.05*x)",
      "x = 0.54\ny = -0.61\nz = 0.27");
  expect_end(s.run(2.7, 1e-10), {0, 0, 0}, 1e-15);
  const Trajectory run = s.run(3, 1e-10);
  EXPECT_EQ(kind_name(changes(run).back().kind), "leave") << story(run);
  EXPECT_NEAR(changes(run).back().t, 2.7636328932839676, 1e-10);
}

// ---- terminal sliding that withstands a disturbance ----------------------------------------------------------------

// On the curve y = -sqrt(x) x = (1 - t/2)^2, until x = y = 0 at t = 2. There sign(y + ..) = t/4 keeps both, until t
// = 4.
TEST(TerminalSliding, RestsAtItsEndWhileTheDisturbanceIsWeaker) {
  const System s = system("x' = y\ny' = 0.75*t - 3*sign(y + sqrt(abs(x))*sign(x))", "x = 1\ny = -1");
  const Trajectory run = s.run(5, 1e-12);
  const auto found = changes(run);
  ASSERT_EQ(found.size(), 2u) << story(run);
  EXPECT_NEAR(found[0].t, 2, 1e-9);
  EXPECT_NEAR(found[1].t, 4, 1e-9);
  expect_end(run, {0.125, 0.375}, 1e-9);
}

// The same with an arrival that is off by a last digit: |0.68 sin| < 1.72 keeps it there, and nothing else happens.
TEST(TerminalSliding, RestsWhereItArrivesWithinRounding) {
  const System s =
      system("x' = y\ny' = -0.68*sin(1.4*t + 1.82) - 1.72*sign(y + 0.89*sqrt(abs(x))*sign(x))", "x = -0.96\ny = -0.94");
  const Trajectory run = s.run(6, 1e-10);
  EXPECT_EQ(changes(run).size(), 2u) << story(run);
  expect_end(run, {0, 0}, 1e-14);
}

// On the surface x2' = -0.6*|x2|^(1/3): it ends 2.5*|x2|^(2/3) after x has come to it, in closed form at
// 0.4246177757031627, and rests there against the disturbance, by both engines.
TEST(TerminalSliding, OfAPowerRestsAgainstADisturbance) {
  const System s = system("x1' = x2\nx2' = -3*sign(s) + 0.5*sin(1.3*t)\ns = x1 + abs(x2)^(5/3)*sign(x2)\ny' = x1 - y",
                          "x1 = 1\nx2 = 0.3\ny = 1");
  RunOptions by_steps = s.options(10, 1e-9);
  by_steps.step.emplace();
  for (const Trajectory& run : {s.run(10, 1e-10), s.run(by_steps)}) {
    EXPECT_EQ(run.end.why, Why::time) << story(run);
    EXPECT_NEAR(run.end.state[0], 0, 1e-14) << story(run);
    EXPECT_NEAR(run.end.state[1], 0, 1e-14) << story(run);
    const std::vector<Event> found = of_kind(run, EventKind::slide);
    ASSERT_EQ(found.size(), 2u) << story(run);
    EXPECT_NEAR(found[0].t, 0.4246177757031627, 1e-8);
    EXPECT_NEAR(found[1].t, 2.783831078336992, 1e-7);
  }
}

// The same with a disturbance 0.8 t that outgrows the control at t = 2.5: from there x2 = 0.4 (t - 2.5)^2. On the
// surface sqrt(x2) falls by 1/3 a second, from t = 0.06197212873251748 and x2 = 0.42548047536089084 on (closed form).
TEST(TerminalSliding, OfAPowerIsLeftWhereTheDisturbanceOutgrowsIt) {
  const System s = system("x1' = x2\nx2' = -2*sign(s) + 0.8*t\ns = x1 + abs(x2)^(3/2)*sign(x2)", "x1 = -0.3\nx2 = 0.3");
  RunOptions by_steps = s.options(6, 1e-9);
  by_steps.step.emplace();
  for (const Trajectory& run : {s.run(6, 1e-10), s.run(by_steps)}) {
    expect_end(run, {0.4 / 3 * std::pow(3.5, 3), 0.4 * std::pow(3.5, 2)}, 1e-8);
    const std::vector<Event> found = changes(run);
    ASSERT_EQ(found.size(), 3u) << story(run);
    EXPECT_NEAR(found[1].t, 0.06197212873251748 + 3 * std::sqrt(0.42548047536089084), 1e-8) << story(run);
    EXPECT_NEAR(found[2].t, 2.5, 1e-8) << story(run);
  }
}

// A block that rocks from one edge to the other, with th' * 0.9 at every change: rocks take 2 w, 2*0.9 w, .. and end at
// t1 + 2*0.9 w1/(1 - 0.9), t1 = w1 = sqrt(2*0.15). The jump shares its zero with the surface.
TEST(RockingBlock, LosesSpeedAtEveryRockUntilItRests) {
  const System s =
      system("th' = w\nw' = -sign(th)", "th = 0.15\nw = 0", "[jump.hit]\non = \"th\"\nset = { w = \"0.9*w\" }");
  RunOptions by_steps = s.options(20, 1e-9);
  by_steps.step.emplace();
  for (const Trajectory& run : {s.run(20, 1e-10), s.run(by_steps)}) {
    expect_end(run, {0, 0}, 1e-9);
    const std::vector<Event> found = of_kind(run, EventKind::chatter);
    ASSERT_EQ(found.size(), 1u) << story(run);
    EXPECT_NEAR(found[0].t, 19 * std::sqrt(0.3), 1e-8);
  }
}

// x goes through zero, where the root in the other surface begins with an infinite slope towards zero, far from it.
TEST(Roots, SurfaceWithARootThatBeginsFarFromItsZero) {
  const System s = system("x' = -0.6\ny' = -0.1*sign(y + 0.86*sqrt(abs(x))*sign(x))", "x = 0.02\ny = -0.68");
  expect_end(s.run_both(1), {-0.58, -0.58}, 1e-9);
}

// Super-twisting under a disturbance d, by adaptive steps of any tolerance: at rest x1 = 0 and x2 = -d(t).
TEST(TerminalSliding, OfSuperTwistingGoesOnByStepsOfAnyTolerance) {
  const System s = system("x1' = -1.68*sqrt(abs(x1))*sign(x1) + x2 + 0.1143*sin(1.1*t)\nx2' = -0.958*sign(x1)",
                          "x1 = 0.304\nx2 = 0.06");
  for (const double tolerance : {1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11}) {
    RunOptions o = s.options(10, tolerance);
    o.step = StepOptions{};
    expect_end(s.run(o), {0, -0.1143 * std::sin(11.0)}, 1e-7);
  }
}

// With c = 0.57 and u = sqrt(|x|): t = 2/c (u - log(1 + u)) before x = 0 and 2/c (-u - log(1 - u)) after it, also where
// the last step ends a last digit before x = 0.
TEST(Roots, StateGoesThroughItsRoot) {
  for (const double x : {0.05, 0.07, 0.3}) {
    const System s = system("x' = -0.57*sqrt(abs(x))*sign(x) + 0.17 - 0.4*sign(x - 0.21)", fmt::format("x = {}", -x));
    const double c = 0.57, before = std::sqrt(x), after = std::sqrt(0.21);
    const double first = 2 / c * (before - std::log1p(before)), second = first + 2 / c * (-after - std::log1p(-after));
    const Trajectory run = s.run(3, 1e-12);
    expect_events(run, {{first, cross}, {second, slide}}, 1e-9);
    expect_end(run, {0.21}, 1e-12);
  }
}

// ---- poles --------------------------------------------------------------------------------------------------------

// 1/u - 1 is zero where u = 2 sin(t + phase) is 1. Where u is zero it changes its sign through infinity, which is no
// zero; the first run begins there.
TEST(Poles, OfASectionAreNotMet) {
  const System s = system("u' = v\nv' = -u", "u = 0\nv = 2", "[section.s]\non = \"1/u - 1\"\n");
  for (const double phase : {0.0, 1.0, 2.0, -1.0}) {
    for (const bool step : {false, true}) {
      RunOptions options = s.options(30, 1e-10);
      options.initial = {2 * std::sin(phase), 2 * std::cos(phase)};
      if (step) options.step = StepOptions{};
      std::vector<double> met;
      for (const Event& e : of_kind(s.run(options), EventKind::section)) met.push_back(e.t);
      std::vector<double> expected;
      for (int turn = -1; turn < 6; ++turn) {
        for (const double angle : {M_PI / 6, 5 * M_PI / 6}) {
          const double t = angle + 2 * M_PI * turn - phase;
          if (t > 0 && t < 30) expected.push_back(t);
        }
      }
      ASSERT_EQ(met.size(), expected.size()) << phase << " " << step;
      for (size_t i = 0; i < met.size(); ++i) EXPECT_NEAR(met[i], expected[i], step ? 1e-7 : 1e-9);
    }
  }
}

// ---- roots at zero, one after the other ---------------------------------------------------------------------------

// Three tanks in a row fill from empty: each root has no series where it begins, and the next begins with it. End state
// from Radau, LSODA and DOP853 of SciPy at 1e-12, steps of 0.01.
TEST(Roots, TanksInARowFillFromEmpty) {
  const System s = system(
      "h1' = 1 - 0.5*q(h1 - h2)\nh2' = 0.5*q(h1 - h2) - 0.3*q(h2 - h3)\nh3' = 0.3*q(h2 - h3) - 0.4*sqrt(max(h3, 0))\n"
      "q(d) = sqrt(abs(d))*sign(d)",
      "h1 = 0\nh2 = 0\nh3 = 0");
  expect_end(s.run_both(20, 1e-10), {7.27661824252, 4.95934038763, 1.48683935861}, 1e-9);
  RunOptions stiff = s.options(20, 1e-10);
  stiff.stiff = true;
  expect_end(s.run(stiff), {7.27661824252, 4.95934038763, 1.48683935861}, 1e-8);
}

// The same early and late, where time has few digits for what begins, under an inflow that is there and one that grows
// from nothing. End states from DOP853 of SciPy at 1e-13 in the logarithms of time and levels.
TEST(Roots, TanksInARowFillAtAnyTime) {
  for (const double begin : {0.0, 6.283185307179586, 1e3, 1e6, 1e8}) {
    for (const bool grows : {false, true}) {
      const System s =
          system(fmt::format("h1' = {} - 0.5*sqrt(max(h1, 0))\nh2' = 0.5*sqrt(max(h1, 0)) - 0.4*sqrt(max(h2, 0))\n"
                             "h3' = 0.4*sqrt(max(h2, 0)) - 0.3*sqrt(max(h3, 0))",
                             grows ? fmt::format("max(t - {:.17g}, 0)", begin) : "1"),
                 "h1 = 0\nh2 = 0\nh3 = 0");
      RunOptions options = s.options(begin + 5, 1e-10);
      options.from = begin;
      const Trajectory run = s.run(options);
      const double digits = 1e-9 + 64 * 2.2e-16 * begin;
      if (grows)
        expect_end(run, {8.793310432392, 2.217546644737, 0.812925191501}, digits);
      else
        expect_end(run, {2.227240047292, 1.324277484004, 0.719760978648}, digits);
    }
  }
}

/// Tanks in a row, empty at first; what flows into the first is `inflow`.
System empty_tanks(int count, const std::string& inflow) {
  std::string equations = "h[1]' = " + inflow + " - 0.5*sqrt(max(h[1], 0))\n";
  equations += fmt::format("h[i]' = 0.5*sqrt(max(h[i-1], 0)) - 0.5*sqrt(max(h[i], 0))  for i = 2..{}", count);
  return system(equations, "\"h[i]\" = 0");
}

// By Taylor series, implicit steps and time steps: however many begin one after the other, and with pieces as short as
// time can tell. Levels of the last one from Radau of SciPy, at 1e-9 and 1e-11 the same.
TEST(Roots, ManyTanksInARowFill) {
  struct Case {
    int tanks;
    const char* inflow;
    double level;
  };
  for (const Case& c : {Case{3, "if(t < 3, 0, 0.3)", 0.359760103},
                        {6, "if(t < 3, 0, 0.3)", 0.353223555},
                        {12, "if(t < 3, 0, 0.3)", 0.265792052},
                        {20, "if(t < 3, 0, 0.3)", 0.133341099},
                        {12, "0.3*max(sin(t), 0)", 0.033591800}}) {
    const System s = empty_tanks(c.tanks, c.inflow);
    RunOptions stiff = s.options(30, 1e-10), steps = s.options(30, 1e-9);
    stiff.stiff = true;
    steps.step.emplace();
    for (const Trajectory& run : {s.run(30, 1e-10), s.run(stiff), s.run(steps)}) {
      EXPECT_EQ(run.end.why, Why::time) << c.tanks << c.inflow << story(run);
      EXPECT_NEAR(run.end.state.back(), c.level, 2e-9) << c.tanks << c.inflow << story(run);
    }
  }
}

// Half waves of an inflow: between them the tank rests, and begins again where sin(t) is zero but for rounding, without
// falling below its bottom first. The level at the end of a wave from w = sqrt(h) with DOP853 of SciPy at 1e-13.
TEST(Roots, ATankRestsBetweenHalfWavesOfItsInflow) {
  const System s = system("h' = 0.3*max(sin(t), 0) - 0.5*sqrt(max(h, 0))", "h = 0");
  const Trajectory run = s.run(100 * 2 * M_PI + 1, 1e-10);
  EXPECT_EQ(count(run, slide), 100) << story(run);
  EXPECT_EQ(run.events.size(), 300u) << story(run);
  for (const Event& e : run.events) EXPECT_GE(e.state[0], 0) << e.t;
  RunOptions by_steps = s.options(100 * 2 * M_PI + 1, 1e-9);
  by_steps.step.emplace();
  const Trajectory steps = s.run(by_steps);
  EXPECT_EQ(count(steps, slide), 100) << story(steps);
  EXPECT_NEAR(steps.end.state[0], run.end.state[0], 1e-6);
  for (const double begin : {2 * M_PI, 4 * M_PI, 6 * M_PI, 10 * M_PI, 100 * M_PI}) {  // from the zero itself
    RunOptions options = s.options(begin + M_PI, 1e-10);
    options.from = begin;
    expect_end(s.run(options), {0.117942463122853}, 1e-10);
  }
}

// h' = a - sqrt(h)/2 comes to (2a)^2 within some 8 a, whatever a is: long before time can see it.
TEST(Roots, ATrickleIntoATankWithARootIsInBalance) {
  for (const double a : {1e-9, 1e-14, 1e-15, 1e-16, 1e-17, 1e-20, 1e-25, 1e-30, 1e-40, 1e-60, 1e-100}) {
    for (const double start : {1.0, 0.0, 1e-6}) {
      for (const char* level : {"max(h, 0)", "h"}) {
        const System s = system(fmt::format("h' = {} - 0.5*sqrt({})\ny' = 1 - y + 0*h", a, level),
                                fmt::format("h = {}\ny = 0", start));
        RunOptions options = s.options(10, 1e-10);
        options.turns_stiff = true;
        options.max_steps = 10000;
        const Trajectory run = s.run(options);
        EXPECT_EQ(run.end.why, Why::time) << a << " " << start << level << story(run);
        EXPECT_NEAR(run.end.state[0] / (4 * a * a), 1, 1e-9) << a << " " << start << level << story(run);
        EXPECT_NEAR(run.end.state[1], -std::expm1(-10), 1e-9) << a << " " << start << level << story(run);
      }
    }
  }
}

// The same at other tolerances, and so by series of other orders: where the defect cuts steps that stability keeps
// short, they are short for stability all the same.
TEST(Roots, ATrickleIsInBalanceWhateverTheOrder) {
  for (const double tolerance : {1e-8, 1e-9, 3e-10, 3e-11, 1e-12}) {
    for (const double a : {1e-9, 1e-11, 3e-13, 1e-13, 3e-14, 1e-14}) {
      for (const double start : {1.0, 1e-6, 100.0}) {
        const System s = system(fmt::format("h' = {} - 0.5*sqrt(h)", a), fmt::format("h = {}", start));
        RunOptions options = s.options(50, tolerance);
        options.turns_stiff = true;
        options.max_steps = 10000;
        const Trajectory run = s.run(options);
        EXPECT_EQ(run.end.why, Why::time) << tolerance << " " << a << " " << start << story(run);
        EXPECT_NEAR(run.end.state[0] / (4 * a * a), 1, 1e-6) << tolerance << " " << a << " " << start << story(run);
      }
    }
  }
}

// Super-twisting about 1, to which x has no digits below 1e-16: a step beside the root that is a share of the way from
// it must move x. It spirals in, by the linear system in sqrt(x - 1), until 1.7416627251274652 (mpmath).
TEST(Roots, StepsBesideARootMoveTheLastDigit) {
  const System s = system("x' = -1.5*sqrt(abs(x - 1))*sign(x - 1) + z\nz' = -1.1*sign(x - 1)", "x = 2\nz = 0");
  for (const double tolerance : {1e-6, 1e-9, 1e-10, 1e-12, 1e-13}) {
    RunOptions options = s.options(12, tolerance);
    options.max_steps = 1000;
    const Trajectory run = s.run(options);
    EXPECT_EQ(run.end.why, Why::time) << tolerance << story(run);
    EXPECT_NEAR(of_kind(run, EventKind::chatter).back().t, 1.7416627251274652, 1e-9) << tolerance << story(run);
  }
}

// A tank runs empty into another one, c = 0.5: h1 = u^2 with u = 1 - c t/2 until t = 2/c, a polynomial that rises again
// behind its end. What follows the second one slowly, y' = h2 - y, is 1.175 - u/2 - u^2 + 0.325 e^-t until then; its
// long steps must not hide the end.
TEST(Roots, TankRunsEmptyBesideWhatIsSlow) {
  const double last = 1.3, at_end = 1.175 + 0.325 * std::exp(-4.0);
  for (const double h2 : {0.3, 0.0}) {
    const System s = system("h1' = -0.5*sqrt(h1)\nh2' = 0.5*sqrt(h1)\ny' = h2 - y",
                            fmt::format("h1 = 1\nh2 = {}\ny = {}", h2, h2 - 0.3));
    const double shift = h2 - 0.3;  // of h2 and of y
    expect_end(s.run(6), {0, last + shift, last + (at_end - last) * std::exp(-2.0) + shift}, 1e-9);
  }
}

// Two tanks that level out: their difference passes zero again and again, slowly, through an infinite slope. End state
// from Radau and DOP853 of SciPy as above.
TEST(Roots, LevelsThatPassEachOtherGoOn) {
  const System s = system("h1' = 0.1*sin(t) - q\nh2' = q\nq = 0.5*sqrt(abs(h1 - h2))*sign(h1 - h2)", "h1 = 1\nh2 = 0");
  const Trajectory run = s.run(20, 1e-10);
  expect_end(run, {0.533075918645, 0.526115875173}, 1e-9);
  EXPECT_EQ(count(run, cross), 6) << story(run);
}

// A valve opens and closes by the level of the second tank while the first runs empty. The level rises through 1 once
// between a low and a full one, and nowhere else: steps that were too long for the end of the root tell nothing of it.
TEST(Roots, SectionsAreMetWhereTheyAreBesideATankThatRunsEmpty) {
  const System s = system(
      "h1' = q*open - 0.5*sqrt(max(h1, 0))\n"
      "h2' = (0.5*sqrt(max(h1, 0)) - 0.4*sqrt(max(h2, 0)))/2\nopen' = 0",
      "h1 = 0\nh2 = 0\nopen = 1", R"(
[parameters]
q = 1
[jump.full]
on = "h2 - 1.5"
direction = "rising"
set = { open = 0 }
[jump.low]
on = "h2 - 0.5"
direction = "falling"
set = { open = 1 }
[section.middle]
on = "h2 - 1"
direction = "rising"
)");
  for (const double q : {0.7, 0.9, 1.12, 1.34, 1.78}) {
    RunOptions options = s.options(200, 1e-10);
    options.parameters = {q};
    const Trajectory run = s.run(options);
    const std::vector<Event> met = of_kind(run, EventKind::section), jumps = of_kind(run, EventKind::jump);
    ASSERT_GT(jumps.size(), 10u) << q << story(run);
    EXPECT_EQ(met.size(), (jumps.size() + 1) / 2 + (run.end.state[2] > 0 && run.end.state[1] > 1)) << q << story(run);
    for (const Event& e : met) EXPECT_NEAR(e.state[1], 1, 1e-9) << q << " at " << e.t;
  }
  // Late, where time has few digits left for the beginning of a root, and in a run that is meant to be long.
  RunOptions late = s.options(200, 1e-10);
  late.from = 1e6;
  late.until = 1e6 + 200;
  late.initial = {1, 1, 1};
  EXPECT_EQ(s.run(late).end.why, Why::time) << story(s.run(late));
  RunOptions endless = s.options(1e12, 1e-10);
  int seen = 0;
  endless.on_section = [&](const Passing&) { return ++seen < 3; };
  EXPECT_EQ(s.run(endless).end.why, Why::stop) << story(s.run(endless));
}

// Below the width w the speed falls as exp(-0.5 t/w): the way is (25 - w^2) + 2 w^2. At 1e-163 the squares underflow.
TEST(Roots, SpeedsThatDieOutUnderASquareEndNoRun) {
  for (const double w : {1.0, 0.1, 1e-3}) {
    const System s = system(fmt::format("x' = u\ny' = v\nu' = -0.5*u/max(hypot(u, v), {0})\n"
                                        "v' = -0.5*v/max(hypot(u, v), {0})",
                                        w),
                            "x = 0\ny = 0\nu = 3\nv = 4");
    const Trajectory run = s.run(s.options(2000, 1e-10));
    expect_end(run, {0.6 * (25 + w * w), 0.8 * (25 + w * w), 0, 0}, 1e-8);
  }
}

// Friction in a plane by hand rests at t = 1/2, where u/hypot(u, v) is 0/0: the run says so, whatever the flow.
TEST(Roots, RestThatIsOpenEndsTheStiffFlowToo) {
  const System s = system("u' = -u/hypot(u, v)\nv' = -v/hypot(u, v)", "u = 0.3\nv = 0.4");
  for (const bool stiff : {false, true}) {
    RunOptions options = s.options(1, 1e-10);
    options.stiff = stiff;
    const Trajectory run = s.run(options);
    EXPECT_EQ(run.end.why, Why::undefined) << run.end.message;
    EXPECT_NEAR(run.end.t, 0.5, 1e-9);
  }
}

// ---- relays of time -----------------------------------------------------------------------------------------------

// r turns to 1 where sin t rises through 1/2, to -1 where it falls through -1/2; nothing else limits a step.
TEST(Jumps, ConditionsOfTimeAreNotSteppedOver) {
  const System s = system("y' = r\nr' = 0", "y = 0\nr = -1", R"(
[jump.up]
on = "sin(t) - 0.5"
direction = "rising"
set = { r = 1 }
[jump.down]
on = "sin(t) + 0.5"
direction = "falling"
set = { r = -1 }
)");
  double expected = 0, last = 0, r = -1;
  for (double t = pi / 6; t < 40; t += pi, r = -r) {
    expected += r * (t - last);
    last = t;
  }
  expected += r * (40 - last);
  const Trajectory run = s.run_both(40);
  EXPECT_EQ(count(run, jump), 13) << story(run);
  EXPECT_NEAR(run.end.state[0], expected, 1e-9) << story(run);
}

}  // namespace saltus::physics
