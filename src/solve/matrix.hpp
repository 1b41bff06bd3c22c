// What the doors of the solvers ask of a matrix, dense or sparse.
#pragma once

#include "base/linear.hpp"

namespace saltus {

inline bool all_finite(const Mat& M) { return M.allFinite(); }
/// M must be compressed.
inline bool all_finite(const SparseMat& M) { return M.nonZeros() == 0 || M.coeffs().isFinite().all(); }

inline double column_dot(const Mat& A, Eigen::Index j, const Vec& x) { return A.col(j).dot(x); }
inline double column_dot(const SparseMat& A, Eigen::Index j, const Vec& x) {
  double sum = 0;
  for (SparseMat::InnerIterator it(A, j); it; ++it) sum += it.value() * x[it.row()];
  return sum;
}

/// solve(problem), with the problem's matrix compressed first if it is not.
template <class Problem, class Solve>
auto solve_compressed(const Problem& problem, SparseMat Problem::*matrix, const Solve& solve) {
  if ((problem.*matrix).isCompressed()) return solve(problem);
  Problem compressed = problem;
  (compressed.*matrix).makeCompressed();
  return solve(compressed);
}

}  // namespace saltus
