#include "base/linear.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace saltus {
namespace {

/// a -= b * factor, for n entries.
void subtract(double* a, const double* b, double factor, Index n) {
  for (Index i = 0; i < n; ++i) a[i] -= b[i] * factor;
}

/// a -= sum of the columns of B (that lie `stride` apart) times factors: four at a time, so that a is loaded less
/// often.
void subtract_columns(double* a, const double* B, Index stride, const double* factors, Index columns, Index n) {
  Index k = 0;
  for (; k + 4 <= columns; k += 4) {
    const double *b0 = B + k * stride, *b1 = b0 + stride, *b2 = b1 + stride, *b3 = b2 + stride;
    const double f0 = factors[k], f1 = factors[k + 1], f2 = factors[k + 2], f3 = factors[k + 3];
    for (Index i = 0; i < n; ++i) a[i] = a[i] - b0[i] * f0 - b1[i] * f1 - b2[i] * f2 - b3[i] * f3;
  }
  for (; k < columns; ++k) subtract(a, B + k * stride, factors[k], n);
}

constexpr Index panel_width = 32;

}  // namespace

void Lu::factor(const Mat& A) {
  const Index n = A.rows();
  factors_ = A;
  order_.resize(static_cast<size_t>(n));
  std::iota(order_.begin(), order_.end(), Index{0});
  double* const a = factors_.data();
  norm_ = 0;
  for (Index j = 0; j < n; ++j) {
    double sum = 0;
    for (Index i = 0; i < n; ++i) sum += std::abs(a[j * n + i]);
    norm_ = std::max(norm_, sum);
  }
  for (Index begin = 0; begin < n; begin += panel_width) {
    const Index end = std::min(begin + panel_width, n);
    for (Index k = begin; k < end; ++k) {
      double* const column = a + k * n;
      Index pivot = k;
      for (Index i = k + 1; i < n; ++i) {
        if (std::abs(column[i]) > std::abs(column[pivot])) pivot = i;
      }
      if (pivot != k) {
        std::swap(order_[static_cast<size_t>(k)], order_[static_cast<size_t>(pivot)]);
        for (Index j = 0; j < n; ++j) std::swap(a[j * n + k], a[j * n + pivot]);
      }
      if (column[k] != 0) {
        for (Index i = k + 1; i < n; ++i) column[i] /= column[k];
      }
      for (Index j = k + 1; j < end; ++j) subtract(a + j * n + k + 1, column + k + 1, a[j * n + k], n - k - 1);
    }
    for (Index j = end; j < n; ++j) {
      double* const column = a + j * n;
      for (Index k = begin; k < end; ++k) subtract(column + k + 1, a + k * n + k + 1, column[k], end - k - 1);
      subtract_columns(column + end, a + begin * n + end, n, column + begin, end - begin, n - end);
    }
  }
}

double Lu::determinant() const {
  double out = 1;
  std::vector<Index> order = order_;
  for (size_t i = 0; i < order.size(); ++i) {
    out *= factors_(static_cast<Index>(i), static_cast<Index>(i));
    while (order[i] != static_cast<Index>(i)) {
      std::swap(order[i], order[static_cast<size_t>(order[i])]);
      out = -out;
    }
  }
  return out;
}

Vec Lu::solve(const Vec& b) const {
  const Index n = factors_.rows();
  const double* const a = factors_.data();
  Vec x(n);
  for (Index i = 0; i < n; ++i) x[i] = b[order_[static_cast<size_t>(i)]];
  for (Index k = 0; k < n; ++k) subtract(x.data() + k + 1, a + k * n + k + 1, x[k], n - k - 1);
  for (Index k = n - 1; k >= 0; --k) {
    x[k] /= a[k * n + k];
    subtract(x.data(), a + k * n, x[k], k);
  }
  return x;
}

void Lu::solve_in_place(Vec& b) const { b = solve(b); }

Vec Lu::solve_transposed(const Vec& b) const {
  const Index n = factors_.rows();
  Vec right = b, x(n);
  double* const y = right.data();
  const double* const a = factors_.data();
  const auto product = [](const double* column, const double* of, Index count) {
    double sum = 0;
    for (Index i = 0; i < count; ++i) sum += column[i] * of[i];
    return sum;
  };
  for (Index k = 0; k < n; ++k) y[k] = (y[k] - product(a + k * n, y, k)) / a[k * n + k];
  for (Index k = n - 1; k >= 0; --k) y[k] -= product(a + k * n + k + 1, y + k + 1, n - k - 1);
  for (Index i = 0; i < n; ++i) x[order_[static_cast<size_t>(i)]] = y[i];
  return x;
}

Mat Lu::solve_columns(const Mat& B) const {
  Mat X(B.rows(), B.cols());
  for (Index j = 0; j < B.cols(); ++j) X.col(j) = solve(B.col(j));
  return X;
}

Mat Lu::inverse() const { return solve_columns(Mat::Identity(factors_.rows(), factors_.rows())); }

/// The estimate of LAPACK's dlacon, a lower bound that is rarely too small by more than a factor 3 (Higham 1988).
double Lu::norm_of_inverse() const {
  const Index n = factors_.rows();
  Vec x = solve(Vec::Constant(n, 1.0 / static_cast<double>(n))), signs, last_signs;
  double bound = x.sum_abs();
  Index last = -1;
  for (int round = 0; round < 4; ++round) {
    signs.resize(n);
    for (Index i = 0; i < n; ++i) signs[i] = x[i] < 0 ? -1 : 1;
    if (round > 0 && signs == last_signs) break;
    last_signs = signs;
    Index largest = 0;
    solve_transposed(signs).cwiseAbs().maxCoeff(&largest);
    if (largest == last) break;
    last = largest;
    x = solve(Vec::Unit(n, largest));
    const double found = x.sum_abs();
    if (!(found > bound)) break;
    bound = found;
  }
  for (Index i = 0; i < n; ++i) {
    x[i] = (i % 2 == 0 ? 1 : -1) * (1 + static_cast<double>(i) / static_cast<double>(std::max<Index>(1, n - 1)));
  }
  return std::max(bound, 2 * solve(x).sum_abs() / (3 * static_cast<double>(n)));
}

double Lu::rcond() const {
  if (factors_.rows() == 0) return std::numeric_limits<double>::infinity();
  for (Index i = 0; i < factors_.rows(); ++i) {
    if (factors_(i, i) == 0) return 0;
  }
  return factors_.rows() == 1 ? 1 : 1 / norm_of_inverse() / norm_;
}

}  // namespace saltus
