// The only Eigen aliases: dense and sparse vectors and matrices of doubles.
#pragma once

#include <Eigen/Core>
#include <Eigen/SparseCore>

namespace saltus {

using Vec = Eigen::VectorXd;
using Mat = Eigen::MatrixXd;
using SparseMat = Eigen::SparseMatrix<double>;

}  // namespace saltus
