// Branches of orbits on which jumps happen, or are about to: conditions that are touched, clocks that find theirs
// holding or not, kinks and steps in what is set.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "analysis/branch.hpp"
#include "model/read.hpp"
#include "run_of.hpp"

namespace saltus {
namespace {

Branch orbits_of(const std::string& text, double start, double low, double high) {
  const Model model = read_model_text(text);
  OrbitOptions begin{.run = run_of(model)};
  begin.run.parameters[0] = start;
  return follow_orbit(model, begin, {.parameter = 0, .low = low, .high = high});
}

/// x is mapped to a formula once per unit of time and rests in between.
Branch map_orbits(const std::string& formula, double a, double b) {
  return orbits_of("equations = \"x' = 0\"\n[parameters]\nmu = -0.5\na = " + std::to_string(a) +
                       "\nb = " + std::to_string(b) + "\n[initial]\nx = -0.3\n[jump.map]\nevery = 1\nset = { x = \"" +
                       formula + "\" }\n",
                   -0.5, -0.5, 0.5);
}

// The fixed point x = mu/(1 - a) for x < 0 meets the kink at mu = 0; behind it is x = mu/(1 - b).
TEST(JumpBranch, MeetsABorderCollisionAtAKinkOfWhatIsSet) {
  for (const std::string formula :
       {"mu + if(x < 0, a*x, b*x)", "mu + a*min(x, 0) + b*max(x, 0)", "mu + (a + b)/2*x + (b - a)/2*abs(x)",
        "mu + a*x + (b - a)*x*step(x)", "mu + if(x < 0 and x > -100, a*x, b*x)", "mu + b*x + (a - b)*sat(x, -9, 0)"}) {
    for (const double b : {-0.6, -1.6, 1.6}) {
      const Branch branch = map_orbits(formula, 0.4, b);
      ASSERT_TRUE(branch.found) << branch.message;
      ASSERT_EQ(branch.special.size(), 1u) << formula;
      const SpecialPoint& s = branch.special[0];
      EXPECT_EQ(s.type, "corner");
      EXPECT_NEAR(s.values[0], 0, 1e-12);
      EXPECT_NEAR(s.spectrum[0].real(), 0.4, 1e-9);
      ASSERT_TRUE(s.after) << formula;
      EXPECT_NEAR((*s.after)[0].real(), b, 1e-9);
      EXPECT_EQ(s.persists, b < 1) << formula;
      EXPECT_EQ(s.crosses, b > 1    ? std::vector<std::string>{"+1"}
                           : b < -1 ? std::vector<std::string>{"-1"}
                                    : std::vector<std::string>{});
      EXPECT_EQ(branch.points.back().values[0], b < 1 ? 0.5 : -0.5);
      for (const BranchPoint& p : branch.points) {
        const double slope = p.state[0] < 0 ? 0.4 : b;
        EXPECT_NEAR(p.state[0], p.values[0] / (1 - slope), 1e-9) << formula;
      }
    }
  }
}

TEST(JumpBranch, PassesInSilenceWhatChangesNothing) {  // |x| sign(x) is x
  const Branch branch = map_orbits("mu + a*abs(x)*sign(x) + b*0", 0.4, 1);
  ASSERT_TRUE(branch.found) << branch.message;
  EXPECT_TRUE(branch.special.empty()) << branch.special[0].detail;
  EXPECT_EQ(branch.points.back().values[0], 0.5);
}

TEST(JumpBranch, EndsAtAStepOfWhatIsSet) {  // x = mu + floor(x)/2: as long as 0 <= mu < 1 it is mu
  const Branch branch = orbits_of(
      "equations = \"x' = 0\"\n[parameters]\nmu = 0.5\n[initial]\nx = 0.3\n[jump.map]\nevery = 1\n"
      "set = { x = \"mu + floor(x)/2\" }\n",
      0.2, -2, 2);
  ASSERT_TRUE(branch.found) << branch.message;
  ASSERT_EQ(branch.special.size(), 2u);
  for (const SpecialPoint& s : branch.special) {
    EXPECT_EQ(s.type, "corner");
    EXPECT_NEAR(s.values[0], s.values[0] > 0.5 ? 1 : 0, 1e-12);
  }
  for (const BranchEnd& e : branch.ends) EXPECT_EQ(e.why, "signature");
}

// A leaky neuron that fires once per turn of its drive: V = 0 after each, whatever the phase. With c = 1/(1 - exp(-T))
// and tan(d) = w the branch is I = c - A cos(d) sin(phase - d): folds where the sine is 1 and -1. It fires with speed
// as long as c - 1 + A sin(d) cos(phase - d) > 0.
TEST(JumpBranch, GoesOnWhereTheSameStateIsMetAtAnotherPhase) {
  const Model model = read_model_text(
      "equations = \"V' = I - V + A*sin(w*t)\"\n[parameters]\nI = 1.2\nA = 0.3\nw = 4\n[initial]\nV = 0\n"
      "[jump.fire]\non = \"V - 1\"\ndirection = \"rising\"\nset = { V = 0 }\n[section.s]\non = \"fire\"\n");
  const Branch branch =
      follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 1.05, .high = 3});
  ASSERT_TRUE(branch.found) << branch.message;
  const double period = std::acos(-1.0) / 2, c = 1 / -std::expm1(-period), d = std::atan(4), a = 0.3 * std::cos(d);
  const double slow = (c - 1) / (0.3 * std::sin(d)), touch = c - a * std::sqrt(1 - slow * slow);
  std::vector<double> folds, grazes;
  for (const SpecialPoint& s : branch.special) (s.type == "fold" ? folds : grazes).push_back(s.values[0]);
  std::sort(folds.begin(), folds.end());
  std::sort(grazes.begin(), grazes.end());
  ASSERT_EQ(folds.size(), 2u);
  EXPECT_NEAR(folds[0], c - a, 1e-11);
  EXPECT_NEAR(folds[1], c + a, 1e-11);
  ASSERT_EQ(grazes.size(), 2u);
  EXPECT_NEAR(grazes[0], touch, 1e-11);
  for (const BranchEnd& e : branch.ends) EXPECT_EQ(e.why, "signature");
}

// The compass gait of Goswami, Thuilot & Espiau (1998): where the foot strikes the legs change places, which leaves the
// condition at zero. The flip by an independent computation (DOP853, differences of the return map); they print 4.37.
TEST(JumpBranch, OfAWalkerWhoseLegsChangePlacesGoesOn) {
  const Model model = read_model_text(R"M(
equations = """
  qn' = wn
  qs' = ws
  wn' = (r1*m22 - r2*m12)/(m11*m22 - m12^2)
  ws' = (m11*r2 - m12*r1)/(m11*m22 - m12^2)
  m11 = m*b^2
  m12 = -m*l*b*cos(qs - qn)
  m22 = (mh + m)*l^2 + m*a^2
  r1 = -m*l*b*sin(qs - qn)*ws^2 - m*b*g*sin(qn)
  r2 = m*l*b*sin(qs - qn)*wn^2 + (mh*l + m*a + m*l)*g*sin(qs)
  l = a + b
  p11 = m*b*(b - l*cos(qs - qn))
  p12 = m*l*(l - b*cos(qs - qn)) + m*a^2 + mh*l^2
  p21 = m*b^2
  p22 = -m*b*l*cos(qs - qn)
  e1 = -m*a*b*wn + (-m*a*b + (mh*l^2 + 2*m*a*l)*cos(qs - qn))*ws
  e2 = -m*a*b*ws
"""
[parameters]
degrees = 3
slope = "degrees*pi/180"
m = 5
mh = 10
a = 0.5
b = 0.5
g = 9.81
[initial]
qn = -0.3234
qs = 0.2187
wn = -0.3772
ws = -1.0918
[jump.heel]
on = "qs + qn + 2*slope"
direction = "falling"
when = "qs < qn"
set = { qs = "qn", qn = "qs", wn = "(p22*e1 - p12*e2)/(p11*p22 - p12*p21)", ws = "(p11*e2 - p21*e1)/(p11*p22 - p12*p21)" }
[section.heel]
on = "heel"
)M");
  const Branch branch =
      follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 0.5, .high = 5});
  ASSERT_TRUE(branch.found) << branch.message;
  ASSERT_EQ(branch.special.size(), 1u);
  EXPECT_EQ(branch.special[0].type, "flip");
  EXPECT_NEAR(branch.special[0].values[0], 4.39089825, 3e-9);
  for (const BranchEnd& e : branch.ends) EXPECT_EQ(e.why, "range");
}

/// An impact oscillator whose stop is a jump: x'' + 0.1 x' + x = a cos(0.8 t).
const char* stop = R"M(
equations = """
  x' = v
  v' = -0.1*v - x + a*cos(0.8*t)
"""
[parameters]
a = 0.2
[initial]
x = 0.1
v = 0
[jump.hit]
on = "x - 1"
direction = "rising"
set = { v = "-0.8*v" }
)M";
const double touching = std::hypot(1 - 0.64, 0.08);  // the amplitude of x is a over this

TEST(JumpBranch, GrazesWhereItsFreeOrbitTouchesTheConditionOfAJump) {
  const Branch branch = orbits_of(stop, 0.2, 0.1, 0.8);
  ASSERT_TRUE(branch.found) << branch.message;
  ASSERT_EQ(branch.special.size(), 2u);
  const SpecialPoint& touch = branch.special[0];
  EXPECT_EQ(touch.type, "grazing");
  EXPECT_NEAR(touch.values[0], touching, 1e-12);
  EXPECT_EQ(touch.persists, true);
  ASSERT_TRUE(touch.after);
  EXPECT_TRUE(std::isinf((*touch.after)[0].real()));
  EXPECT_EQ(branch.special[1].type, "flip");
  for (const BranchPoint& p : branch.points) {  // how far it goes, to the last digits
    EXPECT_NEAR(p.highest[0], std::min(p.values[0] / touching, 1.0), 1e-9) << p.values[0];
    if (p.values[0] >= touching) continue;
    EXPECT_NEAR(p.lowest[1], -0.8 * p.values[0] / touching, 1e-9) << p.values[0];
  }
  EXPECT_EQ(branch.points.back().values[0], 0.8);
}

TEST(JumpBranch, OfTwoPeriodsEndsWhereItsJumpVanishes) {
  const Branch branch = orbits_of(stop, 0.5, 0.1, 0.8);
  ASSERT_TRUE(branch.found) << branch.message;
  const SpecialPoint* touch = nullptr;
  for (const SpecialPoint& s : branch.special) {
    if (s.type == "grazing" && s.values[0] < 0.4) touch = &s;
  }
  ASSERT_TRUE(touch);
  EXPECT_NEAR(touch->values[0], touching, 1e-9);
  EXPECT_NE(touch->detail.find("half the period"), std::string::npos) << touch->detail;
}

// x' = 1 - x, set to 0 by each tick that finds it above c. Every tick: c < 1 - 1/e; every second: up to 1 - 1/e^2.
TEST(JumpBranch, EndsWhereTheConditionOfAClockChanges) {
  const std::string model =
      "equations = \"x' = 1 - x\"\n[parameters]\nc = 0.3\n[initial]\nx = 0.1\n[jump.fire]\nevery = 1\n"
      "when = \"x > c\"\nset = { x = \"0\" }\n";
  const Branch once = orbits_of(model, 0.3, 0.1, 1.2);
  ASSERT_TRUE(once.found) << once.message;
  ASSERT_EQ(once.special.size(), 1u);
  EXPECT_EQ(once.special[0].type, "corner");
  EXPECT_NEAR(once.special[0].values[0], 1 - std::exp(-1), 1e-12);
  const Branch twice = orbits_of(model, 0.7, 0.1, 1.2);
  ASSERT_TRUE(twice.found) << twice.message;
  ASSERT_EQ(twice.special.size(), 2u);
  for (const SpecialPoint& s : twice.special) {
    EXPECT_EQ(s.type, "corner");
    EXPECT_NEAR(s.values[0], s.values[0] < 0.7 ? 1 - std::exp(-1) : 1 - std::exp(-2), 1e-12);
  }
}

// A current that rises with slope 1 to the reference and falls with slope m until the clock ticks: multiplier -m.
TEST(JumpBranch, OfCurrentModeControlFlipsAtEqualSlopes) {
  const Branch branch = orbits_of(R"M(
equations = """
  i' = if(q > 0.5, 1, -m)
  q' = 0
"""
[parameters]
m = 0.5
[initial]
i = 0.5
q = 1
[jump.clock]
every = 1
set = { q = "1" }
[jump.off]
on = "i - 1"
direction = "rising"
set = { q = "0" }
)M",
                                  0.5, 0.5, 1.5);
  ASSERT_TRUE(branch.found) << branch.message;
  ASSERT_EQ(branch.special.size(), 1u);
  EXPECT_EQ(branch.special[0].type, "flip");
  EXPECT_NEAR(branch.special[0].values[0], 1, 1e-12);
  for (const BranchPoint& p : branch.points) EXPECT_NEAR(p.spectrum[0].real(), -p.values[0], 1e-9);
}

// The clock sets q to 1, the condition to 0: on the clock it is 1, along the whole branch.
TEST(JumpBranch, TellsTheStateAfterTheTickOfAClock) {
  const Branch branch = orbits_of(R"M(
equations = """
  i' = if(q > 0.5, 1, -m)
  q' = 0
"""
[parameters]
m = 0.3
[initial]
i = 0.5
q = 1
[jump.clock]
every = 0.1
set = { q = "1" }
[jump.off]
on = "i - 1"
direction = "rising"
set = { q = "0" }
)M",
                                  0.5, 0.3, 0.9);
  ASSERT_TRUE(branch.found) << branch.message;
  for (const BranchPoint& p : branch.points) {
    EXPECT_EQ(p.state[1], 1) << p.values[0];
    EXPECT_NEAR(p.state[0], 1 - 0.1 * p.values[0] / (1 + p.values[0]), 1e-9);
  }
}

// T = 10 log((I - 0)/(I - c)) from the reset 0 to the threshold c: nothing is left of it at c = 0.
TEST(JumpBranch, OfAnIntegratorShrinksUntilItsThresholdMeetsItsReset) {
  const Branch branch = orbits_of(
      "equations = \"v' = (20 - v)/10\"\n[parameters]\nc = 15\n[initial]\nv = 0\n[jump.spike]\non = \"v - c\"\n"
      "direction = \"rising\"\nset = { v = \"0\" }\n",
      15, -5, 19);
  ASSERT_TRUE(branch.found) << branch.message;
  EXPECT_TRUE(branch.special.empty());
  EXPECT_EQ(branch.ends[0].why, "closed");
  EXPECT_NEAR(branch.ends[0].value, 0, 1e-2);
  EXPECT_EQ(branch.points.back().values[0], 19);
  for (const BranchPoint& p : branch.points)
    EXPECT_NEAR(p.period, 10 * std::log(20 / (20 - p.values[0])), 1e-8 * p.period + 1e-9) << p.values[0];
}

// A mass on a spring leg that pushes from its lowest point until it lifts off: its states are of other sizes on the
// orbit than where the run began.
TEST(JumpBranch, OfAHopperGoesBothWays) {
  const std::string text = R"M(
equations = """
  y' = v
  v' = -1 + 20*max(1 - y, 0) - 0.1*v*step(1 - y) + T*q*step(1 - y)
  q' = 0
"""
[parameters]
T = 0.4
[initial]
y = 1.3
v = 0
q = 0
[jump.bottom]
on = "v"
direction = "rising"
when = "y < 1"
set = { q = "1" }
[jump.liftoff]
on = "y - 1"
direction = "rising"
set = { q = "0" }
)M";
  const Branch branch = orbits_of(text, 0.4, 0.1, 2);
  ASSERT_TRUE(branch.found) << branch.message;
  EXPECT_EQ(branch.points.front().values[0], 0.1);
  EXPECT_EQ(branch.points.back().values[0], 2);
  const Model model = read_model_text(text);
  for (size_t k = 0; k < branch.points.size(); k += 10) {
    const BranchPoint& p = branch.points[k];
    RunOptions o = run_of(model, p.period);
    o.parameters[0] = p.values[0];
    o.initial = p.state;
    const Trajectory run = simulate(Program(model), o);
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(run.end.state[i], p.state[i], 1e-7) << p.values[0];
  }
}

// Every second y is raised by p, and lowered by 0.7 where that carries it over 1. With one lowering in three seconds, q
// = exp(-1/2): after it y (1 - q^3) = p (1 + q + q^2) - 0.7, before it y + 0.7, a second earlier (y + 0.7 - p)/q. It is
// over 1 down to y = 0.3, and the one before stays below 1 up to y + 0.7 - p = q.
TEST(JumpBranch, EndsWhereAJumpNoLongerCausesAnother) {
  const Branch branch = orbits_of(R"M(
equations = """
  x' = 1
  y' = -0.5*y
"""
[parameters]
p = 0.5
[initial]
x = 0.3
y = 0.3
[jump.a]
on = "x - 1"
direction = "rising"
set = { x = "0", y = "y + p" }
[jump.b]
on = "y - 1"
direction = "rising"
set = { y = "y - 0.7" }
[section.s]
on = "b"
)M",
                                  0.5, 0.1, 0.8);
  ASSERT_TRUE(branch.found) << branch.message;
  ASSERT_EQ(branch.special.size(), 2u);
  const double q = std::exp(-0.5), cube = 1 - q * q * q, sum = 1 + q + q * q;
  const double lowest = (0.3 * cube + 0.7) / sum;
  const double highest = (0.7 * (1 - cube) + q * cube) / (sum - cube);
  for (const SpecialPoint& s : branch.special) {
    EXPECT_EQ(s.type, "corner");
    EXPECT_NEAR(s.values[0], s.values[0] < 0.5 ? lowest : highest, 1e-9);
  }
}

// Without infection S grows by S' = mu (1 - S) and is cut by 1 - p: S0 = (1 - p)(1 - e)/(1 - (1 - p) e), e = exp(-mu
// T). The infection dies out on the way there (1e-108 of it is left); it returns where 100 (T - (1 - S0)(1 - e)/mu) =
// (g + mu) T, which gives p with 25 digits.
TEST(JumpBranch, OfAnInfectionThatDiesOutIsWithoutIt) {
  const Branch branch = orbits_of(R"M(
equations = """
  S' = mu - 100*S*I - mu*S
  I' = 100*S*I - (10 + mu)*I
"""
[parameters]
p = 0.5
mu = 0.02
[initial]
S = 0.2
I = 1e-3
[jump.vaccination]
every = 2
set = { S = "(1 - p)*S" }
[section.pulse]
every = 2
)M",
                                  0.5, 0.3, 0.8);
  ASSERT_TRUE(branch.found) << branch.message;
  for (const BranchEnd& end : branch.ends) EXPECT_EQ(end.why, "range") << end.detail;
  ASSERT_EQ(branch.special.size(), 1u);
  EXPECT_EQ(branch.special[0].type, "branch");
  EXPECT_NEAR(branch.special[0].values[0], 0.304820546904368738, 1e-12);
  const double e = std::exp(-0.04);
  for (const BranchPoint& point : branch.points) {
    const double left = 1 - point.values[0];
    EXPECT_NEAR(point.state[0], left * (1 - e) / (1 - left * e), 1e-12) << point.values[0];
    EXPECT_NEAR(point.state[1], 0, 1e-15) << point.values[0];
  }
}

}  // namespace
}  // namespace saltus
