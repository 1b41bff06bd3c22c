#include "solve/active_set.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/numbers.hpp"
#include "solve/matrix.hpp"

namespace saltus {
namespace {

constexpr int unmeasured = 4, unmeasured_from = 200;

template <class Matrix>
double effect_of(const Matrix& M, Index j, const Vec& weight) {
  double effect = 0;
  each_in_column(M, j, [&](Index row, double value) { effect = std::max(effect, std::abs(value) * weight[row]); });
  return effect;
}

}  // namespace

template <class Matrix>
BoxScales box_scales(const Matrix& M, Vec row, const Vec& x, const Vec& lo, const Vec& hi) {
  const Index n = row.size();
  BoxScales s{std::move(row), Vec::Ones(n)};
  if (n == 0) return s;
  Vec weight(n);
  for (Index i = 0; i < n; ++i) {
    if (!(s.row[i] > 0)) s.row[i] = 1;  // the row is 0 = 0: any unit will do
    weight[i] = 1 / s.row[i];
  }
  double largest = -1;
  for (Index j = 0; j < n; ++j) {
    if (lo[j] == -inf && hi[j] == inf) continue;
    s.effect[j] = effect_of(M, j, weight);
    if (s.effect[j] > 0) continue;  // else a variable without effect
    if (largest < 0) largest = x.max_abs();
    s.effect[j] = largest > 0 ? 1 / largest : 1;
  }
  return s;
}

template <class Matrix>
BoxScales box_scales(const Matrix& M, const Vec& q, const Vec& x) {
  return box_scales(M, q.cwiseAbs() + absolute_product(M, x), x, Vec::Zero(q.size()), Vec::Zero(q.size()));
}

template BoxScales box_scales(const Mat&, const Vec&, const Vec&);
template BoxScales box_scales(const SparseMat&, const Vec&, const Vec&);
template BoxScales box_scales(const Mat&, Vec, const Vec&, const Vec&, const Vec&);
template BoxScales box_scales(const SparseMat&, Vec, const Vec&, const Vec&, const Vec&);

double box_residual(const BoxScales& s, const Vec& lo, const Vec& hi, const Vec& x, const Vec& w) {
  double worst = 0;
  for (Index i = 0; i < x.size(); ++i) {
    const double above = (x[i] - lo[i]) * s.effect[i], below = (hi[i] - x[i]) * s.effect[i], rate = w[i] / s.row[i];
    const double r = std::abs(std::max(std::min(rate, above), -below));
    if (!(r <= worst)) worst = r;
    if (std::isnan(r)) return inf;
  }
  return worst;
}

std::vector<BoundState> states_of(const BoxScales& s, const Vec& lo, const Vec& hi, const Vec& x, const Vec& w) {
  std::vector<BoundState> state(static_cast<size_t>(x.size()), BoundState::inside);
  for (Index i = 0; i < x.size(); ++i) {
    const double rate = w[i] / s.row[i];
    if ((x[i] - lo[i]) * s.effect[i] <= rate) state[static_cast<size_t>(i)] = BoundState::lower;
    if ((hi[i] - x[i]) * s.effect[i] <= -rate) state[static_cast<size_t>(i)] = BoundState::upper;
  }
  return state;
}

template <class Matrix>
ActiveSetResult active_set(const Matrix& M, const Vec& q, const Vec& lo, const Vec& hi, std::vector<BoundState> state,
                           const ActiveSetLimits& limits, ActiveFactor& factor) {
  const int n = static_cast<int>(q.size());
  ActiveSetResult best;
  best.residual = inf;
  std::vector<char> free(static_cast<size_t>(n));
  std::vector<std::pair<int, BoundState>> moves;
  const Vec rhs = -q;
  Vec x = Vec::Zero(n), w;
  RowSums rows;
  size_t fewest = std::numeric_limits<size_t>::max();
  int patience = limits.patience;

  for (int iteration = 1; iteration <= limits.iterations; ++iteration) {
    for (int i = 0; i < n; ++i) {
      const BoundState s = state[static_cast<size_t>(i)];
      free[static_cast<size_t>(i)] = s == BoundState::inside;
      if (s != BoundState::inside) x[i] = s == BoundState::lower ? lo[i] : hi[i];
    }
    const LinearFate fate = factor.solve(M, free, rhs, x, rows, iteration > 1);
    w = -rows.residual;
    const BoxScales scales = box_scales(M, rows.size, x, lo, hi);

    moves.clear();
    for (int i = 0; i < n; ++i) {
      const double rate = w[i] / scales.row[i];
      switch (state[static_cast<size_t>(i)]) {
        case BoundState::inside:
          if ((x[i] - lo[i]) * scales.effect[i] < -limits.tolerance) moves.emplace_back(i, BoundState::lower);
          if ((hi[i] - x[i]) * scales.effect[i] < -limits.tolerance) moves.emplace_back(i, BoundState::upper);
          break;
        case BoundState::lower:
          if (rate < -limits.tolerance) moves.emplace_back(i, BoundState::inside);
          break;
        case BoundState::upper:
          if (rate > limits.tolerance) moves.emplace_back(i, BoundState::inside);
          break;
      }
    }

    // The first points of a large problem are not measured: it is solved soon, or not at one of them.
    const bool last = moves.empty() || fate == LinearFate::inconsistent || iteration == limits.iterations;
    if (last || n < unmeasured_from || iteration > unmeasured) {
      Vec inside = x.cwiseMax(lo).cwiseMin(hi);
      Vec w_inside = inside == x ? w : Vec(M * inside + q);
      const double residual = inside.allFinite() ? box_residual(scales, lo, hi, inside, w_inside) : inf;
      if (residual < best.residual)
        best = {std::move(inside), std::move(w_inside), scales, residual, 0, false, fate == LinearFate::least_norm};
    }
    best.iterations = iteration;
    if (moves.empty()) {
      best.converged = fate != LinearFate::inconsistent && best.residual <= std::max(1e-12, limits.tolerance);
      return best;
    }
    if (fate == LinearFate::inconsistent) return best;

    if (moves.size() < fewest) {
      fewest = moves.size();
      patience = limits.patience;
    } else if (--patience < 0) {
      if (!limits.single_steps) return best;
      moves = {moves.back()};
    }
    for (const auto& [i, s] : moves) state[static_cast<size_t>(i)] = s;
  }
  return best;
}

template ActiveSetResult active_set(const Mat&, const Vec&, const Vec&, const Vec&, std::vector<BoundState>,
                                    const ActiveSetLimits&, ActiveFactor&);
template ActiveSetResult active_set(const SparseMat&, const Vec&, const Vec&, const Vec&, std::vector<BoundState>,
                                    const ActiveSetLimits&, ActiveFactor&);

}  // namespace saltus
