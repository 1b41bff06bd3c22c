#include "ask/phase.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace saltus {
namespace {

PhaseAnswer phase_of(const std::string& text, std::vector<std::string> couple = {}) {
  PhaseQuestion question{.orbit = {.system = System::from_text(text)}};
  question.couple = std::move(couple);
  return ask(question);
}

double by(const PhaseAnswer& answer, const std::string& parameter) {
  const auto found = std::find(answer.parameters.begin(), answer.parameters.end(), parameter);
  return answer.period_by_parameter.at(static_cast<size_t>(found - answer.parameters.begin()));
}

TEST(Phase, OfALeakyIntegratorThatFiresIsTheReciprocalOfItsRate) {
  const PhaseAnswer answer = phase_of(R"(
equations = "v' = I - v"
[parameters]
I = 1.5
[initial]
v = 0
[jump.spike]
on = "v - 1"
direction = "rising"
set = { v = 0 }
)");
  ASSERT_TRUE(answer.found) << answer.message;
  EXPECT_NEAR(answer.period, std::log(3.0), 1e-12);  // log(I/(I - 1))
  EXPECT_NEAR(by(answer, "I"), 1 / 1.5 - 1 / 0.5, 1e-10);
  ASSERT_EQ(answer.jumps.size(), 1U);
  EXPECT_NEAR(answer.jumps[0].before.z[0], 1 / 0.5, 1e-10);
  EXPECT_NEAR(answer.jumps[0].after.z[0], 1 / 1.5, 1e-10);
  for (const PhasePoint& p : answer.points) EXPECT_NEAR(p.z[0] * (1.5 - p.state[0]), 1, 1e-10);
}

TEST(Phase, OfAQuadraticIntegratorPeaksWhereItIsSlow) {
  const PhaseAnswer answer = phase_of(R"(
equations = "v' = v^2 + I"
[parameters]
I = 0.25
[initial]
v = -10
[jump.spike]
on = "v - 10"
direction = "rising"
set = { v = -10 }
)");
  ASSERT_TRUE(answer.found) << answer.message;
  EXPECT_NEAR(answer.period, 4 * std::atan(20.0), 1e-10);  // 2/sqrt(I) atan(10/sqrt(I))
  for (const PhasePoint& p : answer.points) EXPECT_NEAR(p.z[0] * (p.state[0] * p.state[0] + 0.25), 1, 1e-9);
}

TEST(Phase, OfARingOfRelaysIsTheLeftVectorOfItsSaltationMatrices) {
  // Between crossings x_i = (x_i + s) e^-t - s. By mpmath with the saltation matrices written by hand: T = 6 log of the
  // golden ratio; where x1 crosses upwards x = (0, (sqrt(5) - 1)/2, (sqrt(5) - 3)/2) and, just behind it,
  // Z = (-1/sqrt(5), -(5 + 3 sqrt(5))/10, (5 + sqrt(5))/10).
  const PhaseAnswer answer = phase_of(R"(
equations = """
x1' = -x1 - sign(x3)
x2' = -x2 - sign(x1)
x3' = -x3 - sign(x2)
"""
[initial]
x1 = 1
x2 = -0.5
x3 = 0.1
)");
  ASSERT_TRUE(answer.found) << answer.message;
  const double root = std::sqrt(5.0);
  EXPECT_NEAR(answer.period, 6 * std::log((1 + root) / 2), 1e-10);
  const auto rises = std::find_if(answer.jumps.begin(), answer.jumps.end(), [](const PhaseJump& j) {
    return std::abs(j.after.state[0]) < 1e-9 && j.after.state[1] > 0;
  });
  ASSERT_NE(rises, answer.jumps.end());
  EXPECT_NEAR(rises->after.z[0], -1 / root, 1e-9);
  EXPECT_NEAR(rises->after.z[1], -(5 + 3 * root) / 10, 1e-9);
  EXPECT_NEAR(rises->after.z[2], (5 + root) / 10, 1e-9);
}

TEST(Phase, ForgetsKicksAgainstTheForceThatSlides) {
  const PhaseAnswer answer = ask(PhaseQuestion{.orbit = {.system = System::example("belt_stribeck")}});
  ASSERT_TRUE(answer.found) << answer.message;
  const Trajectory& run = answer.orbit.orbit.trajectory;
  int stuck = 0;
  for (const PhasePoint& p : answer.points) {
    const double t = run.start_time + p.t;
    if (run.arcs[static_cast<size_t>(run.pieces[run.piece_at(t)].arc)].mode.switches[0] != '0') continue;
    ++stuck;
    EXPECT_NEAR(p.z[1], 0, 1e-9) << "t = " << p.t;  // friction acts on the velocity
  }
  EXPECT_GT(stuck, 20);
}

TEST(Phase, DerivativesOfThePeriodAreDifferencesOfPeriods) {
  const auto period = [](const System& system) { return ask(OrbitQuestion{.system = system}).orbit.period; };
  for (const char* name :
       {"belt_stribeck", "thermostat", "relay_feedback", "simplest_walker", "rimless_wheel", "torsion"}) {
    const System system = System::example(name);
    const PhaseAnswer answer = ask(PhaseQuestion{.orbit = {.system = system}});
    ASSERT_TRUE(answer.found) << name << ": " << answer.message;
    const auto values = answer.orbit.options.parameters;
    for (size_t i = 0; i < answer.parameters.size(); ++i) {
      const double h = 1e-4 * std::max(std::abs(values[i]), 1e-2);
      const auto at = [&](double k) { return period(system.with({{answer.parameters[i], values[i] + k * h}})); };
      const double difference = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h);
      EXPECT_NEAR(answer.period_by_parameter[i], difference, 1e-6 * std::max(1.0, std::abs(difference)))
          << name << ", " << answer.parameters[i];
    }
  }
}

TEST(Phase, EventsMoveWithParametersAsTheirTimesSay) {
  // Cooling from `high` to `low` and heating back, by exponentials: the time of each half is a logarithm.
  const PhaseAnswer answer = phase_of(R"(
equations = """
x' = -x + on
on' = 0
"""
[parameters]
low = 0.3
high = 0.6
[initial]
x = 0.4
on = 1
[jump.off]
on = "x - high"
direction = "rising"
set = { on = 0 }
[jump.again]
on = "x - low"
direction = "falling"
set = { on = 1 }
)");
  ASSERT_TRUE(answer.found) << answer.message;
  ASSERT_EQ(answer.events.size(), 2U);
  EXPECT_NEAR(answer.period, std::log(0.6 / 0.3) + std::log(0.7 / 0.4), 1e-10);
  const PhaseEvent& second = answer.events[1];
  const bool cooling = second.event.on[0] == "again";  // after the time log(high/low), else log((1 - low)/(1 - high))
  EXPECT_NEAR(second.by_parameter[0], cooling ? -1 / 0.3 : -1 / 0.7, 1e-9);
  EXPECT_NEAR(second.by_parameter[1], cooling ? 1 / 0.6 : 1 / 0.4, 1e-9);
}

TEST(Phase, TwoCopiesLockInPhaseAndNotInAntiphase) {
  const PhaseAnswer answer = phase_of(R"(
equations = """
x' = v
v' = mu*(1 - x^2)*v - x
"""
[parameters]
mu = 1
g = 0.1
[initial]
x = 2
v = 0
)",
                                      {"v += g*(other.v - v)"});
  ASSERT_TRUE(answer.found) << answer.message;
  EXPECT_NEAR(answer.period, 6.663286859323126, 1e-9);  // by DOP853 and Newton's method
  ASSERT_TRUE(answer.interaction);
  ASSERT_EQ(answer.interaction->locked.size(), 2U);
  EXPECT_EQ(answer.interaction->locked[0].phase, 0);
  EXPECT_TRUE(answer.interaction->locked[0].stable);
  EXPECT_EQ(answer.interaction->locked[1].phase, 0.5);
  EXPECT_FALSE(answer.interaction->locked[1].stable);
}

TEST(Phase, SaysWhereThereIsNone) {
  const PhaseAnswer forced = ask(PhaseQuestion{.orbit = {.system = System::example("dry_friction")}});
  EXPECT_FALSE(forced.found);
  EXPECT_EQ(forced.why, "forced");
  const PhaseAnswer family = ask(PhaseQuestion{.orbit = {.system = System::example("harmonic")}});
  EXPECT_FALSE(family.found);
  EXPECT_EQ(family.why, "not unique");
}

TEST(Phase, ComplainsAboutACouplingThatIsNone) {
  const auto complaint = [](const std::string& couple) {
    try {
      plan(PhaseQuestion{.orbit = {.system = System::example("van_der_pol")}, .couple = {couple}});
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("none");
  };
  EXPECT_EQ(complaint("v"), "`couple` v: this is not STATE += FORMULA");
  EXPECT_EQ(complaint("w += other.v"), "`couple`: there is no state 'w'");
  EXPECT_NE(complaint("v += other.w").find("other.w"), std::string::npos);
  EXPECT_NE(complaint("v += sin(t)").find("'t' cannot be used here"), std::string::npos);
}

}  // namespace
}  // namespace saltus
