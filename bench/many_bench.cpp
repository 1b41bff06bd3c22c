// Many runs: the friction diagram, 1000 values of 1/omega with 500 periods each, on one core and on two.
#include <chrono>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "analysis/sweep.hpp"
#include "ask/gallery.hpp"
#include "model/read.hpp"

namespace {

using namespace saltus;

void friction_diagram(benchmark::State& state) {
  constexpr long values = 1000;
  const Program program(read_model_text(find_in_gallery("dry_friction")->text, "dry_friction"));
  const Model& model = program.model();
  std::vector<double> range;
  for (long i = 0; i < values; ++i) range.push_back(0.3 + 6.7 * static_cast<double>(i) / (values - 1));
  SweepPlan plan;
  plan.varied.push_back(vary(model, "1/omega", Expr(1.0) / parameter_symbol(model, 1), range));
  plan.run.parameters = parameter_values(model);
  plan.run.initial = initial_values(model, plan.run.parameters);
  plan.run.until = HUGE_VAL;
  if (state.range(1) > 0) {
    plan.skip = 0;
    plan.count = 30;
    plan.settle = state.range(1);
  }
  long points = 0;
  for (auto _ : state) {
    const SweepJob job = sweep_job(program, plan, "");
    const auto runs = sweep_runs(plan, run_job(job, {.threads = static_cast<int>(state.range(0))}));
    points = 0;
    for (const auto& run : runs) points += run->seen;
  }
  state.counters["runs_per_s"] = benchmark::Counter(values, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["periods"] = static_cast<double>(points);
}

BENCHMARK(friction_diagram)
    ->ArgNames({"threads", "settle"})
    ->Args({1, 0})
    ->Args({2, 0})
    ->Args({1, 2000})
    ->Args({2, 2000})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

}  // namespace
