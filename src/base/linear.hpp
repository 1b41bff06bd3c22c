// Vectors and matrices of doubles (the only Eigen aliases), and what is done with matrices beyond arithmetic: systems,
// ranks, eigenvalues. The decompositions are compiled once, in linear*.cpp; no other file includes Eigen's (they cost
// 10 to 20 seconds in every file that uses one).
#pragma once

#include <memory>
#include <vector>

#include <Eigen/Core>
#include <Eigen/SparseCore>

namespace saltus {

using Vec = Eigen::VectorXd;
using Mat = Eigen::MatrixXd;
using SparseMat = Eigen::SparseMatrix<double>;
using ComplexVec = Eigen::VectorXcd;

/// A x = b for a square A, by LU with row exchanges: the fast one, for matrices that are regular.
class Lu {
 public:
  Lu();
  explicit Lu(const Mat& A);
  Lu(const Lu& other);
  Lu(Lu&& other) noexcept;
  Lu& operator=(const Lu& other);
  Lu& operator=(Lu&& other) noexcept;
  ~Lu();

  /// Factors another matrix in the memory of the last.
  void factor(const Mat& A);

  /// Estimate of 1/(|A| |A^-1|) in the 1-norm: 1 at best, 0 if singular.
  double rcond() const;
  double determinant() const;
  /// The diagonal of U: zeros where A is singular.
  Vec pivots() const;

  Vec solve(const Vec& b) const;
  void solve_in_place(Vec& b) const;
  /// A X = B, column by column.
  Mat solve_columns(const Mat& B) const;
  Mat inverse() const;

 private:
  std::unique_ptr<Eigen::PartialPivLU<Mat>> lu_;
};

/// A x = b for any A, by LU with rows and columns exchanged: tells the rank and which rows and columns carry it.
class FullLu {
 public:
  /// Pivots up to `threshold` of the largest count as zero; 0: machine precision times the size.
  explicit FullLu(const Mat& A, double threshold = 0);
  FullLu(FullLu&& other) noexcept;
  FullLu& operator=(FullLu&& other) noexcept;
  ~FullLu();

  Eigen::Index rank() const;
  /// The rows and columns of A in the order of their pivots: the first rank() of each are independent.
  std::vector<int> rows() const;
  std::vector<int> columns() const;
  /// A solution where there is one.
  Vec solve(const Vec& b) const;

 private:
  std::unique_ptr<Eigen::FullPivLU<Mat>> lu_;
};

/// Least squares for any A, of any rank: the complete orthogonal decomposition.
class Orthogonal {
 public:
  /// Pivots up to `threshold` of the largest count as zero; 0: machine precision times the size.
  explicit Orthogonal(const Mat& A, double threshold = 0);
  Orthogonal(Orthogonal&& other) noexcept;
  Orthogonal& operator=(Orthogonal&& other) noexcept;
  ~Orthogonal();

  Eigen::Index rank() const;
  /// The shortest x with the least |A x - b|.
  Vec solve(const Vec& b) const;
  Mat pseudo_inverse() const;

 private:
  std::unique_ptr<Eigen::CompleteOrthogonalDecomposition<Mat>> factors_;
};

/// An orthonormal basis of the x with A x = 0, as columns; `threshold` as in Orthogonal.
Mat null_space(const Mat& A, double threshold = 0);

/// A = Q R without exchanges, Q with orthonormal columns, as many as A (which has no more columns than rows).
struct Qr {
  Mat Q, R;
};
Qr qr(const Mat& A);

/// Of a matrix that need not be symmetric.
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

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace saltus
