// A surface or gap with its derivatives along the flow, up to the one that gives its sigma or lambda.
#pragma once

#include <vector>

#include "expr/expr.hpp"
#include "model/model.hpp"

namespace saltus {

/// h or g with its derivatives along the flow, up to the first that the unknowns enter.
struct Ladder {
  std::vector<Expr> rungs;  ///< y, y', ... without unknowns
  Expr residual;            ///< the first derivative with unknowns, or 0
  int degree = -1;          ///< how many rungs there are below it, or -1
};

bool has_unknowns(const Expr& e);

/// A formula as it is on y = 0, if y can be solved for a state.
Expr restrict_to(const Expr& y, const Expr& formula);

/// Derivatives of a gap up to its degree, which says where its multiplier enters. `form`: the rates of the mode.
Ladder climb_gap(const Expr& y, const Form& form, int degree);

/// Derivatives of a surface up to the first that any sigma or lambda enters. Where their factors vanish on the surface
/// itself (sqrt(abs(x))*sign(x) on x = 0), they do not enter.
Ladder climb_surface(const Expr& y, const Form& form);

/// Surfaces that are slid on together and whose residuals cannot give all their sigma, because fewer of these stand in
/// them: what is left of a residual after the sigma are eliminated with the others is zero while all of them are slid
/// on; it becomes a rung, and its rate the residual. Ladders stay as they are where that leads nowhere.
/// `slid`: places in `ladders`, the numbers of the switches.
void raise_together(std::vector<Ladder>& ladders, const std::vector<int>& slid, const Form& form);

}  // namespace saltus
