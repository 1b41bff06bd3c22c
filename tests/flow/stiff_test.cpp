#include "flow/stiff.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flow/simulate.hpp"
#include "flow/taylor.hpp"
#include "model/read.hpp"
#include "solve/polynomial.hpp"

namespace saltus {
namespace {

using Exact = std::function<std::vector<double>(double t)>;

/// A model from equations and initial values, with a flow in one of its modes.
struct Walk {
  Program program;
  std::vector<double> parameters, x;
  double tolerance, t, direction;
  int order;
  Series series;
  StiffFlow flow;
  Piece piece;
  StiffStatus status = StiffStatus::ok;
  double worst = 0;  // error along the pieces, in units of max(|x|, 1)
  double gap = 0;    // largest distance between the end of a piece and the start of the next
  double off = 0;    // largest |h| found by a projection
  double longest = 1e300;

  Walk(const std::string& equations, const std::string& initial, double tolerance_, const std::string& mode = "",
       double from = 0, double direction_ = 1, const std::string& more = "")
      : program(read_model_text(fmt::format("name = \"test\"\nequations = \"\"\"\n{}\n\"\"\"\n[initial]\n{}\n{}\n",
                                            equations, initial, more))),
        parameters(parameter_values(program.model())),
        x(initial_values(program.model(), parameters)),
        tolerance(tolerance_),
        t(from),
        direction(direction_),
        order(taylor_order(tolerance)),
        series(program, parameters, order),
        flow(program, tolerance, direction, order) {
    series.set_mode({mode, ""});
  }

  bool advance(double most) {
    status = flow.step(series, x, t, {}, most, piece);
    return status == StiffStatus::ok;
  }

  /// To the end of the piece, as the engine goes there.
  void accept() {
    for (size_t i = 0; i < x.size(); ++i) {
      gap = std::max(gap, std::abs(piece.coefficients[i * (static_cast<size_t>(order) + 1)] - x[i]));
    }
    Trajectory::evaluate(piece, program.states(), piece.length, x.data());
    t += piece.length;
    off = std::max(off, series.project(x, t, {}));
  }

  void compare(const Exact& exact) {
    std::vector<double> found(x.size());
    for (const double part : {0.17, 0.5, 0.83, 1.0}) {
      Trajectory::evaluate(piece, program.states(), part * piece.length, found.data());
      const std::vector<double> wanted = exact(t + part * piece.length);
      for (size_t i = 0; i < x.size(); ++i)
        worst = std::max(worst, std::abs(found[i] - wanted[i]) / std::max(1.0, std::abs(wanted[i])));
    }
  }

  void go(double until, const Exact& exact = nullptr) {
    for (int steps = 0; steps < 200'000 && direction * (until - t) > 0; ++steps) {
      const double rest = std::abs(until - t);
      if (!advance(std::min(longest, rest))) return;
      if (exact) compare(exact);
      const bool last = std::abs(piece.length) >= rest;
      accept();
      if (last) t = until;
    }
  }
};

TEST(Stiff, FollowsTheExactExponentialWithinTenTolerances) {
  for (const double tolerance : {1e-5, 1e-8, 1e-11}) {
    Walk walk("u' = 998*u + 1998*v\nv' = -999*u - 1999*v", "u = 1\nv = 0", tolerance);
    walk.go(10, [](double t) {
      return std::vector{2 * std::exp(-t) - std::exp(-1000 * t), -std::exp(-t) + std::exp(-1000 * t)};
    });
    EXPECT_EQ(walk.status, StiffStatus::ok);
    EXPECT_EQ(walk.t, 10);
    EXPECT_LT(walk.worst, 10 * tolerance);
  }
}

TEST(Stiff, FollowsTimeDependentForcingThroughItsTransient) {
  Walk walk("x' = -1e6*(x - cos(t)) - sin(t)", "x = 2", 1e-9);
  walk.go(20, [](double t) { return std::vector{std::cos(t) + std::exp(-1e6 * t)}; });
  EXPECT_EQ(walk.status, StiffStatus::ok);
  EXPECT_LT(walk.worst, 1e-8);
  EXPECT_LT(walk.flow.steps(), 3000);  // stability would ask an explicit method for 1e7 at least
}

TEST(Stiff, RunsBackward) {
  Walk walk("x' = 1e4*(x - cos(t)) - sin(t)", "x = 0", 1e-9, "", 10, -1);
  walk.go(0, [](double t) { return std::vector{std::cos(t) - std::cos(10.0) * std::exp(1e4 * (t - 10))}; });
  EXPECT_EQ(walk.status, StiffStatus::ok);
  EXPECT_LT(walk.piece.length, 0);
  EXPECT_LT(walk.worst, 1e-8);
  EXPECT_NEAR(walk.x[0], 1, 1e-8);
}

const char* const robertson = "a' = -0.04*a + 1e4*b*c\nb' = 0.04*a - 1e4*b*c - 3e7*b^2\nc' = 3e7*b^2";

TEST(Stiff, SolvesRobertsonsReactions) {
  // Test set for IVP solvers (Mazzia, Magherini), problem ROBER at t = 1e11.
  Walk walk(robertson, "a = 1\nb = 0\nc = 0", 1e-10);
  walk.go(1e11);
  EXPECT_EQ(walk.status, StiffStatus::ok);
  EXPECT_NEAR(walk.x[0], 0.2083340149701255e-7, 1e-13);
  EXPECT_NEAR(walk.x[1], 0.8333360770334713e-13, 1e-18);
  EXPECT_NEAR(walk.x[2], 0.9999999791665050, 1e-9);
}

TEST(Stiff, SolvesRobertsonsReactionsEarly) {
  // scripts/stiff_reference.py
  Walk walk(robertson, "a = 1\nb = 0\nc = 0", 1e-10);
  walk.go(0.4);
  EXPECT_NEAR(walk.x[0], 0.98517211386099, 1e-9);
  EXPECT_NEAR(walk.x[1], 3.386395378975e-5, 1e-13);
  EXPECT_NEAR(walk.x[2], 1.479402218522e-2, 1e-10);
  walk.go(40);
  EXPECT_NEAR(walk.x[0], 0.71582706871941, 1e-9);
  EXPECT_NEAR(walk.x[1], 9.18553476455779e-6, 1e-13);
  EXPECT_NEAR(walk.x[2], 0.28416374574583, 1e-9);
}

TEST(Stiff, SpreadsHeatOverFiftyStates) {
  constexpr int n = 50;
  std::string equations, initial;
  std::vector<double> profile;
  for (int i = 1; i <= n; ++i) {
    const std::string left = i > 1 ? fmt::format(" + x{}", i - 1) : "",
                      right = i < n ? fmt::format(" + x{}", i + 1) : "";
    equations += fmt::format("x{0}' = 2601*(-2*x{0}{1}{2})\n", i, left, right);
    profile.push_back(std::sin(M_PI * i / (n + 1)));
    initial += fmt::format("x{} = {}\n", i, profile.back());
  }
  const double rate = 4 * 2601 * std::pow(std::sin(M_PI / (2 * (n + 1))), 2);
  Walk walk(equations, initial, 1e-9);
  walk.go(1, [&](double t) {
    std::vector<double> x = profile;
    for (double& v : x) v *= std::exp(-rate * t);
    return x;
  });
  EXPECT_EQ(walk.status, StiffStatus::ok);
  EXPECT_LT(walk.worst, 1e-8);
  EXPECT_LT(walk.flow.steps(), 1000);
}

TEST(Stiff, FollowsTheJumpsOfVanDerPol) {
  // scripts/stiff_reference.py
  Walk walk("x' = v\nv' = 1000*(1 - x^2)*v - x", "x = 2\nv = 0", 1e-10);
  walk.go(2000);
  EXPECT_EQ(walk.status, StiffStatus::ok);
  EXPECT_NEAR(walk.x[0], 1.70616773217, 1e-8);
  EXPECT_NEAR(walk.x[1], -8.92809701025e-4, 1e-11);
}

TEST(Stiff, SlidesStifflyInFewSteps) {
  // Reference case adv20_stiff_sliding: sigma = cos(t)/2, to which x2 relaxes in a microsecond.
  Walk walk("x1' = 0.5*cos(t) - sign(x1)\nx2' = -lam*(x2 - sign(x1))\nx3' = x2", "x1 = 0\nx2 = 0.5\nx3 = 0", 1e-10, "0",
            0, 1, "[parameters]\nlam = 1e6");
  walk.go(10);
  EXPECT_EQ(walk.status, StiffStatus::ok);
  EXPECT_EQ(walk.x[0], 0);
  EXPECT_NEAR(walk.x[1], -0.41953603654836213, 1e-8);
  EXPECT_NEAR(walk.x[2], -0.27200963590864835, 1e-8);
  EXPECT_LT(walk.flow.steps(), 2000);
}

TEST(Stiff, StaysOnACurvedSurfaceWithoutRestarting) {
  const std::string equations = "x' = -y - x*sign(x^2 + y^2 - 1)\ny' = x - y*sign(x^2 + y^2 - 1)\nz' = -1e5*(z - x)";
  Walk walk(equations, "x = 1\ny = 0\nz = 1", 1e-9, "0");
  const double lag = 1 / (1 + 1e-10);  // z = Re e^it/(1 + i*1e-5) + transient
  walk.go(30, [lag](double t) {
    const double z = lag * (std::cos(t) + 1e-5 * std::sin(t));
    return std::vector{std::cos(t), std::sin(t), z + (1 - lag) * std::exp(-1e5 * t)};
  });
  EXPECT_EQ(walk.status, StiffStatus::ok);
  EXPECT_LT(walk.worst, 1e-8);
  EXPECT_LT(walk.off, 1e-14);
  EXPECT_LT(walk.flow.steps(), 3000);
}

TEST(Stiff, PiecesJoinAlsoWhereTheyAreCut) {
  Walk walk("u' = 998*u + 1998*v\nv' = -999*u - 1999*v", "u = 1\nv = 0", 1e-8);
  walk.longest = 0.01;
  walk.go(2, [](double t) {
    return std::vector{2 * std::exp(-t) - std::exp(-1000 * t), -std::exp(-t) + std::exp(-1000 * t)};
  });
  EXPECT_EQ(walk.status, StiffStatus::ok);
  EXPECT_EQ(walk.gap, 0);
  EXPECT_LE(std::abs(walk.piece.length), 0.01);
  EXPECT_LT(walk.worst, 1e-7);
}

TEST(Stiff, RestartsByItselfWhereTheStateJumped) {
  Walk walk("x' = -1e4*(x - 1)", "x = 0", 1e-8);
  walk.go(1);
  EXPECT_NEAR(walk.x[0], 1, 1e-7);
  walk.x[0] = 3;
  walk.go(2, [](double t) { return std::vector{1 + 2 * std::exp(-1e4 * (t - 1))}; });
  EXPECT_EQ(walk.status, StiffStatus::ok);
  EXPECT_LT(walk.worst, 1e-7);
}

TEST(Stiff, FailuresAreValuesAndSilent) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  Walk negative("x' = -1 - sqrt(x)", "x = 1", 1e-8);
  negative.go(10);
  EXPECT_EQ(negative.status, StiffStatus::undefined);
  EXPECT_NEAR(negative.t, 2 - 2 * std::log(2.0), 1e-4);  // where x = 0
  Walk growing("x' = x^2", "x = 1", 1e-8);
  growing.go(10);
  EXPECT_NE(growing.status, StiffStatus::ok);
  EXPECT_NEAR(growing.t, 1, 1e-5);
  Walk nowhere("x' = log(x)", "x = -1", 1e-8);
  nowhere.go(1);
  EXPECT_EQ(nowhere.status, StiffStatus::undefined);
  EXPECT_EQ(nowhere.t, 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

/// Zeros of the first section along a walk.
std::vector<double> find_zeros(Walk& walk, double until) {
  const std::vector<SampledFunction> functions{{SampledFunction::Kind::section, 0, 0}};
  std::vector<double> c, zeros;
  while (until - walk.t > 1e-12 && walk.advance(until - walk.t)) {
    walk.status = walk.flow.sample(walk.series, {}, functions, walk.piece, c);
    if (walk.status != StiffStatus::ok) break;
    for (double from = 0;;) {
      const Root root = leftmost_root(c, {.h = walk.piece.length, .from = from});
      if (root.kind == RootKind::none) break;
      if (root.kind == RootKind::crossing) zeros.push_back(walk.t + root.at);
      from = root.at;
    }
    walk.accept();
  }
  return zeros;
}

TEST(StiffSample, FindsAPairOfZerosInsideOneStep) {
  const std::string section = "[section.pair]\non = \"(t - 5)^2 - 1e-8\"";
  Walk walk("x' = -1000*(x - 1)", "x = 0", 1e-6, "", 0, 1, section);
  const std::vector<double> zeros = find_zeros(walk, 10);
  EXPECT_EQ(walk.status, StiffStatus::ok);
  ASSERT_EQ(zeros.size(), 2u);
  EXPECT_NEAR(zeros[0], 5 - 1e-4, 1e-9);
  EXPECT_NEAR(zeros[1], 5 + 1e-4, 1e-9);
}

TEST(StiffSample, ShortensPiecesOnWhichAFunctionIsNotResolved) {
  const std::string section = "[section.many]\non = \"cos(60*t + x)\"";
  Walk walk("x' = -1000*(x - cos(t)) - sin(t)", "x = 1", 1e-7, "", 0, 1, section);
  const std::vector<double> zeros = find_zeros(walk, 10);
  EXPECT_EQ(walk.status, StiffStatus::ok);
  const double turns = (600 + std::cos(10.0)) / M_PI - 1 / M_PI;  // x = cos(t)
  EXPECT_NEAR(static_cast<double>(zeros.size()), turns, 1);
  for (const double t : zeros) EXPECT_NEAR(std::cos(60 * t + std::cos(t)), 0, 1e-4) << t;
}

TEST(StiffSample, StartsWithTheTrueValueAndFollowsSigma) {
  Walk walk("x1' = 0.5*cos(t) - sign(x1)\nx2' = -1e6*(x2 - sign(x1))", "x1 = 0\nx2 = 0.5", 1e-9, "0");
  const std::vector<SampledFunction> functions{{SampledFunction::Kind::surface, 0, 0},
                                               {SampledFunction::Kind::unknown, 0, 1}};
  std::vector<double> c;
  const size_t stride = static_cast<size_t>(walk.order) + 1;
  double worst = 0;
  while (walk.t < 3 && walk.advance(4)) {
    ASSERT_EQ(walk.flow.sample(walk.series, {}, functions, walk.piece, c), StiffStatus::ok);
    ASSERT_EQ(c.size(), 2 * stride);
    EXPECT_EQ(c[stride], 0.5 * std::cos(walk.t));
    for (const double part : {0.1, 0.45, 0.9, 1.0}) {
      const double tau = part * walk.piece.length;
      EXPECT_EQ(evaluate({c.data(), stride}, tau), 0);
      worst = std::max(worst, std::abs(evaluate({&c[stride], stride}, tau) - 0.5 * std::cos(walk.t + tau)));
    }
    walk.accept();
  }
  EXPECT_EQ(walk.status, StiffStatus::ok);
  EXPECT_LT(worst, 1e-9);
}

/// A driven block with friction beside an oscillation; times of its events.
std::vector<double> friction_events(double stiffness, double force, double drag, bool stiff) {
  const Program program(read_model_text(
      fmt::format("equations = \"\"\"\nx' = v\nv' = -{}*x + 0.37*sin({}*t) - {}*sign(v)\ny' = sin(4.71*t)\n\"\"\"\n"
                  "[initial]\nx = -1\nv = 0\ny = 0.3\n",
                  stiffness, force, drag)));
  RunOptions options;
  options.parameters = parameter_values(program.model());
  options.initial = initial_values(program.model(), options.parameters);
  options.until = 10;
  options.stiff = stiff;
  std::vector<double> out;
  for (const Event& e : simulate(program, options).events) out.push_back(e.t);
  return out;
}

TEST(Stiff, MeetsTheEventsThatSeriesMeet) {
  // With SciPy's DOP853, rtol 1e-12, v is zero first at 2.56449230576.
  EXPECT_NEAR(friction_events(1.62, 0.25, 0.51, true).at(0), 2.56449230576, 1e-8);
  for (const double stiffness : {1.1, 1.62, 2.3, 3.7}) {
    for (const double force : {0.25, 0.8, 1.9}) {
      for (const double drag : {0.2, 0.51}) {
        const std::vector<double> by_series = friction_events(stiffness, force, drag, false);
        const std::vector<double> by_steps = friction_events(stiffness, force, drag, true);
        ASSERT_EQ(by_series.size(), by_steps.size()) << stiffness << ' ' << force << ' ' << drag;
        for (size_t k = 0; k < by_series.size(); ++k) EXPECT_NEAR(by_series[k], by_steps[k], 1e-6);
      }
    }
  }
}

// ---- runs that turn to implicit steps by themselves

Trajectory run_of(const std::string& text, double until, bool stiff, bool turns, double tolerance = 1e-10) {
  const Program program(read_model_text(text));
  RunOptions o;
  o.parameters = parameter_values(program.model());
  o.initial = initial_values(program.model(), o.parameters);
  o.until = until;
  o.tolerance = tolerance;
  o.stiff = stiff;
  o.turns_stiff = turns;
  return simulate(program, o);
}

TEST(StiffRun, TurnsToImplicitStepsWhereStabilityAloneKeepsOthersShort) {
  const std::string text = R"M(
equations = """
  x' = -1e5*(x - cos(t)) - sin(t)
  y' = sign(x)
"""
[initial]
x = 1
y = 0
)M";
  const Trajectory slow = run_of(text, 30, false, false), quick = run_of(text, 30, false, true);
  EXPECT_GT(slow.cost.steps, 50'000);
  EXPECT_LT(quick.cost.steps, 1'000);
  ASSERT_EQ(quick.events.size(), 10u);  // zeros of cos before 30
  for (size_t k = 0; k < quick.events.size(); ++k)
    EXPECT_NEAR(quick.events[k].t, M_PI / 2 + static_cast<double>(k) * M_PI, 1e-9);
}

/// A capacitor behind a diode with a resistance: v' = D/C, D = (u - v)/r as long as it conducts. From its first instant
/// on it does, until v = u. `t` of that by the closed form, in extended precision.
double opening_of_rectifier(long double omega, long double tau) {
  const auto difference = [&](long double t) {  // v - u
    const long double g = omega * tau, a = 1 / (1 + g * g);
    const long double v = a * (std::sin(omega * t) - g * std::cos(omega * t) + g * std::exp(-t / tau));
    return v - std::sin(omega * t);
  };
  long double lo = 0.5L * static_cast<long double>(M_PI) / omega, hi = static_cast<long double>(M_PI) / omega;
  for (int k = 0; k < 100; ++k) {
    const long double middle = (lo + hi) / 2;
    (difference(middle) < 0 ? lo : hi) = middle;
  }
  return static_cast<double>(lo);
}

TEST(StiffRun, DiodesOpenWhereTheirCurrentIsZero) {
  for (const double tau : {1e-3, 1e-5}) {
    const std::string text = fmt::format(R"M(
equations = """
  v' = D/C
  u = sin(t)
"""
[parameters]
C = 1e-3
r = {}
[initial]
v = 0
[constraint.D]
gap = "v - u + r*D"
)M",
                                         tau / 1e-3);
    for (const bool stiff : {false, true}) {
      const Trajectory run = run_of(text, 6, stiff, true);
      EXPECT_EQ(run.end.why, Why::time) << run.end.message;
      ASSERT_EQ(run.events.size(), 1u) << tau << stiff;  // open once, and no other peak is higher
      EXPECT_NEAR(run.events[0].t, opening_of_rectifier(1, tau), 1e-10 / tau) << tau << stiff;  // D falls by tau
      EXPECT_LT(run.cost.steps, 2'000);
    }
  }
}

TEST(StiffRun, VoltageMultipliersChargeAlikeByBothFlows) {
  // Two stages (Cockcroft and Walton): four diodes that switch each other, time constants a thousand times apart. The
  // charges are those of SciPy's Radau with currents max(-gap, 0)/r, rtol = 1e-12, steps of 20 us at most: with 1e-11
  // they differ by 2e-10.
  const std::string text = R"M(
equations = """
  u = 100*sin(2*pi*50*t)
  a1' = (D1 - D2 + D3 - D4)/C
  a2' = (D3 - D4)/C
  b1' = (D2 - D3 + D4 - (b1 + b2)/R)/C
  b2' = (D4 - (b1 + b2)/R)/C
"""
[parameters]
C = 1e-6
R = 1e6
r = 2
[initial]
a1 = 0
a2 = 0
b1 = 0
b2 = 0
[constraint.D1]
gap = "u + a1 + r*D1"
[constraint.D2]
gap = "b1 - u - a1 + r*D2"
[constraint.D3]
gap = "u + a1 + a2 - b1 + r*D3"
[constraint.D4]
gap = "b1 + b2 - u - a1 - a2 + r*D4"
)M";
  const Trajectory taylor = run_of(text, 0.1, false, false), automatic = run_of(text, 0.1, false, true),
                   implicit = run_of(text, 0.1, true, false);
  const std::array charged{92.9589711413, 104.192950157, 116.96939763, 80.1666185768};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(taylor.end.state[i], charged[i], 1e-7);
  for (const Trajectory& run : {automatic, implicit}) {
    EXPECT_EQ(run.end.why, Why::time) << run.end.message;
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(run.end.state[i], charged[i], 1e-7);
    ASSERT_EQ(run.events.size(), taylor.events.size());
    for (size_t k = 0; k < run.events.size(); ++k) {
      EXPECT_EQ(run.events[k].on, taylor.events[k].on);
      EXPECT_NEAR(run.events[k].t, taylor.events[k].t, 1e-8 * 0.1);
    }
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(run.end.state[i], taylor.end.state[i], 1e-7);
    EXPECT_LT(4 * run.cost.steps, taylor.cost.steps);
  }
}

TEST(StiffRun, GoesBackToTaylorSeriesWhereNothingIsStiff) {
  // Stiff for as long as b is large; then an oscillator.
  const std::string text = R"M(
equations = """
  b' = -b
  s' = -(1 + 1e6*b)*(s - sin(t)) + cos(t)
  x' = v
  v' = -100*x
"""
[initial]
b = 1
s = 0
x = 1
v = 0
)M";
  const Trajectory run = run_of(text, 40, false, true);
  EXPECT_EQ(run.end.why, Why::time);
  EXPECT_NEAR(run.end.state[1], std::sin(40.0), 1e-9);
  EXPECT_NEAR(run.end.state[2], std::cos(400.0), 1e-7);
  EXPECT_LT(run.cost.steps, 20'000);
}

}  // namespace
}  // namespace saltus
