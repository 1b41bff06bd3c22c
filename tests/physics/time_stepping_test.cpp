// The time-stepping engine against closed forms, published facts and the event-driven engine.

#include <random>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/index.hpp"

#include "physics.hpp"

namespace saltus::physics {
namespace {

Trajectory step_run(const System& s, double until, StepOptions step, double tolerance = 1e-10) {
  RunOptions o = s.options(until, tolerance);
  o.step = step;
  return s.run(o);
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

const std::vector<double> ten_periods{-0.72126835016760790, 0.35702730004886243};

// ---- order --------------------------------------------------------------------------------------------------------

TEST(TimeStepping, DryFrictionOverTenPeriods) {
  const System s = gallery_system("dry_friction");
  for (const auto& [dt, error] : {std::pair{1e-2, 1e-6}, std::pair{1e-3, 1e-8}}) {
    const Trajectory run = step_run(s, 60 * pi, {.dt = dt});
    expect_end(run, ten_periods, error);
    EXPECT_EQ(changes(run).size(), 42u) << story(run);
  }
}

TEST(TimeStepping, BackwardEulerIsOfOrderOne) {
  const System s = gallery_system("dry_friction");
  const auto error = [&](double dt) {
    return distance(step_run(s, 60 * pi, {.dt = dt, .theta = 1}).end.state, ten_periods);
  };
  const double coarse = error(1e-2), middle = error(2e-3), fine = error(4e-4);
  EXPECT_NEAR(std::log(coarse / middle) / std::log(5), 1, 0.1);
  EXPECT_NEAR(std::log(middle / fine) / std::log(5), 1, 0.1);
}

TEST(TimeStepping, ThetaOneHalfIsOfOrderFourWhereSmooth) {
  const System s = gallery_system("harmonic");
  const auto error = [&](double dt) {
    return distance(step_run(s, 20, {.dt = dt}).end.state, {std::cos(20), -std::sin(20)});
  };
  EXPECT_NEAR(std::log2(error(0.1) / error(0.05)), 4, 0.05);
  EXPECT_LT(error(0.01), 1e-9);
}

TEST(TimeStepping, StatesStayOnTheirSurfaces) {
  // While the block sticks, sigma = (sin(t/3) - y)/F varies; the symmetric rule must neither ring nor drift.
  const System s = gallery_system("dry_friction");
  const Trajectory run = step_run(s, 60, {.dt = 0.02});
  EXPECT_GT(run.sliding[0].time, 5);
  EXPECT_LT(run.sliding[0].largest_error, 1e-13);
}

// ---- every model of the gallery -----------------------------------------------------------------------------------

struct Case {
  const char* name;
  double until;
  double error;  // at until/8000, relative to the largest state
};

class Gallery : public testing::TestWithParam<Case> {};

TEST_P(Gallery, ConvergesToTheEventDrivenResult) {
  const Case& c = GetParam();
  const System s = gallery_system(c.name);
  const Trajectory exact = s.run(c.until, 1e-12);
  ASSERT_EQ(exact.end.why, Why::time);
  double scale = 1e-6;
  for (const double v : exact.end.state) scale = std::max(scale, std::abs(v));
  const auto run = [&](int steps) {
    const Trajectory result = step_run(s, c.until, {.dt = c.until / steps});
    EXPECT_EQ(result.end.why, Why::time) << story(result);
    return distance(result.end.state, exact.end.state) / scale;
  };
  const double coarse = run(2000), fine = run(8000);
  EXPECT_LT(fine, c.error);
  EXPECT_LT(fine, std::max(coarse / 4, 1e-8));
}

TEST_P(Gallery, RunsWithBackwardEuler) {
  const Case& c = GetParam();
  const System s = gallery_system(c.name);
  const Trajectory run = step_run(s, c.until, {.dt = c.until / 2000, .theta = 1});
  EXPECT_EQ(run.end.why, Why::time) << story(run);
}

// Chaotic and sensitive models over a short time; degree-0 constraints converge with order 2.
INSTANTIATE_TEST_SUITE_P(
    TimeStepping, Gallery,
    testing::Values(Case{"belt_smooth", 40, 1e-7}, Case{"belt_static", 40, 1e-8}, Case{"belt_stribeck", 40, 1e-8},
                    Case{"boost", 3e-3, 1e-7}, Case{"bouncing_ball", 5, 1e-8}, Case{"bouncing_table", 2.5, 1e-8},
                    Case{"buck", 0.004, 1e-8}, Case{"burridge_knopoff", 25, 1e-7}, Case{"cam_follower", 12, 1e-8},
                    Case{"drill_string", 40, 1e-8}, Case{"dry_friction", 60, 1e-8}, Case{"duffing", 20, 1e-8},
                    Case{"end_stops", 40, 1e-8}, Case{"forced_static", 80, 1e-7}, Case{"general_relay", 2, 1e-8},
                    Case{"harmonic", 20, 1e-8}, Case{"impact_oscillator", 8, 1e-8},
                    Case{"integrate_and_fire", 100, 1e-8}, Case{"kepler", 7, 1e-8}, Case{"kink_cycle", 30, 1e-8},
                    Case{"kink_fold", 8, 1e-8}, Case{"kink_hopf", 30, 1e-8}, Case{"kink_pitchfork", 8, 1e-8},
                    Case{"kink_transcritical", 8, 1e-8}, Case{"lorenz", 3, 1e-8}, Case{"newton_cradle", 0.5, 1e-8},
                    Case{"pendulum", 15, 1e-8}, Case{"popp", 60, 1e-8}, Case{"prc", 4e-4, 1e-7},
                    Case{"prc_diodes", 4e-4, 1e-3}, Case{"rectifier", 0.1, 1e-5}, Case{"relay_feedback", 8, 1e-8},
                    Case{"rimless_wheel", 6, 1e-8}, Case{"stick_slip_whirl", 20, 1e-7}, Case{"support", 30, 1e-8},
                    Case{"thermostat", 180, 1e-8}, Case{"three_blocks", 100, 1e-8}, Case{"three_masses", 120, 1e-8},
                    Case{"torsion", 40, 1e-7}, Case{"trilinear", 100, 1e-8}, Case{"twisting", 3, 1e-6},
                    Case{"van_der_pol", 20, 1e-7}, Case{"whirl", 60, 1e-8}),
    [](const auto& test) { return std::string(test.param.name); });

// ---- contacts -----------------------------------------------------------------------------------------------------

TEST(TimeStepping, ABouncingBallComesToRest) {
  const System s = gallery_system("bouncing_ball");
  for (const double theta : {0.5, 0.7, 1.0}) {
    const Trajectory run = step_run(s, 5, {.dt = 1e-3, .theta = theta});
    expect_end(run, {0, 0}, 1e-12);
    EXPECT_EQ(run.end.mode.constraints, "c");
    // Impacts end at sqrt(2/g) (1 + r)/(1 - r); bounces shorter than a step are one step.
    const auto closed = of_kind(run, theta == 0.5 ? EventKind::chatter : EventKind::close);
    ASSERT_FALSE(closed.empty()) << story(run);
    EXPECT_NEAR(closed.back().t, 4.06371276887157814, theta == 0.5 ? 1e-7 : 0.1);
  }
}

/// A block on a floor under the force (fx, fy).
System block(double fx, double fy, double speed) {
  return system(
      "x' = u\nu' = fx - mu*N*sign(u)\ny' = v\nv' = fy - 10 + N", fmt::format("x = 0\nu = {}\ny = 0\nv = 0", speed),
      fmt::format("[parameters]\nmu = 0.3\nfx = {}\nfy = {}\n[constraint.N]\ngap = \"y\"\nrestitution = 0\n", fx, fy));
}

TEST(TimeStepping, FrictionSticksSlipsAndOpens) {
  for (const double theta : {0.5, 1.0}) {
    const StepOptions step{.dt = 0.01, .theta = theta};
    expect_end(step_run(block(2.9, 0, 0), 1, step), {0, 0, 0, 0}, 1e-12);  // below mu N = 3
    const Trajectory slips = step_run(block(5, 0, 0), 1, step);            // u' = 5 - 3
    EXPECT_NEAR(slips.end.state[1], 2, 1e-9) << story(slips);
    EXPECT_EQ(slips.end.mode.text(), "+|c");
    const Trajectory stops = step_run(block(0, 4, 0.9), 1, step);  // u' = -0.3*6, at rest at 0.5
    EXPECT_NEAR(stops.end.state[1], 0, 1e-12) << story(stops);
    EXPECT_NEAR(stops.end.state[0], 0.225, theta == 0.5 ? 1e-9 : 1e-2);
    const Trajectory flies = step_run(block(1, 12, 0), 1, step);  // v' = 2
    EXPECT_NEAR(flies.end.state[3], 2, 1e-9) << story(flies);
    EXPECT_EQ(flies.end.mode.constraints, "o");
  }
}

/// A uniform rod of mass 1 and half length 1 whose lower end slides to the left on a floor, at the angle phi, turning
/// with om: gap'' = b + W N, W = 1 + 3 cos(phi)^2 - 3 mu sin(phi) cos(phi), b = sin(phi) om^2 - g.
System rod(double mu, double om) {
  return system(
      "x' = vx\nvx' = T\ny' = vy\nvy' = -9.81 + N\nphi' = om\nom' = 3*(sin(phi)*T - cos(phi)*N)\n"
      "T = -mu*N*sign(vx + sin(phi)*om)",
      fmt::format("x = 0\nvx = -20\ny = \"sin(phi0)\"\nvy = \"cos(phi0)*({0})\"\nphi = \"phi0\"\nom = {0}", om),
      fmt::format(
          "[parameters]\nmu = {}\nphi0 = \"atan(2)\"\n[constraint.N]\ngap = \"y - sin(phi)\"\nrestitution = 0\n", mu));
}

TEST(TimeStepping, PainlevesParadoxIsReported) {
  for (const double theta : {0.5, 1.0}) {
    const StepOptions step{.dt = 1e-3, .theta = theta};
    const Trajectory none = step_run(rod(1.8, 0), 0.01, step);  // W = -0.56, b < 0
    EXPECT_EQ(none.end.why, Why::nonunique) << story(none);     // as the event-driven engine says it
    EXPECT_NE(none.end.message.find("- 0.56*N"), std::string::npos) << none.end.message;
    const Trajectory two = step_run(rod(1.8, 4), 0.01, step);  // W = -0.56, b > 0: open, or closed with a force
    EXPECT_TRUE(says_not_unique(two)) << story(two);
    const Trajectory one = step_run(rod(1.0, 0), 0.01, step);  // W = 0.4
    EXPECT_EQ(one.end.why, Why::time) << story(one);
    EXPECT_EQ(one.end.mode.constraints, "c");
  }
}

/// Beads of mass 1 on top of each other, which touch; bead i is pulled down by pull[i].
System column(const std::vector<double>& pull) {
  const int count = static_cast<int>(pull.size());
  std::string equations, initial, constraints;
  for (int i = 1; i <= count; ++i) {
    equations += fmt::format("y{0}' = v{0}\nv{0}' = {1} + N{0}{2}\n", i, -pull[static_cast<size_t>(i - 1)],
                             i < count ? fmt::format(" - N{}", i + 1) : "");
    initial += fmt::format("y{0} = {0}\nv{0} = 0\n", i);
    constraints += fmt::format("[constraint.N{0}]\ngap = \"y{0}{1} - 1\"\nrestitution = 0\n", i,
                               i > 1 ? fmt::format(" - y{}", i - 1) : "");
  }
  return system(equations, initial, constraints);
}

TEST(TimeStepping, AColumnOfBeadsRests) {
  // The force under bead k carries the N - k + 1 beads above: far more contacts than sweeps could settle.
  for (const size_t count : {300, 3000}) {
    const System s = column(std::vector<double>(count, 1));
    for (const double theta : {0.5, 1.0}) {
      const Trajectory run = step_run(s, 0.1, {.dt = 0.01, .theta = theta});
      EXPECT_EQ(run.end.mode.constraints, std::string(count, 'c')) << run.end.message;
      expect_end(run, s.initial, 1e-9);
    }
    const Trajectory run = s.run(0.1);
    EXPECT_EQ(run.end.mode.constraints, std::string(count, 'c')) << run.end.message;
    expect_end(run, s.initial, 1e-9);
  }
}

/// The accelerations nearest to -pull that grow from bead to bead and are not negative: neighbours that would not grow
/// are pooled (isotonic regression). Gauss's principle says that these are those of the beads.
std::vector<double> pooled(const std::vector<double>& pull) {
  std::vector<std::pair<double, int>> pools;  // sum and number
  for (const double p : pull) {
    pools.emplace_back(-p, 1);
    while (pools.size() > 1) {
      auto& [sum, number] = pools[pools.size() - 2];
      if (sum * pools.back().second < pools.back().first * number) break;
      sum += pools.back().first;
      number += pools.back().second;
      pools.pop_back();
    }
  }
  std::vector<double> out;
  for (const auto& [sum, number] : pools)
    out.insert(out.end(), static_cast<size_t>(number), std::max(0.0, sum / number));
  return out;
}

TEST(TimeStepping, AColumnOfBeadsPulledApartBreaksWhereItMust) {
  std::mt19937 draw(5);
  for (int trial = 0; trial < 6; ++trial) {
    std::vector<double> pull(trial < 3 ? 100 : 700);
    for (double& p : pull) p = 2 * static_cast<double>(draw()) / 0x1p32 - (trial % 3) * 0.5;
    const std::vector<double> a = pooled(pull);
    const System s = column(pull);
    std::vector<double> end;
    std::string mode;
    for (size_t i = 0; i < a.size(); ++i) {
      end.push_back(s.initial[2 * i] + a[i] * 0.125);
      end.push_back(a[i] * 0.5);
      mode += a[i] == (i == 0 ? 0 : a[i - 1]) ? 'c' : 'o';
    }
    const Trajectory runs[] = {s.run(0.5), step_run(s, 0.5, {.dt = 0.01})};
    for (const Trajectory& run : runs) {
      EXPECT_EQ(run.end.mode.constraints, mode) << run.end.message;
      expect_end(run, end, 1e-9);
    }
  }
}

TEST(TimeStepping, ThousandsOfBallsOnAFloorRestOrAreLifted) {
  constexpr size_t count = 2000;
  std::string equations, initial, constraints;
  std::vector<double> end;
  std::string mode;
  for (size_t i = 1; i <= count; ++i) {
    const double lift = std::fmod(0.618 * static_cast<double>(i), 1.0) - 0.9;  // one in ten is lifted
    equations += fmt::format("y{0}' = v{0}\nv{0}' = {1} + N{0}\n", i, lift);
    initial += fmt::format("y{0} = 0\nv{0} = 0\n", i);
    constraints += fmt::format("[constraint.N{0}]\ngap = \"y{0}\"\nrestitution = 0.5\n", i);
    end.insert(end.end(), {lift > 0 ? lift / 8 : 0, lift > 0 ? lift / 2 : 0});
    mode += lift > 0 ? 'o' : 'c';
  }
  const System s = system(equations, initial, constraints);
  const Trajectory runs[] = {s.run(0.5), step_run(s, 0.5, {.dt = 0.01})};
  for (const Trajectory& run : runs) {
    EXPECT_EQ(run.end.mode.constraints, mode) << run.end.message;
    expect_end(run, end, 1e-10);
  }
}

// ---- many switches --------------------------------------------------------------------------------------------------

/// A row of blocks on a belt, coupled by springs; enough of them that everything is sparse.
/// `positions_first`: all x, then all v, as lines with an index say it.
System row_of_blocks(int count, bool positions_first = false) {
  std::string equations, initial;
  for (int i = 1; positions_first && i <= count; ++i) equations += fmt::format("x{0}' = v{0}\n", i);
  for (int i = 1; i <= count; ++i) {
    if (!positions_first) equations += fmt::format("x{0}' = v{0}\n", i);
    equations += fmt::format("v{0}' = -x{0}", i);
    if (i > 1) equations += fmt::format(" + 0.5*(x{} - x{})", i - 1, i);
    if (i < count) equations += fmt::format(" + 0.5*(x{} - x{})", i + 1, i);
    equations += fmt::format(" - {}*sign(v{} - 0.2)\n", 0.8 + 0.4 * std::fmod(0.618 * i, 1.0), i);
    initial +=
        fmt::format("x{0} = {1}\nv{0} = {2}\n", i, std::fmod(0.377 * i, 1.0) - 0.5, std::fmod(0.739 * i, 1.0) - 0.5);
  }
  return system(equations, initial);
}

TEST(TimeStepping, ARowOfBlocksAgreesWithTheEventDrivenEngine) {
  const System s = row_of_blocks(60);
  const Trajectory exact = s.run(6, 1e-11);
  EXPECT_LT(distance(step_run(s, 6, {.dt = 1e-2}).end.state, exact.end.state), 1e-6);
  const double coarse = distance(step_run(s, 6, {.dt = 4e-3, .theta = 1}).end.state, exact.end.state);
  const double fine = distance(step_run(s, 6, {.dt = 1e-3, .theta = 1}).end.state, exact.end.state);
  EXPECT_LT(fine, 1e-2);
  EXPECT_LT(fine, coarse / 2.5);
}

/// The same pulled by a carriage at the speed V.
TEST(TimeStepping, ARowOfBlocksIsPulledAtOneSpeedAfterAnother) {
  constexpr int count = 60;
  std::string equations, initial;
  for (int i = 1; i <= count; ++i) {
    initial += fmt::format("x{0} = 0\nv{0} = 0\n", i);
    equations +=
        fmt::format("x{0}' = v{0}\nv{0}' = V*t - x{0} - {1}*sign(v{0})", i, 0.8 + 0.4 * std::fmod(0.618 * i, 1.0));
    if (i > 1) equations += fmt::format(" + 0.5*(x{} - x{})", i - 1, i);
    equations += i < count ? fmt::format(" + 0.5*(x{} - x{})\n", i + 1, i) : "\n";
  }
  const System s = system(equations, initial, "[parameters]\nV = 0.5\n");
  Simulator again(s.program);
  for (const double speed : {0.5, 0.9}) {
    RunOptions o = s.options(6, 1e-11);
    o.parameters = {speed};
    const Trajectory exact = s.run(o);
    o.step = StepOptions{.dt = 1e-2};
    EXPECT_LT(distance(again.run(o).end.state, exact.end.state), 1e-6) << speed;
  }
}

TEST(TimeStepping, TheOrderOfStatesDoesNotMatter) {
  constexpr int count = 60;
  const System beside = row_of_blocks(count), after = row_of_blocks(count, true);
  for (const StepOptions step : {StepOptions{.dt = 1e-2}, StepOptions{.dt = 1e-2, .theta = 1}, StepOptions{}}) {
    const Trajectory a = step_run(beside, 6, step), b = step_run(after, 6, step);
    EXPECT_EQ(changes(a).size(), changes(b).size());
    for (size_t i = 0; i < count; ++i) {
      EXPECT_NEAR(a.end.state[2 * i], b.end.state[i], 1e-10) << i;
      EXPECT_NEAR(a.end.state[2 * i + 1], b.end.state[count + i], 1e-10) << i;
    }
  }
}

// ---- what a run yields
// ------------------------------------------------------------------------------------------------

TEST(TimeStepping, SectionsAndDenseOutputAreAsAccurateAsTheStates) {
  const System s = gallery_system("dry_friction");
  RunOptions o = s.options(60, 1e-12);
  o.keep_pieces = true;
  const Trajectory exact = s.run(o);
  o.step = StepOptions{.dt = 0.01};
  const Trajectory run = s.run(o);
  const auto a = of_kind(run, EventKind::section), b = of_kind(exact, EventKind::section);
  ASSERT_EQ(a.size(), 3u);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i].t, b[i].t, 1e-12);
    EXPECT_LT(distance(a[i].state, b[i].state), 1e-8);
  }
  for (double t = 0.003; t < 60; t += 0.37) EXPECT_LT(distance(run(t), exact(t)), 1e-7) << "t = " << t;
}

TEST(TimeStepping, CrossedSectionsAreFoundOnTheDenseOutput) {
  const Trajectory run = step_run(gallery_system("harmonic"), 20, {.dt = 0.02});
  const auto found = of_kind(run, EventKind::section);
  ASSERT_EQ(found.size(), 3u) << story(run);  // v = -sin(t) falls at 2 pi k
  for (size_t k = 0; k < found.size(); ++k) EXPECT_NEAR(found[k].t, 2 * pi * static_cast<double>(k + 1), 1e-7);
}

TEST(TimeStepping, AdaptiveStepsFollowTheTolerance) {
  const System s = gallery_system("dry_friction");
  const Trajectory loose = step_run(s, 60 * pi, {}, 1e-6), tight = step_run(s, 60 * pi, {}, 1e-10);
  EXPECT_LT(distance(loose.end.state, ten_periods), 1e-4);
  EXPECT_LT(distance(tight.end.state, ten_periods), 1e-8);
  EXPECT_LT(loose.cost.steps, tight.cost.steps / 2);
  // Near the sun the steps must shrink: once around the ellipse in 2 pi.
  const System kepler = gallery_system("kepler");
  const Trajectory around = step_run(kepler, 2 * pi, {}, 1e-10);
  expect_end(around, kepler.initial, 1e-6);
}

TEST(TimeStepping, SaysWhatEndsARun) {
  for (const double dt : {0.0, 0.01}) {
    const Trajectory grows = step_run(system("x' = x^2", "x = 1"), 2, {.dt = dt});
    EXPECT_EQ(grows.end.why, Why::diverged) << story(grows);
    EXPECT_NEAR(grows.end.t, 1, 1e-3);
    EXPECT_LT(grows.cost.steps, 10'000);
  }
  const Trajectory undefined = step_run(system("x' = sqrt(y)\ny' = -1", "x = 0\ny = 0.5"), 2, {.dt = 0.01});
  EXPECT_NE(undefined.end.why, Why::time) << story(undefined);
  EXPECT_LT(undefined.end.t, 0.6);
}

TEST(TimeStepping, RestsWhereRatesHaveRoots) {
  // Super-twisting: |z + d| shrinks to nothing in finite time, then s = 0 and z = -d for good.
  const System twist = system("s' = -1.5*sqrt(abs(s))*sign(s) + z + 0.3\nz' = -1.1*sign(s)", "s = 1\nz = 0");
  // h' = -sqrt(h) is empty at t = 2 sqrt(h(0)).
  const System tank = system("h' = -sqrt(max(h, 0))", "h = 1");
  for (const double dt : {0.0, 0.007, 0.003}) {
    expect_end(step_run(twist, 10, {.dt = dt}), {0, -0.3}, 1e-7);
    const Trajectory empty = step_run(tank, 10, {.dt = dt});
    expect_end(empty, {0}, 1e-9);
    if (dt > 0) continue;  // a grid may pass the end within rounding of it
    ASSERT_FALSE(empty.events.empty());
    EXPECT_NEAR(empty.events.front().t, 2, 1e-4) << story(empty);
  }
}

TEST(TimeStepping, LongStepsSeeWhatDipsBelowZeroInside) {
  // x2 = 0.499999 - t + t^2/2 is below zero for 2 sqrt(2e-6) around t = 1.
  const System s = system("x1' = 1\nx2' = x1\nx3' = if(x2 > 0, 0, 1)", "x1 = -1\nx2 = 0.499999\nx3 = 0");
  expect_end(step_run(s, 2, {}), {1, 0.499999, 2 * std::sqrt(2e-6)}, 1e-8);
}

TEST(TimeStepping, SlidingThatStopsAttractingEndsTheRun) {
  const Trajectory run = step_run(system("x1' = 1\nx2' = if(x2 > 0, x1, -x1)", "x1 = -1\nx2 = 0"), 2, {});
  EXPECT_EQ(run.end.why, Why::nonunique) << story(run);
  EXPECT_NEAR(run.end.t, 1, 1e-9);
}

TEST(TimeStepping, StacksAndLoopsAtRestNeedNoShortSteps) {
  const System loop = system(
      "v0' = 0.3*sin(t) - 0.8*sign(v0) + 0.41*sign(v1 - v0)\nv1' = 0.2*cos(t) - 0.6*sign(v1) - 0.41*sign(v1 - v0)",
      "v0 = 0\nv1 = 0");
  const Trajectory run = step_run(loop, 10, {}, 1e-10);
  expect_end(run, {0, 0}, 1e-12);
  EXPECT_LT(run.cost.steps, 5000);
}

TEST(TimeStepping, AccumulatingImpactsAreCompletedAsByTheOtherEngine) {
  const System ball = system("y' = v\nv' = -1 + N", "y = 1\nv = 0", "[constraint.N]\ngap = \"y\"\nrestitution = 0.5");
  const double rest = std::sqrt(2.0) * (1 + 2 * 0.5 / (1 - 0.5));
  for (const double dt : {0.0, 0.01}) {
    const Trajectory run = step_run(ball, 10, {.dt = dt});
    const auto chatter = of_kind(run, EventKind::chatter);
    ASSERT_EQ(chatter.size(), 1u) << story(run);
    EXPECT_NEAR(chatter[0].t, rest, 1e-7);
    RunOptions stops = ball.options(10, 1e-10);
    stops.step = StepOptions{.dt = dt};
    stops.zeno_stop = true;
    EXPECT_EQ(ball.run(stops).end.why, Why::zeno);
  }
}

TEST(TimeStepping,
     AJumpDoesNotLiftWhatRests) {  // |0.5 x| stays below 1: the mass lies on its stop from the first hit on
  const System s(read_model_text(R"M(
equations = """
  q' = v
  v' = -1 + 0.5*x + N - 0.3*sign(v)
  x' = -x + 0.4*cos(3*t)
"""
[initial]
q = 0.5
v = 0.1
x = 0
[constraint.N]
gap = "q"
restitution = 0
[jump.turn]
every = 0.7
set = { x = "-x" }
)M"));
  const Trajectory run = step_run(s, 6, {.dt = 1e-3});
  EXPECT_EQ(run.end.why, Why::time) << run.end.message;
  EXPECT_TRUE(of_kind(run, EventKind::open).empty()) << story(run);
  EXPECT_EQ(of_kind(run, EventKind::impact).size(), 1u) << story(run);
  EXPECT_NEAR(run.end.state[0], 0, 1e-12);
}

TEST(TimeStepping, RootsEndOnTimeWhateverTheStep) {
  // h = (1 - t/2)^2 above the level: there at t = 2, at rest.
  for (const char* level : {"0", "0.1", "0.7", "1"}) {
    const double rest = std::stod(level);
    const System s =
        system(fmt::format("x' = -sqrt(abs(x - {0}))*sign(x - {0})", level), fmt::format("x = {}", rest + 1));
    for (const double dt : {0.05, 0.004, 0.001}) {
      const Trajectory run = step_run(s, 12, {.dt = dt});
      ASSERT_EQ(changes(run).size(), 1u) << level << " " << dt << story(run);
      EXPECT_EQ(changes(run)[0].kind, EventKind::slide) << story(run);
      EXPECT_NEAR(changes(run)[0].t, 2, 1e-6) << level << " " << dt;
      EXPECT_NEAR(run.end.state[0], rest, 1e-15) << level << " " << dt;
    }
  }
}

TEST(TimeStepping, CrossingsBelowTheLastDigitEnd) {
  // Each turn of the spiral is 0.16 of the one before: from 1 to the last digit of x = 1 it takes less than 10 of them.
  const System s =
      system("x' = -1.5*sqrt(abs(x - 1))*sign(x - 1) + z\nz' = -1.1*sign(x - 1) + 0.4*cos(t)", "x = 2\nz = 0");
  for (const double dt : {0.12, 0.012, 0.004}) {
    const Trajectory run = step_run(s, 12, {.dt = dt});
    EXPECT_EQ(run.end.why, Why::time) << run.end.message;
    EXPECT_LT(changes(run).size(), 60u) << dt << story(run);
    EXPECT_NEAR(run.end.state[0], 1, 1e-15) << dt;
  }
}

TEST(TimeStepping, FrictionInAPlaneByHandIsOpenAtRestAndClosedByABoundedDivisor) {
  // A speed of 5 that falls by 0.5 per unit of time: at rest at t = 10, in (3, 4)/5 * 25.
  const auto sliding = [](const std::string& speed) {
    return system("x' = u\ny' = v\nu' = -0.5*u/" + speed + "\nv' = -0.5*v/" + speed, "x = 0\ny = 0\nu = 3\nv = 4");
  };
  const System open = sliding("hypot(u, v)"), closed = sliding("max(hypot(u, v), 1e-6)");
  for (const bool step : {false, true}) {
    const Trajectory ends = step ? step_run(open, 20, {}) : open.run(open.options(20, 1e-10));
    EXPECT_EQ(ends.end.why, Why::undefined) << ends.end.message;
    EXPECT_NE(ends.end.message.find("max(hypot(u, v), 1e-6)"), std::string::npos) << ends.end.message;
    EXPECT_NEAR(ends.end.t, 10, 1e-8);
    EXPECT_LT(ends.cost.steps, 1000);
    const Trajectory rests = step ? step_run(closed, 20, {}) : closed.run(closed.options(20, 1e-10));
    expect_end(rests, {15, 20, 0, 0}, 1e-8);
  }
}

TEST(TimeStepping, ASectionThatIsMetWithAJumpIsMetBeforeIt) {
  // u rises to 1 and is put back to 0.1: at t = 1, 1.9, 2.8, 3.7, however the section is written.
  for (const char* section : {"u - 1", "u^2 - 1", "exp(u) - exp(1)", "(u - 1)*(u + 1)"}) {
    const System s = system("u' = 1", "u = 0",
                            fmt::format("[jump.back]\non = \"u - 1\"\ndirection = \"rising\"\nset = {{ u = \"0.1\" }}\n"
                                        "[section.s]\non = \"{}\"\n",
                                        section));
    for (const double dt : {0.0, 0.1, 0.7, 0.013, 0.01}) {
      const Trajectory run = step_run(s, 4.55, {.dt = dt});
      const std::vector<Event> met = of_kind(run, EventKind::section), jumps = of_kind(run, EventKind::jump);
      ASSERT_EQ(met.size(), 4u) << section << " " << dt << story(run);
      ASSERT_EQ(jumps.size(), 4u) << section << " " << dt << story(run);
      for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(met[k].t, 1 + 0.9 * static_cast<double>(k), 1e-9) << section << dt;
    }
  }
}

TEST(TimeStepping, RefusesStepsThatCannotBe) {
  const System s = gallery_system("dry_friction");
  const auto refuses = [&](StepOptions step, double until = 10) {
    EXPECT_THROW(step_run(s, until, step), Error) << step.dt << " " << step.theta;
  };
  refuses({.dt = -1});
  refuses({.dt = std::nan("")});
  refuses({.dt = 11});
  refuses({.dt = 0.1, .theta = 0.4});
  refuses({.dt = 0.1, .theta = 1.1});
  refuses({.dt = 0.1}, -1);
}

// A diode in series with a resistor is told by the states, v' = max(s - v, 0)/r - 0.7 v: order 4, and as accurate as it
// is told to be. SciPy's DOP853 with rtol = 1e-13, steps of 1 ms at most.
TEST(TimeStepping, DiodesWithResistorsAreOfOrderFour) {
  const System one = system("v' = d - 0.7*v\ns = 2*sin(3*t)", "v = 0.2", "[constraint.d]\ngap = \"v - s + 0.2*d\"\n");
  constexpr double reference = 1.4793525270772;
  RunOptions options = one.options(5, 1e-9);
  options.step.emplace();
  EXPECT_NEAR(one.run(options).end.state[0], reference, 3e-8);
  double before = 0;
  for (const double dt : {0.02, 0.01, 0.005}) {
    options.step->dt = dt;
    const double error = std::abs(one.run(options).end.state[0] - reference);
    EXPECT_LT(error, 0.4 * std::pow(dt, 4));
    if (before > 0) {
      EXPECT_GT(before / error, 12) << dt;
    }
    before = error;
  }
}

// A ladder of N of them, each charged by the one before: with many, systems are sparse.
TEST(TimeStepping, LaddersOfDiodesAgreeWithEvents) {
  for (const int n : {3, 12, 40}) {
    const System ladder = system("v[i]' = d[i] - if(i < N, d[i+1], 0) - 0.3*v[i] for i = 1..N\ns = 2*sin(3*t)",
                                 "\"v[i]\" = \"0.2*sin(i)\"",
                                 fmt::format("[parameters]\nN = {}\n[constraint.d]\nfor = \"i = 1..N\"\n"
                                             "gap = \"v[i] - if(i == 1, s, v[i-1]) + 0.2*d[i]\"\n",
                                             n));
    RunOptions options = ladder.options(3, 1e-9);
    options.step.emplace();
    const Trajectory by_events = ladder.run(3), by_steps = ladder.run(options);
    EXPECT_EQ(by_events.events.size(), by_steps.events.size());
    for (size_t i = 0; i < at(n); ++i)
      EXPECT_NEAR(by_steps.end.state[i], by_events.end.state[i], 1e-7) << n << " " << i;
  }
}

// A block, 0.4 wide and 1 high, on the edges of its base, with friction at both. `ground`: how the floor moves.
System block_on_edges(const std::string& ground, const std::string& v) {
  const std::string equations = R"(
    x' = v
    y' = vy
    th' = w
    v' = F1 + F2
    vy' = -9.81 + N1 + N2
    w' = (N1*x1 - F1*y1 + N2*x2 - F2*y2)*3/0.29
    x1 = -0.2*cos(th) + 0.5*sin(th)
    y1 = -0.2*sin(th) - 0.5*cos(th)
    x2 = 0.2*cos(th) + 0.5*sin(th)
    y2 = 0.2*sin(th) - 0.5*cos(th)
    F1 = -N1/2*sign(v - y1*w - ground)
    F2 = -N2/2*sign(v - y2*w - ground)
    ground = )";
  return system(equations + ground, "x = 0\ny = 0.5\nth = 0\nv = " + v + "\nvy = 0\nw = 0",
                "[constraint.N1]\ngap = \"y + y1\"\nrestitution = 0.2\n"
                "[constraint.N2]\ngap = \"y + y2\"\nrestitution = 0.2\n");
}

// Carried along by a floor that pushes it by less than friction holds (2.4 < 4.9) and tilts it by less than its weight
// rights it (2.4*0.5 < 9.81*0.2): x = A/om (1 - cos om t). Both contacts were opened by rounding of their rates.
TEST(TimeStepping, ABlockOnItsEdgesIsCarriedByTheFloor) {
  const System block = block_on_edges("0.4*sin(6*t)", "0");
  RunOptions options = block.options(5, 1e-10);
  for (const double dt : {0.0, 1e-3, 1e-2}) {
    options.step.emplace().dt = dt;
    const Trajectory t = block.run(options);
    EXPECT_TRUE(t.events.empty()) << dt << " " << t.events.size();
    EXPECT_NEAR(t.end.state[0], 0.4 / 6 * (1 - std::cos(30.0)), dt == 0 ? 1e-5 : 10 * dt * dt) << dt;
    EXPECT_NEAR(t.end.state[1], 0.5, 1e-9) << dt;
  }
}

// Pushed, it rocks, slides and comes to rest (after 2.1 s by events): friction that balances there balances for good,
// also where its force was not known when the mode was entered. It crept back at 0.001/s.
TEST(TimeStepping, ABlockOnItsEdgesComesToRest) {
  const System block = block_on_edges("0*t", "1");
  RunOptions options = block.options(5, 1e-10);
  const Trajectory by_events = block.run(options);
  options.step.emplace();
  const Trajectory by_steps = block.run(options);
  for (const char* name : {"v", "vy", "w"}) EXPECT_NEAR(by_steps.end.state[at(block.state(name))], 0, 1e-9) << name;
  EXPECT_NEAR(by_steps.end.state[0], by_events.end.state[0], 1e-4);
}

}  // namespace
}  // namespace saltus::physics
