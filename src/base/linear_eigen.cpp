#include <Eigen/Eigenvalues>

#include "base/linear.hpp"

namespace saltus {

ComplexVec eigenvalues(const Mat& A) { return Eigen::EigenSolver<Mat>(A, false).eigenvalues(); }

}  // namespace saltus
