// Linear algebra beyond arithmetic: matrices in; solutions of systems, ranks and eigenvalues out.
#pragma once

#include <complex>
#include <memory>
#include <vector>

#include "base/dense.hpp"
#include "base/sparse.hpp"

namespace saltus {

using ComplexVec = std::vector<std::complex<double>>;

/// A x = b for a square A, by LU with row exchanges: the fast one, for matrices that are regular.
class Lu {
 public:
  Lu() = default;
  explicit Lu(const Mat& A) { factor(A); }

  /// Factors another matrix in the memory of the last.
  void factor(const Mat& A);

  /// Estimate of 1/(|A| |A^-1|) in the 1-norm: 1 at best, 0 if singular.
  double rcond() const;
  double determinant() const;
  /// The diagonal of U: zeros where A is singular.
  Vec pivots() const { return factors_.diagonal(); }

  Vec solve(const Vec& b) const;
  void solve_in_place(Vec& b) const;
  /// A X = B, column by column.
  Mat solve_columns(const Mat& B) const;
  Mat inverse() const;

 private:
  Vec solve_transposed(const Vec& b) const;
  double norm_of_inverse() const;

  Mat factors_;               // U, and below its diagonal L without its ones
  std::vector<Index> order_;  // row i of L U is row order_[i] of A
  double norm_ = 0;           // of A
};

/// Least squares for any A, of any rank: the complete orthogonal decomposition.
class Orthogonal {
 public:
  /// Pivots up to `threshold` of the largest count as zero; 0: machine precision times the size.
  explicit Orthogonal(const Mat& A, double threshold = 0);

  Index rank() const { return rank_; }
  /// The shortest x with the least |A x - b|.
  Vec solve(const Vec& b) const;
  Mat pseudo_inverse() const;

 private:
  Index rank_;
  double size_;       // power of two by which A was divided
  Mat left_, right_;  // reflections below triangles: of A with columns exchanged; of the rank rows found, transposed
  Vec left_scales_, right_scales_;
  std::vector<Index> order_;  // column i of left_ is column order_[i] of A
};

/// An orthonormal basis of the x with A x = 0, as columns; `threshold` as in Orthogonal.
Mat null_space(const Mat& A, double threshold = 0);

/// A = Q R without exchanges, Q with orthonormal columns, as many as A (which has no more columns than rows).
struct Qr {
  Mat Q, R;
};
Qr qr(const Mat& A);

/// Eigenvalues of a matrix that need not be symmetric, balanced first, so that units of states do not matter; pairs of
/// complex ones lie side by side. Not numbers if A has others.
ComplexVec eigenvalues(const Mat& A);

/// A x = b for a sparse square A. Matrices of one pattern share its analysis.
class SparseLu {
 public:
  SparseLu();
  SparseLu(SparseLu&& other) noexcept;
  SparseLu& operator=(SparseLu&& other) noexcept;
  ~SparseLu();

  /// Chooses the order of elimination from where A has entries.
  void analyse(const SparseMat& A);
  /// A has the pattern that was analysed. False if it is singular.
  bool factor(const SparseMat& A);
  Vec solve(const Vec& b) const;
  /// Number of entries of both factors: the measure of an elimination order.
  Index entries() const;

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace saltus
