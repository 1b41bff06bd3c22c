#include "solve/disc.hpp"

#include <algorithm>
#include <cmath>

#include "base/linear.hpp"

namespace saltus {
namespace {

constexpr double solved_residual = 1e-13, good_residual = 1e-9;

struct Balls {
  explicit Balls(const DiscProblem& of) : p(of) {
    int start = 0;
    for (const int size : p.sizes) {
      starts.push_back(start);
      double trace = 0;
      for (int i = start; i < start + size; ++i) trace += std::abs(p.A(i, i));
      const double push = p.w.segment(start, size).norm();
      gamma.push_back(trace > 0 ? size / trace : push > 0 ? 1 / push : 1.0);
      start += size;
    }
  }

  /// z moved into the ball of block k.
  Vec inside(size_t k, const Vec& z) const {
    const double length = z.norm();
    return length <= p.bound[k] ? z : Vec(z * (p.bound[k] / length));
  }
  Vec shifted(const Vec& s, const Vec& y, size_t k) const {
    return s.segment(starts[k], p.sizes[k]) + gamma[k] * y.segment(starts[k], p.sizes[k]);
  }
  Vec residual(const Vec& s) const {
    const Vec y = p.w - p.A * s;
    Vec F = s;
    for (size_t k = 0; k < starts.size(); ++k) F.segment(starts[k], p.sizes[k]) -= inside(k, shifted(s, y, k));
    return F;
  }

  const DiscProblem& p;
  std::vector<int> starts;
  std::vector<double> gamma;
};

/// One block alone: A s = w inside the ball, or (A + rho) s = w on it: |s| falls with rho.
Vec alone(const Mat& A, const Vec& w, double bound) {
  const Index d = w.size();
  const auto at = [&](double rho) { return Vec(Orthogonal(A + rho * Mat::Identity(d, d)).solve(w)); };
  const Vec free = at(0);
  if (free.allFinite() && free.norm() <= bound && (A * free - w).norm() <= good_residual * w.norm()) return free;
  double low = 0, high = w.norm() / bound + A.max_abs() * static_cast<double>(d);
  if (!(high > 0)) return Vec::Zero(d);
  for (int i = 0; i < 60 && at(high).norm() > bound; ++i) high *= 2;
  for (int i = 0; i < 100 && high - low > 4e-16 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (at(middle).norm() > bound ? low : high) = middle;
  }
  const Vec s = at(high);
  return s.norm() > 0 ? Vec(s * (bound / s.norm())) : s;
}

void sweep(const Balls& balls, Vec& s) {
  const DiscProblem& p = balls.p;
  for (size_t k = 0; k < balls.starts.size(); ++k) {
    const int from = balls.starts[k], d = p.sizes[k];
    const Mat own = p.A.block(from, from, d, d);
    const Vec rest = Vec(p.w - p.A * s).segment(from, d) + own * s.segment(from, d);
    s.segment(from, d) = alone(own, rest, p.bound[k]);
  }
}

/// One step of Newton's method on s - pi(s + gamma y), halved until the residual falls. False where it does not.
bool newton(const Balls& balls, Vec& s) {
  const DiscProblem& p = balls.p;
  const Index n = p.w.size();
  const Vec y = p.w - p.A * s, F = balls.residual(s);
  Mat J = Mat::Zero(n, n);
  for (size_t k = 0; k < balls.starts.size(); ++k) {
    const int from = balls.starts[k], d = p.sizes[k];
    const Vec z = balls.shifted(s, y, k);
    const double length = z.norm(), b = p.bound[k];
    for (int i = 0; i < d; ++i) {
      for (Index j = 0; j < n; ++j) {
        // d z_l / d s_j = delta - gamma A; behind the projection with b/|z| (1 - z z^T/|z|^2)
        double through = 0;
        for (int l = 0; l < d; ++l) {
          const double slope = (from + l == j ? 1.0 : 0.0) - balls.gamma[k] * p.A(from + l, j);
          const double share = length <= b ? (l == i ? 1.0 : 0.0)
                                           : b / length * ((l == i ? 1.0 : 0.0) - z[i] * z[l] / (length * length));
          through += share * slope;
        }
        J(from + i, j) = (from + i == j ? 1.0 : 0.0) - through;
      }
    }
  }
  const Vec step = Orthogonal(J, 1e-12).solve(F);
  if (!step.allFinite()) return false;
  for (double t = 1; t > 1e-4; t /= 2) {
    const Vec trial = s - t * step;
    if (balls.residual(trial).norm() < (1 - 1e-4 * t) * F.norm()) {
      s = trial;
      return true;
    }
  }
  return false;
}

}  // namespace

DiscSolution solve_discs(const DiscProblem& problem) {
  const Balls balls(problem);
  DiscSolution best;
  Vec s = Vec::Zero(problem.w.size());
  best.residual = HUGE_VAL;
  const auto keep = [&] {
    const double residual = s.size() > 0 ? balls.residual(s).max_abs() : 0.0;
    if (!(residual < best.residual)) return;
    best.residual = residual;
    best.s = s;
  };
  for (const int sweeps : {5, 20, 100, 400}) {
    for (int i = 0; i < sweeps; ++i) sweep(balls, s);
    keep();
    for (int i = 0; i < 40 && best.residual > solved_residual && newton(balls, s); ++i, ++best.steps) keep();
    if (best.residual <= solved_residual) break;
    s = best.s;
    for (size_t k = 0; k < balls.starts.size(); ++k)
      s.segment(balls.starts[k], problem.sizes[k]) = balls.inside(k, s.segment(balls.starts[k], problem.sizes[k]));
  }
  best.y = problem.w - problem.A * best.s;
  best.solved = best.residual <= good_residual;
  return best;
}

}  // namespace saltus
