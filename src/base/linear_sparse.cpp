#include <Eigen/SparseLU>

#include "base/linear.hpp"

namespace saltus {
namespace {

using Columns = Eigen::SparseMatrix<double>;

Eigen::Map<const Columns> columns_of(const SparseMat& A) {
  return {A.rows(), A.cols(), A.nonZeros(), A.starts().data(), A.places().data(), A.values().data()};
}

}  // namespace

struct SparseLu::Memory {
  Eigen::SparseLU<Columns> lu;
};

SparseLu::SparseLu() : memory_(std::make_unique<Memory>()) {}
SparseLu::SparseLu(SparseLu&& other) noexcept = default;
SparseLu& SparseLu::operator=(SparseLu&& other) noexcept = default;
SparseLu::~SparseLu() = default;

void SparseLu::analyse(const SparseMat& A) { memory_->lu.analyzePattern(Columns(columns_of(A))); }

bool SparseLu::factor(const SparseMat& A) {
  memory_->lu.factorize(Columns(columns_of(A)));
  return memory_->lu.info() == Eigen::Success;
}

Vec SparseLu::solve(const Vec& b) const {
  const Eigen::VectorXd x = memory_->lu.solve(Eigen::Map<const Eigen::VectorXd>(b.data(), b.size()));
  return Vec(column_at(x.data(), x.size()));
}

}  // namespace saltus
