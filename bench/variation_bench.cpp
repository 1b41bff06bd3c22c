// What tangents cost: a run with all n directions, as a multiple of the same run without, machine code in both.
#include <cmath>
#include <ctime>
#include <functional>

#include <benchmark/benchmark.h>

#include "ask/gallery.hpp"
#include "flow/variation.hpp"
#include "model/read.hpp"

namespace {

using namespace saltus;

/// Of the processor: others may want it too.
double seconds_of(const std::function<void()>& run) {
  const std::clock_t start = std::clock();
  run();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

/// Both runs in turn, so that the ratio does not depend on what else the machine does; the smallest time of each.
void tangents(benchmark::State& state, const char* name, double until) {
  const Program program(read_model_text(find_in_gallery(name)->text, name));
  RunOptions plain;
  plain.parameters = parameter_values(program.model());
  plain.initial = initial_values(program.model(), plain.parameters);
  plain.until = until;
  plain.keep_events = false;
  plain.tolerance = 1e-9;
  if (native_available()) plain.native = Native::on;
  Simulator simulator(program);
  Variation variation(program, plain);
  RunOptions carried = plain;
  carried.on_piece = [&](const Piece& piece, const Arc& arc) { variation.along(piece, arc); };
  carried.on_transition = [&](const Transition& event) { variation.through(event); };
  double without = HUGE_VAL, with = HUGE_VAL;
  long steps = 0;
  for (auto _ : state) {
    without = std::min(without, seconds_of([&] { steps = simulator.run(plain).cost.steps; }));
    with = std::min(with, seconds_of([&] {
                      variation.begin(Mat::Identity(program.states(), program.states()));
                      simulator.run(carried);
                    }));
  }
  state.counters["states"] = program.states();
  state.counters["us_per_step"] = 1e6 * without / static_cast<double>(steps);
  state.counters["ratio"] = with / without;
}

BENCHMARK_CAPTURE(tangents, lorenz, "lorenz", 100)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(tangents, duffing, "duffing", 300)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(tangents, van_der_pol, "van_der_pol", 300)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(tangents, pendulum, "pendulum", 1000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(tangents, chua, "chua", 300)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(tangents, drill_string, "drill_string", 2000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(tangents, dry_friction, "dry_friction", 3000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(tangents, impact_oscillator, "impact_oscillator", 1000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(tangents, buck, "buck", 0.4)->Unit(benchmark::kMillisecond);

}  // namespace
