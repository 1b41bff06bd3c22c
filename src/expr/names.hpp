// The names a formula may use, and what each stands for.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "expr/expr.hpp"

namespace saltus {

/// A function that the user has given: f(u, w) = u^2/(1 + w).
struct UserFunction {
  std::vector<Expr> arguments;  ///< symbols of the kind `argument`
  Expr body;
};

/// The names a formula may use.
class Names {
 public:
  Names();  ///< t, pi and e

  /// `role` completes "did you mean 'omega' (...)?", e.g. "a parameter".
  void add(std::string_view name, Expr meaning, std::string_view role);
  /// A name that exists but must not be used here; `why` is the complaint when it is.
  void forbid(std::string_view name, std::string_view why);
  /// All names of `base`, which must outlive this; own ones win.
  void build_on(const Names& base) { base_ = &base; }
  /// Names of `others` (which must outlive this) that are not known here must not be used here; `why` as above.
  void forbid_others(const Names& others, std::string_view why);
  /// The complaint about a name that is known elsewhere only, or "".
  std::string_view why_not(const std::string& name) const;

  struct Entry {
    Expr meaning;
    std::string_view role;  ///< one of the program's own words
    std::string forbidden;
  };
  const Entry* find(const std::string& name) const;

  void add_function(std::string_view name, UserFunction function);
  const UserFunction* find_function(const std::string& name) const;
  std::vector<std::string> function_names() const;

  /// Every unknown name is a symbol of kind `argument`: formulas are read to see which names are in them.
  void accept_all() { accepts_all_ = true; }
  bool accepts_all() const { return accepts_all_; }

  /// A number that may stand in an index and in the ends of its range.
  void add_whole(std::string_view name, double value);
  const double* find_whole(const std::string& name) const;
  /// True if anybody has asked for it: then it decides what the formulas are.
  bool whole_was_used(const std::string& name) const;
  /// The indices that a name is known with, x[1] to x[10].
  struct Range {
    std::array<long, 2> first{1, 1}, last{0, 1};
    size_t dimensions = 1;
    bool zeros = false;  ///< of a matrix: entries without a name of their own are 0
    bool contains(std::array<long, 2> index, size_t count) const {
      bool inside = count == dimensions;
      for (size_t k = 0; k < dimensions; ++k) inside = inside && first[k] <= index[k] && index[k] <= last[k];
      return inside;
    }
  };
  void add_indexed(std::string_view stem, const Range& range);
  const Range* find_indexed(const std::string& stem) const;
  /// The hint for an unknown name that is near to no defined one.
  void explain(std::string_view hint) { hint_ = hint; }
  /// "did you mean ...?", or how to make the name known.
  std::string suggestion(std::string_view wrong) const;
  /// How to give the name so many primes, where it does not have them.
  std::string hint_for_primes(const std::string& name, size_t primes) const;

 private:
  std::unordered_map<std::string, Entry> entries_;
  std::unordered_map<std::string, UserFunction> functions_;
  struct Whole {
    double value = 0;
    mutable bool used = false;
  };
  std::unordered_map<std::string, Whole> wholes_;
  std::unordered_map<std::string, Range> indexed_;
  const Names* base_ = nullptr;
  const Names* others_ = nullptr;
  std::string_view why_not_others_;
  bool accepts_all_ = false;
  std::string hint_ = "define it: a parameter, a state (with ') or a name with its own equation";
};

bool is_function_name(std::string_view name);
/// t, pi, e, the functions and the words and, or, not, for.
bool is_reserved_name(std::string_view name);

}  // namespace saltus
