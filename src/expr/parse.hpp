// Text to formulas. Names are resolved while parsing, so every complaint has its place in the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/source.hpp"
#include "expr/expr.hpp"
#include "expr/indices.hpp"
#include "expr/names.hpp"

namespace saltus {

/// Reads a formula with a number as its value. Throws Error(model) at the first mistake.
Expr parse(const Fragment& formula, const Names& names, const Indices& indices = {});
/// Parses a condition: comparisons and what `and`, `or`, `not` make of them.
Expr parse_condition(const Fragment& formula, const Names& names, const Indices& indices = {});

/// Functions that a formula calls, in order; what cannot be read is passed over.
std::vector<std::string> called_functions(std::string_view formula);

}  // namespace saltus
