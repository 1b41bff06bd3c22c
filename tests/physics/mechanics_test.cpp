// Mechanics written as balances of forces. Truths: closed forms, conserved quantities, and the same systems solved for
// their accelerations by hand.

#include <gtest/gtest.h>

#include "physics.hpp"

namespace saltus::physics {
namespace {

using enum EventKind;

TEST(Balances, DampedOscillatorFollowsItsClosedForm) {
  // 2 x'' + 0.8 x' + 10 x = 0: x = exp(-0.2 t) (cos(w t) + 0.2/w sin(w t)), w^2 = 5 - 0.04
  const System s = system("m*x'' + c*x' + k*x = 0\nm = 2\nc = 0.8\nk = 10", "x = 1\n\"x'\" = 0");
  const double w = std::sqrt(4.96), t = 3, d = std::exp(-0.2 * t);
  const double x = d * (std::cos(w * t) + 0.2 / w * std::sin(w * t)), v = -d * (0.04 / w + w) * std::sin(w * t);
  expect_end(s.run_both(t), {x, v}, 1e-6);
}

TEST(Balances, RatesOfFirstOrderMayBeCoupled) {
  // 2 x' + y' = -x, y' - x' = 0: x' = y' = -x/3
  const System s = system("2*x' + y' = -x\ny' - x' = 0", "x = 3\ny = 1");
  const double x = 3 * std::exp(-2.0 / 3);
  expect_end(s.run_both(2), {x, x - 2}, 1e-7);
}

TEST(Balances, PivotsThatVanishWhereTheMatrixDoesNotAreNoSingularity) {
  // A rotating matrix of three unknowns and one more: R(t) a = b with cos(t) = 0 on the way; a = R(t)^T b.
  const System s = system(
      "cos(t)*u' + sin(t)*v' = 1\ncos(t)*v' - sin(t)*u' + 0.5*w' + 0.1*z' = 0\nw' + z'*sin(t) = 0\nz' - w'*sin(t) = 0",
      "u = 0\nv = 0\nw = 0\nz = 0");
  expect_end(s.run_both(3), {std::sin(3.0), 1 - std::cos(3.0), 0, 0}, 1e-7);
}

TEST(Balances, DoublePendulumIsThatOfTheTextbook) {
  const std::string start = "a = 1.2\nb = -0.4\n";
  const System implicit = system(
      "3*a'' + 2*cos(a - b)*b'' + 2*b'^2*sin(a - b) + 3*9.81*sin(a) = 0\n2*cos(a - b)*a'' + 2*b'' - "
      "2*a'^2*sin(a - b) + 2*9.81*sin(b) = 0",
      start + "\"a'\" = 0.3\n\"b'\" = 0.1");
  // Cramer's rule by hand: 3 A + 2 c B = f, 2 c A + 2 B = g
  const System by_hand = system(
      "a' = u\nu' = (2*f - 2*c*g)/(6 - 4*c^2)\nb' = v\nv' = (3*g - 2*c*f)/(6 - 4*c^2)\nc = cos(a - b)\n"
      "f = -2*v^2*sin(a - b) - 3*9.81*sin(a)\ng = 2*u^2*sin(a - b) - 2*9.81*sin(b)",
      start + "u = 0.3\nv = 0.1");
  const Trajectory one = implicit.run(5), other = by_hand.run(5);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(one.end.state[i], other.end.state[i], 1e-7);
}

TEST(Balances, FrictionBesideTheMassSlides) {
  // 2 x'' = -3 sign(x'): from x' = 3 at rest after t = 2, x = 3.
  const System s = system("2*x'' + 3*sign(x') = 0", "x = 0\n\"x'\" = 3");
  const Trajectory run = s.run_both(4);
  expect_events(run, {{2, slide}}, 1e-8);
  expect_end(run, {3, 0}, 1e-8);
}

TEST(Balances, EveryArrangementIsTheSameModel) {
  const std::string start = "x = 0.4\ny = 0\n\"x'\" = -0.2\n\"y'\" = 0.2";
  const Trajectory one = system("x'' + 0.5*y'' = -3*x\ny'' - 2*x'' = -4*y", start).run(3);
  const Trajectory other = system("-4*y + 2*x'' = y''\n0 = 3*x + 0.5*y'' + x''", start).run(3);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(one.end.state[i], other.end.state[i], 1e-9);
}

// ---- Lagrangians ------------------------------------------------------------------------------------------------

TEST(Lagrangian, KeepsEnergyAndAngularMomentum) {
  const System s = system("h = r^2*ph'", "r = 1\nph = 0\n\"r'\" = 0.1\n\"ph'\" = 1.2",
                          "[mechanics]\nlagrangian = \"(r'^2 + r^2*ph'^2)/2 + 1/r\"");
  const Trajectory run = s.run(50);
  const double w = run.end.state[1], r = run.end.state[2], v = run.end.state[3];  // ph stands first
  EXPECT_NEAR(r * r * w, 1.2, 1e-9);
  EXPECT_NEAR((v * v + r * r * w * w) / 2 - 1 / r, (0.01 + 1.44) / 2 - 1, 1e-9);
}

TEST(Lagrangian, NeedsNoEquations) {
  const System s(read_model_text("[mechanics]\nlagrangian = \"x'^2/2 - x^2/2\"\n[initial]\nx = 1\n\"x'\" = 0\n"));
  expect_end(s.run(1), {std::cos(1.0), -std::sin(1.0)}, 1e-9);
}

TEST(Lagrangian, DampingAndForcesAreOnTheRightSide) {
  // x'' = -x - 0.4 x' + 2: x = 2 - 2 exp(-0.2 t) (cos(w t) + 0.2/w sin(w t)), w^2 = 1 - 0.04
  const System s =
      system("seen = x", "x = 0\n\"x'\" = 0",
             "[mechanics]\nlagrangian = \"x'^2/2 - x^2/2\"\nforces = { x = 2 }\ndissipation = \"0.2*x'^2\"");
  const double w = std::sqrt(0.96), t = 4, d = std::exp(-0.2 * t);
  const double x = 2 - 2 * d * (std::cos(w * t) + 0.2 / w * std::sin(w * t));
  EXPECT_NEAR(s.run(t).end.state[0], x, 1e-9);
}

// ---- contacts by virtual power ----------------------------------------------------------------------------------

const std::string plane = "m = 2\nm*x'' = 0\nm*y'' = -m*9.81";

TEST(VirtualPower, ABlockSlidesDownAnIncline) {
  // Slope 0.6, mu = 0.3: g (sin - mu cos) along the slope.
  const System s = system(plane, "x = 0\ny = 0\n\"x'\" = 0\n\"y'\" = 0",
                          "[constraint.N]\ngap = \"x*sin(0.6) + y*cos(0.6)\"\nrestitution = 0\nfriction = 0.3\n"
                          "slip = \"x'*cos(0.6) - y'*sin(0.6)\"");
  const double a = 9.81 * (std::sin(0.6) - 0.3 * std::cos(0.6)), t = 2, d = a * t * t / 2;
  expect_end(s.run_both(t), {d * std::cos(0.6), a * t * std::cos(0.6), -d * std::sin(0.6), -a * t * std::sin(0.6)},
             1e-6);
}

TEST(VirtualPower, AGapThatIsNoLengthIsTheSameContact) {
  const std::string start = "x = 0\ny = 1\n\"x'\" = 0.5\n\"y'\" = 0";
  const auto run = [&](const std::string& gap) {
    return system(plane, start, "[constraint.N]\nrestitution = 0.8\ngap = \"" + gap + "\"").run(1.2).end.state;
  };
  const auto one = run("5*y + 1.5*x"), other = run("(y + 0.3*x)/sqrt(1 + 0.3^2)");
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(one[i], other[i], 1e-9);
}

TEST(VirtualPower, SuperballReversesSpinBySecondRestitution) {
  // Sphere, I = 2/5 m R^2, m = R = 1: normal impulse 2 v, tangential m/(1 + 5/2) (1 + e) s to s+ = -e s.
  const System s =
      system("x'' = 0\ny'' = -10\n0.4*al'' = 0", "x = 0\ny = 0.05\nal = 0\n\"x'\" = 1\n\"y'\" = 0\n\"al'\" = 2",
             "[constraint.N]\ngap = \"y\"\nrestitution = 1\nfriction = 10\nslip = \"x' + al'\"\n"
             "restitution_tangential = 0.6");
  const double impulse = -(1 + 0.6) * 3 / 3.5;
  const auto end = s.run(0.15).end.state;
  EXPECT_NEAR(end[1], 1 + impulse, 1e-9);
  EXPECT_NEAR(end[5], 2 + impulse / 0.4, 1e-9);
  EXPECT_NEAR(end[1] + end[5], -0.6 * 3, 1e-9);
}

TEST(VirtualPower, WeakFrictionDoesNotReverse) {
  const System s =
      system("x'' = 0\ny'' = -10\n0.4*al'' = 0", "x = 0\ny = 0.05\nal = 0\n\"x'\" = 1\n\"y'\" = 0\n\"al'\" = 2",
             "[constraint.N]\ngap = \"y\"\nrestitution = 1\nfriction = 0.1\nslip = \"x' + al'\"\n"
             "restitution_tangential = 0.6");
  const double impulse = -0.1 * 2;  // mu times the normal impulse 2 v, v = 1
  EXPECT_NEAR(s.run(0.15).end.state[1], 1 + impulse, 1e-9);
}

TEST(VirtualPower, SmoothFrictionInAnImpactTendsToCoulomb) {
  // x' = 0.5, y' = -1 at the impact, r = 0.5: Coulomb takes 0.3*1.5 = 0.45; with mu = 0.5 it stops.
  const auto after = [&](const std::string& mu, const std::string& eps) {
    const System s =
        system("x'' = -" + mu + "*N*tanh(x'/" + eps + ")\ny'' = -10 + N", "x = 0\ny = 0.05\n\"x'\" = 0.5\n\"y'\" = 0",
               "[constraint.N]\ngap = \"y\"\nrestitution = 0.5");
    return s.run(0.12).end.state[1];
  };
  EXPECT_NEAR(after("0.3", "1e-4"), 0.05, 1e-9);
  EXPECT_LT(std::abs(after("0.5", "1e-4")), 2e-4);
  // dv/dL = -mu tanh(v/eps): sinh(v/eps) falls by exp(-mu L/eps)
  const double eps = 0.4, v = eps * std::asinh(std::sinh(0.5 / eps) * std::exp(-0.5 * 1.5 / eps));
  EXPECT_NEAR(after("0.5", "0.4"), v, 1e-10);
}

// ---- arrays -----------------------------------------------------------------------------------------------------

TEST(Arrays, MatricesAreTheSameAsScalars) {
  const System one = system("x[i]' = sum(A[i,j]*x[j] for j = 1..2) - b[i]*sign(x[1]) for i = 1..2", "\"x[i]\" = 1",
                            "[parameters]\nk = 2\nA = [[0, 1], [\"-k\", -0.3]]\nb = [0, 0.5]");
  const System other = system("x' = v\nv' = -2*x - 0.3*v - 0.5*sign(x)", "x = 1\nv = 1");
  const Trajectory a = one.run(10), b = other.run(10);
  ASSERT_EQ(a.events.size(), b.events.size());
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(a.end.state[i], b.end.state[i], 1e-9);
}

TEST(Arrays, TwoIndicesAreAGrid) {
  const System s = system("T[i,j]' = -i*j*T[i,j] for i = 1..2, j = 1..3", "\"T[i,j]\" = \"i + j\"\n\"T[2,j]\" = 1");
  expect_end(s.run_both(1),
             {2 * std::exp(-1), 3 * std::exp(-2), 4 * std::exp(-3), std::exp(-2), std::exp(-4), std::exp(-6)}, 1e-6);
}

}  // namespace
}  // namespace saltus::physics
