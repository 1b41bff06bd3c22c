// Jets of several lanes. This file alone is compiled for AVX2 and FMA, so it must define nothing that other files could
// link to by accident: everything here depends on the types of lanes.
//
// SLEEF's functions with `finz` in their names give the same bits on every machine that has AVX2 and FMA.
#include <sleef.h>

#include "code/jet_rules.hpp"

namespace saltus::rules {
namespace {

/// Eight lanes as two registers: GCC 12 keeps a vector of 64 bytes in memory on machines without AVX-512.
struct Pair {
  Lanes4 low, high;

  Pair& operator+=(const Pair& b) { return *this = *this + b; }
  friend Pair operator+(const Pair& a, const Pair& b) { return {a.low + b.low, a.high + b.high}; }
  friend Pair operator-(const Pair& a, const Pair& b) { return {a.low - b.low, a.high - b.high}; }
  friend Pair operator*(const Pair& a, const Pair& b) { return {a.low * b.low, a.high * b.high}; }
  friend Pair operator/(const Pair& a, const Pair& b) { return {a.low / b.low, a.high / b.high}; }
  friend Pair operator-(const Pair& a) { return {-a.low, -a.high}; }
  friend Pair operator+(double a, const Pair& b) { return {a + b.low, a + b.high}; }
  friend Pair operator-(double a, const Pair& b) { return {a - b.low, a - b.high}; }
  friend Pair operator*(double a, const Pair& b) { return {a * b.low, a * b.high}; }
  friend Pair operator*(const Pair& a, double b) { return {a.low * b, a.high * b}; }
  friend Pair operator/(double a, const Pair& b) { return {a / b.low, a / b.high}; }
};
static_assert(sizeof(Pair) == sizeof(Lanes8));

}  // namespace

template <>
struct Elementary<Lanes4> {
  static Lanes4 sqrt(Lanes4 a) { return _mm256_sqrt_pd(a); }
  static Lanes4 cbrt(Lanes4 a) { return Sleef_finz_cbrtd4_u10avx2(a); }
  static Lanes4 exp(Lanes4 a) { return Sleef_finz_expd4_u10avx2(a); }
  static Lanes4 log(Lanes4 a) { return Sleef_finz_logd4_u10avx2(a); }
  static Lanes4 expm1(Lanes4 a) { return Sleef_finz_expm1d4_u10avx2(a); }
  static Lanes4 log1p(Lanes4 a) { return Sleef_finz_log1pd4_u10avx2(a); }
  static Lanes4 pow(Lanes4 a, Lanes4 b) { return Sleef_finz_powd4_u10avx2(a, b); }
  static Lanes4 tan(Lanes4 a) { return Sleef_finz_tand4_u10avx2(a); }
  static Lanes4 sinh(Lanes4 a) { return Sleef_finz_sinhd4_u10avx2(a); }
  static Lanes4 cosh(Lanes4 a) { return Sleef_finz_coshd4_u10avx2(a); }
  static Lanes4 tanh(Lanes4 a) { return Sleef_finz_tanhd4_u10avx2(a); }
  static Lanes4 atan(Lanes4 a) { return Sleef_finz_atand4_u10avx2(a); }
  static Lanes4 asin(Lanes4 a) { return Sleef_finz_asind4_u10avx2(a); }
  static Lanes4 acos(Lanes4 a) { return Sleef_finz_acosd4_u10avx2(a); }
  static Lanes4 atan2(Lanes4 a, Lanes4 b) { return Sleef_finz_atan2d4_u10avx2(a, b); }
  static void sin_cos(Lanes4 a, Lanes4& s, Lanes4& c) {
    const auto both = Sleef_finz_sincosd4_u10avx2(a);
    s = both.x;
    c = both.y;
  }
  static Lanes4 quotient_or_zero(Lanes4 a, Lanes4 b) { return ((a == 0) & (b == 0)) ? Lanes4{} : a / b; }
};

template <>
struct Elementary<Pair> {
  using F = Elementary<Lanes4>;
  static Pair sqrt(const Pair& a) { return {F::sqrt(a.low), F::sqrt(a.high)}; }
  static Pair cbrt(const Pair& a) { return {F::cbrt(a.low), F::cbrt(a.high)}; }
  static Pair exp(const Pair& a) { return {F::exp(a.low), F::exp(a.high)}; }
  static Pair log(const Pair& a) { return {F::log(a.low), F::log(a.high)}; }
  static Pair expm1(const Pair& a) { return {F::expm1(a.low), F::expm1(a.high)}; }
  static Pair log1p(const Pair& a) { return {F::log1p(a.low), F::log1p(a.high)}; }
  static Pair pow(const Pair& a, const Pair& b) { return {F::pow(a.low, b.low), F::pow(a.high, b.high)}; }
  static Pair tan(const Pair& a) { return {F::tan(a.low), F::tan(a.high)}; }
  static Pair sinh(const Pair& a) { return {F::sinh(a.low), F::sinh(a.high)}; }
  static Pair cosh(const Pair& a) { return {F::cosh(a.low), F::cosh(a.high)}; }
  static Pair tanh(const Pair& a) { return {F::tanh(a.low), F::tanh(a.high)}; }
  static Pair atan(const Pair& a) { return {F::atan(a.low), F::atan(a.high)}; }
  static Pair asin(const Pair& a) { return {F::asin(a.low), F::asin(a.high)}; }
  static Pair acos(const Pair& a) { return {F::acos(a.low), F::acos(a.high)}; }
  static Pair atan2(const Pair& a, const Pair& b) { return {F::atan2(a.low, b.low), F::atan2(a.high, b.high)}; }
  static void sin_cos(const Pair& a, Pair& s, Pair& c) {
    F::sin_cos(a.low, s.low, c.low);
    F::sin_cos(a.high, s.high, c.high);
  }
  static Pair quotient_or_zero(const Pair& a, const Pair& b) {
    return {F::quotient_or_zero(a.low, b.low), F::quotient_or_zero(a.high, b.high)};
  }
};

template struct Interpreter<Lanes4>;

template <>
void Interpreter<Lanes8>::extend(Operations operations, Lanes8* c, size_t stride, int k) {
  Interpreter<Pair>::extend(operations, reinterpret_cast<Pair*>(c), stride, k);
}
template <>
void Interpreter<Lanes8>::extend_to(Operations operations, Lanes8* c, size_t stride, int first, int order) {
  Interpreter<Pair>::extend_to(operations, reinterpret_cast<Pair*>(c), stride, first, order);
}
template <>
void Interpreter<Lanes8>::expand(Operations start, Operations later, Rates rates, Lanes8* c, size_t stride, int first,
                                 int order) {
  Interpreter<Pair>::expand(start, later, rates, reinterpret_cast<Pair*>(c), stride, first, order);
}
template <>
void Interpreter<Lanes8>::integrate(Rates rates, Lanes8* c, int k) {
  Interpreter<Pair>::integrate(rates, reinterpret_cast<Pair*>(c), k);
}

}  // namespace saltus::rules
