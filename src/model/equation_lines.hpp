// Text of equations taken apart: lines, their left and right sides, ranges and arguments.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/source.hpp"

namespace saltus {

/// A line of the equations: a rate, a name for a formula, or a function; for one index or a range of them.
struct EquationLine {
  enum Kind {
    rate,
    name,
    function,
    balance
  } kind = name;   ///< balance: linear in rates, one of which need not stand alone
  int primes = 0;  ///< of a rate: 1, or 2 for x'' = ...
  Fragment left;   ///< of a rate without its primes, with its index if it has one
  Fragment right;  ///< without the range
  std::optional<Fragment> range{};
  std::vector<std::string> indices{};  ///< the names of the range's indices
  std::vector<Fragment> arguments{};   ///< of a function
};

/// All lines of a block; those that start with an operator belong to the line above. Throws Error(model) at a line that
/// is no equation.
std::vector<EquationLine> split_equations(const Fragment& block);

/// Names that stand in a formula with so many primes, without their indices.
std::vector<std::string> primed_names(std::string_view formula, size_t primes);

Fragment trimmed(const Fragment& f);
inline Place place_of(const Fragment& f) { return f.place(0, f.text.size()); }
/// Complains about a piece of text.
[[noreturn]] void fail(const Fragment& at, std::string message, std::string hint);

inline constexpr std::string_view reserved_hint = "t, pi, e, and, or, not, for and the functions keep their meaning";

}  // namespace saltus
