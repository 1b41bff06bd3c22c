// Bifurcations of gallery models at the places where others found them: closed forms, published values, independent
// computations.
#include "analysis/branch.hpp"

#include <cmath>
#include <string>

#include "physics.hpp"

namespace saltus::physics {
namespace {

/// A gallery model with other values, and where its branch begins.
struct Start {
  Model model;
  OrbitOptions orbit;

  Start(const std::string& name, Values parameters, Values initial = {}) : model(gallery_system(name).program.model()) {
    System system(model);
    system.set(parameters).start(initial);
    const auto names = model.parameter_names();
    for (const auto& [name_of, value] : parameters)
      model.parameters[static_cast<size_t>(std::find(names.begin(), names.end(), name_of) - names.begin())].value =
          Expr(value);
    orbit.run = system.options(100, 1e-10);
    orbit.section = model.sections.empty() ? -1 : 0;
  }

  int parameter(const std::string& name) const {
    const auto names = model.parameter_names();
    return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
  }
  BranchOptions range(const std::string& name, double low, double high) const {
    return {.parameter = parameter(name), .low = low, .high = high};
  }
  Branch orbits(const std::string& name, double low, double high) const {
    return follow_orbit(model, orbit, range(name, low, high));
  }
  Branch equilibria(const std::string& name, double low, double high) const {
    return follow_equilibrium(model, {orbit.run}, range(name, low, high));
  }
};

const SpecialPoint* find(const Branch& branch, const std::string& type, double value, double tolerance) {
  const SpecialPoint* out = nullptr;
  for (const SpecialPoint& s : branch.special) {
    if (s.type == type && std::abs(s.values[0] - value) <= tolerance) out = &s;
  }
  EXPECT_TRUE(out) << "no " << type << " at " << value;
  return out;
}

TEST(Branches, OfTheBuckConverterDoubleTwice) {  // di Bernardo et al. 1998
  Start buck("buck", {{"Vin", 24}});
  find(buck.orbits("Vin", 22, 30), "flip", 24.51657282856338, 1e-9);
  BranchOptions doubled = buck.range("Vin", 22, 32);
  doubled.seek = {"flip", 24.51657282856338};
  find(follow_orbit(buck.model, buck.orbit, doubled), "flip", 31.11790200677098, 1e-9);
}

TEST(Branches, OfTheTrilinearOscillatorFoldWhereContactSetsIn) {  // Leine 2000, 6.6
  const Branch b = Start("trilinear", {{"w", 0.8}}).orbits("w", 0.8, 1.35);
  const SpecialPoint* a = find(b, "grazing", 0.897271864249627, 1e-11);
  const SpecialPoint* c = find(b, "grazing", 1.09197216156182, 1e-11);
  ASSERT_TRUE(a && c);
  EXPECT_EQ(a->persists, true);
  EXPECT_EQ(c->persists, false);
  EXPECT_EQ(c->crosses, std::vector<std::string>{"+1"});
}

/// A driven mass on an ellipse, A cos(t - phi) and A/2 sin(t - phi) with A = 1/hypot(1, 0.2), and a soft round post at
/// (c, 0). From outside, the nearest point of the ellipse is its vertex: it touches at c = A + d. From inside, a post
/// of less than the vertex's radius of curvature A/4 is left at c = A - d. (A distance has a shorter series than
/// coordinates.)
TEST(Branches, OfAMassThatPassesAPostTouchItAtTheVertex) {
  const Model model = read_model_text(R"M(
equations = """
  x' = u
  y' = v
  u' = -2*x - 0.2*u + cos(t) + 3*max(d - r, 0)*(x - c)/r
  v' = -2*y - 0.2*v + sin(t)/2 + 3*max(d - r, 0)*y/r
  r = hypot(x - c, y)
"""
[parameters]
c = 1.5
d = 0.2
[initial]
x = 1
y = 0
u = 0
v = 0.5
[section.s]
every = "2*pi"
)M");
  OrbitOptions start;
  start.run = System(model).options(100, 1e-10);
  start.section = 0;
  const Branch b = follow_orbit(model, start, {.parameter = 0, .low = 0.5, .high = 1.5});
  const double vertex = 1 / std::hypot(1, 0.2);
  find(b, "grazing", vertex + 0.2, 1e-11);
  find(b, "grazing", vertex - 0.2, 1e-11);
  ASSERT_EQ(b.ends.size(), 2u);
  for (const BranchEnd& e : b.ends) EXPECT_EQ(e.why, "range");
}

TEST(Branches, OfStickSlipMeetTheInfinitelyUnstableCycle) {  // Leine 2000, 6.7
  const Branch forward =
      Start("belt_static", {{"c", 0.1}, {"vdr", 0.8}}, {{"x", 1.5}, {"v", 0.8}}).orbits("vdr", 0.6, 1.3);
  const SpecialPoint* met = find(forward, "grazing-sliding", 1.09809262411587, 1e-11);
  ASSERT_TRUE(met);
  EXPECT_EQ(met->persists, false);
  Start back("belt_static", {{"c", 0.1}, {"vdr", 1.0}}, {{"x", 2}, {"v", 0}});
  back.orbit.backward = true;
  const Branch backward = back.orbits("vdr", 0.6, 1.3);
  ASSERT_TRUE(backward.found) << backward.message;
  find(backward, "grazing-sliding", 1.09809262411587, 1e-11);
  for (const BranchPoint& p : backward.points) EXPECT_TRUE(std::isinf(p.spectrum[0].real()));
}

TEST(Branches, OfTheDrillStringBeginAtAHopfPointAndStickAfterGrazing) {  // Piiroinen & Kuznetsov 2008
  find(Start("drill_string", {{"bl", 0}, {"u", 1}}).equilibria("u", 0.4, 1), "hopf", 0.535911880635230, 1e-12);
  const Branch b = Start("drill_string", {{"bl", 0}, {"u", 1.3}}).orbits("u", 1.1, 1.4);
  const SpecialPoint* touch = find(b, "grazing-sliding", 1.239295552723097, 1e-11);
  ASSERT_TRUE(touch);
  EXPECT_EQ(touch->persists, true);
}

TEST(Branches, OfTheWhirlingRotorLeaveTheCentreAndTouchTheWall) {  // Leine 2000, A.7: the closed forms
  const Branch b = Start("whirl", {{"cb", 0}, {"omega", 2.55}}, {{"r", 0.4}, {"u", 0}, {"Om", 0.319}})
                       .equilibria("omega", 2.45, 2.7);
  ASSERT_TRUE(b.found) << b.message;
  find(b, "branch", std::sqrt(6.4), 1e-11);
  const SpecialPoint* wall = find(b, "boundary-equilibrium", std::sqrt(7.04), 1e-11);
  ASSERT_TRUE(wall);
  EXPECT_NEAR(wall->state[0], 1, 1e-11);
  EXPECT_EQ(wall->persists, false);
}

TEST(Branches, OfSlidingBifurcationsInTwoParametersAreThoseOfOne) {  // Piiroinen & Kuznetsov 2008: F = 0.4
  const struct {
    const char* type;
    double inverse;
  } cases[] = {{"crossing-sliding", 1.866523638121452}, {"adding-sliding", 4.823126106845336}};
  for (const auto& c : cases) {
    const double known = 1 / c.inverse;
    Start friction("dry_friction", {{"omega", 1.02 * known}});
    BranchOptions both = friction.range("omega", 0.1, 0.8);
    both.second = friction.parameter("F");
    both.second_low = 0.35, both.second_high = 0.45;
    both.seek = {c.type, known};
    const Branch curve = follow_orbit(friction.model, friction.orbit, both);
    ASSERT_TRUE(curve.found) << curve.message;
    double nearest = 1;
    for (const BranchPoint& p : curve.points) {
      if (std::abs(p.values[1] - 0.4) < 1e-14) nearest = std::min(nearest, std::abs(p.values[0] - known));
    }
    EXPECT_LT(nearest, 1e-11) << c.type;
    for (const BranchPoint* end : {&curve.points.front(), &curve.points.back()}) {
      const double omega = end->values[0];
      Start there("dry_friction", {{"omega", 1.01 * omega}, {"F", end->values[1]}});
      find(there.orbits("omega", 0.97 * omega, 1.03 * omega), c.type, omega, 1e-10);
    }
  }
}

}  // namespace
}  // namespace saltus::physics
