#include "solve/polynomial.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/numbers.hpp"
#include "base/simd.hpp"
#include "solve/one_box.hpp"

namespace saltus {
namespace {

constexpr double rounding = 4 * eps;  // N = noise + rounding * sum |c_k s^k|

using Coefficients = std::array<double, max_degree + 1>;

/// c_k and c_(k+1), side by side: p = E(s^2) + s O(s^2), the even and the odd part in one register.
using EvenOdd = simd::Two;

EvenOdd pair_at(std::span<const double> c, std::size_t k) {
  EvenOdd out;
  simd::load(&c[k], out);
  return out;
}

EvenOdd sizes(EvenOdd c) {
  simd::take_size(c);
  return c;
}

constexpr auto inverse_binomial = [] {
  std::array<Coefficients, max_degree + 1> table{};
  for (int n = 0; n <= max_degree; ++n) {
    double binomial = 1;
    for (int k = 0; k <= n; ++k) {
      table[n][k] = 1 / binomial;
      binomial = binomial * (n - k) / (k + 1);
    }
  }
  return table;
}();

/// Coefficients of y(t + a) from those of y(t), in place.
void taylor_shift(Coefficients& y, int n, double a) {
  for (int j = n - 1; j >= 0; --j)
    for (int i = j; i < n; ++i) y[i] += a * y[i + 1];
}

/// The step in the unit of a power of two: tau = unit * s, p = c_0 + c_1 s + ..., the search is on from < s <= to < 2.
struct Scaled {
  Coefficients coefficients;
  int n = -1;  ///< degree; -1: nothing to search
  double unit = 1;
  double from = 0, to = 1;
  double noise = 0;

  std::span<const double> c() const { return {coefficients.data(), static_cast<std::size_t>(n + 1)}; }
  double band(double s) const { return noise + rounding * magnitude(c(), s); }
};

/// c_k unit^k 2^-E, exact; a coefficient too small for that keeps at least its sign.
void scale_coefficients(std::span<const double> c, int exponent, Scaled& p) {
  int largest = std::numeric_limits<int>::min();
  for (std::size_t k = 0; k < c.size(); ++k)
    if (c[k] != 0) largest = std::max(largest, std::ilogb(c[k]) + exponent * static_cast<int>(k));
  for (std::size_t k = 0; k < c.size(); ++k) {
    double& scaled = p.coefficients[k];
    scaled = std::ldexp(c[k], exponent * static_cast<int>(k) - largest);
    if (scaled == 0 && c[k] != 0) scaled = std::copysign(std::numeric_limits<double>::denorm_min(), c[k]);
  }
  p.noise = std::ldexp(p.noise, -largest);
}

Scaled scale(std::span<const double> c, const RootSearch& search, double noise, double size) {
  Scaled p;
  while (!c.empty() && c.back() == 0) c = c.first(c.size() - 1);
  const bool finite = (std::isfinite(size) && !c.empty() && std::isfinite(c[0])) ||
                      std::all_of(c.begin(), c.end(), [](double ck) { return std::isfinite(ck); });
  if (c.size() < 2 || !finite) return p;

  int exponent = 0;
  p.to = 2 * std::frexp(std::abs(search.h), &exponent);
  --exponent;
  p.unit = std::copysign(std::ldexp(1.0, exponent), search.h);
  p.from = search.from / p.unit;
  p.noise = noise;
  p.n = static_cast<int>(c.size()) - 1;

  const bool harmless = std::abs(exponent) * p.n < 600 && size > 1e-100 && size < 1e100;
  if (harmless) {
    double power = 1;
    for (int k = 0; k <= p.n; ++k, power *= std::abs(p.unit)) p.coefficients[k] = c[k] * power;
  } else {
    scale_coefficients(c, exponent, p);
  }
  if (search.h < 0)
    for (int k = 1; k <= p.n; k += 2) p.coefficients[k] = -p.coefficients[k];
  return p;
}

/// The zero between lo and hi, to the last bit; the sign is `before` at lo and opposite, or zero, at hi.
/// It is on the far side: a search from there must not find it again.
double polish(std::span<const double> c, double lo, double hi, int before) {
  // Below this the plain value has few digits left, and the compensated one is taken.
  const double doubtful = 1e-11 * magnitude(c, hi);
  double s = lo == 0 && c.size() > 1 ? -c[0] / c[1] : lo, last_step = hi - lo;
  if (!(s > lo && s < hi)) s = lo + 0.5 * (hi - lo);
  while (s > lo && s < hi) {
    auto [value, slope] = evaluate_with_slope(c, s);
    if (std::abs(value) < doubtful) value = evaluate(c, s);
    if (value == 0) return s;
    (sign_of(value) == before ? lo : hi) = s;

    const double step = value / slope;
    double next = s - step;
    if (next == s) {
      if (sign_of(value) != before) return s;
      s = std::nextafter(s, hi);
      continue;
    }
    // Newton must stay inside and halve its steps; otherwise (multiple root, bad start) bisect.
    if (!(next > lo && next < hi) || 2 * std::abs(step) > last_step) next = lo + 0.5 * (hi - lo);
    last_step = std::abs(next - s);
    s = next;
  }
  return hi;
}

/// Where sign * p is least on [lo, hi], for a p that falls and then rises there.
double minimum(const Scaled& p, double lo, double hi, int sign) {
  Coefficients derivative;
  for (int k = 1; k <= p.n; ++k) derivative[k - 1] = k * p.coefficients[k];
  const std::span<const double> d(derivative.data(), static_cast<std::size_t>(p.n));
  if (sign * evaluate(d, hi) <= 0) return hi;
  if (sign * evaluate(d, lo) >= 0) return lo;
  return polish(d, lo, hi, -sign);
}

/// Certain facts about p on a box: outside the band (+1, -1) or in it (0) at either end, at most one passage between.
struct Verdict {
  bool settled = false;
  int at_a = 0, at_b = 0;
};

/// p expanded at a.
struct Local {
  double a;
  Coefficients d;    ///< d_k = p^(k)(a) / k!; d_0 is exact up to its last bit
  double magnitude;  ///< sum |c_k| a^k
};

void expand(const Scaled& p, double a, Local& local) {
  local.a = a;
  std::copy_n(p.coefficients.begin(), p.n + 1, local.d.begin());
  local.magnitude = a > 0 ? magnitude(p.c(), a) : std::abs(p.coefficients[0]);
  if (a > 0) {
    taylor_shift(local.d, p.n, a);
    local.d[0] = evaluate(p.c(), a);
  }
}

/// The verdict of the first terms if the others are no more than their sum: p keeps its sign (at_a == at_b), or it is
/// monotone (at_a != at_b, the signs of a rise or a fall). Most boxes are settled by this, for a fraction of the work.
std::optional<Verdict> judge_start(const Coefficients& x, int n, double edge, double error) {
  constexpr int m = 10;
  if (n <= m) return std::nullopt;
  double rest = 0, slope_rest = 0;
  for (int k = m + 1; k <= n; ++k) {
    rest += std::abs(x[k]);
    slope_rest += k * std::abs(x[k]);
  }
  std::array<double, m + 1> z;  // Bernstein coefficients less x_0, last one first
  for (int k = 1; k <= m; ++k) z[m - k] = x[k];
  z[m] = 0;
  for (int j = m - 1; j >= 0; --j)
    for (int i = j; i < m; ++i) z[i] += z[i + 1];
  double lowest = 0, highest = 0, last = 0, steepest = HUGE_VAL, flattest = -HUGE_VAL;
  for (int i = 1; i <= m; ++i) {
    const double b = z[m - i] * inverse_binomial[m][i];
    lowest = std::min(lowest, b);
    highest = std::max(highest, b);
    steepest = std::min(steepest, b - last);
    flattest = std::max(flattest, b - last);
    last = b;
  }
  if (x[0] + lowest > rest + edge) return Verdict{true, 1, 1};
  if (x[0] + highest < -rest - edge) return Verdict{true, -1, -1};
  if (m * steepest > slope_rest + n * error) return Verdict{true, -1, 1};
  if (m * flattest < -slope_rest - n * error) return Verdict{true, 1, -1};
  return std::nullopt;
}

Verdict judge(const Scaled& p, const Local& local, double b) {
  const int n = p.n;
  const double w = b - local.a;
  Coefficients x;  // p = sum x_k t^k on 0 <= t <= 1
  x[0] = local.d[0];
  x[1] = local.d[1] * w;
  double rest = 0, slope_rest = 0, sum = x[1], power = w * w;
  for (int k = 2; k <= n; ++k, power *= w) {
    x[k] = local.d[k] * power;
    sum += x[k];
    rest += std::abs(x[k]);
    slope_rest += k * std::abs(x[k]);
  }

  // The rounding errors of x_k, k > 0, and of the Bernstein coefficients are below 2 n eps times the same sums over
  // |c_k|, that is over magnitude(b) - magnitude(a): they vanish with the width of the box, faster than N.
  const double magnitude_b = magnitude(p.c(), b);
  const double error = 2 * n * eps * (magnitude_b - local.magnitude) + 2 * eps * std::abs(x[0]);
  const double band_a = p.noise + rounding * local.magnitude;
  const double band_b = p.noise + rounding * magnitude_b;
  const double edge = band_b + error;
  const auto zone = [](double value, double width) { return std::abs(value) <= width ? 0 : sign_of(value); };

  // A straight line and a bound of the rest.
  const double line_b = x[0] + x[1];
  if (sign_of(x[0]) == sign_of(line_b) && std::min(std::abs(x[0]), std::abs(line_b)) > rest + edge)
    return {true, sign_of(x[0]), sign_of(x[0])};

  const bool monotone = std::abs(x[1]) > slope_rest + n * error;
  const bool smallest = w <= 4 * eps * b;  // nothing is left to halve
  if (monotone || smallest) {
    double at_b = x[0] + sum;
    if (std::abs(at_b) <= edge) at_b = evaluate(p.c(), b);
    return {true, zone(x[0], band_a), zone(at_b, band_b)};
  }

  if (const std::optional<Verdict> quick = judge_start(x, n, edge, error)) {
    if (quick->at_a == quick->at_b) return *quick;
    double at_b = x[0] + sum;
    if (std::abs(at_b) <= edge) at_b = evaluate(p.c(), b);
    return {true, zone(x[0], band_a), zone(at_b, band_b)};
  }

  // Bernstein coefficients x_0 + z_{n-i} / binomial(n, i). If their zones are in order, each edge of the band is passed
  // at most once (Descartes). N is taken at b; a coefficient inside counts only where N is nearly constant on the box.
  Coefficients z;
  for (int k = 1; k <= n; ++k) z[n - k] = x[k];
  z[n] = 0;
  taylor_shift(z, n, 1.0);
  const bool local_band = band_b <= 2 * band_a && error <= band_b;
  const int first = zone(x[0], edge);
  int last = first;
  bool falling = true, rising = true, inside = first == 0, narrow = std::abs(x[0]) <= 2 * edge;
  for (int i = 1; i <= n; ++i) {
    const double coefficient = x[0] + z[n - i] * inverse_binomial[n][i];
    const int next = zone(coefficient, edge);
    falling &= next <= last;
    rising &= next >= last;
    inside |= next == 0;
    narrow &= std::abs(coefficient) <= 2 * edge;
    last = next;
  }
  if ((falling || rising) && (!inside || local_band)) return {true, first, last};
  // Between N and a few N both answers are right; without that latitude a minimum at N would be halved to the last bit.
  if (narrow && local_band) return {true, 0, 0};
  return {};
}

/// The stretch from `start` on which p is in the band, and the sign it came with (0: the search began on a root).
struct Passage {
  int sign = 0;
  bool in_band = false;
  bool began_in_band = false;
  double start = 0;
};

Root crossing(const Scaled& p, double lo, double hi, int before) {
  return {.at = polish(p.c(), lo, hi, before), .kind = RootKind::crossing, .sign_after = -before};
}

/// p came into the band with passage.sign and leaves it at `end` with the sign `after`.
Root leave_band(const Scaled& p, const Passage& passage, double end, int after) {
  const int before = passage.sign;
  if (before == 0) return {};
  if (after != before) return crossing(p, passage.start, end, before);
  if (passage.began_in_band) return {};
  const double s = minimum(p, passage.start, end, before);
  const double value = before * evaluate(p.c(), s), band = p.band(s);
  if (value > band) return {};
  if (value < -band) return crossing(p, passage.start, s, before);
  return {.at = s, .kind = RootKind::tangent, .sign_after = before};
}

/// The sign with which p leaves the band beyond the end of the step; if it does not, the sign it ends with.
int sign_beyond(const Scaled& p, double at_end, int before) {
  for (double w = eps; w < 0.25; w *= 2) {
    const double s = p.to + w, value = evaluate(p.c(), s);
    if (std::abs(value) > p.band(s)) return sign_of(value);
  }
  return at_end == 0 ? before : sign_of(at_end);
}

/// The step ends while p is in the band.
Root end_in_band(const Scaled& p, const Passage& passage) {
  const int before = passage.sign;
  const double at_end = evaluate(p.c(), p.to);
  const bool changed = sign_of(at_end) == -before;
  if (before == 0 || (passage.began_in_band && !changed)) return {};
  const int after = passage.began_in_band ? -before : sign_beyond(p, at_end, before);
  if (after == before) return leave_band(p, passage, p.to, before);
  if (changed) return crossing(p, passage.start, p.to, before);
  return {.at = p.to, .kind = RootKind::crossing, .sign_after = after};
}

Passage begin(const Scaled& p, const Local& local) {
  const int sign = sign_of(local.d[0]);
  const bool in_band = std::abs(local.d[0]) <= p.noise + rounding * local.magnitude;
  return {in_band && p.from > 0 ? 0 : sign, in_band, in_band, p.from};
}

Root walk(const Scaled& p) {
  Local local;
  expand(p, p.from, local);
  Passage passage = begin(p, local);
  double w = p.to - p.from;
  while (local.a < p.to) {
    const double a = local.a, b = p.to - a <= w ? p.to : a + w;
    const Verdict verdict = judge(p, local, b);
    if (!verdict.settled) {
      w = 0.5 * (b - a);
      continue;
    }
    for (const auto& [s, sign] : {std::pair{a, verdict.at_a}, std::pair{b, verdict.at_b}}) {
      if (sign == 0) {
        if (!passage.in_band) passage = {passage.sign, true, false, a};
        continue;
      }
      if (passage.in_band) {
        const Root root = leave_band(p, passage, s, sign);
        if (root.kind != RootKind::none) return root;
      } else if (sign != passage.sign) {
        return crossing(p, a, b, passage.sign);
      }
      passage = {sign, false, false, s};
    }
    if (b == p.to) break;
    w = 2 * (b - a);
    expand(p, b, local);
  }
  return passage.in_band ? end_in_band(p, passage) : Root{};
}

/// True if the result of one box decides the search: its only root lies clearly before or
/// after that, or is there.
bool tells(const Root& root, const RootSearch& search) {
  if (root.kind == RootKind::none || search.from == 0) return true;
  const double ahead = std::abs(root.at - search.from);
  return root.last && (ahead == 0 || ahead > 1e-9 * std::abs(search.h));
}

/// One box for the whole step; where that tells nothing, one for the half or the eighth with which it begins, if a root
/// is there.
Root settle(std::span<const double> q, const RootSearch& search, double noise) {
  const Root whole = settle_in_one_box(q, search.h, noise);
  if (whole.kind != RootKind::unclear && tells(whole, search)) return whole;
  if (search.from == 0) {
    for (const double beginning : {0.5, 0.125}) {
      Root begin = settle_in_one_box(q, beginning * search.h, noise);
      begin.last = false;
      if (begin.kind == RootKind::crossing) return begin;
      if (begin.kind == RootKind::none) break;  // it is later than that
    }
  }
  return {.kind = RootKind::unclear};
}

/// Its zero after `from` and up to h, on the far side.
Root root_of_line(std::span<const double> q, const RootSearch& search) {
  double where = -q[0] / q[1];
  if (sign_of(q[0] + q[1] * where) == sign_of(q[0])) where = std::nextafter(where, std::copysign(HUGE_VAL, where));
  if (!(std::abs(where) <= std::abs(search.h)) || !(std::abs(where) > std::abs(search.from))) return {};
  if (sign_of(where) != sign_of(search.h)) return {};
  return {.at = where, .kind = RootKind::crossing, .last = true, .sign_after = sign_of(q[1]) * sign_of(search.h)};
}

}  // namespace

Root first_root(const double* c, std::size_t count, double h, int known_zeros, double noise) {
  const std::size_t zeros = static_cast<std::size_t>(known_zeros);
  if (h > 0 && count > zeros + 2 && c[zeros] != 0 && c[count - 1] != 0 && (zeros == 0 || noise == 0)) {
    const Root root = settle_in_one_box({c + zeros, count - zeros}, h, noise);
    if (root.kind != RootKind::unclear) return root;
  }
  return leftmost_root({c, count}, {.h = h, .known_zeros = known_zeros, .noise = noise});
}

Root leftmost_root(std::span<const double> c, const RootSearch& search) {
  assert(search.known_zeros >= 0 && search.noise >= 0);
  const double h = std::abs(search.h);
  std::size_t zeros = std::min(static_cast<std::size_t>(search.known_zeros), c.size());
  while (zeros < c.size() && c[zeros] == 0) ++zeros;
  std::span<const double> q = c.subspan(zeros);
  while (q.size() > 2 && q.back() == 0) q = q.first(q.size() - 1);
  assert(q.size() <= max_degree + 1);
  if (q.empty()) return {};

  double noise = search.noise > 0 ? search.noise : 0;
  if (noise > 0)
    for (std::size_t k = 0; k < zeros; ++k) noise /= h;

  if (!std::isfinite(h) || !(std::abs(search.from) < h) || sign_of(search.from) == -sign_of(search.h)) return {};

  Root root;
  if (q.size() == 2 && noise == 0) {  // a clock
    root = root_of_line(q, search);
  } else if (root = settle(q, search, noise); root.kind != RootKind::unclear) {
    if (!(std::abs(root.at) > std::abs(search.from))) return {};
  } else {
    const double rest = h * magnitude(q.subspan(1), h);
    if (std::abs(q[0]) > (1 + 64 * eps) * rest + noise + 1e-300) return {};
    const Scaled p = scale(q, search, noise, rest);
    if (p.n < 1) return {};
    root = walk(p);
    root.at *= p.unit;
  }
  if (search.h < 0 && zeros % 2 == 1) root.sign_after = -root.sign_after;
  return root;
}

namespace {

/// Horner's scheme in tau^2 for the even and the odd part, side by side, with all rounding errors carried along, those
/// of tau^2 too. Inlined into one function for machines that multiply and add at once and one for the others: both give
/// the same bits.
[[gnu::always_inline]] inline double compensated(std::span<const double> c, double tau) {
  const double s2 = tau * tau, s2_error = __builtin_fma(tau, tau, -s2);
  EvenOdd value{}, correction{};
  std::size_t k = c.size();
  if (k % 2 == 1) value[0] = c[--k];
  for (; k > 0; k -= 2) {
    const EvenOdd next = pair_at(c, k - 2), product = value * s2;
    const EvenOdd product_error{__builtin_fma(value[0], s2, -product[0]), __builtin_fma(value[1], s2, -product[1])};
    const EvenOdd sum = product + next, part = sum - product;
    const EvenOdd sum_error = (product - (sum - part)) + (next - part);
    correction = correction * s2 + (product_error + sum_error + value * s2_error);
    value = sum;
  }
  const double even = value[0], odd = tau * value[1], odd_error = __builtin_fma(tau, value[1], -odd);
  const double sum = even + odd, part = sum - even;
  const double sum_error = (even - (sum - part)) + (odd - part);
  return sum + (sum_error + odd_error + correction[0] + tau * correction[1]);
}

SALTUS_FMA double compensated_at_once(std::span<const double> c, double tau) { return compensated(c, tau); }
const bool multiplies_and_adds = simd::has_fma();

}  // namespace

double evaluate(std::span<const double> c, double tau) {
  if (c.empty()) return 0;
  if (constexpr double large = 1e120; std::abs(tau) < large && std::abs(tau) > 1 / large) {  // tau^2 has all its digits
    const double result = multiplies_and_adds ? compensated_at_once(c, tau) : compensated(c, tau);
    if (std::isfinite(result)) return result;
  }
  double value = c.back();
  for (std::size_t k = c.size() - 1; k-- > 0;) value = value * tau + c[k];
  return value;
}

namespace {

/// E and O at one point, and their slopes: chains that do not wait for each other.
struct Halves {
  double s, s2;
  EvenOdd value{}, slope{};

  explicit Halves(double at) : s(at), s2(at * at) {}
  void add(const EvenOdd& c) {
    slope = slope * s2 + value;
    value = value * s2 + c;
  }
  ValueAndSlope both() const { return {value[0] + s * value[1], value[1] + 2 * (s * slope[0] + s2 * slope[1])}; }
};

}  // namespace

double with_known_zeros(std::span<const double> c, int known_zeros, double at, double resolution) {
  double left = 0;
  for (int k = known_zeros; k-- > 0;) left = left * at + c[static_cast<std::size_t>(k)];
  if (left == 0) return at;
  const double step = left / evaluate_with_slope(c, at).slope;
  return std::abs(step) <= std::min(resolution, 0.5 * std::abs(at)) ? at - step : at;
}

ValueAndSlope evaluate_with_slope(std::span<const double> c, double tau) {
  Halves there(tau);
  std::size_t k = c.size();
  if (k % 2 == 1) there.value[0] = c[--k];
  for (; k > 0; k -= 2) there.add(pair_at(c, k - 2));
  return there.both();
}

std::array<ValueAndSlope, 2> evaluate_with_slope(std::span<const double> c, double tau, double other) {
  Halves first(tau), second(other);
  std::size_t k = c.size();
  if (k % 2 == 1) first.value[0] = second.value[0] = c[--k];
  for (; k > 0; k -= 2) {
    const EvenOdd both = pair_at(c, k - 2);
    first.add(both);
    second.add(both);
  }
  return {first.both(), second.both()};
}

double magnitude(std::span<const double> c, double s) {
  const double s2 = s * s;
  EvenOdd sum{};
  std::size_t k = c.size();
  if (k % 2 == 1) sum[0] = std::abs(c[--k]);
  for (; k > 0; k -= 2) sum = sum * s2 + sizes(pair_at(c, k - 2));
  return sum[0] + s * sum[1];
}

double evaluate_plainly(std::span<const double> c, double tau) {
  const double s2 = tau * tau;
  EvenOdd value{};
  std::size_t k = c.size();
  if (k % 2 == 1) value[0] = c[--k];
  for (; k > 0; k -= 2) value = value * s2 + pair_at(c, k - 2);
  return value[0] + tau * value[1];
}

double evaluate_derivative(std::span<const double> c, double tau) {
  double value = 0, correction = 0;
  for (std::size_t k = c.size(); k-- > 1;) {
    const double product = value * tau;
    const double product_error = std::fma(value, tau, -product);
    const double term = static_cast<double>(k) * c[k];
    const double sum = product + term;
    const double part = sum - product;
    const double sum_error = (product - (sum - part)) + (term - part);
    correction = correction * tau + (product_error + sum_error);
    value = sum;
  }
  const double result = value + correction;
  return std::isfinite(result) ? result : value;
}

}  // namespace saltus
