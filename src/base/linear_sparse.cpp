#include <Eigen/SparseLU>

#include "base/linear.hpp"

namespace saltus {

struct SparseLu::Memory {
  Eigen::SparseLU<SparseMat> lu;
};

SparseLu::SparseLu() : memory_(std::make_unique<Memory>()) {}
SparseLu::SparseLu(SparseLu&& other) noexcept = default;
SparseLu& SparseLu::operator=(SparseLu&& other) noexcept = default;
SparseLu::~SparseLu() = default;

void SparseLu::analyse(const SparseMat& A) { memory_->lu.analyzePattern(A); }

bool SparseLu::factor(const SparseMat& A) {
  memory_->lu.factorize(A);
  return memory_->lu.info() == Eigen::Success;
}

Vec SparseLu::solve(const Vec& b) const { return memory_->lu.solve(b); }

}  // namespace saltus
