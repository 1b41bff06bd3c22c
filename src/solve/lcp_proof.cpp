#include "solve/lcp_proof.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/numbers.hpp"
#include "solve/active_set.hpp"
#include "solve/equilibrate.hpp"
#include "solve/matrix.hpp"

namespace saltus {
namespace {

constexpr double clearly_negative = -1e-10;  // q.y, relative to its terms
constexpr double nearly_zero = 1e-9;         // M^T y, relative to its terms: what pivoting can have lost
constexpr double regular_from = 1e-13;       // rcond of an equilibrated block below which it counts as singular
constexpr double same_point = 1e-8;          // distance of two listed solutions in units of their effect on w

}  // namespace

template <class Matrix>
bool proves_infeasible(const Matrix& M, const Vec& q, const Vec& y) {
  if (y.size() != q.size() || !y.allFinite() || !(y.minCoeff() >= 0) || !(y.maxCoeff() > 0)) return false;
  const Vec pull = M.transpose() * y, size = M.cwiseAbs().transpose() * y;
  const double rounding = static_cast<double>(q.size() + 4) * eps;
  for (Index j = 0; j < pull.size(); ++j)
    if (pull[j] > rounding * size[j]) return false;
  return q.dot(y) < clearly_negative * q.cwiseAbs().dot(y);
}

template bool proves_infeasible(const Mat&, const Vec&, const Vec&);
template bool proves_infeasible(const SparseMat&, const Vec&, const Vec&);

Vec proof_near(const Mat& M, const Vec& q, const Vec& guess) {
  if (guess.size() != q.size() || !guess.allFinite()) return {};
  Vec y = guess.cwiseMax(0);
  for (int round = 0; round < 3; ++round) {
    if (proves_infeasible(M, q, y)) return y;
    // Columns whose pull is zero up to what pivoting lost are made zero by the shortest change of the weights in use.
    const Vec pull = M.transpose() * y, size = M.cwiseAbs().transpose() * y;
    std::vector<Index> used, tight;
    for (Index i = 0; i < y.size(); ++i)
      if (y[i] > 0) used.push_back(i);
    for (Index j = 0; j < pull.size(); ++j) {
      if (std::abs(pull[j]) <= nearly_zero * size[j]) tight.push_back(j);
      if (pull[j] > nearly_zero * size[j]) return {};
    }
    if (used.empty() || tight.empty()) return {};
    const Vec change = Orthogonal(M.rows_at(used).columns_at(tight).transpose()).solve(pull.entries_at(tight));
    y.set_entries_at(used, Vec(y.entries_at(used) - change).cwiseMax(0));
  }
  return {};
}

LcpRun feasible_point(const Mat& M, const Vec& q) {
  const Index m = M.rows(), n = M.cols();
  Mat K = Mat::Zero(m + n, m + n);
  K.topLeftCorner(n, n).setIdentity();
  K.topRightCorner(n, m) = -M.transpose();
  K.bottomLeftCorner(m, n) = M;
  Vec k(m + n);
  k << Vec::Zero(n), q;
  Dictionary dictionary;
  LcpRun run = lemke(K, k, Vec::Ones(m + n), static_cast<int>(100 * (m + n) + 1000), dictionary);
  if (run.certificate.size() > 0) run.certificate = Vec(run.certificate.tail(m));
  run.z = Vec(run.z.head(n));
  return run;
}

EvenLcp::EvenLcp(const LcpProblem& p) {
  Equilibration e = equilibrate(p.M);
  problem.M = e.of(p.M);
  row = std::move(e.row), column = std::move(e.column);
  problem.q = row.cwiseProduct(p.q);
  size = power_of_two(problem.q.max_abs());
  problem.q /= size;
}

namespace {

/// A point of one active set, or the knowledge that there is none.
struct Face {
  Vec z;                ///< empty: none
  bool decided = true;  ///< false: rounding is as large as what decides
};

/// z and w are those of an active set, with bounds of their errors: no entry that must not be negative is surely so.
bool may_be_nonnegative(const Vec& value, const Vec& error) {
  for (Index i = 0; i < value.size(); ++i)
    if (value[i] < -2 * error[i]) return false;
  return true;
}

/// Errors of z_a to first order, |A^-1| (|A||z_a| + |q_a|) times the rounding of a sum, and what they do to w.
bool is_surely_wrong(const LcpProblem& p, const std::vector<int>& a, const Mat& inverse, const Vec& z, const Vec& w) {
  const Index n = p.q.size();
  const double rounding = static_cast<double>(2 * n + 8) * eps;
  const Vec terms = p.q.cwiseAbs() + absolute_product(p.M, z);
  const Vec error_a = rounding * (inverse.cwiseAbs() * terms.entries_at(a));
  Vec error_z = Vec::Zero(n);
  error_z.set_entries_at(a, error_a);
  Vec error_w = rounding * terms + absolute_product(p.M, error_z), w_off = w;
  for (const int i : a) w_off[i] = 0;  // zero by choice of z
  return !may_be_nonnegative(z, error_z) || !may_be_nonnegative(w_off, error_w);
}

bool is_solution(const LcpProblem& p, const Vec& z, double tolerance) {
  const Vec bounded = z.cwiseMax(0);
  if ((bounded - z).cwiseProduct(box_scales(p.M, p.q, z).effect).maxCoeff() > tolerance) return false;
  return lcp_residual(p, bounded) <= tolerance;
}

Face regular_face(const LcpProblem& p, const std::vector<int>& a, const Equilibration& e, const Lu& lu,
                  double tolerance) {
  const Vec right = -p.q.entries_at(a);
  const Mat part = p.M.part(a);
  const auto solve = [&](const Vec& b) { return Vec(e.column.cwiseProduct(lu.solve(e.row.cwiseProduct(b)))); };
  Vec z_a = solve(right);
  z_a += solve(right - part * z_a);
  Vec z = Vec::Zero(p.q.size());
  z.set_entries_at(a, z_a);
  if (!z.allFinite()) return {{}, false};
  if (is_solution(p, z, tolerance)) return {z.cwiseMax(0)};
  const Mat inverse = e.column.asDiagonal() * lu.inverse() * e.row.asDiagonal();
  return {{}, is_surely_wrong(p, a, inverse, z, p.M * z + p.q)};
}

/// One point with z_a >= 0, (M z + q)_a = 0, w >= 0 and z = 0 outside a: equations as two inequalities each.
Face singular_face(const LcpProblem& p, const std::vector<int>& a, double tolerance) {
  const Index n = p.q.size(), k = static_cast<Index>(a.size());
  Mat A(n + k, k);
  Vec c(n + k);
  for (Index j = 0; j < k; ++j) A.col(j).head(n) = p.M.col(a[static_cast<size_t>(j)]);
  c.head(n) = p.q;
  for (Index i = 0; i < k; ++i) {
    A.row(n + i) = -A.row(a[static_cast<size_t>(i)]);
    c[n + i] = -p.q[a[static_cast<size_t>(i)]];
  }
  const Equilibration e = equilibrate(A);
  const Mat even = e.of(A);
  Vec c_even = e.row.cwiseProduct(c);
  const double size = power_of_two(c_even.max_abs());
  c_even /= size;
  const LcpRun run = feasible_point(even, c_even);
  if (run.status != SolveStatus::solved) return {{}, proof_near(even, c_even, run.certificate).size() > 0};
  Vec z = Vec::Zero(n);
  for (Index i = 0; i < k; ++i) z[a[static_cast<size_t>(i)]] = size * e.column[i] * run.z[i];
  if (is_solution(p, z, tolerance)) return {z};
  return {{}, false};
}

Face face_of(const LcpProblem& p, const std::vector<int>& a, double tolerance) {
  const Vec none = Vec::Zero(p.q.size());
  if (a.empty()) return {is_solution(p, none, tolerance) ? none : Vec()};
  const Mat part = p.M.part(a);
  const Equilibration e = equilibrate(part);
  const Lu lu(e.of(part));
  return lu.rcond() > regular_from ? regular_face(p, a, e, lu, tolerance) : singular_face(p, a, tolerance);
}

}  // namespace

std::vector<Vec> all_lcp_solutions(const LcpProblem& given, double tolerance, bool* complete) {
  const int n = static_cast<int>(given.q.size());
  if (n > 16) throw Error(ErrorKind::usage, fmt::format("{} unknowns: all solutions can be listed up to 16", n));
  if (complete) *complete = true;
  if (n == 0) return {Vec()};
  const EvenLcp even(given);
  const LcpProblem& p = even.problem;
  std::vector<Vec> found;
  for (unsigned set = 0; set < (1u << n); ++set) {
    std::vector<int> a;
    for (int i = 0; i < n; ++i)
      if (set >> i & 1u) a.push_back(i);
    const Face face = face_of(p, a, tolerance);
    if (complete && !face.decided) *complete = false;
    if (face.z.size() == 0) continue;
    const BoxScales scales = box_scales(p.M, p.q, face.z);
    const auto same = [&](const Vec& other) {
      return (other - face.z).cwiseProduct(scales.effect).max_abs() <= same_point;
    };
    if (std::none_of(found.begin(), found.end(), same)) found.push_back(face.z);
  }
  for (Vec& z : found) z = even.size * even.column.cwiseProduct(z);
  return found;
}

}  // namespace saltus
