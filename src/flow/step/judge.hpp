// Disagreements at the end of a step with the mode it was made in.
#pragma once

#include <utility>
#include <vector>

#include "flow/jumps.hpp"
#include "flow/moment.hpp"
#include "flow/step/solve.hpp"

namespace saltus {

/// Where a run of this engine is: its moment, and the numbers a step starts from.
struct Here {
  Moment moment;
  Vec x, u, tests;                           ///< states, items, outputs of StepFormulas::tests
  std::vector<std::pair<int, double>> held;  ///< redundant forces that stand at a bound: (item, value)

  double t() const { return moment.t(); }
  const Mode& mode() const { return moment.mode; }
  bool holds(int item) const;
};

/// A guard that has become negative on the way; `value` is at the end of the step, `start` at its beginning.
struct Disagreement {
  Guard guard;
  double start = 0, value = 0;

  /// How much it changes over the step: what counts as zero is measured by that.
  double range() const { return std::max(start, 0.0) - value; }
  bool same(const Disagreement& other) const { return guard == other.guard; }
};

class Judge {
 public:
  Judge(const Program& program, const std::vector<double>& parameters, const Jumps& jumps);

  /// All disagreements at the end of a step from `here`. `must`: only those that are located whatever theta is.
  void look(const Here& here, const Step& step, bool must, std::vector<Disagreement>& found) const;
  /// Functions watched from here on that are positive: surfaces beside the state, open gaps, jumps.
  std::vector<Guard> watched(const Here& here) const;
  /// True if anything happens where it falls below zero: a jump may have the other direction.
  bool may_happen(const Guard& guard) const;
  /// True if time stands in its formula.
  bool sees_time(const Guard& guard) const;
  /// Jumps and the steps of floor are located under every theta: a counter moves by one step at a time. So are impacts
  /// whose impulses change their own direction: they are no part of a step's equations.
  bool must_locate(const Disagreement& d) const;
  /// The value of a disagreement at the end of another step from the same point.
  double value(const Disagreement& d, const Step& step) const;

  double hold(int i) const { return hold_[static_cast<size_t>(i)]; }
  bool is_step_of_floor(int i) const { return is_step_[static_cast<size_t>(i)] != 0; }
  const TestLayout& layout() const { return layout_; }

 private:
  void look_at_switches(const Here& here, const Step& step, std::vector<Disagreement>& found) const;
  void look_at_constraints(const Here& here, const Step& step, std::vector<Disagreement>& found) const;
  void look_at_jumps(const Here& here, const Step& step, std::vector<Disagreement>& found) const;

  const Program& program_;
  const Jumps& jumps_;
  TestLayout layout_;
  std::vector<double> hold_;   // per switch: up to which |sigma| its surface holds
  std::vector<char> is_step_;  // switches that are steps of floor
};

}  // namespace saltus
