// The derivative of the time-stepping engine's steps: central differences of its own runs.
#include <cmath>

#include <gtest/gtest.h>

#include "ask/run.hpp"

namespace saltus {
namespace {

struct Case {
  const char* what;
  const char* model;
  double until, dt, theta;
};

const char* const sliding = R"(
equations = """
  y' = v
  v' = -y + sin(omega*t) - F*sign(v)
"""
[parameters]
F = 0.4
omega = 0.8
[initial]
y = 1
v = 2
)";

const char* const impacts = R"(
equations = """
  x' = v
  v' = -2*z*v - x - 0.1*x^3 + cos(w*t) - N
"""
[parameters]
z = 0.05
w = 0.8
r = 0.7
[constraint.N]
gap = "1 - x"
restitution = "r"
[initial]
x = 0.2
v = 0.3
)";

const char* const diode = R"(
equations = """
  u' = (a*sin(t) - u + L)/R
  w' = u - w^3
"""
[parameters]
a = 2
R = 0.7
[constraint.L]
gap = "u"
[initial]
u = 1
w = 0.4
)";

const char* const relay = R"(
equations = """
  x' = y - k*sign(x)
  y' = -a*x*cos(x) - y - sign(x)*exp(-y^2)
"""
[parameters]
k = 0.3
a = 1.5
[initial]
x = 1
y = -0.5
)";

class StepSensitivity : public testing::TestWithParam<Case> {
 protected:
  RunQuestion question(const System& system) const {
    const Case& c = GetParam();
    return {.system = system,
            .solve = {.until = c.until, .engine = "step", .dt = c.dt, .theta = c.theta},
            .rows = false,
            .dense = false};
  }
  std::vector<double> end(const System& system) const { return ask(question(system)).trajectory.end.state; }
};

TEST_P(StepSensitivity, IsThatOfTheSteps) {
  const System system = System::from_text(GetParam().model);
  const Model& model = system.model();
  RunQuestion with = question(system);
  with.sensitivity.emplace();
  const RunAnswer answer = ask(with);
  ASSERT_EQ(answer.trajectory.end.why, Why::time);
  ASSERT_TRUE(answer.sensitivity.has_value());
  const std::vector<double> parameters = parameter_values(model), initial = initial_values(model, parameters);
  constexpr double eps = 1e-6;
  const auto compare = [&](const std::vector<double>& up, const std::vector<double>& down, size_t column, bool state) {
    for (size_t i = 0; i < up.size(); ++i) {
      const double slope = (up[i] - down[i]) / (2 * eps);
      const double told = (state ? answer.sensitivity->by_state : answer.sensitivity->by_parameter)[i][column];
      EXPECT_NEAR(told, slope, 2e-5 * (1 + std::abs(slope))) << (state ? "by state " : "by parameter ") << column;
    }
  };
  for (size_t k = 0; k < initial.size(); ++k) {
    const std::string name = model.states[k].name;
    compare(end(system.with({}, {{name, initial[k] + eps}})), end(system.with({}, {{name, initial[k] - eps}})), k,
            true);
  }
  for (size_t k = 0; k < parameters.size(); ++k) {
    const std::string name = model.parameters[k].name;
    compare(end(system.with({{name, parameters[k] + eps}})), end(system.with({{name, parameters[k] - eps}})), k, false);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, StepSensitivity,
    testing::Values(Case{"Sliding", sliding, 9, 0.01, 0.5}, Case{"SlidingByBackwardEuler", sliding, 9, 0.01, 1},
                    Case{"Impacts", impacts, 12, 0.01, 0.5}, Case{"ImpactsByBackwardEuler", impacts, 6, 0.01, 1},
                    Case{"Diode", diode, 8, 0.02, 0.5}, Case{"DiodeByBackwardEuler", diode, 8, 0.02, 1},
                    Case{"Relay", relay, 3, 0.01, 0.5}),
    [](const auto& c) { return std::string(c.param.what); });

}  // namespace
}  // namespace saltus
