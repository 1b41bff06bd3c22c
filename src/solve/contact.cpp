#include "solve/contact.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/numbers.hpp"
#include "solve/active_factor.hpp"
#include "solve/contact_local.hpp"
#include "solve/lcp.hpp"
#include "solve/matrix.hpp"

namespace saltus {
namespace {

/// The problem with restitution moved into q, so that the law reads 0 <= r_n perp u_n >= 0.
template <class Matrix>
struct Law {
  int d;
  int contacts;
  const Matrix& W;
  Matrix rows;  // W^T: row k of W is a column
  Vec q;
  Vec mu;
  Vec unit;  // mean diagonal of each contact's block: velocity per reaction

  auto block(const Vec& v, int i) const { return v.segment(i * d, d); }
};

template <class Problem>
bool well_formed_contacts(const Problem& p, const Vec& r0) {
  const Index n = p.q.size(), m = p.mu.size();
  if ((p.dimension != 2 && p.dimension != 3) || n != m * p.dimension || p.W.rows() != n || p.W.cols() != n)
    return false;
  if (p.restitution.size() != 0 && (p.restitution.size() != m || p.before.size() != m)) return false;
  if (p.before.size() != 0 && p.before.size() != m) return false;
  if (r0.size() != 0 && r0.size() != n) return false;
  if (!all_finite(p.W) || !p.q.allFinite() || !p.mu.allFinite() || !p.restitution.allFinite() ||
      !p.before.allFinite() || !r0.allFinite())
    return false;
  return m == 0 || (p.mu.minCoeff() >= 0 && p.W.diagonal().minCoeff() >= 0);
}

template <class Problem>
Vec shifted_q(const Problem& p) {
  Vec q = p.q;
  for (Index i = 0; i < p.restitution.size(); ++i) q[i * p.dimension] += p.restitution[i] * std::min(p.before[i], 0.0);
  return q;
}

template <class Problem>
auto law_of(const Problem& p) {
  using Matrix = std::decay_t<decltype(p.W)>;
  const int d = p.dimension, m = static_cast<int>(p.mu.size());
  Law<Matrix> law{d, m, p.W, Matrix(p.W.transpose()), shifted_q(p), p.mu, Vec::Ones(m)};
  const Vec diagonal = p.W.diagonal();
  for (int i = 0; i < m; ++i)
    if (const double mean = diagonal.segment(i * d, d).sum() / d; mean > 0) law.unit[i] = mean;
  return law;
}

/// Projection on the law: pi(x)_n = max(0, x_n), pi(x)_t = x_t limited to the disc of radius mu max(0, x_n).
Vec project(const Vec& x, double mu) {
  Vec y = Vec::Zero(x.size());
  if (!(x[0] > 0)) return y;
  y = x;
  const double size = x.tail(x.size() - 1).norm(), radius = mu * x[0];
  if (size > radius) y.tail(x.size() - 1) *= radius / size;
  return y;
}

/// An element of the generalised derivative of the projection.
Mat project_derivative(const Vec& x, double mu) {
  const Index d = x.size();
  if (!(x[0] > 0)) return Mat::Zero(d, d);
  Mat D = Mat::Identity(d, d);
  const Vec t = x.tail(d - 1);
  const double size = t.norm(), radius = mu * x[0];
  if (size > radius) {
    const Vec e = t / size;
    D.bottomRightCorner(d - 1, d - 1) = radius / size * (Mat::Identity(d - 1, d - 1) - e * e.transpose());
    D.col(0).tail(d - 1) = mu * e;
  }
  return D;
}

template <class Matrix>
double residual_of(const Law<Matrix>& law, const Vec& r, const Vec& u) {
  const Vec met = law.q.cwiseAbs() + law.W.cwiseAbs() * r.cwiseAbs();
  double worst = 0;
  for (int i = 0; i < law.contacts; ++i) {
    const double scale = law.block(met, i).maxCoeff();
    if (!(scale > 0)) continue;
    const Vec force = law.unit[i] * law.block(r, i);
    const double off = (force - project(force - law.block(u, i), law.mu[i])).norm() / scale;
    if (!(off <= worst)) worst = std::isnan(off) ? inf : off;
  }
  return worst;
}

template <class Matrix>
double residual_of(const Law<Matrix>& law, const Vec& r) {
  return residual_of(law, r, Vec(law.W * r + law.q));
}

struct Run {
  Vec r;
  double residual = inf;
  int iterations = 0;
};

Mat dense_block(const Mat& W, int i, int d) { return W.block(i * d, i * d, d, d); }
Mat dense_block(const SparseMat& W, int i, int d) {
  Mat out = Mat::Zero(d, d);
  for (int j = 0; j < d; ++j)
    for (const auto [row, value] : W.column(i * d + j))
      if (row >= i * d && row < (i + 1) * d) out(row - i * d, j) = value;
  return out;
}

/// Contact by contact, the others' reactions fixed; of several local solutions the one nearest to the last iterate.
template <class Matrix>
Run gauss_seidel(const Law<Matrix>& law, Vec r, int sweeps, double tolerance) {
  std::vector<Mat> blocks;
  for (int i = 0; i < law.contacts; ++i) blocks.push_back(dense_block(law.W, i, law.d));
  Run best{r, residual_of(law, r), 0};
  for (int sweep = 1; sweep <= sweeps && best.residual > tolerance; ++sweep) {
    for (int i = 0; i < law.contacts; ++i) {
      const Mat& block = blocks[static_cast<size_t>(i)];
      Vec q = law.block(law.q, i) - block * law.block(r, i);
      for (int k = 0; k < law.d; ++k) q[k] += column_dot(law.rows, i * law.d + k, r);
      const std::vector<Vec> candidates = local_contact_solutions(block, q, law.mu[i]);
      const Vec* nearest = nullptr;
      for (const Vec& c : candidates)
        if (!nearest || (c - law.block(r, i)).norm() < (*nearest - law.block(r, i)).norm()) nearest = &c;
      if (nearest) r.segment(i * law.d, law.d) = *nearest;
    }
    best.iterations = sweep;
    if (sweep % 4 != 0 && sweep != sweeps && sweep > 4) continue;
    if (const double residual = residual_of(law, r); residual < best.residual) best = {r, residual, sweep};
  }
  return best;
}

void fill_jacobian(const Law<Mat>& law, const std::vector<Mat>& D, Mat& J) {
  const int d = law.d;
  J.resize(law.q.size(), law.q.size());
  for (int i = 0; i < law.contacts; ++i) {
    const Mat& P = D[static_cast<size_t>(i)];
    J.middleRows(i * d, d) = P / law.unit[i] * law.W.middleRows(i * d, d);
    J.block(i * d, i * d, d, d) += Mat::Identity(d, d) - P;
  }
}

void fill_jacobian(const Law<SparseMat>& law, const std::vector<Mat>& D, SparseMat& J) {
  const int d = law.d;
  std::vector<SparseEntry> scaled, rest;
  for (int i = 0; i < law.contacts; ++i) {
    const Mat& P = D[static_cast<size_t>(i)];
    for (int a = 0; a < d; ++a)
      for (int b = 0; b < d; ++b) {
        scaled.push_back({i * d + a, i * d + b, P(a, b) / law.unit[i]});
        rest.push_back({i * d + a, i * d + b, (a == b ? 1.0 : 0.0) - P(a, b)});
      }
  }
  const Index n = law.q.size();
  J = SparseMat(n, n, scaled) * law.W + SparseMat(n, n, rest);
}

/// Semismooth Newton on F(r) = r - pi(r - u/unit): F' = (I - pi') + pi' W/unit, with backtracking on |F|.
template <class Matrix>
Run newton(const Law<Matrix>& law, Vec r, int steps, double tolerance) {
  const Index n = law.q.size();
  const std::vector<char> all(static_cast<size_t>(n), 1);
  std::vector<Mat> D(static_cast<size_t>(law.contacts));
  ActiveFactor factor;
  Matrix J;
  const auto argument = [&](const Vec& at, const Vec& u, int i) {
    return Vec(law.block(at, i) - law.block(u, i) / law.unit[i]);
  };
  const auto evaluate = [&](const Vec& at) {
    const Vec u = law.W * at + law.q;
    Vec F(n);
    for (int i = 0; i < law.contacts; ++i)
      F.segment(i * law.d, law.d) = law.unit[i] * (law.block(at, i) - project(argument(at, u, i), law.mu[i]));
    return F;
  };
  Run best{r, residual_of(law, r), 0};
  Vec F = evaluate(r);
  for (int step = 1; step <= steps && best.residual > tolerance; ++step) {
    best.iterations = step;
    const Vec u = law.W * r + law.q;
    for (int i = 0; i < law.contacts; ++i) D[static_cast<size_t>(i)] = project_derivative(argument(r, u, i), law.mu[i]);
    fill_jacobian(law, D, J);
    Vec right = -F;
    for (int i = 0; i < law.contacts; ++i) right.segment(i * law.d, law.d) /= law.unit[i];
    Vec change = Vec::Zero(n);
    if (factor.solve(J, all, right, change) == LinearFate::inconsistent && !change.allFinite()) break;
    Vec trial;
    for (double t = 1; t > 1e-3; t /= 2) {
      trial = r + t * change;
      const Vec F_trial = evaluate(trial);
      if (F_trial.norm() < (1 - 1e-4 * t) * F.norm()) break;
    }
    r = trial;  // also where |F| grew a little: kinks are left that way
    F = evaluate(r);
    Vec inside = r;
    for (int i = 0; i < law.contacts; ++i) inside.segment(i * law.d, law.d) = project(law.block(r, i), law.mu[i]);
    if (const double residual = residual_of(law, inside); residual < best.residual) best = {inside, residual, step};
  }
  return best;
}

/// Stewart and Trinkle: r_t = b+ - b-, 0 <= b+- perp s +- u_t >= 0, 0 <= s perp mu r_n - b+ - b- >= 0.
template <class Matrix>
Run by_lcp(const Law<Matrix>& law, double tolerance) {
  const int m = law.contacts;
  const Mat W = Mat(law.W);
  Run run{Vec::Zero(law.q.size()), inf, 0};
  LcpProblem lcp{Mat::Zero(4 * m, 4 * m), Vec::Zero(4 * m)};
  for (int i = 0; i < m; ++i) {
    lcp.q[i] = law.q[2 * i];
    lcp.q[m + i] = law.q[2 * i + 1];
    lcp.q[2 * m + i] = -law.q[2 * i + 1];
    for (int j = 0; j < m; ++j) {
      const double nn = W(2 * i, 2 * j), nt = W(2 * i, 2 * j + 1), tn = W(2 * i + 1, 2 * j),
                   tt = W(2 * i + 1, 2 * j + 1);
      lcp.M(i, j) = nn, lcp.M(i, m + j) = nt, lcp.M(i, 2 * m + j) = -nt;
      lcp.M(m + i, j) = tn, lcp.M(m + i, m + j) = tt, lcp.M(m + i, 2 * m + j) = -tt;
      lcp.M(2 * m + i, j) = -tn, lcp.M(2 * m + i, m + j) = -tt, lcp.M(2 * m + i, 2 * m + j) = tt;
    }
    lcp.M(m + i, 3 * m + i) = lcp.M(2 * m + i, 3 * m + i) = 1;
    lcp.M(3 * m + i, i) = law.mu[i];
    lcp.M(3 * m + i, m + i) = lcp.M(3 * m + i, 2 * m + i) = -1;
  }
  const LcpSolution s = solve_lcp(lcp, {.method = LcpMethod::lemke, .tolerance = tolerance});
  run.iterations = s.iterations;
  if (s.z.size() != 4 * m) return run;
  for (int i = 0; i < m; ++i) {
    run.r[2 * i] = s.z[i];
    run.r[2 * i + 1] = s.z[m + i] - s.z[2 * m + i];
  }
  run.residual = residual_of(law, run.r);
  return run;
}

bool keep_better(ContactMethod method, const Run& run, double tolerance, ContactSolution& s) {
  s.iterations += run.iterations;
  if (run.r.allFinite() && (s.r.size() == 0 || run.residual < s.residual)) {
    s.r = run.r;
    s.residual = run.residual;
    s.method = method;
  }
  return s.residual <= tolerance;
}

template <class Matrix>
void choose(const Law<Matrix>& law, const Vec& start, const ContactOptions& options, ContactSolution& s) {
  const double tol = options.tolerance;
  for (const int sweeps : {20, 200, 2000}) {
    const Vec from = s.r.size() > 0 ? s.r : start;
    if (keep_better(ContactMethod::gauss_seidel, gauss_seidel(law, from, sweeps, tol), tol, s)) return;
    if (keep_better(ContactMethod::newton, newton(law, s.r, 40, tol), tol, s)) return;
    if (law.d == 2 && law.contacts <= 250 && keep_better(ContactMethod::lcp, by_lcp(law, 1e-12), tol, s)) return;
  }
}

template <class Matrix>
void apply(const Law<Matrix>& law, const Vec& start, const ContactOptions& options, ContactSolution& s) {
  const int limit = options.max_iterations;
  switch (options.method) {
    case ContactMethod::automatic: choose(law, start, options, s); break;
    case ContactMethod::gauss_seidel:
      keep_better(options.method, gauss_seidel(law, start, limit > 0 ? limit : 10000, options.tolerance),
                  options.tolerance, s);
      break;
    case ContactMethod::newton:
      keep_better(options.method, newton(law, start, limit > 0 ? limit : 200, options.tolerance), options.tolerance, s);
      break;
    case ContactMethod::lcp: keep_better(options.method, by_lcp(law, 1e-12), options.tolerance, s); break;
  }
}

template <class Matrix>
void set_modes(const Law<Matrix>& law, ContactSolution& s) {
  const Vec met = law.q.cwiseAbs() + law.W.cwiseAbs() * s.r.cwiseAbs();
  for (int i = 0; i < law.contacts; ++i) {
    const Vec r = law.block(s.r, i), u = law.block(s.u, i);
    const double scale = law.block(met, i).maxCoeff();
    const bool pushed = r[0] * law.unit[i] > 1e-10 * scale;
    const bool moving = u.tail(law.d - 1).norm() > 1e-9 * scale;
    s.mode.push_back(!pushed ? ContactMode::open : moving ? ContactMode::slip : ContactMode::stick);
  }
}

bool has_others(const ContactProblem& p) { return can_list_solutions(p) && all_contact_solutions(p).size() > 1; }
bool has_others(const SparseContactProblem&) { return false; }

template <class Problem>
ContactSolution solve(const Problem& p, const ContactOptions& options) {
  options.check();
  ContactSolution s;
  s.method = options.method;
  if (!well_formed_contacts(p, options.r0) || (options.method == ContactMethod::lcp && p.dimension != 2)) {
    s.status = SolveStatus::bad_input;
    s.residual = inf;
    return s;
  }
  const auto law = law_of(p);
  apply(law, options.r0.size() > 0 ? options.r0 : Vec::Zero(p.q.size()), options, s);
  s.u = p.W * s.r + p.q;
  s.status = s.residual <= options.tolerance ? SolveStatus::solved : SolveStatus::not_converged;
  set_modes(law, s);
  if (s.status == SolveStatus::solved && options.look_for_others && has_others(p)) s.status = SolveStatus::nonunique;
  return s;
}

/// Reactions in one assignment of modes to 2D contacts: 0 open, 1 stick, 2 and 3 slip with u_t > 0 and u_t < 0.
Vec reactions_in(const Law<Mat>& law, const std::vector<int>& modes) {
  const Index n = law.q.size();
  Mat A = Mat::Zero(n, n);
  Vec b = Vec::Zero(n);
  for (int i = 0; i < law.contacts; ++i) {
    const int mode = modes[static_cast<size_t>(i)], at = 2 * i;
    if (mode == 0) A(at, at) = A(at + 1, at + 1) = 1;
    if (mode != 0) A.row(at) = law.W.row(at) / law.unit[i], b[at] = -law.q[at] / law.unit[i];
    if (mode == 1) A.row(at + 1) = law.W.row(at + 1) / law.unit[i], b[at + 1] = -law.q[at + 1] / law.unit[i];
    if (mode >= 2) A(at + 1, at + 1) = 1, A(at + 1, at) = mode == 2 ? law.mu[i] : -law.mu[i];
  }
  const Lu lu(A);
  if (lu.rcond() > 1e-12) return lu.solve(b);
  const Vec r = Orthogonal(A).solve(b);  // redundant contacts: the shortest reactions
  return (A * r - b).norm() <= 1e-10 * (b.norm() + 1e-300) ? r : Vec();
}

}  // namespace

void ContactOptions::check() const {
  if (!(tolerance > 0 && tolerance < 1))
    throw Error(ErrorKind::usage,
                fmt::format("tolerance = {} of a contact solver: expected a number between 0 and 1", tolerance));
  if (max_iterations < 0)
    throw Error(
        ErrorKind::usage,
        fmt::format("max_iterations = {} of a contact solver: expected a positive number, or 0 to let it be chosen",
                    max_iterations));
}

ContactSolution solve_contact(const ContactProblem& p, const ContactOptions& options) { return solve(p, options); }

ContactSolution solve_contact(const SparseContactProblem& p, const ContactOptions& options) {
  return solve(p, options);
}

double contact_residual(const ContactProblem& p, const Vec& r) { return residual_of(law_of(p), r); }
double contact_residual(const SparseContactProblem& p, const Vec& r) { return residual_of(law_of(p), r); }

bool can_list_solutions(const ContactProblem& p) {
  return (p.dimension == 2 && p.mu.size() <= 5) || (p.dimension == 3 && p.mu.size() == 1);
}

std::vector<Vec> all_contact_solutions(const ContactProblem& p) {
  if (!well_formed_contacts(p, {}) || !can_list_solutions(p))
    throw Error(ErrorKind::usage, "all contact solutions can be listed in 2D up to 5 contacts, in 3D for one");
  const Law<Mat> law = law_of(p);
  std::vector<Vec> candidates;
  if (p.dimension == 3) {
    candidates = local_contact_solutions(p.W, law.q, p.mu[0]);
  } else {
    std::vector<int> modes(static_cast<size_t>(law.contacts), 0);
    for (int code = 0; code < 1 << (2 * law.contacts); ++code) {
      for (int i = 0; i < law.contacts; ++i) modes[static_cast<size_t>(i)] = code >> (2 * i) & 3;
      candidates.push_back(reactions_in(law, modes));
    }
  }
  std::vector<Vec> found, velocities;
  for (const Vec& r : candidates) {
    if (r.size() == 0 || !r.allFinite() || residual_of(law, r) > 1e-9) continue;
    const Vec u = p.W * r + p.q;
    const Vec met = law.q.cwiseAbs() + law.W.cwiseAbs() * r.cwiseAbs();
    const auto same = [&](const Vec& other) {
      for (int i = 0; i < law.contacts; ++i)
        if ((law.block(other, i) - law.block(u, i)).max_abs() > 1e-7 * law.block(met, i).max_abs()) return false;
      return true;
    };
    if (std::any_of(velocities.begin(), velocities.end(), same)) continue;
    found.push_back(r);
    velocities.push_back(u);
  }
  return found;
}

SlidingSolution solve_sliding(const SlidingProblem& p) {
  const Index n = p.q.size();
  SlidingSolution s;
  const auto square = [&](const Mat& M) { return M.rows() == n && M.cols() == n && M.allFinite(); };
  if (!square(p.W_nn) || !square(p.W_nt) || p.mu.size() != n || p.slip.size() != n || !p.q.allFinite() ||
      !p.mu.allFinite() || !p.slip.allFinite()) {
    s.status = SolveStatus::bad_input;
    s.residual = inf;
    return s;
  }
  const LcpProblem lcp{p.W_nn - p.W_nt * p.mu.cwiseProduct(p.slip).asDiagonal(), p.q};
  if (n <= 12) {
    bool complete = false;
    s.all = all_lcp_solutions(lcp, 1e-10, &complete);
    s.status = s.all.empty()      ? complete ? SolveStatus::no_solution : SolveStatus::not_converged
               : s.all.size() > 1 ? SolveStatus::nonunique
                                  : SolveStatus::solved;
    if (s.status != SolveStatus::solved) return s;
    s.lambda = s.all.front();
  } else {
    const LcpSolution solution = solve_lcp(lcp);
    s.status = solution.status;
    if (s.status != SolveStatus::solved) return s;
    s.lambda = solution.z;
  }
  s.acceleration = lcp.M * s.lambda + p.q;
  s.residual = lcp_residual(lcp, s.lambda);
  return s;
}

ImpactSolution solve_impact(const ImpactProblem& p) {
  ImpactSolution s;
  const Index n = p.before.size();
  if (p.W.rows() != n || p.W.cols() != n || p.restitution.size() != n || !p.before.allFinite() ||
      !p.restitution.allFinite()) {
    s.status = SolveStatus::bad_input;
    s.residual = inf;
    return s;
  }
  const LcpProblem lcp{p.W, p.before + p.restitution.cwiseProduct(p.before.cwiseMin(0))};
  const LcpSolution solution = solve_lcp(lcp);
  s.status = solution.status;
  s.residual = solution.residual;
  s.impulse = solution.z;
  if (s.impulse.size() == n) s.after = p.before + p.W * s.impulse;
  return s;
}

}  // namespace saltus
