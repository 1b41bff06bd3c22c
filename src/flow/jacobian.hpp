// The Jacobian of the rates in the mode of a Series, from the formulas: what slides or is closed moves with the state.
//
//   J = df/dx + df/du U     U = du/dx = -(dR/du)^-1 dR/dx
//
//   u: sigma of the slid surfaces and lambda of the closed constraints;  R: the residuals they are solved from
#pragma once

#include <memory>
#include <span>
#include <unordered_map>

#include "base/linear.hpp"
#include "flow/series.hpp"

namespace saltus {

class RateJacobian {
 public:
  /// J at the point at which the series was just evaluated or expanded: time t, wrap counters as given there. An entry
  /// without a finite value (the slope of sqrt(x) at 0) is left zero.
  const Mat& at(const Series& series, double t, std::span<const double> counters);

 private:
  std::unordered_map<const JacobianTape*, std::unique_ptr<Jet<double>>> jets_;
  Mat j_, size_;               // J, and the sum of |terms| in each entry
  Mat by_state_, by_unknown_;  // dR/dx and df/du, u by position in active()
};

}  // namespace saltus
