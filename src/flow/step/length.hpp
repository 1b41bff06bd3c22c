// How long a step may be: as given, or so that its defect stays below the tolerance.
#pragma once

#include <cmath>
#include <vector>

#include "flow/simulate.hpp"
#include "flow/step/judge.hpp"

namespace saltus {

class StepLength {
  static constexpr double unjudged_share = 1.0 / 2000;  // of the run

 public:
  StepLength(const Program& program, const RunOptions& options, StepSolver& solver);

  bool adaptive() const { return adaptive_; }
  /// The length of the present step.
  double dt() const { return dt_; }
  /// Adaptive: a first guess from the size of states and rates. False: a rate is not a finite number.
  bool start(const Here& here);
  /// Adaptive: whether a state that shrinks and grows with others (model/vanishing) has been nothing yet.
  bool misses_sizes(const Here& here) const;
  /// The sizes of such states until they are larger.
  void take_sizes(const std::vector<double>& sizes);
  /// Adaptive: compares a step with its defect and sets the next. False: it must be shorter.
  bool allows(const Here& here, const Step& step);
  /// Adaptive: a step without a mode, which has no error to judge by, is at most so long.
  double longest_unjudged() const { return adaptive_ ? unjudged_share * (options_.until - options_.from) : HUGE_VAL; }
  /// Adaptive: one has been made.
  void crossed() {
    if (adaptive_) dt_ = std::max(dt_, std::min(2 * dt_, longest_unjudged()));
  }
  /// Adaptive: steps from t on are at most this long, until they grow again; but as long as time can tell.
  void shorten(double longest, double t) { dt_ = std::min(dt_, std::max(longest, shortest(t))); }
  /// Steps in a row that were as short as steps can be, and still not accurate.
  int forced() const { return forced_; }
  /// Adaptive: a step must not leap over switches of time alone, which no error of states tells: it ends just after the
  /// first of a few points at which one of them has turned.
  double until_timed(const Here& here, double h);

 private:
  /// The shortest step at t.
  double shortest(double t) const;
  void cubic_at(const Here& here, const Step& step, double s, Vec& p, Vec& rate);
  Vec defect(const Here& here, const Step& step, double s);
  double leave_to_forces(const StepSlopes& slopes, const Step& step, Vec& error) const;
  double ratio(const Here& here, const Step& step, double s);
  std::vector<double> find_peaks(const Here& here, const Step& step);
  bool sees_peaks(const Here& here, const Step& step, double shortest);

  const Program& program_;
  const RunOptions& options_;
  StepSolver& solver_;
  bool adaptive_, any_timed_ = false;
  double dt_;
  int forced_ = 0;
  Vec largest_;  // of each state so far
};

}  // namespace saltus
