#include "analysis/orbit.hpp"
#include "analysis/spectrum.hpp"

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/equilibrium.hpp"
#include "analysis/exponents.hpp"
#include "model/read.hpp"
#include "run_of.hpp"

namespace saltus {
namespace {

const char* const driven_friction = R"M(
equations = """
  y' = v
  v' = -y + sin(omega*t) - F*sign(v)
"""
[parameters]
F = 0.4
omega = "1/3"
[initial]
y = 1
v = 2
[section.strobe]
every = "2*pi/omega"
)M";

TEST(Orbit, OfTheFrictionOscillatorForgetsOneDirection) {  // Piiroinen & Kuznetsov 2008: 1/omega = 3
  const Model model = read_model_text(driven_friction);
  const Orbit orbit = find_orbit(model, {.run = run_of(model), .section = 0});
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_NEAR(orbit.period, 6 * M_PI, 1e-12);
  EXPECT_EQ(orbit.returns, 1);
  EXPECT_TRUE(orbit.stable);
  EXPECT_TRUE(orbit.symmetric);
  ASSERT_EQ(orbit.multipliers.size(), 2u);
  EXPECT_NEAR(orbit.multipliers[0].real(), 0.35631659303098879, 1e-10);
  EXPECT_NEAR(std::abs(orbit.multipliers[1]), 0, 1e-12);
  EXPECT_LT(orbit.residual, 1e-12);
}

// A circle, and two states that decay beside it: multipliers exp((mu +- i w) 2 pi) and exp(-4 pi).
TEST(Orbit, IsFoundBesideStatesThatHaveDecayedToNothing) {
  const Model model = read_model_text(R"M(
equations = """
  x' = x*(1 - x^2 - y^2) - y
  y' = y*(1 - x^2 - y^2) + x
  u' = mu*u - w*v - u*(u^2 + v^2) + 0.1*(x^2 + y^2 - 1)
  v' = mu*v + w*u - v*(u^2 + v^2)
"""
[parameters]
mu = -0.2
w = 0.3
[initial]
x = 1
y = 0
u = 0
v = 0.1
)M");
  for (const double v : {0.1, -0.1, 5.0}) {
    OrbitOptions options{.run = run_of(model)};
    options.run.initial[3] = v;
    const Orbit orbit = find_orbit(model, options);
    ASSERT_TRUE(orbit.found) << orbit.message;
    EXPECT_NEAR(orbit.period, 2 * M_PI, 1e-9);
    ASSERT_EQ(orbit.multipliers.size(), 3u);
    const std::complex<double> mu = std::exp(2 * M_PI * std::complex<double>(-0.2, 0.3));
    EXPECT_NEAR(std::abs(orbit.multipliers[0] - std::complex<double>(mu.real(), std::abs(mu.imag()))), 0, 1e-8);
    EXPECT_NEAR(orbit.multipliers[2].real(), std::exp(-4 * M_PI), 1e-8);
  }
}

TEST(Orbit, OfADrivenModelComesBackWithItsPhase) {  // all firings have u = 0: phase and multiplier by the exact map
  const Model model = read_model_text(R"M(
equations = "u' = -0.5*u + 1.29 + 0.3*sin(2*pi*t)"
[initial]
u = 0
[jump.fire]
on = "u - 1"
direction = "rising"
set = { u = 0 }
[section.fires]
on = "fire"
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model), .section = 0});
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_NEAR(orbit.period, 1, 1e-12);
  EXPECT_NEAR(std::remainder(orbit.t, 1), 0.0873618837574657, 1e-10);
  ASSERT_EQ(orbit.multipliers.size(), 1u);
  EXPECT_NEAR(orbit.multipliers[0].real(), 0.926928450323780814, 1e-9);
}

TEST(Orbit, MayReturnToAContactThatItLeavesAtOnce) {  // one impact a period: two linear equations and a phase
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = -x - 0.2*v + cos(2*t) - 0.1 + N
"""
[initial]
x = 1
v = 0
[constraint.N]
gap = "x"
restitution = 0.6
[section.hit]
on = "N"
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model), .section = 0});
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_NEAR(orbit.period, M_PI, 1e-12);
  EXPECT_NEAR(orbit.state[1], 1.17957464439514, 1e-10);
  ASSERT_EQ(orbit.multipliers.size(), 2u);
  EXPECT_NEAR(orbit.multipliers[0].real(), 0.48501263, 1e-8);
  EXPECT_NEAR(orbit.multipliers[1].real(), 0.39598085, 1e-8);
}

TEST(Orbit, OfTheRimlessWheelHasItsClosedForm) {  // Coleman 1998: the multiplier is cos^2(2 alpha)
  const Model model = read_model_text(R"M(
equations = """
  th' = om
  om' = g/l*sin(th)
"""
[parameters]
g = 9.81
l = 1
alpha = "pi/8"
gamma = 0.08
[jump.strike]
on = "th - gamma - alpha"
direction = "rising"
set = { th = "gamma - alpha", om = "om*cos(2*alpha)" }
[initial]
th = 0
om = 1.5
[section.foot]
on = "strike"
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model), .section = 0});
  ASSERT_TRUE(orbit.found) << orbit.message;
  // Energy: om- ^2 = om+ ^2 + 2 g/l (cos(gamma - alpha) - cos(gamma + alpha)), om+ = om- cos(2 alpha)
  const double c2 = std::pow(std::cos(M_PI / 4), 2),
               gain = 2 * 9.81 * (std::cos(0.08 - M_PI / 8) - std::cos(0.08 + M_PI / 8));
  EXPECT_NEAR(orbit.state[1], std::sqrt(c2 * gain / (1 - c2)), 1e-10);
  ASSERT_EQ(orbit.multipliers.size(), 1u);
  EXPECT_NEAR(orbit.multipliers[0].real(), c2, 1e-9);
  EXPECT_NEAR(orbit.trivial.real(), 1, 1e-9);
}

TEST(Orbit, NeedsNoSection) {
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = (1 - x^2)*v - x
"""
[initial]
x = 0.1
v = 0
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model)});
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_NEAR(orbit.period, 6.6632868593231301, 1e-9);
  EXPECT_TRUE(orbit.symmetric);
  ASSERT_EQ(orbit.multipliers.size(), 1u);
  EXPECT_NEAR(orbit.multipliers[0].real(), 0.00085969506, 1e-9);
}

TEST(Orbit, OfAFamilyIsTheOneAtHand) {  // centres: every start lies on an orbit, Newton's matrix is singular
  const Model bilinear = read_model_text(R"M(
equations = """
  x' = v
  v' = if(x > 0, -4*x, -x)
"""
[initial]
x = 1
v = 0
)M");
  const Model harmonic = read_model_text(R"M(
equations = """
  x' = v
  v' = -x
"""
[initial]
x = 1
v = 0
)M");
  const Orbit circle = find_orbit(harmonic, {.run = run_of(harmonic)});
  ASSERT_TRUE(circle.found) << circle.message;
  EXPECT_NEAR(circle.period, 2 * M_PI, 1e-10);
  const Orbit springs = find_orbit(bilinear, {.run = run_of(bilinear)});
  ASSERT_TRUE(springs.found) << springs.message;
  EXPECT_NEAR(springs.period, 1.5 * M_PI, 1e-10);
  const Model prey = read_model_text(R"M(
equations = """
  x' = x*(1 - y)
  y' = y*(x - 1)
"""
[initial]
x = 1.5
y = 1
)M");
  const Orbit hunted = find_orbit(prey, {.run = run_of(prey)});
  ASSERT_TRUE(hunted.found) << hunted.message;
  EXPECT_NEAR(hunted.period, 6.382567707392815, 1e-8);  // mpmath, Taylor series with 25 digits
}

TEST(Orbit, MayHaveAStateThatIsZeroOnIt) {  // a kicked rotor at th = pi, p = 0: trace 1 + b - K, determinant b
  const Model model = read_model_text(R"M(
equations = """
  th' = p
  p' = 0
"""
[jump.kick]
every = 1
set = { p = "0.5*p + sin(th)" }
[initial]
th = 3
p = 0
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model)});
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_NEAR(orbit.state[0], M_PI, 1e-10);
  ASSERT_EQ(orbit.multipliers.size(), 2u);
  EXPECT_NEAR(orbit.multipliers[0].real(), 0.25, 1e-9);
  EXPECT_NEAR(std::abs(orbit.multipliers[0].imag()), std::sqrt(0.5 - 0.0625), 1e-9);
}

TEST(Orbit, OfARotationNeedsNoSection) {  // th' = w - sin th: 2 pi/sqrt(w^2 - 1)
  const Model model = read_model_text(R"M(
equations = "th' = 1.5 - sin(th)"
[initial]
th = 0
)M");
  OrbitOptions options{.run = run_of(model)};
  options.modulo = {{0, 2 * M_PI}};
  const Orbit orbit = find_orbit(model, options);
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_NEAR(orbit.period, 2 * M_PI / std::sqrt(1.25), 1e-9);
}

TEST(Orbit, OfAnElasticBallIsItsFlight) {  // from the height 1/2 with g = 1
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = -1 + N
"""
[constraint.N]
gap = "x"
restitution = 1
[initial]
x = 0.5
v = 0
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model)});
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_NEAR(orbit.period, 2, 1e-9);
}

TEST(Orbit, IsFoundBackwardWhereItRepels) {  // the same in reversed time: it repels
  const Model model = read_model_text(R"M(
equations = """
  x' = -v
  v' = -(1 - x^2)*v + x
"""
[initial]
x = 0.1
v = 0
[section.turn]
on = "v"
direction = "rising"
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model), .section = 0, .backward = true});
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_FALSE(orbit.stable);
  EXPECT_NEAR(orbit.period, 6.6632868593231301, 1e-9);
  EXPECT_NEAR(orbit.multipliers[0].real(), 1 / 0.00085969506360519, 1e-4);
}

TEST(Orbit, CountsTheSaltationWhereItsSectionIsASurface) {
  // x'' = -sign(x) - d x' + u: the section x = 0 is the surface itself; its multiplier must not depend on the section.
  const auto find = [](const std::string& on) {
    const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = -sign(x) + 0.5*v - 0.2*v^3
"""
[initial]
x = 1
v = 0
[section.here]
direction = "rising"
on = ")M" + on + "\"\n");
    return find_orbit(model, {.run = run_of(model), .section = 0});
  };
  const Orbit a = find("x"), b = find("v");
  ASSERT_TRUE(a.found) << a.message;
  ASSERT_TRUE(b.found) << b.message;
  EXPECT_NEAR(a.period, b.period, 1e-9);
  EXPECT_NEAR(a.multipliers[0].real(), b.multipliers[0].real(), 1e-9);
  EXPECT_NEAR(a.trivial.real(), 1, 1e-9);
  EXPECT_NEAR(b.trivial.real(), 1, 1e-9);
}

TEST(Orbit, SaysWhyThereIsNone) {
  const Model model = read_model_text("equations = \"x' = -x\"\n[initial]\nx = 1\n[section.s]\non = \"x - 0.5\"\n");
  const Orbit orbit = find_orbit(model, {.run = run_of(model), .section = 0});
  EXPECT_FALSE(orbit.found);
  EXPECT_EQ(orbit.why, "section");
  EXPECT_NE(orbit.message.find("'s'"), std::string::npos) << orbit.message;
}

Equilibrium rest_of(const std::string& text) {
  const Program program(read_model_text(text));
  return find_equilibrium(program, {run_of(program.model(), 10)});
}

TEST(Orbit, IsSymmetricOnlyIfTheModelIs) {
  // Far from its one stop the oscillator moves as one without; far from both as well, but there the model is symmetric.
  const auto found = [](const std::string& stops) {
    const Model model = read_model_text("equations = \"\"\"\nx' = v\nv' = -0.1*v - x + 0.5*cos(0.8*t) - " + stops +
                                        "\n\"\"\"\n[initial]\nx = 0\nv = 0\n");
    return find_orbit(model, {.run = run_of(model)});
  };
  EXPECT_FALSE(found("max(x - 2, 0)").symmetric);
  EXPECT_TRUE(found("max(x - 2, 0) + max(-x - 2, 0)").symmetric);
}

TEST(Orbit, IsNoPointAtRest) {  // a focus: Newton's method closes after any time
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = -x - 0.1*v
"""
[initial]
x = 1
v = 0
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model)});
  EXPECT_FALSE(orbit.found);
  EXPECT_EQ(orbit.why, "equilibrium");
}

TEST(Spectrum, OfAProductHasEachEigenvalueToItsOwnSize) {
  constexpr int count = 6;
  const auto turn = [](double angle) {
    Mat Q(3, 3);
    Q << std::cos(angle), -std::sin(angle), 0, std::sin(angle), std::cos(angle), 0, 0, 0, 1;
    Mat P(3, 3);
    P << 1, 0, 0, 0, std::cos(2 * angle), -std::sin(2 * angle), 0, std::sin(2 * angle), std::cos(2 * angle);
    return Mat(Q * P);
  };
  Vec sizes(3);
  sizes << 100, -0.5, 1e-3;
  std::vector<Mat> factors;
  for (int k = 0; k < count; ++k)
    factors.push_back(turn((k + 1) % count) * sizes.asDiagonal() * turn(k % count).transpose());
  Spectrum s = spectrum_of_product(factors);
  sort_multipliers(s);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(s[static_cast<size_t>(i)].real() / std::pow(sizes[i], count), 1, 1e-11);
  factors[2] = factors[2] * turn(2) * Vec(Vec::Unit(3, 0) + Vec::Unit(3, 1)).asDiagonal() * turn(2).transpose();
  s = spectrum_of_product(factors);
  sort_multipliers(s);
  EXPECT_EQ(std::abs(s[2]), 0.0);
}

TEST(Spectrum, OfAProductKeepsComplexPairs) {
  Mat A(2, 2), B(2, 2);
  A << 0, -2, 3, 0;
  B << 1, 0.5, 0, 1;
  Spectrum s = spectrum_of_product({A, B}), direct = spectrum_of(B * A);
  sort_multipliers(s);
  sort_multipliers(direct);
  for (size_t i = 0; i < 2; ++i) EXPECT_LT(std::abs(s[i] - direct[i]), 1e-13);
}

// x turns on the section: the row of x in Newton's method is nothing but errors.
TEST(Orbit, OfACentreIsTheOneThroughTheStartAlsoWhereAStateTurnsOnTheSection) {
  for (const auto& [v, amplitude] : {std::pair{0.0, 1.0}, {0.75, 1.25}}) {
    Model model = read_model_text(
        "equations = \"\"\"\nx' = v\nv' = -x\n\"\"\"\n[initial]\nx = 1\nv = 0\n[section.turn]\non = \"v\"\n"
        "direction = \"falling\"\n");
    RunOptions run = run_of(model);
    run.initial[1] = v;
    const Orbit orbit = find_orbit(model, {.run = run, .section = 0});
    ASSERT_TRUE(orbit.found) << orbit.message;
    EXPECT_NEAR(orbit.period, 2 * M_PI, 1e-10);
    EXPECT_NEAR(orbit.state[0], amplitude, 1e-7);
  }
}

// Each run ends at t = 100 with a jump, where the orbit lies on one side of every plane across it.
TEST(Orbit, IsFoundWithoutASectionAlsoWhereTheFirstRunEndsWithAJump) {
  const Model model = read_model_text(R"M(
equations = """
  x' = 1
  y' = -y
"""
[initial]
x = 0
y = 0.3
[jump.a]
on = "x - 1"
direction = "rising"
set = { x = "0", y = "y + 1" }
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model)});
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_NEAR(orbit.period, 1, 1e-12);
  EXPECT_NEAR(std::abs(orbit.multipliers[0]), std::exp(-1), 1e-9);
}

// Along x = 0 it slides over the tick: what Newton's method leaves of x, 1e-52, is no leg of its own.
TEST(Orbit, ThatSlidesOverItsSectionBeginsOnTheSurface) {
  const Model model = read_model_text(R"M(
equations = """
  x' = -x + y - 0.9*sign(x)
  y' = -y - 2*x + 0.4*sign(y - 0.2) + sin(t)
"""
[initial]
x = 0.5
y = 0.5
[section.s]
every = "2*pi"
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model), .section = 0});
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_EQ(orbit.state[0], 0);
  EXPECT_EQ(orbit.trajectory.start_mode.text(), "0-");
}

TEST(Equilibrium, IsFoundInItsMode) {
  const Equilibrium e = rest_of("equations = \"x' = -abs(x) + 1\"\n[initial]\nx = 0.9\n");
  EXPECT_EQ(e.kind, Equilibrium::Kind::equilibrium);
  EXPECT_NEAR(e.state[0], 1, 1e-14);
  EXPECT_TRUE(e.stable);
}

TEST(Equilibrium, IsNoneWhereTimeMovesIt) {
  for (const char* text :
       {"equations = \"x' = -x + sin(t)\"\n[initial]\nx = 0.1\n",
        "equations = \"x' = 0\"\n[initial]\nx = 0.3\n[jump.map]\nevery = 1\nset = { x = \"3.5*x*(1 - x)\" }\n"}) {
    const Program program(read_model_text(text));
    const Equilibrium e = find_equilibrium(program, {run_of(program.model())});
    EXPECT_EQ(e.kind, Equilibrium::Kind::none) << text;
    EXPECT_EQ(e.why, "time");
  }
  const Program at_rest(read_model_text("equations = \"x' = -(2 + sin(t))*(x - 1)\"\n[initial]\nx = 0.1\n"));
  EXPECT_NEAR(find_equilibrium(at_rest, {run_of(at_rest.model())}).state.at(0), 1, 1e-12);
}

// A whirling shaft in polar coordinates: r' = u, and the angle's speed divides by r. Without damping of the fluid the
// circle r^2 = (p^2/4 - 1)/b goes round with Om = p/2.
constexpr const char* polar = R"M(
equations = """
  r' = u
  u' = Om^2*r - d*(u + 0) - (1 + b*r^2)*r
  Om' = -d*(Om - p/2)*r/r1 - 2*u*Om/r1
  r1 = r
"""
[parameters]
p = 3
b = 0.5
d = 0.2
[initial]
r = 0.2
u = 0
Om = 1.4
)M";

TEST(Equilibrium, IsSoughtElsewhereWhereADivisorVanishes) {
  const Model model = read_model_text(polar);
  const Equilibrium rest = find_equilibrium(Program(model), {run_of(model, 200)});
  ASSERT_EQ(rest.kind, Equilibrium::Kind::equilibrium) << rest.message;
  EXPECT_NEAR(rest.state[0], std::sqrt((9.0 / 4 - 1) / 0.5), 1e-10);
  EXPECT_NEAR(rest.state[2], 1.5, 1e-10);
}

TEST(Equilibrium, IsNoneWhereItsRatesAreZeroOverZero) {
  const Model model = read_model_text(R"M(
equations = """
  x' = -x - y - 2*x/r*min(r, 1)
  y' = x - y - 2*y/r*min(r, 1)
  r = sqrt(x^2 + y^2)
"""
[initial]
x = 0.3
y = 0
)M");
  const Equilibrium rest = find_equilibrium(Program(model), {run_of(model)});
  EXPECT_EQ(rest.kind, Equilibrium::Kind::none);
  EXPECT_EQ(rest.why, "undefined");
  EXPECT_NE(rest.message.find("'r' vanishes"), std::string::npos) << rest.message;
}

TEST(Equilibrium, NearTheZeroOfADivisorIsThere) {  // 1 + 1e-9/x: x = 1e-9, with the eigenvalue 1/1e-9
  const Model model = read_model_text(R"M(
equations = "x' = 1 - 1e-9/x"
[initial]
x = 1.5e-9
)M");
  const Equilibrium rest = find_equilibrium(Program(model), {run_of(model, 1e-10)});
  ASSERT_EQ(rest.kind, Equilibrium::Kind::equilibrium) << rest.message;
  EXPECT_NEAR(rest.eigenvalues[0].real() / 1e9, 1, 1e-9);
}

TEST(Equilibrium, OfASlidingFieldHasOneEigenvalueLess) {
  const Equilibrium e =
      rest_of("equations = \"\"\"\n  x' = y - 2*sign(x)\n  y' = 1 - 3*y\n\"\"\"\n[initial]\nx = 0\ny = 0\n");
  EXPECT_EQ(e.kind, Equilibrium::Kind::pseudo);
  EXPECT_NEAR(e.state[1], 1.0 / 3, 1e-14);
  ASSERT_EQ(e.eigenvalues.size(), 1u);
  EXPECT_NEAR(e.eigenvalues[0].real(), -3, 1e-12);
}

TEST(Equilibrium, OfDryFrictionIsASet) {
  const Equilibrium e =
      rest_of("equations = \"\"\"\n  x' = v\n  v' = -2*x - 0.5*sign(v)\n\"\"\"\n[initial]\nx = 0.1\nv = 0\n");
  EXPECT_EQ(e.kind, Equilibrium::Kind::set);
  EXPECT_NEAR(e.from[0], -0.25, 1e-9);
  EXPECT_NEAR(e.to[0], 0.25, 1e-9);
}

TEST(Equilibrium, OfAContactAtRestTellsItsForce) {
  const Equilibrium e = rest_of(R"M(
equations = """
  q' = v
  v' = -g + N/m
"""
[parameters]
g = 9.81
m = 2
[constraint.N]
gap = "q"
restitution = "0.5"
[initial]
q = 0
v = 0
)M");
  EXPECT_EQ(e.kind, Equilibrium::Kind::equilibrium);
  ASSERT_TRUE(e.margin.has_value());
  EXPECT_NEAR(*e.margin, 19.62, 1e-12);
}

TEST(Exponents, OfStiffFlowsAreFiniteHoweverLongTheSteps) {  // triangular: the rates of decay are the exponents
  const Program program(
      read_model_text("equations = \"\"\"\nx' = -1e5*x + y\ny' = -y + 1 + sin(t)\n\"\"\"\n[initial]\nx = 1\ny = 0\n"));
  RunOptions run = run_of(program.model(), 20);
  run.stiff = true;
  const Exponents found = find_exponents(program, {.run = run});
  ASSERT_EQ(found.exponents.size(), 2u);
  EXPECT_NEAR(found.exponents[0], -1, 1e-6);
  EXPECT_NEAR(found.exponents[1], -1e5, 0.1);
}

TEST(Exponents, OfALinearSystemAreItsEigenvalues) {
  const Program program(
      read_model_text("equations = \"\"\"\n  x' = -x + y\n  y' = -3*y\n\"\"\"\n[initial]\nx = 1\ny = 1\n"));
  const Exponents e = find_exponents(program, {.run = run_of(program.model(), 200)});
  ASSERT_EQ(e.exponents.size(), 2u);
  EXPECT_NEAR(e.exponents[0], -1, 1e-6);
  EXPECT_NEAR(e.exponents[1], -3, 1e-6);
}

TEST(Exponents, CountWhatIsForgottenFastAndWhatHasVanished) {  // polar coordinates: 0 and -2 on the circle, and -k
  for (const double k : {3.0, 50.0}) {
    const Program program(read_model_text(
        fmt::format("equations = \"\"\"\n  x' = -y - x*(x^2 + y^2 - 1)\n  y' = x - y*(x^2 + y^2 - 1)\n  z' = -{}*z\n"
                    "\"\"\"\n[initial]\nx = 1\ny = 0.1\nz = 1\n",
                    k)));
    const Exponents e = find_exponents(program, {.run = run_of(program.model(), 1000)});
    ASSERT_EQ(e.exponents.size(), 3u);
    EXPECT_NEAR(e.exponents[0], 0, 1e-9);
    EXPECT_NEAR(e.exponents[1], -2, 1e-9);
    EXPECT_NEAR(e.exponents[2], -k, 1e-6 * k);
  }
}

TEST(Exponents, OfAStiffRelaxationAreFinite) {  // mean of 10 (1 - x^2) over a period, by LSODA: -16.3454
  const Program program(
      read_model_text("equations = \"\"\"\n  x' = y\n  y' = 10*(1 - x^2)*y - x\n\"\"\"\n[initial]\nx = 2\ny = 0\n"));
  const Exponents e = find_exponents(program, {.run = run_of(program.model(), 4000)});
  EXPECT_NEAR(e.exponents[0], 0, 0.01);
  EXPECT_NEAR(e.exponents[1], -16.3454, 0.1);
}

TEST(Exponents, OfAShortRunCountMostOfItHoweverLongItsSteps) {
  const Program program(read_model_text("equations = \"\"\"\n  x' = -x\n\"\"\"\n[initial]\nx = 1\n"));
  for (const double until : {0.1, 1.0, 5.0, 30.0}) {  // one step, or a few
    const Exponents e = find_exponents(program, {.run = run_of(program.model(), until)});
    ASSERT_EQ(e.exponents.size(), 1u);
    EXPECT_GE(e.time, 0.8 * until);
    EXPECT_NEAR(e.exponents[0], -1, 1e-9) << until;
  }
}

TEST(Exponents, OfATentCountAsManyOfItsTicksAsTimeGoesBy) {  // every tick stretches by 1.9999
  const Program program(
      read_model_text("equations = \"x' = 0\"\n[initial]\nx = 0.3123\n[jump.map]\nevery = 1\nset = { x = "
                      "\"1.9999*min(x, 1 - x)\" }\n"));
  for (const double until : {100.0, 1000.0}) {
    const Exponents e = find_exponents(program, {.run = run_of(program.model(), until)});
    EXPECT_NEAR(e.exponents[0], std::log(1.9999), 1e-9) << until;
  }
}

TEST(Exponents, AreMinusInfinityWhereSlidingForgets) {
  const Program program(read_model_text(driven_friction));
  const Exponents e = find_exponents(program, {.run = run_of(program.model(), 4000)});
  EXPECT_NEAR(e.exponents[0], std::log(0.35631659303098879) / (6 * M_PI), 1e-3);
  EXPECT_TRUE(std::isinf(e.exponents[1]) && e.exponents[1] < 0);
  EXPECT_TRUE(std::isnan(e.error[1]));
}

// x is zero from t = 20/3 on, and all that was known of where it came from is in z. The run tells no event of that.
TEST(Exponents, AreMinusInfinityWhereAStateVanishesByARoot) {
  const Program program(
      read_model_text("equations = \"\"\"\nx' = -0.3*sqrt(x)\nz' = -z + x\n\"\"\"\n[initial]\nx = 1\nz = 0\n"));
  for (const double until : {10.0, 30.0, 100.0, 1000.0}) {
    const Exponents e = find_exponents(program, {.run = run_of(program.model(), until)});
    EXPECT_TRUE(std::isinf(e.exponents[1]) && e.exponents[1] < 0) << until;
    if (until > 70) {  // the root ends in the transient
      EXPECT_NEAR(e.exponents[0], -1, 1e-6) << until;
    }
  }
}

const char* const lorenz = R"M(
equations = """
  x' = 10*(y - x)
  y' = x*(28 - z) - y
  z' = x*y - 8/3*z
"""
[initial]
x = 1
y = 1
z = 27
[section.middle]
on = "z - 27"
direction = "falling"
)M";

Orbit lorenz_orbit(const std::vector<double>& near, int returns, double time = 0) {
  const Model model = read_model_text(lorenz);
  OrbitOptions options{.run = run_of(model), .section = 0, .guess = true, .returns = returns, .time = time};
  options.run.initial = near;
  return find_orbit(model, options);
}

TEST(Orbit,
     OfTheLorenzSystemIsFoundFromNearReturnsHoweverUnstable) {  // by scipy, multiple shooting with DOP853 at 1e-13
  const Orbit twenty = lorenz_orbit({-0.17612307306232655, -4.875053850290997, 27}, 20);
  ASSERT_TRUE(twenty.found) << twenty.message;
  EXPECT_NEAR(twenty.period, 15.04339297522394, 1e-10);
  EXPECT_NEAR(twenty.multipliers[0].real() / 848145.4448378659, 1, 1e-8);
  EXPECT_NEAR(twenty.trivial.real(), 1, 1e-7);
  const Orbit more = lorenz_orbit({0.024972171894835846, 4.71449744134275, 27}, 26);
  ASSERT_TRUE(more.found) << more.message;
  EXPECT_NEAR(more.period, 19.99875504848041, 1e-10);
  EXPECT_NEAR(more.multipliers[0].real() / 229651073.23777002, 1, 1e-7);
}

TEST(Orbit, BeginsAtTheNextReturnWhereTheGuessPassesTheSectionTheOtherWay) {  // Viswanath 2003: AB, on z = 27 rising
  const Orbit orbit = lorenz_orbit({-13.763610682134, -19.578751942452, 27}, 0, 1.5586);
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_NEAR(orbit.period, 1.5586522107162, 1e-11);
}

TEST(Orbit, MayHaveASectionThatOnlyJumpsPass) {  // from 20 to 22 and back: 5 ln(10/8) + 5 ln(12/10)
  const Model model = read_model_text(R"M(
equations = "T' = -(T - 10)/5 + 4*q\nq' = 0"
[initial]
T = 18
q = 1
[jump.off]
on = "T - 22"
direction = "rising"
set = { q = 0 }
[jump.on]
on = "T - 20"
direction = "falling"
set = { q = 1 }
[section.starts]
on = "q - 0.5"
direction = "rising"
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model), .section = 0});
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_NEAR(orbit.period, 5 * std::log(1.5), 1e-10);
}

TEST(Exponents, OfARunThatIsStoppedEarlyHaveErrors) {
  const Model model = read_model_text(lorenz);
  ExponentOptions options{.run = run_of(model, 1000)};
  options.run.progress = [](double t) { return t < 200; };  // not a sixth of what would be counted
  const Exponents e = find_exponents(Program(model), options);
  EXPECT_EQ(e.end.why, Why::cancelled);
  for (const double error : e.error) EXPECT_TRUE(std::isnan(error) || error > 0) << error;
}

// Volumes shrink at the rate 0.15 everywhere: also of a run that is stopped in its transient, or has no end, the
// exponents add up to that. The largest one is 0.1856 by two nearby runs (Runge and Kutta's rule, 200 steps per period,
// brought together again every 50 steps, over a time of 18850).
TEST(Exponents, OfARunThatIsStoppedInItsTransientAreThere) {
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = x - x^3 - 0.15*v + 0.3*cos(t)
"""
[initial]
x = 0
v = 0
)M");
  for (const bool open : {false, true}) {
    ExponentOptions options{.run = run_of(model, open ? 1e12 : 1e6), .open = open};
    if (!open) options.run.progress = [](double t) { return t < 2e4; };
    const Exponents e = find_exponents(Program(model), options);
    EXPECT_EQ(e.end.why, open ? Why::time : Why::cancelled) << e.end.message;
    ASSERT_EQ(e.exponents.size(), 2u);
    EXPECT_NEAR(e.exponents[0] + e.exponents[1], -0.15, 1e-9);
    EXPECT_NEAR(e.exponents[0], 0.1856, 0.015);
    EXPECT_GT(e.error[0], 0);
    EXPECT_LT(e.error[0], 0.01);
    if (!open) {
      EXPECT_NEAR(e.time, 0.9 * e.end.t, 0.05 * e.end.t);
    }
    EXPECT_FALSE(e.times.empty());
  }
}

TEST(Exponents, OfAnOpenRunAreKnownToAHundredthOfTheLargest) {  // Sprott 2003: 0.9056, 0, -14.5723
  const Model model = read_model_text(lorenz);
  ExponentOptions options{.run = run_of(model, 1e9)};
  options.open = true;
  const Exponents found = find_exponents(Program(model), options);
  ASSERT_EQ(found.exponents.size(), 3u);
  for (const double error : found.error) EXPECT_LE(error, 0.0095);
  EXPECT_NEAR(found.exponents[0], 0.9056, 4 * 0.0095);
  EXPECT_NEAR(found.exponents[1], 0, 4 * 0.0095);
  EXPECT_NEAR(found.exponents[2], -14.5723, 4 * 0.0095);
}

TEST(Exponents, OfTheLorenzSystemAreThoseOfTheLiterature) {  // Sprott 2003: 0.9056, 0, -14.5723
  const Model model = read_model_text(lorenz);
  ExponentOptions options{.run = run_of(model, 4000)};
  const Exponents found = find_exponents(Program(model), options);
  ASSERT_EQ(found.exponents.size(), 3u);
  EXPECT_NEAR(found.exponents[0], 0.9056, 0.012);
  EXPECT_NEAR(found.exponents[1], 0, 0.003);
  EXPECT_NEAR(found.exponents[2], -14.5723, 0.012);
  // The flow contracts volumes at the rate -(10 + 1 + 8/3) everywhere.
  EXPECT_NEAR(found.exponents[0] + found.exponents[1] + found.exponents[2], -41.0 / 3, 1e-9);
}

// Half a million steps that are short for stability. The period by Radau IIA, rtol 1e-11.
// Prey and predators that are harvested above a threshold (Kuznetsov, Rinaldi & Gragnani 2003), on their way to rest.
TEST(Orbit, ThatIsNotThereIsToldWithoutASectionNobodyWrote) {
  const Model model = read_model_text(R"M(
equations = """
  x' = x*(1 - x) - eaten
  y' = eaten - 0.0444*y - if(y > 0.5, 0.2067*y, 0)
  eaten = 0.3556*x*y/(0.33 + x)
"""
[initial]
x = 0.5
y = 0.3
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model, 500)});
  EXPECT_FALSE(orbit.found);
  EXPECT_NE(orbit.message.find("`equilibrium`"), std::string::npos) << orbit.message;
  EXPECT_EQ(orbit.message.find("plane"), std::string::npos) << orbit.message;
}

// A plane through x = 0.4 is passed once along the flow and once by the jump from 0.3 to 0.6.
TEST(Orbit, BeginsWhereTheFlowPassesThePlaneNotAJump) {
  const Model model = read_model_text(R"M(
equations = "x' = 1\nn' = 0"
[initial]
x = 0.1
n = 0
[jump.back]
on = "x - 0.8"
direction = "rising"
when = "n < 0.5"
set = { x = 0.2, n = 1 }
[jump.lift]
on = "x - 0.3"
direction = "rising"
when = "n > 0.5 and n < 1.5"
set = { x = 0.6, n = 2 }
[jump.home]
on = "x - 1"
direction = "rising"
when = "n > 1.5"
set = { x = 0, n = 0 }
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model)});
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_NEAR(orbit.period, 0.8 + 0.1 + 0.4, 1e-12);
}

TEST(Orbit, OfAStiffOscillatorIsSolvedForThoughItsLegHasManySteps) {
  const Model model = read_model_text(R"M(
equations = """
  x' = y
  y' = 1000*(1 - x^2)*y - x
"""
[initial]
x = 2
y = 0
)M");
  RunOptions run = run_of(model, 1000);
  run.stiff = true;
  const Orbit orbit = find_orbit(model, {.run = run});
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_NEAR(orbit.period, 1614.40112581, 1e-6);
}

const char* const valve = R"M(
equations = """
  h1' = q*open - 0.5*sqrt(max(h1, 0))
  h2' = (0.5*sqrt(max(h1, 0)) - 0.4*sqrt(max(h2, 0)))/2
  open' = 0
"""
[parameters]
q = 1
[initial]
h1 = 0
h2 = 0
open = 1
[jump.full]
on = "h2 - 1.5"
direction = "rising"
set = { open = 0 }
[jump.low]
on = "h2 - 0.5"
direction = "falling"
set = { open = 1 }
[section.middle]
on = "h2 - 1"
direction = "rising"
)M";

// A tank runs empty, rests, and fills again. Period from w = sqrt(h1): the filling as an equation in w, the emptying
// w0 - t/4, the rest (sqrt(h2) - sqrt(0.5))/0.1, with DOP853 of SciPy at 1e-13. Every filling begins with the same
// state, so nothing is remembered.
TEST(Orbit, RestsWhereARootEndsAndBegins) {
  const Model model = read_model_text(valve);
  const Orbit orbit = find_orbit(model, {.run = run_of(model), .section = 0});
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_NEAR(orbit.period, 18.2057093522016, 1e-10);
  EXPECT_NEAR(std::abs(orbit.trivial - 1.0), 0, 1e-9);
  for (const std::complex<double>& mu : orbit.multipliers) EXPECT_NEAR(std::abs(mu), 0, 1e-9);
  EXPECT_TRUE(orbit.notes.empty()) << orbit.notes.front();
  // On a plane of its own, where rounding must not open the valve by 1e-30: the tank would never be empty.
  const Orbit by_plane = find_orbit(model, {.run = run_of(model)});
  ASSERT_TRUE(by_plane.found) << by_plane.message;
  EXPECT_NEAR(by_plane.period, 18.2057093522016, 1e-9);
}

// th = 0 and 1/2 by turns, with the multiplier (1 - K)(1 + K).
TEST(Orbit, OfAnAngleRepeatsWhereTheAngleDoes) {
  const Model model = read_model_text(R"M(
equations = "th' = 0"
[parameters]
Om = 0.5
K = 0.9
[initial]
th = 0.1
[jump.m]
every = 1
set = { th = "th + Om - K/(2*pi)*sin(2*pi*th)" }
[section.s]
every = 1
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model), .section = 0, .modulo = {{0, 1.0}}});
  ASSERT_TRUE(orbit.found) << orbit.message;
  EXPECT_EQ(orbit.returns, 2);
  EXPECT_NEAR(orbit.multipliers[0].real(), 0.19, 1e-9);
}

// Van der Pol's cycle has its own period, 6.66328686 at mu = 1, whatever the frequency of a force is that is not there.
TEST(Orbit, UnderAForceOfAmplitudeZeroIsThatWithoutIt) {
  for (const char* const force : {"A*cos(w*t)", "x*sin(0*A*t)", "A*t/3", "0"}) {
    const Model model = read_model_text(fmt::format(R"M(
equations = """
  x' = v
  v' = (1 - x^2)*v - x + {}
"""
[parameters]
A = 0
w = 2.3
[initial]
x = 1
v = 0
[section.s]
on = "v"
direction = "falling"
)M",
                                                    force));
    for (const int section : {0, -1}) {
      const Orbit orbit = find_orbit(model, {.run = run_of(model), .section = section});
      ASSERT_TRUE(orbit.found) << force << ": " << orbit.message;
      EXPECT_NEAR(orbit.period, 6.66328686, 1e-8) << force;
      EXPECT_TRUE(orbit.autonomous) << force;
    }
  }
}

// A state that grows for ever, beside a carrier that is switched 500 times a period: a million steps.
TEST(Orbit, OfWhatDoesNotSettleIsSoughtForAllReturnsHoweverManyStepsAPeriodTakes) {
  const Model model = read_model_text(R"M(
equations = """
  x' = 1
  y' = sign(sin(500*pi*t)) + x - y
"""
[initial]
x = 0
y = 0
[section.s]
every = 1
)M");
  const Orbit orbit = find_orbit(model, {.run = run_of(model), .section = 0, .most_returns = 2100});
  EXPECT_FALSE(orbit.found);
  EXPECT_EQ(orbit.why, "unsettled") << orbit.message;
}

// Three genes in a ring, thresholds at 1/2 (Glass & Pasternack 1978): with g the golden ratio, a switch follows every
// ln(g), and from one to the next the linear fractional map has the multipliers 1/g and -1/g^2: rates -1 and -2.
TEST(Exponents, OfACycleHaveErrorsThatContainTheTruth) {
  const Program program(read_model_text(
      "equations = \"\"\"\n  x' = step(0.5 - z) - x\n  y' = step(x - 0.5) - y\n  z' = step(y - 0.5) - z\n\"\"\"\n"
      "[initial]\nx = 0.1\ny = 0.2\nz = 0.3\n"));
  for (const double until : {150.0, 200.0, 333.0, 400.0}) {
    const Exponents e = find_exponents(program, {.run = run_of(program.model(), until)});
    ASSERT_EQ(e.exponents.size(), 3u);
    for (size_t k = 0; k < 3; ++k)
      EXPECT_NEAR(e.exponents[k], -static_cast<double>(k), 3 * e.error[k] + 1e-12) << until;
  }
}

/// All that a search tells, bit by bit.
std::string told(const Orbit& orbit) {
  std::string out = fmt::format("{} {} {:a} {:a} {:a} {}", orbit.found, orbit.message, orbit.t, orbit.period,
                                orbit.residual, orbit.iterations);
  for (const double x : orbit.state) out += fmt::format(" {:a}", x);
  for (const auto& m : orbit.multipliers) out += fmt::format(" {:a}{:+a}i", m.real(), m.imag());
  for (const auto& row : orbit.monodromy) {
    for (const double x : row) out += fmt::format(" {:a}", x);
  }
  for (const OrbitLeg& leg : orbit.legs) out += fmt::format(" {} {:a} {}", leg.mode.switches, leg.length, leg.ended_by);
  for (const Piece& piece : orbit.trajectory.pieces) {
    for (const double c : piece.coefficients) out += fmt::format(" {:a}", c);
  }
  return out;
}

/// Searches with other initial values, parameters and tolerances, several for each model.
std::vector<OrbitOptions> many_searches(const Model& model) {
  std::vector<OrbitOptions> out;
  for (const double factor : {1.0, 0.97, 1.04}) {
    for (const double tolerance : {1e-9, 1e-11}) {
      OrbitOptions options{.run = run_of(model), .section = model.sections.empty() ? -1 : 0};
      for (double& p : options.run.parameters) p *= factor;
      options.run.tolerance = tolerance;
      out.push_back(options);
      options.run.initial[0] += 0.01;
      out.push_back(options);
    }
  }
  return out;
}

class SearchedBefore : public testing::TestWithParam<const char*> {};

// Memory goes from one search to the next, and modes that slide have formulas for their unknowns.
TEST_P(SearchedBefore, DoesNotMatter) {
  const Model model = read_model(SALTUS_SOURCE_DIR "/models/" + std::string(GetParam()) + "/model.toml");
  const std::vector<OrbitOptions> searches = many_searches(model);
  std::vector<std::string> alone;
  for (const OrbitOptions& options : searches) alone.push_back(told(try_orbit(model, options)));
  EXPECT_TRUE(alone[0].starts_with("true")) << alone[0];
  const Program program(model);
  for (size_t k = searches.size(); k-- > 0;) EXPECT_EQ(told(try_orbit(program, searches[k])), alone[k]) << k;
  std::vector<std::string> together(searches.size());
  std::vector<std::thread> threads;
  for (size_t worker = 0; worker < 3; ++worker) {
    threads.emplace_back([&, worker] {
      for (size_t k = worker; k < searches.size(); k += 3) together[k] = told(try_orbit(program, searches[k]));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t k = 0; k < searches.size(); ++k) EXPECT_EQ(together[k], alone[k]) << k;
}

// What an exception has left half changed is not used again.
TEST_P(SearchedBefore, DoesNotMatterWhereItWasInterrupted) {
  struct Interrupted {};
  const Model model = read_model(SALTUS_SOURCE_DIR "/models/" + std::string(GetParam()) + "/model.toml");
  const OrbitOptions options = many_searches(model).front();
  const std::string alone = told(try_orbit(model, options));
  const Program program(model);
  int interrupted = 0;
  for (const long at : {1L, 2L, 5L, 20L, 60L, 100L}) {
    OrbitOptions ends = options;
    ends.run.stop = [at, asked = 0L]() mutable {
      if (++asked == at) throw Interrupted();
      return false;
    };
    try {
      try_orbit(program, ends);
    } catch (const Interrupted&) {
      ++interrupted;
    }
    EXPECT_EQ(told(try_orbit(program, options)), alone) << at;
  }
  EXPECT_GT(interrupted, 2);
}

INSTANTIATE_TEST_SUITE_P(Orbit, SearchedBefore,
                         testing::Values("dry_friction", "predator_prey", "impact_oscillator", "buck"));

}  // namespace
}  // namespace saltus
