#include "solve/least_squares.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "base/linear.hpp"

namespace saltus {
namespace {

constexpr double first_lambda = 1e-4, least_lambda = 1e-15, most_lambda = 1e16;
constexpr double little_step = 1e-11;                ///< a step that is this share of the unknowns is the last
constexpr double little_gain = 1e-15;                ///< so is one that promises this share of the sum of squares
constexpr double good_gain = 0.75, bad_gain = 0.25;  ///< of what the linear model has promised

/// Unknowns that may move: not those at a bound which the slope pushes outward.
std::vector<Index> movable(const std::vector<double>& x, const Vec& slope, const LeastSquaresOptions& o) {
  std::vector<Index> out;
  for (size_t i = 0; i < x.size(); ++i) {
    const double down = slope[ix(i)];
    if ((x[i] <= o.low[i] && down > 0) || (x[i] >= o.high[i] && down < 0)) continue;
    out.push_back(ix(i));
  }
  return out;
}

/// The damped step over some of the unknowns.
Vec step_of(const Residuals& at, const std::vector<Index>& moves, const Vec& D, double lambda) {
  const Index m = at.r.size(), n = ix(moves.size());
  Mat A = Mat::Zero(m + n, n);
  Vec b = Vec::Zero(m + n);
  for (Index c = 0; c < n; ++c) {
    const Index k = moves[ux(c)];
    for (Index i = 0; i < m; ++i) A(i, c) = at.J(i, k) / D[k];
    A(m + c, c) = std::sqrt(lambda);
  }
  for (Index i = 0; i < m; ++i) b[i] = -at.r[i];
  const Vec y = Orthogonal(A).solve(b);
  Vec out = Vec::Zero(D.size());
  for (Index c = 0; c < n; ++c) out[moves[ux(c)]] = y[c] / D[moves[ux(c)]];
  return out;
}

bool is_little(const Vec& step, const std::vector<double>& x) {
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::abs(step[ix(i)]) > little_step * std::abs(x[i])) return false;
  }
  return true;
}

}  // namespace

LeastSquares minimise(const std::function<Residuals(const std::vector<double>&)>& residuals, std::vector<double> start,
                      const LeastSquaresOptions& options) {
  for (size_t i = 0; i < start.size(); ++i) start[i] = std::clamp(start[i], options.low[i], options.high[i]);
  LeastSquares now{.x = std::move(start)};
  now.at = residuals(now.x);
  now.cost = now.at.r.squaredNorm();
  Vec D = Vec::Zero(ix(now.x.size()));
  double lambda = first_lambda, growth = 2;
  for (; now.iterations < options.most_iterations; ++now.iterations) {
    if (options.stop && options.stop()) {
      now.end = LeastSquaresEnd::stopped;
      return now;
    }
    if (options.each) options.each(now.iterations, now.cost);
    const Vec slope = now.at.J.transpose() * now.at.r;
    for (Index i = 0; i < D.size(); ++i) {
      D[i] = std::max(D[i], now.at.J.col(i).norm());
      if (D[i] == 0) D[i] = 1;
    }
    const std::vector<Index> moves = movable(now.x, slope, options);
    bool moved = false;
    while (!moved) {
      Vec step = moves.empty() ? Vec(Vec::Zero(D.size())) : step_of(now.at, moves, D, lambda);
      std::vector<double> next = now.x;
      for (size_t i = 0; i < next.size(); ++i) {
        next[i] = std::clamp(next[i] + step[ix(i)], options.low[i], options.high[i]);
        step[ix(i)] = next[i] - now.x[i];
      }
      const Vec linear = now.at.r + now.at.J * step;
      const double promised = now.cost - linear.squaredNorm();
      if (is_little(step, now.x) || !(promised > little_gain * now.cost)) {
        now.end = LeastSquaresEnd::converged;
        return now;
      }
      Residuals there = residuals(next);
      const double cost = there.r.squaredNorm(), gain = (now.cost - cost) / promised;
      if (std::isfinite(cost) && gain > 0) {
        if (gain > good_gain) lambda = std::max(least_lambda, lambda * 0.1);
        if (gain < bad_gain) lambda *= growth;
        growth = 2;
        now.x = std::move(next);
        now.at = std::move(there);
        now.cost = cost;
        moved = true;
      } else {
        lambda = std::max(lambda, least_lambda) * growth;
        growth = std::min(2 * growth, 1e3);
        if (lambda > most_lambda) {  // no step helps, however short
          now.end = LeastSquaresEnd::converged;
          return now;
        }
      }
      if (options.stop && options.stop()) {
        now.end = LeastSquaresEnd::stopped;
        return now;
      }
    }
  }
  return now;
}

}  // namespace saltus
