// What one call of leftmost_root costs: the usual "no root", the harder "no root", one root, a pair, a touch.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "solve/polynomial.hpp"

namespace {

using saltus::leftmost_root;

/// A Taylor-like tail: coefficients of alternating groups of signs that decay as 0.3^k.
std::vector<double> tail(int degree, double c0, double c1) {
  std::vector<double> c(static_cast<std::size_t>(degree) + 1);
  for (int k = 0; k <= degree; ++k) c[static_cast<std::size_t>(k)] = std::cos(1.3 * k) * std::pow(0.3, k);
  c[0] = c0;
  c[1] = c1;
  return c;
}

/// (tau - r)^2 + d, spread over the degree by the factor 1 + tail.
std::vector<double> valley(int degree, double r, double d) {
  const std::vector<double> factor = tail(degree - 2, 1, 0.1);
  std::vector<double> c(static_cast<std::size_t>(degree) + 1);
  for (std::size_t k = 0; k < factor.size(); ++k) {
    c[k] += factor[k] * (r * r + d);
    c[k + 1] -= 2 * r * factor[k];
    c[k + 2] += factor[k];
  }
  return c;
}

void search(benchmark::State& state, const std::vector<double>& c) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(c.data());
    benchmark::DoNotOptimize(leftmost_root(c, {.h = 0.9}));
  }
}

void excluded(benchmark::State& state) { search(state, tail(static_cast<int>(state.range(0)), 2, 0.5)); }
void no_root_but_not_excluded(benchmark::State& state) {
  search(state, tail(static_cast<int>(state.range(0)), 0.5, 0.6));
}
void no_root_in_a_valley(benchmark::State& state) {
  search(state, valley(static_cast<int>(state.range(0)), 0.5, 0.05));
}
void one_root(benchmark::State& state) { search(state, tail(static_cast<int>(state.range(0)), 0.3, -1)); }
void pair_of_roots(benchmark::State& state) { search(state, valley(static_cast<int>(state.range(0)), 0.5, -1e-8)); }
void touch(benchmark::State& state) { search(state, valley(static_cast<int>(state.range(0)), 0.5, 0)); }

BENCHMARK(excluded)->Arg(12)->Arg(20);
BENCHMARK(no_root_but_not_excluded)->Arg(12)->Arg(20);
BENCHMARK(no_root_in_a_valley)->Arg(12)->Arg(20);
BENCHMARK(one_root)->Arg(12)->Arg(20);
BENCHMARK(pair_of_roots)->Arg(12)->Arg(20);
BENCHMARK(touch)->Arg(12)->Arg(20);

}  // namespace

BENCHMARK_MAIN();
