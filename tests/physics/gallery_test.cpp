// Every fact of SYSTEMS.md and of the gallery's READMEs that a single trajectory can show, from
// models/<name>/model.toml.

#include <gtest/gtest.h>

#include "physics.hpp"

namespace saltus::physics {
namespace {

using enum EventKind;

bool is_on(const Event& e, std::string_view name) { return std::find(e.on.begin(), e.on.end(), name) != e.on.end(); }

std::vector<Event> points(const Trajectory& run, std::string_view section_name) {
  std::vector<Event> found;
  for (const Event& e : run.events) {
    if (e.kind == section && is_on(e, section_name)) found.push_back(e);
  }
  return found;
}

/// Time between the last two points of a section.
double last_period(const Trajectory& run, std::string_view section_name) {
  const auto found = points(run, section_name);
  if (found.size() < 2) return 0;
  return found.back().t - found[found.size() - 2].t;
}

/// Events between two times.
std::vector<Event> between(const Trajectory& run, double from, double to) {
  std::vector<Event> found;
  for (const Event& e : changes(run)) {
    if (e.t > from && e.t <= to) found.push_back(e);
  }
  return found;
}

long leaves(const std::vector<Event>& events) {
  return std::count_if(events.begin(), events.end(), [](const Event& e) { return e.kind == leave; });
}

// ---- dry friction -----------------------------------------------------------------------------------------------

TEST(DryFriction, TenPeriods) {
  const Trajectory run = gallery_system("dry_friction").run(60 * pi, 1e-13);
  EXPECT_EQ(changes(run).size(), 42u);
  expect_end(run, {-0.72126835016760790, 0.35702730004886243}, 1e-11);
}

TEST(DryFriction, PeriodicOrbitReturns) {
  System s = gallery_system("dry_friction");
  s.start({{"y", -0.72126788320629290}, {"v", 0.35703024338585365}});
  expect_end(s.run(6 * pi, 1e-13), {-0.72126788320629290, 0.35703024338585365}, 1e-12);
}

TEST(DryFriction, SticksZeroTwoFourTimesPerPeriod) {
  for (const auto& [inverse, sticks] :
       {std::pair{0.5, 0}, {1.85, 0}, {1.88, 2}, {3.0, 2}, {4.8, 2}, {4.85, 4}, {6.0, 4}}) {
    System s = gallery_system("dry_friction");
    s.set({{"omega", 1 / inverse}});
    const double period = 2 * pi * inverse;
    const Trajectory run = s.run(200.25 * period);
    EXPECT_EQ(leaves(between(run, 199.25 * period, 200.25 * period)), sticks) << inverse;
  }
}

TEST(DryFriction, GrowsAtResonance) {
  System s = gallery_system("dry_friction");
  s.set({{"omega", 1}});
  // The drive feeds 1/2 - 2F/pi per radian into the amplitude.
  const double a = std::abs(s.run(400 * pi).end.state[0]), b = std::abs(s.run(800 * pi).end.state[0]);
  EXPECT_NEAR((b - a) / (400 * pi), 0.5 - 0.8 / pi, 1e-3);
}

// ---- Piiroinen & Kuznetsov --------------------------------------------------------------------------------------

TEST(RelayFeedback, LimitCycle) {
  const Trajectory run = gallery_system("relay_feedback").run(120, 1e-13);
  const double period = last_period(run, "cycle");
  EXPECT_NEAR(period, 5.961836942613703, 1e-10);
  const auto cycle = between(run, 113, 113 + period);
  EXPECT_EQ(cycle.size(), 28u);
  EXPECT_EQ(leaves(cycle), 14);
}

TEST(DrillString, PeriodsAndSticking) {
  struct Fact {
    double u, period;
    long sticks;
  };
  for (const Fact& fact : {Fact{1, 4.167361103585605, 0}, Fact{2, 4.240705218081186, 1}}) {
    System s = gallery_system("drill_string");
    s.set({{"bl", 0}, {"u", fact.u}});
    const Trajectory run = s.run(400, 1e-13);
    EXPECT_NEAR(last_period(run, "twisted"), fact.period, 1e-10) << fact.u;
    EXPECT_EQ(leaves(between(run, 400 - fact.period, 400)), fact.sticks);
    for (const Event& e : between(run, 0, 400)) EXPECT_NE(e.after.switches[0], '0');
  }
}

TEST(DrillString, BeginsToStickAtGrazing) {
  for (const auto& [u, sticks] : {std::pair{1.2392, 0}, std::pair{1.2394, 1}}) {
    System s = gallery_system("drill_string");
    s.set({{"bl", 0}, {"u", u}});
    const Trajectory run = s.run(1000, 1e-13);
    EXPECT_EQ(leaves(between(run, 1000 - 4.3, 1000)) > 0, sticks > 0) << u;
  }
}

// ---- Leine ------------------------------------------------------------------------------------------------------

TEST(BeltStribeck, PeriodStickAndReach) {
  const Trajectory run = gallery_system("belt_stribeck").run(100, 1e-13);
  EXPECT_NEAR(last_period(run, "farthest"), 12.0010312948306, 1e-10);
  EXPECT_NEAR(points(run, "farthest").back().state[0], 1.13394467644166, 1e-11);
  double since = 0, stuck = 0;
  for (const Event& e : changes(run)) {
    if (e.kind == slide) since = e.t;
    if (e.kind == leave && since > 0) stuck = e.t - since;
  }
  EXPECT_NEAR(stuck, 7.70503176935042, 1e-10);
}

TEST(BeltStatic, Period) {
  const Trajectory run = gallery_system("belt_static").run(100, 1e-13);
  EXPECT_NEAR(last_period(run, "farthest"), 10 + pi + 2 * std::atan(0.2), 1e-11);
  const auto found = changes(run);
  for (const Event& e : found) {
    if (e.kind == leave) {
      EXPECT_NEAR(e.state[0], 2, 1e-11);
    }
  }
}

TEST(BeltStatic, CycleVanishesAboveItsSpeed) {
  for (const auto& [speed, exists] : {std::pair{1.09, true}, std::pair{1.105, false}}) {
    System s = gallery_system("belt_static");
    s.set({{"c", 0.1}, {"vdr", speed}});
    s.start({{"x", 0}, {"v", speed}});
    const Trajectory run = s.run(600);
    EXPECT_EQ(leaves(between(run, 500, 600)) > 0, exists) << speed;
    if (!exists) {
      EXPECT_NEAR(run.end.state[0], 1, 1e-9);
    }
  }
}

TEST(BeltSmooth, PeriodsApproachTheSwitchedOne) {
  for (const auto& [steep, period] : {std::pair{1e2, 9.71}, std::pair{1e3, 11.30}}) {
    System s = gallery_system("belt_smooth");
    s.set({{"eps", steep}});
    EXPECT_NEAR(last_period(s.run(100, 1e-9), "farthest"), period, 0.006) << steep;
  }
}

TEST(Support, ContactOfThePeriodicOrbit) {
  const Trajectory run = gallery_system("support").run(600, 1e-13);
  // Contact begins where x rises through 0 and ends where kf x + cf v falls through 0.
  double begin = 0, speed = 0, length = 0;
  for (const Event& e : changes(run)) {
    const double x = e.state[0], v = e.state[1];
    if (std::abs(x) < 1e-9 && v > 0) begin = e.t, speed = v;
    if (std::abs(4 * x + 0.5 * v) < 1e-9 && v < 0 && begin > 0) length = e.t - begin;
  }
  EXPECT_NEAR(std::fmod(begin, pi), 0.996248592233578, 1e-10);
  EXPECT_NEAR(speed, 0.929859179319216, 1e-10);
  EXPECT_NEAR(length, 0.911179449135814, 1e-10);
}

TEST(Kinks, FixedPoints) {
  System fold = gallery_system("kink_fold");
  fold.set({{"mu", 0.7}}).start({{"x", 0.3}});
  EXPECT_NEAR(fold.run(60).end.state[0], 0.7, 1e-10);
  System cycle = gallery_system("kink_cycle");
  EXPECT_NEAR(last_period(cycle.run(200, 1e-13), "turn"), 4.03106217189359, 1e-11);
  cycle.set({{"mu", 0.5}});
  EXPECT_NEAR(std::abs(cycle.run(80).end.state[0]), 1, 1e-9);
}

TEST(Kinks, HopfVersionInClosedForm) {
  const System s = gallery_system("kink_hopf");
  const double kink = std::log(5.0), t = 4;
  const Trajectory run = s.run(t);
  const double r = 1 - std::exp(-(t - kink)) / 2;
  expect_end(run, {r * std::cos(t), r * std::sin(t)}, 1e-10);
  ASSERT_EQ(changes(run).size(), 1u) << story(run);
  EXPECT_NEAR(changes(run)[0].t, kink, 1e-11);
}

TEST(Trilinear, TwoOrbitsCoexist) {
  const auto reach = [](const System& s, double w) {
    RunOptions o = s.options(2000, 1e-10);
    o.keep_pieces = true;
    o.keep_events = false;
    const Trajectory run = s.run(o);
    double most = 0;
    for (double t = 2000 - 2 * pi / w; t < 2000; t += 0.002) most = std::max(most, run(t)[0]);
    return most;
  };
  System s = gallery_system("trilinear");
  s.set({{"w", 1.12}});
  EXPECT_NEAR(reach(gallery_system("trilinear").set({{"w", 1.12}}), 1.12), 1.2397, 1e-4);
  // Without contact: amplitude f0/sqrt((1-w^2)^2 + (c w)^2), started on that orbit.
  const double w = 1.12, d = 1 - w * w, c = 0.05 * w, norm = d * d + c * c;
  s.start({{"x", -0.2 * c / norm}, {"v", 0.2 * d * w / norm}});
  EXPECT_NEAR(reach(s, w), 0.2 / std::sqrt(norm), 1e-6);
}

TEST(Popp, SticksAtOneFrequencyAndNotAtTheOther) {
  for (const auto& [nu, sticks] : {std::pair{0.8, 1}, std::pair{1.0, 0}}) {
    System s = gallery_system("popp");
    s.set({{"nu", nu}});
    const double period = 2 * pi / nu;
    const Trajectory run = s.run(300 * period, 1e-11);
    EXPECT_EQ(leaves(between(run, 290 * period, 300 * period)), 10 * sticks) << nu;
  }
}

TEST(Whirl, SettlesToForwardWhirl) {
  const Trajectory run = gallery_system("whirl").run(2000, 1e-11);
  EXPECT_NEAR(run.end.state[0], 0.75, 1e-8);
  EXPECT_NEAR(run.end.state[2], 0.325, 1e-8);
}

TEST(Whirl, RollsAlongTheWall) {
  System s = gallery_system("whirl");
  const double r = 1.8635659850296, Om = -2.7903492775532;
  EXPECT_NEAR(Om * r + 2.6 * 2, 0, 1e-11);
  s.start({{"r", r + 0.001}, {"u", 0}, {"Om", Om}});
  const Trajectory run = s.run(300, 1e-11);
  EXPECT_NEAR(run.end.state[0], r, 1e-6) << story(run);
  EXPECT_NEAR(run.end.state[2], Om, 1e-6);
}

TEST(Torsion, Period) {
  const Trajectory run = gallery_system("torsion").run(400, 1e-13);
  EXPECT_NEAR(last_period(run, "turn"), 6.316320258167, 1e-9);
}

TEST(StickSlipWhirl, RollsAtHighSpeed) {
  System s = gallery_system("stick_slip_whirl");
  s.set({{"omega", 4}});
  const Trajectory run = s.run(400, 1e-10);
  EXPECT_NEAR(run.end.state[0], 2.708, 1e-3) << story(run);
  EXPECT_NEAR(run.end.state[2], -2.954, 1e-3);
}

// ---- Aljarbouh & Caillaud ---------------------------------------------------------------------------------------

TEST(ThreeMasses, ThirtyTwoEvents) {
  const Trajectory run = gallery_system("three_masses").run(120, 1e-13);
  const auto found = changes(run);
  EXPECT_EQ(found.size(), 32u);
  EXPECT_NEAR(found.front().t, 4.78187839683541, 1e-11);
  EXPECT_EQ(kind_name(found.front().kind), "cross");
  EXPECT_TRUE(is_on(found.front(), "vm - v2"));
  const auto both = std::find_if(found.begin(), found.end(), [](const Event& e) { return e.after.switches == "00"; });
  ASSERT_NE(both, found.end());
  EXPECT_NEAR(both->t, 44.6336986167852, 1e-10);
}

TEST(ThreeBlocks, FourteenEvents) { EXPECT_EQ(changes(gallery_system("three_blocks").run(100, 1e-13)).size(), 14u); }

// ---- SICONOS platform -------------------------------------------------------------------------------------------

TEST(Buck, OrbitReturnsEveryPeriodOfTheRamp) {
  System s = gallery_system("buck");
  s.start({{"i", 0.56330939360334876}, {"v", 11.864897927512085}});
  expect_end(s.run(400e-6, 1e-13), {0.56330939360334876, 11.864897927512085}, 1e-12);
  expect_end(s.run(100 * 400e-6, 1e-13), {0.56330939360334876, 11.864897927512085}, 1e-10);
}

TEST(Buck, PeriodDoubles) {
  for (const auto& [supply, doubled] : {std::pair{24.4, false}, std::pair{24.7, true}}) {
    System s = gallery_system("buck");
    s.set({{"Vin", supply}});
    const auto found = points(s.run(1, 1e-12), "strobe");
    ASSERT_GT(found.size(), 2000u);
    const double step = std::abs(found[2000].state[1] - found[1999].state[1]);
    const double two = std::abs(found[2000].state[1] - found[1998].state[1]);
    EXPECT_LT(two, 1e-6) << supply;
    EXPECT_EQ(step > 1e-3, doubled) << supply;
  }
}

TEST(ImpactOscillator, OrbitOfPeriodOneReturns) {
  System s = gallery_system("impact_oscillator");
  s.start({{"u", 2.235423619577234}, {"v", -1.689909836739224}});
  expect_end(s.run(2 * pi / 2.6, 1e-13), {2.235423619577234, -1.689909836739224}, 1e-11);
}

TEST(ImpactOscillator, OtherAttractorRepeatsAfterSixPeriods) {
  System s = gallery_system("impact_oscillator");
  s.start({{"u", 2}, {"v", -1}});
  const auto found = points(s.run(3000, 1e-12), "strobe");
  const size_t n = found.size() - 1;
  EXPECT_NEAR(found[n].state[0], found[n - 6].state[0], 1e-7);
  for (const size_t k : {1u, 2u, 3u}) EXPECT_GT(std::abs(found[n].state[0] - found[n - k].state[0]), 1e-3);
}

TEST(ResonantConverter, SlidingWindowOfTheSteadyState) {
  const double f0 = 55e3;
  const Trajectory run = gallery_system("prc").run(400 / f0 + 1e-9, 1e-13);
  std::vector<double> begin, end;
  for (const Event& e : between(run, 399 / f0 + 1e-12, 399.5 / f0)) {
    if (e.before.switches[0] != '0' && e.after.switches[0] == '0') begin.push_back(e.t * f0 - 399);
    if (e.before.switches[0] == '0' && e.after.switches[0] != '0') end.push_back(e.t * f0 - 399);
  }
  ASSERT_EQ(begin.size(), 1u) << story(run);
  ASSERT_EQ(end.size(), 1u);
  const std::vector<double> window{0.1751359245, 0.4113524652};
  EXPECT_NEAR(std::min(begin[0], end[0]), window[0], 1e-7) << begin[0] << " " << end[0];
  EXPECT_NEAR(std::max(begin[0], end[0]), window[1], 1e-7) << begin[0] << " " << end[0];
}

TEST(ResonantConverter, NoSlidingWithALightLoad) {
  System s = gallery_system("prc");
  s.set({{"Rl", 33}});
  const Trajectory run = s.run(400 / 55e3, 1e-12);
  for (const Event& e : between(run, 390 / 55e3, 400 / 55e3)) EXPECT_NE(e.after.switches[0], '0');
}

TEST(Boost, SlidesFromItsTime) {
  const Trajectory run = gallery_system("boost").run(0.1, 1e-13);
  const auto found = of_kind(run, slide);
  ASSERT_EQ(found.size(), 1u) << story(run);
  EXPECT_NEAR(found[0].t, 3.03211109581461e-4, 1e-15);
  EXPECT_NEAR(found[0].state[1], 11.7006926753782, 1e-11);
  EXPECT_NEAR(run.end.state[1], std::sqrt(440.0), 1e-9);
}

TEST(CamFollower, DetachesAboveItsSpeed) {
  for (const auto& [speed, opens] : {std::pair{1.0345, false}, std::pair{1.0355, true}}) {
    System s = gallery_system("cam_follower");
    s.set({{"Om", speed}}).start({{"q", 0}, {"v", 4 * speed / pi}});  // on the cam, with its velocity 4 A Om/pi
    const Trajectory run = s.run(10 * 2 * pi / speed);
    EXPECT_EQ(run.end.why, Why::time) << story(run);
    EXPECT_EQ(count(run, open) + count(run, EventKind::mode) > 0, opens) << speed << story(run);
  }
}

TEST(BurridgeKnopoff, FirstSlip) {
  const Trajectory run = gallery_system("burridge_knopoff").run(7, 1e-13);
  EXPECT_NEAR(changes(run).at(0).t, 6.4, 1e-12);
}

TEST(BurridgeKnopoff, EqualBlocksSlipAsOne) {
  System s = gallery_system("burridge_knopoff");
  s.start({{"X[2]", 0}});
  const Trajectory run = s.run(40, 1e-13);
  const auto found = changes(run);
  ASSERT_GE(found.size(), 4u) << story(run);
  EXPECT_NEAR(found[0].t, 10, 1e-11);
  EXPECT_NEAR(found[1].t, 10 + 4.06888787159141, 1e-10);
  EXPECT_NEAR(found[2].t, 14 + 4.06888787159141, 1e-10);
  EXPECT_NEAR(run.end.state[0], run.end.state[1], 1e-10);
}

TEST(GeneralRelay, SlidesBetweenTwoSpellings) {
  const Trajectory run = gallery_system("general_relay").run(2);
  expect_events(run, {{2.0 / 7, slide}}, 1e-13);
  expect_end(run, {-3.0 / 17, -3.0 / 17}, 1e-13);
}

TEST(Twisting, ReachesTheOriginAtFiveHalves) {
  const Trajectory run = gallery_system("twisting").run(3);
  EXPECT_NEAR(changes(run).back().t, 2.5, 1e-8);
  expect_end(run, {0, 0}, 1e-10);
}

TEST(Intersections, SlidesOnOneSurfaceAfterTheOther) {
  const double t1 = 0.5 / 0.7;
  for (const int n : {2, 3, 4}) {
    const System s(read_model(SALTUS_SOURCE_DIR "/models/intersections/model.toml", {{"N", std::to_string(n)}}));
    const Trajectory run = s.run(4);
    const auto found = changes(run);
    ASSERT_EQ(found.size(), static_cast<size_t>(n)) << story(run);
    double y = 0;
    for (int i = 1; i <= n; ++i) {
      EXPECT_NEAR(found[static_cast<size_t>(i - 1)].t, i * t1, 1e-13);
      y += std::pow(0.3, i - 1) * t1;
    }
    EXPECT_NEAR(run.end.state.back(), y + std::pow(0.3, n) * (4 - n * t1), 1e-12);
    EXPECT_EQ(run.end.mode.text(), std::string(static_cast<size_t>(n), '0'));
  }
}

TEST(Chua, HasItsEquilibriaOnTheOuterPieces) {
  System s = gallery_system("chua");
  s.start({{"x", 1.5}, {"y", 0}, {"z", -1.5}});
  expect_end(s.run(0.5), {1.5, 0, -1.5}, 1e-9);  // unstable: rounding grows
}

TEST(Cuk, GivesItsMeanVoltage) {
  // Over a period of the steady state the mean of v2 is E D/(1 - D), since both coils have no mean voltage.
  const System s(read_model_text(R"toml(
equations = """
  i1' = (E - (1 - u)*v1)/L1
  i2' = (u*v1 - v2)/L2
  v1' = ((1 - u)*i1 - u*i2)/C1
  v2' = (i2 - v2/R)/C2
  u = step(D - mod(t, T)/T)
  sum2' = v2
"""
[parameters]
E = 12
L1 = 1e-3
L2 = 1e-3
C1 = 1e-5
C2 = 4.7e-5
R = 20
T = 2e-5
D = 0.4
[initial]
i1 = 0.2667
i2 = 0.4
v1 = 20
v2 = 8
sum2 = 0
)toml"));
  const double before = s.run(0.3).end.state[4], after = s.run(0.32).end.state[4];
  EXPECT_NEAR((after - before) / 0.02, 8, 0.01);
}

TEST(PredatorPrey, SlidesWhereTheHarvestTakesWhatComesUp) {
  const Trajectory run = gallery_system("predator_prey").run(400);
  for (const Event& e : changes(run)) {
    const double growth = 0.3556 * e.state[0] / (0.33 + e.state[0]) - 0.0444;
    if (e.kind == slide) {
      EXPECT_GE(growth, -1e-9) << story(run);
      EXPECT_LE(growth, 0.2067 + 1e-9);
    }
    if (e.kind == leave) {
      EXPECT_NEAR(growth, 0, 1e-9) << "it leaves downward, where the growth ends";
    }
  }
}

TEST(RockingBlock, LandsWithLessAndLess) {
  const Trajectory run = gallery_system("rocking_block").run(6);
  const auto found = of_kind(run, jump);
  ASSERT_GE(found.size(), 5u) << story(run);
  EXPECT_NEAR(found[0].t, std::acosh(2) / 2, 1e-12);
  const double r = 1 - 1.5 * std::pow(std::sin(0.2), 2);
  double energy = 1 - 0.25, t = found[0].t;  // 1 - (1 - th/alpha)^2 at the turning points
  for (size_t n = 1; n < 5; ++n) {
    energy *= r * r;
    t += 2 * std::acosh(1 / std::sqrt(1 - energy)) / 2;
    EXPECT_NEAR(found[n].t, t, 1e-10) << n;
  }
}

TEST(Quantiser, RestsOnAStep) {
  const Trajectory run = gallery_system("quantiser").run(6);
  const auto found = changes(run);
  ASSERT_EQ(found.size(), 1u) << story(run);
  EXPECT_EQ(found[0].kind, slide);
  EXPECT_EQ(found[0].on, std::vector<std::string>{"floor(x/q + 0.5)"});
  expect_end(run, {0.1}, 1e-12);
}

TEST(SampledControl, MovesByItsMatrixFromTickToTick) {
  const double T = 0.5, kp = 1, kd = 1.5;
  const Trajectory run = gallery_system("sampled_control").run(20);
  double x = 1, v = 0, u = 0;
  const auto found = of_kind(run, jump);
  ASSERT_EQ(found.size(), 40u) << story(run);
  for (size_t k = 0; k < found.size(); ++k) {
    x += v * T + u * T * T / 2;
    v += u * T;
    u = -kp * x - kd * v;
    EXPECT_NEAR(found[k].t, T * static_cast<double>(k + 1), 1e-13);
    EXPECT_NEAR(found[k].state[0], x, 1e-12);
    EXPECT_NEAR(found[k].state[2], u, 1e-12);
  }
}

TEST(PulseVaccination, WithoutInfectionReachesItsCycle) {
  System s = gallery_system("pulse_vaccination");
  s.start({{"I", 0}});
  const auto found = of_kind(s.run(600), jump);
  ASSERT_GE(found.size(), 299u);
  const double a = std::exp(-0.02 * 2);
  EXPECT_NEAR(found.back().state[0], 0.5 * (1 - a) / (1 - 0.5 * a), 1e-10);
}

TEST(Neurons, FireTogetherInTheEnd) {
  const Trajectory run = gallery_system("neurons").run(40);
  for (const double u : run.end.state) EXPECT_EQ(u, run.end.state[0]) << story(run);
  const auto found = of_kind(run, jump);
  ASSERT_GE(found.size(), 20u);
  const double alone = std::log(1.2 / 0.2);
  EXPECT_NEAR(found.back().t - found[found.size() - 11].t, alone, 1e-9) << "ten fire at one instant";
  EXPECT_EQ(found.back().t, found[found.size() - 10].t);
}

TEST(SimplestWalker, RepeatsItsStep) {
  const auto found = of_kind(gallery_system("simplest_walker").run(40), jump);
  ASSERT_EQ(found.size(), 10u);
  for (const Event& e : found) {
    EXPECT_NEAR(e.state[0], 0.200310900544287, 1e-6);
    EXPECT_NEAR(e.state[1], -0.199832473004977, 1e-6);
    EXPECT_NEAR(e.state[2], 2 * e.state[0], 1e-9);
  }
}

}  // namespace
}  // namespace saltus::physics
