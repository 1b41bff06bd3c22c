// Times of events after many of them: errors of roots do not add up. Closed forms.
#include <gtest/gtest.h>

#include "physics.hpp"

namespace saltus::physics {
namespace {

/// The integral of sign(sin(k t)).
double triangle(double k, double t) {
  const double half = pi / k, whole = std::floor(t / half), rest = t - whole * half;
  return std::fmod(whole, 2) == 0 ? rest : half - rest;
}

// Each time is off by rounding of time, 2e-16 t at most, and none by those before it: 1e4 of them at random.
TEST(LongTimes, SwitchesOfTimeDoNotDrift) {
  for (const double k : {pi, 3.0, 7.3}) {
    const System s = system(fmt::format("x' = sign(sin({:.17g}*t))", k), "x = 0");
    for (const double tolerance : {1e-6, 1e-10}) {
      const double until = 1e4 * pi / k + 0.25;
      const Trajectory run = s.run(until, tolerance);
      EXPECT_NEAR(run.end.state[0], triangle(k, until), 4e-10) << k << " " << tolerance;
    }
  }
}

TEST(LongTimes, SwitchesOfTimeDoNotDriftAlongImplicitSteps) {
  const System s = system("x' = sign(sin(3*t))", "x = 0");
  RunOptions stiff = s.options(3000.25, 1e-9);
  stiff.stiff = true;
  EXPECT_NEAR(s.run(stiff).end.state[0], triangle(3, 3000.25), 4e-10);
}

TEST(LongTimes, JumpsOfTimeDoNotDrift) {
  const System s = system("x' = u\nu' = 0", "x = 0\nu = 1",
                          "[jump.k]\non = \"sin(3*t)\"\ndirection = \"any\"\nset = { u = \"-u\" }\n");
  EXPECT_NEAR(s.run(1e4 + 0.25, 1e-9).end.state[0], triangle(3, 1e4 + 0.25), 4e-10);
}

// An oscillator switches with its own zeros: x' = sign(cos t).
TEST(LongTimes, SwitchesOfStatesKeepToTheirStates) {
  const System s = system("x' = sign(c)\nc' = -s\ns' = c", "x = 0\nc = 1\ns = 0");
  const Trajectory run = s.run(5000, 1e-12);
  const double phase = std::atan2(run.end.state[2], run.end.state[1]) - std::remainder(5000, 2 * pi);
  EXPECT_NEAR(std::remainder(phase, 2 * pi), 0, 1e-9);
  EXPECT_NEAR(run.end.state[0], triangle(1, 5000 + pi / 2) - pi / 2, 2e-9);
}

}  // namespace
}  // namespace saltus::physics
