// The recurrences of code/jet, for one type of lanes. Included by the files that instantiate Interpreter, each with
// its own instruction set and its own Elementary<V>, the functions at order 0.
//
// Every rule follows from a differential relation. With [k] for the k-th coefficient and D = tau d/dtau, so that
// (D a)[k] = k a[k], the relation c' = a' c of c = exp(a) reads D c = D a * c, or k c[k] = sum of (D a)[j] c[k-j].
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "code/jet.hpp"

namespace saltus::rules {

using Operations = std::span<const Operation>;
using Rates = std::span<const std::pair<int, int>>;

/// The rules of Jet<V> for series in `c`. Operations hold the places in `c` where the series of out, a and b begin;
/// the series that an operation owns are `stride` apart.
template <class V>
struct Interpreter {
  /// Coefficient k of the results of operations, in order.
  static void extend(Operations operations, V* c, size_t stride, int k);
  /// Coefficients first..order.
  static void extend_to(Operations operations, V* c, size_t stride, int first, int order);
  /// Coefficients first..order of the operations `start` (at 0) and `later` (above), with integrate between.
  static void expand(Operations start, Operations later, Rates rates, V* c, size_t stride, int first, int order);
  /// x[k+1] = rate[k]/(k+1) for pairs (x, rate) of places.
  static void integrate(Rates rates, V* c, int k);
};

/// 1/k: a product is sooner done than a quotient, and the orders wait for each other.
constexpr auto inverse = [] {
  std::array<double, largest_order + 2> table{};
  for (size_t k = 1; k < table.size(); ++k) table[k] = 1.0 / static_cast<double>(k);
  return table;
}();

// The order k of a rule is a number, or stands for all of them where machine code has a loop over orders
// (code/native_llvm.cpp), which has functions of its own for what follows and for sums.
inline double inverse_of(int k) { return inverse[static_cast<size_t>(k)]; }
inline double number_of(int k) { return k; }

/// The functions at order 0, and quotient_or_zero: a/b, but 0 where both are.
template <class V>
struct Elementary;

// Coefficient k of a product waits for the coefficients k of its factors, which are ready last: their terms are added
// last, and what is divided by is inverted meanwhile. So the orders, which wait for each other, follow closely.

/// term(first) + ... + term(last), as four sums that do not wait for each other; 0 if there is none.
template <class Term>
inline auto sum(int first, int last, Term term) {
  using V = decltype(term(first));
  if (last < first) return V{};
  V s0 = term(first);
  if (last == first) return s0;
  V s1 = term(first + 1);
  if (last == first + 1) return s0 + s1;
  V s2 = term(first + 2);
  if (last == first + 2) return (s0 + s1) + s2;
  V s3 = term(first + 3);
  int j = first + 4;
  for (; j + 3 <= last; j += 4) {
    s0 += term(j);
    s1 += term(j + 1);
    s2 += term(j + 2);
    s3 += term(j + 3);
  }
  if (j <= last) s0 += term(j);
  if (j + 1 <= last) s1 += term(j + 1);
  if (j + 2 <= last) s2 += term(j + 2);
  return (s0 + s1) + (s2 + s3);
}

constexpr int long_sum = 6;      // terms from which on the newest are added last
constexpr int worth_a_call = 8;  // and from which on four at a time are sooner done

/// a[0] b[0] + a[1] b[-1] + ..., 8 terms or more, as `sum` adds them; the four sums are one register on machines that
/// have it (code/jet_fours.cpp).
double long_sum_of_products(const double* a, const double* b, int count);

/// sum of a[j] b[k-j], j = first..last
template <class A, class B>
inline auto sum_of_products(const A& a, const B& b, int k, int first, int last) {
  using V = std::remove_cvref_t<decltype(a[0])>;
  if constexpr (std::is_same_v<V, double> && std::is_pointer_v<A> && std::is_pointer_v<B>) {
    if (last - first + 1 >= worth_a_call) return long_sum_of_products(a + first, b + (k - first), last - first + 1);
  }
  return sum(first, last, [&](int j) { return a[j] * b[k - j]; });
}

/// The product sum of two series. In a long sum the terms with the newest coefficients are added last: those before
/// them have been in memory for a while, from where they are read four at a time.
template <class A, class B>
inline auto convolve(const A& a, const B& b, int k, int first, int last) {
  if (last - first + 1 < long_sum) return sum_of_products(a, b, k, first, last);
  const auto newest = a[first] * b[k - first] + a[last] * b[k - last];
  return sum_of_products(a, b, k, first + 1, last - 1) + newest;
}

/// sum of a[j] b[k-j], j = 0..k, for k > 0
template <class A, class B, class K>
inline auto product(const A& a, const B& b, K k) {
  const auto ends = a[0] * b[k] + a[k] * b[0];
  return k > 1 ? convolve(a, b, k, 1, k - 1) + ends : ends;
}

/// sum of a[j] a[k-j], j = first..k-first
template <class A>
inline auto convolve_itself(const A& a, int k, int first) {
  auto half = convolve(a, a, k, first, (k + 1) / 2 - 1);
  half += half;
  if (k % 2 == 0) half += a[k / 2] * a[k / 2];
  return half;
}

/// sum of a[j] a[k-j], j = 0..k, for k > 0
template <class A, class K>
inline auto product_with_itself(const A& a, K k) {
  const auto ends = (a[0] + a[0]) * a[k];
  return k > 1 ? convolve_itself(a, k, 1) + ends : ends;
}

/// sum of a[j] b[k-j], j = 1..k, for k > 0
template <class A, class B, class K>
inline auto product_above(const A& a, const B& b, K k) {
  const auto newest = a[k] * b[0];
  return k > 1 ? convolve(a, b, k, 1, k - 1) + newest : newest;
}

/// c of c' = a' b, for k > 0, with Da = D a:  a[k] b[0] + (sum of Da[j] b[k-j], j = 1..k-1)/k
template <class A, class B, class K>
inline auto next_by_slope(const A& a, const A& Da, const B& b, K k) {
  using V = std::remove_cvref_t<decltype(a[0])>;
  const V newest = a[k] * b[0];
  return k > 1 ? V(inverse_of(k) * convolve(Da, b, k, 1, k - 1) + newest) : newest;
}

/// c = sqrt(a); a series that is zero so far stays zero (sliding on the edge of a square root's domain).
template <class S, class K>
inline auto next_root(const S& a, const S& c, K k) {
  using V = std::remove_cvref_t<decltype(a[0])>;
  return Elementary<V>::quotient_or_zero(a[k] - convolve_itself(c, k, 1), 2.0 * c[0]);
}

/// c with D c = (sign D a)/w; Dc holds its derivative.
template <class S, class K>
inline void next_integral(const S& c, const S& Dc, double sign, const S& a, const S& w, K k) {
  Dc[k] = (sign * number_of(k) * a[k] - convolve(Dc, w, k, 1, k - 1)) * (1.0 / w[0]);
  c[k] = Dc[k] * inverse_of(k);
}

/// c = a^r by a D c = r c D a:  k a[0] c[k] = sum of (r j - (k-j)) a[j] c[k-j]
/// A series that is zero so far has a power that is zero so far.
template <class C, class A>
inline auto next_power(const C& c, const A& a, double r, int k) {
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(a[0])>, double>) {
    if (a[0] == 0 && r > 0) {
      double largest = 0;
      for (int j = 1; j <= k; ++j) largest = std::max(largest, std::abs(a[j]));
      return largest == 0 ? 0.0 : std::numeric_limits<double>::quiet_NaN();
    }
  }
  return sum(1, k, [&](int j) { return (r * j - (k - j)) * a[j] * c[k - j]; }) *
         (1.0 / (static_cast<double>(k) * a[0]));
}

/// c = a^n, n > 0 whole, by squares and products kept in series(1), series(2), ...
template <class Series>
inline auto next_whole_power(Series series, const decltype(series(0))& a, unsigned n, int k) {
  auto power = a;
  int used = 0;
  for (int bit = std::bit_width(n) - 2; bit >= 0; --bit) {
    const auto square = series(++used);
    square[k] = k > 0 ? product_with_itself(power, k) : power[0] * power[0];
    power = square;
    if ((n >> bit) % 2 == 0) continue;
    const auto longer = series(++used);
    longer[k] = k > 0 ? product(square, a, k) : square[0] * a[0];
    power = longer;
  }
  return std::remove_cvref_t<decltype(a[0])>(power[k]);
}

/// c = a^r for k > 0, with c = series(0). Whole powers must work through a[0] = 0, where the recurrence divides by it;
/// at k = 0 only their products count.
template <class Series>
inline auto next_any_power(Series series, const decltype(series(0))& a, double r, int k) {
  if (r == 0) return std::remove_cvref_t<decltype(a[0])>{};
  const bool whole = r > 0 && r <= largest_whole_power && r == static_cast<int>(r);
  return whole ? next_whole_power(series, a, static_cast<unsigned>(r), k) : next_power(series(0), a, r, k);
}

/// One lane of a series.
template <class V>
struct Lane {
  V* series;
  size_t lane;
  double& operator[](int j) const { return reinterpret_cast<double*>(series + j)[lane]; }
};

/// c = a^r lane by lane if r differs between lanes, else all at once.
template <class V>
inline void power(V* c, size_t stride, V* a, const V& r, int k) {
  constexpr size_t lanes = sizeof(V) / sizeof(double);
  const double* exponents = reinterpret_cast<const double*>(&r);
  if (std::all_of(exponents, exponents + lanes, [&](double e) { return e == exponents[0]; })) {
    c[k] = next_any_power([=](int i) { return c + static_cast<size_t>(i) * stride; }, a, exponents[0], k);
  } else {
    for (size_t lane = 0; lane < lanes; ++lane) {
      const auto series = [=](int i) { return Lane<V>{c + static_cast<size_t>(i) * stride, lane}; };
      series(0)[k] = next_any_power(series, Lane<V>{a, lane}, exponents[lane], k);
    }
  }
}

/// Coefficient 0 of an operation's slots; series that are only used from coefficient 1 on need none.
template <class V>
[[gnu::noinline]] void start(const Operation& o, V* series, size_t stride) {
  using F = Elementary<V>;
  V& c = series[o.out];
  V& also = (&c)[stride];
  const V& a = series[o.a];
  const V& b = series[o.b];
  switch (o.instr) {
    case Instr::add: c = a + b; break;
    case Instr::sub: c = a - b; break;
    case Instr::neg: c = -a; break;
    case Instr::add_c: c = a + b; break;
    case Instr::rsub_c: c = b - a; break;
    case Instr::scale: c = b * a; break;
    case Instr::mul: c = a * b; break;
    case Instr::square: c = a * a; break;
    case Instr::one_minus_square: c = (1.0 - a) * (1.0 + a); break;
    case Instr::div: c = a / b; break;
    case Instr::div_c: c = a / b; break;
    case Instr::recip: c = b / a; break;
    case Instr::power:
      power(&c, stride, series + o.a, b, 0);  // for the products on the way
      c = F::pow(a, b);
      break;
    case Instr::pow:
      c = F::pow(a, b);
      also = F::log(a);
      break;
    case Instr::sqrt: c = F::sqrt(a); break;
    case Instr::cbrt: c = F::cbrt(a); break;
    case Instr::exp: c = F::exp(a); break;
    case Instr::logistic: {
      // c - c^2 would cancel where it is near 1; exp(a) may be zero or infinite.
      const V e = F::exp(a);
      c = 1.0 / (1.0 + e);
      also = c * (1.0 / (1.0 + 1.0 / e));
      break;
    }
    case Instr::sin_cos:
    case Instr::sin_cos_t: F::sin_cos(a, c, also); break;
    case Instr::sinh_cosh:
      c = F::sinh(a);
      also = F::cosh(a);
      break;
    case Instr::tan:
      c = F::tan(a);
      also = 1.0 + c * c;
      break;
    case Instr::tanh: {
      // 1 - c^2 would cancel where tanh saturates.
      const V cosh = F::cosh(a);
      c = F::tanh(a);
      also = 1.0 / (cosh * cosh);
      break;
    }
    case Instr::log: c = F::log(a); break;
    case Instr::atan: c = F::atan(a); break;
    case Instr::asin: c = F::asin(a); break;
    case Instr::acos: c = F::acos(a); break;
    case Instr::atan2:
      c = F::atan2(a, b);
      also = a * a + b * b;
      break;
    case Instr::expm1:
      c = F::expm1(a);
      also = F::exp(a);
      break;
    case Instr::log1p: c = F::log1p(a); break;
    case Instr::integral: __builtin_unreachable();  // a state is given
  }
}

/// Coefficient k > 0 of sin(a) and cos(a) for an argument that is linear in time, with the slope a1.
template <class S, class V, class K>
inline void next_sine(const S& sin, const S& cos, const V& a1, K k) {
  const V rate = inverse_of(k) * a1;
  sin[k] = rate * cos[k - 1];
  cos[k] = -rate * sin[k - 1];
}

/// Coefficient k > 0 of the functions that are not arithmetic; S as below. Those whose weights depend on both orders
/// of a term, or on values, are none of a loop over orders.
template <class S, class V, class K>
inline void next_function_of(const Operation& o, V* series, size_t stride, K k) {
  constexpr bool one_order = std::is_same_v<K, int>;
  const S c{series + o.out}, c1{series + o.out + stride}, c2{series + o.out + 2 * stride}, a{series + o.a},
      b{series + o.b};
  switch (o.instr) {
    case Instr::power:
      if constexpr (one_order) power(series + o.out, stride, series + o.a, b[0], k);
      break;
    case Instr::pow: {  // c = exp(b l), l = log a
      const S l = c1, Dl = c2, Dp{series + o.out + 3 * stride};
      next_integral(l, Dl, 1.0, a, a, k);
      Dp[k] = number_of(k) * product(b, l, k);
      c[k] = product_above(Dp, c, k) * inverse_of(k);
      break;
    }
    case Instr::sqrt: c[k] = next_root(a, c, k); break;
    case Instr::cbrt:  // as next_power with r = 1/3, its weights times 3 and so exact
      if constexpr (one_order) {
        const double n = k;
        c[k] = sum(1, k, [&](int j) { return (4.0 * j - 3.0 * k) * a[j] * c[k - j]; }) * (1.0 / (3.0 * n * a[0]));
      }
      break;
    case Instr::sinh_cosh: {
      const S s = c, cosh = c1, Da = c2;
      Da[k] = number_of(k) * a[k];
      s[k] = next_by_slope(a, Da, cosh, k);
      cosh[k] = next_by_slope(a, Da, s, k);
      break;
    }
    case Instr::tan: {  // c' = a' (1 + c^2)
      const S slope = c1, Da = c2;
      Da[k] = number_of(k) * a[k];
      c[k] = next_by_slope(a, Da, slope, k);
      slope[k] = product_with_itself(c, k);
      break;
    }
    case Instr::log: next_integral(c, c1, 1.0, a, a, k); break;
    case Instr::sin_cos_t: next_sine(c, c1, a[1], k); break;
    case Instr::expm1: {
      const S exp = c1, Da = c2;
      Da[k] = number_of(k) * a[k];
      exp[k] = next_by_slope(a, Da, exp, k);
      c[k] = exp[k];
      break;
    }
    case Instr::log1p: next_integral(c, c1, 1.0, a, b, k); break;
    case Instr::atan: next_integral(c, c1, 1.0, a, b, k); break;
    case Instr::asin: next_integral(c, c1, 1.0, a, b, k); break;
    case Instr::acos: next_integral(c, c1, -1.0, a, b, k); break;
    case Instr::atan2:  // D c = (b D a - a D b)/(a^2 + b^2)
      if constexpr (one_order) {
        const S radius = c1, Dc = c2;
        radius[k] = product_with_itself(a, k) + product_with_itself(b, k);
        const V turn = sum(0, k, [&](int j) { return (2.0 * j - k) * a[j] * b[k - j]; });
        Dc[k] = (turn - convolve(Dc, radius, k, 1, k - 1)) * (1.0 / radius[0]);
        c[k] = Dc[k] * inverse_of(k);
      }
      break;
    default: __builtin_unreachable();
  }
}

template <class V>
[[gnu::noinline]] void next_function(const Operation& o, V* series, size_t stride, int k) {
  next_function_of<V*>(o, series, stride, k);
}

/// Coefficient k > 0 of products, quotients and the functions that models have most; false for any other operation. S
/// is what a series is read and written by.
template <class S, class V, class K>
[[gnu::always_inline]] inline bool next_product_of(const Operation& o, V* series, size_t stride, K k) {
  const S c{series + o.out}, a{series + o.a}, b{series + o.b};
  switch (o.instr) {
    case Instr::mul: c[k] = product(a, b, k); return true;
    case Instr::square: c[k] = product_with_itself(a, k); return true;
    case Instr::one_minus_square: c[k] = -product_with_itself(a, k); return true;
    case Instr::div: c[k] = (a[k] - product_above(b, c, k)) * (1.0 / b[0]); return true;
    case Instr::recip: c[k] = product_above(a, c, k) * (-1.0 / a[0]); return true;
    case Instr::exp: {
      const S Da{series + o.out + stride};
      Da[k] = number_of(k) * a[k];
      c[k] = next_by_slope(a, Da, c, k);
      return true;
    }
    case Instr::sin_cos: {
      const S cos{series + o.out + stride}, Da{series + o.out + 2 * stride};
      Da[k] = number_of(k) * a[k];
      c[k] = next_by_slope(a, Da, cos, k);
      cos[k] = -next_by_slope(a, Da, c, k);
      return true;
    }
    case Instr::tanh: {  // c' = a' (1 - c^2)
      const S slope{series + o.out + stride}, Da{series + o.out + 2 * stride};
      Da[k] = number_of(k) * a[k];
      c[k] = next_by_slope(a, Da, slope, k);
      slope[k] = -product_with_itself(c, k);
      return true;
    }
    case Instr::logistic: {  // c' = -a' (c - c^2)
      const S slope{series + o.out + stride}, Da{series + o.out + 2 * stride};
      Da[k] = number_of(k) * a[k];
      c[k] = -next_by_slope(a, Da, slope, k);
      slope[k] = c[k] - product_with_itself(c, k);
      return true;
    }
    default: return false;
  }
}

/// Coefficient k > 0 of any operation but sums.
template <class V>
[[gnu::noinline]] void next_product(const Operation& o, V* series, size_t stride, int k) {
  if (!next_product_of<V*>(o, series, stride, k)) next_function(o, series, stride, k);
}

/// With registers of four numbers where there are some (code/jet_fours.cpp).
template <>
void next_product<double>(const Operation& o, double* series, size_t stride, int k);
double sum_by_fours(const double* a, const double* b, int count);
double convolve_by_fours(const double* a, const double* b, int k);
double convolve_itself_by_fours(const double* a, int k);
void convolve_two_by_fours(const double* a, const double* b, const double* c, const double* d, int k, double* sums);
void convolve_two_itself_by_fours(const double* a, const double* b, int k, double* sums);
void next_product_by_fours(const Operation& o, double* series, size_t stride, int k);
/// Compiled for any machine.
void next_function_alone(const Operation& o, double* series, size_t stride, int k);

/// Hands the rule of a sum or a multiple to `apply`: it makes coefficient k of the result where all series are at their
/// coefficient k. False for any other operation.
template <class V, class Apply>
[[gnu::always_inline]] inline bool by_sum(const Operation& o, V* series, Apply apply) {
  switch (o.instr) {
    case Instr::add: apply([&](auto at) { at[o.out] = at[o.a] + at[o.b]; }); return true;
    case Instr::sub: apply([&](auto at) { at[o.out] = at[o.a] - at[o.b]; }); return true;
    case Instr::neg: apply([&](auto at) { at[o.out] = -at[o.a]; }); return true;
    case Instr::add_c: apply([&](auto at) { at[o.out] = at[o.a]; }); return true;
    case Instr::rsub_c: apply([&](auto at) { at[o.out] = -at[o.a]; }); return true;
    case Instr::scale: apply([&](auto at) { at[o.out] = series[o.b] * at[o.a]; }); return true;
    case Instr::div_c: apply([&](auto at) { at[o.out] = at[o.a] * (1.0 / series[o.b]); }); return true;
    default: return false;
  }
}

/// Coefficient k > 0 of an operation's series. Sums are so short that a call would take longer.
template <class V>
[[gnu::always_inline]] inline void next(const Operation& o, V* series, size_t stride, int k) {
  if (!by_sum(o, series, [&](auto rule) { rule(series + k); })) next_product(o, series, stride, k);
}

/// Coefficients first..last of an operation's series, first > 0.
template <class V>
inline void next_all(const Operation& o, V* series, size_t stride, int first, int last) {
  const auto all = [&](auto rule) {
    for (int k = first; k <= last; ++k) rule(series + k);
  };
  if (o.instr == Instr::integral) {
    for (int k = first; k <= last; ++k) series[o.out + k] = series[o.a + k - 1] * inverse[static_cast<size_t>(k)];
  } else if (o.instr == Instr::sin_cos_t) {
    V* const sin = series + o.out;
    const V slope = series[o.a + 1];
    for (int k = first; k <= last; ++k) next_sine(sin, sin + stride, slope, k);
  } else if (!by_sum(o, series, all)) {
    for (int k = first; k <= last; ++k) next_product(o, series, stride, k);
  }
}

/// Coefficient 0; sums are so short that a call would take longer.
template <class V>
[[gnu::always_inline]] inline void start_all(Operations operations, V* c, size_t stride) {
  for (const Operation& o : operations) {
    switch (o.instr) {
      case Instr::add:
      case Instr::add_c: c[o.out] = c[o.a] + c[o.b]; break;
      case Instr::sub: c[o.out] = c[o.a] - c[o.b]; break;
      case Instr::rsub_c: c[o.out] = c[o.b] - c[o.a]; break;
      case Instr::scale: c[o.out] = c[o.b] * c[o.a]; break;
      default: start(o, c, stride);
    }
  }
}

template <class V>
void Interpreter<V>::extend(Operations operations, V* c, size_t stride, int k) {
  if (k == 0) {
    start_all(operations, c, stride);
  } else {
    for (const Operation& o : operations) next(o, c, stride, k);
  }
}

template <class V>
void Interpreter<V>::extend_to(Operations operations, V* c, size_t stride, int first, int order) {
  for (const Operation& o : operations) {
    if (first == 0) start(o, c, stride);
    next_all(o, c, stride, std::max(first, 1), order);
  }
}

template <class V>
void Interpreter<V>::expand(Operations start, Operations later, Rates rates, V* c, size_t stride, int first,
                            int order) {
  if (first == 0) start_all(start, c, stride);
  for (int k = std::max(first, 1); k <= order; ++k) {
    const double factor = inverse[static_cast<size_t>(k)];
    V* const at = c + k;
    for (const auto& [x, rate] : rates) at[x] = (at - 1)[rate] * factor;
    for (const Operation& o : later) next(o, c, stride, k);
  }
}

template <class V>
void Interpreter<V>::integrate(Rates rates, V* c, int k) {
  for (const auto& [x, rate] : rates) c[x + k + 1] = c[rate + k] * inverse[static_cast<size_t>(k + 1)];
}

}  // namespace saltus::rules
