#include "solve/one_box.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/numbers.hpp"

namespace saltus {
namespace {

constexpr size_t most_terms = (max_degree / 4 + 1) * 4;

// Numbers are worked on two at a time, which every machine with doubles in registers of 128 bits can.
using Two = double __attribute__((vector_size(16)));
using TwoFlags = long long __attribute__((vector_size(16)));

inline Two load(const double* from) {
  Two v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
inline Two size_of(Two v) { return std::bit_cast<Two>(std::bit_cast<TwoFlags>(v) & ~(1ll << 63)); }
inline double total(Two v) { return v[0] + v[1]; }

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
struct OnStep {
  std::array<double, most_terms> x;
  size_t terms = 0;
  double all = 0;                                                ///< sum of |x_k|
  double after_8 = 0, after_12 = 0, after_16 = 0, after_24 = 0;  ///< the same without the first 8, 12, 16, 24

  /// False where powers of h leave the range of numbers.
  bool put(std::span<const double> c, double h);
};

bool OnStep::put(std::span<const double> c, double h) {
  terms = (c.size() + 3) / 4 * 4;
  const double h2 = h * h, h4 = h2 * h2;
  Two low{1, h}, high{h2, h2 * h};
  size_t k = 0;
  const auto scale = [&](const double* from) {
    const Two a = load(from) * low, b = load(from + 2) * high;
    std::memcpy(&x[k], &a, sizeof(a));
    std::memcpy(&x[k + 2], &b, sizeof(b));
    low *= h4;
    high *= h4;
    k += 4;
    return size_of(a) + size_of(b);
  };
  const auto scale_to = [&](size_t end) {
    Two sum{};
    while (k + 4 <= std::min(end, c.size())) sum += scale(&c[k]);
    if (k < std::min(end, terms)) {  // the last ones
      std::array<double, 4> last{};
      for (size_t i = k; i < c.size(); ++i) last[i - k] = c[i];
      sum += scale(last.data());
    }
    return total(sum);
  };
  const double to_8 = scale_to(8), to_12 = scale_to(12), to_16 = scale_to(16);
  const double to_24 = scale_to(24);
  after_24 = scale_to(most_terms);
  after_16 = after_24 + to_24;
  after_12 = after_16 + to_16;
  after_8 = after_12 + to_12;
  all = after_8 + to_8;
  for (; k < 24; k += 4) std::fill_n(&x[k], 4, 0.0);
  const double power = std::abs(low[0]);
  return power > 1e-180 && power < 1e180 && all > 1e-100 && all < 1e100;
}

/// p, t p' and t^2 p''.
struct Look {
  double value, slope, bend;
};

Look look(const OnStep& p, double t) {
  const double t2 = t * t, t4 = t2 * t2;
  Two low{}, high{}, low_slope{}, high_slope{}, low_bend{}, high_bend{};
  double k = static_cast<double>(p.terms);
  for (size_t i = p.terms; i > 0;) {
    i -= 4;
    k -= 4;
    const Two a = load(&p.x[i]), b = load(&p.x[i + 2]);
    const Two ka{k, k + 1}, kb{k + 2, k + 3};
    const Two da = ka * a, db = kb * b;
    low = low * t4 + a;
    high = high * t4 + b;
    low_slope = low_slope * t4 + da;
    high_slope = high_slope * t4 + db;
    low_bend = low_bend * t4 + (ka - 1) * da;
    high_bend = high_bend * t4 + (kb - 1) * db;
  }
  const Two power{1, t};
  return {total((low + t2 * high) * power), total((low_slope + t2 * high_slope) * power),
          total((low_bend + t2 * high_bend) * power)};
}

/// max |p''| in t at most.
double largest_curvature(const OnStep& p) {
  Two sum{}, k{0, 1};
  for (size_t i = 0; i < p.terms; i += 2, k += 2) sum += k * (k - 1) * size_of(load(&p.x[i]));
  return total(sum);
}

/// How q, the first m + 1 terms of p, passes the band |q| <= E, as far as its Bernstein coefficients tell.
struct BandPassage {
  int turns = 0;       ///< changes of the side on which the coefficients are; -1: they do not leave the band in order
  double where = 0;    ///< the first zero of the control polygon
  double deepest = 0;  ///< where the coefficient farthest on the other side belongs
};

/// The coefficients as bits, the first one lowest: above the band, then below it, then perhaps above it again, with
/// those inside the band between.
int count_turns(unsigned above, unsigned below, int count) {
  const auto from = [all = (1u << count) - 1](int i) { return all & (~0u << i); };
  const unsigned again = above & (~0u << std::countr_one(above));
  if (below == 0) return above == from(0) ? 0 : -1;
  const int first = std::countr_zero(below), end = first + std::countr_one(below >> first);
  if (again == 0) return below == from(first) ? 1 : -1;
  const int back = std::countr_zero(again);
  const bool in_order = below == (from(first) & ~from(end)) && end <= back && again == from(back);
  return in_order ? 2 : -1;
}

template <int m>
BandPassage pass(const OnStep& p, double E) {
  constexpr size_t pairs = (m + 1) / 2;
  std::array<Two, pairs> b{};
  const double before = p.x[0] > 0 ? 1 : -1;
#pragma GCC unroll 24
  for (size_t k = 0; k <= m; ++k) {
    const double x = before * p.x[k];
#pragma GCC unroll 12
    for (size_t j = k / 2; j < pairs; ++j) b[j] += load(&weights<m>[k][2 * j]) * x;
  }
  TwoFlags above{}, below{}, negative{};
#pragma GCC unroll 12
  for (size_t j = 0; j < pairs; ++j) {
    const TwoFlags bits{1ll << (2 * j), 2ll << (2 * j)};
    above |= (b[j] > E) & bits;
    below |= (b[j] < -E) & bits;
    negative |= (b[j] < 0) & bits;
  }
  const auto joined = [](TwoFlags f) { return static_cast<unsigned>(f[0] | f[1]); };
  BandPassage out{.turns = count_turns(joined(above), joined(below), m + 1)};
  if (out.turns <= 0) return out;
  std::array<double, m + 1> value;
  std::memcpy(value.data(), b.data(), sizeof(value));
  const size_t first = static_cast<size_t>(std::countr_zero(joined(negative)));
  out.where = (static_cast<double>(first - 1) + value[first - 1] / (value[first - 1] - value[first])) / m;
  if (out.turns == 2)
    out.deepest = static_cast<double>(std::min_element(value.begin(), value.end()) - value.begin()) / m;
  return out;
}

}  // namespace

std::optional<OneBox> settle_in_one_box(std::span<const double> c, double h, double noise) {
  OnStep p;
  if (!p.put(c, h)) return std::nullopt;
  const double small = 0x1p-16 * p.all;
  const double rest = p.after_8 <= small    ? p.after_8
                      : p.after_12 <= small ? p.after_12
                      : p.after_16 <= small ? p.after_16
                                            : p.after_24;
  // Rounding of x_k, of the Bernstein coefficients and of the values of p, generously.
  const double E = rest + noise + 4 * (max_degree + 1) * eps * p.all;
  if (!(std::abs(p.x[0]) > E)) return std::nullopt;

  const BandPassage passage = p.after_8 <= small    ? pass<7>(p, E)
                              : p.after_12 <= small ? pass<11>(p, E)
                              : p.after_16 <= small ? pass<15>(p, E)
                                                    : pass<23>(p, E);
  if (passage.turns == 0) return OneBox{};
  if (passage.turns < 0) return std::nullopt;

  const int before = sign_of(p.x[0]);
  const double curvature = largest_curvature(p);
  double t = passage.where, end = 1, slope = 0;
  if (passage.turns == 2) {  // both ways, if it is on the other side at all
    end = passage.deepest;
    if (!(before * look(p, end).value < -2 * E)) return std::nullopt;
  }
  bool close = false;
  for (int iteration = 0; iteration < 10 && !close; ++iteration) {  // Halley's method
    const Look local = look(p, t);
    const double newton = local.value / local.slope;  // in units of t
    const double step = newton / (1 - 0.5 * newton * local.bend / local.slope);
    slope = (local.slope - local.bend * step) / t;
    t -= t * step;
    if (!(t > 0 && t <= end)) return std::nullopt;
    const double turn = curvature * std::abs(t * step / slope);  // how much the slope changes over the step
    close = turn * turn * turn * std::abs(step) <= 0.1 * eps;
  }
  if (!close || sign_of(slope) != -before || !(slope * slope > 8 * E * curvature)) return std::nullopt;

  // One more step with a value that has all its digits; what is left of p at the root follows from it.
  const double s = t * h, value = evaluate(c, s);
  slope /= h;
  double root = s - value / slope;
  double left = before * (value + slope * (root - s));
  if (std::abs(left) <= 0.02 * eps * std::abs(slope * root)) left = before * evaluate(c, root);
  if (left > 0) root = std::nextafter(root, h);
  if (!(std::abs(root) <= std::abs(end * h))) return std::nullopt;
  return OneBox{{RootKind::crossing, root, -before}, passage.turns == 1};
}

}  // namespace saltus
