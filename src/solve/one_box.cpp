#include "solve/one_box.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace saltus {
namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();

int sign_of(double value) { return (value > 0) - (value < 0); }

/// weight[k-1][i-1] = binomial(i, k) / binomial(m, k): what t^k adds to the i-th Bernstein coefficient of degree m.
template <int m>
constexpr auto weights = [] {
  std::array<std::array<double, m>, m> table{};
  for (int k = 1; k <= m; ++k) {
    for (int i = k; i <= m; ++i) {
      double ratio = 1;
      for (int j = 0; j < k; ++j) ratio = ratio * (i - j) / (m - j);
      table[static_cast<size_t>(k - 1)][static_cast<size_t>(i - 1)] = ratio;
    }
  }
  return table;
}();

/// How q = x_0 + ... + x_m t^m passes the band |q| <= E on 0 <= t <= 1, as far as its Bernstein coefficients tell.
struct BandPassage {
  int turns = 0;       ///< changes of the side on which the coefficients are; -1: they do not leave the band in order
  double where = 0;    ///< the first zero of the control polygon
  double deepest = 0;  ///< where the coefficient farthest on the other side belongs
};

/// What x t^(k+1) adds to the Bernstein coefficients; nothing before the (k+1)-th, with which a register may begin.
template <int m, size_t k>
void add_column(double x, std::array<double, m>& b) {
  constexpr size_t first = k - k % 2;
  for (size_t i = first; i < m; ++i) b[i] += weights<m>[k][i] * x;
}

template <int m>
BandPassage pass(const double* x, double E) {
  std::array<double, m> b{};
  [&]<size_t... k>(std::index_sequence<k...>) { (add_column<m, k>(x[k + 1], b), ...); }
  (std::make_index_sequence<m>());
  const double before = x[0] > 0 ? 1 : -1;
  BandPassage out;
  double last = std::abs(x[0]), lowest = 0;
  int side = 1, zone = 1;  // the side last seen, and where the last coefficient is
  bool found = false;
  for (size_t i = 0; i < m; ++i) {
    const double value = before * (x[0] + b[i]);
    const int next = value > E ? 1 : value < -E ? -1 : 0;
    if (zone == 0 && next == side) return {.turns = -1};  // into the band and out again
    zone = next;
    if (next == -side) {
      side = next;
      ++out.turns;
    }
    if (value < lowest) {
      lowest = value;
      out.deepest = static_cast<double>(i + 1) / m;
    }
    if (found) continue;
    found = value < 0;
    if (found) out.where = (static_cast<double>(i) + last / (last - value)) / m;
    last = value;
  }
  if (zone == 0) out.turns = -1;
  return out;
}

BandPassage pass(int m, const double* x, double E) {
  return m == 8 ? pass<8>(x, E) : m == 12 ? pass<12>(x, E) : pass<16>(x, E);
}

}  // namespace

std::optional<OneBox> settle_in_one_box(std::span<const double> c, double h, double noise) {
  constexpr int most = 16;
  const int n = static_cast<int>(c.size()) - 1;
  int exponent = 0;
  std::frexp(h, &exponent);
  if (std::abs(exponent) * n > 600) return std::nullopt;

  // x_k = c_k h^k, so that p = sum x_k t^k on 0 <= t <= 1; sums of |x_k| beyond 8, 12 and 16; max |p''| in t.
  std::array<double, max_degree + 1> x;
  double sums[4] = {0, 0, 0, 0}, curvature = 0, power = 1;
  int k = 0;
  for (size_t part = 0; part < 4; ++part) {
    double sum = 0;
    for (const int last = std::min(n, part == 0   ? 8
                                      : part == 1 ? 12
                                      : part == 2 ? most
                                                  : n);
         k <= last; ++k, power *= h) {
      x[static_cast<size_t>(k)] = c[static_cast<size_t>(k)] * power;
      const double size = std::abs(x[static_cast<size_t>(k)]);
      sum += size;
      curvature += static_cast<double>(k * (k - 1)) * size;
    }
    sums[part] = sum;
  }
  std::fill(x.begin() + n + 1, x.begin() + std::max(n, most) + 1, 0.0);
  const double all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  if (!(all > 1e-100 && all < 1e100)) return std::nullopt;
  const double small = 0x1p-16 * all, beyond_12 = sums[2] + sums[3];
  const int m = beyond_12 + sums[1] <= small ? 8 : beyond_12 <= small ? 12 : most;
  const double rest = m == 8 ? beyond_12 + sums[1] : m == 12 ? beyond_12 : sums[3];
  // Rounding of x_k, of the Bernstein coefficients and of the values of p, generously.
  const double E = rest + noise + 4 * (max_degree + 1) * eps * all;
  if (!(std::abs(x[0]) > E)) return std::nullopt;

  const BandPassage passage = pass(m, x.data(), E);
  if (passage.turns == 0) return OneBox{};
  if (passage.turns < 0 || passage.turns > 2) return std::nullopt;

  const int before = sign_of(x[0]);
  double s = passage.where * h, end = h, slope = 0;
  if (passage.turns == 2) {  // both ways, if it is on the other side at all
    end = passage.deepest * h;
    double value = 0;
    evaluate_with_slope(c, end, value, slope);
    if (!(before * value < -2 * E)) return std::nullopt;
  }
  bool close = false;
  for (int iteration = 0; iteration < 10 && !close; ++iteration) {
    double value = 0;
    evaluate_with_slope(c, s, value, slope);
    const double step = value / slope;
    const double turn = curvature * std::abs(step / (h * h * slope));  // how much the slope changes over the step
    s -= step;
    if (!(s / end > 0 && s / end <= 1)) return std::nullopt;
    close = turn * turn * std::abs(step) <= 0.1 * eps * std::abs(s);
  }
  const double fall = slope * h;  // dp/dt
  if (!close || sign_of(fall) != -before || !(fall * fall > 8 * E * curvature)) return std::nullopt;

  // One more step with a value that has all its digits; what is left of p at the root follows from it.
  const double value = evaluate(c, s);
  double root = s - value / slope;
  double left = before * (value + slope * (root - s));
  if (std::abs(left) <= 0.02 * eps * std::abs(slope * root)) left = before * evaluate(c, root);
  if (left > 0) root = std::nextafter(root, h);
  if (!(std::abs(root) <= std::abs(end))) return std::nullopt;
  return OneBox{{RootKind::crossing, root, -before}, passage.turns == 1};
}

}  // namespace saltus
