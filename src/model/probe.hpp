// Facts about formulas, probed at random points: enough to tell "is zero" from "looks zero".
#pragma once

#include <functional>
#include <vector>

#include "expr/expr.hpp"
#include "model/model.hpp"

namespace saltus {

/// Size of the numbers that were added to give a formula's value: its rounding error is a few eps of this.
double magnitude(const Expr& e, const std::function<double(const Symbol&)>& lookup);

/// Random states and times under the model's own parameters.
class Probe {
 public:
  explicit Probe(const Model& model);

  /// The value of a formula at one random point.
  double operator()(const Expr& e, unsigned point) const;
  /// Zero up to rounding, wherever it has a value.
  bool is_zero(const Expr& e) const;

  static constexpr unsigned points = 3;

 private:
  double value(const Symbol& s, unsigned point) const;

  std::vector<double> parameters_;
};

}  // namespace saltus
