#include "flow/variation.hpp"

#include <cmath>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "model/read.hpp"

namespace saltus {
namespace {

/// A run with its tangents by initial values and by all parameters, and the same by differences of runs.
class Derivatives {
 public:
  Derivatives(const std::string& text, double until) : program_(read_model_text(text)), until_(until) {}

  RunOptions options() const {
    RunOptions o;
    o.parameters = parameter_values(program_.model());
    o.initial = initial_values(program_.model(), o.parameters);
    o.until = until_;
    o.tolerance = 1e-13;
    return o;
  }

  Mat exact() {
    RunOptions o = options();
    const Eigen::Index n = program_.states(), p = static_cast<Eigen::Index>(o.parameters.size());
    Variation variation(program_, o);
    std::vector<int> all;
    for (int i = 0; i < p; ++i) all.push_back(i);
    const ParameterDirections directions = parameter_directions(program_.model(), o.parameters, all);
    Mat x = Mat::Zero(n, n + p), q = Mat::Zero(p, n + p);
    x.leftCols(n).setIdentity();
    x.rightCols(p) = directions.x;
    q.rightCols(p) = directions.p;
    variation.begin(x, q);
    o.on_piece = [&](const Piece& piece, const Arc& arc) { variation.along(piece, arc); };
    o.on_transition = [&](const Transition& e) {
      variation.through(e);
      ++transitions;
    };
    const Trajectory run = simulate(program_, o);
    EXPECT_EQ(run.end.why, Why::time) << run.end.message;
    for (const Event& e : run.events) kinds += std::string(kind_name(e.kind)) + " ";
    return variation.tangents();
  }

  /// Central differences of fourth order.
  Mat differences(double d = 1e-4) const {
    const RunOptions o = options();
    const Eigen::Index n = program_.states(), p = static_cast<Eigen::Index>(o.parameters.size());
    Mat out(n, n + p);
    for (Eigen::Index c = 0; c < n + p; ++c) {
      const auto end = [&](double by) {
        RunOptions moved = o;
        if (c < n) {
          moved.initial[static_cast<size_t>(c)] += by;
        } else {
          moved.parameters[static_cast<size_t>(c - n)] += by;
          moved.initial = initial_values(program_.model(), moved.parameters);
        }
        const std::vector<double> x = simulate(program_, moved).end.state;
        return Vec(Eigen::Map<const Vec>(x.data(), n));
      };
      out.col(c) = (8 * (end(d) - end(-d)) - (end(2 * d) - end(-2 * d))) / (12 * d);
    }
    return out;
  }

  std::string kinds;
  long transitions = 0;

 private:
  Program program_;
  double until_;
};

void expect_equal(const std::string& model, double until, const std::string& kind, double tolerance = 1e-7) {
  Derivatives derivatives(model, until);
  const Mat exact = derivatives.exact(), differences = derivatives.differences();
  EXPECT_NE(derivatives.kinds.find(kind), std::string::npos) << "no " << kind << " in " << derivatives.kinds;
  const double size = 1 + differences.cwiseAbs().maxCoeff();
  EXPECT_LT((exact - differences).cwiseAbs().maxCoeff(), tolerance * size) << "exact\n"
                                                                           << exact << "\ndifferences\n"
                                                                           << differences;
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

TEST(Variation, NeedsNoMovingStateToMove) {  // the state rests, its tangents turn
  Derivatives derivatives("equations = \"\"\"\n  x' = v\n  v' = -x\n\"\"\"\n[initial]\nx = 0\nv = 0\n", 20);
  Mat exact(2, 2);
  exact << std::cos(20.0), std::sin(20.0), -std::sin(20.0), std::cos(20.0);
  EXPECT_LT((derivatives.exact() - exact).cwiseAbs().maxCoeff(), 1e-11);
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
between = ")M" + between + "\"\n",
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

}  // namespace
}  // namespace saltus
