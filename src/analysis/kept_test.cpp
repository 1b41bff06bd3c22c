#include "analysis/kept_test.hpp"

#include <cmath>

namespace saltus {

bool KeptTest::operator()(const Vec& z, Vec& r, Mat& J) const {
  Vec base;
  Mat slopes;
  if (!equations_(z, base, slopes)) return false;
  const Vec scale = scale_();
  Mat scaled = slopes * scale.asDiagonal();
  for (Index i = 0; i < scaled.rows(); ++i) {
    const double length = scaled.row(i).norm();
    if (length > 0) scaled.row(i) /= length;
  }
  Mat along = null_space(scaled);
  if (along.cols() > 2) along = along.leftCols(2);
  const double value = test_(z);
  if (!std::isfinite(value)) return false;
  constexpr double step = 1e-6;
  Vec row = Vec::Zero(z.size());
  for (Index k = 0; k < along.cols(); ++k) {
    const Vec move = step * along.col(k).cwiseProduct(scale);
    const double up = test_(z + move), down = test_(z - move);
    if (!std::isfinite(up) || !std::isfinite(down)) return false;
    row += (up - down) / (2 * step) * along.col(k);
  }
  const double size = row.norm();
  if (!(size > 0)) return false;
  r.resize(base.size() + 1);
  r << base, value / size;
  J.resize(r.size(), z.size());
  J.topRows(slopes.rows()) = slopes;
  J.row(slopes.rows()) = (row / size).cwiseQuotient(scale).transpose();
  return r.allFinite() && J.allFinite();
}

double Singularity::operator()(const Mat& A) {
  const Index n = A.rows();
  if (b_.size() != n) {
    // Inverse iteration from both sides.
    const double size = A.norm() > 1e-200 ? A.norm() : 1.0;  // one equation at its fold is zero as a whole
    const Mat shifted = A + 1e-10 * size * Mat::Identity(n, n);
    const Lu lu(shifted), transposed(Mat(shifted.transpose()));
    c_ = b_ = Vec::LinSpaced(n, 1.0, 1.3);
    for (int k = 0; k < 4; ++k) {
      c_ = lu.solve(c_).normalized();
      b_ = transposed.solve(b_).normalized();
    }
  }
  Mat B = Mat::Zero(n + 1, n + 1);
  B.topLeftCorner(n, n) = A;
  B.topRightCorner(n, 1) = b_;
  B.bottomLeftCorner(1, n) = c_.transpose();
  Vec e = Vec::Zero(n + 1);
  e[n] = 1;
  const Vec right = Lu(B).solve(e);
  left_ = Lu(Mat(B.transpose())).solve(e).head(n);
  right_ = right.head(n);
  return right[n];
}

}  // namespace saltus
