// Friction in the plane and in space, against closed forms, and numbers of 18 digits from an integration in blown-up
// time (quadrature and Taylor series with 25 to 40 digits, written independently).
#include "physics.hpp"

namespace saltus::physics {
namespace {

System puck(std::string_view wx, std::string_view wy, double F, double x, double y, double vx, double vy) {
  return system(
      fmt::format("x' = vx\ny' = vy\nvx' = {1} - {0:.17g}*unit(vx, vy)\nvy' = {2} - {0:.17g}*unit(vy, vx)", F, wx, wy),
      fmt::format("x = {:.17g}\ny = {:.17g}\nvx = {:.17g}\nvy = {:.17g}", x, y, vx, vy));
}

void expect_state(const Trajectory& run, std::initializer_list<double> wanted, double accuracy) {
  ASSERT_EQ(why_name(run.end.why), why_name(Why::time)) << run.end.message;
  size_t i = 0;
  for (const double w : wanted) EXPECT_NEAR(run.end.state[i++], w, accuracy) << story(run);
}

void expect_event(const Trajectory& run, size_t i, EventKind kind, double t, double accuracy = 1e-12) {
  ASSERT_GT(run.events.size(), i) << story(run);
  EXPECT_EQ(run.events[i].kind, kind) << story(run);
  EXPECT_NEAR(run.events[i].t, t, accuracy) << story(run);
}

TEST(VectorFriction, APuckSlidesStraightToRest) {  // F = 5, v = (3, 4): t = 1, way |v|^2/(2 F)
  const Trajectory run = puck("0", "0", 5, 0, 0, 3, 4).run(2, 1e-13);
  expect_event(run, 0, EventKind::slide, 1);
  expect_state(run, {1.5, 2, 0, 0}, 1e-13);
  EXPECT_EQ(run.end.mode.text(), "0");
}

TEST(VectorFriction, AConstantForceBendsTheWayToRest) {  // F |v| + W.v falls at the rate F^2 - W^2
  const Trajectory run = puck("3", "0", 5, 0, 0, 3, 4).run(3, 1e-13);
  expect_event(run, 0, EventKind::slide, 2.125);
  expect_state(run, {3.9375, 236.0 / 91, 0, 0}, 1e-12);
}

TEST(VectorFriction, RestIsFoundWhereTheForceIsAllButTheFriction) {
  const Trajectory run = puck("0.99", "0", 1, 0, 0, 0.6, 0.8).run(82, 1e-13);
  expect_event(run, 0, EventKind::slide, 1.594 / 0.0199, 1e-10);
  expect_state(run, {31.9899497487437186, 0.687175072022252392, 0, 0}, 1e-11);
}

TEST(VectorFriction, TheDirectionThatTurnsHasNoSeriesAtRest) {
  const Trajectory run = puck("-x + 0.3*cos(2*t)", "-y + 0.3*sin(2*t)", 1, 1, 0, 0, 1.5).run(3.4369, 1e-13);
  EXPECT_EQ(run.end.mode.text(), "~");
  const Trajectory rest = puck("-x + 0.3*cos(2*t)", "-y + 0.3*sin(2*t)", 1, 1, 0, 0, 1.5).run(3.437, 1e-13);
  expect_event(rest, 0, EventKind::slide, 3.43695792169390890);
  expect_state(rest, {0.158013534879668175, 0.337178948722427604, 0, 0}, 1e-12);
}

TEST(VectorFriction, InSpaceTooABallComesToRest) {
  const System s =
      system("x' = u\ny' = v\nz' = w\nu' = -2*unit(u, v, w)\nv' = -2*unit(v, w, u)\nw' = 1 - 2*unit(w, v, u)",
             "x = 0\ny = 0\nz = 0\nu = 1\nv = 2\nw = 2");
  const Trajectory run = s.run(3, 1e-13);
  expect_event(run, 0, EventKind::slide, 8.0 / 3);
  expect_state(run, {14.0 / 15, 28.0 / 15, 37.0 / 12, 0, 0, 0}, 1e-12);
}

TEST(VectorFriction, ScaledArgumentsAreAnEllipse) {
  const System s = system("x' = u\ny' = v\nu' = -unit(u, sqrt(2)*v)\nv' = -sqrt(2)*unit(sqrt(2)*v, u)",
                          "x = 0\ny = 0\nu = 1\nv = \"1/sqrt(2)\"");
  const Trajectory run = s.run(2, 1e-13);
  expect_event(run, 0, EventKind::slide, (std::sqrt(2.0) + std::asinh(1.0)) / 2);
  expect_state(run, {(2 * std::sqrt(2.0) - 1) / 3, 0.297096844982471186, 0, 0}, 1e-12);
}

TEST(VectorFriction, ANearPassageIsNoRest) {  // twice the friction against the motion: |v| falls to 1e-9 and below
  const Trajectory run = puck("2", "0", 1, 0, 0, -1, 0.001).run(2, 1e-13);
  EXPECT_TRUE(changes(run).empty()) << story(run);
  EXPECT_NEAR(run.end.state[2], 1.66666683333329167, 1e-12);
  EXPECT_NEAR(run.end.state[3], 1.4999994750002775e-10, 1e-15);
  const Trajectory nearer = puck("2", "0", 1, 0, 0, -1, 1e-12).run(2, 1e-13);
  EXPECT_TRUE(changes(nearer).empty()) << story(nearer);
  EXPECT_NEAR(nearer.end.state[2], 5.0 / 3, 1e-10);
}

TEST(VectorFriction, RestIsLeftWhereTheForceLeavesTheDisc) {
  const Trajectory straight = puck("t/2", "0.6", 1, 0, 0, 0, 0).run(3, 1e-13);
  expect_event(straight, 0, EventKind::leave, 1.6);
  expect_state(straight, {0.174436424649339907, 0.083758310445307973, 0.38635885911816343, 0.166237173152779795},
               1e-12);
  const Trajectory turning = puck("t/2*cos(0.7*t)", "t/2*sin(0.7*t)", 1, 0, 0, 0, 0).run(4, 1e-13);
  expect_event(turning, 0, EventKind::leave, 2);
  expect_state(turning, {-0.415819771221382182, 0.487773493857932905, -0.801688505351634127, 0.545728159335508584},
               1e-12);
}

TEST(VectorFriction, AForceBeyondTheDiscMovesItAtOnce) {
  const Trajectory run = puck("2*cos(t)", "2*sin(t)", 1, 0, 0, 0, 0).run(1, 1e-13);
  expect_state(run, {0.43769492128768533, 0.208278663234882278, 0.755703108356962028, 0.597692934631998957}, 1e-12);
  EXPECT_EQ(puck("0.6", "0.79", 1, 0, 0, 0, 0).run(1).end.mode.text(), "0");
}

TEST(VectorFriction, StaticFrictionHoldsInTheWiderDisc) {  // v = ((t - 1)^2 - 1/4)/2
  const System s =
      system("x' = vx\ny' = vy\nvx' = t - unit(vx, vy; 1.5)\nvy' = -unit(vy, vx; 1.5)", "x = 0\ny = 0\nvx = 0\nvy = 0");
  const Trajectory run = s.run(2.5, 1e-13);
  expect_event(run, 0, EventKind::leave, 1.5);
  expect_state(run, {5.0 / 12, 0, 1, 0}, 1e-13);
}

TEST(VectorFriction, TwoPlatesRubOnEachOther) {
  const System s = system(
      "a' = u\nb' = v\nc' = w\nd' = z\nu' = 0.3 - 1.2*unit(u, v) + 0.4*unit(w - u, z - v)\n"
      "v' = -1.2*unit(v, u) + 0.4*unit(z - v, w - u)\nw' = 0.4*unit(u - w, v - z)\nz' = 0.2 - 0.4*unit(z - v, w - u)",
      "a = 0\nb = 0\nc = 0\nd = 0\nu = 1\nv = 0\nw = 0\nz = 2");
  ASSERT_EQ(s.program.vectors(), 2);  // u - w, v - z are w - u, z - v
  const Trajectory run = s.run(11, 1e-13);
  expect_event(run, 0, EventKind::slide, 1.14478171621678891);
  expect_event(run, 1, EventKind::slide, 10.0785055777395644, 1e-11);
  expect_state(
      run, {0.508811805965693956, 0.0966695983313022006, 0.335046130308808947, 10.1492730556537591, 0, 0, 0, 0}, 1e-11);
}

/// Three feet of a rigid body (J = 1/2): all of them rest at once, or one does and the body pivots on it.
Trajectory tripod(double wx, double wy, double until) {
  std::string e = "x' = vx\ny' = vy\nth' = om\n", torque;
  for (int i = 1; i <= 3; ++i) {
    e += fmt::format("p{0} = cos(th + 2*pi/3*{1})\nq{0} = sin(th + 2*pi/3*{1})\n", i, i - 1);
    e += fmt::format("f{0} = -unit(vx - om*q{0}, vy + om*p{0})/3\ng{0} = -unit(vy + om*p{0}, vx - om*q{0})/3\n", i);
    torque += fmt::format("{0}p{1}*g{1} - q{1}*f{1}", i > 1 ? " + " : "", i);
  }
  e += fmt::format("vx' = {} + f1 + f2 + f3\nvy' = {} + g1 + g2 + g3\nom' = 2*({})", wx, wy, torque);
  return system(e, "x = 0\ny = 0\nth = 0\nvx = 1\nvy = 0.3\nom = 0.7").run(until, 1e-13);
}

TEST(VectorFriction, ATripodComesToRestOnAllFeetAtOnceOrOnOneFirst) {
  const Trajectory all = tripod(0.2, 0.3, 3);
  ASSERT_EQ(changes(all).size(), 1U) << story(all);
  EXPECT_NEAR(all.events[0].t, 1.68294451343480314, 1e-12);
  expect_state(all, {0.774782013144377358, 0.40113931180357468, 0.490193623392788382, 0, 0, 0}, 1e-12);
  const Trajectory one = tripod(0, 0, 2);
  expect_event(one, 0, EventKind::slide, 1.1554914210559586);
}

TEST(VectorFriction,
     AThrownBallSticksOrSlipsInTheImpactByTheCone) {  // U_tt = 7/2: sticks iff |h-| 2/7 <= mu (1 + e) |v_n|
  for (const double mu : {0.2, 0.1}) {
    const System s =
        system(fmt::format("z' = w\nvx' = -{0}*N*unit(vx - wy, vy + wx)\nvy' = -{0}*N*unit(vy + wx, vx - wy)\nw' = N\n"
                           "wx' = -2.5*{0}*N*unit(vy + wx, vx - wy)\nwy' = 2.5*{0}*N*unit(vx - wy, vy + wx)",
                           mu),
               "z = 4\nvx = 3\nvy = 0\nw = -4\nwx = 0\nwy = 0", "[constraint.N]\ngap = \"z\"\nrestitution = 0.8");
    const Trajectory run = s.run(2);
    EXPECT_NEAR(run.end.state[1], mu == 0.2 ? 15.0 / 7 : 2.28, 1e-13) << story(run);
    EXPECT_NEAR(run.end.state[3], 3.2, 1e-13);
  }
}

TEST(VectorFriction, TheAnswerDoesNotDependOnTheAxes) {
  const Trajectory a = puck("0.5*sin(t)", "0.3", 1, 0, 0, 1, 0.2).run(6, 1e-13);
  for (const double angle : {0.4, 1.1, 2.0, 4.4}) {
    const double c = std::cos(angle), s = std::sin(angle);
    const auto turned = [&](double p, double q) { return fmt::format("({:.17g}*0.5*sin(t) + {:.17g}*0.3)", p, q); };
    const Trajectory b = puck(turned(c, -s), turned(s, c), 1, 0, 0, c * 1 - s * 0.2, s * 1 + c * 0.2).run(6, 1e-13);
    ASSERT_EQ(changes(a).size(), changes(b).size());
    for (size_t i = 0; i < a.events.size(); ++i) EXPECT_NEAR(a.events[i].t, b.events[i].t, 1e-11);
    EXPECT_NEAR(b.end.state[0], c * a.end.state[0] - s * a.end.state[1], 1e-11);
    EXPECT_NEAR(b.end.state[1], s * a.end.state[0] + c * a.end.state[1], 1e-11);
  }
}

TEST(VectorFriction, UnitOfOneIsSign) {
  const System s = system("v' = 0.3 - unit(v)", "v = 1");
  EXPECT_EQ(s.program.vectors(), 0);
  EXPECT_NEAR(s.run(3).events.at(0).t, 1 / 0.7, 1e-14);
}

TEST(VectorFriction, UnitInsideAFunctionIsAMistake) {
  EXPECT_THROW(system("u' = -exp(unit(u, v))\nv' = -unit(v, u)", "u = 1\nv = 1"), Error);
  EXPECT_THROW(system("u' = -unit(u, v)^2\nv' = -unit(v, u)", "u = 1\nv = 1"), Error);
}

}  // namespace
}  // namespace saltus::physics
