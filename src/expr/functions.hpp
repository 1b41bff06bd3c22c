// The functions of formulas by name, and what people call them who come from elsewhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "expr/expr.hpp"

namespace saltus {

struct FormulaFunction {
  /// How a call becomes a formula: as its operation, or as one made of others.
  enum Call { operation, ceil, round, sum };

  std::string_view name;
  Op op;
  Call call = operation;
};

/// The function of this name; null if there is none.
const FormulaFunction* find_function(std::string_view name);
std::vector<std::string> formula_function_names();
/// How a function is written: "atan2(y, x)".
std::string usage_of(const FormulaFunction& f);
/// The remedy for a name used in papers and other languages; empty for other names.
std::string hint_for_foreign(std::string_view name);

}  // namespace saltus
