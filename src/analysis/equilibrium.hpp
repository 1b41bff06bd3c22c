// Equilibria: in a mode, on sliding sets, of contacts at rest, and sets of them.
//
//   for the mode at the start, its neighbours, then those at the end of a run:
//     Newton on  f(x, u) = 0,  F(x) = 0        F: what is slid on and closed, with its rates; u: its sigma and lambda
//     admissible: every surface has the sign of its letter, |sigma| within its bound, no contact pulls
//   eigenvalues of the flow in that mode, on what it slides on
#pragma once

#include <complex>
#include <optional>
#include <string>
#include <vector>

#include "flow/simulate.hpp"

namespace saltus {

struct EquilibriumOptions {
  RunOptions run;  ///< parameters, initial values, tolerance; `until` of the run tried last
};

struct Equilibrium {
  enum class Kind { none, equilibrium, pseudo, set };
  Kind kind = Kind::none;
  std::string why, message;  ///< if there is none
  std::vector<double> state;
  Mode mode;
  Arc arc;                                        ///< the mode with what users do not see
  std::vector<std::complex<double>> eigenvalues;  ///< largest real part first
  bool stable = false;
  double residual = 0;
  std::optional<double> margin;  ///< of contacts at rest: the smallest force
  std::vector<double> from, to;  ///< ends of a set
};

Equilibrium find_equilibrium(const Program& program, const EquilibriumOptions& options);

}  // namespace saltus
