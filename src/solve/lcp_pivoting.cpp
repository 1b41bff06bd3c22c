#include <algorithm>
#include <cmath>
#include <numeric>

#include "solve/lcp_methods.hpp"

namespace saltus {
namespace {

constexpr double tiny_pivot = 1e-11;  // relative to the largest entry of the column
constexpr double tie = 1e-12;         // relative difference below which two ratios are equal

/// Which variable stands where in the dictionary of w = q + M z + d z0.
/// Variables are numbered: w_i is i, z_i is n + i, z0 is 2n.
struct Basis {
  explicit Basis(int size) : n(size), basic(size), nonbasic(size + 1), place(2 * size + 1) {
    for (int i = 0; i < n; ++i) set_basic(i, i);
    for (int i = 0; i <= n; ++i) set_nonbasic(i, n + i);
  }

  int z0() const { return 2 * n; }
  int complement(int v) const { return v < n ? v + n : v - n; }
  bool is_basic(int v) const { return place[static_cast<size_t>(v)] >= 0; }
  int row(int v) const { return place[static_cast<size_t>(v)]; }
  int column(int v) const { return -1 - place[static_cast<size_t>(v)]; }
  int at_row(int r) const { return basic[static_cast<size_t>(r)]; }
  int at_column(int c) const { return nonbasic[static_cast<size_t>(c)]; }

  void exchange(int r, int c) {
    const int out = at_row(r), in = at_column(c);
    set_basic(r, in);
    set_nonbasic(c, out);
  }

  int n;
  std::vector<int> basic, nonbasic, place;  // place: row of a basic variable, -1 - column of a nonbasic one

 private:
  void set_basic(int r, int v) { basic[static_cast<size_t>(r)] = v, place[static_cast<size_t>(v)] = r; }
  void set_nonbasic(int c, int v) { nonbasic[static_cast<size_t>(c)] = v, place[static_cast<size_t>(v)] = -1 - c; }
};

/// Coefficient of the k-th perturbation (eps^k added to q_k) in basic variable r.
double perturbation(const Dictionary& D, const Basis& basis, int r, int k) {
  if (basis.is_basic(k)) return basis.row(k) == r ? 1.0 : 0.0;
  return -D.entry(r, basis.column(k));
}

/// Among rows with equal ratios, the one that is first when q_k is perturbed by eps^k.
int lexicographic_first(const Dictionary& D, const Basis& basis, const Vec& u, std::vector<int>& tied) {
  std::vector<double> ratio(tied.size());
  for (int k = 0; k < basis.n && tied.size() > 1; ++k) {
    double least = std::numeric_limits<double>::infinity(), size = 0;
    for (size_t i = 0; i < tied.size(); ++i) {
      ratio[i] = perturbation(D, basis, tied[i], k) / -u[tied[i]];
      least = std::min(least, ratio[i]);
      size = std::max(size, std::abs(ratio[i]));
    }
    size_t kept = 0;
    for (size_t i = 0; i < tied.size(); ++i)
      if (ratio[i] - least <= 1e-10 * size) tied[kept++] = tied[i];
    tied.resize(kept);
  }
  return tied.front();
}

/// The row whose basic variable first reaches zero when the driving one grows; -1: none does.
int blocking_row(const Dictionary& D, const Basis& basis, const Vec& u, std::vector<int>& tied) {
  const Vec& b = D.constants();
  const int n = D.rows();
  const double least_pivot = tiny_pivot * u.max_abs();
  double shortest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < n; ++i)
    if (u[i] < -least_pivot) shortest = std::min(shortest, std::max(b[i], 0.0) / -u[i]);
  if (std::isinf(shortest)) return -1;
  tied.clear();
  for (int i = 0; i < n; ++i) {
    if (!(u[i] < -least_pivot) || std::max(b[i], 0.0) / -u[i] > shortest * (1 + tie)) continue;
    if (basis.at_row(i) == basis.z0()) return i;
    tied.push_back(i);
  }
  return tied.size() == 1 ? tied.front() : lexicographic_first(D, basis, u, tied);
}

Vec z_part(const Basis& basis, const Vec& basic_values) {
  Vec z = Vec::Zero(basis.n);
  for (int r = 0; r < basis.n; ++r)
    if (const int v = basis.at_row(r); v >= basis.n && v < basis.z0()) z[v - basis.n] = std::max(basic_values[r], 0.0);
  return z;
}

/// Direction of z along the ray: the rates of the basic z, and 1 if the driving variable is itself a z.
Vec ray_direction(const Basis& basis, const Vec& u, int driving) {
  Vec y = z_part(basis, u);
  if (driving >= basis.n && driving < basis.z0()) y[driving - basis.n] = 1;
  return y;
}

}  // namespace

LcpRun lemke(const Mat& M, const Vec& q, const Vec& d, int pivots, Dictionary& D) {
  const int n = static_cast<int>(q.size());
  LcpRun run;
  // The most negative w_r / d_r leaves first; of equal ones the last, which the perturbation makes the smallest.
  int r = -1;
  double deepest = 0;
  for (int i = 0; i < n; ++i) {
    if (!(q[i] < 0) || !(d[i] > 0)) continue;
    if (const double depth = q[i] / d[i]; depth <= deepest) deepest = depth, r = i;
  }
  if (r < 0) {
    run.z = Vec::Zero(n);
    run.status = SolveStatus::solved;
    return run;
  }

  Basis basis(n);
  std::vector<int> tied;
  D.start(M, d, q);
  int driving = basis.z0();
  for (run.iterations = 1;; ++run.iterations) {
    const int c = basis.column(driving), leaving = basis.at_row(r);
    D.exchange(r, c);
    basis.exchange(r, c);
    if (leaving == basis.z0()) {
      run.status = SolveStatus::solved;
      break;
    }
    if (run.iterations >= pivots) break;
    driving = basis.complement(leaving);
    const Vec& u = D.column(basis.column(driving));
    r = blocking_row(D, basis, u, tied);
    if (r < 0) {
      run.status = SolveStatus::ray;
      run.certificate = ray_direction(basis, u, driving);
      break;
    }
  }
  run.z = z_part(basis, D.constants());
  return run;
}

LcpRun criss_cross(const Mat& M, const Vec& q, int pivots, Dictionary& D) {
  const int n = static_cast<int>(q.size());
  LcpRun run;
  D.start(M, Vec(), q);
  std::vector<int> index(static_cast<size_t>(n));  // the pair (w_i, z_i) that row and column r belong to
  std::vector<char> z_is_basic(static_cast<size_t>(n), 0);
  std::iota(index.begin(), index.end(), 0);
  const auto flip = [&](int i) { z_is_basic[static_cast<size_t>(i)] ^= 1; };
  const auto pair_of = [&](int r) -> int& { return index[static_cast<size_t>(r)]; };

  for (;;) {
    const Vec& b = D.constants();
    const double noise = 1e-13 * std::max(b.max_abs(), 1e-300);
    int k = -1;
    for (int r = 0; r < n; ++r)
      if (b[r] < -noise && (k < 0 || pair_of(r) < pair_of(k))) k = r;
    if (k < 0) {
      run.status = SolveStatus::solved;
      break;
    }
    if (run.iterations++ >= pivots) break;
    const Vec& row = D.row(k);
    const double least = tiny_pivot * row.max_abs();
    if (row[k] > least) {
      D.exchange(k, k);
      flip(pair_of(k));
      continue;
    }
    int j = -1;
    for (int c = 0; c < n; ++c)
      if (c != k && row[c] > least && (j < 0 || pair_of(c) < pair_of(j))) j = c;
    if (j < 0) {
      // Row k says that a nonnegative variable is a negative constant minus nonnegative terms. It is the combination
      // y of the rows of w - M z = q whose weights are the coefficients of w.
      run.status = SolveStatus::no_solution;
      run.certificate = Vec::Zero(n);
      for (int c = 0; c < n; ++c)
        if (z_is_basic[static_cast<size_t>(pair_of(c))]) run.certificate[pair_of(c)] = std::max(-row[c], 0.0);
      if (!z_is_basic[static_cast<size_t>(pair_of(k))]) run.certificate[pair_of(k)] = 1;
      break;
    }
    D.exchange(k, j);
    if (D.entry(j, k) == 0) break;  // not a sufficient matrix: the method does not apply
    D.exchange(j, k);
    flip(pair_of(k));
    flip(pair_of(j));
    std::swap(pair_of(k), pair_of(j));
  }
  run.z = Vec::Zero(n);
  for (int r = 0; r < n; ++r)
    if (z_is_basic[static_cast<size_t>(pair_of(r))]) run.z[pair_of(r)] = std::max(D.constants()[r], 0.0);
  return run;
}

}  // namespace saltus
