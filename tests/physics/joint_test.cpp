// Joints: equations g = 0 with multipliers of either sign, against minimal coordinates and closed forms.
#include "physics.hpp"

namespace saltus::physics {
namespace {

const char* const pendulum = "x' = vx\ny' = vy\nvx' = 2*x*rod\nvy' = -1 + 2*y*rod";

System jointed(double angle, double speed = 0) {
  const std::string start = fmt::format("x = {:.17g}\ny = {:.17g}\nvx = {:.17g}\nvy = {:.17g}", std::sin(angle),
                                        -std::cos(angle), speed * std::cos(angle), speed * std::sin(angle));
  return system(pendulum, start, "[constraint.rod]\nequals = \"x^2 + y^2 - 1\"");
}

/// 4 K(sin 1), by the arithmetic-geometric mean of 1 and cos 1.
double period_of_two() {
  double a = 1, b = std::cos(1.0);
  for (int i = 0; i < 10; ++i) {
    const double mean = (a + b) / 2;
    b = std::sqrt(a * b);
    a = mean;
  }
  return 2 * pi / a;
}

TEST(Joint, APendulumComesBackAfterAHundredPeriodsAndItsRodDoesNotDrift) {
  const Trajectory done = jointed(2).run(100 * period_of_two(), 1e-13);
  ASSERT_EQ(done.end.why, Why::time);
  const auto& x = done.end.state;
  EXPECT_NEAR(x[0], std::sin(2.0), 1e-9);
  EXPECT_NEAR(x[1], -std::cos(2.0), 1e-9);
  EXPECT_NEAR(x[0] * x[0] + x[1] * x[1], 1, 1e-15);
  EXPECT_NEAR(x[0] * x[2] + x[1] * x[3], 0, 1e-15);
}

TEST(Joint, TheEnginesAgreeOnAPendulum) { jointed(2).run_both(3 * period_of_two()); }

TEST(Joint, AStartOffTheJointIsAMistakeWithTheAmountAndMayBeProjected) {
  System s = jointed(1);
  s.start({{"x", 1.5}});
  try {
    s.run(1);
    FAIL() << "no mistake";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("does not satisfy the joint 'rod': its value is"), std::string::npos);
  }
  RunOptions o = s.options(1);
  o.project = true;
  const Trajectory done = simulate(s.program, o);
  ASSERT_EQ(done.end.why, Why::time);
  EXPECT_NEAR(std::hypot(done.end.state[0], done.end.state[1]), 1, 1e-14);
  ASSERT_FALSE(done.messages.empty());
  EXPECT_NE(done.messages[0].find("moved onto the joints"), std::string::npos);
}

TEST(Joint, AStartWhoseVelocityLeavesTheJointIsAMistake) {
  System s = jointed(1);
  s.start({{"vx", 0.3}});
  EXPECT_THROW(s.run(1), Error);
}

/// Two masses over a pulley fall with g/3 together; the floor sees (m1 + m2) at m1: it rebounds with r, and the rope
/// stays taut. t1 = sqrt(2 h 3/g); afterwards flights of 2 r^k v1/(g/3).
TEST(Joint, AnImpactGoesThroughARope) {
  const System s = system("a' = u\nb' = w\nu' = -9 + (S + N)/2\nw' = -9 + S", "a = 0.5\nb = 1\nu = 0\nw = 0",
                          "[constraint.S]\nequals = \"a + b - 1.5\"\n[constraint.N]\ngap = \"a\"\nrestitution = 0.5");
  const Trajectory done = s.run_both(1.5);  // first hit at sqrt(2*0.5/3), speed sqrt(3)
  ASSERT_EQ(done.end.why, Why::time);
  ASSERT_GE(done.events.size(), 1U);
  EXPECT_NEAR(done.events[0].t, std::sqrt(1.0 / 3), 1e-12);
  EXPECT_NEAR(done.events[0].state[2], 0.5 * std::sqrt(3.0), 1e-12);
  EXPECT_NEAR(done.events[0].state[3], -0.5 * std::sqrt(3.0), 1e-12);
}

TEST(Joint, TheSameRodTwiceHasTheMotionOfOne) {
  const std::string start = fmt::format("x = {:.17g}\ny = {:.17g}\nvx = 0\nvy = 0", std::sin(1.2), -std::cos(1.2));
  const System twice =
      system("x' = vx\ny' = vy\nvx' = 2*x*(A + 3*B)\nvy' = -1 + 2*y*(A + 3*B)", start,
             "[constraint.A]\nequals = \"x^2 + y^2 - 1\"\n[constraint.B]\nequals = \"3*(x^2 + y^2 - 1)\"");
  const Trajectory a = twice.run_both(10, 1e-13), b = jointed(1.2).run(10, 1e-13);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(a.end.state[i], b.end.state[i], 1e-11);
}

/// Degree 1: two capacitors in parallel share one current, u1' = i1, i1 + i2 = 1: u' = 1/2. Degree 0: i1 stands in g.
TEST(Joint, DegreesOneAndZeroAreKept) {
  const System one = system("u' = A\nw' = 1 - A", "u = 1\nw = 1", "[constraint.A]\nequals = \"u - w\"");
  EXPECT_NEAR(one.run_both(2).end.state[0], 2, 1e-14);
  const System zero = system("u' = A", "u = 1", "[constraint.A]\nequals = \"A + 2*u\"");
  EXPECT_NEAR(zero.run(2).end.state[0], std::exp(-4.0), 1e-13);
  RunOptions o = zero.options(2);
  o.step = StepOptions{.dt = 0.01};
  EXPECT_NEAR(zero.run(o).end.state[0], std::exp(-4.0), 1e-9);
}

/// v' = -mu |N| with N = cos t, which changes its sign at pi/2 + k pi: v and x over a period by integrals of |cos|.
TEST(Joint, FrictionFollowsAForceThatChangesItsSign) {
  const double mu = 0.3, start = 5;
  const System s = system("x' = v\ny' = w\nv' = -0.3*abs(N)*sign(v)\nw' = -cos(t) + N", "x = 0\ny = 0\nv = 5\nw = 0",
                          "[constraint.N]\nequals = \"y\"");
  const Trajectory done = s.run_both(2 * pi);
  ASSERT_EQ(done.end.why, Why::time) << done.end.message;
  EXPECT_NEAR(done.end.state[2], start - 4 * mu, 1e-13);                // integral of |cos| over a period: 4
  EXPECT_NEAR(done.end.state[0], 2 * pi * start - mu * 4 * pi, 1e-12);  // of (2 pi - t)|cos t|: 4 pi
}

/// A bead on a ring without gravity: w' = -mu w^2, th = ln(1 + mu w0 t)/mu; the force points inwards, N = -w^2.
TEST(Joint, ABeadOnARingWithFrictionGoesRoundByALogarithm) {
  const char* const bead =
      "x' = vx\ny' = vy\nvx' = x*N + y*0.3*abs(-2*N)/2*sign(x*vy - y*vx)\nvy' = y*N - x*0.3*abs(-2*N)/2*sign(x*vy - "
      "y*vx)";
  const System s = system(bead, "x = 1\ny = 0\nvx = 0\nvy = 2", "[constraint.N]\nequals = \"(x^2 + y^2 - 1)/2\"");
  const Trajectory done = s.run(10);
  ASSERT_EQ(done.end.why, Why::time) << done.end.message;
  const double th = std::log(1 + 0.3 * 2 * 10) / 0.3, w = 2 / (1 + 0.3 * 2 * 10);
  EXPECT_NEAR(done.end.state[0], std::cos(th), 1e-11);
  EXPECT_NEAR(done.end.state[1], std::sin(th), 1e-11);
  EXPECT_NEAR(done.end.state[2], -w * std::sin(th), 1e-11);
  EXPECT_NEAR(done.end.state[3], w * std::cos(th), 1e-11);
}

/// At rest under a force of negative sign: it sticks below mu g, and slides with a = F - mu g above.
TEST(Joint, FrictionOfANegativeForceHoldsAtAStart) {
  const auto pushed = [](double force) {
    const std::string equations = fmt::format("x' = v\ny' = w\nv' = {} - 0.3*abs(N)*sign(v)\nw' = -9.81 - N", force);
    return system(equations, "x = 0\ny = 0\nv = 0\nw = 0", "[constraint.N]\nequals = \"y\"").run(2);
  };
  EXPECT_EQ(pushed(2.9).end.state[2], 0);
  EXPECT_NEAR(pushed(4).end.state[2], 2 * (4 - 0.3 * 9.81), 1e-13);
  EXPECT_NEAR(pushed(-4).end.state[2], -2 * (4 - 0.3 * 9.81), 1e-13);
}

/// 0 = -1 + N - 2 |N| sign v: no N for v > 0; 1/3 and -1 for v < 0.
TEST(Joint, FrictionThatIsTooStrongForItsJointIsTold) {
  const auto run = [](double speed) {
    return system("x' = v\ny' = w\nv' = -0.5*abs(N)*sign(v)\nw' = -1 + N - 2*abs(N)*sign(v)",
                  fmt::format("x = 0\ny = 0\nv = {}\nw = 0", speed), "[constraint.N]\nequals = \"y\"")
        .run(1)
        .end;
  };
  EXPECT_EQ(run(1).why, Why::inconsistent);
  EXPECT_EQ(run(-1).why, Why::nonunique);
}

/// Friction of a joint's impulse is not computed; a hit along the rail gives the joint none.
TEST(Joint, AnImpactThroughFrictionIsTold) {
  const std::string cart = "x' = v\ny' = w\nv' = -0.3*abs(N)*sign(v){}\nw' = -1 + N{}\nz' = u\nu' = -K";
  const auto run = [&](const char* along, const char* up, const char* gap) {
    return system(fmt::format(fmt::runtime(cart), along, up), "x = 0\ny = 0\nv = 1\nw = 0\nz = -1\nu = 3",
                  fmt::format("[constraint.N]\nequals = \"y\"\n[constraint.K]\ngap = \"{}\"\nrestitution = 1", gap))
        .run(1)
        .end;
  };
  EXPECT_EQ(run("", " + K", "y - z").why, Why::inconsistent);
  EXPECT_EQ(run(" + K", "", "x - z").why, Why::time);
}

}  // namespace
}  // namespace saltus::physics
