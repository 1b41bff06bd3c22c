// Facts about formulas, probed at random points: enough to tell "is zero" from "looks zero".
#pragma once

#include <functional>
#include <vector>

#include "expr/expr.hpp"
#include "model/model.hpp"

namespace saltus {

/// Size of the numbers that were added to give a formula's value: its rounding error is a few eps of this.
double magnitude(const Expr& e, const std::function<double(const Symbol&)>& lookup);

/// Far from where it changes exp is zero, and tanh one, to all digits. The factor that brings the arguments of all of
/// them in a formula near enough to see them: exp(c*a), tanh(c*a), ... fulfil the identities that exp(a), tanh(a), ...
/// do, as products of exponentials remain exponentials of sums.
double exponent_scale(const Expr& e, const std::function<double(const Symbol&)>& lookup);
/// Applies the operation of a node with such a factor.
double apply_scaled(const Expr& node, const double* a, double scale);

/// Random states and times under the model's own parameters.
class Probe {
 public:
  explicit Probe(const Model& model);

  /// The value of a formula at one random point.
  double operator()(const Expr& e, unsigned point) const;
  /// Zero up to rounding, wherever it has a value.
  bool is_zero(const Expr& e) const;

  /// exponent_scale there.
  double scale(const Expr& e, unsigned point) const;

  static constexpr unsigned points = 3;

 private:
  double value(const Symbol& s, unsigned point) const;

  std::vector<double> parameters_;
};

}  // namespace saltus
