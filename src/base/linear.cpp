#include "base/linear.hpp"

#include <Eigen/LU>

namespace saltus {

Lu::Lu() : lu_(std::make_unique<Eigen::PartialPivLU<Mat>>()) {}
Lu::Lu(const Mat& A) : lu_(std::make_unique<Eigen::PartialPivLU<Mat>>(A)) {}
Lu::Lu(const Lu& other) : lu_(std::make_unique<Eigen::PartialPivLU<Mat>>(*other.lu_)) {}
Lu::Lu(Lu&& other) noexcept = default;
Lu& Lu::operator=(const Lu& other) {
  lu_ = std::make_unique<Eigen::PartialPivLU<Mat>>(*other.lu_);
  return *this;
}
Lu& Lu::operator=(Lu&& other) noexcept = default;
Lu::~Lu() = default;

void Lu::factor(const Mat& A) { lu_->compute(A); }
double Lu::rcond() const {
  // Eigen divides by the pivots: where one of them is zero, its estimate can be any number.
  if ((lu_->matrixLU().diagonal().array() == 0).any()) return 0;
  return lu_->rcond();
}
double Lu::determinant() const { return lu_->determinant(); }
Vec Lu::pivots() const { return lu_->matrixLU().diagonal(); }
Vec Lu::solve(const Vec& b) const { return lu_->solve(b); }

void Lu::solve_in_place(Vec& b) const {
  b = lu_->permutationP() * b;
  lu_->matrixLU().triangularView<Eigen::UnitLower>().solveInPlace(b);
  lu_->matrixLU().triangularView<Eigen::Upper>().solveInPlace(b);
}

Mat Lu::solve_columns(const Mat& B) const {
  if (B.size() == 0) return B;  // Eigen would take the address of its first entry
  return lu_->solve(B);
}
Mat Lu::inverse() const { return lu_->inverse(); }

namespace {

template <class Indices>
std::vector<int> listed(const Indices& indices) {
  return {indices.data(), indices.data() + indices.size()};
}

}  // namespace

FullLu::FullLu(const Mat& A, double threshold) : lu_(std::make_unique<Eigen::FullPivLU<Mat>>(A.rows(), A.cols())) {
  if (threshold > 0) lu_->setThreshold(threshold);
  lu_->compute(A);
}
FullLu::FullLu(FullLu&& other) noexcept = default;
FullLu& FullLu::operator=(FullLu&& other) noexcept = default;
FullLu::~FullLu() = default;

Eigen::Index FullLu::rank() const { return lu_->rank(); }
// P A Q = L U: row indices()[i] of P A is row i of A, column i of A Q is column indices()[i] of A.
std::vector<int> FullLu::rows() const { return listed(lu_->permutationP().inverse().eval().indices()); }
std::vector<int> FullLu::columns() const { return listed(lu_->permutationQ().indices()); }
Vec FullLu::solve(const Vec& b) const { return lu_->solve(b); }

}  // namespace saltus
