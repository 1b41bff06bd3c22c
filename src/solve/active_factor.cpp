#include "solve/active_factor.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/numbers.hpp"

namespace saltus {
namespace {

constexpr int widest_band = 16;        // beyond this, a general sparse factorisation is faster
constexpr double consistent = 1e-11;   // relative residual up to which a singular system counts as solvable
constexpr double regularising = 1e-8;  // shift of a singular sparse matrix, relative to its largest entry

/// LU with row exchanges of a band matrix, stored by rows: entry (i, j) at [i][j - i + lower], fill up to lower +
/// upper.
struct BandLu {
  int n = 0, lower = 0, upper = 0, width = 1;
  std::vector<double> rows, inverse;  // of pivots
  std::vector<int> swap;

  double* entry(int i, int j) { return rows.data() + static_cast<std::ptrdiff_t>(i) * width + (j - i + lower); }
  const double* entry(int i, int j) const {
    return rows.data() + static_cast<std::ptrdiff_t>(i) * width + (j - i + lower);
  }

  void start(int size, int below, int above) {
    n = size, lower = below, upper = above + below, width = lower + upper + 1;
    rows.assign(static_cast<size_t>(width) * static_cast<size_t>(n), 0.0);
    swap.assign(static_cast<size_t>(n), 0);
    inverse.assign(static_cast<size_t>(n), 0.0);
  }

  /// False if the matrix, with this largest entry, is singular to working precision.
  bool factor(double largest) {
    for (int k = 0; k < n; ++k) {
      const int last = std::min(n - 1, k + lower), right = std::min(n - 1, k + upper) - k;
      int p = k;
      for (int i = k + 1; i <= last; ++i)
        if (std::abs(*entry(i, k)) > std::abs(*entry(p, k))) p = i;
      double* const pivots = entry(k, k);
      if (std::abs(*entry(p, k)) <= 8 * eps * largest) return false;
      swap[static_cast<size_t>(k)] = p;
      if (p != k) std::swap_ranges(pivots, pivots + right + 1, entry(p, k));
      const double unit = inverse[static_cast<size_t>(k)] = 1 / pivots[0];
      for (int i = k + 1; i <= last; ++i) {
        double* const row = entry(i, k);
        const double m = row[0] *= unit;
        if (m == 0) continue;
        for (int j = 1; j <= right; ++j) row[j] -= m * pivots[j];
      }
    }
    return true;
  }

  void solve_in_place(Vec& x) const {
    for (int k = 0; k < n; ++k) {
      std::swap(x[k], x[swap[static_cast<size_t>(k)]]);
      const double* column = entry(k, k);
      for (int i = k + 1, last = std::min(n - 1, k + lower); i <= last; ++i) {
        column += width - 1;
        x[i] -= *column * x[k];
      }
    }
    for (int k = n - 1; k >= 0; --k) {
      const double* row = entry(k, k);
      double sum = x[k];
      for (int j = 1, right = std::min(n - 1 - k, upper); j <= right; ++j) sum -= row[j] * x[k + j];
      x[k] = sum * inverse[static_cast<size_t>(k)];
    }
  }
};

}  // namespace

struct ActiveFactor::Memory {
  int factorisations = 0, analyses = 0;
  std::vector<char> free;
  std::vector<int> index, place;  // free unknowns; the place of each unknown among them or -1

  bool dense = true, singular = false;
  Mat dense_matrix;
  Mat dense_part;
  Lu lu;
  std::optional<Orthogonal> orthogonal;

  SparseMat sparse_matrix;
  double largest = 0;  // entry of its free part
  bool banded = false;
  BandLu band;
  SparseMat sparse_part;  // where it is not banded
  SparseMat analysed;     // the pattern last analysed
  SparseLu sparse_lu;

  void list_free(const std::vector<char>& which) {
    free = which;
    index.clear();
    place.assign(free.size(), -1);
    for (size_t i = 0; i < free.size(); ++i) {
      if (!free[i]) continue;
      place[i] = static_cast<int>(index.size());
      index.push_back(static_cast<int>(i));
    }
  }

  void factor(const Mat& M) {
    const int k = static_cast<int>(index.size());
    dense_part.resize(k, k);
    for (int c = 0; c < k; ++c)
      for (int r = 0; r < k; ++r) dense_part(r, c) = M(index[static_cast<size_t>(r)], index[static_cast<size_t>(c)]);
    orthogonal.reset();
    singular = false;
    if (k == 0) return;
    ++factorisations;
    lu.factor(dense_part);
    singular = !(lu.rcond() > 1e-14);
    if (singular) orthogonal.emplace(dense_part, 1e-13);
  }

  /// Calls f(row, column, value) for every entry of the free part.
  template <class F>
  void each_entry(const SparseMat& M, const F& f) const {
    for (size_t j = 0; j < index.size(); ++j) {
      for (const auto [row, value] : M.column(index[j])) {
        const int i = place[static_cast<size_t>(row)];
        if (i >= 0) f(i, static_cast<int>(j), value);
      }
    }
  }

  void factor(const SparseMat& M) {
    singular = false;
    if (index.empty()) return;
    ++factorisations;
    int below = 0, above = 0;
    largest = 0;
    each_entry(M, [&](int i, int j, double value) {
      below = std::max(below, i - j);
      above = std::max(above, j - i);
      largest = std::max(largest, std::abs(value));
    });
    banded = below <= widest_band && above <= widest_band;
    if (!banded) sparse_part = M.part(index, place);
    singular = !numeric_factor(M, below, above, 0);
    if (singular) numeric_factor(M, below, above, regularising * largest);
  }

  bool numeric_factor(const SparseMat& M, int below, int above, double shift) {
    const int k = static_cast<int>(index.size());
    if (banded) {
      band.start(k, below, above);
      each_entry(M, [&](int i, int j, double value) { *band.entry(i, j) += value; });
      for (int j = 0; shift > 0 && j < k; ++j) *band.entry(j, j) += shift;
      return band.factor(largest);
    }
    SparseMat A = sparse_part;
    if (shift > 0) A = sparse_part + shift * SparseMat::Identity(k);
    if (!A.same_pattern(analysed)) {
      ++analyses;
      sparse_lu.analyse(A);
      analysed = A;
    }
    return sparse_lu.factor(A);
  }

  Vec apply_inverse(const Vec& b) const {
    if (dense) return singular ? orthogonal->solve(b) : lu.solve(b);
    if (!banded) return sparse_lu.solve(b);
    Vec x = b;
    band.solve_in_place(x);
    return x;
  }

  void subtract_product(const Mat&, const Vec& x, Vec& r) const { r -= dense_part * x; }
  void subtract_product(const SparseMat& M, const Vec& x, Vec& r) const {
    each_entry(M, [&](int i, int j, double value) { r[i] -= value * x[j]; });
  }

  double largest_free_entry(const Mat&) const { return dense_part.max_abs(); }
  double largest_free_entry(const SparseMat&) const { return largest; }

  /// Solves with what is factored; refinement makes the residual small row by row, and turns the shifted inverse of a
  /// singular matrix into the inverse on its range.
  template <class Matrix>
  LinearFate solve(const Matrix& M, const Vec& b, Vec& x) const {
    const double scale_b = b.max_abs();
    x = apply_inverse(b);
    Vec r = b, better, r_better;
    subtract_product(M, x, r);
    double error = r.max_abs();
    for (int k = 0; k < (singular ? 8 : 2) && error > 0; ++k) {
      better = x + apply_inverse(r);
      r_better = b;
      subtract_product(M, better, r_better);
      const double e_better = r_better.max_abs();
      if (!(e_better < error)) break;
      x.swap(better), r.swap(r_better), error = e_better;
      if (error <= eps * scale_b) break;
    }
    const double size = scale_b + largest_free_entry(M) * x.max_abs();
    if (!x.allFinite() || !(error <= (singular ? consistent * scale_b : 1e-6 * size))) return LinearFate::inconsistent;
    return singular ? LinearFate::least_norm : LinearFate::regular;
  }

  template <class Matrix>
  LinearFate solve_free(const Matrix& M, const Vec& rhs, Vec& x) const {
    const int k = static_cast<int>(index.size());
    if (k == 0) return LinearFate::regular;
    Vec b(k), x_free;
    for (int i : index) x[i] = 0;
    if (x.isZero(0)) {
      for (int i = 0; i < k; ++i) b[i] = rhs[index[static_cast<size_t>(i)]];
    } else {
      const Vec known = rhs - M * x;
      for (int i = 0; i < k; ++i) b[i] = known[index[static_cast<size_t>(i)]];
    }
    const LinearFate fate = solve(M, b, x_free);
    for (int i = 0; i < k; ++i) x[index[static_cast<size_t>(i)]] = x_free[i];
    return fate;
  }
};

ActiveFactor::ActiveFactor() : memory_(std::make_unique<Memory>()) {}
ActiveFactor::~ActiveFactor() = default;
ActiveFactor::ActiveFactor(ActiveFactor&&) noexcept = default;
ActiveFactor& ActiveFactor::operator=(ActiveFactor&&) noexcept = default;

int ActiveFactor::factorisations() const { return memory_->factorisations; }
int ActiveFactor::analyses() const { return memory_->analyses; }

LinearFate ActiveFactor::solve(const Mat& M, const std::vector<char>& free, const Vec& rhs, Vec& x) {
  Memory& m = *memory_;
  if (!m.dense || m.free != free || m.dense_matrix.rows() != M.rows() || m.dense_matrix != M) {
    m.dense = true;
    m.dense_matrix = M;
    m.list_free(free);
    m.factor(M);
  }
  return m.solve_free(M, rhs, x);
}

LinearFate ActiveFactor::solve(const SparseMat& M, const std::vector<char>& free, const Vec& rhs, Vec& x) {
  Memory& m = *memory_;
  const bool same = !m.dense && m.sparse_matrix == M;
  if (!same || m.free != free) {
    m.dense = false;
    if (!same) m.sparse_matrix = M;
    m.list_free(free);
    m.factor(M);
  }
  return m.solve_free(M, rhs, x);
}

}  // namespace saltus
