#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/linear.hpp"
#include "base/reflection.hpp"

namespace saltus {
double make_reflection(double* x, Index n) {
  const double rest = column_at(x + 1, n - 1).squaredNorm();
  if (rest <= std::numeric_limits<double>::min()) {
    std::fill(x + 1, x + n, 0.0);
    return 0;
  }
  const double head = x[0], beta = head >= 0 ? -std::sqrt(head * head + rest) : std::sqrt(head * head + rest);
  for (Index i = 1; i < n; ++i) x[i] /= head - beta;
  x[0] = beta;
  return (beta - head) / beta;
}

void reflect(const double* x, double scale, double* y, Index n) {
  if (scale == 0) return;
  const double along = y[0] + column_at(x + 1, n - 1).dot(column_at(y + 1, n - 1));
  y[0] -= scale * along;
  for (Index i = 1; i < n; ++i) y[i] -= scale * along * x[i];
}

Vec triangularise(Mat& A) {
  const Index n = A.rows(), size = std::min(n, A.cols());
  Vec scales(size);
  for (Index k = 0; k < size; ++k) {
    scales[k] = make_reflection(&A(k, k), n - k);
    for (Index j = k + 1; j < A.cols(); ++j) reflect(&A(k, k), scales[k], &A(k, j), n - k);
  }
  return scales;
}

namespace {

/// A with columns exchanged, so that pivots fall: a triangle above reflections.
struct Pivoted {
  Mat A;
  Vec scales;
  std::vector<Index> order;
  Index reflections;  ///< those behind have columns that are zero but for rounding
  Index rank;
  double size;  ///< a power of two by which A has been divided: squares of its entries are then within range
};

/// The power of two next to the largest entry, 1 for a matrix of zeros or of what is no number.
double binary_size(const Mat& A) {
  const double largest = A.size() == 0 ? 0 : A.max_abs();
  return largest > 0 && std::isfinite(largest) ? std::exp2(std::max(-1022, std::ilogb(largest))) : 1;
}

/// The norm of the rest of a column follows from the last one, until too little of it is left (LAPACK working note
/// 176).
struct ColumnNorm {
  double now, exact;

  void shorten(double by, const double* rest, Index n) {
    if (now == 0) return;
    const double part = std::max(0.0, (1 + std::abs(by) / now) * (1 - std::abs(by) / now));
    if (part * (now / exact) * (now / exact) <= std::sqrt(std::numeric_limits<double>::epsilon()))
      now = exact = column_at(rest, n).norm();
    else
      now *= std::sqrt(part);
  }
};

Pivoted pivoted(const Mat& A, double threshold) {
  constexpr double epsilon = std::numeric_limits<double>::epsilon();
  const Index n = A.rows(), size = std::min(n, A.cols());
  const double unit = binary_size(A);
  Pivoted out{.A = A / unit, .scales = Vec(size), .order = {}, .reflections = size, .rank = 0, .size = unit};
  out.order.resize(static_cast<size_t>(out.A.cols()));
  std::iota(out.order.begin(), out.order.end(), Index{0});
  std::vector<ColumnNorm> norms;
  double largest = 0;
  for (Index j = 0; j < out.A.cols(); ++j) {
    const double norm = out.A.col(j).norm();
    norms.push_back({norm, norm});
    largest = std::max(largest, norm);
  }
  double pivot = 0;
  for (Index k = 0; k < size; ++k) {
    const auto best = std::max_element(norms.begin() + k, norms.end(),
                                       [](const ColumnNorm& a, const ColumnNorm& b) { return a.now < b.now; });
    const double zero = largest * epsilon / static_cast<double>(n);
    if (out.reflections == size && best->now * best->now < zero * zero * static_cast<double>(n - k))
      out.reflections = k;
    if (const Index j = best - norms.begin(); j != k) {
      out.A.col(k).swap(out.A.col(j));
      std::swap(norms[static_cast<size_t>(k)], *best);
      std::swap(out.order[static_cast<size_t>(k)], out.order[static_cast<size_t>(j)]);
    }
    double* const v = &out.A(k, k);
    out.scales[k] = make_reflection(v, n - k);
    pivot = std::max(pivot, std::abs(*v));
    for (Index j = k + 1; j < out.A.cols(); ++j) {
      double* const column = &out.A(k, j);
      reflect(v, out.scales[k], column, n - k);
      norms[static_cast<size_t>(j)].shorten(*column, column + 1, n - k - 1);
    }
  }
  const double least = pivot * (threshold > 0 ? threshold : epsilon * static_cast<double>(size));
  for (Index k = 0; k < out.reflections; ++k) out.rank += std::abs(out.A(k, k)) > least;
  return out;
}

}  // namespace

Orthogonal::Orthogonal(const Mat& A, double threshold) {
  Pivoted found = pivoted(A, threshold);
  rank_ = found.rank, size_ = found.size;
  left_ = std::move(found.A), left_scales_ = std::move(found.scales), order_ = std::move(found.order);
  if (rank_ == left_.cols()) return;
  right_ = Mat::Zero(left_.cols(), rank_);
  for (Index i = 0; i < rank_; ++i) {
    for (Index j = i; j < left_.cols(); ++j) right_(j, i) = left_(i, j);
  }
  right_scales_ = triangularise(right_);
}

Vec Orthogonal::solve(const Vec& b) const {
  const Index n = left_.rows(), columns = left_.cols();
  Vec c = b / size_, y = Vec::Zero(columns), x(columns);
  for (Index k = 0; k < rank_; ++k) reflect(&left_(k, k), left_scales_[k], &c[k], n - k);
  if (rank_ == columns) {
    for (Index k = columns - 1; k >= 0; --k) {
      y[k] = c[k] / left_(k, k);
      c.head(k) -= y[k] * left_.col(k).head(k);
    }
  } else {
    for (Index k = 0; k < rank_; ++k) y[k] = (c[k] - right_.col(k).head(k).dot(y.head(k))) / right_(k, k);
    for (Index k = rank_ - 1; k >= 0; --k) reflect(&right_(k, k), right_scales_[k], &y[k], columns - k);
  }
  for (Index j = 0; j < columns; ++j) x[order_[static_cast<size_t>(j)]] = y[j];
  return x;
}

Mat Orthogonal::pseudo_inverse() const {
  Mat out(left_.cols(), left_.rows());
  for (Index j = 0; j < left_.rows(); ++j) out.col(j) = solve(Vec::Unit(left_.rows(), j));
  return out;
}

Mat null_space(const Mat& A, double threshold) {
  const Index n = A.cols();
  const Pivoted rows = pivoted(A.transpose(), threshold);
  Mat out = Mat::Zero(n, n - rows.rank);
  for (Index j = 0; j < out.cols(); ++j) {
    out(rows.rank + j, j) = 1;
    for (Index k = rows.reflections - 1; k >= 0; --k) reflect(&rows.A(k, k), rows.scales[k], &out(k, j), n - k);
  }
  return out;
}

Qr qr(const Mat& A) {
  const Index n = A.rows(), columns = A.cols();
  const double size = binary_size(A);
  Mat factors = A / size;
  const Vec scales = triangularise(factors);
  Qr out{.Q = Mat::Identity(n, columns), .R = Mat::Zero(columns, columns)};
  for (Index j = 0; j < columns; ++j) {
    for (Index i = 0; i <= j; ++i) out.R(i, j) = factors(i, j) * size;
    for (Index k = scales.size() - 1; k >= 0; --k) reflect(&factors(k, k), scales[k], &out.Q(k, j), n - k);
  }
  return out;
}

}  // namespace saltus
