// What a time step costs: blocks on a belt, a column of beads at rest, the two-state oscillator. Reading the model and
// the first step (which makes the formulas) are not timed; the counters are of one run.
#include <sys/resource.h>
#include <time.h>

#include <random>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "flow/simulate.hpp"
#include "model/read.hpp"

namespace {

using namespace saltus;

/// N blocks with Coulomb friction on a belt, coupled by springs.
std::string belt_text(int n) {
  std::mt19937 draw(1);
  const auto uniform = [&](double lo, double hi) { return lo + (hi - lo) * static_cast<double>(draw()) / 0x1p32; };
  std::string equations, initial, parameters;
  for (int i = 1; i <= n; ++i) {
    equations += fmt::format("  x{0}' = v{0}\n  v{0}' = -k*x{0}", i);
    if (i > 1) equations += fmt::format(" + kc*(x{} - x{})", i - 1, i);
    if (i < n) equations += fmt::format(" + kc*(x{} - x{})", i + 1, i);
    equations += fmt::format(" - F{0}*sign(v{0} - vd)\n", i);
    parameters += fmt::format("F{} = {:.6f}\n", i, uniform(0.8, 1.2));
    initial += fmt::format("x{0} = {1:.6f}\nv{0} = {2:.6f}\n", i, uniform(-0.5, 0.5), uniform(-0.5, 0.5));
  }
  return fmt::format("equations = \"\"\"\n{}\"\"\"\n[parameters]\nvd = 0.2\nk = 1\nkc = 0.5\n{}[initial]\n{}",
                     equations, parameters, initial);
}

/// N beads on top of each other at rest, N contacts.
std::string beads_text(int n) {
  std::string equations, initial, contacts;
  for (int i = 1; i <= n; ++i) {
    equations += fmt::format("  y{0}' = v{0}\n  v{0}' = -g + N{0}{1}\n", i, i < n ? fmt::format(" - N{}", i + 1) : "");
    initial += fmt::format("y{0} = {0}\nv{0} = 0\n", i);
    contacts += fmt::format("[constraint.N{0}]\ngap = \"y{0}{1} - 1\"\nrestitution = 0\n", i,
                            i > 1 ? fmt::format(" - y{}", i - 1) : "");
  }
  return fmt::format("equations = \"\"\"\n{}\"\"\"\n[parameters]\ng = 9.81\n[initial]\n{}{}", equations, initial,
                     contacts);
}

const char* const oscillator_text = R"(
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
)";

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Seconds per step of a run of so many steps, without what the first step sets up.
void step(benchmark::State& state, const std::string& text, double dt, double theta, int steps) {
  const Program program(read_model_text(text, "bench"));
  RunOptions options;
  options.parameters = parameter_values(program.model());
  options.initial = initial_values(program.model(), options.parameters);
  options.until = dt * steps;
  options.keep_events = false;
  options.step = StepOptions{.dt = dt, .theta = theta};
  double seconds = 0;
  Trajectory run;
  RunOptions first = options;
  first.until = dt;
  for (auto _ : state) {
    const double start = processor_seconds();
    simulate(program, first);
    const double middle = processor_seconds();
    run = simulate(program, options);
    const double per_step = (processor_seconds() - middle - (middle - start)) / (steps - 1);
    state.SetIterationTime(per_step);
    seconds = per_step;
  }
  if (run.end.why != Why::time) state.SkipWithError(run.end.message.c_str());
  benchmark::DoNotOptimize(seconds);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["changes_per_step"] = static_cast<double>(run.cost.events) / steps;
  state.counters["MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

void belt(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  const double theta = static_cast<double>(state.range(1)) / 10;
  step(state, belt_text(n), 1e-2, theta, n >= 100'000 ? 12 : n >= 10'000 ? 40 : 400);
}

void beads(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  step(state, beads_text(n), 1e-2, static_cast<double>(state.range(1)) / 10, n >= 10'000 ? 20 : 200);
}

void oscillator(benchmark::State& state) {
  step(state, oscillator_text, 1e-2, static_cast<double>(state.range(0)) / 10, 18'850);
}

BENCHMARK(oscillator)
    ->ArgNames({"10theta"})
    ->Arg(5)
    ->Arg(10)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(belt)
    ->ArgNames({"blocks", "10theta"})
    ->ArgsProduct({{10, 100, 1000, 10'000, 100'000}, {5, 10}})
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(beads)
    ->ArgNames({"beads", "10theta"})
    ->ArgsProduct({{10, 100, 1000, 10'000}, {5, 10}})
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
