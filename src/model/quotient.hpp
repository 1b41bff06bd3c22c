// Poles and cuts of a surface: where a formula changes its sign without being zero.
//
//   n/d          changes sign with n and with d: sign(n/d) = sign(n)*sign(d)
//   tan(a)       is sin(a)/cos(a)
//   atan2(y, x)  jumps by 2 pi where y changes its sign at x < 0: it is s*pi/2 + atan2(-s*x, s*y) with s = sign(y),
//                and the second argument is not negative there, so that the formula of either side goes on across y = 0
#pragma once

#include <vector>

#include "expr/expr.hpp"

namespace saltus {

struct Quotient {
  Expr numerator;
  std::vector<Expr> divisors;  ///< whose product it is divided by: those with odd powers that may change their sign
};

/// A formula over what it is divided by, as far as that may change its sign along a trajectory and has no switches;
/// what cannot (1 + x^2, exp(x), numbers, parameters alone) stays in the numerator. Even powers are no divisors, and
/// not in the numerator either: the sign of the quotient is that of the numerator and all divisors.
Quotient quotient_of(const Expr& formula);

/// The formulas y of all atan2(y, x) in a formula.
std::vector<Expr> cuts_of(const Expr& formula);
/// The function with s in place of sign(y) of each cut, in their order.
Expr without_cuts(const Expr& formula, const std::vector<Expr>& cuts, const std::vector<Expr>& signs);

}  // namespace saltus
