#include <algorithm>
#include <cmath>
#include <limits>

#include "base/index.hpp"
#include "base/linear.hpp"
#include "base/reflection.hpp"

namespace saltus {
namespace {

/// Rows and columns multiplied by powers of two and divided by them, so that row i is about as long as column i: the
/// eigenvalues stay bitwise, and states in different units no longer spoil each other's (Osborne 1960; Parlett and Reinsch
/// 1969; in the 2-norm with the diagonal, so that small rows are not blown up, James, Langou and Lowery 2014).
void balance(Mat& A) {
  constexpr double worth = 0.95;  // a step that shortens row and column by less is not taken
  for (bool again = true; again;) {
    again = false;
    for (Index i = 0; i < A.rows(); ++i) {
      const double column = A.col(i).norm(), row = A.row(i).norm();
      if (column == 0 || row == 0 || !std::isfinite(column * row)) continue;
      const double by = std::exp2(std::round(std::log2(row / column) / 2));
      if (std::hypot(column * by, row / by) >= worth * std::hypot(column, row)) continue;
      A.col(i) *= by, A.row(i) *= 1 / by;
      again = true;
    }
  }
}

/// Zeros below the first subdiagonal, the eigenvalues kept.
void reduce_to_hessenberg(Mat& A) {
  const Index n = A.rows();
  Vec row(n);
  for (Index k = 0; k + 2 < n; ++k) {
    const Index rest = n - k - 1;
    double* const v = &A(k + 1, k);
    const double scale = make_reflection(v, rest);
    for (Index j = k + 1; j < n; ++j) reflect(v, scale, &A(k + 1, j), rest);
    for (Index i = 0; i < n; ++i) {
      row.head(rest) = A.row(i).tail(rest).transpose();
      reflect(v, scale, row.data(), rest);
      A.row(i).tail(rest) = row.head(rest).transpose();
    }
    std::fill(v + 1, v + rest, 0.0);
  }
}

/// The double-shifted QR iteration of Francis, as in EISPACK's hqr: eigenvalues split off at the lower end.
class FrancisIteration {
 public:
  explicit FrancisIteration(Mat& H) : H_(H), values_(ux(H.rows())) {}

  /// False if it does not converge.
  bool run() {
    double norm = 0;
    for (Index j = 0; j < H_.cols(); ++j) {
      for (Index i = 0; i <= std::min(j + 1, H_.rows() - 1); ++i) norm += std::abs(H_(i, j));
    }
    least_ = std::max(norm * epsilon * epsilon, std::numeric_limits<double>::min());
    Index end = H_.rows() - 1;
    long steps = 40 * H_.rows();
    for (int round = 0; end >= 0;) {
      const Index begin = begin_of_block(end);
      if (begin == end) {
        values_[ux(end)] = H_(end, end) + shifted_;
      } else if (begin == end - 1) {
        split_two(begin);
      } else {
        if (steps-- == 0) return false;
        step(begin, end, round++);
        continue;
      }
      end = begin - 1;
      round = 0;
    }
    return true;
  }

  const ComplexVec& values() const { return values_; }

 private:
  static constexpr double epsilon = std::numeric_limits<double>::epsilon();

  Index begin_of_block(Index end) const {
    Index k = end;
    for (; k > 0; --k) {
      const double beside = std::abs(H_(k - 1, k - 1)) + std::abs(H_(k, k));
      if (std::abs(H_(k, k - 1)) <= std::max(epsilon * beside, least_)) break;
    }
    return k;
  }

  /// The eigenvalues of two rows: the one of larger magnitude first computed, without cancellation.
  void split_two(Index k) {
    const double a = H_(k, k) + shifted_, b = H_(k, k + 1), c = H_(k + 1, k), d = H_(k + 1, k + 1) + shifted_;
    const double half = (a - d) / 2, square = half * half + b * c, root = std::sqrt(std::abs(square));
    if (square >= 0) {
      const double z = half + (half >= 0 ? root : -root);  // d + z and d - bc/z
      values_[ux(k)] = d + z;
      values_[ux(k) + 1] = z != 0 ? d - b * c / z : d;
    } else {
      values_[ux(k)] = {d + half, root};
      values_[ux(k) + 1] = {d + half, -root};
    }
  }

  void step(Index begin, Index end, int round) {
    double x = H_(end, end), y = H_(end - 1, end - 1), w = H_(end, end - 1) * H_(end - 1, end);
    if (round > 0 && round % 10 == 0) {  // it goes round in circles: an exceptional shift
      shifted_ += x;
      for (Index i = 0; i <= end; ++i) H_(i, i) -= x;
      const double s = std::abs(H_(end, end - 1)) + std::abs(H_(end - 1, end - 2));
      x = y = 0.75 * s;
      w = -0.4375 * s * s;
    }
    // Two subdiagonal entries in a row that are small together: the step may begin behind them.
    double v[3];
    Index from = end - 2;
    for (;; --from) {
      const double z = H_(from, from), r = x - z, s = y - z;
      v[0] = (r * s - w) / H_(from + 1, from) + H_(from, from + 1);
      v[1] = H_(from + 1, from + 1) - z - r - s;
      v[2] = H_(from + 2, from + 1);
      const double size = std::abs(v[0]) + std::abs(v[1]) + std::abs(v[2]);
      for (double& e : v) e /= size;
      if (from == begin) break;
      const double left = std::abs(H_(from, from - 1)) * (std::abs(v[1]) + std::abs(v[2]));
      const double right =
          std::abs(v[0]) * (std::abs(H_(from - 1, from - 1)) + std::abs(z) + std::abs(H_(from + 1, from + 1)));
      if (left <= epsilon * right) break;
    }
    for (Index i = from + 2; i <= end; ++i) {
      H_(i, i - 2) = 0;
      if (i > from + 2) H_(i, i - 3) = 0;
    }
    for (Index k = from; k < end; ++k) {
      const Index height = std::min<Index>(3, end - k + 1);
      if (k > from) {
        for (Index i = 0; i < height; ++i) v[i] = H_(k + i, k - 1);
      }
      const double scale = make_reflection(v, height);
      if (k > from) {
        H_(k, k - 1) = v[0];
        for (Index i = 1; i < height; ++i) H_(k + i, k - 1) = 0;
      } else if (from > begin) {
        H_(k, k - 1) *= 1 - scale;
      }
      for (Index j = k; j <= end; ++j) reflect(v, scale, &H_(k, j), height);
      for (Index i = begin; i <= std::min(end, k + 3); ++i) {
        double row[3];
        for (Index j = 0; j < height; ++j) row[j] = H_(i, k + j);
        reflect(v, scale, row, height);
        for (Index j = 0; j < height; ++j) H_(i, k + j) = row[j];
      }
    }
  }

  Mat& H_;
  ComplexVec values_;
  double least_ = 0;    // what counts as zero
  double shifted_ = 0;  // exceptional shifts, in all
};

}  // namespace

ComplexVec eigenvalues(const Mat& A) {
  const double size = A.size() == 0 ? 0 : A.max_abs();
  const size_t count = ux(A.rows());
  if (size == 0) return ComplexVec(count);
  Mat H = A / size;
  balance(H);
  reduce_to_hessenberg(H);
  FrancisIteration iteration(H);
  if (!H.allFinite() || !iteration.run()) return ComplexVec(count, std::numeric_limits<double>::quiet_NaN());
  ComplexVec out = iteration.values();
  for (std::complex<double>& value : out) value *= size;
  return out;
}

}  // namespace saltus
