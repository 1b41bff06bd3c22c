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
  int n = 0, lower = 0, upper = 0;
  Mat rows;  // column i holds row i of the matrix
  std::vector<int> swap;

  double& at(int i, int j) { return rows(j - i + lower, i); }
  double at(int i, int j) const { return rows(j - i + lower, i); }

  void start(int size, int below, int above) {
    n = size, lower = below, upper = above + below;
    rows.setZero(lower + upper + 1, n);
    swap.assign(static_cast<size_t>(n), 0);
  }

  /// False if the matrix is singular to working precision.
  bool factor() {
    double largest = rows.size() > 0 ? rows.cwiseAbs().maxCoeff() : 0;
    for (int k = 0; k < n; ++k) {
      const int last = std::min(n - 1, k + lower), right = std::min(n - 1, k + upper);
      int p = k;
      for (int i = k + 1; i <= last; ++i)
        if (std::abs(at(i, k)) > std::abs(at(p, k))) p = i;
      if (std::abs(at(p, k)) <= 8 * eps * largest) return false;
      swap[static_cast<size_t>(k)] = p;
      if (p != k)
        for (int j = k; j <= right; ++j) std::swap(at(k, j), at(p, j));
      for (int i = k + 1; i <= last; ++i) {
        const double m = at(i, k) / at(k, k);
        at(i, k) = m;
        if (m == 0) continue;
        for (int j = k + 1; j <= right; ++j) at(i, j) -= m * at(k, j);
      }
    }
    return true;
  }

  void solve_in_place(Vec& x) const {
    for (int k = 0; k < n; ++k) {
      std::swap(x[k], x[swap[static_cast<size_t>(k)]]);
      for (int i = k + 1; i <= std::min(n - 1, k + lower); ++i) x[i] -= at(i, k) * x[k];
    }
    for (int k = n - 1; k >= 0; --k) {
      for (int j = k + 1; j <= std::min(n - 1, k + upper); ++j) x[k] -= at(k, j) * x[j];
      x[k] /= at(k, k);
    }
  }
};

/// The free rows and columns of a sparse matrix, renumbered; `index` lists them, `place` inverts it (-1: not free).
SparseMat free_part(const SparseMat& M, const std::vector<int>& index, const std::vector<int>& place) {
  const int size = static_cast<int>(index.size());
  SparseMat part(size, size);
  part.resizeNonZeros(M.nonZeros());
  int count = 0;
  for (int column = 0; column < size; ++column) {
    part.outerIndexPtr()[column] = count;
    for (SparseMat::InnerIterator it(M, index[static_cast<size_t>(column)]); it; ++it) {
      const int r = place[static_cast<size_t>(it.row())];
      if (r < 0) continue;
      part.innerIndexPtr()[count] = r;
      part.valuePtr()[count++] = it.value();
    }
  }
  part.outerIndexPtr()[size] = count;
  part.resizeNonZeros(count);
  return part;
}

bool same_pattern(const SparseMat& a, const SparseMat& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() && a.nonZeros() == b.nonZeros() &&
         std::equal(a.outerIndexPtr(), a.outerIndexPtr() + a.outerSize() + 1, b.outerIndexPtr()) &&
         std::equal(a.innerIndexPtr(), a.innerIndexPtr() + a.nonZeros(), b.innerIndexPtr());
}

bool same_values(const SparseMat& a, const SparseMat& b) {
  return same_pattern(a, b) && std::equal(a.valuePtr(), a.valuePtr() + a.nonZeros(), b.valuePtr());
}

double largest_entry(const Mat& A) { return A.size() > 0 ? A.cwiseAbs().maxCoeff() : 0; }
double largest_entry(const SparseMat& A) { return A.nonZeros() > 0 ? A.coeffs().abs().maxCoeff() : 0; }

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
  SparseMat sparse_part;
  bool banded = false;
  BandLu band;
  SparseMat analysed;  // the pattern last analysed
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

  void factor(const SparseMat& M) {
    const int k = static_cast<int>(index.size());
    singular = false;
    if (k == 0) return;
    sparse_part = free_part(M, index, place);
    ++factorisations;
    int below = 0, above = 0;
    for (int j = 0; j < k; ++j)
      for (SparseMat::InnerIterator it(sparse_part, j); it; ++it) {
        below = std::max(below, static_cast<int>(it.row()) - j);
        above = std::max(above, j - static_cast<int>(it.row()));
      }
    banded = below <= widest_band && above <= widest_band;
    singular = !numeric_factor(below, above, 0);
    if (singular) numeric_factor(below, above, regularising * largest_entry(sparse_part));
  }

  bool numeric_factor(int below, int above, double shift) {
    const int k = static_cast<int>(sparse_part.rows());
    if (banded) {
      band.start(k, below, above);
      for (int j = 0; j < k; ++j) {
        band.at(j, j) += shift;
        for (SparseMat::InnerIterator it(sparse_part, j); it; ++it)
          band.at(static_cast<int>(it.row()), j) += it.value();
      }
      return band.factor();
    }
    SparseMat A = sparse_part;
    if (shift > 0) {
      SparseMat identity(k, k);
      identity.setIdentity();
      A = sparse_part + shift * identity;
    }
    if (!same_pattern(A, analysed)) {
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

  /// Solves with what is factored; refinement makes the residual small row by row, and turns the shifted inverse of a
  /// singular matrix into the inverse on its range.
  template <class Part>
  LinearFate solve(const Part& A, const Vec& b, Vec& x) const {
    const double scale_b = b.size() > 0 ? b.cwiseAbs().maxCoeff() : 0;
    x = apply_inverse(b);
    Vec r = b - A * x;
    double error = r.cwiseAbs().maxCoeff();
    for (int k = 0; k < (singular ? 8 : 2) && error > 0; ++k) {
      const Vec better = x + apply_inverse(r);
      const Vec r_better = b - A * better;
      const double e_better = r_better.cwiseAbs().maxCoeff();
      if (!(e_better < error)) break;
      x = better, r = r_better, error = e_better;
      if (error <= eps * scale_b) break;
    }
    const double size = scale_b + largest_entry(A) * x.cwiseAbs().maxCoeff();
    if (!x.allFinite() || !(error <= (singular ? consistent * scale_b : 1e-6 * size))) return LinearFate::inconsistent;
    return singular ? LinearFate::least_norm : LinearFate::regular;
  }

  template <class Matrix>
  LinearFate solve_free(const Matrix& M, const Matrix& part, const Vec& rhs, Vec& x) const {
    const int k = static_cast<int>(index.size());
    if (k == 0) return LinearFate::regular;
    Vec fixed = x, b(k), x_free;
    for (int i : index) fixed[i] = 0;
    const Vec known = rhs - M * fixed;
    for (int i = 0; i < k; ++i) b[i] = known[index[static_cast<size_t>(i)]];
    const LinearFate fate = solve(part, b, x_free);
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
  return m.solve_free(M, m.dense_part, rhs, x);
}

LinearFate ActiveFactor::solve(const SparseMat& M, const std::vector<char>& free, const Vec& rhs, Vec& x) {
  Memory& m = *memory_;
  if (m.dense || m.free != free || !same_values(m.sparse_matrix, M)) {
    m.dense = false;
    m.sparse_matrix = M;
    m.list_free(free);
    m.factor(M);
  }
  return m.solve_free(M, m.sparse_part, rhs, x);
}

}  // namespace saltus
