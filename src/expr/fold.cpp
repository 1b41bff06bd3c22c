// Operations on formulas, with constants and identities folded.
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "expr/expr.hpp"
#include "expr/interpolant.hpp"

namespace saltus {
namespace {

bool all_numbers(std::span<const Expr> a) {
  return std::all_of(a.begin(), a.end(), [](const Expr& e) { return e.is_number(); });
}

/// Takes the minus signs off the front; true if an odd number of them.
bool strip_minus(Expr& e) {
  bool minus = false;
  for (; e.op() == Op::neg; minus = !minus) e = e.argument(0);
  return minus;
}

/// The value of a switch that is -1 or 1 wherever it is not solved for.
bool is_sign(const Expr& e) { return e.is_symbol(SymbolKind::sigma) && !e.symbol().may_be_zero; }

/// Sums, differences, products, quotients and powers with their identities; nothing is reordered.
Expr fold_arithmetic(Op op, std::span<const Expr> a) {
  const Expr &x = a[0], &y = a[1];
  switch (op) {
    case Op::add:
      if (x.is_number(0)) return y;
      if (y.is_number(0)) return x;
      if (Expr z = y; strip_minus(z)) return x - z;
      if (Expr z = x; strip_minus(z)) return y - z;
      break;
    case Op::sub:
      if (y.is_number(0)) return x;
      if (x.is_number(0)) return -y;
      if (x == y) return 0.0;
      if (Expr z = y; strip_minus(z)) return x + z;
      break;
    case Op::mul:
      if (x.is_number(0) || y.is_number(0)) return 0.0;
      if (x.is_number(1)) return y;
      if (y.is_number(1)) return x;
      if (x.is_number(-1)) return -y;
      if (y.is_number(-1)) return -x;
      if (x == y && is_sign(x)) return 1.0;
      if (Expr z = x; strip_minus(z)) return -(z * y);
      if (Expr z = y; strip_minus(z)) return -(x * z);
      break;
    case Op::div:
      if (y.is_number(1)) return x;
      if (y.is_number(-1)) return -x;
      if (x.is_number(0) && !y.is_number(0)) return 0.0;
      if (x == y && !x.is_number(0)) return 1.0;
      if (Expr z = x; strip_minus(z)) return -(z / y);
      if (Expr z = y; strip_minus(z)) return -(x / z);
      break;
    case Op::pow:
      if (y.is_number(1)) return x;
      if (y.is_number(0)) return 1.0;
      if (x.is_number(1)) return 1.0;
      if (is_sign(x) && y.is_number() && y.value() == std::floor(y.value()) && std::abs(y.value()) < 1e15) {
        return std::fmod(y.value(), 2) == 0 ? Expr(1.0) : x;
      }
      break;
    default: break;
  }
  return Expr::raw(op, a);
}

Expr fold_truth(Op op, std::span<const Expr> a) {
  switch (op) {
    case Op::both:
      if (a[0].is_number()) return a[0].value() != 0 ? a[1] : a[0];
      if (a[1].is_number()) return a[1].value() != 0 ? a[0] : a[1];
      break;
    case Op::either:
      if (a[0].is_number()) return a[0].value() != 0 ? a[0] : a[1];
      if (a[1].is_number()) return a[1].value() != 0 ? a[1] : a[0];
      break;
    case Op::select:
      if (a[0].is_number()) return a[0].value() != 0 ? a[1] : a[2];
      if (a[1] == a[2]) return a[1];
      break;
    default: break;
  }
  return Expr::raw(op, a);
}

}  // namespace

Expr make(Op op, std::span<const Expr> a) {
  assert(!a.empty());
  if (all_numbers(a)) {
    std::array<double, 3> v{};
    for (size_t i = 0; i < a.size(); ++i) v[i] = a[i].value();
    const double folded = apply(op, v.data());
    // sign(0) has no value of its own: it is the set [-1, 1].
    const bool undecided =
        (op == Op::sign || op == Op::hold_sign || op == Op::unit || op == Op::components) && v[0] == 0;
    if (std::isfinite(folded) && !undecided) return folded;
  }
  if (op >= Op::add && op <= Op::pow) return fold_arithmetic(op, a);
  if (op == Op::neg) {
    if (a[0].op() == Op::neg) {
      Expr z = a[0];
      return strip_minus(z) ? z : -z;
    }
    if (a[0].op() == Op::sub) return a[0].argument(1) - a[0].argument(0);
  }
  if (op == Op::both || op == Op::either || op == Op::select) return fold_truth(op, a);
  if (op == Op::table && a[0].is_number()) {
    const double value = (*a[1].symbol().curve)(a[0].value(), a[1].symbol().index);
    if (std::isfinite(value)) return value;
  }
  if ((op == Op::min || op == Op::max) && a[0] == a[1]) return a[0];
  return Expr::raw(op, a);
}

Expr make(Op op, const Expr& a) { return make(op, std::array{a}); }
Expr make(Op op, const Expr& a, const Expr& b) { return make(op, std::array{a, b}); }
Expr make(Op op, const Expr& a, const Expr& b, const Expr& c) { return make(op, std::array{a, b, c}); }
Expr operator+(const Expr& a, const Expr& b) { return make(Op::add, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return make(Op::sub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return make(Op::mul, a, b); }
Expr operator/(const Expr& a, const Expr& b) { return make(Op::div, a, b); }
Expr operator-(const Expr& a) { return make(Op::neg, a); }
Expr pow(const Expr& a, const Expr& b) { return make(Op::pow, a, b); }

}  // namespace saltus
