#include "solve/box.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/numbers.hpp"
#include "solve/active_set.hpp"
#include "solve/equilibrate.hpp"
#include "solve/lcp.hpp"
#include "solve/lcp_methods.hpp"
#include "solve/matrix.hpp"

namespace saltus {
namespace {

constexpr double degenerate_below = 1e-10;  // |w_i| and the distance to a bound, in their units
constexpr int dense_up_to = 1000;           // a sparse problem is made dense for Lemke only up to this size

template <class Problem>
bool well_formed(const Problem& p, const Vec& x0) {
  const Index n = p.q.size();
  if (p.M.rows() != n || p.M.cols() != n || p.lo.size() != n || p.hi.size() != n) return false;
  if (!(x0.size() == 0 || x0.size() == n) || !all_finite(p.M) || !p.q.allFinite() || !x0.allFinite()) return false;
  for (Index i = 0; i < n; ++i)
    if (!(p.lo[i] <= p.hi[i]) || p.lo[i] == inf || p.hi[i] == -inf) return false;
  return true;
}

Vec clamp(const Vec& x, const Vec& lo, const Vec& hi) { return x.cwiseMax(lo).cwiseMin(hi); }

template <class Problem>
void set_point(const Problem& p, Vec x, Vec w, const BoxScales& scales, BoxSolution& s) {
  s.x = std::move(x);
  s.w = std::move(w);
  s.residual = box_residual(scales, p.lo, p.hi, s.x, s.w);
  const size_t n = static_cast<size_t>(p.q.size());
  s.state.assign(n, BoundState::inside);
  s.degenerate.assign(n, 0);
  for (size_t k = 0; k < n; ++k) {
    const Index i = static_cast<Index>(k);
    const bool at_lo = (s.x[i] - p.lo[i]) * scales.effect[i] <= degenerate_below;
    const bool at_hi = (p.hi[i] - s.x[i]) * scales.effect[i] <= degenerate_below;
    const bool still = std::abs(s.w[i]) <= degenerate_below * scales.row[i];
    if (at_lo && (!at_hi || s.w[i] > 0)) s.state[k] = BoundState::lower;
    if (at_hi && (!at_lo || s.w[i] <= 0)) s.state[k] = BoundState::upper;
    s.degenerate[k] = (at_lo || at_hi) && still;
  }
}

template <class Problem>
void set_point(const Problem& p, Vec x, BoxSolution& s) {
  Vec w = p.M * x + p.q;
  const BoxScales scales = box_scales(p.M, p.q, x);
  set_point(p, std::move(x), std::move(w), scales, s);
}

/// Keeps a point if it is better than what there was; true if the problem is solved.
bool keep_better(BoxSolution other, const BoxOptions& options, BoxSolution& s) {
  if (s.x.size() > 0 && !(other.residual < s.residual)) return s.status == SolveStatus::solved;
  other.iterations = s.iterations;
  other.status = other.residual <= options.tolerance ? SolveStatus::solved : SolveStatus::not_converged;
  s = std::move(other);
  return s.status == SolveStatus::solved;
}

template <class Problem>
bool offer(const Problem& p, const Vec& x, int iterations, const BoxOptions& options, BoxSolution& s) {
  s.iterations += iterations;
  if (x.size() != p.q.size() || !x.allFinite()) return false;
  BoxSolution other;
  set_point(p, clamp(x, p.lo, p.hi), other);
  return keep_better(std::move(other), options, s);
}

template <class Problem>
bool offer(const Problem& p, ActiveSetResult r, const BoxOptions& options, BoxSolution& s) {
  if (!r.converged) return offer(p, r.x, r.iterations, options, s);
  s.iterations += r.iterations;
  BoxSolution other;
  set_point(p, std::move(r.x), std::move(r.w), r.scales, other);
  return keep_better(std::move(other), options, s);
}

/// The states of a guess.
template <class Problem>
std::vector<BoundState> states_at(const Problem& p, const Vec& x0) {
  const Vec x = clamp(x0, p.lo, p.hi);
  std::vector<BoundState> state(static_cast<size_t>(x.size()), BoundState::inside);
  for (Index i = 0; i < x.size(); ++i) {
    if (x[i] == p.lo[i]) state[static_cast<size_t>(i)] = BoundState::lower;
    if (x[i] == p.hi[i]) state[static_cast<size_t>(i)] = BoundState::upper;
  }
  return state;
}

template <class Problem>
std::vector<BoundState> all_inside(const Problem& p) {
  std::vector<BoundState> state(static_cast<size_t>(p.q.size()), BoundState::inside);
  for (Index i = 0; i < p.q.size(); ++i)
    if (p.lo[i] == p.hi[i]) state[static_cast<size_t>(i)] = BoundState::lower;
  return state;
}

/// Where the variables would go from the middle of their bounds.
template <class Problem>
std::vector<BoundState> pushed_from_middle(const Problem& p) {
  const Index n = p.q.size();
  Vec middle = Vec::Zero(n);
  for (Index i = 0; i < n; ++i) {
    if (std::isfinite(p.lo[i]))
      middle[i] = std::isfinite(p.hi[i]) ? 0.5 * (p.lo[i] + p.hi[i]) : p.lo[i];
    else if (std::isfinite(p.hi[i]))
      middle[i] = p.hi[i];
  }
  const Vec w = p.M * middle + p.q;
  std::vector<BoundState> state(static_cast<size_t>(n), BoundState::inside);
  for (Index i = 0; i < n; ++i) {
    if (w[i] > 0 && std::isfinite(p.lo[i])) state[static_cast<size_t>(i)] = BoundState::lower;
    if (w[i] < 0 && std::isfinite(p.hi[i])) state[static_cast<size_t>(i)] = BoundState::upper;
  }
  return state;
}

template <class Problem>
bool block_steps(const Problem& p, const BoxOptions& options, ActiveFactor& factor, BoxSolution& s) {
  const auto solves = [&](std::vector<BoundState> state, int steps) {
    return offer(
        p, active_set(p.M, p.q, p.lo, p.hi, std::move(state), {.iterations = steps, .single_steps = false}, factor),
        options, s);
  };
  for (const int steps : {12, 60, 300}) {
    if (options.x0.size() == p.q.size() && solves(states_at(p, options.x0), steps)) return true;
    if (solves(all_inside(p), steps) || solves(pushed_from_middle(p), steps)) return true;
    if (p.q.size() < 50) break;  // small problems: Lemke decides faster than more trials
  }
  return false;
}

template <class Problem>
bool single_steps(const Problem& p, const BoxOptions& options, ActiveFactor& factor, BoxSolution& s) {
  const int n = static_cast<int>(p.q.size());
  const int limit = options.max_iterations > 0 ? options.max_iterations : std::min(20 * n + 100, 20000);
  const bool guessed = s.x.size() == p.q.size();
  return offer(
      p, active_set(p.M, p.q, p.lo, p.hi, guessed ? states_at(p, s.x) : all_inside(p), {.iterations = limit}, factor),
      options, s);
}

/// The problem as an LCP: x = offset + sum of sign * z over the copies of a variable, and for two finite bounds the
/// room hi - x >= 0 with its own multiplier. Regular free variables are eliminated, singular ones written as z+ - z-.
struct Reduction {
  struct Copy {
    Index variable;
    double sign;
  };
  LcpProblem lcp;
  Vec covering;
  std::vector<Copy> copies;
  std::vector<Index> free;
  Vec offset;
  bool compact = true;  ///< all bounds finite: Lemke with this covering vector cannot end in a ray
};

Reduction reduce(const BoxProblem& p) {
  const Index n = p.q.size();
  Reduction r;
  r.offset = Vec::Zero(n);
  std::vector<Index> roomy, free;  // roomy: copies whose variable has two finite bounds
  for (Index i = 0; i < n; ++i) {
    const bool below = std::isfinite(p.lo[i]), above = std::isfinite(p.hi[i]);
    if (!below && !above) {
      free.push_back(i);
      continue;
    }
    r.compact = r.compact && below && above;
    if (below && above) roomy.push_back(static_cast<Index>(r.copies.size()));
    r.copies.push_back({i, below ? 1.0 : -1.0});
    r.offset[i] = below ? p.lo[i] : p.hi[i];
  }

  Mat M = p.M;
  Vec q = p.q + p.M * r.offset;
  if (!free.empty()) {
    r.compact = false;
    const Lu lu(p.M.part(free));
    if (lu.rcond() > 1e-12) {
      q -= M.columns_at(free) * lu.solve(q.entries_at(free));
      M -= M.columns_at(free) * lu.solve_columns(M.rows_at(free));
      r.free = free;
    } else {
      for (const Index i : free)
        for (const double sign : {1.0, -1.0}) r.copies.push_back({i, sign});
    }
  }

  const Index k = static_cast<Index>(r.copies.size()), m = static_cast<Index>(roomy.size());
  r.lcp.M = Mat::Zero(k + m, k + m);
  r.lcp.q.resize(k + m);
  r.covering.resize(k + m);
  r.covering << Vec::Ones(k), Vec::Zero(m);
  for (Index a = 0; a < k; ++a) {
    const auto [i, si] = r.copies[static_cast<size_t>(a)];
    r.lcp.q[a] = si * q[i];
    for (Index b = 0; b < k; ++b) {
      const auto [j, sj] = r.copies[static_cast<size_t>(b)];
      r.lcp.M(a, b) = si * sj * M(i, j);
    }
  }
  for (Index a = 0; a < m; ++a) {
    const Index copy = roomy[static_cast<size_t>(a)], i = r.copies[static_cast<size_t>(copy)].variable;
    r.lcp.q[k + a] = p.hi[i] - p.lo[i];
    r.lcp.M(copy, k + a) = 1;
    r.lcp.M(k + a, copy) = -1;
  }
  return r;
}

Vec expand(const BoxProblem& p, const Reduction& r, const Vec& z) {
  Vec x = r.offset;
  for (size_t a = 0; a < r.copies.size(); ++a) x[r.copies[a].variable] += r.copies[a].sign * z[static_cast<Index>(a)];
  if (!r.free.empty()) {
    const Vec right = -(p.q + p.M * x);
    x.set_entries_at(r.free, Lu(p.M.part(r.free)).solve(right.entries_at(r.free)));
  }
  return x;
}

bool lemke_steps(const BoxProblem& p, const BoxOptions& options, ActiveFactor& factor, BoxSolution& s) {
  const Reduction r = reduce(p);
  const int limit = options.max_iterations > 0 ? options.max_iterations : static_cast<int>(50 * r.lcp.q.size() + 1000);
  LcpWorkspace workspace;
  const auto accept = [&](const Vec& z, int iterations) {
    Vec x = clamp(expand(p, r, z), p.lo, p.hi);
    const auto state = states_of(box_scales(p.M, p.q, x), p.lo, p.hi, x, p.M * x + p.q);
    for (Index i = 0; i < x.size(); ++i) {
      if (state[static_cast<size_t>(i)] == BoundState::lower) x[i] = p.lo[i];
      if (state[static_cast<size_t>(i)] == BoundState::upper) x[i] = p.hi[i];
    }
    if (offer(p, x, iterations, options, s) && s.residual <= 1e-14) return true;
    ActiveSetResult better = active_set(p.M, p.q, p.lo, p.hi, state, {.iterations = 3, .single_steps = false}, factor);
    better.iterations = 0;
    return offer(p, std::move(better), options, s);
  };
  const LcpRun run = lemke(r.lcp.M, r.lcp.q, r.covering, limit, workspace.dictionary);
  if (run.status == SolveStatus::solved && accept(run.z, run.iterations)) return true;
  const LcpSolution other = solve_lcp(r.lcp, {}, &workspace);
  if (other.status == SolveStatus::solved && accept(other.z, other.iterations)) return true;
  s.iterations += other.iterations;
  // Between finite bounds there always is a solution.
  if (!r.compact && (other.status == SolveStatus::no_solution || other.status == SolveStatus::ray))
    s.status = other.status;
  return s.status == SolveStatus::no_solution;
}

/// The shortest x among those with the same w: x_f = base + N t with M N = 0, |x|^2 least within the bounds.
void shorten(const BoxProblem& p, const BoxOptions& options, BoxSolution& s) {
  const BoxScales scales = box_scales(p.M, p.q, s.x);
  std::vector<Index> still;
  for (Index i = 0; i < p.q.size(); ++i)
    if (std::abs(s.w[i]) <= degenerate_below * scales.row[i] && p.lo[i] < p.hi[i]) still.push_back(i);
  if (still.empty()) return;
  Mat A = p.M.columns_at(still);
  for (Index i = 0; i < A.rows(); ++i) A.row(i) /= power_of_two(A.row(i).max_abs());  // the rank has no units
  const Mat N = null_space(A, 1e-12);
  const Index k = A.cols();
  if (N.cols() == 0) return;
  const Vec x = s.x.entries_at(still), base = x - N * (N.transpose() * x);
  Mat G(2 * k, N.cols());
  Vec room(2 * k);
  Index rows = 0;
  for (Index i = 0; i < k; ++i) {
    const double lo = p.lo[still[static_cast<size_t>(i)]], hi = p.hi[still[static_cast<size_t>(i)]];
    if (std::isfinite(hi)) G.row(rows) = -N.row(i), room[rows++] = hi - base[i];
    if (std::isfinite(lo)) G.row(rows) = N.row(i), room[rows++] = base[i] - lo;
  }
  G.conservativeResize(rows, N.cols());
  room.conservativeResize(rows);
  // least |t|^2 with room + G t >= 0: t = G^T l, 0 <= l perp room + G G^T l >= 0
  const LcpSolution dual = solve_lcp(LcpProblem{G * G.transpose(), room});
  if (dual.status != SolveStatus::solved) return;
  Vec shorter = s.x;
  shorter.set_entries_at(still, base + N * (G.transpose() * dual.z));
  BoxSolution other;
  set_point(p, clamp(shorter, p.lo, p.hi), other);
  if (!(other.residual <= options.tolerance)) return;
  other.iterations = s.iterations;
  other.status = s.status;
  s = std::move(other);
}

bool decided(const BoxSolution& s) { return s.status == SolveStatus::solved || s.status == SolveStatus::no_solution; }

/// The problem with rows and columns equilibrated, so that rays, singular blocks and signs do not depend on units.
/// Fills in what it found, in the units given.
void solve_equilibrated(const BoxProblem& p, const BoxOptions& options, BoxSolution& s) {
  const Equilibration e = equilibrate(p.M);
  const Vec back = e.column.cwiseInverse();
  const BoxProblem even{e.of(p.M), e.row.cwiseProduct(p.q), back.cwiseProduct(p.lo), back.cwiseProduct(p.hi)};
  ActiveFactor factor;
  BoxSolution t;
  t.iterations = s.iterations;
  if (s.x.size() > 0) set_point(even, back.cwiseProduct(s.x), t);
  if (!block_steps(even, options, factor, t) && !lemke_steps(even, options, factor, t))
    single_steps(even, options, factor, t);
  if (t.x.size() > 0) set_point(p, e.column.cwiseProduct(t.x), s);
  s.status = t.status;
  s.iterations = t.iterations;
}

void choose(const BoxProblem& p, const BoxOptions& options, ActiveFactor& factor, BoxSolution& s) {
  if (!block_steps(p, options, factor, s)) solve_equilibrated(p, options, s);
  if (options.shortest && s.status == SolveStatus::solved) shorten(p, options, s);
}

void choose(const SparseBoxProblem& p, const BoxOptions& options, ActiveFactor& factor, BoxSolution& s) {
  if (block_steps(p, options, factor, s)) return;
  if (p.q.size() <= dense_up_to) {
    solve_equilibrated({Mat(p.M), p.q, p.lo, p.hi}, options, s);
    if (decided(s)) return;
  }
  single_steps(p, options, factor, s);
}

template <class Problem>
BoxSolution solve(const Problem& p, const BoxOptions& options, ActiveFactor* memory) {
  options.check();
  BoxSolution s;
  if (!well_formed(p, options.x0)) {
    s.status = SolveStatus::bad_input;
    s.residual = inf;
    return s;
  }
  if (p.q.size() == 0) {
    s.status = SolveStatus::solved;
    return s;
  }
  ActiveFactor own;
  choose(p, options, memory ? *memory : own, s);
  if (!decided(s) && s.x.size() == 0) set_point(p, clamp(Vec::Zero(p.q.size()), p.lo, p.hi), s);
  return s;
}

template <class Problem>
double residual(const Problem& p, const Vec& x) {
  return box_residual(box_scales(p.M, p.q, x), p.lo, p.hi, x, p.M * x + p.q);
}

Vec mixed_bounds(const Vec& q, int equations, double free, double complementary) {
  Vec b = Vec::Constant(q.size(), complementary);
  b.head(std::clamp<Index>(equations, 0, q.size())).setConstant(free);
  return b;
}

}  // namespace

std::string_view name(SolveStatus status) {
  switch (status) {
    case SolveStatus::solved: return "solved";
    case SolveStatus::no_solution: return "no_solution";
    case SolveStatus::ray: return "ray";
    case SolveStatus::nonunique: return "nonunique";
    case SolveStatus::not_converged: return "not_converged";
    case SolveStatus::bad_input: return "bad_input";
  }
  return "";
}

void BoxOptions::check() const {
  if (!(tolerance > 0 && tolerance < 1))
    throw Error(ErrorKind::usage,
                fmt::format("tolerance = {} of a box solver: expected a number between 0 and 1", tolerance));
  if (max_iterations < 0)
    throw Error(ErrorKind::usage,
                fmt::format("max_iterations = {} of a box solver: expected a positive number, or 0 to let it be chosen",
                            max_iterations));
}

BoxProblem mixed_lcp(Mat M, Vec q, int equations) {
  Vec lo = mixed_bounds(q, equations, -inf, 0), hi = Vec::Constant(q.size(), inf);
  return {std::move(M), std::move(q), std::move(lo), std::move(hi)};
}

SparseBoxProblem mixed_lcp(SparseMat M, Vec q, int equations) {
  Vec lo = mixed_bounds(q, equations, -inf, 0), hi = Vec::Constant(q.size(), inf);
  return {std::move(M), std::move(q), std::move(lo), std::move(hi)};
}

BoxSolution solve_box(const BoxProblem& p, const BoxOptions& options, ActiveFactor* memory) {
  return solve(p, options, memory);
}

BoxSolution solve_box(const SparseBoxProblem& p, const BoxOptions& options, ActiveFactor* memory) {
  return solve(p, options, memory);
}

double box_residual(const BoxProblem& p, const Vec& x) { return residual(p, x); }
double box_residual(const SparseBoxProblem& p, const Vec& x) { return residual(p, x); }

BoxSolution solve_dual_box(const BoxProblem& p, const BoxOptions& options) {
  options.check();
  BoxSolution s;
  if (!well_formed(p, options.x0)) {
    s.status = SolveStatus::bad_input;
    s.residual = inf;
    return s;
  }
  // x = x+ - x-,  0 <= x+ perp w - lo >= 0,  0 <= x- perp hi - w >= 0; an infinite bound has no multiplier
  const Index n = p.q.size();
  std::vector<Reduction::Copy> copies;
  for (Index i = 0; i < n; ++i) {
    if (std::isfinite(p.lo[i])) copies.push_back({i, 1.0});
    if (std::isfinite(p.hi[i])) copies.push_back({i, -1.0});
  }
  const Index k = static_cast<Index>(copies.size());
  LcpProblem lcp{Mat(k, k), Vec(k)};
  for (Index a = 0; a < k; ++a) {
    const auto [i, si] = copies[static_cast<size_t>(a)];
    lcp.q[a] = si > 0 ? p.q[i] - p.lo[i] : p.hi[i] - p.q[i];
    for (Index b = 0; b < k; ++b)
      lcp.M(a, b) = si * copies[static_cast<size_t>(b)].sign * p.M(i, copies[static_cast<size_t>(b)].variable);
  }
  const LcpSolution solution =
      solve_lcp(lcp, {.tolerance = options.tolerance, .max_iterations = options.max_iterations});
  s.x = Vec::Zero(n);
  s.iterations = solution.iterations;
  s.status = solution.status;
  s.residual = solution.residual;
  if (solution.z.size() == k)
    for (Index a = 0; a < k; ++a)
      s.x[copies[static_cast<size_t>(a)].variable] += copies[static_cast<size_t>(a)].sign * solution.z[a];
  s.w = p.M * s.x + p.q;
  const BoxScales scales = box_scales(p.M, p.q, s.x);
  s.state.assign(static_cast<size_t>(n), BoundState::inside);
  s.degenerate.assign(static_cast<size_t>(n), 0);
  for (Index i = 0; i < n; ++i) {
    const size_t at = static_cast<size_t>(i);
    const double near = degenerate_below * scales.row[i];
    if (s.w[i] - p.lo[i] <= near) s.state[at] = BoundState::lower;
    if (p.hi[i] - s.w[i] <= near) s.state[at] = BoundState::upper;
    s.degenerate[at] = s.state[at] != BoundState::inside && std::abs(s.x[i]) * scales.effect[i] <= degenerate_below;
  }
  return s;
}

}  // namespace saltus
