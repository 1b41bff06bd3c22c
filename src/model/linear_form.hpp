// Surfaces up to a factor: v, -v and 2*v vanish together.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "expr/expr.hpp"

namespace saltus {

/// The value of a number or of pi, e.
std::optional<double> literal(const Expr& e);

/// A formula as constant + sum of coefficient * atom, where only literal numbers count as coefficients.
struct LinearForm {
  std::vector<std::pair<Expr, double>> terms;  ///< sorted by atom
  double constant = 0;
};
LinearForm linear_form(const Expr& formula);

/// The number c with a = c*b, or 0 if there is none.
double ratio(const LinearForm& a, const LinearForm& b);

}  // namespace saltus
