// A formula on one side of its kinks and steps: smooth there, and as far as what it chose by keeps its sign.
//
//   abs(u) with u > 0 is u, if(u < v, a, b) with u < v is a, floor(u) is the number k that it has at a point
#pragma once

#include <vector>

#include "code/plain.hpp"

namespace saltus {

/// The branch that each nonsmooth function of a formula takes at a point, in the order of the formula.
using Sides = std::vector<double>;
Sides sides_at(const Expr& formula, const PlainInputs& point);

/// The formula with these choices kept.
struct Sided {
  Expr formula;
  std::vector<Expr> room;  ///< positive as long as it would choose so itself; what it does not use has none
};
Sided on_sides(const Expr& formula, const Sides& sides);

/// How far a condition is from its contrary: positive where it holds, negative where not.
Expr margin(const Expr& condition);

}  // namespace saltus
