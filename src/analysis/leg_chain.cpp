#include "analysis/leg_chain.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "base/reflection.hpp"

namespace saltus {
namespace {

constexpr size_t few_legs = 24;  ///< up to which one matrix of all is no more work

}  // namespace

bool LegChain::fits(const std::vector<Leg>& legs) {
  if (legs.size() <= few_legs) return false;
  for (size_t i = 0; i < legs.size(); ++i) {
    if (legs[i].end == Leg::End::phase && i + 1 < legs.size()) return false;
    if (legs[i].share > 0 && i > 1 && legs[i - 2].end == Leg::End::part) return false;
  }
  return true;
}

LegChain::LegChain(const Shooting& shooting, const std::vector<Leg>& legs, const Closing& closing,
                   const std::vector<LegSlopes>& slopes, const Vec& unknowns, const Vec& rows, const Vec& start_by)
    : n_(shooting.size().size()), m_(n_ + (shooting.forced() ? 2 : 1)), d_(slopes[0].z.cols() - n_ - 2) {
  make_rows(shooting, legs, closing, slopes, unknowns, rows, start_by);
  eliminate();
}

void LegChain::make_rows(const Shooting& shooting, const std::vector<Leg>& legs, const Closing& closing,
                         const std::vector<LegSlopes>& slopes, const Vec& unknowns, const Vec& rows,
                         const Vec& start_by) {
  const Index n = n_, m = m_, all = (n + 1) * ix(legs.size());
  const bool forced = shooting.forced();
  rows_.resize(legs.size());
  for (size_t i = 0; i < legs.size(); ++i) {
    const bool last = i + 1 == legs.size();
    const Mat &z = slopes[i].z, &h = slopes[i].h;
    const Index leg = (n + 1) * ix(i), next = last ? 0 : leg + n + 1;
    const bool own_end = legs[i].share == 0;
    const bool shared = !last && legs[i + 1].share > 0;  // its length is a share of this one
    Rows& of = rows_[i];
    of.here = Mat::Zero(n + (own_end ? 1 : 0) + (shared ? 1 : 0) + (forced ? 1 : 0), m);
    of.next = Mat::Zero(of.here.rows(), m);
    of.by = Mat::Zero(of.here.rows(), d_);
    of.residual.assign(ux(of.here.rows()), -1);
    for (Index k = 0; k < n; ++k) {
      of.residual[ux(k)] = leg + k;
      if (last && closing.free[ux(k)]) {
        of.next(k, k) = 1;
        continue;
      }
      of.next(k, k) = last ? closing.sign[k] : 1.0;
      for (Index j = 0; j <= n; ++j) of.here(k, j) = -z(k, j);
      if (forced) of.here(k, n + 1) = -z(k, n + 1);
      for (Index j = 0; j < d_; ++j) of.by(k, j) = -z(k, n + 2 + j);
    }
    Index row = n;
    if (own_end) {
      of.residual[ux(row)] = leg + n;
      if (legs[i].end == Leg::End::phase) {
        of.next.block(row, 0, 1, n) = shooting.phase_row(closing);
      } else {
        for (Index j = 0; j <= n; ++j) of.here(row, j) = h(0, j);
        if (forced) of.here(row, n + 1) = h(0, n + 1);
        for (Index j = 0; j < d_; ++j) of.by(row, j) = h(0, n + 2 + j);
      }
      if (legs[i].end == Leg::End::part) of.next(row, n) = -1;
      ++row;
    }
    if (shared) {
      of.residual[ux(row)] = next + n;
      of.here(row, n) = -legs[i + 1].share;
      of.next(row, n) = 1;
      for (Index j = 0; j < d_; ++j) of.by(row, j) = slopes[i + 1].h(0, n + 2 + j);
      ++row;
      if ((n + (forced ? 1 : 0)) % 2 != 0) sign_ = -sign_;  // it stands above rows that come before it
    }
    if (forced) {  // s_{i+1} = s_i + T_i; the first leg starts when it starts
      of.next(row, n + 1) = 1;
      if (!last) of.here(row, n) = of.here(row, n + 1) = -1;
      for (Index j = 0; last && j < std::min(d_, start_by.size()); ++j) of.by(row, j) = -start_by[j];
    }
    const auto unit = [&](Index begin, Index k) { return unknowns[begin + std::min(k, n)]; };
    of.size.resize(of.here.rows());
    for (Index r = 0; r < of.here.rows(); ++r) {
      for (Index k = 0; k < m; ++k) {
        of.here(r, k) *= unit(leg, k);
        of.next(r, k) *= unit(next, k);
      }
      for (Index k = 0; k < d_; ++k) of.by(r, k) *= unknowns[all + k];
      const double known = of.residual[ux(r)] >= 0 ? small_row * rows[of.residual[ux(r)]] : 0.0;
      const double length = std::hypot(std::hypot(of.here.row(r).norm(), of.next.row(r).norm()), of.by.row(r).norm());
      of.size[r] = std::max({length, known, 1e-300});
      of.here.row(r) /= of.size[r];
      of.next.row(r) /= of.size[r];
      of.by.row(r) /= of.size[r];
    }
  }
  // Without the s_i the determinant is the same but for that of their own equations; y_0 comes behind the eliminated.
  if (forced && legs.size() % 2 == 0) sign_ = -sign_;
  if (m % 2 != 0 && legs.size() % 2 != 0) sign_ = -sign_;
}

void LegChain::eliminate() {
  const Index m = m_, width = m + d_;
  first_ = Mat::Zero(rows_[0].here.rows(), width);
  first_.leftCols(m) = rows_[0].here;
  first_.rightCols(d_) = rows_[0].by;
  now_ = rows_[0].next;
  for (size_t i = 1; i + 1 < rows_.size(); ++i) {
    const Rows& of = rows_[i];
    const Index above = now_.rows(), below = of.here.rows(), all = above + below;
    Eliminated& step = eliminated_.emplace_back();
    Mat& A = step.reflected;
    A = Mat::Zero(all, m + width + m);
    A.block(0, 0, above, m) = now_;
    A.block(0, m, above, width) = first_;
    A.block(above, 0, below, m) = of.here;
    A.block(above, 2 * m, below, d_) = of.by;
    A.block(above, m + width, below, m) = of.next;
    step.scales.resize(m);
    for (Index k = 0; k < m; ++k) {
      step.scales[k] = make_reflection(&A(k, k), all - k);
      if ((step.scales[k] != 0) != (A(k, k) < 0)) sign_ = -sign_;
      for (Index j = k + 1; j < A.cols(); ++j) reflect(&A(k, k), step.scales[k], &A(k, j), all - k);
    }
    first_ = A.block(m, m, all - m, width);
    now_ = A.block(m, m + width, all - m, m);
  }
}

void LegChain::set_border(const Vec& border) {
  const Index n = n_, m = m_, width = m + d_;
  const auto entries = [&](size_t i) {
    Vec out = Vec::Zero(m);
    out.head(n + 1) = border.segment((n + 1) * ix(i), n + 1);
    return out;
  };
  border_first_ = Vec::Zero(width);
  border_first_.head(m) = entries(0);
  border_first_.tail(d_) = border.tail(d_);
  Vec here = entries(1);
  for (size_t i = 1; i + 1 < rows_.size(); ++i) {
    Eliminated& step = eliminated_[i - 1];
    const Mat& A = step.reflected;
    Vec& taken = step.border;
    taken = here;
    for (Index k = 0; k < m; ++k) {
      for (Index j = 0; j < k; ++j) taken[k] -= taken[j] * A(j, k);
      taken[k] /= A(k, k);
    }
    here = entries(i + 1);
    for (Index k = 0; k < m; ++k) {
      for (Index j = 0; j < width; ++j) border_first_[j] -= taken[k] * A(k, m + j);
      for (Index j = 0; j < m; ++j) here[j] -= taken[k] * A(k, m + width + j);
    }
  }
  border_last_ = here;
}

Mat LegChain::ends() const {
  const Index m = m_;
  const Rows& last = rows_.back();
  const Index left = first_.rows(), below = last.here.rows();
  Mat out = Mat::Zero(2 * m + d_, 2 * m + d_);
  out.block(0, 0, left, m) = first_.leftCols(m);
  out.block(0, m, left, m) = now_;
  out.block(0, 2 * m, left, d_) = first_.rightCols(d_);
  out.block(left, 0, below, m) = last.next;
  out.block(left, m, below, m) = last.here;
  out.block(left, 2 * m, below, d_) = last.by;
  if (d_ > 0) {
    for (Index k = 0; k < m; ++k) out(2 * m, k) = border_first_[k], out(2 * m, m + k) = border_last_[k];
    for (Index k = 0; k < d_; ++k) out(2 * m, 2 * m + k) = border_first_[m + k];
  }
  return out;
}

LegChain::RightSide LegChain::reduce(const Vec& r, double border) const {
  const Index m = m_;
  const auto right_side = [&](const Rows& of, double* to) {
    for (size_t k = 0; k < of.residual.size(); ++k)
      to[k] = of.residual[k] >= 0 ? r[of.residual[k]] / of.size[ix(k)] : 0.0;
  };
  RightSide out;
  std::vector<double> now(rows_[0].residual.size());
  right_side(rows_[0], now.data());
  for (size_t i = 1; i + 1 < rows_.size(); ++i) {
    const Eliminated& step = eliminated_[i - 1];
    const Index all = step.reflected.rows();
    const size_t carried = now.size();
    now.resize(ux(all));
    right_side(rows_[i], now.data() + carried);
    for (Index k = 0; k < m; ++k) reflect(&step.reflected(k, k), step.scales[k], now.data() + k, all - k);
    out.above.push_back(column_at(now.data(), m));
    if (d_ > 0) border -= step.border.dot(out.above.back());
    now.erase(now.begin(), now.begin() + m);
  }
  const size_t carried = now.size();
  now.resize(ux(2 * m));
  right_side(rows_.back(), now.data() + carried);
  if (d_ > 0) now.push_back(border);
  out.ends = column_of(now);
  return out;
}

Vec LegChain::expand(const RightSide& right, const Vec& ends) const {
  const Index m = m_, n = n_, width = m + d_;
  Vec first(width);
  first.head(m) = ends.head(m);
  first.tail(d_) = ends.tail(d_);
  Vec y = ends.segment(m, m), out((n + 1) * ix(rows_.size()) + d_);
  out.head(n + 1) = first.head(n + 1);
  out.tail(d_) = first.tail(d_);
  for (size_t i = rows_.size() - 1;; --i) {
    out.segment((n + 1) * ix(i), n + 1) = y.head(n + 1);
    if (i == 1) return out;
    const Mat& A = eliminated_[i - 2].reflected;
    Vec left = right.above[i - 2] - A.block(0, m, m, width) * first - A.block(0, m + width, m, m) * y;
    for (Index k = m - 1; k >= 0; --k) {
      left[k] /= A(k, k);
      left.head(k) -= left[k] * A.col(k).head(k);
    }
    y = left;
  }
}

}  // namespace saltus
