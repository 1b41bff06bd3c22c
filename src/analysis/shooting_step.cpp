#include "analysis/shooting_step.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "base/reflection.hpp"

namespace saltus {
namespace {

constexpr double singular = 1e-6;     ///< reciprocal condition of a matrix that may be singular but for errors
constexpr double of_a_family = 1e-8;  ///< pivots that count as zero then
constexpr double small_row = 1e-3;    ///< in units of the states and times: rows below it keep their length
constexpr size_t few_legs = 24;       ///< up to which one matrix of all is no more work

/// Whether each leg has to do with the next one alone.
bool is_chain(const std::vector<Leg>& legs) {
  for (size_t i = 0; i < legs.size(); ++i) {
    if (legs[i].end == Leg::End::phase) return false;
    if (legs[i].share > 0 && i > 1 && legs[i - 2].end == Leg::End::part) return false;
  }
  return true;
}

}  // namespace

ShootingStep::ShootingStep(const Shooting& shooting, const std::vector<Leg>& legs, const Closing& closing,
                           const std::vector<LegSlopes>& slopes, const Vec& unknowns, const Vec& rows)
    : states_(shooting.size().size()) {
  if (legs.size() <= few_legs || !is_chain(legs)) {
    one_matrix(shooting.matrix_of(legs, closing, slopes), unknowns, rows);
  } else {
    width_ = states_ + (shooting.forced() ? 2 : 1);
    rows_ = block_rows(shooting, legs, closing, slopes, unknowns, rows);
    leg_by_leg();
  }
}

/// A row that vanishes but for errors stays nothing: a state that turns on its section, on an orbit of a family.
void ShootingStep::one_matrix(const Mat& J, const Vec& unknowns, const Vec& rows) {
  Mat scaled = J * unknowns.asDiagonal();
  row_size_ = scaled.row_norms().cwiseMax(small_row * rows).cwiseMax(1e-300);
  decompose(row_size_.cwiseInverse().asDiagonal() * scaled);
}

/// Where orbits come in families (a centre) no step is the only one: the shortest leads to the nearest of them.
void ShootingStep::decompose(const Mat& A) {
  lu_.factor(A);
  if (lu_.rcond() > singular) return;
  shortest_.emplace(A, of_a_family);
  family_ = shortest_->rank() < A.rows();
}

Vec ShootingStep::solve_decomposed(const Vec& r, bool shortest) const {
  return shortest ? shortest_->solve(r) : lu_.solve(r);
}

Vec ShootingStep::solve(const Vec& r) const {
  return rows_.empty() ? solve_decomposed(r.cwiseQuotient(row_size_), family_) : solve_legs(r, family_);
}

Vec ShootingStep::solve_regular(const Vec& r) const {
  return rows_.empty() ? solve_decomposed(r.cwiseQuotient(row_size_), false) : solve_legs(r, false);
}

std::vector<ShootingStep::Rows> ShootingStep::block_rows(const Shooting& shooting, const std::vector<Leg>& legs,
                                                         const Closing& closing, const std::vector<LegSlopes>& slopes,
                                                         const Vec& unknowns, const Vec& rows) const {
  const Index n = states_, m = width_;
  const bool forced = shooting.forced();
  std::vector<Rows> out(legs.size());
  for (size_t i = 0; i < legs.size(); ++i) {
    const bool last = i + 1 == legs.size();
    const Mat &z = slopes[i].z, &h = slopes[i].h;
    const Index leg = (n + 1) * ix(i), next = last ? 0 : leg + n + 1;
    const bool own_end = legs[i].share == 0;
    const bool shared = !last && legs[i + 1].share > 0;  // its length is a share of this one
    Rows& of = out[i];
    of.here = Mat::Zero(n + (own_end ? 1 : 0) + (shared ? 1 : 0) + (forced ? 1 : 0), m);
    of.next = Mat::Zero(of.here.rows(), m);
    of.residual.assign(ux(of.here.rows()), -1);
    Vec least = Vec::Zero(of.here.rows());
    for (Index k = 0; k < n; ++k) {
      of.residual[ux(k)] = leg + k;
      if (last && closing.free[ux(k)]) {
        of.next(k, k) = 1;
        continue;
      }
      of.next(k, k) = last ? closing.sign[k] : 1.0;
      for (Index j = 0; j <= n; ++j) of.here(k, j) = -z(k, j);
      if (forced) of.here(k, n + 1) = -z(k, n + 1);
    }
    Index row = n;
    if (own_end) {
      of.residual[ux(row)] = leg + n;
      for (Index j = 0; j <= n; ++j) of.here(row, j) = h(0, j);
      if (forced) of.here(row, n + 1) = h(0, n + 1);
      if (legs[i].end == Leg::End::part) of.next(row, n) = -1;
      ++row;
    }
    if (shared) {
      of.residual[ux(row)] = next + n;
      of.here(row, n) = -legs[i + 1].share;
      of.next(row, n) = 1;
      ++row;
    }
    if (forced) {  // s_{i+1} = s_i + T_i; the first leg starts when it starts
      of.next(row, n + 1) = 1;
      if (!last) of.here(row, n) = of.here(row, n + 1) = -1;
    }
    const auto unit = [&](Index begin, Index k) { return unknowns[begin + std::min(k, n)]; };
    of.size.resize(of.here.rows());
    for (Index r = 0; r < of.here.rows(); ++r) {
      for (Index k = 0; k < m; ++k) {
        of.here(r, k) *= unit(leg, k);
        of.next(r, k) *= unit(next, k);
      }
      const double known = of.residual[ux(r)] >= 0 ? small_row * rows[of.residual[ux(r)]] : 0.0;
      of.size[r] = std::max({std::hypot(of.here.row(r).norm(), of.next.row(r).norm()), known, 1e-300});
      of.here.row(r) /= of.size[r];
      of.next.row(r) /= of.size[r];
    }
  }
  return out;
}

void ShootingStep::leg_by_leg() {
  const Index m = width_;
  Mat first = rows_[0].here, now = rows_[0].next;  // entries of y_0 and y_i of the rows that are left
  for (size_t i = 1; i + 1 < rows_.size(); ++i) {
    const Rows& of = rows_[i];
    const Index above = now.rows(), all = above + of.here.rows();
    Eliminated& step = eliminated_.emplace_back();
    Mat& A = step.reflected;
    A = Mat::Zero(all, 3 * m);
    A.block(0, 0, above, m) = now;
    A.block(0, m, above, m) = first;
    A.block(above, 0, of.here.rows(), m) = of.here;
    A.block(above, 2 * m, of.here.rows(), m) = of.next;
    step.scales.resize(m);
    for (Index k = 0; k < m; ++k) {
      step.scales[k] = make_reflection(&A(k, k), all - k);
      for (Index j = k + 1; j < 3 * m; ++j) reflect(&A(k, k), step.scales[k], &A(k, j), all - k);
    }
    first = A.block(m, m, all - m, m);
    now = A.block(m, 2 * m, all - m, m);
  }
  const Rows& last = rows_.back();
  Mat rest = Mat::Zero(2 * m, 2 * m);
  rest.topLeftCorner(first.rows(), m) = first;
  rest.topRightCorner(first.rows(), m) = now;
  rest.bottomLeftCorner(last.next.rows(), m) = last.next;
  rest.bottomRightCorner(last.here.rows(), m) = last.here;
  decompose(rest);
}

Vec ShootingStep::solve_legs(const Vec& r, bool shortest) const {
  const Index m = width_, n = states_;
  const auto right_side = [&](const Rows& of, double* to) {
    for (size_t k = 0; k < of.residual.size(); ++k)
      to[k] = of.residual[k] >= 0 ? r[of.residual[k]] / of.size[ix(k)] : 0.0;
  };
  std::vector<double> now(rows_[0].residual.size());
  right_side(rows_[0], now.data());
  std::vector<Vec> above;  // per y_i, what its rows are equal to
  for (size_t i = 1; i + 1 < rows_.size(); ++i) {
    const Eliminated& step = eliminated_[i - 1];
    const Index all = step.reflected.rows();
    const size_t carried = now.size();
    now.resize(ux(all));
    right_side(rows_[i], now.data() + carried);
    for (Index k = 0; k < m; ++k) reflect(&step.reflected(k, k), step.scales[k], now.data() + k, all - k);
    above.push_back(column_at(now.data(), m));
    now.erase(now.begin(), now.begin() + m);
  }
  const size_t carried = now.size();
  now.resize(ux(2 * m));
  right_side(rows_.back(), now.data() + carried);
  const Vec ends = solve_decomposed(column_at(now.data(), 2 * m), shortest);
  const Vec first = ends.head(m);
  Vec y = ends.tail(m), out((n + 1) * ix(rows_.size()));
  out.head(n + 1) = first.head(n + 1);
  for (size_t i = rows_.size() - 1;; --i) {
    out.segment((n + 1) * ix(i), n + 1) = y.head(n + 1);
    if (i == 1) return out;
    const Mat& A = eliminated_[i - 2].reflected;
    Vec left = above[i - 2] - A.block(0, m, m, m) * first - A.block(0, 2 * m, m, m) * y;
    for (Index k = m - 1; k >= 0; --k) {
      left[k] /= A(k, k);
      left.head(k) -= left[k] * A.col(k).head(k);
    }
    y = left;
  }
}

}  // namespace saltus
