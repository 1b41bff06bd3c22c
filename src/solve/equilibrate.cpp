#include "solve/equilibrate.hpp"

#include <algorithm>
#include <cmath>

namespace saltus {
namespace {

constexpr int sweeps = 30;  // each takes the square root of what is left: 1e300 is within 2 after ten

/// Half of the exponent of a row's or column's largest entry; 0 within a factor 4 of 1, and for zeros.
int half_exponent(double largest) { return largest > 0 ? std::ilogb(largest) / 2 : 0; }

}  // namespace

double power_of_two(double x) { return x == 0 ? 1 : std::ldexp(1.0, std::ilogb(x)); }

Mat Equilibration::of(const Mat& M) const {
  Mat scaled = M;
  for (Index j = 0; j < M.cols(); ++j)
    for (Index i = 0; i < M.rows(); ++i) scaled(i, j) = row[i] * M(i, j) * column[j];
  return scaled;
}

Equilibration equilibrate(const Mat& M) {
  Equilibration e{Vec::Ones(M.rows()), Vec::Ones(M.cols())};
  Mat scaled = M;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    Vec row = Vec::Zero(M.rows()), column = Vec::Zero(M.cols());
    for (Index j = 0; j < M.cols(); ++j) {
      for (Index i = 0; i < M.rows(); ++i) {
        const double size = std::abs(scaled(i, j));
        row[i] = std::max(row[i], size), column[j] = std::max(column[j], size);
      }
    }
    bool even = true;
    const auto take_root = [&](Vec& factor, const Vec& largest) {
      for (Index i = 0; i < factor.size(); ++i) {
        const int half = half_exponent(largest[i]);
        if (half == 0) continue;
        even = false;
        factor[i] = std::ldexp(factor[i], -half);
      }
    };
    take_root(e.row, row);
    take_root(e.column, column);
    if (even) break;
    scaled = e.of(M);
  }
  return e;
}

}  // namespace saltus
