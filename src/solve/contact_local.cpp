#include "solve/contact_local.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace saltus {
namespace {

using Quartic = std::array<double, 5>;  // p[0] + p[1] x + ... + p[4] x^4

double value(const std::vector<double>& p, double x) {
  double y = 0;
  for (size_t i = p.size(); i-- > 0;) y = y * x + p[i];
  return y;
}

/// Sign change of p between a and b by bisection to the last bit.
double bisect(const std::vector<double>& p, double a, double b) {
  const bool rising = value(p, a) < 0;
  for (int i = 0; i < 200; ++i) {
    const double m = 0.5 * (a + b);
    if (m <= a || m >= b) break;
    ((value(p, m) < 0) == rising ? a : b) = m;
  }
  return 0.5 * (a + b);
}

/// Real roots in (a, b): between neighbouring roots of the derivative p is monotone.
std::vector<double> roots(const std::vector<double>& p, double a, double b) {
  if (p.size() < 2) return {};
  std::vector<double> derivative(p.size() - 1);
  for (size_t i = 1; i < p.size(); ++i) derivative[i - 1] = static_cast<double>(i) * p[i];
  std::vector<double> marks = roots(derivative, a, b), found;
  marks.insert(marks.begin(), a);
  marks.push_back(b);
  for (size_t i = 0; i + 1 < marks.size(); ++i)
    if ((value(p, marks[i]) < 0) != (value(p, marks[i + 1]) < 0)) found.push_back(bisect(p, marks[i], marks[i + 1]));
  return found;
}

std::vector<double> positive_roots(const Quartic& q) {
  std::vector<double> p(q.begin(), q.end());
  const double largest =
      std::abs(*std::max_element(p.begin(), p.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }));
  while (!p.empty() && std::abs(p.back()) <= 1e-300 + 1e-17 * largest) p.pop_back();
  if (p.size() < 2) return {};
  double bound = 0;  // Cauchy: every root is below 1 + max |p_i / p_n|
  for (size_t i = 0; i + 1 < p.size(); ++i) bound = std::max(bound, std::abs(p[i] / p.back()));
  return roots(p, 0, 1 + bound);
}

void add_slip_2d(const Mat& W, const Vec& q, double mu, std::vector<Vec>& found) {
  for (const double s : {1.0, -1.0}) {
    const double stiffness = W(0, 0) - s * mu * W(0, 1);
    const double r_n = -q[0] / stiffness;
    if (!(r_n > 0) || !std::isfinite(r_n)) continue;
    const double u_t = (W(1, 0) - s * mu * W(1, 1)) * r_n + q[1];
    if (!(s * u_t > 0)) continue;
    found.emplace_back(2);
    found.back() << r_n, -s * mu * r_n;
  }
}

void add_slip_3d(const Mat& W, const Vec& q, double mu, std::vector<Vec>& found) {
  // (S + k I) r_t = -c after eliminating r_n; Cramer's rule gives r_t = P/D and r_n = R/D with polynomials in k,
  // scaled by the trace of S so that k is of order one.
  const Vec W_tn = W.block(1, 0, 2, 1), W_nt = W.block(0, 1, 1, 2);
  const double W_nn = W(0, 0);
  const Mat S = W.block(1, 1, 2, 2) - W_tn * W_nt.transpose() / W_nn;
  const Vec c = q.tail(2) - W_tn * q[0] / W_nn;
  const double unit = std::max(std::abs(S(0, 0)), std::abs(S(1, 1)));
  if (!(unit > 0)) return;
  Mat adjugate(2, 2);
  adjugate << S(1, 1), -S(0, 1), -S(1, 0), S(0, 0);
  const Vec P0 = -adjugate * c / unit, P1 = -c;  // P = P0 + P1 k, in units of `unit`
  const double D0 = (S(0, 0) * S(1, 1) - S(0, 1) * S(1, 0)) / (unit * unit), D1 = S.trace() / unit;
  const double R0 = -(q[0] * unit * D0 + W_nt.dot(P0)) / W_nn, R1 = -(q[0] * unit * D1 + W_nt.dot(P1)) / W_nn,
               R2 = -q[0] * unit / W_nn;
  const double m = mu * mu;
  const Quartic p{m * R0 * R0 - P0.squaredNorm(), 2 * m * R0 * R1 - 2 * P0.dot(P1),
                  m * (R1 * R1 + 2 * R0 * R2) - P1.squaredNorm(), 2 * m * R1 * R2, m * R2 * R2};
  for (const double k : positive_roots(p)) {
    const double D = (D0 + k * (D1 + k)) * unit;
    const double r_n = (R0 + k * (R1 + k * R2)) / D;
    if (!(r_n > 0) || !std::isfinite(r_n)) continue;
    Vec r(3);
    r << r_n, (P0 + P1 * k) / D;
    r.tail(2) *= mu * r_n / r.tail(2).norm();
    found.push_back(r);
  }
}

}  // namespace

std::vector<Vec> local_contact_solutions(const Mat& W, const Vec& q, double mu) {
  std::vector<Vec> found;
  if (q[0] >= 0) found.push_back(Vec::Zero(q.size()));
  if (mu == 0) {
    if (const double r_n = -q[0] / W(0, 0); r_n > 0) found.push_back(r_n * Vec::Unit(q.size(), 0));
    return found;
  }
  Vec stick = -Lu(W).solve(q);
  const double tangential = stick.tail(q.size() - 1).norm(), limit = mu * stick[0];
  if (stick.allFinite() && stick[0] > 0 && tangential <= limit * (1 + 1e-13)) {  // the edge of the cone belongs to it
    if (tangential > limit) stick.tail(q.size() - 1) *= limit / tangential;
    found.push_back(stick);
  }
  if (q.size() == 2)
    add_slip_2d(W, q, mu, found);
  else
    add_slip_3d(W, q, mu, found);
  return found;
}

}  // namespace saltus
