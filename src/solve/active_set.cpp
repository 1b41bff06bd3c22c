#include "solve/active_set.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/numbers.hpp"
#include "solve/matrix.hpp"

namespace saltus {
namespace {

void add_effects(const Mat& M, const Vec& weight, Vec& effect) {
  for (Index j = 0; j < M.cols(); ++j)
    for (Index i = 0; i < M.rows(); ++i) effect[j] = std::max(effect[j], std::abs(M(i, j)) * weight[i]);
}

void add_effects(const SparseMat& M, const Vec& weight, Vec& effect) {
  for (Index j = 0; j < M.cols(); ++j)
    for (const auto [row, value] : M.column(j)) effect[j] = std::max(effect[j], std::abs(value) * weight[row]);
}

Vec absolute_product(const Mat& M, const Vec& x) {
  Vec y = Vec::Zero(M.rows());
  for (Index j = 0; j < M.cols(); ++j)
    for (Index i = 0; x[j] != 0 && i < M.rows(); ++i) y[i] += std::abs(M(i, j)) * std::abs(x[j]);
  return y;
}

Vec absolute_product(const SparseMat& M, const Vec& x) { return M.cwiseAbs() * x.cwiseAbs(); }

}  // namespace

template <class Matrix>
BoxScales box_scales(const Matrix& M, const Vec& q, const Vec& x) {
  BoxScales s{q.cwiseAbs() + absolute_product(M, x), Vec::Zero(q.size())};
  Vec weight(q.size());
  for (Index i = 0; i < q.size(); ++i) {
    if (!(s.row[i] > 0)) s.row[i] = 1;  // the row is 0 = 0: any unit will do
    weight[i] = 1 / s.row[i];
  }
  if (q.size() == 0) return s;
  add_effects(M, weight, s.effect);
  const double largest = x.size() > 0 ? x.max_abs() : 0;
  for (Index j = 0; j < q.size(); ++j)
    if (!(s.effect[j] > 0)) s.effect[j] = largest > 0 ? 1 / largest : 1;  // a variable without effect
  return s;
}

template BoxScales box_scales(const Mat&, const Vec&, const Vec&);
template BoxScales box_scales(const SparseMat&, const Vec&, const Vec&);

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
  Vec x = Vec::Zero(n);
  size_t fewest = std::numeric_limits<size_t>::max();
  int patience = limits.patience;

  for (int iteration = 1; iteration <= limits.iterations; ++iteration) {
    for (int i = 0; i < n; ++i) {
      const BoundState s = state[static_cast<size_t>(i)];
      free[static_cast<size_t>(i)] = s == BoundState::inside;
      if (s != BoundState::inside) x[i] = s == BoundState::lower ? lo[i] : hi[i];
    }
    const LinearFate fate = factor.solve(M, free, -q, x);
    const Vec w = M * x + q;
    const BoxScales scales = box_scales(M, q, x);

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

    const Vec inside = x.cwiseMax(lo).cwiseMin(hi);
    const Vec w_inside = inside == x ? w : Vec(M * inside + q);
    const double residual = inside.allFinite() ? box_residual(scales, lo, hi, inside, w_inside) : inf;
    if (residual < best.residual) best = {inside, w_inside, residual, 0, false, fate == LinearFate::least_norm};
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
