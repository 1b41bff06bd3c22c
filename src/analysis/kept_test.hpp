// The curve of a special point in two parameters: F(z) = 0 with its test kept at zero as one equation more.
//
// The solutions of F alone are a surface. The test's slopes are needed along that surface only, where they are
// differences over two of its tangents: they decide how fast Newton's method converges, not what it converges to.
#pragma once

#include <functional>

#include "base/linear.hpp"

namespace saltus {

class KeptTest {
 public:
  using Equations = std::function<bool(const Vec& z, Vec& r, Mat& J)>;

  /// `equations` have two unknowns more than rows; `test` is not a number where there is none.
  KeptTest(Equations equations, std::function<double(const Vec& z)> test, std::function<Vec()> scale)
      : equations_(std::move(equations)), test_(std::move(test)), scale_(std::move(scale)) {}

  bool operator()(const Vec& z, Vec& r, Mat& J) const;

 private:
  Equations equations_;
  std::function<double(const Vec& z)> test_;
  std::function<Vec()> scale_;
};

/// A function of square matrices that vanishes where they are singular: g of [A b; c 0][v; g] = [0; 1], with b and c
/// near the null vectors of the first matrix it sees.
class Singularity {
 public:
  double operator()(const Mat& A);
  /// The null vectors at the last matrix, normalised by b and c: how far A v = 0 and w A = 0 hold is the value.
  const Vec& right() const { return right_; }
  const Vec& left() const { return left_; }

 private:
  Vec b_, c_, right_, left_;
};

}  // namespace saltus
