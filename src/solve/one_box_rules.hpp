// How one box is settled (solve/one_box), in registers of two numbers or of four: V. Included by the file for each;
// whatever could stay a function of its own depends on V, so that no machine runs the code of the other.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "base/numbers.hpp"
#include "base/simd.hpp"
#include "solve/one_box.hpp"

namespace saltus::one_box {

constexpr size_t most_terms = (max_degree / 4 + 1) * 4;

using namespace simd;

/// Four numbers that follow each other.
template <class V>
struct Group {
  static constexpr size_t parts = 4 / width<V>;
  V v[parts];

  static Group zero() {
    Group out;
    for (size_t p = 0; p < parts; ++p) out.v[p] = V{};
    return out;
  }
  /// Not by way of memory, which would have to wait for the four.
  static Group of(double a, double b, double c, double d) {
    if constexpr (parts == 1)
      return {V{a, b, c, d}};
    else
      return {V{a, b}, V{c, d}};
  }
  static Group of(const double* from) {
    Group out;
    for (size_t p = 0; p < parts; ++p) load(from + p * width<V>, out.v[p]);
    return out;
  }
  void put(double* to) const {
    for (size_t p = 0; p < parts; ++p) store(to + p * width<V>, v[p]);
  }
  Group size() const {
    Group out = *this;
    for (size_t p = 0; p < parts; ++p) take_size(out.v[p]);
    return out;
  }
  double sum() const {
    V all = v[0];
    for (size_t p = 1; p < parts; ++p) all += v[p];
    return simd::sum(all);
  }
  friend Group operator*(const Group& a, const Group& b) {
    Group out;
    for (size_t p = 0; p < parts; ++p) out.v[p] = a.v[p] * b.v[p];
    return out;
  }
  friend Group operator*(const Group& a, double b) {
    Group out;
    for (size_t p = 0; p < parts; ++p) out.v[p] = a.v[p] * b;
    return out;
  }
  friend Group operator+(const Group& a, const Group& b) {
    Group out;
    for (size_t p = 0; p < parts; ++p) out.v[p] = a.v[p] + b.v[p];
    return out;
  }
  friend Group operator+(const Group& a, double b) {
    Group out;
    for (size_t p = 0; p < parts; ++p) out.v[p] = a.v[p] + b;
    return out;
  }
};

/// weights[k][i] = binomial(i, k) / binomial(m, k): what t^k adds to the i-th Bernstein coefficient of degree m.
template <int m>
constexpr auto weights = [] {
  std::array<std::array<double, m + 1>, m + 1> table{};
  for (int k = 0; k <= m; ++k) {
    for (int i = k; i <= m; ++i) {
      double ratio = 1;
      for (int j = 0; j < k; ++j) ratio = ratio * (i - j) / (m - j);
      table[static_cast<size_t>(k)][static_cast<size_t>(i)] = ratio;
    }
  }
  return table;
}();

/// p on the step: x_k = c_k h^k, so that p = sum x_k t^k on 0 <= t <= 1; zeros follow up to a multiple of four.
template <class V>
struct OnStep {
  alignas(32) std::array<double, most_terms> x;
  size_t terms = 0;
  double all = 0;  ///< sum of |x_k|

  /// False where powers of h leave the range of numbers.
  bool put(std::span<const double> c, double h) {
    const double h2 = h * h, h4 = h2 * h2;
    Group<V> power = Group<V>::of(1, h, h2, h2 * h), sum = Group<V>::zero();
    const auto scale = [&](const Group<V>& four) {
      const Group<V> scaled = four * power;
      scaled.put(&x[terms]);
      sum = sum + scaled.size();
      power = power * h4;
      terms += 4;
    };
    while (terms + 4 <= c.size()) scale(Group<V>::of(&c[terms]));
    if (terms < c.size()) {  // the last ones
      const auto last = [&](size_t i) { return i < c.size() ? c[i] : 0.0; };
      scale(Group<V>::of(c[terms], last(terms + 1), last(terms + 2), 0));
    }
    all = sum.sum();
    const double last_power = std::abs(power.v[0][0]);
    return last_power > 1e-180 && last_power < 1e180 && all > 1e-100 && all < 1e100;
  }
  /// Sum of |x_k| from k = first on, a multiple of four.
  double after(size_t first) const {
    Group<V> sum = Group<V>::zero();
    for (size_t k = first; k < terms; k += 4) sum = sum + Group<V>::of(&x[k]).size();
    return sum.sum();
  }
  /// Fills as many terms as `pass` reads.
  void fill(size_t count) {
    for (size_t k = terms; k < count; k += 4) {
      Group<V>::zero().put(&x[k]);
      asm volatile("" ::: "memory");  // no call for a few numbers
    }
  }
};

/// p, t p' and t^2 p''.
struct Look {
  double value, slope, bend;
};

template <class V>
inline Look look(const OnStep<V>& p, double t) {
  const double t2 = t * t, t4 = t2 * t2;
  Group<V> value = Group<V>::zero(), slope = Group<V>::zero(), bend = Group<V>::zero();
  Group<V> k = Group<V>::of(0, 1, 2, 3) + static_cast<double>(p.terms);
  for (size_t i = p.terms; i > 0;) {
    i -= 4;
    k = k + -4.0;
    const Group<V> x = Group<V>::of(&p.x[i]), dx = k * x;
    value = value * t4 + x;
    slope = slope * t4 + dx;
    bend = bend * t4 + (k + -1.0) * dx;
  }
  const Group<V> power = Group<V>::of(1, t, t2, t2 * t);
  return {(value * power).sum(), (slope * power).sum(), (bend * power).sum()};
}

/// max |p''| in t at most.
template <class V>
inline double largest_curvature(const OnStep<V>& p) {
  Group<V> sum = Group<V>::zero(), k = Group<V>::of(0, 1, 2, 3);
  for (size_t i = 0; i < p.terms; i += 4, k = k + 4.0) sum = sum + k * (k + -1.0) * Group<V>::of(&p.x[i]).size();
  return sum.sum();
}

/// How q, the first m + 1 terms of p, passes the band |q| <= E, as far as its Bernstein coefficients tell.
struct BandPassage {
  int turns = 0;       ///< changes of the side on which the coefficients are; -1: they do not leave the band in order
  double where = 0;    ///< the first zero of the control polygon
  double deepest = 0;  ///< where the coefficient farthest on the other side belongs
};

/// The coefficients as bits, the first one lowest: above the band, then below it, then perhaps above it again, with
/// those inside the band between.
template <class V>
inline int count_turns(unsigned above, unsigned below, int count) {
  const auto from = [all = (1u << count) - 1](int i) { return all & (~0u << i); };
  const unsigned again = above & (~0u << std::countr_one(above));
  if (below == 0) return above == from(0) ? 0 : -1;
  const int first = std::countr_zero(below), end = first + std::countr_one(below >> first);
  if (again == 0) return below == from(first) ? 1 : -1;
  const int back = std::countr_zero(again);
  const bool in_order = below == (from(first) & ~from(end)) && end <= back && again == from(back);
  return in_order ? 2 : -1;
}

template <int m, class V>
inline BandPassage pass(const OnStep<V>& p, double E) {
  constexpr size_t vectors = (m + 1) / width<V>;
  V b[vectors] = {};
  const double before = p.x[0] > 0 ? 1 : -1;
#pragma GCC unroll 24
  for (size_t k = 0; k <= m; ++k) {
    const double x = before * p.x[k];
#pragma GCC unroll 12
    for (size_t j = k / width<V>; j < vectors; ++j) {
      V weight;
      load(&weights<m>[k][width<V> * j], weight);
      b[j] += weight * x;
    }
  }
  Flags<V> above{}, below{}, negative{}, bits{};
  for (size_t i = 0; i < width<V>; ++i) bits[i] = 1ll << i;
#pragma GCC unroll 12
  for (size_t j = 0; j < vectors; ++j, bits <<= width<V>) {
    above |= (b[j] > E) & bits;
    below |= (b[j] < -E) & bits;
    negative |= (b[j] < 0) & bits;
  }
  const auto joined = [](const Flags<V>& f) {
    long long out = f[0];
    for (size_t i = 1; i < width<V>; ++i) out |= f[i];
    return static_cast<unsigned>(out);
  };
  BandPassage out{.turns = count_turns<V>(joined(above), joined(below), m + 1)};
  if (out.turns <= 0) return out;
  std::array<double, m + 1> value;
  std::memcpy(value.data(), b, sizeof(value));
  const size_t first = static_cast<size_t>(std::countr_zero(joined(negative)));
  out.where = (static_cast<double>(first - 1) + value[first - 1] / (value[first - 1] - value[first])) / m;
  if (out.turns == 2) {
    size_t deepest = 0;
    for (size_t i = 1; i <= m; ++i) deepest = value[i] < value[deepest] ? i : deepest;
    out.deepest = static_cast<double>(deepest) / m;
  }
  return out;
}

template <class V>
Root settle(std::span<const double> c, double h, double noise) {
  constexpr Root unclear{.kind = RootKind::unclear};
  OnStep<V> p;
  if (!p.put(c, h)) return unclear;
  // The first term exceeds everything else.
  const double start = std::abs(p.x[0]);
  if (start > (1 + 64 * eps) * (p.all - start) + 64 * eps * p.all + noise) return Root{};
  // The fewest leading terms beside which the others are small.
  const double small = 0x1p-16 * p.all;
  double rest = 0;
  size_t count = 24;
  for (const size_t few : {8, 12, 16, 24}) {
    count = few;
    if (rest = p.after(few); rest <= small) break;
  }
  // Rounding of x_k, of the Bernstein coefficients and of the values of p, generously.
  const double E = rest + noise + 4 * (max_degree + 1) * eps * p.all;
  if (!(std::abs(p.x[0]) > E)) return unclear;

  p.fill(count);
  const BandPassage passage = count == 8    ? pass<7>(p, E)
                              : count == 12 ? pass<11>(p, E)
                              : count == 16 ? pass<15>(p, E)
                                            : pass<23>(p, E);
  if (passage.turns == 0) return Root{};
  if (passage.turns < 0) return unclear;

  const int before = sign_of(p.x[0]);
  const double curvature = largest_curvature(p);
  double t = passage.where, end = 1, from = 0, rise = 0;  // rise: p' times where the last step began
  if (passage.turns == 2) {                               // both ways, if it is on the other side at all
    end = passage.deepest;
    if (!(before * look(p, end).value < -2 * E)) return unclear;
  }
  bool close = false;
  for (int iteration = 0; iteration < 10 && !close; ++iteration) {  // Halley's method, with one quotient a step
    const Look local = look(p, t);
    const double inverse = 1 / local.slope, newton = local.value * inverse;  // in units of t
    const double q = 0.5 * newton * local.bend * inverse;
    const double step = newton * (1 + q + q * q);
    rise = local.slope - local.bend * step;
    const double turn = curvature * t * t * std::abs(step);  // how much that changes over the step
    from = t;
    t -= t * step;
    if (!(t > 0 && t <= end)) return unclear;
    close = turn * turn * turn * std::abs(step) <= 0.1 * eps * std::abs(rise * rise * rise);
  }
  double slope = rise / from;
  if (!close || sign_of(slope) != -before || !(slope * slope > 8 * E * curvature)) return unclear;

  // One more step with a value that has all its digits; what is left of p at the root follows from it.
  const double s = t * h, value = evaluate(c, s);
  slope /= h;
  double root = s - value / slope;
  double left = before * (value + slope * (root - s));
  if (std::abs(left) <= 0.02 * eps * std::abs(slope * root)) left = before * evaluate(c, root);
  if (left > 0) root = std::nextafter(root, h);
  if (!(std::abs(root) <= std::abs(end * h))) return unclear;
  return {.at = root, .kind = RootKind::crossing, .last = passage.turns == 1, .sign_after = -before};
}

}  // namespace saltus::one_box
