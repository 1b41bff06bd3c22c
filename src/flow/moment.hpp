// Where a run is: time, state, counters, mode.
#pragma once

#include <limits>
#include <vector>

#include "flow/trajectory.hpp"

namespace saltus {

/// Compensated sum: time does not lose the small steps.
class Clock {
 public:
  explicit Clock(double t) : high_(t) {}
  void advance(double step) {
    const double sum = high_ + step;
    const double part = sum - high_;
    low_ += (high_ - (sum - part)) + (step - part);
    high_ = sum;
  }
  void set(double t) {
    high_ = t;
    low_ = 0;
  }
  double now() const { return high_ + low_; }
  /// The step from now to a given time.
  double until(double t) const { return (t - high_) - low_; }
  double until(const Clock& other) const { return (other.high_ - high_) + (other.low_ - low_); }

 private:
  double high_, low_ = 0;
};

struct Moment {
  Clock clock{0};
  std::vector<double> x;
  std::vector<double> counters;  ///< whole numbers of the model's mod and floor, pieces of its tables
  Mode mode;                     ///< all switches, hidden ones included
  std::vector<int> known;        ///< per unknown: leading coefficients of what is watched that are known to be zero
  std::vector<double> guess{};   ///< of all unknowns, where the mode is not affine in them
  /// How fast the only surface or gap at zero was reached, where a step tells so clearly; otherwise not a number.
  double arrival = std::numeric_limits<double>::quiet_NaN();

  double t() const { return clock.now(); }
};

}  // namespace saltus
