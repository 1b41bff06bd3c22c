// Formulas to text: the language of model files (reads back to the same formula), and LaTeX.
#pragma once

#include <string>

#include "expr/expr.hpp"

namespace saltus {

/// Text that parses back to the same Expr, with as few brackets as that needs.
std::string print(const Expr& e);

/// The formula as LaTeX, for a display.
std::string print_latex(const Expr& e);
/// A name for LaTeX: Greek letters, digits and what follows `_` as subscript.
std::string latex_name(const std::string& name);

/// Shortest text that reads back to the same number.
std::string print_number(double value);

}  // namespace saltus
