// Relay problems: switches on their surfaces. Given how the rates of the surfaces depend on the switch values,
//   y = a + B sigma,
// find sigma_i = +1 where y_i > 0, -1 where y_i < 0, and in [-1, 1] where y_i = 0 (the surface is slid on).
// Some solution always exists; it is unique for every a if and only if -B is a P-matrix (attractive sliding).
// A switch that holds (s_i > 1: static friction above dynamic) may keep |sigma_i| <= s_i where y_i = 0; where both
// holding and leaving are consistent, it holds.
#pragma once

#include <vector>

#include "base/linear.hpp"
#include "solve/active_factor.hpp"
#include "solve/box.hpp"

namespace saltus {

struct RelayProblem {
  Mat B;
  Vec a;
  Vec hold = {};  ///< s_i >= 1; empty: all 1
};

struct SparseRelayProblem {
  SparseMat B;
  Vec a;
  Vec hold = {};
};

struct RelayOptions {
  double tolerance = 1e-12;
  Vec sigma0 = {};  ///< start, for instance the last solution; empty: none
};

struct RelaySolution {
  Vec sigma, y;
  SolveStatus status = SolveStatus::not_converged;
  double residual = 0;
  int iterations = 0;
  std::vector<signed char> mode;  ///< sign of y_i; 0 where the surface is slid on
  std::vector<char> degenerate;   ///< 1 where y_i = 0 and |sigma_i| is at its limit: higher derivatives decide
};

/// Active set from sigma0 or a guess, then Lemke on the equivalent LCP, which finds a solution for every B.
/// Where rows are redundant, the shortest sigma with the same rates (dense) or one close to it (sparse).
/// `memory`: factors kept between problems with the same matrix.
RelaySolution solve_relay(const RelayProblem& problem, const RelayOptions& options = {},
                          ActiveFactor* memory = nullptr);
RelaySolution solve_relay(const SparseRelayProblem& problem, const RelayOptions& options = {},
                          ActiveFactor* memory = nullptr);

/// All solutions, by looking at all 3^n modes; n up to 10. Sliding sets with a singular block contribute their shortest
/// sigma if that is admissible.
std::vector<Vec> all_relay_solutions(const RelayProblem& problem, double tolerance = 1e-10);

}  // namespace saltus
