// The basins of the buck converter: cells per second, and what a second thread brings.
#include <benchmark/benchmark.h>

#include "analysis/basins.hpp"
#include "app/engine.hpp"
#include "app/options.hpp"

namespace saltus {
namespace {

void find(benchmark::State& state, std::size_t n, const BasinsOptions& options) {
  const Model model = load_model({"buck", {{"Vin", "13.4"}}, {}});
  const Program program(model);
  const SectionMap map{.program = program, .run = run_options(Solve{}, model, 1e12)};
  const Mesh mesh({uniform_axis(0, 0.4, 0.7, n), uniform_axis(1, 11.5, 12.3, n)});
  for (auto _ : state) {
    const Basins basins = find_basins(map, mesh, options);
    state.counters["cells_per_s"] =
        benchmark::Counter(static_cast<double>(mesh.cells()), benchmark::Counter::kIsIterationInvariantRate);
    state.counters["runs"] = static_cast<double>(basins.computed);
    state.counters["fraction_1T"] = basins.fraction(basins.basins.at(0).cells);
    state.counters["fraction_3T"] = basins.fraction(basins.basins.at(1).cells);
  }
}

void buck_cells(benchmark::State& state) { find(state, 1000, {.threads = static_cast<int>(state.range(0))}); }
BENCHMARK(buck_cells)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kSecond);

void buck_direct(benchmark::State& state) {
  find(state, 200,
       {.method = BasinsOptions::Method::direct,
        .refine = state.range(1) != 0,
        .threads = static_cast<int>(state.range(0))});
}
BENCHMARK(buck_direct)
    ->ArgNames({"threads", "refine"})
    ->Args({1, 0})
    ->Args({2, 0})
    ->Args({2, 1})
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kSecond);

void follow_ten_million_cells(benchmark::State& state) {
  std::vector<CellIndex> images(10'000'000);
  std::uint64_t z = 1;
  for (CellIndex& image : images) {
    z = z * 6364136223846793005ULL + 1442695040888963407ULL;
    image = static_cast<CellIndex>((z >> 33) % (images.size() + images.size() / 10)) -
            static_cast<CellIndex>(images.size() / 10);
  }
  for (auto _ : state) benchmark::DoNotOptimize(follow_cells(images));
}
BENCHMARK(follow_ten_million_cells)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace saltus
