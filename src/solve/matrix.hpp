// Operations that the solvers need of a matrix, dense or sparse.
#pragma once

#include <cmath>

#include "base/linear.hpp"

namespace saltus {

inline bool all_finite(const Mat& M) { return M.allFinite(); }
inline bool all_finite(const SparseMat& M) { return M.allFinite(); }

inline double column_dot(const Mat& A, Index j, const Vec& x) { return A.col(j).dot(x); }
inline double column_dot(const SparseMat& A, Index j, const Vec& x) {
  double sum = 0;
  for (const auto [row, value] : A.column(j)) sum += value * x[row];
  return sum;
}

/// f(row, value) for the entries of a column.
template <class F>
void each_in_column(const Mat& A, Index j, const F& f) {
  for (Index i = 0; i < A.rows(); ++i) f(i, A(i, j));
}
template <class F>
void each_in_column(const SparseMat& A, Index j, const F& f) {
  for (const auto [row, value] : A.column(j)) f(row, value);
}

/// |M| |x|.
template <class Matrix>
Vec absolute_product(const Matrix& M, const Vec& x) {
  Vec y = Vec::Zero(M.rows());
  for (Index j = 0; j < M.cols(); ++j) {
    const double size = std::abs(x[j]);
    if (size != 0) each_in_column(M, j, [&](Index row, double value) { y[row] += std::abs(value) * size; });
  }
  return y;
}

}  // namespace saltus
