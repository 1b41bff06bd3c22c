// The linear systems of active-set methods: some unknowns are free, the others are fixed,
//   M_ff x_f = rhs_f - M_fc x_c,
// for a dense or sparse M. Analysis and factors are kept and reused while the pattern, or the matrix and the free set,
// stay.
#pragma once

#include <memory>
#include <vector>

#include "base/linear.hpp"

namespace saltus {

enum class LinearFate {
  regular,       ///< solved
  least_norm,    ///< M_ff is singular but the system is consistent; x_f is (close to) its shortest solution
  inconsistent,  ///< M_ff is singular and the system has no solution
};

/// residual = rhs - M x and size = |rhs| + |M| |x|, in all rows.
struct RowSums {
  Vec residual, size;
};

class ActiveFactor {
 public:
  ActiveFactor();
  ~ActiveFactor();
  ActiveFactor(ActiveFactor&&) noexcept;
  ActiveFactor& operator=(ActiveFactor&&) noexcept;

  /// Overwrites the free entries of x; the fixed ones are read. `free` has one entry per unknown.
  LinearFate solve(const Mat& M, const std::vector<char>& free, const Vec& rhs, Vec& x);
  LinearFate solve(const SparseMat& M, const std::vector<char>& free, const Vec& rhs, Vec& x);
  /// Solves with the row sums given; `same`: M is that of the last solve.
  LinearFate solve(const Mat& M, const std::vector<char>& free, const Vec& rhs, Vec& x, RowSums& rows, bool same);
  LinearFate solve(const SparseMat& M, const std::vector<char>& free, const Vec& rhs, Vec& x, RowSums& rows, bool same);

  /// Numbers of numerical factorisations and of symbolic analyses so far: what reuse is measured by.
  int factorisations() const;
  int analyses() const;

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace saltus
