#include "analysis/branch.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "branches.hpp"
#include "model/read.hpp"
#include "run_of.hpp"

namespace saltus {
namespace {

Branch equilibria(const std::string& text, double low, double high) {
  const Model model = read_model_text(text);
  return follow_equilibrium(model, {run_of(model)}, {.parameter = 0, .low = low, .high = high});
}

TEST(EquilibriumBranch, OfTheLorenzSystemLosesStabilityAt470Over19) {
  const Branch b = equilibria(R"M(
equations = """
  x' = 10*(y - x)
  y' = x*(rho - z) - y
  z' = x*y - 8/3*z
"""
[parameters]
rho = 2
[initial]
x = 1.633
y = 1.633
z = 1
)M",
                              2, 30);
  ASSERT_TRUE(b.found) << b.message;
  ASSERT_EQ(b.special.size(), 1u);
  expect_special(b, "hopf", 470.0 / 19, 1e-11);
  EXPECT_EQ(b.points.front().values[0], 2);
  EXPECT_EQ(b.points.back().values[0], 30);
  for (const BranchPoint& p : b.points) {
    if (p.label.empty()) {
      EXPECT_EQ(p.stable, p.values[0] < 470.0 / 19);
    }
  }
}

TEST(EquilibriumBranch, TurnsAtTheFoldOfACubic) {  // mu = x^3 - x: folds at x = -+1/sqrt(3)
  const Branch b = equilibria(R"M(
equations = "x' = mu + x - x^3"
[parameters]
mu = -1
[initial]
x = -1.3
)M",
                              -1, 1);
  ASSERT_TRUE(b.found) << b.message;
  ASSERT_EQ(of_type(b, "fold").size(), 2u);
  expect_special(b, "fold", 2 / (3 * std::sqrt(3.0)), 1e-12);
  expect_special(b, "fold", -2 / (3 * std::sqrt(3.0)), 1e-12);
}

TEST(EquilibriumBranch, FoldsWithoutATangentAtAKink) {  // Leine 2000, 5.3
  const Branch b = equilibria(R"M(
equations = "x' = mu - abs(x)"
[parameters]
mu = 1
[initial]
x = 0.9
)M",
                              -0.5, 1);
  ASSERT_TRUE(b.found) << b.message;
  ASSERT_EQ(b.special.size(), 1u);
  expect_special(b, "boundary-equilibrium", 0, 1e-12);
  EXPECT_EQ(b.special[0].persists, false);
  EXPECT_TRUE(b.points.front().stable != b.points.back().stable);
}

TEST(EquilibriumBranch, PassesAPitchforkOfKinksAndKnowsTheOtherBranches) {  // Leine 2000, 5.5
  const Branch b = equilibria(R"M(
equations = "x' = -x + abs(x + mu/2) - abs(x - mu/2)"
[parameters]
mu = -1
[initial]
x = 0
)M",
                              -1, 1);
  ASSERT_TRUE(b.found) << b.message;
  ASSERT_EQ(b.special.size(), 1u);
  expect_special(b, "boundary-equilibrium", 0, 1e-12);
  EXPECT_EQ(b.special[0].persists, true);
  EXPECT_EQ(b.special[0].others.size(), 2u);
  for (const BranchPoint& p : b.points) EXPECT_NEAR(p.state[0], 0, 1e-12);
}

/// The eigenvalues of all half-branches that begin at the boundary equilibrium mu = 0, but the one that comes there.
std::vector<std::pair<double, Spectrum>> half_branches(const Model& model, BranchOptions options) {
  std::vector<std::pair<double, Spectrum>> out;
  for (int other = 0; other < 10; ++other) {
    options.seek = {"boundary-equilibrium", 0.0, other};
    const Branch b = follow_equilibrium(model, {run_of(model)}, options);
    if (!b.found || !b.equilibria) break;
    out.emplace_back(b.points.back().values[0], b.points.back().spectrum);
  }
  return out;
}

TEST(EquilibriumBranch, HasAllFourHalfBranchesOfATranscriticalKink) {  // Leine 2000, 5.6: x = 0 and x = mu
  const Model model = read_model_text(R"M(
equations = "x' = abs(mu/2) - abs(x - mu/2)"
[parameters]
mu = -1
[initial]
x = 0.01
)M");
  const BranchOptions options{.parameter = 0, .low = -1, .high = 1};
  const Branch b = follow_equilibrium(model, {run_of(model)}, options);  // x = 0
  ASSERT_EQ(b.special.size(), 1u);
  EXPECT_NE(b.special[0].detail.find("transcritical"), std::string::npos) << b.special[0].detail;
  EXPECT_EQ(b.special[0].persists, true);
  EXPECT_NEAR(b.points.front().spectrum[0].real(), -1, 1e-12);
  EXPECT_NEAR(b.points.back().spectrum[0].real(), 1, 1e-12);
  const auto halves = half_branches(model, options);  // x = mu
  ASSERT_EQ(halves.size(), 2u);
  for (const auto& [mu, eigenvalues] : halves) EXPECT_NEAR(eigenvalues[0].real(), mu > 0 ? -1 : 1, 1e-12);
  EXPECT_EQ(halves[0].first, -halves[1].first);
}

TEST(EquilibriumBranch, HasAllFourHalfBranchesOfASubcriticalPitchforkOfKinks) {  // Leine 2000, eq. 5.22
  const Model model = read_model_text(R"M(
equations = "x' = x + abs(x + mu/2) - abs(x - mu/2)"
[parameters]
mu = -1
[initial]
x = 0.01
)M");
  const BranchOptions options{.parameter = 0, .low = -1, .high = 1};
  const Branch b = follow_equilibrium(model, {run_of(model)}, options);
  ASSERT_EQ(b.special.size(), 1u);
  EXPECT_NE(b.special[0].detail.find("discontinuous pitchfork"), std::string::npos) << b.special[0].detail;
  EXPECT_NEAR(b.points.front().spectrum[0].real(), -1, 1e-12);
  EXPECT_NEAR(b.points.back().spectrum[0].real(), 3, 1e-12);
  const auto halves = half_branches(model, options);
  ASSERT_EQ(halves.size(), 2u);
  for (const auto& [mu, eigenvalues] : halves) {
    EXPECT_EQ(mu, -1);
    EXPECT_NEAR(eigenvalues[0].real(), 1, 1e-12);
  }
}

TEST(EquilibriumBranch, HasAllHalfBranchesAndTheCycleOfAHopfPitchforkOfKinks) {  // Leine 2000, eq. 5.14
  const Model model = read_model_text(R"M(
equations = """
  x1' = x2
  x2' = -x1 + abs(x1 + mu) - abs(x1 - mu) - x2 - abs(x2 + mu) + abs(x2 - mu)
"""
[parameters]
mu = -1
[initial]
x1 = 0.1
x2 = 0
)M");
  BranchOptions options{.parameter = 0, .low = -1, .high = 1};
  const Branch b = follow_equilibrium(model, {run_of(model)}, options);
  ASSERT_EQ(b.special.size(), 1u);
  const SpecialPoint& kink = b.special[0];
  EXPECT_NE(kink.detail.find("Hopf-pitchfork, a stable cycle is born"), std::string::npos) << kink.detail;
  // Leine's set has the trace 1 - 4q and the determinant 3 - 4q.
  ASSERT_EQ(kink.crosses_at.size(), 2u);
  EXPECT_NEAR(kink.crosses_at[0], 0.25, 1e-8);
  EXPECT_NEAR(kink.crosses_at[1], 0.75, 1e-8);
  EXPECT_EQ(*kink.crosses, (std::vector<std::string>{"complex", "0"}));
  const Spectrum &here = b.points.front().spectrum, &beyond = b.points.back().spectrum;
  EXPECT_NEAR(here[0].real(), 0.5, 1e-12);
  EXPECT_NEAR(here[0].imag(), std::sqrt(11.0) / 2, 1e-12);
  EXPECT_NEAR(beyond[0].real(), (std::sqrt(13.0) - 3) / 2, 1e-12);
  EXPECT_NEAR(beyond[1].real(), (-std::sqrt(13.0) - 3) / 2, 1e-12);
  const auto halves = half_branches(model, options);
  ASSERT_EQ(halves.size(), 2u);
  for (const auto& [mu, eigenvalues] : halves) {
    EXPECT_EQ(mu, 1);
    EXPECT_NEAR(eigenvalues[0].real(), (std::sqrt(5.0) - 3) / 2, 1e-12);
    EXPECT_NEAR(eigenvalues[1].real(), (-std::sqrt(5.0) - 3) / 2, 1e-12);
  }
  options.seek = {"boundary-equilibrium", 0.0, 2};
  const Branch cycles = follow_equilibrium(model, {run_of(model)}, options);
  ASSERT_TRUE(cycles.found) << cycles.message;
  EXPECT_FALSE(cycles.equilibria);
  EXPECT_TRUE(cycles.points.front().values[0] == -1 || cycles.points.back().values[0] == -1);
  for (const BranchPoint& p : cycles.points) {
    if (!p.label.empty()) continue;
    EXPECT_NEAR(p.period, 4.03106217189359, 1e-9);
  }
}

// Friction under a weight that a contact bears: force and sigma multiply each other. Piiroinen & Kuznetsov 2008 with
// F = 10 mu, 1/omega = 3: at F = 0.4 the multiplier that they share.
TEST(OrbitBranch, OfFrictionUnderAContactForceIsThatOfAGivenForce) {
  const auto orbits = [](const std::string& force, const std::string& weight, const std::string& rest) {
    const Model model = read_model_text("equations = \"\"\"\n  y' = v\n  v' = -y + sin(t/3) - " + force + "*sign(v)\n" +
                                        weight + "\"\"\"\n[parameters]\nmu = 0.04\n[initial]\ny = 1\nv = 2\n" + rest +
                                        "[section.strobe]\nevery = \"6*pi\"\n");
    return follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 0.02, .high = 0.08});
  };
  const Branch given = orbits("10*mu", "", "");
  const Branch borne =
      orbits("mu*N", "  q' = p\n  p' = -10 + N\n", "q = 0\np = 0\n[constraint.N]\ngap = \"q\"\nrestitution = 0.5\n");
  ASSERT_TRUE(borne.found) << borne.message;
  ASSERT_EQ(borne.ends.size(), 2u);
  for (const BranchEnd& e : borne.ends) EXPECT_EQ(e.why, "range");
  for (const bool last : {false, true}) {
    const BranchPoint &a = last ? given.points.back() : given.points.front(),
                      &b = last ? borne.points.back() : borne.points.front();
    EXPECT_NEAR(a.state[0], b.state[0], 1e-10);
    EXPECT_NEAR(a.state[1], b.state[1], 1e-10);
    EXPECT_NEAR(a.spectrum[0].real(), b.spectrum[0].real(), 1e-9);
  }
  const auto start =
      std::find_if(borne.points.begin(), borne.points.end(), [](const BranchPoint& p) { return p.values[0] == 0.04; });
  ASSERT_NE(start, borne.points.end());
  EXPECT_NEAR(start->spectrum[0].real(), 0.35631659303098879, 1e-10);
}

const char* const friction = R"M(
equations = """
  y' = v
  v' = -y + sin(omega*t) - F*sign(v)
"""
[parameters]
omega = 0.7
F = 0.4
[initial]
y = 1
v = 2
[section.strobe]
every = "2*pi/omega"
)M";

TEST(EquilibriumBranch, GoesOnAtABranchPointWhereAWholeEquationVanishes) {  // x = 0, then x^2 = mu and x = mu
  for (const int power : {3, 2}) {
    const Model model = read_model_text(R"M(
equations = """
  x' = mu*x - x^k
  y' = x - y
"""
[parameters]
mu = -0.5
k = )M" + std::to_string(power) + R"M(
[initial]
x = 0
y = 0
)M");
    BranchOptions options{.parameter = 0, .low = -1, .high = 1};
    expect_special(follow_equilibrium(model, {run_of(model)}, options), "branch", 0, 1e-12);
    options.seek = {"branch", 0.0};
    const Branch other = follow_equilibrium(model, {run_of(model)}, options);
    ASSERT_TRUE(other.found) << other.message;
    double largest = 0;
    for (const BranchPoint& p : other.points) {
      const double mu = p.values[0], x = p.state[0];
      EXPECT_NEAR(power == 3 ? x * x : x, mu, 1e-10);
      EXPECT_NEAR(p.state[1], x, 1e-10);
      largest = std::max(largest, x);
    }
    EXPECT_NEAR(largest, 1, 1e-10);
  }
}

TEST(OrbitBranch, OfTheFrictionOscillatorPassesCrossingAndAddingSliding) {  // Piiroinen & Kuznetsov 2008
  const Model model = read_model_text(friction);
  const Branch b =
      follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 1.0 / 6, .high = 1 / 1.2});
  ASSERT_TRUE(b.found) << b.message;
  ASSERT_EQ(b.special.size(), 2u);
  expect_special(b, "crossing-sliding", 1 / 1.866523638121452, 1e-12);
  expect_special(b, "adding-sliding", 1 / 4.823126106845336, 1e-12);
  EXPECT_NEAR(of_type(b, "crossing-sliding")[0]->spectrum[0].real(), 0.8342312453404626, 1e-9);
  for (const SpecialPoint& s : b.special) EXPECT_EQ(s.persists, true);
  EXPECT_DOUBLE_EQ(b.points.front().values[0], 1.0 / 6);
  EXPECT_DOUBLE_EQ(b.points.back().values[0], 1 / 1.2);
}

const char* const popp = R"M(
equations = """
  x' = v
  v' = -x + a0*sign(1 - v) - a1*(1 - v) + a2*(1 - v)^3 + F*cos(nu*t)
"""
[parameters]
nu = 1.7125
F = 0.1
a0 = 1.5
a1 = 1.5
a2 = 0.45
[initial]
x = 0.0645367
v = 0.0371892
)M";

TEST(OrbitBranch, OfPoppsOscillatorFlipsDiscontinuouslyWhereItGrazes) {  // Leine 2000, 6.9: point C
  const Model model = read_model_text(popp);
  const Branch b = follow_orbit(model, {.run = run_of(model), .guess = true, .returns = 4},
                                {.parameter = 0, .low = 1.7, .high = 1.7125});
  ASSERT_TRUE(b.found) << b.message;
  const auto touch = of_type(b, "grazing-sliding");
  ASSERT_EQ(touch.size(), 1u);
  EXPECT_NEAR(touch[0]->values[0], 1.7077997148850614, 1e-11);
  EXPECT_NEAR(touch[0]->spectrum[0].real(), 0.8407253925430722, 1e-6);
  ASSERT_TRUE(touch[0]->after.has_value());
  EXPECT_NEAR((*touch[0]->after)[0].real(), -1.6563571663801464, 1e-5);
  EXPECT_EQ(touch[0]->crosses, std::vector<std::string>{"-1"});
  EXPECT_EQ(touch[0]->persists, true);
}

TEST(OrbitBranch, OfPoppsOscillatorAtStrongForcingMeetsAllFourSlidingBifurcations) {  // Merillas 2006, ch. 4
  const auto strong = [](double nu, double low, double high) {
    std::string text = popp;
    text.replace(text.find("F = 0.1"), 7, "F = 2.0");
    text.replace(text.find("nu = 1.7125"), 11, "nu = " + std::to_string(nu));
    const Model model = read_model_text(text);
    return follow_orbit(model, {.run = run_of(model)}, {.parameter = 0, .low = low, .high = high});
  };
  expect_special(strong(0.33, 0.30, 0.33), "grazing-sliding", 0.3138060473, 3e-9);
  const Branch middle = strong(0.7, 0.7, 0.9);
  expect_special(middle, "adding-sliding", 0.737205455996, 1e-11);
  expect_special(middle, "crossing-sliding", 0.832913059185, 1e-11);
  expect_special(strong(1.3, 1.3, 1.7), "switching-sliding", 1.5675832627, 2e-10);
}

TEST(OrbitBranch, OfTheHardeningDuffingOscillatorHasItsTwoFolds) {
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = -delta*v - x - x^3 + F*cos(w*t)
"""
[parameters]
w = 1.2
delta = 0.1
F = 0.5
[initial]
x = 0
v = 0
)M");
  const Branch b = follow_orbit(model, {.run = run_of(model)}, {.parameter = 0, .low = 1.2, .high = 3});
  ASSERT_TRUE(b.found) << b.message;
  expect_special(b, "fold", 1.43867014551, 1e-10);
  expect_special(b, "fold", 2.21193531702, 1e-10);
}

TEST(OrbitBranch, OfAnImpactOscillatorFlipsWhereTheClosedFormSays) {
  // Between impacts u = a cos t + b sin t; the 1T orbit's flip follows from the linear impact map.
  const Model model = read_model_text(R"M(
equations = """
  u' = v
  v' = -u + N
"""
[parameters]
w = 2.3
[constraint.N]
gap = "u - sin(w*t)"
restitution = 0.8
[initial]
u = 1
v = 0
[section.strobe]
every = "2*pi/w"
)M");
  const Branch b = follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 2.3, .high = 2.8});
  ASSERT_TRUE(b.found) << b.message;
  expect_special(b, "flip", 2.653347727855323, 1e-11);
}

TEST(OrbitBranch, OfAnImpactOscillatorGrazesWhereItsFreeOrbitTouchesTheStop) {  // followed with its impacts
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = -0.2*v - x + F*cos(0.8*t) - N
"""
[parameters]
F = 0.55
[constraint.N]
gap = "1 - x"
restitution = 0.8
[initial]
x = 0
v = 0
)M");
  const Branch b = follow_orbit(model, {.run = run_of(model)}, {.parameter = 0, .low = 0.3, .high = 0.6});
  ASSERT_TRUE(b.found) << b.message;
  expect_special(b, "impact-grazing", std::hypot(1 - 0.64, 0.16), 1e-10);
}

TEST(OrbitBranch, EndsOnTheRangeOrSaysWhy) {
  const Model model = read_model_text(friction);
  const Branch b = follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 0.6, .high = 0.8});
  ASSERT_EQ(b.ends.size(), 2u);
  EXPECT_EQ(b.ends[0].why, "range");
  EXPECT_EQ(b.ends[1].why, "range");
  EXPECT_EQ(b.ends[0].value, 0.6);
  EXPECT_EQ(b.ends[1].value, 0.8);
}

TEST(EquilibriumBranch, FoldsOfACubicMeetInACusp) {  // mu + a x - x^3: folds at mu = +-2 (a/3)^(3/2)
  const Model model = read_model_text(R"M(
equations = "x' = mu + a*x - x^3"
[parameters]
mu = 0.3
a = 1
[initial]
x = -0.7
)M");
  BranchOptions options{.parameter = 0, .low = -1, .high = 1, .second = 1, .second_low = -1, .second_high = 2};
  options.seek = {"fold", 2 / (3 * std::sqrt(3.0))};
  const Branch b = follow_equilibrium(model, {run_of(model)}, options);
  ASSERT_TRUE(b.found) << b.message;
  ASSERT_GT(b.points.size(), 20u);
  for (const BranchPoint& p : b.points) {
    ASSERT_EQ(p.values.size(), 2u);
    EXPECT_NEAR(std::abs(p.values[0]), 2 * std::pow(std::max(p.values[1], 0.0) / 3, 1.5), 1e-9);
  }
  const auto cusps = of_type(b, "cusp");
  ASSERT_EQ(cusps.size(), 1u);
  EXPECT_NEAR(cusps[0]->values[0], 0, 1e-9);
  EXPECT_NEAR(cusps[0]->values[1], 0, 1e-9);
}

// Bogdanov & Takens' normal form: at x = 0 the trace -x is zero and the determinant -b2: Hopf points are at b1 = 0, b2
// < 0, neutral saddles at b2 > 0.
TEST(EquilibriumBranch, OfHopfPointsEndsWhereTheirFrequencyIsZero) {
  const Model model = read_model_text(R"M(
equations = """
  x' = y
  y' = b1 + b2*x + x^2 - x*y
"""
[parameters]
b1 = -0.5
b2 = -1
[initial]
x = -0.366
y = 0
)M");
  BranchOptions options{.parameter = 0, .low = -1, .high = 0.2, .second = 1, .second_low = -2, .second_high = 1};
  options.seek = {"hopf", 0.0};
  const Branch b = follow_equilibrium(model, {run_of(model)}, options);
  ASSERT_TRUE(b.found) << b.message;
  ASSERT_GT(b.points.size(), 20u);
  for (const BranchPoint& p : b.points) {
    EXPECT_NEAR(p.values[0], 0, 1e-9);
    EXPECT_LT(p.values[1], 1e-9);
  }
  ASSERT_EQ(b.ends.size(), 2u);
  EXPECT_TRUE((b.ends[0].why == "bogdanov-takens" && b.ends[1].why == "range") ||
              (b.ends[1].why == "bogdanov-takens" && b.ends[0].why == "range"));
  const auto places = of_type(b, "bogdanov-takens");
  ASSERT_EQ(places.size(), 1u);
  EXPECT_NEAR(places[0]->values[1], 0, 1e-9);
}

TEST(OrbitBranch, IsBornAtAHopfPointWithTheRadiusOfTheNormalForm) {  // r^2 = mu, period 2 pi
  const Model model = read_model_text(R"M(
equations = """
  x' = mu*x - y - x*(x^2 + y^2)
  y' = x + mu*y - y*(x^2 + y^2)
"""
[parameters]
mu = -0.1
[initial]
x = 0
y = 0
)M");
  BranchOptions options{.parameter = 0, .low = -0.5, .high = 0.5};
  options.seek = {"hopf", 0.0};
  const Branch b = follow_equilibrium(model, {run_of(model)}, options);
  ASSERT_TRUE(b.found) << b.message;
  EXPECT_FALSE(b.equilibria);
  ASSERT_GT(b.points.size(), 10u);
  EXPECT_EQ(b.points.back().values[0], 0.5);
  for (const BranchPoint& p : b.points) {
    EXPECT_NEAR(p.period, 2 * M_PI, 1e-9);
    EXPECT_NEAR(p.state[0] * p.state[0] + p.state[1] * p.state[1], p.values[0], 1e-9);
    EXPECT_TRUE(p.stable);
    EXPECT_NEAR(p.spectrum[0].real(), std::exp(-4 * M_PI * p.values[0]), 1e-8);
  }
}

Model roessler(const std::string& c) {
  return read_model_text(R"M(
equations = """
  x' = -y - z
  y' = x + 0.2*y
  z' = 0.2 + z*(x - c)
"""
[parameters]
c = )M" + c + R"M(
[initial]
x = 4
y = 0
z = 0.1
[section.up]
on = "y"
direction = "rising"
)M");
}

TEST(OrbitBranch, OfDoublePeriodBeginsAtRoesslersFirstFlip) {
  const Model model = roessler("2.75");
  BranchOptions options{.parameter = 0, .low = 2.5, .high = 4};
  options.seek = {"flip", 2.832445027862369};
  RunOptions run = run_of(model, 400);
  const Branch b = follow_orbit(model, {.run = run, .section = 0}, options);
  ASSERT_TRUE(b.found) << b.message;
  expect_special(b, "flip", 3.8373581684099323, 1e-9);
  EXPECT_NEAR(b.points.front().period, 2 * 5.769820016506556, 1e-2);
}

const char* const stick_slip = R"M(
equations = """
  x' = v
  v' = -x - 2*z*v - (mk + (ms - mk)*exp(-abs(v - vb)/vs))*sign(v - vb)
"""
[parameters]
vb = 0.3
z = 0.05
mk = 0.4
ms = 0.8
vs = 0.3
[initial]
x = 0.1
v = 0
)M";

TEST(OrbitBranch, OfStickSlipTurnsWhereItGrazesAndShrinksOntoItsHopfPoint) {
  // The damping of the slipping equilibrium vanishes where (ms - mk)/vs exp(-vb/vs) = 2 z.
  const Model model = read_model_text(stick_slip);
  const Branch b = follow_orbit(model, {.run = run_of(model)}, {.parameter = 0, .low = 0.05, .high = 2});
  ASSERT_TRUE(b.found) << b.message;
  const auto touch = of_type(b, "grazing-sliding");
  ASSERT_EQ(touch.size(), 1u);
  EXPECT_EQ(touch[0]->persists, false);
  EXPECT_EQ(touch[0]->crosses, std::vector<std::string>{"+1"});
  EXPECT_TRUE(of_type(b, "fold").empty());
  expect_special(b, "hopf", 0.3 * std::log(0.4 / (0.3 * 2 * 0.05)), 1e-11);
  ASSERT_EQ(b.ends.size(), 2u);
  EXPECT_EQ(b.ends[0].why, "range");
  EXPECT_NE(b.ends[1].detail.find("shrinks onto an equilibrium"), std::string::npos);
}

TEST(OrbitBranch, PassesAnOrbitThatTouchesASurfaceWithItsWholeLength) {  // a rotor that whirls in a circle
  const Model model = read_model_text(R"M(
equations = """
  x' = u
  u' = -2*z*u - x - F*x/r + q*w^2*cos(w*t)
  y' = v
  v' = -2*z*v - y - F*y/r + q*w^2*sin(w*t)
  r = sqrt(x^2 + y^2)
  F = if(r > 1, k*(r - 1), 0)
"""
[parameters]
w = 0.6
z = 0.1
k = 10
q = 0.5
[initial]
x = 0.3
u = 0
y = 0
v = 0.1
)M");
  const Branch b = follow_orbit(model, {.run = run_of(model)}, {.parameter = 0, .low = 0.5, .high = 1.2});
  ASSERT_TRUE(b.found) << b.message;
  // The radius is 1 where (1 - w^2)^2 + (2 z w)^2 = (q w^2)^2.
  const double z = 0.1, q = 0.5, a = 1 - q * q, half = 1 - 2 * z * z;
  expect_special(b, "grazing", std::sqrt((half - std::sqrt(half * half - a)) / a), 1e-11);
  EXPECT_EQ(b.points.back().values[0], 1.2);
}

const char* const kinked = R"M(
equations = """
  x' = if(x < 0, -0.5, 0.4)*x - y
  y' = x - mu
"""
[parameters]
mu = 0.1
[initial]
x = 0.1
y = 0.04
)M";

TEST(EquilibriumBranch, BearsACycleWhereItPassesAKink) {
  // Nothing but mu has a size: the cycle grows in proportion to it and keeps its period.
  const Model model = read_model_text(kinked);
  BranchOptions options{.parameter = 0, .low = -1, .high = 1};
  const Branch rest = follow_equilibrium(model, {run_of(model)}, options);
  const auto kink = of_type(rest, "boundary-equilibrium");
  ASSERT_EQ(kink.size(), 1u);
  EXPECT_NE(kink[0]->detail.find("a stable cycle is born"), std::string::npos) << kink[0]->detail;
  options.seek = {"boundary-equilibrium", 0.0};
  const Branch b = follow_equilibrium(model, {run_of(model)}, options);
  ASSERT_TRUE(b.found) << b.message;
  EXPECT_FALSE(b.equilibria);
  ASSERT_GT(b.points.size(), 20u);
  EXPECT_EQ(b.points.back().values[0], 1);
  for (const BranchPoint& p : b.points) {
    if (!p.label.empty()) continue;
    EXPECT_NEAR(p.period, b.points.back().period, 1e-8);
    // Extremes are samples of the orbit.
    EXPECT_NEAR(p.highest[0] / p.values[0], b.points.back().highest[0], 0.05 * b.points.back().highest[0]);
  }
  expect_special(b, "boundary-equilibrium", 0, 1e-11);
}

TEST(OrbitBranch, EndsWhereTheOrbitGrowsBeyondBounds) {  // a relay around a linear part that oscillates at a2 a3 = a1
  const Model model = read_model_text(R"M(
equations = """
  x1' = x2
  x2' = x3
  x3' = -x1 - a2*x2 - 2*x3 - sign(x1)
"""
[parameters]
a2 = 2
[initial]
x1 = 0.2
x2 = 0
x3 = 0
)M");
  const Branch b = follow_orbit(model, {.run = run_of(model)}, {.parameter = 0, .low = 0.3, .high = 3});
  ASSERT_TRUE(b.found) << b.message;
  EXPECT_NE(b.ends[0].detail.find("beyond all bounds"), std::string::npos);
  EXPECT_NEAR(b.ends[0].value, 0.5, 1e-5);
  EXPECT_EQ(b.ends[1].why, "range");
}

TEST(OrbitBranch, OfTheVanDerPolOscillatorMeetsTheFamilyOfTheHarmonicOne) {
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = mu*(1 - x^2)*v - x
"""
[parameters]
mu = 0.5
[initial]
x = 2
v = 0
)M");
  const Branch b = follow_orbit(model, {.run = run_of(model)}, {.parameter = 0, .low = -0.5, .high = 1});
  ASSERT_TRUE(b.found) << b.message;
  ASSERT_EQ(b.special.size(), 1u);
  expect_special(b, "branch", 0, 1e-6);
  EXPECT_NEAR(b.special[0].period, 2 * M_PI, 1e-6);
}

TEST(OrbitBranch, OfDoublePeriodEndsWhereItIsTheSingleOne) {
  const Model model = roessler("3");
  const Branch b =
      follow_orbit(model, {.run = run_of(model, 400), .section = 0}, {.parameter = 0, .low = 2.5, .high = 3.1});
  ASSERT_TRUE(b.found) << b.message;
  EXPECT_EQ(b.ends[0].why, "closed");
  EXPECT_NEAR(b.ends[0].value, 2.832445027862, 1e-7);  // the flip of the single orbit
  EXPECT_EQ(b.ends[1].why, "range");
}

/// x'' + x'/10 + x = cos(w t), w = 0.8, beside a wall at sigma; free orbits touch it at their amplitude.
struct Wall {
  Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = -0.1*v - x + cos(0.8*t) - N
"""
[parameters]
sigma = 2.5
[constraint.N]
gap = "sigma - x"
restitution = 0.8
[initial]
x = 0
v = 0
[section.strobe]
every = "2*pi/0.8"
)M");
  OrbitOptions start{.run = run_of(model), .section = 0};
  BranchOptions range{.parameter = 0, .low = 2.5, .high = 3};
  static constexpr double amplitude = 2.711630722733203;  // 1/|1 - w^2 + 0.1 i w|

  /// The orbit near a state at a value of sigma.
  OrbitOptions near(double sigma, double x, double v) const {
    OrbitOptions out = start;
    out.guess = true;
    out.run.parameters[0] = sigma;
    out.run.initial = {x, v};
    return out;
  }
};

TEST(OrbitBranch, WhoseImpactVanishesGoesOnWithoutIt) {
  const Wall wall;
  const Branch b = follow_orbit(wall.model, wall.near(2.65, 2.5764, 0.4983), wall.range);
  ASSERT_TRUE(b.found) << b.message;
  ASSERT_EQ(b.special.size(), 1u);
  const SpecialPoint& touch = b.special[0];
  EXPECT_EQ(touch.type, "impact-grazing");
  EXPECT_NEAR(touch.values[0], Wall::amplitude, 1e-9);
  EXPECT_EQ(touch.persists, true);
  EXPECT_TRUE(std::isinf(touch.spectrum[0].real()));
  ASSERT_TRUE(touch.after);
  // Without the wall: exp(A T), |mu|^2 = exp(-0.1 T).
  EXPECT_NEAR(std::norm((*touch.after)[0]), std::exp(-0.1 * 2 * M_PI / 0.8), 1e-6);
  EXPECT_EQ(b.points.back().values[0], 3);
}

TEST(OrbitBranch, OfTwoPeriodsAndOneImpactEndsOnTheOrbitOfOnePeriodAndNone) {
  const Wall wall;
  const Branch b = follow_orbit(wall.model, wall.start, wall.range);
  ASSERT_TRUE(b.found) << b.message;
  EXPECT_NEAR(b.points[0].period, 4 * M_PI / 0.8, 1e-9);
  // On its way to infinity the multiplier passes -1: where the closed form of this orbit has it (scipy).
  expect_special(b, "flip", 2.7115038217234204, 1e-9);
  expect_special(b, "impact-grazing", Wall::amplitude, 1e-9);
  EXPECT_EQ(b.ends[1].why, "signature");
  EXPECT_NE(b.ends[1].detail.find("half the period"), std::string::npos) << b.ends[1].detail;
  EXPECT_NE(b.ends[1].detail.find("infinite"), std::string::npos) << b.ends[1].detail;

  const SpecialPoint& end = b.special.back();
  OrbitOptions before = wall.near(end.near_values[0], end.near_state[0], end.near_state[1]);
  before.time = end.near_period;
  before.run.from = end.near_t;
  BranchOptions other = wall.range;
  other.seek = {"impact-grazing", end.values[0]};
  const Branch free = follow_orbit(wall.model, before, other);
  ASSERT_TRUE(free.found) << free.message;
  EXPECT_NEAR(free.points.back().period, 2 * M_PI / 0.8, 1e-9);
  EXPECT_EQ(free.points.back().values[0], 3);
  expect_special(free, "impact-grazing", Wall::amplitude, 1e-9);
}

TEST(OrbitBranch, FollowsAnOrbitWhoseMultiplierIsBeyondWhatOneLegCouldBear) {  // x = -(a sin t + cos t)/(1 + a^2)
  const Model model = read_model_text(R"M(
equations = "x' = a*x + sin(t) + b*x^3"
[parameters]
a = 0.5
b = 0
[initial]
x = -0.8
[section.s]
every = "2*pi"
)M");
  const Branch b =
      follow_orbit(model, {.run = run_of(model), .section = 0, .guess = true}, {.parameter = 0, .low = 0.5, .high = 8});
  ASSERT_TRUE(b.found) << b.message;
  EXPECT_EQ(b.points.back().values[0], 8);
  for (const BranchPoint& p : b.points) {
    const double a = p.values[0];
    EXPECT_NEAR(p.state[0], -1 / (1 + a * a), 1e-9) << a;
    EXPECT_NEAR(std::log(p.spectrum[0].real()), 2 * M_PI * a, 1e-6) << a;
  }
}

/// x is mapped to a formula once per unit of time and rests in between.
Model map_of(const std::string& formula, double mu, double x) {
  return read_model_text(R"M(
equations = "x' = 0"
[parameters]
mu = )M" + std::to_string(mu) +
                         R"M(
[jump.map]
every = 1
set = { x = ")M" + formula +
                         R"M(" }
[section.strobe]
every = 1
[initial]
x = )M" + std::to_string(x) +
                         "\n");
}

Branch orbits_of(const Model& model, double low, double high) {
  return follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = low, .high = high});
}

TEST(OrbitBranch, OfAMapThatRestsBetweenItsJumpsPassesAPitchfork) {  // multiplier 1 + mu at the fixed point
  for (const auto& [formula, at] : {std::pair{"1 + (1 + mu)*(x - 1) - (x - 1)^3", 1.0}, {"(1 + mu)*x - x^3", 0.0}}) {
    const Branch b = orbits_of(map_of(formula, -0.5, at + 0.1), -1, 1);
    ASSERT_TRUE(b.found) << b.message;
    ASSERT_EQ(b.special.size(), 1u) << formula;
    expect_special(b, "branch", 0, 1e-9);
    EXPECT_EQ(b.special[0].detail, "") << "it is no orbit of half the period: the clock ticks once in it";
    EXPECT_EQ(b.points.back().values[0], 1);
    EXPECT_LT(b.points.size(), 150u);
    for (const BranchPoint& p : b.points) EXPECT_NEAR(p.spectrum[0].real(), 1 + p.values[0], 1e-9);
  }
}

TEST(OrbitBranch, OfAMapThatRestsBetweenItsJumpsHasItsFoldAndFlip) {  // x = -+sqrt(mu), multiplier 1 - 2 x
  const Branch b = orbits_of(map_of("mu + x - x^2", 0.1, 0.3), -0.5, 1.5);
  ASSERT_TRUE(b.found) << b.message;
  expect_special(b, "fold", 0, 1e-12);
  expect_special(b, "flip", 1, 1e-12);
  EXPECT_EQ(b.points.front().values[0], 1.5);
  EXPECT_EQ(b.points.back().values[0], 1.5);
  EXPECT_LT(b.points.size(), 400u);
}

TEST(OrbitBranch, AtZeroLosesStabilityToATorus) {  // multipliers (1 + mu) exp(+-i)
  const Model model = read_model_text(R"M(
equations = """
  x' = 0
  y' = 0
"""
[parameters]
mu = -0.3
[jump.map]
every = 1
set = { x = "(1 + mu - x^2 - y^2)*(cos(1)*x - sin(1)*y)", y = "(1 + mu - x^2 - y^2)*(sin(1)*x + cos(1)*y)" }
[section.strobe]
every = 1
[initial]
x = 0.1
y = 0
)M");
  const Branch b = orbits_of(model, -0.5, 0.5);
  ASSERT_TRUE(b.found) << b.message;
  ASSERT_EQ(b.special.size(), 1u);
  expect_special(b, "torus", 0, 1e-12);
  EXPECT_EQ(b.points.back().values[0], 0.5);
}

// u2 = 0 all along: a whole row of the equations vanishes where another branch crosses, at u1 = 1/3.
TEST(EquilibriumBranch, LocatesATranscriticalPointOnAnAxis) {
  const char* text = R"M(
equations = """
  u' = 3*u*(1 - u) - u*w - p*(1 - exp(-5*u))
  w' = -w + 3*u*w
"""
[parameters]
p = 0
[initial]
u = 1
w = 0
)M";
  const Branch b = equilibria(text, 0, 1);
  ASSERT_TRUE(b.found) << b.message;
  expect_special(b, "branch", 2.0 / 3 / (1 - std::exp(-5.0 / 3)), 1e-9);
  expect_special(b, "branch", 0.6, 1e-8);
  EXPECT_EQ(of_type(b, "fold").size(), 1u) << "where the parameter rests there is none";
  const SpecialPoint& cross = *of_type(b, "branch")[0];
  const Model model = read_model_text(text);
  EquilibriumOptions near{run_of(model)};
  near.run.parameters[0] = cross.near_values[0];
  near.run.initial = cross.near_state;
  const Branch other = follow_equilibrium(
      model, near, {.parameter = 0, .low = 0, .high = 1, .seek = BranchOptions::Seek{"branch", cross.values[0]}});
  ASSERT_TRUE(other.found) << other.message;
  for (const BranchPoint& p : other.points) EXPECT_NEAR(p.state[0], 1.0 / 3, 1e-9);
}

TEST(EquilibriumBranch, BeginsAgainAtAPitchforkOfTheOrigin) {  // Lorenz: x^2 = 8/3 (r - 1)
  const char* text = R"M(
equations = """
  x' = 10*(y - x)
  y' = r*x - y - x*z
  z' = x*y - 8/3*z
"""
[parameters]
r = 0.5
[initial]
x = 0.1
y = 0
z = 0
)M";
  const Branch b = equilibria(text, 0, 30);
  ASSERT_EQ(of_type(b, "branch").size(), 1u);
  const SpecialPoint& cross = *of_type(b, "branch")[0];
  const Model model = read_model_text(text);
  EquilibriumOptions near{run_of(model)};
  near.run.parameters[0] = cross.near_values[0];
  near.run.initial = cross.near_state;
  const Branch other = follow_equilibrium(
      model, near, {.parameter = 0, .low = 0, .high = 30, .seek = BranchOptions::Seek{"branch", cross.values[0]}});
  ASSERT_TRUE(other.found) << other.message;
  expect_special(other, "hopf", 470.0 / 19, 1e-9);
  for (const BranchPoint& p : other.points)
    EXPECT_NEAR(p.state[0] * p.state[0], 8.0 / 3 * (p.values[0] - 1), 1e-7 * (1 + p.values[0]));
}

/// A period of an orbit as a plain run of the model: how far from the start it ends.
double open_by(const Model& model, const BranchPoint& p) {
  RunOptions o = run_of(model);
  o.parameters = parameter_values(model, std::vector<GivenParameter>{{0, p.values[0]}});
  o.initial = p.state;
  o.from = p.t;
  o.until = p.t + p.period;
  const Trajectory run = simulate(Program(model), o);
  double most = 0;
  for (size_t i = 0; i < p.state.size(); ++i) most = std::max(most, std::abs(run.end.state[i] - p.state[i]));
  return most;
}

// Static friction holds what arrives below its bound: an orbit that turns without sticking ends where it would stick.
TEST(OrbitBranch, PassesASwitchThatHoldsOnlyWhereItIsPulledLoose) {
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = (2.5*cos(0.65*t) - 0.01*v - x - sign(v, 2))/m
"""
[parameters]
m = 1
[initial]
x = 0
v = 0
[section.strobe]
every = "2*pi/0.65"
)M");
  const Branch b =
      follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 0.7, .high = 1.05});
  ASSERT_TRUE(b.found) << b.message;
  EXPECT_GE(of_type(b, "release").size(), 1u);
  EXPECT_EQ(b.ends[0].why, "closed");  // on a symmetric orbit, beyond which lie the mirror images
  size_t without = 0, sticking = 0;    // turns
  for (const BranchPoint& p : b.points) {
    if (!p.label.empty()) continue;
    EXPECT_LT(open_by(model, p), 1e-7) << p.values[0];
    const long stuck = std::count(p.signature.begin(), p.signature.end(), "0");
    (stuck == 1 ? without : sticking) += 1;
  }
  EXPECT_GT(without, 0u);
  EXPECT_GT(sticking, 0u);
}

// x'' = 2.5 cos w t - 0.01 x' - x - friction (Leine 2000, sec. 6.8): an asymmetric orbit with one stick per period has
// its pitchfork in the middle of its loop, which begins and ends between special points; the mirror images lie beyond.
TEST(OrbitBranch, EndsAsClosedWhereItsMirrorImagesBegin) {
  const Model model = read_model(SALTUS_SOURCE_DIR "/models/forced_static/model.toml");
  OrbitOptions start{.run = run_of(model, 80), .section = 0};
  BranchOptions range{.parameter = 6, .low = 0.3, .high = 0.9};
  ASSERT_EQ(model.parameters[6].name, "w");
  const Branch b = follow_orbit(model, start, range);
  ASSERT_TRUE(b.found) << b.message;
  EXPECT_LT(b.points.size(), 130u);
  ASSERT_EQ(b.ends.size(), 2u);
  for (const BranchEnd& end : b.ends) EXPECT_EQ(end.why, "closed");
  ASSERT_EQ(of_type(b, "branch").size(), 2u);
  const SpecialPoint &first = *of_type(b, "branch")[0], &last = *of_type(b, "branch")[1];
  EXPECT_NEAR(first.values[0], last.values[0], 1e-9);
  // Both are the symmetric orbit, at its two phases.
  RunOptions half = run_of(model);
  half.parameters = parameter_values(model, std::vector<GivenParameter>{{6, first.values[0]}});
  half.initial = first.state;
  half.from = first.t;
  half.until = first.t + first.period / 2;
  const Trajectory run = simulate(Program(model), half);
  for (size_t i = 0; i < first.state.size(); ++i) EXPECT_NEAR(run.end.state[i], -first.state[i], 1e-5);
  // Where the multipliers of the symmetric orbits jump over the unit circle the same orbits begin, or their mirror
  // images: that branch ends where it meets a known place.
  const Branch symmetric = begun_at(first, model, start, range);
  ASSERT_EQ(of_type(symmetric, "release").size(), 1u);
  range.known = b.special;
  const Branch mirrored = begun_at(*of_type(symmetric, "release")[0], model, start, range);
  ASSERT_TRUE(mirrored.found) << mirrored.message;
  EXPECT_LT(mirrored.points.size(), 40u);
  for (const BranchEnd& end : mirrored.ends) EXPECT_EQ(end.why, "closed");
}

TEST(OrbitBranch, ThatComesBackThroughChangesOfItsSignatureIsClosed) {
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = 2.5*cos(0.65*t) - 0.01*v - k*x - sign(v, 2)
"""
[parameters]
k = 1
[initial]
x = 0
v = 0
[section.strobe]
every = "2*pi/0.65"
)M");
  const Branch b =
      follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 0.7, .high = 1.35});
  ASSERT_TRUE(b.found) << b.message;
  for (const BranchEnd& e : b.ends) EXPECT_EQ(e.why, "closed");
  EXPECT_LT(b.points.size(), 200u);
}

// The doubled orbit begins at the flip; what lies apart from it, counted twice, does not.
TEST(OrbitBranch, OfDoublePeriodBeginsAtRoesslersFourthFlipAndEndsOnTheSingleOne) {
  const Model model = read_model_text(R"M(
equations = """
  x' = -y - z
  y' = x + 0.2*y
  z' = 0.2 + z*(x - c)
"""
[parameters]
c = 4.17
[initial]
x = 1
y = 1
z = 0
)M");
  const BranchOptions range{.parameter = 0, .low = 4.13, .high = 4.195};
  const Branch b = follow_orbit(model, {.run = run_of(model, 1000)}, range);
  ASSERT_TRUE(b.found) << b.message;
  ASSERT_EQ(of_type(b, "flip").size(), 1u);
  const SpecialPoint& flip = *of_type(b, "flip")[0];
  EXPECT_NEAR(flip.values[0], 4.187, 1e-3);
  const auto from = [&](const SpecialPoint& s) {
    OrbitOptions near{.run = run_of(model)};
    near.run.parameters[0] = s.near_values[0];
    near.run.initial = s.near_state;
    near.run.from = s.near_t;
    near.guess = true;
    near.time = s.near_period;
    return near;
  };
  BranchOptions other = range;
  other.seek = {"flip", flip.values[0]};
  const Branch doubled = follow_orbit(model, from(flip), other);
  ASSERT_TRUE(doubled.found) << doubled.message;
  EXPECT_NEAR(doubled.points[0].values[0], flip.values[0], 1e-3);
  EXPECT_NEAR(doubled.points[0].period, 2 * flip.period, 1e-2);
}

// On x = 0, y' = -y + 0.4 sign(y - 0.2) + sin(t) goes down to -0.945883467: that far a holds it (piecewise closed
// form).
TEST(OrbitBranch, ThatSlidesWhereItIsCutAddsSlidingOnce) {
  const Model model = read_model_text(R"M(
equations = """
  x' = -x + y - a*sign(x)
  y' = -y - 2*x + 0.4*sign(y - 0.2) + sin(t)
"""
[parameters]
a = 0.9
[initial]
x = 0.5
y = 0.5
[section.s]
every = "2*pi"
)M");
  const Branch b = follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 0.85, .high = 1});
  ASSERT_TRUE(b.found) << b.message;
  ASSERT_EQ(b.special.size(), 1u);
  EXPECT_EQ(b.special[0].type, "adding-sliding");
  EXPECT_NEAR(b.special[0].values[0], 0.945883467406182, 1e-9);
  EXPECT_EQ(b.special[0].persists, true);
}

// x = A cos(w t - phi) rises through zero with speed A w, A = 1/sqrt((1 - w^2)^2 + (0.2 w)^2). Of this symmetric orbit
// one half is followed, and on some of the branch x falls there.
TEST(OrbitBranch, OfASymmetricOrbitIsToldOnItsSectionWhicheverHalfIsFollowed) {
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = -x - 0.2*v + cos(w*t)
"""
[parameters]
w = 1.3
[initial]
x = 0.5
v = 0
[section.a]
on = "x"
direction = "rising"
)M");
  const Branch b = follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 0.5, .high = 3});
  ASSERT_TRUE(b.found) << b.message;
  for (const BranchPoint& p : b.points) {
    const double w = p.values[0], amplitude = 1 / std::hypot(1 - w * w, 0.2 * w);
    EXPECT_NEAR(p.state[0], 0, 1e-9) << w;
    EXPECT_NEAR(p.state[1], amplitude * w, 1e-8) << w;
  }
}

// x: the logistic map at every tick, of which two are at (1 + w +- sqrt((w - 3)(w + 1)))/(2 w) behind w = 3;
// y = (cos wt + w sin wt)/(1 + w^2) is 1/(1 + w^2) there.
TEST(OrbitBranch, FromALabelIsToldAtThePhaseOfItsSectionThoughTheClockMoves) {
  const Model model = read_model_text(R"M(
equations = """
  x' = 0
  y' = -y + cos(w*t)
"""
[parameters]
w = 2.8
[initial]
x = 0.6
y = 0
[jump.m]
every = "2*pi/w"
set = { x = "w*x*(1 - x)" }
[section.s]
every = "2*pi/w"
)M");
  const OrbitOptions start{.run = run_of(model), .section = 0};
  const BranchOptions range{.parameter = 0, .low = 2.5, .high = 3.4};
  const Branch first = follow_orbit(model, start, range);
  ASSERT_TRUE(first.found) << first.message;
  const auto flips = of_type(first, "flip");
  ASSERT_EQ(flips.size(), 1u);
  EXPECT_NEAR(flips[0]->values[0], 3, 1e-9);
  const Branch doubled = begun_at(*flips[0], model, start, range);
  ASSERT_TRUE(doubled.found) << doubled.message;
  ASSERT_EQ(doubled.points.back().values[0], 3.4);
  for (const BranchPoint& p : doubled.points) {
    const double w = p.values[0], root = std::sqrt(std::max((w - 3) * (w + 1), 0.0));
    EXPECT_NEAR(std::abs(2 * w * p.state[0] - (1 + w)), root, 1e-7) << w;
    EXPECT_NEAR(p.state[1], 1 / (1 + w * w), 1e-9) << w;
  }
}

/// Flips of a branch, from one to the next that begins at the first of them.
std::vector<double> first_flips(const Model& model, const OrbitOptions& start, const BranchOptions& range, int count) {
  std::vector<double> out;
  Branch b = follow_orbit(model, start, range);
  for (int k = 0;; ++k) {
    const auto flips = of_type(b, "flip");
    if (flips.empty()) return out;
    const SpecialPoint first = *flips[0];
    out.push_back(first.values[0]);
    if (k + 1 == count) return out;
    b = begun_at(first, model, start, range);
  }
}

// Solutions of f^n(x) = x, (f^n)'(x) = -1 by Newton's method with 40 digits.
TEST(OrbitBranch, OfTheLogisticMapDoublesAgainAndAgain) {
  const Model model = read_model_text(R"M(
equations = "x' = 0"
[parameters]
r = 2.9
[initial]
x = 0.3
[jump.m]
every = 1
set = { x = "r*x*(1 - x)" }
[section.s]
every = 1
)M");
  const std::vector<double> flips =
      first_flips(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 2.9, .high = 3.6}, 6);
  const std::vector<double> exact{
      3, 3.4494897427831781, 3.54409035955192285, 3.5644072660954326, 3.56875941954382643, 3.56969160980139671};
  ASSERT_EQ(flips.size(), exact.size());
  for (size_t k = 0; k < exact.size(); ++k) EXPECT_NEAR(flips[k], exact[k], 1e-10) << k;
}

// Flips of the map that is made of closed forms between zeros of x, by Newton's method on its fixed points. That of
// four periods lies 5e-4 behind a grazing: an orbit beside it has other legs.
TEST(OrbitBranch, OfABilinearOscillatorDoublesBesideAGrazing) {
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = -x - 0.04*v - 20*max(x, 0) + cos(w*t)
"""
[parameters]
w = 3
[initial]
x = 0
v = 0
[section.s]
every = "2*pi/w"
)M");
  const OrbitOptions start{.run = run_of(model), .section = 0};
  const BranchOptions range{.parameter = 0, .low = 1, .high = 8};
  const auto flip_near = [](const Branch& b, double value) {
    for (const SpecialPoint* s : of_type(b, "flip")) {
      if (std::abs(s->values[0] - value) < 1e-6) return *s;
    }
    ADD_FAILURE() << "no flip at " << value;
    return SpecialPoint{};
  };
  const Branch two = follow_orbit(model, start, range);
  const Branch four = begun_at(flip_near(two, 4.297776742694), model, start, range);
  const SpecialPoint flip = flip_near(four, 4.306592961325699);
  EXPECT_NEAR(flip.values[0], 4.306592961325699, 1e-11);
  const Branch eight = begun_at(flip, model, start, range);
  ASSERT_TRUE(eight.found) << eight.message;
  expect_special(eight, "flip", 4.306763393876281, 1e-10);
  expect_special(eight, "flip", 6.082308924307685, 1e-10);
  EXPECT_NEAR(eight.points.back().values[0], 6.086015348503927, 1e-10);  // where that of four periods flips again
  // Orbits of 32 periods are so near to those of 16 that one may be taken for the other where it grazes.
  const Branch sixteen = begun_at(flip_near(eight, 4.306763393876281), model, start, range);
  const Branch next = begun_at(flip_near(sixteen, 4.306780912520), model, start, range);
  ASSERT_TRUE(next.found) << next.message;
  for (const SpecialPoint* s : of_type(next, "grazing")) EXPECT_EQ(s->persists, true) << s->values[0];
  EXPECT_EQ(next.ends[1].why, "closed");
}

/// The special point of a doubled branch where a pulse is about to be skipped: its place, and the multipliers of both
/// sides.
void expect_skipped(const Branch& doubled, const std::string& type, double value, const Spectrum& before,
                    const Spectrum& after) {
  ASSERT_TRUE(doubled.found) << doubled.message;
  const auto found = of_type(doubled, type);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0]->values[0], value, 1e-10 * value);
  EXPECT_EQ(found[0]->persists, true);
  ASSERT_TRUE(found[0]->after);
  for (size_t k = 0; k < before.size(); ++k) {
    EXPECT_NEAR(std::abs(found[0]->spectrum[k] - before[k]), 0, 1e-6) << k;
    EXPECT_NEAR(std::abs((*found[0]->after)[k] - after[k]), 0, 1e-6) << k;
  }
}

// Matrix exponentials with 30 digits: the orbit of two periods whose second pulse is met where the ramp falls, and the
// products of what its legs do with and without that pulse.
TEST(OrbitBranch, OfABuckConverterGoesOnWhereAPulseMeetsTheWrapOfItsRamp) {
  const Model model = read_model_text(R"M(
equations = """
  i' = (E*step(ramp - vc) - v)/20e-3
  v' = (i - v/22)/47e-6
  vc = 8.4*(v - 11.3)
  ramp = 3.8 + 4.4*mod(t, 400e-6)/400e-6
"""
[parameters]
E = 24
[initial]
i = 0.55
v = 12
[section.s]
every = "400e-6"
)M");
  const OrbitOptions start{.run = run_of(model), .section = 0};
  const BranchOptions range{.parameter = 0, .low = 15, .high = 40};
  const Branch single = follow_orbit(model, start, range);
  const auto flips = of_type(single, "flip");
  ASSERT_EQ(flips.size(), 1u);
  const Branch doubled = begun_at(*flips[0], model, start, range);
  expect_skipped(doubled, "corner", 36.3532370640767662, {{-3.27136834994068395, 0}, {-0.141013063531503459, 0}},
                 {{-3.00646010993597042, 0}, {-0.153438148552371741, 0}});
  EXPECT_EQ(doubled.points.back().values[0], 40);
}

TEST(OrbitBranch, OfABoostConverterGoesOnWhereAJumpMeetsAClock) {
  const Model model = read_model_text(R"M(
equations = """
  i' = (10 - (1 - q)*v)/1e-3
  v' = ((1 - q)*i - v/20)/12e-6
  q' = 0
"""
[parameters]
Iref = 1
mc = 0
[initial]
i = 0.5
v = 14
q = 1
[jump.on]
every = "1e-4"
set = { q = 1 }
[jump.off]
on = "i - Iref + mc*mod(t, 1e-4)/1e-4"
direction = "rising"
when = "q > 0.5"
set = { q = 0 }
[section.s]
every = "1e-4"
)M");
  const OrbitOptions start{.run = run_of(model), .section = 0};
  const BranchOptions range{.parameter = 0, .low = 0.7, .high = 4};
  const Branch single = follow_orbit(model, start, range);
  const auto flips = of_type(single, "flip");
  ASSERT_EQ(flips.size(), 1u);
  const Branch doubled = begun_at(*flips[0], model, start, range);
  expect_skipped(doubled, "corner", 2.37213477175531396,
                 {{-0.136277154477191806, 0.30833505104669751}, {-0.136277154477191806, -0.30833505104669751}},
                 {{-1.63508186775833942, 0}, {0.135917016757674134, 0}});
  EXPECT_EQ(doubled.special[0].crosses, std::vector<std::string>{"-1"});
  EXPECT_EQ(doubled.points.back().values[0], 4);
}

/// The cycles of the FitzHugh-Nagumo oscillator from one Hopf point, v^2 = 1 - 0.8 eps, to the other. The model looks
/// alike from both ends: I and 1.75 - I.
void expect_cycles_with_two_folds(double eps, std::optional<double> fold) {
  const Model model = read_model_text(fmt::format(R"M(
equations = """
  v' = v - v^3/3 - w + I
  w' = {}*(v + 0.7 - 0.8*w)
"""
[parameters]
I = 0
[initial]
v = -1.2
w = -0.6
)M",
                                                  eps));
  const double v = -std::sqrt(1 - 0.8 * eps), hopf = (v + 0.7) / 0.8 - v + v * v * v / 3;
  BranchOptions options{.parameter = 0, .low = 0, .high = 2};
  options.seek = {"hopf", hopf};
  RunOptions run = run_of(model);
  run.parameters = {hopf - 0.01};
  const Branch b = follow_equilibrium(model, {run}, options);
  ASSERT_TRUE(b.found) << b.message;
  const auto folds = of_type(b, "fold");
  ASSERT_EQ(folds.size(), 2u);
  EXPECT_NEAR(folds[0]->values[0] + folds[1]->values[0], 1.75, 1e-11);
  if (fold) {
    EXPECT_NEAR(folds[0]->values[0], *fold, 1e-11);
  }
  expect_special(b, "hopf", 1.75 - hopf, 1e-10);
  EXPECT_EQ(b.ends[1].why, "closed");
}

// Runs by DOP853 (rtol 1e-13) go on oscillating above 0.32417852250482 and come to rest below: there the cycles turn,
// within a canard. 1e-9 before it their period grows while the parameter rests.
TEST(OrbitBranch, OfCyclesPassesACanard) { expect_cycles_with_two_folds(0.08, 0.32417852250482); }

// Where they shrink to a point the parameter rests but for rounding.
TEST(OrbitBranch, OfCyclesHasNoFoldWhereTheyAreBorn) { expect_cycles_with_two_folds(0.3, std::nullopt); }

// x = 0 with the multiplier exp(2 pi r) crosses the orbits that are not zero at r = 0.
TEST(OrbitBranch, CrossesAnotherAtATranscriticalPointWhichGoesBothWays) {
  const Model model = read_model_text(R"M(
equations = "x' = x*(r - x + 0.5*sin(t))"
[parameters]
r = 1
[initial]
x = 1
[section.s]
every = "2*pi"
)M");
  const OrbitOptions start{.run = run_of(model), .section = 0};
  const BranchOptions range{.parameter = 0, .low = -1, .high = 2};
  const Branch b = follow_orbit(model, start, range);
  ASSERT_EQ(b.special.size(), 1u);
  EXPECT_EQ(b.special[0].type, "branch");
  EXPECT_NEAR(b.special[0].values[0], 0, 1e-11);
  const Branch other = begun_at(b.special[0], model, start, range);
  ASSERT_TRUE(other.found) << other.message;
  EXPECT_EQ(std::min(other.points.front().values[0], other.points.back().values[0]), -1);
  EXPECT_EQ(std::max(other.points.front().values[0], other.points.back().values[0]), 2);
  for (const BranchPoint& p : other.points) {
    EXPECT_NEAR(p.state[0], 0, 1e-12);
    EXPECT_NEAR(p.spectrum[0].real() / std::exp(2 * M_PI * p.values[0]), 1, 1e-9);
  }
}

// Where the kink is touched multipliers are continuous, and their product is exp(-0.04 T) (Liouville). Folds by
// Newton's method on the map that is made of closed forms: two of them lie within 3e-6 of a touch.
TEST(OrbitBranch, OfABilinearOscillatorPassesEachTouchOfItsKink) {
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = -x - 0.04*v - 20*max(x - 0.5, 0) + cos(w*t)
"""
[parameters]
w = 3
[initial]
x = 0
v = 0
[section.s]
every = "2*pi/w"
)M");
  const Branch b = follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 0.2, .high = 8});
  ASSERT_TRUE(b.found) << b.message;
  EXPECT_EQ(of_type(b, "grazing").size(), 11u);
  for (const SpecialPoint* s : of_type(b, "grazing")) {
    const double volume = std::exp(-0.04 * s->period);
    EXPECT_EQ(s->persists, true) << s->values[0];
    ASSERT_TRUE(s->after);
    EXPECT_NEAR((s->spectrum[0] * s->spectrum[1]).real() / volume, 1, 1e-5) << s->values[0];
    EXPECT_NEAR(((*s->after)[0] * (*s->after)[1]).real() / volume, 1, 1e-5) << s->values[0];
  }
  expect_special(b, "fold", 0.4702683583972811, 1e-10);
  expect_special(b, "fold", 0.279097455831248, 1e-10);
  expect_special(b, "fold", 0.7049025263103361, 1e-10);
}

// Behind the fold cycles come near the points x = -+F, from which they unwind with exp(-pi/sqrt(2 F^2)) of their size
// left: there steps end in rounding. The branch must not turn round, which would be a second fold.
TEST(OrbitBranch, DoesNotTurnRoundWhereItIsLostInRounding) {
  const Model model = read_model_text(R"M(
equations = """
  x' = y
  y' = 2*(1 - x^2)*y - x - F*sign(y)
"""
[parameters]
F = 0.2
[initial]
x = 2
y = 0
[section.a]
on = "x"
direction = "rising"
)M");
  const Branch b = follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 0, .high = 1.5});
  ASSERT_TRUE(b.found) << b.message;
  EXPECT_EQ(of_type(b, "fold").size(), 1u);
  for (const BranchEnd& e : b.ends) EXPECT_NE(e.why, "closed");
  EXPECT_LT(b.points.back().values[0], 0.13);
}

// Om = K/(2 pi) sin(2 pi th): once round, th has grown by 1, and the branch is closed.
TEST(OrbitBranch, OfTheCircleMapIsClosedWhereItsAngleHasTurned) {
  const Model model = read_model_text(R"M(
equations = "th' = 0"
[parameters]
Om = 0
[initial]
th = 0.1
[jump.m]
every = 1
set = { th = "th + Om - 0.9/(2*pi)*sin(2*pi*th)" }
[section.s]
every = 1
)M");
  const Branch b = follow_orbit(model, {.run = run_of(model), .section = 0, .modulo = {{0, 1.0}}},
                                {.parameter = 0, .low = -0.5, .high = 0.5});
  ASSERT_TRUE(b.found) << b.message;
  ASSERT_EQ(b.special.size(), 2u);
  expect_special(b, "fold", 0.9 / (2 * M_PI), 1e-12);
  expect_special(b, "fold", -0.9 / (2 * M_PI), 1e-12);
  for (const BranchEnd& e : b.ends) EXPECT_EQ(e.why, "closed");
}

// The period at tau = 3 by DOP853 (rtol 1e-13) and a root of the return map; the homoclinic orbit where the manifolds
// of the saddle sin(th) = tau - 0.1, followed as om(th) by the same, meet.
TEST(OrbitBranch, OfAPendulumThatGoesRoundTakesStepsOfItsOwnSize) {
  const Model model = read_model_text(R"M(
equations = """
  th' = om
  om' = -0.2*om - sin(th) + tau - 0.1*sign(om)
"""
[parameters]
tau = 1.2
[initial]
th = 0
om = 5
)M");
  const Branch b =
      follow_orbit(model, {.run = run_of(model), .modulo = {{0, 2 * M_PI}}}, {.parameter = 0, .low = 0.2, .high = 3});
  ASSERT_TRUE(b.found) << b.message;
  EXPECT_EQ(b.points.back().values[0], 3);
  EXPECT_NEAR(b.points.back().period, 0.43332802514413, 1e-9);
  EXPECT_EQ(b.ends[0].why, "homoclinic");
  EXPECT_NEAR(b.ends[0].value, 0.3521282444674848, 1e-8);
  EXPECT_LT(b.points.size(), 500u);  // steps of a long period are long
}

// The cycles born at r = 470/19 end in a loop at the origin at r = 13.926557 (Sparrow 1982): multipliers grow as
// exp(l T), so the place is told before the period is long.
TEST(OrbitBranch, OfTheLorenzSystemEndsAtItsHomoclinicLoop) {
  const Model model = read_model_text(R"M(
equations = """
  x' = 10*(y - x)
  y' = r*x - y - x*z
  z' = x*y - 8/3*z
"""
[parameters]
r = 24
[initial]
x = 7.8
y = 7.8
z = 23
)M");
  BranchOptions range{.parameter = 0, .low = 13, .high = 30};
  range.seek = {"hopf", 470.0 / 19};
  const Branch b = follow_equilibrium(model, {run_of(model)}, range);
  ASSERT_TRUE(b.found) << b.message;
  ASSERT_EQ(b.ends.size(), 2u);
  EXPECT_EQ(b.ends[1].why, "homoclinic") << b.ends[1].detail;
  EXPECT_NEAR(b.ends[1].value, 13.926557, 2e-6);
  EXPECT_LT(b.points.size(), 300u);
}

// The focus of each half, x = -+F, turns into a node at mu (1 - F^2) = 2, where half a turn takes for ever: the small
// orbit about both passes by it ever nearer and is lost before, with exp(mu T/2) beyond rounding.
TEST(OrbitBranch, OfVanDerPolWithFrictionTellsWhyItIsLost) {
  const Model model = read_model_text(R"M(
equations = """
  x' = y
  y' = mu*(1 - x^2)*y - x - 0.1*sign(y)
"""
[parameters]
mu = 1
[initial]
x = 2
y = 0
[section.a]
on = "x"
direction = "rising"
)M");
  // Half a turn about the focus lets what is beside it grow by exp(k pi/w), k = 0.99 mu/2, w^2 = 1 - k^2: that is
  // within what rounding leaves up to k = 1/hypot(1, pi/log(1e12)).
  const double seen = 2 / 0.99 / std::hypot(1, M_PI / std::log(1e12));
  for (const double step : {0.01, 0.013, 0.02, 0.03, 0.05}) {
    const Branch b =
        follow_orbit(model, {.run = run_of(model)}, {.parameter = 0, .low = 0.01, .high = 3, .largest_step = step});
    ASSERT_TRUE(b.found) << b.message;
    EXPECT_EQ(b.ends[0].why, "failed") << step;
    EXPECT_NE(b.ends[0].detail.find("lingers at an equilibrium (x = -0.1"), std::string::npos) << b.ends[0].detail;
    EXPECT_GT(b.ends[0].value, seen) << step;
    EXPECT_LT(b.ends[0].value, 2 / 0.99) << step;
  }
}

// Fixed points s of y -> A y - B x - y^2 - 0.1, x -> y have the trace A - 2 s and the determinant B, 1 on the curve:
// s^2 + (2 - A) s + 0.1 = 0 with A - 2 s = 2, -2, -1, 0.
TEST(OrbitBranch, OfTorusPointsHasItsStrongResonances) {
  const Model model = read_model_text(R"M(
equations = """
  x' = 0
  y' = 0
"""
[parameters]
B = 0.5
A = 0.5
[initial]
x = -0.1
y = -0.1
[jump.m]
every = 1
set = { x = "y", y = "A*y - B*x - y^2 - 0.1" }
[section.s]
every = 1
)M");
  const OrbitOptions start{.run = run_of(model), .section = 0};
  BranchOptions range{.parameter = 0, .low = 0.2, .high = 1.5};
  const Branch first = follow_orbit(model, start, range);
  const auto tori = of_type(first, "torus");
  ASSERT_EQ(tori.size(), 1u);
  EXPECT_NEAR(tori[0]->values[0], 1, 1e-10);
  range.second = 1;
  range.second_low = -3;
  range.second_high = 3;
  const Branch curve = begun_at(*tori[0], model, start, range);
  ASSERT_TRUE(curve.found) << curve.message;
  const auto expect_resonance = [&](const std::string& type, double s, double trace) {
    const auto found = of_type(curve, type);
    ASSERT_EQ(found.size(), 1u) << type;
    EXPECT_NEAR(found[0]->values[0], 1, 1e-9) << type;
    EXPECT_NEAR(found[0]->values[1], trace + 2 * s, 1e-7) << type;
  };
  expect_resonance("resonance 1:1", -std::sqrt(0.1), 2);
  expect_resonance("resonance 1:2", 2 - std::sqrt(4.1), -2);
  expect_resonance("resonance 1:3", (3 - std::sqrt(9.4)) / 2, -1);
  expect_resonance("resonance 1:4", 1 - std::sqrt(1.1), 0);
  // Beyond 1:1 and 1:2 the product of two real multipliers is 1.
  ASSERT_EQ(curve.ends.size(), 2u);
  for (const BranchEnd& end : curve.ends)
    EXPECT_TRUE(end.why == "resonance 1:1" || end.why == "resonance 1:2") << end.why;
  for (const BranchPoint& p : curve.points) EXPECT_LT(std::abs(p.spectrum[0]), 1 + 1e-5) << p.values[1];
}

// The orbit that just touches is x = A cos(w t - phi): d = A = 1/sqrt((1 - w^2)^2 + (0.1 w)^2), whichever side it is
// followed from.
TEST(OrbitBranch, OfGrazingImpactsIsTheAmplitudeOfTheFreeOscillator) {
  for (const double from : {2.0, 4.0}) {
    const Model model = read_model_text(fmt::format(R"M(
equations = """
  x' = v
  v' = -x - 0.1*v + cos(w*t) - N
"""
[parameters]
w = {}
d = 0.2
[initial]
x = 0
v = 0
[constraint.N]
gap = "d - x"
restitution = 0.8
[section.s]
every = "2*pi/w"
)M",
                                                    from));
    const OrbitOptions start{.run = run_of(model), .section = 0};
    BranchOptions range{.parameter = 0, .low = 2, .high = 5};
    const Branch first = follow_orbit(model, start, range);
    const auto grazes = of_type(first, "impact-grazing");
    ASSERT_EQ(grazes.size(), 1u);
    range.low = 1.5;
    range.second = 1;
    range.second_low = 0.05;
    range.second_high = 0.6;
    const Branch curve = begun_at(*grazes[0], model, start, range);
    ASSERT_TRUE(curve.found) << curve.message;
    for (const BranchEnd& e : curve.ends) EXPECT_EQ(e.why, "range");
    for (const BranchPoint& p : curve.points) {
      const double w = p.values[0];
      EXPECT_NEAR(p.values[1], 1 / std::hypot(1 - w * w, 0.1 * w), 1e-11) << w;
    }
  }
}

// The orbit that touches the stop at d touches the one at -0.4 as well where its amplitude is 0.4: behind that there is
// no orbit that touches d alone.
TEST(OrbitBranch, OfGrazingImpactsEndsWhereAnotherStopIsTouchedAsWell) {
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = -x - 0.1*v + cos(w*t) - N + M
"""
[parameters]
w = 4
d = 0.2
[initial]
x = 0
v = 0
[constraint.N]
gap = "d - x"
restitution = 0.8
[constraint.M]
gap = "x + 0.4"
restitution = 0.8
[section.s]
every = "2*pi/w"
)M");
  const OrbitOptions start{.run = run_of(model), .section = 0};
  BranchOptions range{.parameter = 0, .low = 2, .high = 5};
  const Branch first = follow_orbit(model, start, range);
  const auto grazes = of_type(first, "impact-grazing");
  const auto free_one = std::find_if(grazes.begin(), grazes.end(), [](const SpecialPoint* s) {
    const double w = s->values[0];
    return std::abs(1 / std::hypot(1 - w * w, 0.1 * w) - 0.2) < 1e-9;
  });
  ASSERT_NE(free_one, grazes.end());
  range.low = 1.5;
  range.second = 1;
  range.second_low = 0.05;
  range.second_high = 0.6;
  const Branch curve = begun_at(**free_one, model, start, range);
  ASSERT_TRUE(curve.found) << curve.message;
  ASSERT_EQ(curve.special.size(), 1u);
  EXPECT_EQ(curve.special[0].type, "degenerate");
  EXPECT_EQ(curve.special[0].detail, "impact-grazing as well");
  EXPECT_NEAR(curve.special[0].values[1], 0.4, 1e-9);
  for (const BranchPoint& p : curve.points) {
    EXPECT_NEAR(p.values[1], 1 / std::hypot(1 - p.values[0] * p.values[0], 0.1 * p.values[0]), 1e-9);
    EXPECT_LE(p.values[1], 0.4 + 1e-9);
  }
}

// A spring of straight pieces and a sensor in steps: beside each touch of a step the orbit flips. Where an event meets
// the cut in the same step of the branch, that step is made again.
TEST(OrbitBranch, TellsAFlipOnceWhereAnEventMeetsTheCutBehindIt) {
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = -spring(x) - 0.1*v + cos(w*t) - 0.3*floor(2*x)/2
"""
[parameters]
w = 1.5
[initial]
x = 0
v = 0
[table.spring]
points = [[-3, -9], [-1, -1], [1, 1], [3, 9]]
outside = "hold"
[section.s]
every = "2*pi/w"
)M");
  const OrbitOptions start{.run = run_of(model), .section = 0};
  const Branch b = follow_orbit(model, start, {.parameter = 0, .low = 1.5, .high = 1.7, .most_points = 90});
  const auto flips = of_type(b, "flip");
  ASSERT_GE(flips.size(), 2u);
  for (size_t i = 1; i < flips.size(); ++i) EXPECT_GT(std::abs(flips[i]->values[0] - flips[i - 1]->values[0]), 1e-6);
}

// A cam lifts its follower off where the force of contact, q'' + 0.2 q' + q + 2 on q = cos(a) + 0.2 cos(2 a), falls to
// zero: at Om = 1.32909733712724 (by mpmath). Above that it comes back by impacts without number, which vanish there.
TEST(OrbitBranch, OfImpactsThatAccumulateGoesOnWhereTheyVanish) {
  const Model model = read_model_text(R"M(
equations = """
  q' = v
  v' = -0.2*v - q - 2 + N
"""
[parameters]
Om = 1.5
[initial]
q = 1.3
v = 0
[constraint.N]
gap = "q - cos(Om*t) - 0.2*cos(2*Om*t)"
restitution = 0.4
[section.s]
every = "2*pi/Om"
)M");
  const OrbitOptions start{.run = run_of(model), .section = 0};
  const Branch b = follow_orbit(model, start, {.parameter = 0, .low = 0.8, .high = 1.9});
  ASSERT_EQ(b.special.size(), 1u);
  EXPECT_EQ(b.special[0].type, "release");
  EXPECT_NEAR(b.special[0].values[0], 1.32909733712724, 1e-8);
  EXPECT_TRUE(b.special[0].persists.value_or(false));
  for (const BranchEnd& end : b.ends) EXPECT_EQ(end.why, "range") << end.detail;
  for (const BranchPoint& p : b.points) EXPECT_EQ(p.signature.size() == 1, p.values[0] < 1.32909733) << p.values[0];
}

// The same cam at Om = 1.5, the preload P followed: contact holds from P = 2.869012939595857 on (by mpmath). What is
// left of the impacts is rounding before they vanish: gaps are as the fourth power of the times between them.
TEST(OrbitBranch, OfImpactsThatAccumulateGoesOnWhereTheyAreLostInRounding) {
  const Model model = read_model_text(R"M(
equations = """
  q' = v
  v' = -0.2*v - q - P + N
"""
[parameters]
P = 2
[initial]
q = 1.3
v = 0
[constraint.N]
gap = "q - cos(1.5*t) - 0.2*cos(3*t)"
restitution = 0.4
[section.s]
every = "2*pi/1.5"
)M");
  const Branch b = follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 1, .high = 4});
  ASSERT_EQ(b.special.size(), 1u);
  EXPECT_EQ(b.special[0].type, "release");
  EXPECT_NEAR(b.special[0].values[0], 2.869012939595857, 1e-8);
  EXPECT_TRUE(b.special[0].persists.value_or(false));
  for (const BranchEnd& end : b.ends) EXPECT_EQ(end.why, "range") << end.detail;
}

/// How far from closing runs along the points of a curve in two parameters are, at most.
double farthest_from_closing(const Model& model, const Branch& curve, int first, int second) {
  double farthest = 0;
  for (const BranchPoint& p : curve.points) {
    RunOptions o = run_of(model);
    o.parameters = parameter_values(model, std::vector<GivenParameter>{{first, p.values[0]}, {second, p.values[1]}});
    o.initial = p.state;
    o.from = p.t;
    o.until = p.t + p.period;
    const Trajectory run = simulate(Program(model), o);
    for (size_t i = 0; i < p.state.size(); ++i) farthest = std::max(farthest, std::abs(run.end.state[i] - p.state[i]));
  }
  return farthest;
}

// x = A (1 - A) (sin(t) - cos(t))/2, also where the drive vanishes, which it does at both ends of the range.
TEST(OrbitBranch, OfADriveThatVanishesAtBothEndsIsThatOfItsResponse) {
  const Model model = read_model_text(R"M(
equations = "x' = -x + A*(1 - A)*sin(t)"
[parameters]
A = 0
[initial]
x = 0
)M");
  const Branch b = follow_orbit(model, {.run = run_of(model)}, {.parameter = 0, .low = 0, .high = 1});
  ASSERT_TRUE(b.found) << b.message;
  for (const BranchEnd& end : b.ends) EXPECT_EQ(end.why, "range") << end.detail;
  for (const BranchPoint& p : b.points) {
    const double A = p.values[0];
    EXPECT_NEAR(p.state[0], A * (1 - A) * (std::sin(p.t) - std::cos(p.t)) / 2, 1e-9) << A;
  }
}

// Teeth of gears with play. Folds and flips of orbits that touch one flank come to where these touch it once more, or
// the other one; on the way events pass the place where orbits are cut.
TEST(OrbitBranch, OfFoldsAndFlipsInTwoParametersHasOrbitsOnly) {
  const Model model = read_model_text(R"M(
equations = """
  x' = v
  v' = 0.1 + Fa*cos(Om*t) - 0.2*v - if(x > 1, x - 1, if(x < -1, x + 1, 0))
"""
[parameters]
Fa = 0.1
Om = 0.7
[initial]
x = 1.1
v = 0
[section.s]
every = "2*pi/Om"
)M");
  const OrbitOptions start{.run = run_of(model), .section = 0};
  BranchOptions range{.parameter = 0, .low = 0.01, .high = 1.5};
  const Branch first = follow_orbit(model, start, range);
  range.second = 1;
  range.second_low = 0.3;
  range.second_high = 1.5;
  std::vector<const SpecialPoint*> begins = of_type(first, "fold");
  ASSERT_FALSE(begins.empty());
  const auto flips = of_type(first, "flip");
  ASSERT_FALSE(flips.empty());
  begins.insert(begins.end(), flips.begin(), flips.end());
  std::vector<std::vector<double>> grazing_flips;
  for (const SpecialPoint* s : begins) {
    const Branch curve = begun_at(*s, model, start, range);
    ASSERT_TRUE(curve.found) << curve.message;
    EXPECT_LT(farthest_from_closing(model, curve, 0, 1), 1e-8) << s->label;
    for (const BranchEnd& end : curve.ends) EXPECT_NE(end.why, "failed") << s->label << ": " << end.detail;
    for (const SpecialPoint* d : of_type(curve, "degenerate")) {
      EXPECT_EQ(d->detail, "grazing as well") << s->label;
      if (s->type == "flip") grazing_flips.push_back(d->values);
    }
  }
  // Flips of orbits that touch the other flank, and of those that do not, end where one grazes it.
  ASSERT_EQ(grazing_flips.size(), 2u);
  for (size_t k = 0; k < 2; ++k) EXPECT_NEAR(grazing_flips[0][k], grazing_flips[1][k], 1e-8);
}

// A tank runs empty, rests, and fills again.
Model tank_that_rests() {
  return read_model_text(R"M(
equations = """
  h1' = q*open - 0.5*sqrt(max(h1, 0))
  h2' = (0.5*sqrt(max(h1, 0)) - 0.4*sqrt(max(h2, 0)))/2
  open' = 0
"""
[parameters]
q = 1
low = 0.5
[initial]
h1 = 0
h2 = 0
open = 1
[jump.full]
on = "h2 - 1.5"
direction = "rising"
set = { open = 0 }
[jump.low]
on = "h2 - low"
direction = "falling"
set = { open = 1 }
[section.middle]
on = "h2 - 1.3"
direction = "rising"
)M");
}

// Periods from w = sqrt(h1): the filling as an equation in w, the emptying w0 - t/4, the rest (sqrt(h2) -
// sqrt(low))/0.1, with DOP853 of SciPy at 1e-13. Every filling begins with the same state: nothing is remembered.
TEST(OrbitBranch, GoesThroughOrbitsThatRestWhereARootEnds) {
  const Model model = tank_that_rests();
  const Branch b =
      follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 0.51, .high = 1.8});
  ASSERT_TRUE(b.found) << b.message;
  EXPECT_TRUE(b.special.empty());
  ASSERT_EQ(b.ends.size(), 2u);
  for (const BranchEnd& end : b.ends) EXPECT_EQ(end.why, "range") << end.detail;
  EXPECT_NEAR(b.points.front().period, 38.55325535598444, 1e-9);
  EXPECT_NEAR(b.points.back().period, 18.70394980036759, 1e-9);
  for (const BranchPoint& p : b.points) {
    EXPECT_TRUE(p.stable) << p.values[0];
    for (const std::complex<double>& mu : p.spectrum) EXPECT_NEAR(std::abs(mu), 0, 1e-9) << p.values[0];
  }
}

// The rest is over when the tank runs empty at the level at which the valve opens again: low = 1.1637267245980745, as
// above. Beyond, what is left in the tank is remembered; its share is zero there, because h = w^2.
TEST(OrbitBranch, GoesOnWhereARestOnARootVanishes) {
  const Model model = tank_that_rests();
  const Branch b = follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 1, .low = 0.4, .high = 1.4});
  ASSERT_TRUE(b.found) << b.message;
  for (const BranchEnd& end : b.ends) EXPECT_EQ(end.why, "range") << end.detail;
  ASSERT_EQ(b.special.size(), 1u);
  EXPECT_NEAR(b.special[0].values[0], 1.1637267245980745, 1e-10);
  EXPECT_TRUE(b.special[0].persists.value_or(false));
  for (const BranchPoint& p : b.points) {
    if (p.values[0] < 1.16) {
      EXPECT_NEAR(std::abs(p.spectrum[0]), 0, 1e-9) << p.values[0];
    }
  }
}

// The inflow comes in half waves; the tank rests between them. Level and multiplier exp(-int 0.15/(2 sqrt(h2)) dt) of
// the second tank, and where the first no longer runs empty, from w = sqrt(h1) with DOP853 of SciPy at 1e-13.
TEST(OrbitBranch, OfARootThatBeginsWithItsInflowHasItsMultipliers) {
  const Model model = read_model_text(R"M(
equations = """
  h1' = q*max(sin(t), 0) - 0.5*sqrt(max(h1, 0))
  h2' = 0.5*sqrt(max(h1, 0)) - 0.15*sqrt(max(h2, 0))
"""
[parameters]
q = 0.3
[initial]
h1 = 0
h2 = 0.1
[section.p]
every = "2*pi"
)M");
  struct Known {
    double q, h2, multiplier;
  };
  for (const Known& known :
       {Known{0.2, 0.11096955029913337, 0.31882663873230144}, Known{0.5, 1.0220805904077812, 0.6406628126990519},
        Known{0.77, 2.5892718498083194, 0.7493330503938168}}) {
    const double low = std::min(known.q, 0.3), high = std::max(known.q, 0.3);
    const Branch b =
        follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = low, .high = high});
    ASSERT_TRUE(b.found) << b.message;
    const BranchPoint& p = known.q < 0.3 ? b.points.front() : b.points.back();
    ASSERT_EQ(p.values[0], known.q);
    EXPECT_NEAR(p.state[1], known.h2, 1e-9) << known.q;
    EXPECT_NEAR(p.spectrum[0].real(), known.multiplier, 1e-8) << known.q;
    EXPECT_NEAR(std::abs(p.spectrum[1]), 0, 1e-9) << known.q;
  }
  const Branch b = follow_orbit(model, {.run = run_of(model), .section = 0}, {.parameter = 0, .low = 0.3, .high = 1});
  ASSERT_EQ(b.special.size(), 1u);
  EXPECT_NEAR(b.special[0].values[0], 0.7738229226090224, 1e-10);
  EXPECT_EQ(b.points.back().values[0], 1);
}

}  // namespace
}  // namespace saltus
