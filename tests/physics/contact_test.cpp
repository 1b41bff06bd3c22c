// Impacts, lasting contact, diodes and jumps against closed forms and an independent propagation from event to event.
#include <array>
#include <random>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "base/linear.hpp"

#include "physics.hpp"

namespace saltus::physics {
namespace {

using enum EventKind;

System ball(double r, double q, double v, std::string_view gap = "q", double g = 9.81) {
  return system("q' = v\nv' = -g + N\nz' = 1\ns' = q", fmt::format("q = {:.17g}\nv = {:.17g}\nz = 0\ns = 0", q, v),
                fmt::format("[parameters]\ng = {:.17g}\nr = {:.17g}\n[constraint.N]\ngap = \"{}\"\nrestitution = \"r\"",
                            g, r, gap));
}

/// First zero after `from` of a function that is positive there, by fine steps and bisection.
template <class F>
long double next_zero(F f, long double from, long double step) {
  long double a = from, b = from + step;
  while (f(b) > 0) a = b, b += step;
  for (int i = 0; i < 120 && b - a > 0; ++i) {
    const long double c = (a + b) / 2;
    if (c == a || c == b) break;
    (f(c) > 0 ? a : b) = c;
  }
  return b;
}

// ---- hits in turn -------------------------------------------------------------------------------------------------

struct EdgeCase {
  double r1, r2, c;
  std::array<double, 3> q, v;
};

/// A body of mass one and two walls that meet in an edge along (1, 2, 2)/3, with the normals (2, 1, -2)/3 and c times
/// that + s (2, -2, 1)/3; q and v in these three directions, the edge last. The force presses it into the edge.
System body_at_edge(const EdgeCase& edge) {
  const std::array<std::array<double, 3>, 3> base{
      {{2.0 / 3, 1.0 / 3, -2.0 / 3}, {2.0 / 3, -2.0 / 3, 1.0 / 3}, {1.0 / 3, 2.0 / 3, 2.0 / 3}}};
  const auto along = [&](const std::array<double, 3>& parts, size_t i) {
    return parts[0] * base[0][i] + parts[1] * base[1][i] + parts[2] * base[2][i];
  };
  const std::array<double, 3> first{1, 0, 0}, second{edge.c, std::sqrt(1 - edge.c * edge.c), 0}, force{-0.5, -3, 0.3};
  std::string equations, initial, gaps[2];
  for (size_t i = 0; i < 3; ++i) {
    const double n[2] = {along(first, i), along(second, i)};
    equations +=
        fmt::format("q{}' = v{}\nv{}' = {:.17g} + {:.17g}*A + {:.17g}*B\n", i, i, i, along(force, i), n[0], n[1]);
    initial += fmt::format("q{} = {:.17g}\nv{} = {:.17g}\n", i, along(edge.q, i), i, along(edge.v, i));
    for (const int k : {0, 1}) gaps[k] += fmt::format("{}{:.17g}*q{}", i > 0 ? " + " : "", n[k], i);
  }
  return system(equations, initial,
                fmt::format("[constraint.A]\ngap = \"{}\"\nrestitution = {}\n[constraint.B]\ngap = \"{}\"\n"
                            "restitution = {}",
                            gaps[0], edge.r1, gaps[1], edge.r2));
}

// No impulse acts along the edge: the motion there is that of the start, and nothing is left of the rest.
TEST(Edge, HitsInTurnLeaveTheMotionAlongIt) {
  const EdgeCase cases[] = {
      {0.161, 0.146, -0.947445447802948, {0.23, 1.74, 0.1}, {-0.49, -0.57, 0.7}},
      {0.049, 0.709, -0.9422041538777137, {0.5, 2.49, 0.1}, {0.06, -0.91, 0.7}},
      {0.16, 0.747, -0.83100236167457, {0.27, 0.99, 0.1}, {-0.4, -0.54, 0.7}},
      {0.476, 0.384, -0.7931392831755546, {0.21, 0.99, 0.1}, {-0.99, -0.1, 0.7}},
      {0.383, 0.904, -0.5220915279597236, {0.3, 0.9, 0.1}, {-0.09, 0.17, 0.7}},
  };
  for (const EdgeCase& edge : cases) {
    const double t = 6, way = edge.q[2] + edge.v[2] * t + 0.15 * t * t, speed = edge.v[2] + 0.3 * t;
    const Trajectory run = body_at_edge(edge).run(t, 1e-10);
    expect_end(run, {way / 3, speed / 3, 2 * way / 3, 2 * speed / 3, 2 * way / 3, 2 * speed / 3}, 1e-9);
  }
}

// In the corner q0 = q1 - 1, q1 = 0.24 q0 - 0.2984, by hits whose intervals shrink without a steady ratio; the wall
// without losses must not keep what rounding leaves of them.
TEST(Corner, BesideAWallWithoutLossesComesToRest) {
  const System s = system(
      "q0' = v0\nv0' = (-2.4 + N0 - 0.24*N1 - N2 - 0.78*N3)/0.99\n"
      "q1' = v1\nv1' = (-2.58 - N0 + N1 + 0.35*N2 + N3)/2.17",
      "q0 = 0.66\nv0 = -1.96\nq1 = 0.66\nv1 = 1.96",
      "[constraint.N0]\ngap = \"q0 - q1 + 1\"\nrestitution = 0.5\n"
      "[constraint.N1]\ngap = \"-0.24*q0 + q1 + 0.2984\"\nrestitution = 1\n"
      "[constraint.N2]\ngap = \"-q0 + 0.35*q1 + 0.959\"\nrestitution = 0.5\n"
      "[constraint.N3]\ngap = \"-0.78*q0 + q1 + 0.8548\"\nrestitution = 1");
  const Trajectory run = s.run(8, 1e-10);
  const double corner = -1.2984 / 0.76;
  expect_end(run, {corner, 0, corner + 1, 0}, 1e-10);
  EXPECT_LT(run.cost.events, 1000);
}

// ---- the falling ball -------------------------------------------------------------------------------------------

TEST(BouncingBall, ImpactsEndAtTheLimitOfTheirSum) {
  for (const double r : {0.1, 0.5, 0.8, 0.95}) {
    const Trajectory run = ball(r, 1, 0).run_both(30);
    const double first = std::sqrt(2 / 9.81), limit = first * (1 + r) / (1 - r);
    const auto found = changes(run);
    EXPECT_EQ(kind_name(found.back().kind), "chatter") << story(run);
    EXPECT_NEAR(found.back().t, limit, 1e-9) << r;
    double t = first, flight = 2 * first;
    for (size_t i = 0; i + 1 < found.size(); ++i) {
      EXPECT_NEAR(found[i].t, t, 1e-9);
      flight *= r;
      t += flight;
    }
    // s: the drop gives 2/3 of height*time; a bounce with velocity u gives 2 u^3/(3 g^2)
    const double g = 9.81, u = r * g * first;
    const double s = 2.0 / 3 * first + 2 * u * u * u / (3 * g * g) / (1 - r * r * r);
    expect_end(run, {0, 0, 30, s}, 1e-9);
    EXPECT_EQ(run.end.mode.text(), "|c");
  }
}

TEST(BouncingBall, CountsWhatItSums) {
  const Trajectory run = ball(0.8, 1, 0).run_both(5);
  EXPECT_GT(changes(run).back().count, 0);
}

// Two balls that know nothing of each other over tables that shake. Where the first comes to rest nothing happens to
// the second, which bounces on, also while the first lies still. Limits from 40 digits, impact by impact (mpmath).
TEST(BouncingBall, RestOfAnotherChangesNothing) {
  const System s =
      system("x' = u\ny' = v\nu' = -1 + A\nv' = -1 + B", "x = 0.531839\ny = 0.719474\nu = -0.180505\nv = 0.335246",
             "[constraint.A]\ngap = \"x - 0.082632*sin(2.906791*t)\"\nrestitution = 0.73565\n"
             "[constraint.B]\ngap = \"y - 0.090796*sin(2.755225*t)\"\nrestitution = 0.76916\n");
  std::vector<double> limits;
  const Trajectory run = s.run(7.5, 1e-12);
  for (const Event& event : run.events) {
    if (event.kind == chatter) limits.push_back(event.t);
    EXPECT_NE(event.kind, close) << story(run);
  }
  ASSERT_EQ(limits.size(), 2u) << story(run);
  EXPECT_NEAR(limits[0], 5.95048925151700005, 1e-10);
  EXPECT_NEAR(limits[1], 7.44189223047450989, 1e-10);
}

TEST(BouncingBall, StopsAtTheAccumulationIfAsked) {
  const System s = ball(0.8, 1, 0);
  RunOptions o = s.options(10);
  o.zeno_stop = true;
  const Trajectory run = s.run(o);
  EXPECT_EQ(run.end.why, Why::zeno);
  EXPECT_NEAR(run.end.t, std::sqrt(2 / 9.81) * 9, 1e-8);
}

TEST(BouncingBall, LooseToleranceFindsTheSameLimit) {
  for (const double tolerance : {1e-3, 1e-6, 1e-9}) {
    const Trajectory run = ball(0.8, 1, 0).run_both(5, tolerance);
    EXPECT_NEAR(changes(run).back().t, std::sqrt(2 / 9.81) * 9, 100 * tolerance) << story(run);
  }
}

TEST(BouncingBall, ElasticBallBouncesForEver) {
  const double first = std::sqrt(2 / 9.81);
  const Trajectory run = ball(1, 1, 0).run(first * 2000);
  EXPECT_EQ(count(run, impact), 1000);
  EXPECT_NEAR(run.end.state[0], 1, 1e-8);
  EXPECT_NEAR(run.end.state[1], 0, 1e-7);
}

TEST(BouncingBall, AlmostElasticBallIsNotCutOff) {
  // r = 0.999: 500 flights of 2 first r^k
  const double first = std::sqrt(2 / 9.81), r = 0.999;
  const double t = first + 2 * first * (r - std::pow(r, 501)) / (1 - r);
  const Trajectory run = ball(r, 1, 0).run(t + 0.01);
  EXPECT_EQ(count(run, impact), 501) << story(run);
  EXPECT_EQ(count(run, chatter), 0);
}

TEST(BouncingBall, RestitutionZeroIsOneClosing) {
  const Trajectory run = ball(0, 1, 0).run_both(2);
  expect_events(run, {{std::sqrt(2 / 9.81), close}}, 1e-12);
  EXPECT_NEAR(run.end.state[0], 0, 1e-14);
  EXPECT_EQ(run.end.mode.text(), "|c");
}

TEST(BouncingBall, StartOnTheFloorFalling) {
  // Bounces at once to v = 0.5; g = 10: flights 0.1, 0.05, ...
  const Trajectory run = ball(0.5, 0, -1, "q", 10).run_both(0.05);
  EXPECT_NEAR(run.end.state[0], 0.5 * 0.05 - 5 * 0.0025, 1e-13) << story(run);
  EXPECT_NEAR(run.end.state[1], 0, 1e-13);
}

TEST(BouncingBall, StartOnTheFloorFallingWithoutRestitution) {
  const Trajectory run = ball(0, 0, -1).run_both(1);
  EXPECT_EQ(run.end.mode.text(), "|c") << story(run);
  EXPECT_NEAR(run.end.state[0], 0, 1e-14);
  EXPECT_NEAR(run.end.state[1], 0, 1e-14);
}

TEST(BouncingBall, StartAtRestOnTheFloor) {
  const Trajectory run = ball(0.8, 0, 0).run_both(1);
  expect_events(run, {}, 0);
  EXPECT_EQ(run.end.mode.text(), "|c");
}

TEST(BouncingBall, StartOnTheFloorRising) {
  const Trajectory run = ball(0.8, 0, 9.81).run_both(1.5);
  expect_events(run, {}, 0);
  EXPECT_NEAR(run.end.state[0], 9.81 * 1.5 - 9.81 / 2 * 2.25, 1e-12);
}

TEST(BouncingBall, StartBelowTheFloorIsAModelError) {
  try {
    ball(0.8, -0.1, 0).run_both(1);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::model);
  }
}

TEST(BouncingBall, BackwardOverImpactsReturns) {
  const System s = ball(0.8, 1, 0);
  const Trajectory there = s.run_both(2.5);
  ASSERT_GE(count(there, impact), 3);
  RunOptions o = s.options(0);
  o.from = 2.5;
  o.initial = there.end.state;
  const Trajectory back = s.run(o);
  expect_end(back, {1, 0, 0, 0}, 1e-9);
  EXPECT_EQ(count(back, impact), count(there, impact));
}

TEST(BouncingBall, UnderASpringThatPresses) {
  // q'' = -1 - q: from the floor with v back after 2 atan(v).
  const System s = system("q' = v\nv' = -1 - q + N\nz' = 1", "q = 0\nv = 2\nz = 0",
                          "[constraint.N]\ngap = \"q\"\nrestitution = \"0.6\"");
  double limit = 0;
  for (double v = 2; v > 1e-18; v *= 0.6) limit += 2 * std::atan(v);
  const Trajectory run = s.run_both(10);
  EXPECT_NEAR(changes(run).back().t, limit, 1e-9) << story(run);
  expect_end(run, {0, 0, 10}, 1e-10);
}

TEST(BouncingBall, InATurningFieldLeavesBeforeTheAccumulation) {
  // q'' = -cos t: closed between impacts; at pi/2 the field turns and the sequence ends unfinished.
  const long double r = 0.95L;
  const System s =
      system("q' = v\nv' = -cos(t) + N", "q = 0\nv = 0.05", "[constraint.N]\ngap = \"q\"\nrestitution = \"0.95\"");
  std::vector<long double> times;
  long double t = 0, v = 0.05L;
  while (times.size() < 100) {
    const auto q = [&](long double u) { return (v + std::sin(t)) * (u - t) + std::cos(u) - std::cos(t); };
    long double probe = t + 1e-7L;
    while (probe < 4 && q(probe) > 0) probe += 2e-5L;
    if (probe >= 4) break;
    const long double hit = next_zero(q, t + 1e-7L, 2e-5L);
    v = -r * (v + std::sin(t) - std::sin(hit));
    t = hit;
    times.push_back(t);
  }
  ASSERT_GT(times.size(), 3u);
  ASSERT_LT(times.size(), 100u);
  const Trajectory run = s.run_both(4);
  ASSERT_EQ(changes(run).size(), times.size()) << story(run);
  for (size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(run.events[i].t, static_cast<double>(times[i]), 1e-10);
  EXPECT_EQ(count(run, chatter), 0);
}

// ---- moving tables ----------------------------------------------------------------------------------------------

TEST(Table, LiftsOffWhereItFallsFasterThanGravity) {
  // r = 0, table 0.2 sin(10 t): rides until sin(10 t) = g/20, flies, lands.
  const double g = 9.81, t0 = std::asin(g / 20) / 10;
  const System s = ball(0, 0, 2, "q - 0.2*sin(10*t)");
  const double q0 = 0.2 * std::sin(10 * t0), v0 = 2 * std::cos(10 * t0);
  const auto gap = [&](long double t) {
    return q0 + v0 * (t - t0) - g / 2 * (t - t0) * (t - t0) - 0.2L * std::sin(10 * t);
  };
  const double landing = static_cast<double>(next_zero(gap, t0 + 1e-3L, 1e-3L));
  const Trajectory run = s.run(landing + 1e-3);
  const auto found = changes(run);
  ASSERT_GE(found.size(), 2u) << story(run);
  EXPECT_EQ(kind_name(found[found.size() - 2].kind), "open") << story(run);
  EXPECT_NEAR(found[found.size() - 2].t, t0, 1e-11);
  EXPECT_NEAR(found.back().t, landing, 1e-11);
}

TEST(Table, HundredThousandImpactsWithoutAMiss) {
  // Every flight is checked by itself: it starts by the impact law, stays above the table and ends on it.
  const double g = 9.81, A = 0.12, w = 10, r = 0.9;
  const System s = ball(r, 1, 0, "q - 0.12*sin(10*t)");
  for (const double tolerance : {1e-6, 1e-9, 1e-12}) {
    const double accuracy = std::max(1e-9, 10 * tolerance);
    RunOptions o = s.options(1e9, tolerance);
    o.keep_events = false;
    o.max_events = 100'000;
    double t = 0, q = 1, v = 0;
    long wrong = 0, seen = 0;
    o.on_event = [&](const Event& e, const Arc&) {
      if (e.kind != impact) {  // rode along with the table
        t = e.t, q = e.state[0], v = e.state[1];
        return;
      }
      ++seen;
      const auto& before = *e.jumped;
      const double wall = A * w * std::cos(w * e.t), flight = e.t - t;
      if (e.before.text() == "|o") {
        for (int k = 1; k < 40; ++k) {
          const double tau = flight * k / 40;
          if (q + v * tau - g / 2 * tau * tau - A * std::sin(w * (t + tau)) < -accuracy) ++wrong;
        }
        wrong += std::abs(q + v * flight - g / 2 * flight * flight - before[0]) > accuracy;
        wrong += std::abs(v - g * flight - before[1]) > accuracy * 10;
      }
      wrong += std::abs(before[0] - A * std::sin(w * e.t)) > accuracy;
      wrong += std::abs(e.state[1] - wall + r * (before[1] - wall)) > accuracy * 10;
      t = e.t, q = e.state[0], v = e.state[1];
    };
    const Trajectory run = s.run(o);
    EXPECT_EQ(wrong, 0) << tolerance;
    EXPECT_GT(seen, 90'000) << tolerance << story(run);
  }
}

TEST(Table, BouncesInStep) {
  // Once per period: leaves with pi g/w at the phase where cos = (pi g/(A w^2)) (1-r)/(1+r); attracting.
  const double g = 9.81, A = 0.08, w = 10, r = 0.8, phase = std::acos(pi * g / (A * w * w) * (1 - r) / (1 + r));
  const System s = gallery_system("bouncing_table");
  RunOptions o = s.options(phase / w + 20 * 2 * pi / w);
  o.from = phase / w;
  o.initial = {A * std::sin(phase), pi * g / w};
  const Trajectory run = s.run(o);
  const auto hits = of_kind(run, impact);
  ASSERT_GE(hits.size(), 19u) << story(run);
  for (size_t k = 0; k < hits.size(); ++k) {
    EXPECT_NEAR(hits[k].t, phase / w + static_cast<double>(k + 1) * 2 * pi / w, 1e-9);
    EXPECT_NEAR(hits[k].state[1], pi * g / w, 1e-8);
  }
}

// ---- impact oscillator ------------------------------------------------------------------------------------------

TEST(ImpactOscillator, TenThousandImpactsAsInClosedForm) {
  const System s = gallery_system("impact_oscillator");
  const long double w = 2.6L, r = 0.8L;
  const Trajectory run = s.run_both(30000, 1e-13);
  const auto hits = of_kind(run, impact);
  ASSERT_GT(hits.size(), 10'000u) << story(run);
  long double t = 0, u = 2.1L, v = -0.3L;
  double worst = 0;
  for (size_t k = 0; k < 10'000; ++k) {
    const auto at = [&](long double x) { return u * std::cos(x - t) + v * std::sin(x - t); };
    const long double hit = next_zero([&](long double x) { return at(x) - std::sin(w * x); }, t + 1e-3L, 5e-3L);
    const long double speed = -u * std::sin(hit - t) + v * std::cos(hit - t), wall = w * std::cos(w * hit);
    u = at(hit);
    v = wall - r * (speed - wall);
    t = hit;
    worst = std::max(
        {worst, std::abs(hits[k].t - static_cast<double>(hit)), std::abs(hits[k].state[1] - static_cast<double>(v))});
    ASSERT_LT(worst, 1e-8) << "impact " << k;
  }
}

TEST(ImpactOscillator, EnergyChangesAtImpactsOnly) {
  const System s = gallery_system("impact_oscillator");
  const Trajectory run = s.run_both(2000, 1e-13);
  double energy = (2.1 * 2.1 + 0.3 * 0.3) / 2;
  for (const Event& e : run.events) {
    if (e.kind != impact) continue;
    const auto& b = *e.jumped;
    EXPECT_NEAR((b[0] * b[0] + b[1] * b[1]) / 2, energy, 1e-11);
    energy = (e.state[0] * e.state[0] + e.state[1] * e.state[1]) / 2;
    const double wall = 2.6 * std::cos(2.6 * e.t);
    EXPECT_NEAR(e.state[1] - wall, -0.8 * (b[1] - wall), 1e-11);
  }
}

TEST(ImpactOscillator, SettlesToEighteenSines) {
  // w = 2: impacts at multiples of pi, u = 18 sin t between them up to its sign.
  System s = gallery_system("impact_oscillator");
  s.set({{"w", 2}}).start({{"u", 1}, {"v", 0}});
  const Trajectory run = s.run_both(400);
  const auto hits = of_kind(run, impact);
  EXPECT_NEAR(std::remainder(hits.back().t, pi), 0, 1e-6);
  EXPECT_NEAR(hits.back().state[1], 18, 1e-6);
}

// ---- several bodies ---------------------------------------------------------------------------------------------

/// Balls on a line with the given masses; a gap between neighbours.
System line_of_balls(const std::vector<double>& mass, const std::vector<double>& x, const std::vector<double>& v,
                     double r) {
  std::string equations, initial, more;
  const size_t n = mass.size();
  for (size_t i = 0; i < n; ++i) {
    std::string force = "0";
    if (i > 0) force += fmt::format(" + N{}", i);
    if (i + 1 < n) force += fmt::format(" - N{}", i + 1);
    equations += fmt::format("x{}' = v{}\nv{}' = ({})/{:.17g}\n", i, i, i, force, mass[i]);
    initial += fmt::format("x{} = {:.17g}\nv{} = {:.17g}\n", i, x[i], i, v[i]);
    if (i > 0)
      more += fmt::format("[constraint.N{}]\ngap = \"x{} - x{}\"\nrestitution = \"{:.17g}\"\n", i, i, i - 1, r);
  }
  return system(equations, initial, more);
}

TEST(Balls, EqualElasticBallsExchangeVelocities) {
  // As if they went through each other: sorted free flights; one impact per overtaking.
  std::mt19937 random(7);
  std::uniform_real_distribution<> speed(-1, 1), gap(0.1, 1);
  for (int sample = 0; sample < 10; ++sample) {
    std::vector<double> x(10), v(10), end(10);
    double at = 0;
    for (int i = 0; i < 10; ++i)
      x[static_cast<size_t>(i)] = at += gap(random), v[static_cast<size_t>(i)] = speed(random);
    const double until = 20;
    for (size_t i = 0; i < 10; ++i) end[i] = x[i] + v[i] * until;
    long overtakings = 0;
    for (size_t i = 0; i < 10; ++i) {
      for (size_t j = i + 1; j < 10; ++j) overtakings += end[i] > end[j];
    }
    const Trajectory run = line_of_balls(std::vector<double>(10, 1.0), x, v, 1).run(until);
    std::sort(end.begin(), end.end());
    EXPECT_EQ(count(run, impact), overtakings) << story(run);
    for (size_t i = 0; i < 10; ++i) EXPECT_NEAR(run.end.state[2 * i], end[i], 1e-11);
  }
}

TEST(Balls, MomentumAndEnergyOfUnequalElasticBalls) {
  const std::vector<double> mass{1, 3, 0.2, 5, 0.7}, x{0, 1, 2, 3, 4}, v{2, -1, 0.5, -0.7, -3};
  const Trajectory run = line_of_balls(mass, x, v, 1).run_both(10);
  double p = 0, e = 0, p0 = 0, e0 = 0;
  for (size_t i = 0; i < mass.size(); ++i) {
    p0 += mass[i] * v[i], e0 += mass[i] * v[i] * v[i];
    p += mass[i] * run.end.state[2 * i + 1], e += mass[i] * run.end.state[2 * i + 1] * run.end.state[2 * i + 1];
  }
  EXPECT_GT(count(run, impact), 4);
  EXPECT_NEAR(p, p0, 1e-12);
  EXPECT_NEAR(e, e0, 1e-12);
}

TEST(Balls, InelasticBallsEndAsOne) {
  // r = 0: everything meets the slow heavy ball and sticks; the common velocity is momentum over mass.
  const Trajectory run = line_of_balls({1, 1, 10}, {0, 1, 2}, {3, 2, -1}, 0).run_both(10);
  for (const size_t i : {1u, 3u, 5u}) EXPECT_NEAR(run.end.state[i], (3 + 2 - 10) / 12.0, 1e-12) << story(run);
  EXPECT_NEAR(run.end.state[0], run.end.state[4], 1e-11);
}

TEST(Balls, CradleOfTheGallery) {
  const System s = gallery_system("newton_cradle");
  const double w = std::sqrt(9.81 / 0.2);
  const Trajectory run = s.run_both(2);
  const auto hits = of_kind(run, impact);
  EXPECT_EQ(hits.size(), 36u);
  EXPECT_NEAR(hits.front().t, (pi / 2 + std::asin(0.002)) / w, 1e-12);
  EXPECT_NEAR(hits.at(8).state[19], w * std::sqrt(0.05 * 0.05 - 9e-8), 1e-12);
  for (const Event& e : hits) {
    double before = 0, after = 0, energy = 0;
    for (size_t i = 0; i < 10; ++i) {
      before += (*e.jumped)[10 + i], after += e.state[10 + i];
      const double stretch = e.state[i] - 0.0201 * static_cast<double>(i);
      energy += (e.state[10 + i] * e.state[10 + i] + w * w * stretch * stretch) / 2;
    }
    EXPECT_NEAR(before, after, 1e-15);
    EXPECT_NEAR(energy, w * w * 0.05 * 0.05 / 2, 1e-13);
  }
}

TEST(Balls, StackFallsAndComesToRest) {
  // Three balls fall on the floor and on each other, r = 0.5: infinitely many impacts, then all lie still.
  const System s = system("a' = u\nu' = -10 + N1 - N2\nb' = v\nv' = -10 + N2 - N3\nc' = w\nw' = -10 + N3",
                          "a = 0.5\nu = 0\nb = 1.2\nv = 0\nc = 2\nw = 0",
                          "[constraint.N1]\ngap = \"a\"\nrestitution = \"0.5\"\n[constraint.N2]\ngap = \"b - a - "
                          "0.3\"\nrestitution = \"0.5\"\n"
                          "[constraint.N3]\ngap = \"c - b - 0.3\"\nrestitution = \"0.5\"");
  const Trajectory run = s.run(10);
  expect_end(run, {0, 0, 0.3, 0, 0.6, 0}, 1e-8);
  EXPECT_EQ(run.end.mode.text(), "|ccc") << story(run);
}

TEST(Balls, ABallOnARestingBall) {
  // The lower ball lies on the floor and takes part: it stays, the upper one leaves with r times its speed.
  const System s = system(
      "a' = u\nu' = -10 + N1 - N2\nb' = v\nv' = -10 + N2", "a = 0\nu = 0\nb = 1\nv = 0",
      "[constraint.N1]\ngap = \"a\"\nrestitution = \"0\"\n[constraint.N2]\ngap = \"b - a\"\nrestitution = \"0.5\"");
  const double t = std::sqrt(0.2);
  const Trajectory run = s.run(t + 0.1);
  EXPECT_NEAR(run.end.state[0], 0, 1e-13) << story(run);
  EXPECT_NEAR(run.end.state[1], 0, 1e-13);
  EXPECT_NEAR(run.end.state[3], 0.5 * 10 * t - 1, 1e-11);
}

TEST(Balls, IntoACornerBothWallsAtOnce) {
  const System s =
      system("x' = u\nu' = A\ny' = v\nv' = B", "x = 1\nu = -1\ny = 2\nv = -2",
             "[constraint.A]\ngap = \"x\"\nrestitution = \"1\"\n[constraint.B]\ngap = \"y\"\nrestitution = \"0.5\"");
  const Trajectory run = s.run_both(2);
  EXPECT_EQ(changes(run).size(), 1u) << story(run);
  expect_end(run, {1, 1, 1, 1}, 1e-12);
}

TEST(Balls, BetweenTwoStopsWithoutForce) {
  // Distance 1 from stop to stop, speed r^k: impacts at 1/2, 1/2 + 1/r, ...
  System s = gallery_system("end_stops");
  s.set({{"k", 0}, {"c", 0}, {"f0", 0}}).start({{"v", 1}});
  const Trajectory run = s.run_both(40);
  double t = 0.5;
  const auto hits = of_kind(run, impact);
  ASSERT_GE(hits.size(), 6u);
  double flight = 1;
  for (const Event& e : hits) {
    EXPECT_NEAR(e.t, t, 1e-11);
    flight /= 0.7;
    t += flight;
  }
}

TEST(Balls, SixImpactsPerPeriodBetweenEndStops) {
  for (const auto& [w, impacts] : {std::pair{0.5, 6}, std::pair{1.0, 2}}) {
    System s = gallery_system("end_stops");
    s.set({{"w", w}});
    RunOptions o = s.options(200 * 2 * pi / w, 1e-10);
    const Trajectory run = s.run(o);
    const auto hits = of_kind(run, impact);
    const double last = run.end.t - 10 * 2 * pi / w;
    const auto n = std::count_if(hits.begin(), hits.end(), [&](const Event& e) { return e.t > last + 1e-9; });
    EXPECT_NEAR(static_cast<double>(n), 10 * impacts, 1) << w;
  }
}

// ---- lasting contact and friction -------------------------------------------------------------------------------

TEST(Contact, OpensWhereItsForceWouldPull) {
  // q'' = -cos t + N: closed with N = cos t until pi/2, then q = cos t + t - pi/2.
  const System s =
      system("q' = v\nv' = -cos(t) + N", "q = 0\nv = 0", "[constraint.N]\ngap = \"q\"\nrestitution = \"0.5\"");
  const Trajectory run = s.run_both(4);
  expect_events(run, {{pi / 2, open}}, 1e-11);
  expect_end(run, {std::cos(4.0) + 4 - pi / 2, 1 - std::sin(4.0)}, 1e-11);
}

TEST(Contact, FrictionFollowsTheNormalForce) {
  // N = 3 on the ground; v' = 2 - N sign(v): from 1 to rest in 1, from -1 in 1/5.
  for (const auto& [v, t] : {std::pair{1.0, 1.0}, std::pair{-1.0, 0.2}}) {
    const System s =
        system("y' = w\nw' = -3 + N\nx' = v\nv' = 2 - N*sign(v)", fmt::format("y = 0\nw = 0\nx = 0\nv = {}", v),
               "[constraint.N]\ngap = \"y\"\nrestitution = \"0\"");
    const Trajectory run = s.run_both(3);
    expect_events(run, {{t, slide}}, 1e-12);
    EXPECT_NEAR(run.end.state[3], 0, 1e-14);
  }
}

TEST(Contact, NoFrictionInTheAir) {
  // Falls from 1 with g = 2 for t = 1; without normal force v = t until then.
  const System s = system("y' = w\nw' = -2 + N\nx' = v\nv' = 1 - N*sign(v)", "y = 1\nw = 0\nx = 0\nv = 0",
                          "[constraint.N]\ngap = \"y\"\nrestitution = \"0\"");
  const Trajectory run = s.run_both(1.5);
  const auto found = changes(run);
  ASSERT_FALSE(found.empty());
  EXPECT_NEAR(found[0].t, 1, 1e-12);
  ASSERT_TRUE(found[0].jumped) << story(run);
  EXPECT_NEAR((*found[0].jumped)[3], 1, 1e-12);
  EXPECT_NEAR(run.end.state[0], 0, 1e-13);
  EXPECT_NEAR(run.end.state[1], 0, 1e-13);
}

TEST(Contact, PartsTooSlowlyToBeSeenIsRest) {  // a block slides on the floor: x = u t + (1 - mu g) t^2/2
  for (const double v : {1e-18, 1e-16, 1e-14, 1e-13}) {
    const Trajectory run =
        system("x' = u\nq' = v\nu' = 1 - 0.3*N*sign(u)\nv' = -10 + N",
               fmt::format("x = 0\nq = 0\nu = 1\nv = {:.17g}", v), "[constraint.N]\ngap = \"q\"\nrestitution = 0.5")
            .run(0.4);
    ASSERT_EQ(run.end.why, Why::time) << v << ": " << run.end.message;
    EXPECT_NEAR(run.end.state[0], 0.4 - 2 * 0.4 * 0.4 / 2, 1e-12) << v;
    EXPECT_EQ(run.last.mode.constraints, "c") << v;
  }
}

TEST(Contact, PushedAgainstAWallByTheOtherSide) {
  // A multiplier that pulls towards its wall cannot hold: the run says so and ends.
  const System s = system("q' = v\nv' = -1 - N", "q = 1\nv = 0", "[constraint.N]\ngap = \"q\"\nrestitution = \"0.5\"");
  const Trajectory run = s.run_both(3);
  EXPECT_NE(run.end.why, Why::time) << story(run);
  EXPECT_NEAR(run.end.t, std::sqrt(2.0), 1e-9);
  EXPECT_FALSE(run.end.message.empty());
}

// Balls that rub on tables of their own do what each does alone, however many others rest or are hit beside it.
TEST(Contact, OfBallsApartIsThatOfEachAlone) {
  const auto balls = [](int first, int last) {
    std::string equations, initial, more;
    for (int i = first; i < last; ++i) {
      equations += fmt::format("y{0}' = w{0}\nw{0}' = -1 + N{0}\nv{0}' = 0.1*sin(t) - 0.3*N{0}*sign(v{0})\n", i);
      initial += fmt::format("y{0} = {1}\nw{0} = 0\nv{0} = {2}\n", i, 0.1 + 0.13 * i, 0.4 - 0.15 * i);
      more += fmt::format("[constraint.N{0}]\ngap = \"y{0} - 0.02*sin({1}*t)\"\nrestitution = {2}\n", i, 2 + 0.4 * i,
                          0.3 + 0.05 * i);
    }
    return system(equations, initial, more);
  };
  const int n = 8;
  const Trajectory all = balls(0, n).run(5);
  ASSERT_EQ(all.end.why, Why::time) << all.end.message;
  for (int i = 0; i < n; ++i) {
    const Trajectory one = balls(i, i + 1).run(5);
    for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(all.end.state[3 * at(i) + k], one.end.state[k], 1e-9) << i << ", " << k;
  }
}

// ---- diodes -----------------------------------------------------------------------------------------------------

TEST(Diode, CurrentStopsAndStartsAgain) {
  // i' = sin t - 0.2 + d, i >= 0: blocks until sin t = 0.2, conducts until the integral is used up.
  const System s = system("i' = sin(t) - 0.2 + d", "i = 0", "[constraint.d]\ngap = \"i\"");
  const double t0 = std::asin(0.2);
  const auto current = [&](long double t) {
    return std::cos(static_cast<long double>(t0)) - std::cos(t) - 0.2L * (t - t0);
  };
  const double t1 = static_cast<double>(next_zero(current, t0 + 0.01L, 0.01L));
  const Trajectory run = s.run(t0 + 2 * pi + 0.5);
  expect_events(run, {{t0, open}, {t1, close}, {t0 + 2 * pi, open}}, 1e-11);
}

TEST(Diode, RectifierOpensAndClosesWhereTheVoltagesAreEqual) {
  const System s = gallery_system("rectifier");
  const Trajectory run = s.run(0.5);
  ASSERT_GT(changes(run).size(), 50u);
  const Event* opened = nullptr;
  for (const Event& e : changes(run)) {
    EXPECT_NEAR(e.state[0], std::abs(17 * std::sin(2 * pi * 50 * e.t)), 1e-9);
    if (e.kind == open) {
      opened = &e;
    } else if (opened) {
      EXPECT_NEAR(e.state[0], opened->state[0] * std::exp(-(e.t - opened->t) / 0.1), 1e-10);
    }
  }
}

TEST(Diode, RectifierReachesItsSteadyState) {
  const System s = gallery_system("rectifier");
  RunOptions o = s.options(1, 1e-12);
  o.keep_pieces = true;
  const Trajectory run = s.run(o);
  double low = 1e9, high = 0, sum = 0;
  constexpr int n = 20'000;
  for (int k = 0; k < n; ++k) {
    const double v = run(0.99 + 0.01 * k / n)[0];
    low = std::min(low, v), high = std::max(high, v), sum += v / n;
  }
  EXPECT_NEAR(run(0.99)[0], 15.739551, 1e-6);
  // Runge-Kutta with 20000 steps per half period, written apart from saltus
  EXPECT_NEAR(low, 15.190481627, 1e-6);
  EXPECT_NEAR(high, 16.418765710, 1e-6);
  EXPECT_NEAR(sum, 15.809410335, 1e-6);
}

/// Capacitors in a row behind diodes with a resistance r, each with one of its own, c.
std::string ladder(int n, double c, bool diodes) {
  std::string equations, rest, initial;
  const auto before = [](int i) { return i == 1 ? std::string("sin(t)") : fmt::format("v{}", i - 1); };
  for (int i = 1; i <= n; ++i) {
    const auto current = [&](int k) {
      return diodes ? fmt::format("D{}", k) : fmt::format("max({} - v{}, 0)/0.1", before(k), k);
    };
    equations += fmt::format("  v{0}' = {1} - 0.05*v{0}", i, current(i)) + (i < n ? " - " + current(i + 1) : "") + "\n";
    initial += fmt::format("v{} = {:.17g}\n", i, 0.02 * std::sin(5.0 * i));
    if (!diodes) continue;
    rest += fmt::format("[constraint.D{0}]\ngap = \"v{0} - {1} + 0.1*D{0}", i, before(i));
    if (c > 0) rest += fmt::format(" + {}*D{}", i > 1 ? 2 * c : c, i);
    if (c > 0 && i < n) rest += fmt::format(" - {}*D{}", c, i + 1);
    if (c > 0 && i > 1) rest += fmt::format(" - {}*D{}", c, i - 1);
    rest += "\"\n";
  }
  return "equations = \"\"\"\n" + equations + "\"\"\"\n" + rest + "[initial]\n" + initial;
}

// Each diode alone is the positive part of a current; kinks of switches have nothing to do with multipliers.
TEST(Diode, LaddersMoveAsPositivePartsOfTheirCurrents) {
  for (const int n : {7, 24, 60}) {
    const System a(read_model_text(ladder(n, 0, true))), b(read_model_text(ladder(n, 0, false)));
    const Trajectory with = a.run(10), without = b.run(10);
    ASSERT_EQ(with.end.why, Why::time) << with.end.message;
    for (size_t i = 0; i < at(n); ++i) EXPECT_NEAR(with.end.state[i], without.end.state[i], 1e-9) << i << " of " << n;
    EXPECT_GT(with.events.size(), at(n) / 3);
  }
}

// The current between two capacitors is (a - b)/r exp(-2 t/r): it becomes less than rounding and never stops.
TEST(Diode, CurrentsThatDieOutDoNotStop) {
  for (int k = 0; k < 20; ++k) {
    const double a = 0.9 - 0.01 * k, b = 0.1 + 0.003 * k, leak = 0.013 * k;
    const System s = system(fmt::format("a' = -D - {0}*a\nb' = D - {0}*b", leak),
                            fmt::format("a = {:.17g}\nb = {:.17g}", a, b), "[constraint.D]\ngap = \"b - a + 0.1*D\"");
    const Trajectory run = s.run(10);
    EXPECT_EQ(run.cost.events, 0) << k;
    for (const size_t i : {0, 1}) EXPECT_NEAR(run.end.state[i], 0.5 * (a + b) * std::exp(-10 * leak), 1e-10);
  }
}

// Currents that feel their neighbours: as solve_ivp of SciPy has them (DOP853, rtol 1e-12, steps of 0.002), with the
// complementarity problem solved at each evaluation.
TEST(Diode, LaddersWithResistancesInCommonAreWhereAnotherProgramHasThem) {
  const System s(read_model_text(ladder(12, 0.05, true)));
  const Trajectory run = s.run(10);
  ASSERT_EQ(run.end.why, Why::time) << run.end.message;
  const std::vector<double> v{0.4983725464, 0.4923869979, 0.4809256540, 0.4649432170, 0.4457240279, 0.4247399141,
                              0.4035068398, 0.3834612670, 0.3658684017, 0.3517650297, 0.3419320068, 0.3368869971};
  for (size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(run.end.state[i], v[i], 1e-9) << i;
}

TEST(Diode, BothFormsOfTheResonantConverterAgree) {
  for (const double load : {3.0, 33.0}) {  // with and without sliding on vr = 0
    System a = gallery_system("prc"), b = gallery_system("prc_diodes");
    a.set({{"Rl", load}}), b.set({{"Rl", load}});
    const Trajectory ra = a.run(1e-3), rb = b.run(1e-3);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(ra.end.state[i], rb.end.state[i], 1e-9) << story(ra) << story(rb);
  }
}

// Two gaps reach zero at a place that rounding knows to 1e-16 s while currents change within 1e-6 s: each diode closes
// and opens in turn, and nothing else happens.
TEST(Diode, EveryEventOfAMultiplierClosesOrOpensOne) {
  for (const bool stiff : {false, true}) {
    const System multiplier = gallery_system("voltage_multiplier");
    RunOptions options = multiplier.options(0.75, 1e-10);
    (stiff ? options.stiff : options.turns_stiff) = true;
    const Trajectory run = multiplier.run(options);
    const std::vector<Event> events = changes(run);
    EXPECT_GT(events.size(), 250u);
    std::string mode = run.start_mode.constraints;
    for (const Event& e : events) {
      EXPECT_TRUE(e.kind == close || e.kind == open) << e.t << " " << kind_name(e.kind);
      EXPECT_EQ(e.before.constraints, mode) << e.t;
      EXPECT_NE(e.after.constraints, mode) << e.t;
      mode = e.after.constraints;
    }
  }
}

// ---- jumps ------------------------------------------------------------------------------------------------------

TEST(Jumps, ThermostatHasItsPeriod) {
  const Trajectory run = gallery_system("thermostat").run_both(300);
  const auto found = of_kind(run, jump);
  ASSERT_GE(found.size(), 20u);
  EXPECT_NEAR(found[0].t, 60 * std::log(20.0 / 14), 1e-10);
  for (size_t i = 1; i < found.size(); ++i)
    EXPECT_NEAR(found[i].t - found[i - 1].t, 60 * std::log(i % 2 ? 11.0 / 9 : 8.0 / 7), 1e-9);
}

TEST(Jumps, NeuronFiresRegularly) {
  const Trajectory run = gallery_system("integrate_and_fire").run_both(1000);
  const auto found = of_kind(run, jump);
  EXPECT_EQ(found.size(), 72u);
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i].t, 10 * std::log(4.0) * static_cast<double>(i + 1), 1e-9);
  System silent = gallery_system("integrate_and_fire");
  silent.set({{"I", 1.4}});
  EXPECT_EQ(count(silent.run_both(1000), jump), 0);
}

TEST(Jumps, RimlessWheelFindsItsGait) {
  const Trajectory run = gallery_system("rimless_wheel").run_both(60, 1e-13);
  const auto found = of_kind(run, jump);
  ASSERT_GE(found.size(), 50u);
  const double steady = 1 / std::tan(pi / 4) * std::sqrt(4 * 9.81 * std::sin(pi / 8) * std::sin(0.08));
  EXPECT_NEAR(found.back().state[1], steady, 1e-10);
  EXPECT_NEAR(found.back().t - found[found.size() - 2].t, 1.034549811423, 1e-10);
  for (size_t i = 0; i < 6; ++i) {  // the square of the speed converges with 1/2, by the energy of a step
    const double a = found[i].state[1], b = found[i + 1].state[1];
    EXPECT_NEAR((b * b - steady * steady) / (a * a - steady * steady), 0.5, 1e-8);
  }
}

TEST(Jumps, LoopWithoutTimeEndsWithAMessage) {
  const System s = system("p' = 1\nq' = 0", "p = 0\nq = 0",
                          "[jump.a]\non = \"p - 0.5\"\ndirection = \"rising\"\nset = { p = \"0\", q = \"1\" }\n"
                          "[jump.b]\non = \"q - 0.5\"\ndirection = \"rising\"\nset = { q = \"0\", p = \"1\" }");
  const Trajectory run = s.run_both(3);
  EXPECT_NE(run.end.why, Why::time) << story(run);
  EXPECT_NEAR(run.end.t, 0.5, 1e-9);
  EXPECT_FALSE(run.end.message.empty());
}

TEST(Jumps, JumpsDueAtOnceHappenOneAfterTheOther) {
  // Both are due at t = 1 and stay so: a sets x to y = 11, then b sets y to the new x.
  const System s = system("x' = 1\ny' = 1", "x = 0\ny = 10",
                          "[jump.a]\non = \"x - 1\"\ndirection = \"rising\"\nset = { x = \"y\" }\n"
                          "[jump.b]\non = \"y - 11\"\ndirection = \"rising\"\nset = { y = \"x\" }");
  const Trajectory run = s.run_both(1.5);
  expect_end(run, {11.5, 11.5}, 1e-12);
  EXPECT_EQ(of_kind(run, EventKind::jump).size(), 2u);
}

TEST(Jumps, AJumpThatTriggersAnother) {
  // At t = 1 x jumps to 5, which lifts c over 3: y jumps too, at the same instant.
  const System s = system("x' = 1\ny' = 0", "x = 0\ny = 0",
                          "[jump.a]\non = \"x - 1\"\ndirection = \"rising\"\nset = { x = \"5\" }\n"
                          "[jump.b]\non = \"x - 3\"\ndirection = \"rising\"\nset = { y = \"7\" }");
  const Trajectory run = s.run_both(2);
  expect_end(run, {6, 7}, 1e-12);
}

TEST(Jumps, OverASwitchingSurface) {
  // x falls from 1, is thrown from -1 to 3: the switch flips there without being crossed by the flow.
  const System s = system("x' = -1\nz' = sign(x)", "x = 1\nz = 0",
                          "[jump.up]\non = \"x + 1\"\ndirection = \"falling\"\nset = { x = \"3\" }");
  const Trajectory run = s.run_both(3);
  expect_end(run, {2, 1 - 1 + 1}, 1e-12);
}

TEST(Jumps, OntoASwitchingSurface) {
  const System s = system("x' = 0.5 - sign(x)\ny' = 1\nz' = sign(x)", "x = 5\ny = 0\nz = 0",
                          "[jump.down]\non = \"y - 1\"\ndirection = \"rising\"\nset = { x = \"0\" }");
  const Trajectory run = s.run_both(3);
  expect_end(run, {0, 3, 1 + 0.5 * 2}, 1e-12);
  EXPECT_EQ(run.end.mode.text(), "0") << story(run);
}

TEST(Jumps, ComparatorAgainstARampThatResets) {
  // On while mod(t, 1) < 0.3: on at every wrap, off 0.3 later.
  const System s = system("x' = 0\nz' = step(x - mod(t, 1))", "x = 0.3\nz = 0");
  const Trajectory run = s.run_both(100);
  EXPECT_NEAR(run.end.state[1], 30, 1e-9);
  EXPECT_NEAR(static_cast<double>(count(run, cross)), 200, 1) << story(run);
}

// A ball between walls 1 apart, thrown back faster each time: it meets them at t = 1/2 + 1 + 1/r + 1/r^2 + .., its
// speed grows by r each time. Backward in time every restitution below 1 does so.
TEST(Walls, ThatThrowABallAreMetFasterAndFasterUntilItsSpeedHasNoBound) {
  System s = system("x' = v\nv' = A - B", "x = 0.5\nv = 1",
                    "[parameters]\nr = 1.25\n[constraint.A]\ngap = \"x\"\nrestitution = \"r\"\n"
                    "[constraint.B]\ngap = \"1 - x\"\nrestitution = \"r\"\n");
  for (const double direction : {1.0, -1.0}) {
    const Trajectory run = s.set({{"r", direction > 0 ? 1.25 : 0.8}}).run(10 * direction);
    EXPECT_EQ(run.end.why, Why::diverged) << story(run);
    EXPECT_NEAR(run.end.t, 4.5 * direction, 1e-6) << story(run);
    EXPECT_GT(std::abs(run.end.state[1]), 1e6) << story(run);
    EXPECT_EQ(run.end.mode.constraints, "oo") << story(run);
  }
}

// ---- corners --------------------------------------------------------------------------------------------------------

// A point mass in a corner of 60 degrees: normals (0, 1) and (sqrt(3)/2, -1/2). It comes down along the second wall,
// which it leaves with 1/2: the floor throws it back, then the wall, one after the other.
TEST(Corners, WallThatIsLeftIsHitNext) {
  const double root = std::sqrt(3.0) / 2;
  for (const double r : {1.0, 0.8}) {
    const System s = system("x' = u\ny' = v\nu' = sqrt(3)/2*B\nv' = A - B/2", "x = 0\ny = 0\nu = 0\nv = -1",
                            fmt::format("[constraint.A]\ngap = \"y\"\nrestitution = 1\n"
                                        "[constraint.B]\ngap = \"sqrt(3)/2*x - y/2\"\nrestitution = {}\n",
                                        r));
    const double u = (1 + r) / 2 * root, v = 1 - (1 + r) / 4;
    const Trajectory run = s.run(2, 1e-12);
    expect_end(run, {2 * u, 2 * v, u, v}, 1e-12);
    EXPECT_TRUE(run.messages.empty()) << run.messages[0];
  }
}

// Walls that face each other without room between them stop what moves across, with any restitution.
TEST(Corners, BetweenWallsThatFaceEachOtherNothingMoves) {
  const System s = system("x' = u\ny' = v\nu' = 0\nv' = A - B", "x = 0\ny = 0\nu = 1\nv = -0.7",
                          "[constraint.A]\ngap = \"0.661*y\"\nrestitution = 0.5\n"
                          "[constraint.B]\ngap = \"-0.998*y\"\nrestitution = 0\n");
  expect_end(s.run(2, 1e-12), {2, 0, 1, 0}, 1e-12);
}

// Two springs rest at the corner. The hit at t = 2.71 stops both directions: there it stays, whatever rounding leaves.
/// A body on springs between two walls without rebound, from their corner.
System body_in_corner() {
  return system(
      "q' = v\np' = w\nv' = 1.1046*(-1.542*q + 0.390*A - 0.638*B) - 0.0232*(-1.304*p + 0.575*B)\n"
      "w' = -0.0232*(-1.542*q + 0.390*A - 0.638*B) + 1.0353*(-1.304*p + 0.575*B)",
      "q = 0\np = 0\nv = 0.03\nw = 0.45",
      "[constraint.A]\ngap = \"0.390*q\"\nrestitution = 0\n"
      "[constraint.B]\ngap = \"-0.638*q + 0.575*p\"\nrestitution = 0\n");
}

TEST(Corners, RestWithoutForceIsUnique) { expect_end(body_in_corner().run(8, 1e-10), {0, 0, 0, 0}, 1e-15); }

// All that is left of such falls is rounding: a quarter of them ended as `nonunique`, or went on bouncing at 1e-18.
TEST(Corners, FallsIntoACornerRestThere) {
  const System s = body_in_corner();
  for (int i = 0; i < 80; ++i) {
    RunOptions o = s.options(8, 1e-10);
    o.initial[2] = 0.5 * std::sin(1.0 + 7 * i);
    o.initial[3] = 0.35 + 0.25 * std::sin(2.0 + 3 * i);
    expect_end(s.run(o), {0, 0, 0, 0}, 0);
  }
}

/// Masses on springs (inverse masses S, stiffness k on each coordinate) between frictionless walls: states q, then v.
struct Springs {
  std::vector<std::vector<double>> S, normals;
  std::vector<double> k, room, restitution, start;

  System made() const {
    const size_t n = k.size();
    std::string equations, initial, walls;
    for (size_t i = 0; i < n; ++i) equations += fmt::format("q{0}' = v{0}\n", i);
    for (size_t i = 0; i < n; ++i) {
      equations += fmt::format("v{}' = 0", i);
      for (size_t j = 0; j < n; ++j) {
        equations += fmt::format(" + {}*(-{}*q{}", S[i][j], k[j], j);
        for (size_t c = 0; c < normals.size(); ++c) equations += fmt::format(" + {}*N{}", normals[c][j], c);
        equations += ")";
      }
      equations += "\n";
      initial += fmt::format("q{0} = 0\nv{0} = {1}\n", i, start[i]);
    }
    for (size_t c = 0; c < normals.size(); ++c) {
      walls += fmt::format("[constraint.N{}]\nrestitution = {}\ngap = \"{}", c, restitution[c], room[c]);
      for (size_t j = 0; j < n; ++j) walls += fmt::format(" + {}*q{}", normals[c][j], j);
      walls += "\"\n";
    }
    return system(equations, initial, walls);
  }
  double energy(std::span<const double> x) const {
    const Index n = ix(k.size());
    Mat inverse_mass(n, n);
    Vec v(n);
    double sum = 0;
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < n; ++j) inverse_mass(i, j) = S[ux(i)][ux(j)];
      v[i] = x[ux(n + i)];
      sum += k[ux(i)] * x[ux(i)] * x[ux(i)] / 2;
    }
    return sum + v.dot(Lu(inverse_mass).solve(v)) / 2;
  }
};

// Restitutions up to 1 take energy or leave it: at corners, on edges, and where many hits end in one.
TEST(Corners, NoImpactAddsEnergy) {
  const std::vector<Springs> all{
      {.S = {{1.11, -0.1278}, {-0.1278, 1.3056}},
       .normals = {{-0.776, -0.541}, {0.572, 0.355}},
       .k = {1.646, 0.863},
       .room = {0, 0},
       .restitution = {1, 0.8},
       .start = {0.8, -0.71}},
      {.S = {{0.8336, 0.0813, -0.4775}, {0.0813, 1.0159, 0.9002}, {-0.4775, 0.9002, 2.4015}},
       .normals = {{0.504, 0.823, -0.166}, {-0.003, -0.104, -0.937}, {-0.244, -0.263, 0.084}},
       .k = {1.583, 1.002, 1.643},
       .room = {0, 0, 0},
       .restitution = {0.5, 0.5, 0.8},
       .start = {0.75, 0.44, -0.78}},
      {.S = {{0.8409, 0.3631, 0.6098}, {0.3631, 1.1749, -0.338}, {0.6098, -0.338, 2.0698}},
       .normals = {{0.571, 0.0, 0.489}, {0.458, 0.364, -0.807}},
       .k = {0.687, 0.961, 1.585},
       .room = {0.005, 0.0},
       .restitution = {0.5, 0.5},
       .start = {-0.23, 0.9, 0.37}}};
  for (const Springs& springs : all) {
    const Trajectory run = springs.made().run(8, 1e-10);
    EXPECT_EQ(run.end.why, Why::time) << story(run);
    std::vector<double> start(springs.k.size(), 0.0);
    start.insert(start.end(), springs.start.begin(), springs.start.end());
    const double first = springs.energy(start);
    double before = first;
    for (const Event& event : run.events) {
      const double now = springs.energy(event.state);
      EXPECT_LE(now, before * (1 + 1e-9) + 1e-5 * first) << event.t << "\n" << story(run);
      before = now;
    }
  }
}

// A ball between the floor and a disc that stands on it, by events in 80 digits (mpmath): with r = 0.8 it is thrown
// back, with 0.5 its hits accumulate where the walls meet, and it passes between them: their normals are vertical
// there.
TEST(Corners, ABallPassesTheCuspBetweenFloorAndDiscOrIsThrownBack) {
  for (const auto& [r, x, v] :
       {std::array{0.5, -2.9060653849142386, -0.82233795290964561}, {0.8, 2.6164501857018376, 0.60660067054198883}}) {
    const System cusp = system("x' = u\ny' = v\nu' = D*x/hypot(x, y - 1)\nv' = -1 + F + D*(y - 1)/hypot(x, y - 1)",
                               "x = 2\ny = 0.3\nu = -1.5\nv = 0",
                               fmt::format("[constraint.F]\ngap = \"y\"\nrestitution = {0}\n"
                                           "[constraint.D]\ngap = \"hypot(x, y - 1) - 1\"\nrestitution = {0}",
                                           r));
    RunOptions by_steps = cusp.options(5, 1e-9);
    by_steps.step.emplace();
    for (const Trajectory& run : {cusp.run(5), cusp.run(by_steps)}) {
      EXPECT_EQ(run.end.why, Why::time) << story(run);
      EXPECT_NEAR(run.end.state[0], x, 1e-8) << story(run);
      EXPECT_NEAR(run.end.state[2], v, 1e-8) << story(run);
    }
  }
}

// Two balls, one on the other, come to rest on the floor: by hits that become too short for steps to be looked along.
TEST(Corners, ABallOnABallComesToRestByTimeStepsToo) {
  const System balls = system("x1' = v1\nx2' = v2\nv1' = -9.81 + N - C/1.25\nv2' = -9.81 + C/1.51",
                              "x1 = 0.421\nx2 = 1.419\nv1 = 0\nv2 = 0",
                              "[constraint.N]\ngap = \"x1\"\nrestitution = 0.9\n"
                              "[constraint.C]\ngap = \"x2 - x1 - 0.1\"\nrestitution = 0.5\n");
  RunOptions by_steps = balls.options(3, 1e-9);
  by_steps.step.emplace();
  expect_end(balls.run(by_steps), {0, 0.1, 0, 0}, 1e-9);
}

// A ball that comes to rest on a slope with friction, steeper with x, which holds it there: tan 0.2 > 0.1. What is
// found from several guesses moves it alike, by rounding of forces that cancel.
TEST(Contact, RestOnACurvedFloorWithFrictionIsUnique) {
  const System ball = system(
      "x' = vx\ny' = vy\nvx' = -N*s/c - 0.2*N*sign(vt)/c\nvy' = -9.81 + N/c - 0.2*N*sign(vt)*s/c\n"
      "vt = (vx + s*vy)/c\ns = 0.3*x - 0.1\nc = sqrt(1 + s^2)",
      "x = 0\ny = 1\nvx = 0.5\nvy = 0", "[constraint.N]\ngap = \"y - 0.15*x^2 + 0.1*x\"\nrestitution = 0.7\n");
  RunOptions options = ball.options(6, 1e-10);
  for (const bool steps : {false, true}) {
    if (steps) options.step.emplace();
    const Trajectory run = ball.run(options);
    EXPECT_EQ(run.messages, std::vector<std::string>{});
    EXPECT_EQ(run.end.why, Why::time);
    for (const char* v : {"vx", "vy"}) EXPECT_NEAR(run.end.state[at(ball.state(v))], 0, 1e-9) << v;
  }
}

}  // namespace
}  // namespace saltus::physics
