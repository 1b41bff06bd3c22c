// Length and trust of one Taylor step.
//
// A step of order N ends where its last two terms have shrunk to the tolerance,
//     |x_{i,k}| h^k = tolerance * scale_i          k = N-1, N,
// each state on its own scale: the largest of |x_i|, |x_i'| h and |x_i''| h^2 with the last h and a millionth of |x_i|
// so far, so that a state passing through zero and a growing phase do no harm. Of states that vanish together
// (model/vanishing) it is a millionth of what they are now; one that vanishes alone never passes zero, and its scale is
// |x_i|, however small it has become. Afterwards the defect |p'(tau) - f(p(tau))| tau is compared with the tolerance: a
// series that looked constant (a saturated tanh) has then seen what it ran into.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "flow/series.hpp"

namespace saltus {

/// The order that makes steps cheapest where all cost is products of series: about -ln(tolerance)/2 + 1.
int taylor_order(double tolerance);
/// The cheapest order for a given tape, with the fixed costs of a step: never lower. A step of order N is as long as
/// tolerance^(1/N), and costs a + b N + c N^2.
int cheapest_order(double tolerance, const Tape& tape);

/// Constants of a step that depend on its order, by order.
struct OrderTable {
  std::vector<double> step_ratio;  ///< a step of the usual order against one of this order
  /// How far sines and cosines may turn on a step of a linear flow so that its last term is all it leaves undone: what
  /// they have beyond it is then smaller, and below what is allowed of a defect.
  std::vector<double> quiet_turns;
};
OrderTable order_table(double tolerance, int most);

/// A function whose zeros are looked for on the step: its series must be as good as the states'.
struct WatchedSeries {
  const double* c = nullptr;
  double scale = 0;  ///< least size its values are compared with
  int output = -1;   ///< of the tape, if it is a formula of the state: `Series::evaluate` gives its value as c[0]
};

/// The error allowed in one step so that what a run accumulates stays below the tolerance, as far as doubles go: a
/// fiftieth of it (docs/method/event_driven.md).
double local_tolerance(double tolerance);

class StepControl {
 public:
  /// `horizon`: length of the run; no step is longer.
  StepControl(const Program& program, double tolerance, double horizon);
  /// A further run.
  void begin_run(double tolerance, double horizon);

  /// Length of the step from the current series, infinite if the series ends before order-1.
  double step(const Series& series, int order, std::span<const WatchedSeries> watched);
  /// The step by the states alone: the time in which the flow changes, whatever is watched.
  double state_step() const { return state_step_; }
  /// The order, `least` or above, that would have been enough for a step of this length, after `step` with the same
  /// series.
  int enough(const Series& series, int order, std::span<const WatchedSeries> watched, double length, int least) const;
  /// True if the states hardly bend on a step of this length: stability, not accuracy, makes it short.
  /// `along(i)`: the series of state i.
  template <class Along>
  bool idle(const Series& series, const Along& along, double length) const {
    for (size_t i = 0; i < states_; ++i) {
      const double* c = along(i);
      const double bend = (std::abs(c[2]) + std::abs(c[3]) * length) * length * length;
      if (!(bend <= 1e-3 * scale_of_cut(series, i, c[0], c, length))) return false;
    }
    return true;
  }
  /// The largest |x_i| seen so far.
  double largest(size_t i) const { return largest_[i]; }
  /// True if polynomials with these slopes at tau solve the equations there; `series` holds the rates,
  /// and `start` the states where the step begins.
  bool defect_small(std::span<const double> start, std::span<const double> slopes, Series& series, double tau,
                    int order) const;
  /// True if the last term of a linear flow (Series::linear) is small: the last terms of its rates are its whole
  /// defect.
  bool last_term_small(const Series& series, double tau, int order) const;
  void see(std::span<const double> x);
  /// The memory that the next `step` takes from those before: to be put back where a step is not made after all.
  double last() const { return last_; }
  void set_last(double last) { last_ = last; }

 private:
  /// The length that the last terms allow with scales for a step of length `reach`.
  double try_reach(const Series& series, int order, std::span<const WatchedSeries> watched, double reach);
  double scale_of(const Series& series, size_t i, double size) const {
    if (alone_[i]) return std::abs(series.state(static_cast<int>(i))[0]);
    return size >= 1e-6 * largest_[i] ? size : scale_of_small(series, i, size);
  }
  double scale_of_small(const Series& series, size_t i, double size) const;
  /// On a step that may have been cut far below its reach (a series does not see the end of a root).
  double scale_of_cut(const Series& series, size_t i, double start, const double* c, double length) const;

  double tolerance_ = 0, horizon_ = 0;
  size_t states_;
  double state_step_ = 0;
  double last_ = 0;              // length of the last natural step
  double reach_ = 0;             // length of the step that the scales are for
  std::vector<char> alone_;      // per state: it vanishes alone
  std::vector<double> scale_;    // of each state in the current step, then of what is watched
  std::vector<double> largest_;  // |x_i| seen so far
};

}  // namespace saltus
