// The same motion said in another way is the same run: other scales, names, orders, spellings, pieces, clocks,
// directions and tolerances; and smoothed switches tend to it.
#include <random>

#include <gtest/gtest.h>

#include "physics.hpp"

namespace saltus::physics {
namespace {

void expect_same(const Trajectory& a, const Trajectory& b, double tolerance, double shift = 0) {
  ASSERT_EQ(a.end.why, b.end.why) << story(a) << story(b);
  const auto ea = changes(a), eb = changes(b);
  ASSERT_EQ(ea.size(), eb.size()) << story(a) << story(b);
  for (size_t i = 0; i < ea.size(); ++i) {
    EXPECT_NEAR(ea[i].t + shift, eb[i].t, tolerance) << "event " << i;
    EXPECT_EQ(kind_name(ea[i].kind), kind_name(eb[i].kind)) << "event " << i;
  }
  for (size_t i = 0; i < a.end.state.size(); ++i) EXPECT_NEAR(a.end.state[i], b.end.state[i], tolerance);
}

TEST(Scales, SurfacesThatLookAlikeForLargeStatesAreTwo) {
  // y' = -(1 + sat(y^2, -1, 1)/2) from 2: straight down to 1, then sqrt(2) tan(c - t/sqrt(2)).
  const double end = std::sqrt(2) * std::tan(std::atan(1 / std::sqrt(2)) - (1.2 - 2.0 / 3) / std::sqrt(2));
  for (const double unit : {1.0, 1e-4, 1e-8, 1e-12}) {
    const System s =
        system(fmt::format("x' = -{0}*(1 + sat((x/{0})^2, -1, 1)/2)", unit), fmt::format("x = {}", 2 * unit));
    const Trajectory run = s.run(1.2);
    ASSERT_EQ(changes(run).size(), 1u) << story(run);
    EXPECT_NEAR(changes(run)[0].t, 2.0 / 3, 1e-12);
    EXPECT_NEAR(run.end.state[0] / unit, end, 1e-9);
  }
}

// Friction under a driven block: crosses, sticks and releases.
std::string friction(std::string_view switch_text) {
  return fmt::format("y' = v\nv' = -y + sin(t/3) - 0.4*{}", switch_text);
}
constexpr std::string_view friction_start = "y = 1\nv = 2";

// Three relays with motion on intersections.
std::string relays(std::string_view a, std::string_view b, std::string_view c) {
  return fmt::format(
      "x' = -0.3*x + y + 0.5*sin(2*t) - 1.5*{0} + 0.3*{1}\n"
      "y' = -x - 0.2*y - 0.4*{0} - 1.2*{1} + 0.2*{2}\n"
      "z' = 0.5*x - z + 0.8*cos(t) - {2} + 0.3*{0}",
      a, b, c);
}
constexpr std::string_view relays_start = "x = 1.7\ny = -1.1\nz = 0.9";

// ---- scaling ----------------------------------------------------------------------------------------------------

TEST(Invariance, ScalingASurfaceChangesNothing) {
  const Trajectory plain = system(friction("sign(v)"), friction_start).run(100);
  ASSERT_GT(changes(plain).size(), 20u);
  for (const double k : {1e-12, 1e-8, 1e8, 1e12}) {
    const System s = system(friction("sign(K*v)"), friction_start, fmt::format("[parameters]\nK = {:.17g}", k));
    expect_same(plain, s.run(100), 1e-11);
  }
}

TEST(Invariance, ScalingSurfacesOfAnIntersectionChangesNothing) {
  const Trajectory plain = system(relays("sign(x - 0.2)", "sign(y)", "sign(z + x)"), relays_start).run(30);
  ASSERT_GT(changes(plain).size(), 10u);
  for (const double k : {1e-8, 1e8}) {
    const System s = system(relays("sign(K*(x - 0.2))", "sign(y/K)", "sign(K^2*(z + x))"), relays_start,
                            fmt::format("[parameters]\nK = {:.17g}", k));
    expect_same(plain, s.run(30), 1e-10);
  }
}

TEST(Invariance, BendingASurfaceWithoutMovingItChangesNothing) {
  const Trajectory plain = system(friction("sign(v)"), friction_start).run(60);
  for (const char* bent : {"sign(v + v^3)", "sign(sinh(v))", "sign(v*(2 + sin(y)))", "sign(exp(v) - 1)"})
    expect_same(plain, system(friction(bent), friction_start).run(60), 1e-10);
}

// ---- names and order --------------------------------------------------------------------------------------------

TEST(Invariance, NamesDoNotMatter) {
  const Trajectory a = system(friction("sign(v)"), friction_start).run(60);
  const Trajectory b = system("zeta' = a_1\na_1' = -zeta + sin(t/3) - 0.4*sign(a_1)", "zeta = 1\na_1 = 2").run(60);
  expect_same(a, b, 0);
}

TEST(Invariance, OrderOfEquationsDoesNotMatter) {
  const Trajectory a = system(relays("sign(x - 0.2)", "sign(y)", "sign(z + x)"), relays_start).run(30);
  const Trajectory b = system(
                           "z' = 0.5*x - z + 0.8*cos(t) - sign(z + x) + 0.3*sign(x - 0.2)\n"
                           "y' = -x - 0.2*y - 0.4*sign(x - 0.2) - 1.2*sign(y) + 0.2*sign(z + x)\n"
                           "x' = -0.3*x + y + 0.5*sin(2*t) - 1.5*sign(x - 0.2) + 0.3*sign(y)",
                           "y = -1.1\nx = 1.7\nz = 0.9")
                           .run(30);
  const auto ea = changes(a), eb = changes(b);
  ASSERT_EQ(ea.size(), eb.size());
  for (size_t i = 0; i < ea.size(); ++i) {
    EXPECT_NEAR(ea[i].t, eb[i].t, 1e-11);
    EXPECT_EQ(ea[i].kind, eb[i].kind);
  }
  EXPECT_NEAR(a.end.state[0], b.end.state[2], 1e-11);
  EXPECT_NEAR(a.end.state[2], b.end.state[0], 1e-11);
}

TEST(Invariance, SpellingsOfASwitchAgree) {
  const Trajectory plain = system(friction("sign(v)"), friction_start).run(100);
  for (const char* spelt :
       {"if(v > 0, 1, -1)", "if(v < 0, -1, 1)", "if(0 < v, 1, -1)", "(-sign(-v))", "(2*step(v) - 1)",
        "if(not (v > 0), -1, 1)", "if(v >= 0, 1, -1)", "sign(3*v)", "sign(v, 1)"})
    expect_same(plain, system(friction(spelt), friction_start).run(100), 1e-11);
}

TEST(Invariance, SpellingsOfAKinkAgree) {
  const auto kink = [](std::string_view f) {
    return system(fmt::format("x' = v\nv' = -x - 0.1*v + 1.5*sin(1.3*t) - 2*{}", f), "x = 0\nv = 0").run(40);
  };
  const Trajectory plain = kink("max(x - 0.5, 0)");
  for (const char* spelt : {"if(x > 0.5, x - 0.5, 0)", "(x - 0.5 + abs(x - 0.5))/2", "(x - 0.5)*step(x - 0.5)",
                            "(-min(0.5 - x, 0))", "(x - min(x, 0.5))"})
    expect_same(plain, kink(spelt), 1e-11);
}

// ---- pieces and clocks ------------------------------------------------------------------------------------------

void expect_splits(const System& s, double until, int splits, double tolerance) {
  const Trajectory whole = s.run(until);
  std::mt19937 random(11);
  std::uniform_real_distribution<> time(0.01 * until, 0.99 * until);
  for (int k = 0; k < splits; ++k) {
    const double at = time(random);
    RunOptions o = s.options(until);
    o.from = at;
    o.initial = s.run(at).end.state;
    const Trajectory rest = s.run(o);
    std::vector<Event> wanted;
    for (const Event& e : changes(whole)) {
      if (e.t > at) wanted.push_back(e);
    }
    const auto found = changes(rest);
    ASSERT_EQ(found.size(), wanted.size()) << "split at " << at << "\n" << story(rest) << story(whole);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i].t, wanted[i].t, tolerance) << "split at " << at;
      EXPECT_EQ(found[i].kind, wanted[i].kind);
    }
    for (size_t i = 0; i < whole.end.state.size(); ++i) EXPECT_NEAR(rest.end.state[i], whole.end.state[i], tolerance);
  }
}

TEST(Invariance, ARunMayBeSplitAnywhere) {
  expect_splits(system(friction("sign(v)"), friction_start), 60, 40, 1e-10);
  expect_splits(system(friction("sign(v, 1.5)"), friction_start), 60, 40, 1e-10);
  expect_splits(system(relays("sign(x - 0.2)", "sign(y)", "sign(z + x)"), relays_start), 20, 40, 1e-10);
  expect_splits(gallery_system("three_masses"), 120, 20, 1e-9);
}

TEST(Invariance, ARunOnACurvedSurfaceMayBeSplitAnywhere) {
  expect_splits(system("x' = -y - x*sign(h)\ny' = x - y*sign(h) + 1.2*sin(3*t)\nh = x^2 + y^2 - 1", "x = 2\ny = 0.3"),
                20, 40, 1e-9);
}

TEST(Invariance, ARunWithContactsMayBeSplitAnywhere) {
  expect_splits(gallery_system("impact_oscillator"), 40, 30, 1e-9);
  expect_splits(gallery_system("end_stops"), 30, 30, 1e-9);
}

TEST(Invariance, ShiftingTimeShiftsEvents) {
  const Trajectory plain = system(friction("sign(v)"), friction_start).run(100);
  for (const double shift : {-50.0, 7.3, 1000.0}) {
    const System s =
        system(fmt::format("y' = v\nv' = -y + sin((t - ({:.17g}))/3) - 0.4*sign(v)", shift), friction_start);
    RunOptions o = s.options(100 + shift);
    o.from = shift;
    expect_same(plain, s.run(o), 1e-9, shift);
  }
}

TEST(Invariance, SlowerClockSameEvents) {
  const Trajectory plain = system(friction("sign(v)"), friction_start).run(60);
  for (const double k : {1e-6, 1e6}) {
    const System s = system("y' = v/k\nv' = (-y + sin(t/(3*k)) - 0.4*sign(v))/k", friction_start,
                            fmt::format("[parameters]\nk = {:.17g}", k));
    const Trajectory run = s.run(60 * k);
    const auto ea = changes(plain), eb = changes(run);
    ASSERT_EQ(ea.size(), eb.size());
    for (size_t i = 0; i < ea.size(); ++i) EXPECT_NEAR(ea[i].t, eb[i].t / k, 1e-10);
  }
}

TEST(Invariance, ForwardThenBackwardOverCrossingsReturns) {
  for (const char* field :
       {"x' = y + 0.3*sign(x)\ny' = -x + 0.2*sin(t)*sign(y + 3)", "x' = y\ny' = -x - 0.5*abs(x) + 0.3*cos(2*t)"}) {
    const System s = system(field, "x = 1\ny = 0.4");
    const Trajectory there = s.run(15);
    ASSERT_GT(changes(there).size(), 3u);
    RunOptions o = s.options(0);
    o.from = 15;
    o.initial = there.end.state;
    const Trajectory back = s.run(o);
    expect_end(back, {1, 0.4}, 1e-10);
    const auto ea = changes(there);
    auto eb = changes(back);
    ASSERT_EQ(ea.size(), eb.size());
    std::reverse(eb.begin(), eb.end());
    for (size_t i = 0; i < ea.size(); ++i) EXPECT_NEAR(ea[i].t, eb[i].t, 1e-10);
  }
}

// ---- tolerances -------------------------------------------------------------------------------------------------

TEST(Tolerance, ErrorsFollowIt) {
  // Ten periods of the dry-friction oscillator; the end is known to 17 digits.
  const System s = gallery_system("dry_friction");
  for (const double tolerance : {1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13}) {
    const Trajectory run = s.run(60 * pi, tolerance);
    EXPECT_EQ(changes(run).size(), 42u) << tolerance;
    EXPECT_NEAR(run.end.state[0], -0.72126835016760790, std::max(100 * tolerance, 1e-13)) << tolerance;
    EXPECT_NEAR(run.end.state[1], 0.35702730004886243, std::max(100 * tolerance, 1e-13)) << tolerance;
  }
}

TEST(Tolerance, LooseRunsHaveTheSameStory) {
  const System s = system(relays("sign(x - 0.2)", "sign(y)", "sign(z + x)"), relays_start);
  const Trajectory exact = s.run(20, 1e-14);
  for (const double tolerance : {1e-4, 1e-5, 1e-6, 1e-8}) {
    const Trajectory run = s.run(20, tolerance);
    const auto ea = changes(exact), eb = changes(run);
    ASSERT_EQ(ea.size(), eb.size()) << tolerance << story(run) << story(exact);
    for (size_t i = 0; i < ea.size(); ++i) {
      EXPECT_EQ(ea[i].kind, eb[i].kind);
      EXPECT_NEAR(ea[i].t, eb[i].t, 100 * tolerance);
    }
  }
}

// ---- smoothing --------------------------------------------------------------------------------------------------

/// The distance between the switched run and the one with tanh(h/eps) shrinks as eps^order. Across a crossing the odd
/// tanh cancels to first order (2); while sliding the state lies O(eps) beside the surface (1).
void expect_smoothed_limit(std::string_view equations, std::string_view start, double until, int order) {
  const auto with = [&](std::string_view name) {
    std::string text(equations);
    for (auto at = text.find("S("); at != std::string::npos; at = text.find("S(", at)) {
      if (name == "sign") {
        text.replace(at, 2, "sign(");
        at += 5;
      } else {
        const auto close = text.find(')', at);
        text.insert(close, ")/eps");
        text.replace(at, 2, "tanh((");
        at += 6;
      }
    }
    return text;
  };
  const Trajectory sharp = system(with("sign"), start).run(until);
  std::vector<double> distance;
  for (const double eps : {0.02, 0.005, 0.00125}) {
    const Trajectory soft = system(with("tanh"), start, fmt::format("[parameters]\neps = {}", eps)).run(until, 1e-9);
    ASSERT_EQ(soft.end.why, Why::time) << story(soft);
    double d = 0;
    for (size_t i = 0; i < sharp.end.state.size(); ++i)
      d = std::max(d, std::abs(soft.end.state[i] - sharp.end.state[i]));
    distance.push_back(d);
  }
  for (size_t i = 1; i < distance.size(); ++i) {
    const double ratio = distance[i - 1] / distance[i];
    EXPECT_GT(ratio, std::pow(2.5, order)) << distance[i - 1] << " " << distance[i];
    EXPECT_LT(ratio, std::pow(6.5, order)) << distance[i - 1] << " " << distance[i];
  }
}

TEST(Smoothing, TendsToTheSlidingOscillator) {
  expect_smoothed_limit("y' = v\nv' = -y + sin(t/3) - 0.4*S(v)", friction_start, 21, 1);
}

TEST(Smoothing, TendsToCrossing) {
  expect_smoothed_limit("x' = y\ny' = -x - 0.3*y + sin(2*t) + 0.4*S(x)", "x = 1\ny = 0.5", 9, 2);
}

TEST(Smoothing, TendsToSlidingOnAnIntersection) {
  expect_smoothed_limit("x' = 0.3*sin(t) - S(x) + 0.2*S(y)\ny' = 0.4 - S(y) - 0.3*S(x)\nz' = S(x) + 2*S(y) - z",
                        "x = 0.5\ny = -0.6\nz = 0", 4, 1);
}

TEST(Smoothing, TendsToSlidingOnACircle) {
  expect_smoothed_limit("x' = -y - x*S(h) + 0.3\ny' = x - y*S(h)\nh = x^2 + y^2 - 1", "x = 1.5\ny = 0", 6, 1);
}

}  // namespace
}  // namespace saltus::physics
