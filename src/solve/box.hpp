// Linear complementarity with bounds: plain data in, solution with its own verification out.
//   find x with lo <= x <= hi and w = M x + q such that
//   w_i >= 0 where x_i = lo_i,   w_i <= 0 where x_i = hi_i,   w_i = 0 in between.
// Bounds may be infinite: lo = 0, hi = inf is the LCP, lo = -inf and hi = inf makes x_i free and w_i = 0 (mixed LCP),
// two finite bounds make a relay.
#pragma once

#include <string_view>
#include <vector>

#include "base/linear.hpp"
#include "solve/active_factor.hpp"

namespace saltus {

/// How a complementarity problem ended; a value, never an exception.
enum class SolveStatus {
  solved,         ///< the residual is below the tolerance
  no_solution,    ///< proved: a certificate, or every case was looked at
  ray,            ///< Lemke's path left to infinity; for a matrix outside the classes it decides, nothing is proved
  nonunique,      ///< several different solutions exist where the caller asked for the one
  not_converged,  ///< the best point found is returned with its residual
  bad_input,      ///< sizes do not match, a NaN, or lo > hi
};

/// The word for a status, as in "no_solution".
std::string_view name(SolveStatus status);

struct BoxProblem {
  Mat M;
  Vec q, lo, hi;
};

struct SparseBoxProblem {
  SparseMat M;
  Vec q, lo, hi;
};

/// Mixed LCP: the first `equations` unknowns are free with w_i = 0, the others complementary as in the LCP.
BoxProblem mixed_lcp(Mat M, Vec q, int equations);
SparseBoxProblem mixed_lcp(SparseMat M, Vec q, int equations);

/// The place of a variable between its bounds at a solution.
enum class BoundState : signed char { lower = -1, inside = 0, upper = 1 };

struct BoxOptions {
  double tolerance = 1e-12;  ///< of the scaled natural residual
  int max_iterations = 0;    ///< 0: chosen by size
  Vec x0 = {};               ///< start; empty: none
  bool shortest = false;     ///< where M is singular and w unique, the shortest x (dense problems)

  void check() const;
};

struct BoxSolution {
  Vec x, w;
  SolveStatus status = SolveStatus::not_converged;
  double residual = 0;  ///< scaled natural residual, see box_residual
  int iterations = 0;
  std::vector<BoundState> state;
  std::vector<char> degenerate;  ///< 1 where x_i is at a bound and w_i = 0 as well
};

/// `memory`: factors kept between problems with the same matrix.
BoxSolution solve_box(const BoxProblem& problem, const BoxOptions& options = {}, ActiveFactor* memory = nullptr);
BoxSolution solve_box(const SparseBoxProblem& problem, const BoxOptions& options = {}, ActiveFactor* memory = nullptr);

/// The dual problem: w = M x + q stays in [lo, hi]; x_i >= 0 where w_i = lo_i, x_i <= 0 where w_i = hi_i, 0 in between.
BoxSolution solve_dual_box(const BoxProblem& problem, const BoxOptions& options = {});

/// max_i |x_i - mid(lo_i, hi_i, x_i - w_i)|, where w_i is measured in units of |q_i| + sum_j |M_ij x_j| and x_i by the
/// largest relative change it makes to any row. So the value does not change with the units of rows and columns.
double box_residual(const BoxProblem& problem, const Vec& x);
double box_residual(const SparseBoxProblem& problem, const Vec& x);

}  // namespace saltus
