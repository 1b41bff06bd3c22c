// Formulas as polynomials in their atoms, with numbers for parameters: what proves that two surfaces vanish together.
//
// An atom is a symbol other than a parameter, or a function of formulas that is no sum, product, quotient or whole
// power. Products of sums are multiplied out, as long as they have few terms; longer ones are atoms. Equality of forms
// is equality of formulas, and holds everywhere; functions that are equal at some points only have different forms.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "expr/expr.hpp"

namespace saltus {

struct PolynomialForm {
  /// Atoms with their powers, sorted by atom; powers are whole and may be negative.
  using Monomial = std::vector<std::pair<const Node*, int>>;
  struct Term {
    Monomial monomial;
    double coefficient = 0;
    double size = 0;  ///< sum of the absolute values that were added to give the coefficient: its rounding error is
                      ///< some eps of this
  };
  std::vector<Term> terms;     ///< sorted by monomial
  std::vector<Expr> formulas;  ///< what the atoms are, so that they live as long as this
};

/// The form of a formula without definitions under these parameters.
PolynomialForm polynomial_form(const Expr& formula, std::span<const double> parameters);

/// The number c with a = c*b up to rounding of the coefficients, or 0 if there is none.
double ratio(const PolynomialForm& a, const PolynomialForm& b);

}  // namespace saltus
