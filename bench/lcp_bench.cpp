// Dense Lemke and the door on random problems of the usual kinds; the sparse door on a column of beads at rest.
#include <random>

#include <benchmark/benchmark.h>

#include "../tests/matrices.hpp"
#include "solve/lcp.hpp"

namespace {

using namespace saltus;

/// M = A A^T / n + I / n with normal A, q normal: positive definite, about half of the variables positive.
LcpProblem positive_definite(int n) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  const Mat A = made(n, n, [&] { return normal(random); });
  return {A * A.transpose() / n + Mat::Identity(n, n) / n, made(n, [&] { return normal(random); })};
}

/// M = A A^T + skew part + diagonal, entries uniform in [-5, 5], q in [-500, 500] (Harker and Pang).
LcpProblem harker_pang(int n) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> entry(-5, 5), diagonal(0, 0.3), constant(-500, 500);
  const Mat A = made(n, n, [&] { return entry(random); });
  const Mat B = made(n, n, [&] { return entry(random); });
  Mat M = A * A.transpose() + B - B.transpose();
  for (int i = 0; i < n; ++i) M(i, i) += diagonal(random);
  return {M, made(n, [&] { return constant(random); })};
}

void solve_repeatedly(benchmark::State& state, const LcpProblem& problem, LcpMethod method) {
  LcpWorkspace workspace;
  LcpSolution s;
  for (auto _ : state) {
    s = solve_lcp(problem, {.method = method}, &workspace);
    benchmark::DoNotOptimize(s.z.data());
  }
  if (s.status != SolveStatus::solved) state.SkipWithError("not solved");
  state.counters["pivots"] = s.iterations;
  state.counters["residual"] = s.residual;
}

void lemke_positive_definite(benchmark::State& state) {
  solve_repeatedly(state, positive_definite(static_cast<int>(state.range(0))), LcpMethod::lemke);
}
void lemke_harker_pang(benchmark::State& state) {
  solve_repeatedly(state, harker_pang(static_cast<int>(state.range(0))), LcpMethod::lemke);
}
void door_positive_definite(benchmark::State& state) {
  solve_repeatedly(state, positive_definite(static_cast<int>(state.range(0))), LcpMethod::automatic);
}
BENCHMARK(lemke_positive_definite)->Arg(10)->Arg(50)->Arg(200)->Arg(1000)->Unit(benchmark::kMicrosecond);
BENCHMARK(lemke_harker_pang)->Arg(10)->Arg(50)->Arg(200)->Arg(1000)->Unit(benchmark::kMicrosecond);
BENCHMARK(door_positive_definite)->Arg(10)->Arg(50)->Arg(200)->Arg(1000)->Unit(benchmark::kMicrosecond);

/// Contacts of a column of n beads on the floor: the impulses that hold their weight for one step.
void door_bead_column(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  std::vector<SparseEntry> entries;
  for (int i = 0; i < n; ++i) {
    entries.push_back({i, i, i == 0 ? 1.0 : 2.0});
    if (i > 0) entries.push_back({i, i - 1, -1.0}), entries.push_back({i - 1, i, -1.0});
  }
  SparseLcpProblem problem{SparseMat(n, n, entries), Vec::Zero(n)};
  problem.q[0] = -9.81e-3;
  for (auto _ : state) {
    const LcpSolution s = solve_lcp(problem);
    if (s.status != SolveStatus::solved) state.SkipWithError("not solved");
    benchmark::DoNotOptimize(s.z.data());
  }
  state.SetComplexityN(n);
}
BENCHMARK(door_bead_column)->RangeMultiplier(10)->Range(10, 100000)->Unit(benchmark::kMicrosecond)->Complexity();

}  // namespace

BENCHMARK_MAIN();
