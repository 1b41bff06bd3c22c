// Unit vectors that may be anything in a ball where their argument stays zero: Coulomb's disc.
//
//   y = w - A s,     s_k = pi_k(s_k + gamma_k y_k)   for each block k         pi_k: projection on the ball of radius
//   b_k
//
// so that y_k = 0 with |s_k| <= b_k, or y_k = rho_k s_k with rho_k > 0 and |s_k| = b_k. Sweeps of Gauss-Seidel, each
// block exactly, then semismooth Newton steps. docs/method/vector_friction.md
#pragma once

#include <vector>

#include "solve/matrix.hpp"

namespace saltus {

struct DiscProblem {
  Mat A;
  Vec w;
  std::vector<int> sizes;     ///< of the blocks, in order
  std::vector<double> bound;  ///< of each
};

struct DiscSolution {
  bool solved = false;
  Vec s, y;
  double residual = 0;  ///< largest |s - pi(s + gamma y)|
  int steps = 0;        ///< of Newton's method
};

DiscSolution solve_discs(const DiscProblem& problem);

}  // namespace saltus
