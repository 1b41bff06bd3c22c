#include <algorithm>
#include <cmath>

#include "base/numbers.hpp"
#include "solve/active_set.hpp"
#include "solve/lcp_methods.hpp"
#include "solve/matrix.hpp"

namespace saltus {
namespace {

template <class Matrix>
double residual_of(const Matrix& M, const Vec& q, const Vec& z, const Vec& w) {
  return box_residual(box_scales(M, q, z), Vec::Zero(q.size()), Vec::Constant(q.size(), inf), z, w);
}

template <class Matrix>
double residual_of(const Matrix& M, const Vec& q, const Vec& z) {
  return residual_of(M, q, z, Vec(M * z + q));
}

Vec start_of(const Vec& q, const LcpOptions& options) {
  return options.z0.size() == q.size() ? Vec(options.z0.cwiseMax(0)) : Vec::Zero(q.size());
}

double infinity_norm(const Mat& M) { return M.cwiseAbs().row_sums().maxCoeff(); }
double infinity_norm(const SparseMat& M) { return (M.cwiseAbs() * Vec::Ones(M.cols())).maxCoeff(); }

bool symmetric(const Mat& M) { return (M - M.transpose()).max_abs() <= 1e-12 * M.max_abs(); }
bool symmetric(const SparseMat& M) {
  const SparseMat difference = M - M.transpose();
  return difference.max_abs() <= 1e-12 * M.max_abs();
}

/// Units of w relative to z, row by row: the diagonal, or the largest entry of the row where that vanishes.
template <class Matrix>
Vec row_units(const Matrix& M) {
  const Matrix rows = M.transpose();
  Vec units = M.diagonal().cwiseAbs();
  for (Index i = 0; i < units.size(); ++i) {
    if (units[i] > 0) continue;
    each_in_column(rows, i, [&](Index, double value) { units[i] = std::max(units[i], std::abs(value)); });
    if (!(units[i] > 0)) units[i] = 1;
  }
  return units;
}

SparseMat diagonal_matrix(const Vec& d) { return d.asDiagonal() * SparseMat::Identity(d.size()); }

Mat scaled_plus_diagonal(const Vec& rows, const Mat& M, const Vec& diagonal) {
  Mat A = rows.asDiagonal() * M;
  A.diagonal() += diagonal;
  return A;
}

SparseMat scaled_plus_diagonal(const Vec& rows, const SparseMat& M, const Vec& diagonal) {
  return rows.asDiagonal() * M + diagonal_matrix(diagonal);
}

/// Conjugate gradients on the free variables, gradient projections when a bound is met, and a step into the
/// variables to be freed when their part of the gradient dominates (Dostal's MPRGP).
template <class Matrix>
LcpRun run_projected_gradient(const Matrix& M, const Vec& q, const LcpOptions& options) {
  const Index n = q.size();
  LcpRun run;
  Vec& z = run.z;
  z = start_of(q, options);
  if (!symmetric(M)) return run;
  const double norm = infinity_norm(M);
  if (!(norm > 0)) return run;
  const double fixed_step = 1.9 / norm;

  Vec g = M * z + q, free(n), chopped(n), p;
  const auto split_gradient = [&] {
    for (Index i = 0; i < n; ++i) {
      free[i] = z[i] > 0 ? g[i] : 0;
      chopped[i] = z[i] > 0 ? 0 : std::min(g[i], 0.0);
    }
  };
  split_gradient();
  p = free;
  const int limit = options.max_iterations > 0 ? options.max_iterations : static_cast<int>(20 * n + 1000);
  while (run.iterations < limit) {
    if (run.iterations % 10 == 0) g = M * z + q;  // forget the rounding of the recursion
    if (residual_of(M, q, z, g) <= options.tolerance) {
      run.status = SolveStatus::solved;
      break;
    }
    ++run.iterations;
    double reduced = 0;
    for (Index i = 0; i < n; ++i) reduced += std::min(z[i] / fixed_step, free[i]) * free[i];
    if (chopped.squaredNorm() > reduced) {
      const Vec Md = M * chopped;
      const double curvature = chopped.dot(Md);
      if (!(curvature > 0)) break;
      const double step = g.dot(chopped) / curvature;
      z -= step * chopped;
      g -= step * Md;
      split_gradient();
      p = free;
      continue;
    }
    const Vec Mp = M * p;
    const double curvature = p.dot(Mp);
    double feasible = inf;
    for (Index i = 0; i < n; ++i)
      if (p[i] > 0) feasible = std::min(feasible, z[i] / p[i]);
    const double step = curvature > 0 ? g.dot(p) / curvature : inf;
    if (std::isinf(step) && std::isinf(feasible)) break;  // unbounded below: no minimum along p
    if (step <= feasible) {
      z = (z - step * p).cwiseMax(0);
      g -= step * Mp;
      split_gradient();
      p = free - free.dot(Mp) / curvature * p;
    } else {
      z = (z - feasible * p).cwiseMax(0);
      g -= feasible * Mp;
      split_gradient();
      z = (z - fixed_step * free).cwiseMax(0);
      g = M * z + q;
      split_gradient();
      p = free;
    }
  }
  return run;
}

/// One nonsmooth equation phi(a, b) = 0 for a >= 0, b >= 0, ab = 0, with an element of its generalised derivative.
struct Phi {
  double value, da, db;
};

/// The function of Fischer and Burmeister.
Phi phi(double a, double b) {
  const double r = std::hypot(a, b);
  if (r == 0) return {0, 1 - std::sqrt(0.5), 1 - std::sqrt(0.5)};
  return {a + b - r, 1 - a / r, 1 - b / r};
}

template <class Matrix>
LcpRun run_newton(const Matrix& M, const Vec& q, const LcpOptions& options) {
  const Index n = q.size();
  const std::vector<char> all(static_cast<size_t>(n), 1);
  const Vec units = row_units(M);
  ActiveFactor factor;
  LcpRun run;
  Vec z = options.z0.size() == n ? options.z0 : Vec::Zero(n);

  Vec F(n), da(n), db(n);
  const auto evaluate = [&](const Vec& at) {
    const Vec w = M * at + q;
    for (Index i = 0; i < n; ++i) {
      const Phi p = phi(at[i], w[i] / units[i]);
      F[i] = p.value, da[i] = p.da, db[i] = p.db / units[i];
    }
    return 0.5 * F.squaredNorm();
  };

  double merit = evaluate(z), best = inf;
  const int limit = options.max_iterations > 0 ? options.max_iterations : 200;
  while (run.iterations < limit) {
    const Vec inside = z.cwiseMax(0);
    const double residual = residual_of(M, q, inside);
    if (residual < best) best = residual, run.z = inside;
    if (best <= options.tolerance) {
      run.status = SolveStatus::solved;
      break;
    }
    ++run.iterations;
    const Matrix J = scaled_plus_diagonal(db, M, da);
    const Vec gradient = J.transpose() * F;
    Vec step = Vec::Zero(n);
    const bool regular = factor.solve(J, all, -F, step) != LinearFate::inconsistent;
    const bool descends = gradient.dot(step) < -1e-14 * gradient.norm() * step.norm();
    if (!regular || !descends) step = -gradient;
    const double slope = std::min(gradient.dot(step), 0.0);
    bool accepted = false;
    for (double t = 1; t > 1e-10; t /= 2) {
      const Vec trial = z + t * step;
      const double value = evaluate(trial);
      if (!(value <= merit + 1e-4 * t * slope) || !(value < merit)) continue;
      z = trial, merit = value, accepted = true;
      break;
    }
    if (!accepted) break;
  }
  return run;
}

}  // namespace

LcpRun projected_gradient(const Mat& M, const Vec& q, const LcpOptions& o) { return run_projected_gradient(M, q, o); }
LcpRun projected_gradient(const SparseMat& M, const Vec& q, const LcpOptions& o) {
  return run_projected_gradient(M, q, o);
}
LcpRun newton(const Mat& M, const Vec& q, const LcpOptions& o) { return run_newton(M, q, o); }
LcpRun newton(const SparseMat& M, const Vec& q, const LcpOptions& o) { return run_newton(M, q, o); }

}  // namespace saltus
