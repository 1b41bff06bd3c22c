// Time per point of a branch: orbits of the friction oscillator through two changes of signature, of a smooth
// oscillator through its folds, equilibria of the drill string past a Hopf point; and of one orbit from a guess.
#include <algorithm>
#include <functional>
#include <string>

#include <benchmark/benchmark.h>

#include "analysis/branch.hpp"
#include "analysis/orbit.hpp"
#include "model/read.hpp"

namespace {

using namespace saltus;

RunOptions start_of(const Model& model) {
  RunOptions o;
  o.parameters = parameter_values(model);
  o.initial = initial_values(model, o.parameters);
  o.until = 100;
  return o;
}

int parameter(const Model& model, const std::string& name) {
  const auto names = model.parameter_names();
  return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// What a whole branch costs, divided by its points; the search for its start counts with it.
void per_point(benchmark::State& state, const std::function<Branch()>& follow) {
  size_t points = 0;
  for (auto _ : state) {
    const Branch branch = follow();
    if (!branch.found) state.SkipWithError(branch.message.c_str());
    points += branch.points.size();
  }
  state.counters["points"] = benchmark::Counter(static_cast<double>(points), benchmark::Counter::kAvgIterations);
  state.counters["s/point"] =
      benchmark::Counter(static_cast<double>(points), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

Model friction() {
  return read_model_text(R"M(
equations = """
  y' = v
  v' = -y + sin(omega*t) - F*sign(v)
"""
[parameters]
F = 0.4
omega = "1/3"
[initial]
y = 1
v = 2
[section.strobe]
every = "2*pi/omega"
)M");
}

/// Newton's method, multipliers and symmetry; `from_nothing`: the formulas and their derivatives as well, which all
/// searches of a model share otherwise.
void friction_orbit(benchmark::State& state, bool from_nothing) {
  const Model model = friction();
  const Program program(model);
  OrbitOptions options{.run = start_of(model), .section = 0, .guess = true};
  options.run.initial = {-0.72, 0.36};
  for (auto _ : state) {
    const Orbit orbit = from_nothing ? find_orbit(model, options) : find_orbit(program, options);
    if (!orbit.found) state.SkipWithError(orbit.message.c_str());
  }
}

void friction_orbits(benchmark::State& state) {
  const Model model = friction();
  const BranchOptions options{.parameter = parameter(model, "omega"), .low = 1.0 / 6, .high = 1 / 1.2};
  per_point(state, [&] { return follow_orbit(model, {.run = start_of(model), .section = 0}, options); });
}

void duffing_orbits(benchmark::State& state) {
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
  per_point(state,
            [&] { return follow_orbit(model, {.run = start_of(model)}, {.parameter = 0, .low = 1.2, .high = 3}); });
}

void drill_string_equilibria(benchmark::State& state) {
  const Model model = read_model_text(R"M(
equations = """
  twist' = wu - wl
  wu' = (3.5693*u - 0.078*twist - if(wu > 0, 0.3216, -0.3026) - 1.9667*wu)/0.4765
  wl' = (0.078*twist - Tl)/0.0326
  Tl = sign(wl)*(0.094 + 0.0826*(1 - 2/(1 + exp(6.3598*abs(wl)))) - 0.291*(1 - 2/(1 + exp(0.0786*abs(wl)))))
"""
[parameters]
u = 2
[initial]
twist = 2.2
wu = 3.4
wl = 3.4
)M");
  const BranchOptions options{.parameter = parameter(model, "u"), .low = 0.4, .high = 2.5, .largest_step = 0.002};
  RunOptions start = start_of(model);
  per_point(state, [&] { return follow_equilibrium(model, {start}, options); });
}

BENCHMARK_CAPTURE(friction_orbit, from_nothing, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(friction_orbit, again, false)->Unit(benchmark::kMillisecond);
BENCHMARK(friction_orbits)->Unit(benchmark::kMillisecond);
BENCHMARK(duffing_orbits)->Unit(benchmark::kMillisecond);
BENCHMARK(drill_string_equilibria)->Unit(benchmark::kMillisecond);

}  // namespace
