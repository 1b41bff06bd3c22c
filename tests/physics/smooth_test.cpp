// Smooth systems: closed forms, invariants, and end states from scripts/smooth_reference.py.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "code/native.hpp"
#include "model/model_builder.hpp"
#include "physics.hpp"

namespace saltus::physics {
namespace {

Trajectory run(const Model& model, double until, double tolerance, long section_count = 0) {
  const Program program(model);
  RunOptions options;
  options.parameters = parameter_values(model);
  options.initial = initial_values(model, options.parameters);
  options.until = until;
  options.tolerance = tolerance;
  if (section_count > 0) {
    options.section = 0;
    options.section_count = section_count;
  }
  return simulate(program, options);
}

TEST(Smooth, HarmonicOscillatorReturnsAfterTenThousandPeriods) {
  const Model model = ModelBuilder("harmonic").equations("x' = v\nv' = -x").initial("x", 1).initial("v", 0).build();
  const double until = 20000 * pi;
  const Trajectory t = run(model, until, 1e-13);
  EXPECT_NEAR(t.end.state[0], std::cos(until), 1e-9);
  EXPECT_NEAR(t.end.state[1], -std::sin(until), 1e-9);
}

TEST(Smooth, LorenzAgreesWithTwoIntegrators) {
  const Model model = ModelBuilder("Lorenz")
                          .equations("x' = 10*(y - x)\ny' = x*(28 - z) - y\nz' = x*y - 8/3*z")
                          .initial("x", 1)
                          .initial("y", 1)
                          .initial("z", 1)
                          .build();
  const Trajectory t = run(model, 5, 1e-13);
  EXPECT_NEAR(t.end.state[0], -6.512113699419481, 1e-9);
  EXPECT_NEAR(t.end.state[1], -6.974042788416703, 1e-9);
  EXPECT_NEAR(t.end.state[2], 23.924129572103595, 1e-9);
}

TEST(Smooth, DuffingAgreesWithTwoIntegrators) {
  const Model model = ModelBuilder("Duffing")
                          .equations("x' = v\nv' = -0.3*v + x - x^3 + 0.5*cos(1.2*t)")
                          .initial("x", 1)
                          .initial("v", 0)
                          .build();
  const Trajectory t = run(model, 20, 1e-13);
  EXPECT_NEAR(t.end.state[0], 0.9665753623607141, 1e-9);
  EXPECT_NEAR(t.end.state[1], 0.05202975542596091, 1e-9);
}

TEST(Smooth, VanDerPolAgreesWithTwoIntegrators) {
  const Model model =
      ModelBuilder("van der Pol").equations("x' = v\nv' = 10*(1 - x^2)*v - x").initial("x", 2).initial("v", 0).build();
  const Trajectory t = run(model, 20, 1e-13);
  EXPECT_NEAR(t.end.state[0], 1.939358532782651, 1e-9);
  EXPECT_NEAR(t.end.state[1], -0.07008150573580746, 1e-9);
}

TEST(Smooth, TanhLayerIsNotJumpedOver) {
  // Far from the layer the series of tanh looks constant; only the defect check sees it coming.
  const Model model = ModelBuilder("layer")
                          .equations("x' = v\nv' = -x + sin(t/3) - 0.4*tanh(v/1e-3)")
                          .initial("x", 1)
                          .initial("v", 2)
                          .build();
  const Trajectory t = run(model, 10, 1e-9);
  EXPECT_NEAR(t.end.state[0], 0.4255990092954492, 1e-7);
  EXPECT_NEAR(t.end.state[1], -0.5606278088736275, 1e-7);
}

TEST(Smooth, PendulumHasThePeriodOfEllipticFunctions) {
  const double amplitude = 2;
  const Model model =
      ModelBuilder("pendulum").equations("x' = v\nv' = -sin(x)").initial("x", amplitude).initial("v", 0).build();
  const double period = 4 * std::comp_ellint_1(std::sin(amplitude / 2));
  const Trajectory t = run(model, 100 * period, 1e-13);
  EXPECT_NEAR(t.end.state[0], amplitude, 1e-9);
  EXPECT_NEAR(t.end.state[1], 0, 1e-9);
}

TEST(Smooth, ArenstorfOrbitCloses) {
  const Model model = ModelBuilder("Arenstorf")
                          .equations(
                              "x' = u\ny' = v\n"
                              "u' = x + 2*v - m2*(x + m1)/a - m1*(x - m2)/b\n"
                              "v' = y - 2*u - m2*y/a - m1*y/b\n"
                              "a = ((x + m1)^2 + y^2)^1.5\nb = ((x - m2)^2 + y^2)^1.5")
                          .parameter("m1", 0.012277471)
                          .parameter("m2", "1 - 0.012277471")
                          .initial("x", 0.994)
                          .initial("y", 0)
                          .initial("u", 0)
                          .initial("v", -2.00158510637908252240537862224)
                          .build();
  const Trajectory t = run(model, 17.0652165601579625588917206249, 1e-15);
  EXPECT_NEAR(t.end.state[0], 0.994, 1e-9);
  EXPECT_NEAR(t.end.state[1], 0, 1e-9);
}

TEST(Smooth, KeplerEnergyStaysNearRoundingOverTenThousandRevolutions) {
  const Model model = ModelBuilder("Kepler")
                          .equations("x' = u\ny' = v\nu' = -x/r3\nv' = -y/r3\nr3 = (x^2 + y^2)^1.5")
                          .initial("x", 0.5)
                          .initial("y", 0)
                          .initial("u", 0)
                          .initial("v", "sqrt(3)")
                          .build();
  const Trajectory t = run(model, 20000 * pi, 1e-14);
  const auto& s = t.end.state;
  const double energy = (s[2] * s[2] + s[3] * s[3]) / 2 - 1 / std::hypot(s[0], s[1]);
  EXPECT_NEAR(energy, -0.5, 2e-12);
}

/// Both fall to 1e-18 of their largest values between two outbreaks: x - ln x + y - ln y stays.
TEST(Smooth, PopulationsComeBackFromFarBelow) {
  const System s = system("x' = x*(1 - y)\ny' = -y + x*y", "x = 1\ny = 40");
  const auto drift = [&](const RunOptions& options) {
    const Trajectory t = s.run(options);
    const double x = t.end.state[0], y = t.end.state[1];
    return x - std::log(x) + y - std::log(y) - (41 - std::log(40));
  };
  RunOptions options = s.options(200, 1e-10);
  EXPECT_NEAR(drift(options), 0, 1e-10);
  options.stiff = true;
  EXPECT_NEAR(drift(options), 0, 1e-6);
  options.stiff = false;
  options.step.emplace();
  EXPECT_NEAR(drift(options), 0, 1e-8);
}

/// Slowly through a Hopf point, by 1e-22 of its start: x = exp((t^2 - 100)/2) cos 5(t + 10), y likewise.
TEST(Smooth, OscillationsComeBackFromFarBelow) {
  const System s = system("x' = t*x - 5*y\ny' = 5*x + t*y", "x = 1\ny = 0");
  RunOptions options = s.options(10, 1e-10);
  options.from = -10;
  const auto expect = [&](double accuracy) {
    const Trajectory t = s.run(options);
    EXPECT_NEAR(t.end.state[0], std::cos(100.0), accuracy);
    EXPECT_NEAR(t.end.state[1], std::sin(100.0), accuracy);
  };
  expect(1e-9);
  options.stiff = true;
  expect(1e-7);
  options.stiff = false;
  options.step.emplace();
  expect(1e-5);
}

/// A chain of lags behind a state that is one until the last passes 1/2: x_n = P(n, 20 t), which begins like t^n. P is
/// the regularised incomplete gamma function; its medians are from mpmath.
TEST(Smooth, AChainOfLagsBeginsFromNothing) {
  for (const auto& [n, median] : {std::pair{4, 0.183603037442545}, {8, 0.38346247212504}, {16, 0.783396477215862}}) {
    const System s =
        system(fmt::format("u' = 0\nx[1]' = 20*(u - x[1])\nx[i]' = 20*(x[i-1] - x[i]) for i = 2..{}", n),
               "u = 1\n\"x[i]\" = 0", fmt::format("[jump.half]\non = \"x[{}] - 1/2\"\nset = {{ u = \"0\" }}\n", n));
    RunOptions options = s.options(1.5 * median, 1e-10);
    const auto expect = [&](double accuracy) {
      const Trajectory t = s.run(options);
      EXPECT_EQ(t.end.why, Why::time) << t.end.message;
      ASSERT_FALSE(t.events.empty()) << n;
      EXPECT_NEAR(t.events[0].t, median, accuracy) << n;
    };
    expect(1e-12);
    options.stiff = true;
    expect(1e-10);
    options.stiff = false;
    options.step.emplace();
    expect(1e-9);
  }
}

/// A relay behind nine lags that begin at zero: nine coefficients of its surface vanish there, and the tenth does not.
/// SciPy's DOP853 with events, rtol = 1e-12.
TEST(Smooth, ARelayBehindAChainOfLagsDoesNotRest) {
  const System s = system(
      "x' = y\ny' = -0.627*x - 0.27*y - 0.835*sign(d[9])\nd[1]' = 25.012*(x - d[1])\n"
      "d[i]' = 25.012*(d[i-1] - d[i]) for i = 2..9",
      "x = 0.574\ny = 0.93\n\"d[i]\" = 0");
  RunOptions options = s.options(15, 1e-10);
  const std::vector<double> wanted{2.233386285213606, 4.773069095439855, 7.394356216123209, 10.066107044396503,
                                   12.769654529811248};
  for (const double accuracy : {1e-10, 1e-8}) {
    const Trajectory run = s.run(options);
    ASSERT_EQ(run.events.size(), wanted.size()) << story(run);
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(run.events[i].t, wanted[i], accuracy);
    EXPECT_NEAR(run.end.state[0], -0.21276951095090707, accuracy);
    options.step.emplace();
  }
}

/// The infected of the gallery's model, 1e-27 of an outbreak at the fewest, beside their logarithm as a state.
TEST(Smooth, AnInfectionIsNotLostBetweenOutbreaks) {
  const System fractions = gallery_system("pulse_vaccination");
  const System logarithm = system("S' = 0.02 - 1800*S*exp(u) - 0.02*S\nu' = 1800*S - 100.02",
                                  "S = 0.06\nu = -6.9077552789821368",  // ln 0.001
                                  "[jump.vaccinate]\nevery = 2\nset = { S = \"0.5*S\" }");
  for (const double until : {20.0, 60.0}) {
    const Trajectory told = fractions.run(until), wanted = logarithm.run(until);
    EXPECT_NEAR(told.end.state[0], wanted.end.state[0], 1e-10);
    EXPECT_NEAR(std::log(told.end.state[1]), wanted.end.state[1], 1e-8);
  }
  EXPECT_NEAR(fractions.run(20).end.state[1] / 1.05964674785e-18, 1, 1e-9);  // DOP853 of the logarithm
}

TEST(Smooth, NoCrossingOfASectionIsMissed) {
  for (const double delta : {0.1, 0.03, 0.01, 0.001}) {
    const Model model = ModelBuilder("harmonic")
                            .equations("x' = v\nv' = -x")
                            .parameter("delta", delta)
                            .initial("x", 0)
                            .initial("v", 1)
                            .section_on("near", "x - cos(delta)")
                            .build();
    for (const double tolerance : {1e-6, 1e-9, 1e-12}) {
      const Trajectory t = run(model, 2000 * pi, tolerance);
      EXPECT_EQ(t.events.size(), 2000u) << "delta " << delta << " tolerance " << tolerance;
    }
  }
}

// What is zero to all digits but for a moment: no series sees it coming. Integrals by hand; a step of the first would
// go from 0 to 12.
TEST(Smooth, PulsesAreNotSteppedOver) {
  const double root_pi = std::sqrt(pi);
  for (const auto& [formula, integral] : {std::pair{"exp(-((s - 5)/0.01)^2)", 0.01 * root_pi},
                                          {"100*exp(-((s - 5.3)/0.001)^2)", 0.1 * root_pi},
                                          {"expm1(-((s - 3)/0.01)^2) + 1", 0.01 * root_pi},
                                          {"1 - tanh(1000*(s - 5))^2", 0.002}}) {
    std::string of_time = formula;
    std::replace(of_time.begin(), of_time.end(), 's', 't');
    EXPECT_NEAR(system(fmt::format("x' = {}\ns' = 1", formula), "x = 0\ns = 0").run(12, 1e-10).end.state[0], integral,
                1e-9 * integral)
        << formula;
    EXPECT_NEAR(system(fmt::format("x' = {}", of_time), "x = 0").run(12, 1e-10).end.state[0], integral, 1e-9 * integral)
        << of_time;
  }
}

// Functions that saturate on both sides of a valley: their arguments pass zero twice, touch it, or turn before it.
// Integrals from mpmath (quad with 40 digits, split at the flanks).
TEST(Smooth, PulsesOfSaturatingFunctionsAreNotSteppedOver) {
  for (const auto& [formula, integral] : {std::pair{"1/(1 + exp(1000*(t - 5)^2 - 10))", 0.199132964314036519},
                                          {"1/(1 + exp(1e5*(t - 5)^2))", 0.00339045158318926094},
                                          {"1/(1 + exp(1000*(t - 5)^2 + 2))", 0.00693144723966169927},
                                          {"1/cosh(1e5*(t - 5)^2)", 0.00748480950562338615},
                                          {"1/cosh(1e6*(t - 5)^2 + 3)", 0.000176238468953418733},
                                          {"1 - tanh(1e4*(t - 5)^2 - 5)", 0.0890549689534450872}}) {
    const System s = system(fmt::format("x' = {}", formula), "x = 0");
    RunOptions steps = s.options(10, 1e-10);
    steps.step.emplace();
    EXPECT_NEAR(s.run(10, 1e-10).end.state[0], integral, 1e-9 * integral) << formula;
    EXPECT_NEAR(s.run(steps).end.state[0], integral, 1e-9 * integral) << formula << " by time steps";
  }
}

// From pulses that are seen from anywhere to those that are zero to all digits but for a moment: where arguments move
// little on a step, nothing inside it is looked at.
TEST(Smooth, PulsesOfEveryWidthAreSeen) {
  constexpr double until = 12, place = 5.3;
  for (double width = 3; width > 1e-3; width *= 0.93) {
    const double before = place / width, after = (until - place) / width;
    const double bell = width * std::sqrt(pi) / 2 * (std::erf(before) + std::erf(after));
    const double hump = width * (std::tanh(before) + std::tanh(after));
    const std::string z = fmt::format("(s - {})/{:.17g}", place, width);
    const System s = system(fmt::format("x' = exp(-({0})^2)\ny' = 1 - tanh({0})^2\n"
                                        "z' = 4/(1 + exp(2*({0})))*(1 - 1/(1 + exp(2*({0}))))\ns' = 1",
                                        z),
                            "x = 0\ny = 0\nz = 0\ns = 0");
    for (const double tolerance : {1e-3, 1e-6, 1e-9, 1e-12}) {
      const std::vector<double> x = s.run(until, tolerance).end.state;
      EXPECT_NEAR(x[0], bell, tolerance * bell + 1e-14) << "width " << width << ", tolerance " << tolerance;
      EXPECT_NEAR(x[1], hump, tolerance * hump + 1e-14) << "width " << width << ", tolerance " << tolerance;
      EXPECT_NEAR(x[2], hump, tolerance * hump + 1e-14) << "width " << width << ", tolerance " << tolerance;
    }
  }
}

// exp(-d cosh z) is zero to all digits as soon as z is a few, and its argument moves farther than its own series tells.
// Its integral is 2 K0(d), of Bessel's functions. (Narrower ones may still be missed.)
TEST(Smooth, PulsesOfOneFunctionInsideAnotherAreSeen) {
  constexpr double until = 12, place = 5.3;
  for (const double depth : {4, 6}) {
    for (const double width : {0.2, 0.22, 0.24, 0.27, 0.3}) {
      const double end = 1 + 20 * width * std::cyl_bessel_k(0, depth);
      const System s =
          system(fmt::format("x' = 10*exp(-{}*cosh((s - {})/{:.17g}))\ns' = 1", depth, place, width), "x = 1\ns = 0");
      for (const double tolerance : {1e-3, 1e-6, 1e-9, 1e-12}) {
        EXPECT_NEAR(s.run(until, tolerance).end.state[0], end, tolerance * end + 1e-12)
            << "depth " << depth << ", width " << width << ", tolerance " << tolerance;
      }
    }
  }
}

TEST(Smooth, PulsesAreNotSteppedOverByMachineCode) {
  if (!native_available()) GTEST_SKIP() << "no compiler of machine code";
  // Twenty pulses of a state that comes back: the code of the mode is made long before the last of them.
  const Model model = ModelBuilder("pulses")
                          .equations("s' = c\nc' = -s\nx' = exp(-((s - 0.5)/0.001)^2)*abs(c)")
                          .initial("s", 0)
                          .initial("c", 1)
                          .initial("x", 0)
                          .build();
  const Program program(model);
  RunOptions options;
  options.initial = initial_values(model, {});
  options.until = 20 * pi;
  options.tolerance = 1e-9;
  std::vector<Trajectory> ends;
  for (const Native native : {Native::off, Native::on}) {
    options.native = native;
    ends.push_back(simulate(program, options));
    EXPECT_NEAR(ends.back().end.state[2], 20 * 0.001 * std::sqrt(pi), 1e-8);
  }
  EXPECT_GT(ends[1].cost.native, 0);
  EXPECT_EQ(ends[0].end.state, ends[1].end.state);
  EXPECT_EQ(ends[0].cost.steps, ends[1].cost.steps);
}

// A pulse carries y over its threshold, for a moment: y = 0.3 + exp(-((t - 5)/0.01)^2) > 1 while its exponent is above
// log(0.7).
TEST(Smooth, PulsesInsideSurfacesAreSeen) {
  const System s = system("x' = step(0.3 + exp(-((t - 5)/0.01)^2) - 1)", "x = 0");
  const Trajectory run = s.run(12, 1e-10);
  EXPECT_NEAR(run.end.state[0], 0.02 * std::sqrt(-std::log(0.7)), 1e-9) << story(run);
}

// LuGre friction: the Stribeck curve is a hundredth wide and is passed where abs(v) makes the bristles rest. End state
// from DOP853 and Radau of SciPy at 1e-12, steps of 1e-3.
TEST(Smooth, AStribeckCurveIsPassedAtEveryTolerance) {
  const System s = system(
      "x' = v\nz' = slip\nv' = 2*sin(t) - 1000*z - 30*slip\n"
      "slip = v - 1000*abs(v)*z/(1 + 0.5*exp(-(v/0.01)^2))",
      "x = 0\nz = 0\nv = 0");
  for (const double tolerance : {1e-6, 1e-8, 1e-10, 1e-12}) {
    const Trajectory run = s.run(5, tolerance);
    EXPECT_NEAR(run.end.state[0], 1.99843593572, 10 * tolerance + 1e-10) << tolerance;
    EXPECT_NEAR(run.end.state[2], -0.965143560923, 10 * tolerance + 1e-10) << tolerance;
  }
}

}  // namespace
}  // namespace saltus::physics
