#include "flow/variation.hpp"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "derivatives.hpp"

namespace saltus {
namespace {

void expect_equal(const std::string& model, double until, const std::string& kind, double tolerance = 1e-7) {
  Derivatives derivatives(model, until);
  const Mat exact = derivatives.exact();
  const std::optional<Mat> differences = derivatives.differences(1e-4);
  EXPECT_NE(derivatives.events.find(kind), std::string::npos) << "no " << kind << " in " << derivatives.events;
  ASSERT_TRUE(differences) << "runs nearby have other events than " << derivatives.events;
  const double size = 1 + differences->max_abs();
  EXPECT_LT((exact - *differences).max_abs(), tolerance * size) << "exact\n"
                                                                << exact << "\ndifferences\n"
                                                                << *differences;
}

TEST(Variation, FollowsASmoothNonlinearFlow) {
  expect_equal(R"M(
equations = """
  x' = s*(y - x)
  y' = x*(r - z) - y
  z' = x*y - b*z
"""
[parameters]
s = 10
r = 28
b = 2.6666
[initial]
x = 1
y = 1.5
z = 20
)M",
               1.5, "");
}

TEST(Variation, FollowsImpulsesThatChangeTheirDirections) {
  const std::string rod = R"M(
equations = """
  x' = vx
  y' = vy
  th' = w
  vx' = -mu*N*slide/m
  vy' = -9.81 + N/m
  w' = (N*L*sin(th) - mu*N*slide*L*cos(th))/J
  slip = vx + L*w*cos(th)
  slide = SLIDE
"""
[parameters]
mu = 0.3
m = 1
L = 0.5
J = 0.1
k = 0.4
[initial]
x = 0
th = 0.6
y = 0.6
vx = 1
vy = -2
w = 0.5
[constraint.N]
gap = "y - L*cos(th)"
restitution = 0.4
)M";
  for (const std::string slide :
       {"tanh(slip/k)", "sat(slip/k, -1, 1)", "sign(slip - 1)/(1 + k*abs(slip))", "sign(slip - 0.5)*(1 + k*slip^2)"}) {
    std::string text = rod;
    text.replace(text.find("SLIDE"), 5, slide);
    expect_equal(text, 0.3, "impact");
  }
}

TEST(Variation, HasTheSameBitsWithMachineCode) {  // smooth, slid, and of more directions than a register holds
  const std::string text = R"M(
equations = """
  x' = v
  v' = -sin(x) - 0.2*v*exp(-v^2) - 0.3*sign(v) + a*cos(t)
  y' = x*z
  z' = -y + tanh(v)
  w' = x*y - w
"""
[parameters]
a = 0.8
[initial]
x = 1
v = 0.5
y = 0
z = 1
w = 0
)M";
  const Program program(read_model_text(text));
  const auto tangents = [&](Native native) {
    RunOptions o;
    o.parameters = parameter_values(program.model());
    o.initial = initial_values(program.model(), o.parameters);
    o.until = 60;
    o.native = native;
    Variation variation(program, o);
    variation.begin(Mat::Identity(5, 5));
    o.on_piece = [&](const Piece& piece, const Arc& arc) { variation.along(piece, arc); };
    o.on_transition = [&](const Transition& e) { variation.through(e); };
    simulate(program, o);
    return variation.tangents();
  };
  const Mat interpreted = tangents(Native::off);
  EXPECT_TRUE(interpreted.allFinite());
  if (native_available()) {
    EXPECT_EQ(interpreted, tangents(Native::on));
  }
}

// The model slides with a sigma that has a formula in a mode with a schedule and is solved for in one without.
TEST(Variation, IsTheSameWhateverItsProgramWasUsedForBefore) {
  const Program program(read_model(SALTUS_SOURCE_DIR "/models/predator_prey/model.toml"));
  const auto tangents = [&](const Program& of) {
    RunOptions o;
    o.parameters = parameter_values(of.model());
    o.initial = initial_values(of.model(), o.parameters);
    o.until = 400;
    Variation variation(of, o);
    Mat by_state = Mat::Zero(2, 7), by_parameter = Mat::Zero(5, 7);
    by_state.leftCols(2).setIdentity();
    by_parameter.rightCols(5).setIdentity();
    variation.begin(by_state, by_parameter);
    o.on_piece = [&](const Piece& piece, const Arc& arc) { variation.along(piece, arc); };
    o.on_transition = [&](const Transition& e) { variation.through(e); };
    simulate(of, o);
    return variation.tangents();
  };
  const Mat first = tangents(program);
  EXPECT_TRUE(first.allFinite());
  EXPECT_GT(first.max_abs(), 0);
  EXPECT_EQ(first, tangents(program));
}

TEST(Variation, NeedsNoMovingStateToMove) {  // the state rests, its tangents turn
  Derivatives derivatives("equations = \"\"\"\n  x' = v\n  v' = -x\n\"\"\"\n[initial]\nx = 0\nv = 0\n", 20);
  Mat exact(2, 2);
  exact << std::cos(20.0), std::sin(20.0), -std::sin(20.0), std::cos(20.0);
  EXPECT_LT((derivatives.exact() - exact).max_abs(), 1e-11);
}

// x = int |t - 1|^n from 0 to 3 = (1 + 2^(n+1))/(n + 1). Where z = 0, by n it has no series: |z|^n log|z|.
TEST(Variation, ByTheExponentOfWhatPassesZero) {
  Derivatives derivatives(
      "equations = \"\"\"\n  z' = 1\n  x' = abs(z)^n\n\"\"\"\n[parameters]\nn = 2\n[initial]\nz = -1\nx = 0\n", 3);
  const double n = 2, power = std::pow(2, n + 1);
  const double exact = power * std::log(2) / (n + 1) - (1 + power) / ((n + 1) * (n + 1));
  EXPECT_NEAR(derivatives.exact()(1, 2), exact, 1e-10);
}

TEST(Variation, CrossesASwitch) {
  expect_equal(R"M(
equations = """
  y' = v
  v' = -y + sin(omega*t) - F*sign(v) - D*sign(y)
"""
[parameters]
F = 0.1
omega = 1.3
D = 0.2
[initial]
y = "1 + F"
v = 2
)M",
               6, "cross");
}

TEST(Variation, CrossesTheBreaksOfTables) {
  for (const std::string between : {"linear", "cubic", "step"}) {
    expect_equal(R"M(
equations = """
  x' = y
  y' = -x + a*q(k*x + 0.1) - 0.1*y
  z' = q(sin(k*t))*x
"""
[parameters]
a = 0.35
k = 1.3
[initial]
x = "1 + q(a)"
y = 0.5
z = 0
[table.q]
points = [[-3, 0.4], [-1.2, 0.3], [-0.4, -0.5], [0.3, 0.7], [0.9, 0.1], [2.5, 0.6]]
outside = "hold"
between = ")M" + between +
                     "\"\n",
                 8, "");
  }
}

TEST(Variation, SlidesOnAStepOfATable) {
  expect_equal(R"M(
equations = """
  x' = b + 0.5*sin(w*t) - q(k*x)
  z' = q(k*x)
"""
[parameters]
b = 0.3
w = 1.1
k = 0.8
[initial]
x = 1
z = 0
[table.q]
points = [[-2, -2], [-1, -1], [0.2, 1.2], [1.5, 2]]
between = "step"
outside = "hold"
)M",
               5, "slide");
}

TEST(Variation, EntersAndLeavesSliding) {
  expect_equal(R"M(
equations = """
  y' = v
  v' = -y + sin(omega*t) - F*sign(v)
"""
[parameters]
F = 0.4
omega = 0.3333
[initial]
y = 1
v = 2
)M",
               20, "leave");
}

TEST(Variation, SlidesOnAMovingSurface) {
  expect_equal(R"M(
equations = """
  x' = 0.3*z - 2*sign(x - a*sin(w*t))
  z' = -z + x + 0.2*sign(x - a*sin(w*t))
"""
[parameters]
a = 0.5
w = 1.2
[initial]
x = 1
z = 0.4
)M",
               5, "slide");
}

TEST(Variation, EntersAnIntersectionOfTwoSurfaces) {
  expect_equal(R"M(
equations = """
  x' = -2*sign(x) + 0.3*sin(w*t) + 0.1*z
  y' = -sign(y) + k*sign(x) + 0.2*z
  z' = -z + x + cos(w*t) + q*sign(y)
"""
[parameters]
w = 1.1
k = 0.3
q = 0.4
[initial]
x = 1
y = 2.2
z = 0.1
)M",
               5, "slide");
}

TEST(Variation, ReleasesAHoldingSwitch) {
  expect_equal(R"M(
equations = """
  x' = v
  v' = -k*x - Fslip*sign(v - vdr, Fstick/Fslip)
"""
[parameters]
k = 1.1
Fslip = 1
Fstick = 2
vdr = 0.2
[initial]
x = 2
v = 0
)M",
               14.5, "leave");
}

TEST(Variation, ReboundsFromAMovingWall) {
  expect_equal(R"M(
equations = """
  u' = v
  v' = -k*u + N/m
"""
[parameters]
w = 2.6
r = 0.8
k = 1.2
m = 1.5
[constraint.N]
gap = "u - sin(w*t)"
restitution = "r"
[initial]
u = 2.1
v = -0.3
)M",
               6, "impact");
}

TEST(Variation, ReboundsAlongACurvedGap) {
  expect_equal(R"M(
equations = """
  th' = om
  om' = -g/l*sin(th) + N*cos(th)
"""
[parameters]
g = 9.81
l = 1.2
r = 0.7
d = 0.1
[constraint.N]
gap = "sin(th) + d"
restitution = "r*(1 + 0.1*om^2)^(-1)"
[initial]
th = 1
om = 0
)M",
               4, "impact", 1e-6);
}

TEST(Variation, StopsAtAPlasticContactAndOpensAgain) {
  expect_equal(R"M(
equations = """
  q' = v
  v' = -g + A*sin(w*t) + N
"""
[parameters]
g = 1
A = 2
w = 1.3
[constraint.N]
gap = "q"
restitution = "0"
[initial]
q = 1
v = -0.5
)M",
               9, "open");
}

TEST(Variation, SlipsAndSticksInAnImpactWithFriction) {
  const std::string model = R"M(
equations = """
  x' = u
  y' = v
  u' = -mu*N*sign(u)
  v' = -g + N
"""
[parameters]
mu = MU
g = 9.81
r = 0.6
[constraint.N]
gap = "y"
restitution = "r"
[initial]
x = 0
y = 1
u = 3
v = -1
)M";
  const auto with = [&](const std::string& mu) {
    std::string text = model;
    return text.replace(text.find("MU"), 2, mu);
  };
  expect_equal(with("0.2"), 0.9, "impact");
  expect_equal(with("2.0"), 0.9, "impact");  // the slip ends in the impact
}

TEST(Variation, PassesADiodeOfDegreeOne) {
  expect_equal(R"M(
equations = """
  i' = (-v + Vin*step(sin(w*t)) + d)/L
  v' = (i - v/R)/C
"""
[parameters]
Vin = 15
L = 1.1
C = 0.7
R = 2
w = 1.5
[constraint.d]
gap = "i"
[initial]
i = 1
v = 12
)M",
               5, "close");
}

TEST(Variation, PassesADiodeOfDegreeZero) {
  expect_equal(R"M(
equations = """
  v' = (E*sin(w*t) - v/R + n)/C
  u' = v - u
"""
[parameters]
E = 2
w = 1.7
R = 3
C = 1.2
Rd = 0.3
[constraint.n]
gap = "v + Rd*n"
[initial]
v = 1
u = 0
)M",
               6, "close");
}

/// The inner ball is caught between the wall and the other ball until both lie still.
TEST(Variation, PressesAContactThatWasAboutToOpen) {
  expect_equal(R"M(
equations = """
  x0' = v0
  v0' = -k*x0 + 0.8124*sin(w*t) + (N0 - N1)/1.8486
  x1' = v1
  v1' = -k*x1 + 0.9359*sin(w*t) + (N1 - N2)/0.5118
"""
[parameters]
k = 0.4
w = 1.7
r = 0.8
[constraint.N0]
gap = "x0"
restitution = "r"
[constraint.N1]
gap = "x1 - x0"
restitution = "0"
[constraint.N2]
gap = "2 - x1"
restitution = "r"
[initial]
x0 = 0.482
v0 = -1.7957
x1 = 1.265
v1 = -0.7291
)M",
               3, "close");
}

TEST(Variation, Jumps) {
  expect_equal(R"M(
equations = """
  th' = om
  om' = g/l*sin(th)
"""
[parameters]
g = 9.81
l = 1
alpha = 0.3927
gamma = 0.08
[jump.strike]
on = "th - gamma - alpha"
direction = "rising"
set = { th = "gamma - alpha + 0.01*sin(t)", om = "om*cos(2*alpha) + 0.1*max(om - 1, 0)" }
[initial]
th = 0
om = 1.5
)M",
               2, "jump");
}

TEST(Variation, JumpsByAClockWhosePeriodIsAParameter) {
  expect_equal(R"M(
equations = """
  x' = -a*x + 0.3*t
  k' = x
"""
[parameters]
a = 0.5
T = 0.7
b = 0.4
[jump.tick]
every = "T"
phase = "b/2"
set = { x = "x + b*k + 0.1*t^2" }
[initial]
x = 1
k = 0.2
)M",
               3.3, "jump");
}

TEST(Variation, OneJumpCausesAnother) {
  expect_equal(R"M(
equations = """
  x' = 1 + 0.2*y
  y' = -c*y
"""
[parameters]
c = 0.4
a = 1.5
[jump.first]
on = "x - a"
direction = "rising"
set = { y = "y + 2*x" }
[jump.second]
on = "y - 3"
direction = "rising"
set = { x = "x - 1 - 0.2*t", y = "0.5*y" }
[initial]
x = 0
y = 1
)M",
               2.5, "jump");
}

TEST(Variation, WrapsAnAngle) {
  expect_equal(R"M(
equations = """
  x' = -x + mod(ph, P)^2
  ph' = 1 + 0.3*x
"""
[parameters]
P = 1.5
[initial]
x = 0.3
ph = 0.2
)M",
               6, "");
}

TEST(Variation, ForgetsTheBouncesBeforeRest) {  // the ball comes to rest: its height and speed are forgotten
  expect_equal(R"M(
equations = """
  q' = v
  v' = -g + N
  x' = u
  u' = -c*u
"""
[parameters]
g = 9.81
c = 0.3
r = 0.5
[constraint.N]
gap = "q"
restitution = "r"
[initial]
q = 1
v = 0
x = 0
u = 1
)M",
               3, "chatter", 1e-6);
}

TEST(Variation,
     StartsOnWhatItSlidesOn) {  // a start beside the surface is brought back to it along the jump of the field
  Derivatives derivatives(R"M(
equations = """
  x' = -sign(x)
  z' = 2*x + 0.5*sign(x)
"""
[initial]
x = 0
z = 1
)M",
                          1);
  const Mat exact = derivatives.exact();
  EXPECT_NEAR(exact(0, 0), 0, 1e-14);
  EXPECT_NEAR(exact(1, 0), 0.5, 1e-14);
  EXPECT_NEAR(exact(1, 1), 1, 1e-14);
}

TEST(Variation, KnowsTheClosedFormOfABelt) {  // Leine 2000, section 3.4: just after the release
  Derivatives derivatives(R"M(
equations = """
  x' = v
  v' = -x - sign(v - 0.2, 2)
"""
[initial]
x = 2.019803902718557
v = 0
)M",
                          13.4);
  const Mat exact = derivatives.exact();
  EXPECT_NEAR(exact(0, 0), -0.6798068225289727, 1e-9);
  EXPECT_NEAR(exact(1, 0), 4.953570700418342, 1e-9);
  EXPECT_NEAR(exact(0, 0) * exact(1, 1) - exact(0, 1) * exact(1, 0), 0, 1e-9);
}

TEST(Variation, KnowsTheClosedFormOfABouncingBall) {
  // Dropped from q0: the first bounce at t1 = sqrt(2 q0/g), then q = r g t1 (t - t1) - g (t - t1)^2/2.
  Derivatives derivatives(R"M(
equations = """
  q' = v
  v' = -g + N
"""
[parameters]
g = 2
r = 0.8
[constraint.N]
gap = "q"
restitution = "r"
[initial]
q = 1
v = 0
)M",
                          1.5);
  const Mat exact = derivatives.exact();
  const double g = 2, r = 0.8, t = 1.5, t1 = 1, dt1_dq = 0.5, dt1_dg = -0.25;
  const double by_t1 = r * g * (t - t1) - r * g * t1 + g * (t - t1);
  EXPECT_NEAR(exact(0, 0), by_t1 * dt1_dq, 1e-12);
  EXPECT_NEAR(exact(1, 0), (r * g + g) * dt1_dq, 1e-12);
  EXPECT_NEAR(exact(0, 2), r * t1 * (t - t1) - (t - t1) * (t - t1) / 2 + by_t1 * dt1_dg, 1e-12);
  EXPECT_NEAR(exact(0, 3), g * t1 * (t - t1), 1e-12);
}

TEST(Variation, KnowsTheClosedFormOfADiode) {
  // i' = E - d until E is cut at t = T: from i0 the current i0 + E*T falls with rate -1 and stops at zero.
  Derivatives derivatives(R"M(
equations = """
  i' = if(t < T, E, -1) + d
  q' = i
"""
[parameters]
E = 2
T = 1
[constraint.d]
gap = "i"
[initial]
i = 0.5
q = 0
)M",
                          5);
  const Mat exact = derivatives.exact();  // q = i0 T + E T^2/2 + (i0 + E T)^2/2
  EXPECT_NEAR(exact(0, 0), 0, 1e-12);
  EXPECT_NEAR(exact(1, 0), 1 + 2.5, 1e-11);
  EXPECT_NEAR(exact(1, 2), 0.5 + 2.5, 1e-11);
  EXPECT_NEAR(exact(1, 3), 0.5 + 2 + 2.5 * 2, 1e-11);
}

// All of h1 flows into h2 before h1 rests at 0; z is the integral of h1: 2/(3 c) h1^(3/2).
TEST(Variation, KnowsTheClosedFormOfATankThatRunsEmpty) {
  Derivatives derivatives(R"M(
equations = """
  h1' = -c*sqrt(max(h1, 0))
  h2' = c*sqrt(max(h1, 0))
  z' = h1
"""
[parameters]
c = 0.5
[initial]
h1 = 1
h2 = 0.3
z = 0
)M",
                          6);
  const Mat exact = derivatives.exact();
  for (Index j = 0; j < exact.cols(); ++j) EXPECT_EQ(exact(0, j), 0);
  EXPECT_NEAR(exact(1, 0), 1, 1e-9);
  EXPECT_NEAR(exact(1, 3), 0, 1e-9);
  EXPECT_NEAR(exact(2, 0), 2, 1e-9);
  EXPECT_NEAR(exact(2, 3), -8.0 / 3, 1e-9);
}

// A start later by dt is h1 less by q dt, and all of the rest of the motion later: d h/d h1(0) = h'/q. With w =
// sqrt(h1), t = -(2/c^2) (c w + q log(1 - c w/q)).
TEST(Variation, KnowsTheClosedFormOfATankThatFillsFromEmpty) {
  Derivatives derivatives(R"M(
equations = """
  h1' = q - c*sqrt(max(h1, 0))
  h2' = c*sqrt(max(h1, 0))
"""
[parameters]
c = 0.5
q = 1
[initial]
h1 = 0
h2 = 0
)M",
                          2);
  double low = 0, high = 2;
  for (int k = 0; k < 200; ++k) {
    const double w = 0.5 * (low + high), t = -8 * (0.5 * w + std::log1p(-0.5 * w));
    (t < 2 ? low : high) = w;
  }
  const Mat exact = derivatives.exact();
  EXPECT_NEAR(exact(0, 0), 1 - 0.5 * low, 1e-8);
  EXPECT_NEAR(exact(1, 0), 0.5 * low, 1e-8);
}

TEST(Variation, KnowsTheClosedFormOfAClock) {
  // x doubles at every tick of T = 1/2 and decays in between; the last of six ticks is at 3 T.
  Derivatives derivatives(R"M(
equations = "x' = -a*x"
[parameters]
a = 0.3
T = 0.5
[jump.tick]
every = "T"
set = { x = "2*x + t" }
[initial]
x = 1
)M",
                          1.2);
  const Mat exact = derivatives.exact();
  const double a = 0.3, T = 0.5, t = 1.2, e = std::exp(-a * T);
  const double x1 = 2 * e + T, x2 = 2 * x1 * e + 2 * T;
  const double x1_T = -2 * a * e + 1, x2_T = 2 * x1_T * e - 2 * a * x1 * e + 2;
  EXPECT_NEAR(exact(0, 0), 4 * std::exp(-a * t), 1e-12);
  EXPECT_NEAR(exact(0, 2), x2_T * std::exp(-a * (t - 2 * T)) + 2 * a * x2 * std::exp(-a * (t - 2 * T)), 1e-11);
}

TEST(Variation, IsNotMovedBySections) {
  const std::string model = R"M(
equations = """
  y' = v
  v' = -y + sin(t) - 0.4*sign(v)
"""
[initial]
y = 1
v = 2
)M";
  Derivatives plain(model, 7), seen(model + "[section.a]\non = \"y - 0.3\"\n[section.b]\nevery = \"0.37\"\n", 7);
  EXPECT_LT((plain.exact() - seen.exact()).max_abs(), 1e-11);
}

TEST(Variation, MeetsTwoEventsAtOnce) {  // two balls that know nothing of each other, dropped together
  Derivatives two(R"M(
equations = """
  q' = v
  v' = -2 + N
  p' = w
  w' = -2 + M
"""
[constraint.N]
gap = "q"
restitution = "0.8"
[constraint.M]
gap = "p"
restitution = "0.5"
[initial]
q = 1
v = 0
p = 1
w = 0
)M",
                  1.5);
  const Mat exact = two.exact();
  EXPECT_NEAR(exact(0, 0), (0.8 * 2 * 0.5 - 0.8 * 2 + 1) * 0.5, 1e-12);
  EXPECT_NEAR(exact(2, 2), (0.5 * 2 * 0.5 - 0.5 * 2 + 1) * 0.5, 1e-12);
  EXPECT_NEAR(exact(0, 2), 0, 1e-12);
  EXPECT_NEAR(exact(2, 0), 0, 1e-12);
  EXPECT_TRUE(two.notes.empty()) << two.notes[0];
}

TEST(Variation, SaysWhereItIsOneSided) {  // x and y pass zero together; which comes first decides where z goes
  Derivatives corner(R"M(
equations = """
  x' = 1
  y' = 1
  z' = sign(x)*sign(y) + sign(x)
"""
[initial]
x = -1
y = -1
z = 0
)M",
                     2);
  const Mat exact = corner.exact();
  ASSERT_EQ(corner.notes.size(), 1u);
  EXPECT_NE(corner.notes[0].find("one-sided"), std::string::npos);
  // x + d, y: x passes first, d earlier, and z' = -1 + 1 in between instead of 0: z' = 0, then 2.
  EXPECT_NEAR(exact(2, 0), 0, 1e-12);
  // x, y + d: y passes first; z' = -1 - 1 in between instead of 0.
  EXPECT_NEAR(exact(2, 1), -2, 1e-12);
}

}  // namespace
}  // namespace saltus
