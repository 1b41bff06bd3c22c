// From the text of a Burridge-Knopoff chain of N blocks to everything an engine needs of it: read, lower,
// differentiate.
#include <string>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "chain.hpp"
#include "model/derive.hpp"
#include "model/read.hpp"

namespace {

using namespace saltus;

void read_and_lower(benchmark::State& state) {
  const std::string text = chain_text(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    const Model model = read_model_text(text, "chain");
    benchmark::DoNotOptimize(model.form.f.size());
  }
  state.SetComplexityN(state.range(0));
}

/// The same size, said by two indexed lines: a row of blocks with one surface each.
void read_indexed(benchmark::State& state) {
  const std::string text =
      "equations = \"\"\"\nx[i]' = v[i] for i = 1..N\n"
      "v[i]' = k*(if(i < N, x[i+1], 0) - 2*x[i] + if(i > 1, x[i-1], 0)) - F*sign(v[i] - vdr) for i = 1..N\n\"\"\"\n"
      "[parameters]\nN = 1\nk = 1\nF = 0.3\nvdr = 0.1\n[initial]\n\"x[i]\" = \"0.001*i\"\n\"v[i]\" = 0\n";
  for (auto _ : state) {
    const Model model = read_model_text(text, "row", {{"N", std::to_string(state.range(0))}});
    benchmark::DoNotOptimize(model.form.f.size());
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  state.SetComplexityN(state.range(0));
}

void all_derivatives(benchmark::State& state) {
  const Model model = read_model_text(chain_text(static_cast<int>(state.range(0))), "chain");
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
BENCHMARK(read_indexed)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond)->Complexity(benchmark::oN);
BENCHMARK(all_derivatives)->Arg(100)->Arg(300)->Arg(1000)->Unit(benchmark::kMillisecond)->Complexity(benchmark::oAuto);

}  // namespace
