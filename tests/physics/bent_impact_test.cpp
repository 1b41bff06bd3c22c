// Impacts whose impulses change the directions they act in: dx/dLambda = D(x), against closed forms.
#include <gtest/gtest.h>

#include "physics.hpp"

namespace saltus::physics {
namespace {

const double fall = -6.6798203568658945, restitution = 0.5, Lambda = -(1 + restitution) * fall;

System body(std::string_view friction_x, std::string_view friction_y, double vx, double vy, double mu = 0.3) {
  return system(
      fmt::format("x' = vx\ny' = vy\nz' = vz\nvx' = -mu*N*{}\nvy' = -mu*N*{}\nvz' = -9.81 + N", friction_x, friction_y),
      fmt::format("x = 0\ny = 0\nz = 0\nvx = {}\nvy = {}\nvz = {:.17g}", vx, vy, fall),
      fmt::format("[parameters]\nmu = {}\n[constraint.N]\ngap = \"z\"\nrestitution = {}", mu, restitution));
}

double end_of(const Trajectory& run, const System& s, std::string_view name) {
  EXPECT_EQ(run.end.why, Why::time) << run.end.message;
  return run.end.state[static_cast<size_t>(s.state(name))];
}

void expect_after(const System& s, std::string_view name, double v, double accuracy = 1e-9) {
  EXPECT_NEAR(end_of(s.run(0.05), s, name), v, accuracy);
  for (const double theta : {0.5, 1.0}) {
    RunOptions o = s.options(0.05);
    o.step = StepOptions{.dt = 0.01, .theta = theta};
    EXPECT_NEAR(end_of(s.run(o), s, name), v, accuracy) << "theta " << theta;
  }
}

// mu*N*v/|v|: the speed falls by mu*Lambda along its own direction, and ends at zero.
TEST(BentImpact, CoulombInAPlaneStopsOrSlowsASlip) {
  const char *x = "vx/max(hypot(vx, vy), 1e-6)", *y = "vy/max(hypot(vx, vy), 1e-6)";
  expect_after(body(x, y, 0.3, 0.4), "vx", 0);
  expect_after(body(x, y, 0.3, 0.4), "vy", 0);
  expect_after(body(x, y, 0, 0), "vx", 0);
  const double left = (5 - 0.3 * Lambda) / 5;
  expect_after(body(x, y, 3, 4), "vx", 3 * left);
  expect_after(body(x, y, 3, 4), "vy", 4 * left);
}

// Linear: exp(-mu Lambda). Cubic: 1/sqrt(1/v^2 + 2 mu Lambda). Quadratic: 1/(1/|v| + mu Lambda).
TEST(BentImpact, ViscousFrictionHasItsClosedForm) {
  for (const double v : {0.3, -2.0, 40.0}) {
    expect_after(body("vx", "0*vy", v, 0), "vx", v * std::exp(-0.3 * Lambda));
    expect_after(body("vx^3", "0*vy", v, 0), "vx", (v > 0 ? 1 : -1) / std::sqrt(1 / (v * v) + 0.6 * Lambda));
    expect_after(body("vx*abs(vx)", "0*vy", v, 0), "vx", (v > 0 ? 1 : -1) / (1 / std::abs(v) + 0.3 * Lambda));
  }
}

// tanh(v/e): sinh(v+/e) = sinh(v/e) exp(-mu Lambda/e). Stiff by up to 1e9.
TEST(BentImpact, RegularisedFrictionOfAnySteepnessEndsTheSlip) {
  for (const double e : {1e-1, 1e-3, 1e-6, 1e-9}) {
    const auto after = [&](double v) {
      const double a = v / e - 0.3 * Lambda / e;  // log of 2 sinh, where it is large
      return a > 20 ? e * a : e * std::asinh(std::exp(a) / 2 * (v / e > 20 ? 1 : -std::expm1(-2 * v / e)));
    };
    for (const double v : {0.3, 2.0, 8.0})
      expect_after(body(fmt::format("tanh(vx/{})", e), "0*vy", v, 0), "vx", after(v));
  }
}

// sat(v/e, -1, 1): a straight way down to e, then exponential.
TEST(BentImpact, KinksInADirectionAreFollowed) {
  for (const double e : {0.5, 1e-3}) {
    const double rest = Lambda - (2 - e) / 0.3;  // left at v = e
    expect_after(body(fmt::format("sat(vx/{}, -1, 1)", e), "0*vy", 2, 0), "vx", e * std::exp(-0.3 * rest / e));
    expect_after(body(fmt::format("sat(vx/{}, -1, 1)", e), "0*vy", 8, 0), "vx", 8 - 0.3 * Lambda);
  }
}

// Friction that falls with the slip, mu/(1 + |v|)*sign(v): v + v^2/2 falls by mu*Lambda; the sign is that of x+.
TEST(BentImpact, CoulombsSignIsThatAfterThePath) {
  const double v = 4, left = v + v * v / 2 - 0.3 * Lambda;
  expect_after(body("sign(vx)/(1 + abs(vx))", "0*vy", v, 0), "vx", std::sqrt(1 + 2 * left) - 1);
  expect_after(body("sign(vx)/(1 + abs(vx))", "0*vy", -v, 0), "vx", 1 - std::sqrt(1 + 2 * left));
  expect_after(body("sign(vx)/(1 + abs(vx))", "0*vy", 1, 0), "vx", 0);
  expect_after(body("(1 + abs(vx))*sign(vx - 1)", "0*vy", 0.5, 0), "vx", 1);
}

// A direction without a value at the end of a slip is told, with the remedy.
TEST(BentImpact, ADirectionWithoutValueAtRestIsTold) {
  const Trajectory run = body("vx/hypot(vx, vy)", "vy/hypot(vx, vy)", 0.3, 0.4).run(0.05);
  EXPECT_EQ(run.end.why, Why::nonunique);
  EXPECT_NE(run.end.message.find("direction has no value"), std::string::npos) << run.end.message;
}

// Two feet of one body, each with its own friction: impulses that grow together do not depend on their order.
TEST(BentImpact, TwoContactsAtOnceKeepTheirSymmetry) {
  const System s = system(
      "x' = vx\nz' = vz\nth' = w\nvx' = -0.3*(A + B)*vx\nvz' = -9.81 + A + B\nw' = 3*(A - B)",
      fmt::format("x = 0\nz = 0\nth = 0\nvx = 2\nvz = {:.17g}\nw = 0", fall),
      "[constraint.A]\ngap = \"z + th\"\nrestitution = 0.5\n[constraint.B]\ngap = \"z - th\"\nrestitution = 0.5");
  const Trajectory run = s.run(0.05);
  EXPECT_NEAR(end_of(run, s, "vx"), 2 * std::exp(-0.3 * Lambda), 1e-9);
  EXPECT_NEAR(end_of(run, s, "w"), 0, 1e-9);
}

}  // namespace
}  // namespace saltus::physics
