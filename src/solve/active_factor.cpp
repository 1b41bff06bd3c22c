#include "solve/active_factor.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/numbers.hpp"
#include "solve/band_factor.hpp"
#include "solve/matrix.hpp"

namespace saltus {
namespace {

constexpr int widest_band = 16;              // beyond this, a general sparse factorisation is faster
constexpr double consistent = 1e-11;         // relative residual up to which a singular system counts as solvable
constexpr double rounding_of_row = 4 * eps;  // residual of a row, relative to the sizes of its terms
constexpr double regularising = 1e-8;        // shift of a singular sparse matrix, relative to its largest entry

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
  bool whole = false;   // a band, factored with the rows and columns that are not free
  bool banded = false;  // its free part is a band
  BandFactor band;
  SparseMat sparse_part;  // free rows and columns, where it is not whole
  SparseMat analysed;     // the pattern last analysed
  SparseLu sparse_lu;
  Vec right, other_x;  // scratch of the whole
  RowSums own_sums, other_sums;

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

  /// Factors of M with this free set, if they are not there.
  void keep(const Mat& M, const std::vector<char>& which, bool is_same) {
    const bool known = dense && dense_matrix.rows() == M.rows() && (is_same || dense_matrix == M);
    if (known && free == which) return;
    dense = true;
    whole = false;
    if (!known) dense_matrix = M;
    list_free(which);
    factor(M);
  }

  void keep(const SparseMat& M, const std::vector<char>& which, bool is_same) {
    const bool known = !dense && sparse_matrix.rows() == M.rows() && (is_same || sparse_matrix == M);
    if (known && free == which) return;
    dense = false;
    if (!known) {
      sparse_matrix = M;
      whole = band.take(M, widest_band);
    }
    list_free(which);
    factor(M);
  }

  void factor(const SparseMat& M) {
    singular = false;
    if (index.empty()) return;
    ++factorisations;
    if (!whole) {
      sparse_part = M.part(index, place);
      banded = band.take(sparse_part, widest_band);
    }
    singular = !numeric_factor(0);
    if (singular) numeric_factor(regularising * largest_free_entry(M));
  }

  bool numeric_factor(double shift) {
    if (whole) return band.factor(free, shift);
    const int k = static_cast<int>(index.size());
    if (banded) return band.factor(std::vector<char>(index.size(), 1), shift);
    SparseMat A = sparse_part;
    if (shift > 0) A = sparse_part + shift * SparseMat::Identity(k);
    if (!A.same_pattern(analysed)) {
      ++analyses;
      sparse_lu.analyse(A);
      analysed = A;
    }
    return sparse_lu.factor(A);
  }

  Vec apply_inverse(const Vec& b) {
    if (dense) return singular ? orthogonal->solve(b) : lu.solve(b);
    if (!banded) return sparse_lu.solve(b);
    Vec x = b;
    band.solve_in_place(x);
    return x;
  }

  void subtract_product(const Mat&, const Vec& x, Vec& r) const { r -= dense_part * x; }
  void subtract_product(const SparseMat&, const Vec& x, Vec& r) const { r -= sparse_part * x; }

  double largest_free_entry(const Mat&) const { return dense_part.max_abs(); }
  double largest_free_entry(const SparseMat&) const {
    if (whole || banded) return band.largest();
    return sparse_part.max_abs();
  }

  /// Solves with what is factored; refinement makes the residual small row by row, and turns the shifted inverse of a
  /// singular matrix into the inverse on its range.
  template <class Matrix>
  LinearFate solve(const Matrix& M, const Vec& b, Vec& x) {
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
  LinearFate solve_free(const Matrix& M, const Vec& rhs, Vec& x, RowSums* rows) {
    const LinearFate fate = solve_part(M, rhs, x);
    if (rows) *rows = {rhs - M * x, rhs.cwiseAbs() + absolute_product(M, x)};
    return fate;
  }

  template <class Matrix>
  LinearFate solve_part(const Matrix& M, const Vec& rhs, Vec& x) {
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

  /// The largest residual of a free row; and whether some row is off by more than rounding, of its own terms or of the
  /// largest right side.
  std::pair<double, bool> judge(const RowSums& sums, double largest_right) const {
    double error = 0, off = 0;
    const double least = eps * largest_right;
    for (const int i : index) {
      const double r = std::abs(sums.residual[i]);
      error = std::max(error, r);
      off = std::max(off, r - std::max(rounding_of_row * sums.size[i], least));
    }
    return {error, off > 0};
  }

  /// `solve` without taking the free part out of the band. Refinement is for rows whose residual is not rounding.
  LinearFate solve_whole(const Vec& rhs, Vec& x, RowSums& sums) {
    if (index.empty()) {
      band.products(rhs, x, sums.residual, sums.size);
      return LinearFate::regular;
    }
    const auto fixed_are_zero = [&] {
      for (Index i = 0; i < x.size(); ++i)
        if (!free[static_cast<size_t>(i)] && x[i] != 0) return false;
      return true;
    };
    for (const int i : index) x[i] = 0;
    const bool zero = fixed_are_zero();
    if (!zero) band.products(rhs, x, sums.residual, sums.size);
    const Vec& known = zero ? rhs : sums.residual;
    right.setZero(x.size());
    double scale_b = 0, largest_x = 0;
    for (const int i : index) {
      right[i] = known[i];
      scale_b = std::max(scale_b, std::abs(right[i]));
    }
    band.solve_in_place(right);
    for (const int i : index) x[i] = right[i];
    band.products(rhs, x, sums.residual, sums.size);
    auto [error, off] = judge(sums, scale_b);
    for (int k = 0; k < (singular ? 8 : 2) && error > 0 && (singular || off); ++k) {
      for (const int i : index) right[i] = sums.residual[i];
      band.solve_in_place(right);
      other_x = x;
      for (const int i : index) other_x[i] += right[i];
      band.products(rhs, other_x, other_sums.residual, other_sums.size);
      const auto [e_better, off_better] = judge(other_sums, scale_b);
      if (!(e_better < error)) break;
      x.swap(other_x), error = e_better, off = off_better;
      std::swap(sums, other_sums);
      if (error <= eps * scale_b) break;
    }
    bool finite = true;
    for (const int i : index) {
      largest_x = std::max(largest_x, std::abs(x[i]));
      finite = finite && std::isfinite(x[i]);
    }
    const double size = scale_b + band.largest() * largest_x;
    if (!finite || !(error <= (singular ? consistent * scale_b : 1e-6 * size))) return LinearFate::inconsistent;
    return singular ? LinearFate::least_norm : LinearFate::regular;
  }
};

ActiveFactor::ActiveFactor() : memory_(std::make_unique<Memory>()) {}
ActiveFactor::~ActiveFactor() = default;
ActiveFactor::ActiveFactor(ActiveFactor&&) noexcept = default;
ActiveFactor& ActiveFactor::operator=(ActiveFactor&&) noexcept = default;

int ActiveFactor::factorisations() const { return memory_->factorisations; }
int ActiveFactor::analyses() const { return memory_->analyses; }

LinearFate ActiveFactor::solve(const Mat& M, const std::vector<char>& free, const Vec& rhs, Vec& x) {
  memory_->keep(M, free, false);
  return memory_->solve_free(M, rhs, x, nullptr);
}

LinearFate ActiveFactor::solve(const Mat& M, const std::vector<char>& free, const Vec& rhs, Vec& x, RowSums& rows,
                               bool same) {
  memory_->keep(M, free, same);
  return memory_->solve_free(M, rhs, x, &rows);
}

LinearFate ActiveFactor::solve(const SparseMat& M, const std::vector<char>& free, const Vec& rhs, Vec& x) {
  memory_->keep(M, free, false);
  return memory_->whole ? memory_->solve_whole(rhs, x, memory_->own_sums) : memory_->solve_free(M, rhs, x, nullptr);
}

LinearFate ActiveFactor::solve(const SparseMat& M, const std::vector<char>& free, const Vec& rhs, Vec& x, RowSums& rows,
                               bool same) {
  memory_->keep(M, free, same);
  return memory_->whole ? memory_->solve_whole(rhs, x, rows) : memory_->solve_free(M, rhs, x, &rows);
}

}  // namespace saltus
