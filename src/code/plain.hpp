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

/// Values of the symbols that formulas may contain.
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
  /// Operations as they were last evaluated, arguments before users: `visit(node, values of its arguments)`.
  template <class Visit>
  void each(const Visit& visit) const {
    std::array<double, 3> a{};
    for (size_t k = 0; k < nodes_.size(); ++k) {
      for (size_t i = 0; i < nodes_[k].size(); ++i) a[i] = values_[arguments_[k][i]];
      if (nodes_[k].size() > 0) visit(nodes_[k], a.data());
    }
  }

 private:
  std::vector<Expr> nodes_;
  std::vector<std::array<size_t, 3>> arguments_;
  std::vector<double> values_;
};

}  // namespace saltus
