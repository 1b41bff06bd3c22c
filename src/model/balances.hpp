// Rates from equations that are linear in them: M(x, t, p) a = F(x, t, p, sigma, lambda), solved by formulas.
//
// The unknowns are matched with equations by the largest product of coefficients, the matrix falls into blocks that
// follow each other, and each block is eliminated with pivots chosen beforehand (docs/method/balances.md):
//
//   D M symmetric and positive definite    on the diagonal, of least degree first (every mass matrix; D scales rows)
//   2 or 3 unknowns                        by cofactors
//   M of parameters only                   in the order that partial pivoting takes at the parameters of the model
//   else                                   D M^T M instead of M
//
// so that no divisor vanishes where M is regular. Parts are shared: n^3/3 operations for a full matrix, n for a chain.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "expr/expr.hpp"
#include "model/model.hpp"

namespace saltus {

/// An equation 0 = residual, in which rates are unknown.
struct RateEquation {
  Expr residual;
  Place place{};
};

/// The forces of a multiplier by virtual power: each on an unknown rate, in the direction of its coordinate.
struct VirtualForce {
  std::vector<std::pair<Expr, Expr>> on{};
  std::string name;  ///< of the multiplier
  Place place{};
};

/// Formulas for the unknown rates (symbols of kind rate), one for each equation. `form` gives the switches and counters
/// that stand in the equations. Throws Error(model) where an equation is not linear, a coefficient switches, or the
/// matrix is singular whatever the states are. A force by virtual power belongs into the balance of its coordinate: the
/// equation it is matched with, where those that it acts on are scaled alike (the matrix is symmetric there).
std::vector<Expr> solve_balances(const Model& model, const Form& form, const std::vector<RateEquation>& equations,
                                 const std::vector<Expr>& unknowns, const std::vector<VirtualForce>& forces);

}  // namespace saltus
