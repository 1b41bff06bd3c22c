// From the text of a Burridge-Knopoff chain of N blocks to everything an engine needs of it: read, lower,
// differentiate.
#include <string>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include "model/derive.hpp"
#include "model/read.hpp"

namespace {

using namespace saltus;

/// Blocks on the floor, each on a spring of the moving plate and on springs of its neighbours; 2N states, N surfaces.
std::string chain(int n) {
  std::string equations, initial;
  for (int i = 1; i <= n; ++i) {
    equations += fmt::format("  X{0}' = V{0}\n  V{0}' = y{0}", i);
    if (i > 1) equations += fmt::format(" + al*(y{} - y{})", i, i - 1);
    if (i < n) equations += fmt::format(" + al*(y{} - y{})", i, i + 1);
    equations += fmt::format(" - D*sign(V{0}, ph)\n  y{0} = nu*t - X{0}\n", i);
    initial += fmt::format("X{0} = {1}\nV{0} = 0\n", i, 0.01 * (i % 7));
  }
  return fmt::format(
      "equations = \"\"\"\n{}\"\"\"\n[parameters]\nal = 1.2\nph = 1.25\nD = 0.8\nnu = 0.1\n[initial]\n{}", equations,
      initial);
}

void read_and_lower(benchmark::State& state) {
  const std::string text = chain(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    const Model model = read_model_text(text, "chain");
    benchmark::DoNotOptimize(model.form.f.size());
  }
  state.SetComplexityN(state.range(0));
}

void all_derivatives(benchmark::State& state) {
  const Model model = read_model_text(chain(static_cast<int>(state.range(0))), "chain");
  size_t entries = 0;
  for (auto _ : state) {
    entries = 0;
    for (const SymbolKind kind : {SymbolKind::state, SymbolKind::parameter, SymbolKind::sigma, SymbolKind::lambda}) {
      for (const auto& row : jacobian(model.form, kind)) entries += row.size();
    }
    for (const Switch& s : model.form.switches) entries += derive(s.surface, model.form).by_state.size();
  }
  state.counters["entries"] = static_cast<double>(entries);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  state.SetComplexityN(state.range(0));
}

BENCHMARK(read_and_lower)->Arg(100)->Arg(300)->Arg(1000)->Unit(benchmark::kMillisecond)->Complexity(benchmark::oAuto);
BENCHMARK(all_derivatives)->Arg(100)->Arg(300)->Arg(1000)->Unit(benchmark::kMillisecond)->Complexity(benchmark::oAuto);

}  // namespace
