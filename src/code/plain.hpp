// Formulas evaluated at points only, nonsmooth functions and comparisons included: what a jump sets, whether it
// happens.
//
// Truth is 1 and 0; sign(0) = 0. No series, no derivatives, no switches.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "expr/expr.hpp"

namespace saltus {

/// What formulas may contain besides numbers.
struct PlainInputs {
  std::span<const double> parameters, states, lambdas{};
  double t = 0;
};

/// One formula as a flat list of operations.
class Plain {
 public:
  /// Names must have been replaced by what they stand for.
  explicit Plain(const Expr& formula);
  double operator()(const PlainInputs& inputs);

 private:
  std::vector<Expr> nodes_;
  std::vector<std::array<size_t, 3>> arguments_;
  std::vector<double> values_;
};

}  // namespace saltus
