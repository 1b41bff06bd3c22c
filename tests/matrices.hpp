// Matrices made entry by entry, and printed where a test fails.
#pragma once

#include <ostream>
#include <type_traits>

#include "base/linear.hpp"

namespace saltus {

/// Entries f(row, column), or f() in the order of columns.
template <class F>
Mat made(Index rows, Index columns, const F& f) {
  Mat out(rows, columns);
  for (Index j = 0; j < columns; ++j) {
    for (Index i = 0; i < rows; ++i) {
      if constexpr (std::is_invocable_v<F, Index, Index>) {
        out(i, j) = f(i, j);
      } else {
        out(i, j) = f();
      }
    }
  }
  return out;
}

/// Entries f(row), or f().
template <class F>
Vec made(Index rows, const F& f) {
  if constexpr (std::is_invocable_v<F, Index>) {
    return made(rows, 1, [&](Index i, Index) { return f(i); });
  } else {
    return made(rows, 1, f);
  }
}

inline std::ostream& operator<<(std::ostream& out, const ConstView& a) {
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < a.cols(); ++j) out << (j > 0 ? " " : "") << a(i, j);
    out << '\n';
  }
  return out;
}

}  // namespace saltus
