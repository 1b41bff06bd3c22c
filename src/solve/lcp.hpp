// The linear complementarity problem
//   0 <= z  perp  w = M z + q >= 0
// as plain data, its classical methods, and one door that chooses among them and verifies what it returns.
#pragma once

#include <string_view>
#include <vector>

#include "base/linear.hpp"
#include "solve/active_factor.hpp"
#include "solve/box.hpp"
#include "solve/dictionary.hpp"

namespace saltus {

struct LcpProblem {
  Mat M;
  Vec q;
};

struct SparseLcpProblem {
  SparseMat M;
  Vec q;
};

enum class LcpMethod {
  automatic,           ///< trivial cases, then pivoting by size and class, then whatever else can help
  lemke,               ///< complementary pivoting, lexicographic: any M; decides copositive-plus, P, PSD
  principal_pivoting,  ///< block steps, then least-index criss-cross: P and (dense) PSD
  projected_gradient,  ///< conjugate projected gradient: symmetric PSD
  newton_fischer,      ///< semismooth Newton on the Fischer-Burmeister function with line search
};

/// The word for a method, as in "lemke".
std::string_view name(LcpMethod method);

struct LcpOptions {
  LcpMethod method = LcpMethod::automatic;
  double tolerance = 1e-12;  ///< of the scaled natural residual, see lcp_residual
  int max_iterations = 0;    ///< pivots, sweeps or Newton steps; 0: the method's own limit
  Vec z0 = {};               ///< start; empty: none
  bool polish = true;        ///< after an iterative method, solve once more on the active set it found

  /// Throws Error for values out of range.
  void check() const;
};

struct LcpSolution {
  Vec z, w;
  SolveStatus status = SolveStatus::not_converged;
  double residual = 0;
  int iterations = 0;
  LcpMethod method = LcpMethod::automatic;  ///< the one that gave the answer
  Vec certificate;  ///< with no_solution, if cheap: y >= 0, M^T y <= 0, q.y < 0, so that M z + q >= 0 has no z >= 0
};

/// Memory kept between problems of the same size or matrix: the dictionary of Lemke's method and the last factors.
struct LcpWorkspace {
  Dictionary dictionary;
  ActiveFactor factor;
};

/// Never throws for the fate of a problem; sizes and NaN give bad_input.
LcpSolution solve_lcp(const LcpProblem& problem, const LcpOptions& options = {}, LcpWorkspace* workspace = nullptr);
LcpSolution solve_lcp(const SparseLcpProblem& problem, const LcpOptions& options = {},
                      LcpWorkspace* workspace = nullptr);

/// Scaled natural residual: max_i |min(z_i, w_i)|, w_i in units of |q_i| + sum_j |M_ij z_j| and z_i by the largest
/// relative change it makes to any row; independent of the units of rows and columns.
double lcp_residual(const LcpProblem& problem, const Vec& z);
double lcp_residual(const SparseLcpProblem& problem, const Vec& z);

/// All solutions that are vertices of the solution set, by looking at all 2^n active sets; n up to 16.
/// Where M_aa is singular one point of the face is given, if there is any: so an empty answer means no solution, unless
/// `complete` comes back false: then rounding left some active set undecided.
std::vector<Vec> all_lcp_solutions(const LcpProblem& problem, double tolerance = 1e-10, bool* complete = nullptr);

/// True if all principal minors are positive, so that every q has exactly one solution; O(2^n), n up to 20.
bool is_p_matrix(const Mat& M);

}  // namespace saltus
