#include <Eigen/QR>

#include "base/linear.hpp"

namespace saltus {

using Decomposition = Eigen::CompleteOrthogonalDecomposition<Mat>;

Orthogonal::Orthogonal(const Mat& A, double threshold) : factors_(std::make_unique<Decomposition>(A.rows(), A.cols())) {
  if (threshold > 0) factors_->setThreshold(threshold);
  factors_->compute(A);
}
Orthogonal::Orthogonal(Orthogonal&& other) noexcept = default;
Orthogonal& Orthogonal::operator=(Orthogonal&& other) noexcept = default;
Orthogonal::~Orthogonal() = default;

Eigen::Index Orthogonal::rank() const { return factors_->rank(); }
Vec Orthogonal::solve(const Vec& b) const { return factors_->solve(b); }
Mat Orthogonal::pseudo_inverse() const { return factors_->pseudoInverse(); }

Mat null_space(const Mat& A, double threshold) {
  Decomposition factors(A.cols(), A.rows());
  if (threshold > 0) factors.setThreshold(threshold);
  factors.compute(A.transpose());
  return Mat(factors.householderQ()).rightCols(A.cols() - factors.rank());
}

Qr qr(const Mat& A) {
  const Eigen::HouseholderQR<Mat> factors(A);
  const Eigen::Index n = A.cols();
  return {.Q = factors.householderQ() * Mat::Identity(A.rows(), n),
          .R = factors.matrixQR().topRows(n).triangularView<Eigen::Upper>()};
}

}  // namespace saltus
