// Products as a person writes them: one number in front, equal factors as powers, none of them above and below.
#pragma once

#include "expr/expr.hpp"

namespace saltus {

/// An equal formula (where it has a value) with its products and quotients in order: m*(2*x)/2 becomes m*x.
Expr tidy(const Expr& e);
/// Tidies, multiplies products of few sums out and adds equal terms up: a*(b + c) - b*a becomes a*c.
Expr collect_terms(const Expr& e);

}  // namespace saltus
