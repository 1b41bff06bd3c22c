// What an event costs in a large system: a Burridge-Knopoff chain of N blocks (2N states, N surfaces) over 100 units of
// time at a tolerance of 1e-9; others of which the parts are further apart. Reading the model is not timed; the
// counters are of one run.
#include <benchmark/benchmark.h>

#include "chain.hpp"
#include "flow/simulate.hpp"
#include "model/read.hpp"

namespace {

using namespace saltus;

void run_chain(benchmark::State& state, const std::string& text) {
  const Program program(read_model_text(text, "chain"));
  RunOptions options;
  options.parameters = parameter_values(program.model());
  options.initial = initial_values(program.model(), options.parameters);
  options.until = static_cast<double>(state.range(1));
  options.tolerance = 1e-9;
  options.keep_events = false;
  Trajectory run;
  for (auto _ : state) run = simulate(program, options);
  if (run.end.why != Why::time) state.SkipWithError(run.end.message.c_str());
  const double events = static_cast<double>(run.cost.events);
  state.counters["events"] = events;
  state.counters["steps"] = static_cast<double>(run.cost.steps);
  state.counters["s_per_event"] =
      benchmark::Counter(events, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void chain(benchmark::State& state) { run_chain(state, chain_text(static_cast<int>(state.range(0)))); }

/// Friction that becomes weaker with the velocity: no weighted sums, and no modes that could be compiled one by one.
void weakening_chain(benchmark::State& state) {
  run_chain(state, chain_text(static_cast<int>(state.range(0)), "D*sign(V{0}, ph)/(1 + 1.5*abs(V{0}))"));
}

/// Rooms whose heaters are switched by jumps.
void thermostats(benchmark::State& state) {
  run_chain(state, fmt::format(R"toml(equations = """
  T[i]' = (1 + 0.3*sin(7*i))*(q[i] - T[i]) for i = 1..N
  q[i]' = 0 for i = 1..N
"""
[parameters]
N = {}
[jump.off]
for = "i = 1..N"
on = "T[i] - 0.7"
direction = "rising"
set = {{ "q[i]" = 0 }}
[jump.on]
for = "i = 1..N"
on = "T[i] - 0.3"
direction = "falling"
set = {{ "q[i]" = 1 }}
[initial]
"T[i]" = "0.5 + 0.1*sin(11*i)"
"q[i]" = 1
)toml",
                               state.range(0)));
}

/// Neurons in a ring that fire and push the next one.
void neurons(benchmark::State& state) {
  run_chain(state, fmt::format(R"toml(equations = """
  u[i]' = 1.2 + 0.1*sin(3*i) - u[i] for i = 1..N
"""
[parameters]
N = {}
[jump.fire]
for = "i = 1..N"
on = "u[i] - 1"
direction = "rising"
set = {{ "u[i]" = 0, "u[mod(i, N) + 1]" = "u[mod(i, N) + 1] + 0.02" }}
[initial]
"u[i]" = "0.5 + 0.4*sin(11*i)"
)toml",
                               state.range(0)));
}

/// Capacitors in a row behind diodes with a resistance.
void diodes(benchmark::State& state) {
  run_chain(state, fmt::format(R"toml(equations = """
  v[i]' = D[i] - D[i+1] - 0.05*v[i] for i = 1..N-1
  v[N]' = D[N] - 0.05*v[N]
"""
[parameters]
N = {}
[constraint.D]
for = "i = 1..N"
gap = "v[i] - if(i == 1, sin(t), v[i-1]) + 0.1*D[i]"
[initial]
"v[i]" = "0.02*sin(5*i)"
)toml",
                               state.range(0)));
}

BENCHMARK(diodes)
    ->ArgNames({"diodes", "until"})
    ->Args({10, 10})
    ->Args({100, 10})
    ->Args({1000, 10})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(thermostats)
    ->ArgNames({"rooms", "until"})
    ->Args({100, 5})
    ->Args({1000, 5})
    ->Args({10'000, 5})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(neurons)
    ->ArgNames({"neurons", "until"})
    ->Args({100, 5})
    ->Args({1000, 5})
    ->Args({10'000, 5})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(weakening_chain)
    ->ArgNames({"blocks", "until"})
    ->Args({10, 100})
    ->Args({100, 100})
    ->Args({1000, 100})
    ->Args({10'000, 100})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(chain)
    ->ArgNames({"blocks", "until"})
    ->Args({10, 100})
    ->Args({100, 100})
    ->Args({1000, 100})
    ->Args({10'000, 100})
    ->Unit(benchmark::kMillisecond);

}  // namespace
