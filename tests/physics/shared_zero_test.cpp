// Conditions and sections that are a surface or gap of the model, or turn where their series cannot see it: what is met
// is a matter of mathematics, not of rounding. Both engines.
#include <numbers>

#include <gtest/gtest.h>

#include "physics.hpp"

namespace saltus::physics {
namespace {

using enum EventKind;

std::vector<Trajectory> by_both(const System& s, double until) {
  RunOptions steps = s.options(until, 1e-9);
  steps.step.emplace();
  return {s.run(until), s.run(steps)};
}

std::vector<double> times(const Trajectory& run, EventKind kind, std::string_view name) {
  std::vector<double> out;
  for (const Event& e : of_kind(run, kind)) {
    if (std::find(e.on.begin(), e.on.end(), name) != e.on.end()) out.push_back(e.t);
  }
  return out;
}

void expect_times(const Trajectory& run, EventKind kind, std::string_view name, const std::vector<double>& wanted,
                  double tolerance) {
  const std::vector<double> found = times(run, kind, name);
  ASSERT_EQ(found.size(), wanted.size()) << name << "\n" << story(run);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], tolerance) << name << "\n" << story(run);
}

// A block that rests on its base until the ground pushes harder than g tan(alpha): it leaves th = 0 with th = th' =
// th'' = 0.
TEST(SharedZero, AJumpOnASurfaceDoesNotHappenWhereTheSurfaceIsLeft) {
  const System block = system(
      "th' = om\n"
      "om' = -p^2*(sin(alpha*sign(th) - th) + 5*sin(6*t + 0.5)/9.81*cos(alpha*sign(th) - th))\n"
      "n' = 0\np = 2.14\nalpha = 0.25",
      "th = 0\nom = 0\nn = 0", "[jump.land]\non = \"th\"\nset = { n = \"n + 1\" }");
  const double leaves = (std::asin(9.81 * std::tan(0.25) / 5) - 0.5) / 6;
  for (const Trajectory& run : by_both(block, 0.5)) {
    expect_times(run, leave, "th", {leaves}, 1e-3);
    EXPECT_EQ(count(run, jump), 0) << story(run);
    EXPECT_LT(run.end.state[0], -0.05) << story(run);
  }
}

// x' = 1.2 sin t - sign x: stays at 0 until the force exceeds 1, comes back by itself half a period later.
TEST(SharedZero, ASectionOnASurfaceIsMetWhereItIsReachedAndNotWhereItIsLeft) {
  const System s = system("x' = 1.2*sin(t) - sign(x)", "x = 0.1",
                          "[section.any]\non = \"x\"\n[section.down]\non = \"x\"\ndirection = \"falling\"\n"
                          "[section.up]\non = \"3 - 3*(1 + x)\"\ndirection = \"falling\"\n");
  for (const Trajectory& run : by_both(s, 10 * std::numbers::pi)) {
    std::vector<double> any, down, up;
    for (const Event& e : of_kind(run, slide)) {
      any.push_back(e.t);
      (e.before.switches == "+" ? down : up).push_back(e.t);
    }
    EXPECT_EQ(any.size(), 11u) << story(run);
    EXPECT_EQ(count(run, leave), 10) << story(run);
    expect_times(run, section, "any", any, 1e-12);
    expect_times(run, section, "down", down, 1e-12);
    expect_times(run, section, "up", up, 1e-12);
  }
}

// A ball dropped from 1 under g = 10 meets the floor at t0, t0(1 + 2r), t0(1 + 2r + 2r^2), ..
TEST(SharedZero, AJumpOnAGapHappensOncePerImpact) {
  const System ball = system("q' = v\nv' = -10 + N\nn' = 0\nm' = 0", "q = 1\nv = 0\nn = 0\nm = 0",
                             "[constraint.N]\ngap = \"q\"\nrestitution = 0.5\n"
                             "[jump.touch]\non = \"q\"\nset = { n = \"n + 1\" }\n"
                             "[jump.turn]\non = \"v\"\nset = { m = \"m + 1\" }\n[section.floor]\non = \"q\"\n");
  const double t0 = std::sqrt(0.2);
  for (const Trajectory& run : by_both(ball, 1.25)) {
    for (const auto& [kind, name] : {std::pair(jump, "touch"), {impact, "N"}, {section, "floor"}})
      expect_times(run, kind, name, {t0, 2 * t0, 2.5 * t0, 2.75 * t0}, 1e-7);
    EXPECT_EQ(run.end.state[2], 4) << story(run);
    EXPECT_EQ(run.end.state[3], 7) << "at each impact, and at the top of each flight between\n" << story(run);
  }
  for (const Trajectory& run : by_both(ball, 3)) {  // past the accumulation at 3 t0, at rest
    EXPECT_EQ(run.end.why, Why::time) << story(run);
    EXPECT_NEAR(run.end.state[0], 0, 1e-9) << story(run);
    EXPECT_NEAR(run.end.state[1], 0, 1e-6) << story(run);
  }
}

TEST(SharedZero, ASectionOnTheConditionOfAJumpIsMetWithIt) {
  const System s = system("x' = cos(t)\nn' = 0", "x = 0\nn = 0",
                          "[jump.j]\non = \"x - 0.5\"\nset = { n = \"n + 1\" }\n[section.s]\non = \"1 - 2*x\"\n");
  const double first = std::asin(0.5), period = 2 * std::numbers::pi;
  for (const Trajectory& run : by_both(s, period)) {
    for (const auto& [kind, name] : {std::pair(jump, "j"), {section, "s"}})
      expect_times(run, kind, name, {first, period / 2 - first}, 1e-7);
  }
}

// x rises to 1/2 within half a unit of time, and goes on at another rate from there: back, not at all, or on. A clock
// may act at the same instant.
TEST(SharedZero, AJumpIsTouchedWhereAnotherSwitchTurnsItsConditionBack) {
  const std::pair<const char*, double> cases[] = {{"-1", 0}, {"0", 1}, {"0.5", 1}, {"t - 2", 1}};
  for (const auto& [rate, crossings] : cases) {
    for (const char* clock : {"", "[jump.a]\nevery = 0.5\nwhen = \"x > 0.25\"\nset = { m = \"m + 1\" }\n"}) {
      const System s =
          system(fmt::format("x' = if(mod(t, 1) < 0.5, 1, {})\nn' = 0\nm' = 0", rate), "x = 0\nn = 0\nm = 0",
                 fmt::format("{}[jump.b]\non = \"x - 0.5\"\ndirection = \"rising\"\nset = {{ n = \"n + 1\" }}", clock));
      std::vector<Trajectory> runs = by_both(s, 4.75);
      for (const double dt : {0.01, 0.03}) {
        RunOptions fixed = s.options(4.75);
        fixed.step.emplace().dt = dt;
        runs.push_back(s.run(fixed));
      }
      for (const Trajectory& run : runs) EXPECT_EQ(run.end.state[1], crossings) << rate << clock << story(run);
    }
  }
}

// The same of sections, of functions that are a surface of the model and of others.
TEST(SharedZero, ASectionIsTouchedWhereAnotherSwitchTurnsItsFunctionBack) {
  const std::pair<const char*, int> cases[] = {{"-1", 0}, {"0", 1}, {"0.5", 1}, {"t - 2", 1}};
  for (const auto& [rate, crossings] : cases) {
    for (const char* clock : {"", "[jump.a]\nevery = 0.5\nwhen = \"x > 0.25\"\nset = { m = \"m + 1\" }\n"}) {
      const System s = system(fmt::format("x' = if(mod(t, 1) < 0.5, 1, {})\nm' = 0\ny' = sign(x - 0.5)", rate),
                              "x = 0\nm = 0\ny = 0",
                              fmt::format("{}[section.shared]\non = \"2*x - 1\"\ndirection = \"rising\"\n"
                                          "[section.own]\non = \"x^3 - 0.125\"\ndirection = \"rising\"\n",
                                          clock));
      std::vector<Trajectory> runs = by_both(s, 4.75);
      for (const double dt : {0.01, 0.03}) {
        RunOptions fixed = s.options(4.75);
        fixed.step.emplace().dt = dt;
        runs.push_back(s.run(fixed));
      }
      for (const Trajectory& run : runs) {
        EXPECT_EQ(times(run, section, "shared").size(), static_cast<size_t>(crossings)) << rate << clock << story(run);
        EXPECT_EQ(times(run, section, "own").size(), static_cast<size_t>(crossings)) << rate << clock << story(run);
      }
    }
  }
}

// Floors at three heights and under two strengths of gravity, so that rounding differs; jumps beside them have their
// zeros with the gap, but for the last digits.
TEST(SharedZero, ASectionOnAGapIsMetAtEachImpactWhateverJumpsThere) {
  for (const double height : {1.0, 0.7, 1.3}) {
    for (const double g : {10.0, 9.81}) {
      const System ball =
          system(fmt::format("q' = v\nv' = -{} + N\nn' = 0", g), fmt::format("q = {}\nv = 0\nn = 0", height),
                 "[constraint.N]\ngap = \"q\"\nrestitution = 0.5\n"
                 "[jump.same]\non = \"q\"\nset = { n = \"n + 1\" }\n"
                 "[jump.other]\non = \"q*(1 + v^2)\"\nset = { n = \"n + 100\" }\n"
                 "[section.floor]\non = \"q\"\n");
      const double t0 = std::sqrt(2 * height / g);
      for (const Trajectory& run : by_both(ball, 2.6 * t0)) {
        expect_times(run, section, "floor", {t0, 2 * t0, 2.5 * t0}, 1e-7);
      }
    }
  }
}

// A stone thrown up at v, g = 10: it is above 0.99 of its height for a tenth of v/5, about the top. Steps are long
// where flights are parabolas.
TEST(SharedZero, ASectionIsMetWhereItIsPassedTwiceOnALongStep) {
  for (const double v : {10.0, 100.0, 1000.0, 1e4}) {
    const System s = system("y' = v\nv' = -10", fmt::format("y = 0\nv = {}", v),
                            fmt::format("[section.top]\non = \"y - {}\"\n", 0.99 * v * v / 20));
    for (const Trajectory& run : by_both(s, v / 4)) expect_times(run, section, "top", {0.09 * v, 0.11 * v}, 1e-9 * v);
  }
}

// ---- functions that turn unseen
// --------------------------------------------------------------------------------------

// |x| written as a root is 0.5 at x = -0.5 and at x = 0.5; its series from the left is -x for all times.
TEST(HiddenKink, ASurfaceBehindItIsMet) {
  for (const char* distance : {"sqrt(x^2)", "hypot(x, y)", "(x^2 + y^2)^0.5", "sqrt((t - 1.3)^2)"}) {
    const System s = system(fmt::format("x' = 1\ny' = 0\na' = sign(0.5 - {})", distance), "x = -1.3\ny = 0\na = 0");
    for (const Trajectory& run : by_both(s, 5)) {
      expect_events(run, {{0.8, cross}, {1.8, cross}}, 1e-9);
      expect_end(run, {3.7, 0, -3}, 1e-8);
    }
  }
}

TEST(HiddenKink, AJumpAndASectionBehindItAreMet) {
  const System s = system("x' = 1\ny' = 0\nn' = 0", "x = -1.3\ny = 0\nn = 0",
                          "[jump.ring]\non = \"hypot(x, y) - 0.5\"\nset = { n = \"n + 1\" }\n"
                          "[section.out]\non = \"hypot(x, y) - 1\"\ndirection = \"rising\"\n");
  for (const Trajectory& run : by_both(s, 5)) {
    expect_times(run, jump, "ring", {0.8, 1.8}, 1e-9);
    expect_times(run, section, "out", {2.3}, 1e-9);
  }
}

// A thermostat between 20 and 22 from 18: to 22 in 5 ln(12/8), down in 5 ln(12/10), up again in 5 ln(10/8). What it is
// told by is discrete, and moves by jumps alone.
TEST(SharedZero, ASectionIsMetWhereAJumpCarriesItsFunctionOver) {
  const System thermostat = system("T' = -(T - 10)/5 + 4*q\nq' = 0\nn' = 0", "T = 18\nq = 1\nn = 0",
                                   "[jump.off]\non = \"T - 22\"\ndirection = \"rising\"\nset = { q = 0 }\n"
                                   "[jump.on]\non = \"T - 20\"\ndirection = \"falling\"\nset = { q = 1 }\n"
                                   "[jump.blink]\non = \"q - 0.25\"\ndirection = \"rising\"\nset = { n = 1 }\n"
                                   "[jump.out]\non = \"n - 0.5\"\ndirection = \"rising\"\nset = { n = 0 }\n"
                                   "[section.starts]\non = \"q - 0.5\"\ndirection = \"rising\"\n"
                                   "[section.changes]\non = \"0.5 - q\"\n"
                                   "[section.arrives]\non = \"q\"\n"
                                   "[section.blinks]\non = \"n - 0.5\"\ndirection = \"rising\"\n"
                                   "[section.hot]\non = \"T - 22\"\n");
  const double first = 5 * std::log(12.0 / 8), down = 5 * std::log(12.0 / 10), up = 5 * std::log(10.0 / 8);
  std::vector<double> on, off, both;
  for (double t = first; t < 20; t += down + up) {
    off.push_back(t);
    on.push_back(t + down);
    both.insert(both.end(), {t, t + down});
  }
  ASSERT_LT(on.back(), 20);
  for (const Trajectory& run : by_both(thermostat, 20)) {
    expect_times(run, section, "starts", on, 1e-6);
    expect_times(run, section, "changes", both, 1e-6);
    expect_times(run, section, "arrives", off, 1e-6);  // and stays there; it does not count where it leaves
    expect_times(run, section, "blinks", on, 1e-6);    // up and down again at one time
    expect_times(run, section, "hot", off, 1e-6);
    for (const Event& e : of_kind(run, section)) {
      EXPECT_TRUE(e.on[0] != "starts" || e.state[1] == 1) << story(run);  // the state after the jump
      EXPECT_TRUE(e.on[0] != "blinks" || e.state[2] == 1) << story(run);
    }
  }
}

// x = cos t: functions of it that jump, and one of time that wraps. No jump, impact or switch of the equations helps.
TEST(SharedZero, ASectionIsMetWhereItsFunctionIsDiscontinuous) {
  const System s = system("x' = v\nv' = -x", "x = 1\nv = 0",
                          "[section.sign]\non = \"sign(x)\"\n"
                          "[section.round]\non = \"round(x) - 0.5\"\n"
                          "[section.if]\non = \"if(x > 0.3, 2, -1)\"\ndirection = \"rising\"\n"
                          "[section.wrap]\non = \"mod(t, 2) - 1\"\n"
                          "[section.down]\non = \"mod(t, 2) - 1\"\ndirection = \"falling\"\n"
                          "[section.floor]\non = \"floor(t) - 3.5\"\n");
  constexpr double pi = std::numbers::pi;
  const double above = std::acos(0.3);
  for (const Trajectory& run : by_both(s, 10.5)) {
    expect_times(run, section, "sign", {pi / 2, 3 * pi / 2, 5 * pi / 2}, 1e-6);
    expect_times(run, section, "round", {pi / 3, 5 * pi / 3, 7 * pi / 3}, 1e-6);
    expect_times(run, section, "if", {2 * pi - above}, 1e-6);
    expect_times(run, section, "wrap", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 1e-6);
    expect_times(run, section, "down", {2, 4, 6, 8, 10}, 1e-6);
    expect_times(run, section, "floor", {4}, 1e-6);
  }
}

// A ball dropped from 1/2 under g = 1 lands at t = 1 and, with restitution 1, every 2 after it; v turns there and on
// top. What fires at 1 and starts again from 0 has one point there, whatever rounding says of the way back.
TEST(SharedZero, AnImpactTurnsTheVelocityAndAResetIsOneMeeting) {
  const System ball = system("q' = v\nv' = -1 + l\nu' = 0.3", "q = 0.5\nv = 0\nu = 0",
                             "[constraint.l]\ngap = \"q\"\nrestitution = 1\n"
                             "[jump.fire]\non = \"u - 1\"\nset = { u = 0 }\n"
                             "[section.up]\non = \"v\"\ndirection = \"rising\"\n"
                             "[section.top]\non = \"v\"\ndirection = \"falling\"\n"
                             "[section.fires]\non = \"u - 1\"\n"
                             "[section.half]\non = \"2*u - 1\"\n");
  for (const Trajectory& run : by_both(ball, 9.5)) {
    expect_times(run, section, "up", {1, 3, 5, 7, 9}, 1e-6);
    expect_times(run, section, "top", {2, 4, 6, 8}, 1e-6);
    expect_times(run, section, "fires", {1 / 0.3, 2 / 0.3}, 1e-6);
    expect_times(run, section, "half", {0.5 / 0.3, 1 / 0.3, 1.5 / 0.3, 2 / 0.3, 2.5 / 0.3}, 1e-6);
  }
}

// Half of S goes at every pulse, n counts them, m follows n at the same time: S+ = (1 - (1 - S) e^-0.04)/2. A section
// by the same clock sees all of that; one of half its interval sees S between pulses too.
TEST(SharedZero, ASectionByTheClockLooksAfterWhatHappensAtThatTime) {
  const System pulses = system("S' = 0.02*(1 - S)\nn' = 0\nm' = 0", "S = 0.2\nn = 0\nm = 0",
                               "[jump.pulse]\nevery = 2\nset = { S = \"S/2\", n = \"n + 1\" }\n"
                               "[jump.after]\non = \"n - m - 0.5\"\nset = { m = \"n\" }\n"
                               "[section.strobe]\nevery = 2\n[section.twice]\nevery = 1\n");
  for (const Trajectory& run : by_both(pulses, 10)) {
    double S = 0.2;
    int strobe = 0, twice = 0;
    for (const Event& e : of_kind(run, section)) {
      (e.on[0] == "strobe" ? strobe : twice) += 1;
      if (e.on[0] == "twice" && twice % 2 == 1) {
        EXPECT_NEAR(e.state[0], 1 - (1 - S) * std::exp(-0.02), 1e-8) << story(run);
        continue;
      }
      if (e.on[0] == "strobe") S = (1 - (1 - S) * std::exp(-0.04)) / 2;
      EXPECT_NEAR(e.t, e.on[0] == "strobe" ? 2 * strobe : twice, 1e-12);
      EXPECT_NEAR(e.state[0], S, 1e-8) << story(run);
      EXPECT_EQ(e.state[1], e.t / 2) << story(run);
      EXPECT_EQ(e.state[2], e.t / 2) << story(run);
    }
    EXPECT_EQ(strobe, 5) << story(run);
    EXPECT_EQ(twice, 10) << story(run);
  }
}

// An integrator that waits while its controller is saturated: |c - 1/2| = 1/2 is c = 1 or c = 0, where sat(c, 0, 1) has
// its corners. It slides there and leaves both together. SciPy's DOP853 between events found by hand, rtol = 1e-12.
TEST(SharedZero, AnIntegratorWaitsAtTheCornersOfItsSaturation) {
  struct Case {
    double inductance, supply, capacitance, load, gain, target, share;
    std::vector<double> end;
  };
  for (const Case& k :
       {Case{
            1.073, 11.751, 0.644, 1.524, 0.548, 3.793, 0.371, {2.06450837640731, 2.519632426180921, 0.536417860719526}},
        Case{1.209,
             7.312,
             1.074,
             2.676,
             0.897,
             7.852,
             0.064,
             {6.127309072926843, 9.494823400935234, 0.6913417992079252}}}) {
    const System s = system(
        fmt::format("i' = {}*({}*u - v)\nv' = {}*(i - v/{})\nz' = {}*er*if(abs(c - 0.5) < 0.5, 1, 0)\ner = {} - v\n"
                    "c = {}*er + z\nu = step(sat(c, 0, 1) - mod(t, 0.5)/0.5)",
                    k.inductance, k.supply, k.capacitance, k.load, k.gain, k.target, k.share),
        "i = 0\nv = 0\nz = 0");
    RunOptions options = s.options(15, 1e-10);
    for (const double accuracy : {1e-10, 1e-8}) {
      const Trajectory run = s.run(options);
      EXPECT_EQ(run.end.why, Why::time) << run.end.message;
      for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(run.end.state[i], k.end[i], accuracy) << i;
      options.step.emplace();
    }
  }
}

}  // namespace
}  // namespace saltus::physics
