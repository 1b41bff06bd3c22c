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

}  // namespace
}  // namespace saltus::physics
