// Text to formulas. Names are resolved while parsing, so every complaint has its place in the file.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/source.hpp"
#include "expr/expr.hpp"

namespace saltus {

/// The names a formula may use.
class Names {
 public:
  Names();  ///< t, pi and e

  /// `role` completes "did you mean 'omega' (...)?", e.g. "a parameter".
  void add(std::string_view name, Expr meaning, std::string_view role);
  /// A name that exists but must not be used here; `why` is the complaint when it is.
  void forbid(std::string_view name, std::string_view why);

  struct Entry {
    Expr meaning;
    std::string role;
    std::string forbidden;
  };
  const Entry* find(std::string_view name) const;
  /// What an unknown name is told when no known one is near.
  void explain(std::string_view hint) { hint_ = hint; }
  /// "did you mean ...?", or how to make the name known.
  std::string suggestion(std::string_view wrong) const;

 private:
  std::unordered_map<std::string, Entry> entries_;
  std::string hint_ = "define it: a parameter, a state (with ') or a name with its own equation";
};

/// Reads a formula with a number as its value. Throws Error(model) at the first mistake.
Expr parse(const Fragment& formula, const Names& names);
/// The same for a condition: comparisons and what `and`, `or`, `not` make of them.
Expr parse_condition(const Fragment& formula, const Names& names);

bool is_function_name(std::string_view name);
/// t, pi, e, the functions and the words and, or, not.
bool is_reserved_name(std::string_view name);
/// A letter or `_`, then letters, digits, `_`.
bool is_name(std::string_view text);
bool is_name_start(char c);
bool is_name_part(char c);

}  // namespace saltus
