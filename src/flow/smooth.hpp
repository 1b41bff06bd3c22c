// One smooth step in one mode, without events: stepper, controller and dense output. Taylor series, or
// implicit steps where the flow is stiff.
//
//   begin     the series at a moment, in its mode
//   natural   how long a step they carry, what is watched included
//   cut       the piece up to tau
//   trusts    whether it solves the equations at its end (the defect), and inside where the series may be blind; what
//   is
//             watched has the values there that its series promise; also on the peaks of functions that are constant to
//             all digits elsewhere (exp(-(v/vs)^2), a pulse in time), which no series sees coming
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "flow/moment.hpp"
#include "flow/series.hpp"
#include "flow/simulate.hpp"
#include "flow/stiff.hpp"
#include "flow/taylor.hpp"
#include "flow/turning.hpp"

namespace saltus {

class Smooth {
 public:
  /// `series` has room for `most_order`, as `orders` has, which must outlive it.
  Smooth(Series& series, int most_order, const OrderTable& orders, const RunOptions& options);
  /// A further run.
  void begin_run(int most_order, const OrderTable& orders, const RunOptions& options);

  Series& series() { return series_; }
  const Series& series() const { return series_; }
  int order() const { return order_; }

  SeriesStatus begin(const Moment& now);
  /// 0 where the series end before their order: at the edge of a function's domain.
  double natural(std::span<const WatchedSeries> watched);
  /// `begin` and `natural` in the mode that the series stand in, for one whose series are a plain jet: 0 where that has
  /// none of that order. `give_up` undoes it.
  double begin_leg(const Moment& now, std::span<const WatchedSeries> watched);
  void give_up();
  /// The time in which the flow changes, after `natural`; 0 if that is not to be seen.
  double time_scale() const { return scale_; }
  /// The time scale at a moment from which no step has been made yet.
  /// States that are polynomials have the scale of their terms, which shrinks with the flights of a ball that comes to
  /// rest: `of_polynomials` instead, where that is not meant.
  double estimate_scale(const Moment& now, std::optional<double> of_polynomials = {});
  /// Sizes of states before they have been anything (flow/first_sizes), at `now`.
  std::vector<double> estimate_sizes(const Moment& now);
  /// How many coefficients of the states are finite: at the edge of a root's domain only the first ones are.
  int analytic_order() const;
  /// Where the field has no series (a square root at zero): how long its tangent can be followed. Each rate keeps to a
  /// small share of itself, or changes its state by less than the tolerance over what time can see. 0: not at all.
  double tangent_length(const Moment& now, double longest, double direction);

  /// True if the states alone would carry a step of this length, and watched functions have made the last one shorter:
  /// by their last terms, or by values that their series do not foretell (a pole, a cut, the end of a domain).
  bool carries_states(double length) const {
    return control_.state_step() >= length && (natural_ < length || broken_promise_);
  }
  /// The least time after which a singularity has been left.
  double least_step(double t) const;

  void cut(const Moment& now, double tau);
  /// Marks a piece without its coefficients, as long as the series are those of `now`; `copy_piece` gives them.
  void mark(const Moment& now, double tau);
  void copy_piece();
  /// `watched` are the series of `now`; afterwards those of another point.
  bool trusts(const Moment& now, double tau, std::span<const WatchedSeries> watched);
  /// True if the last terms of the series of a linear flow are all that is left undone on such a step.
  bool is_quiet(double tau) const {
    return series_.linear() && series_.turning() * std::abs(tau) <= orders_->quiet_turns[static_cast<size_t>(order_)];
  }
  /// `trusts` for such a step, of which no piece is needed.
  bool trusts_quietly(double tau) const { return control_.last_term_small(series_, tau, order_); }
  /// A first step where the field has no series (a square root at zero): along the tangent, too short to matter.
  void cut_rough(const Moment& now, double tau);
  Piece& piece() { return piece_; }
  /// State at the end of the piece.
  const std::vector<double>& end();
  /// The step has been made; `length` of `natural`. Lower orders where events cut the only step between them short,
  /// higher ones elsewhere: what lies between two events should be one step.
  void accept(double length, double natural, std::span<const WatchedSeries> watched);
  /// Notes a step that the defect has cut and no event: steps that are short for stability may be so by either.
  void note_cut(double length);
  /// The largest |x_i| of the run so far.
  double largest(size_t i) const { return control_.largest(i); }
  /// Steps shorter than the states' curves need.
  long idle_steps() const { return idle_steps_; }

  // ---- stiff --------------------------------------------------------------------------------------------------------

  /// True if the next step is to be implicit: always, or because the last steps were short for stability alone.
  bool stiff() const { return stiff_.has_value() && turning_.implicit(); }
  /// After an event.
  void restart();
  /// An implicit step has failed: Taylor series go on instead, for a while.
  void leave_stiff();
  /// The next steps are implicit, where they may be without being told. Whether they are.
  bool turn_now();
  /// True if steps turn implicit by themselves.
  bool may_turn_stiff() const { return turning_.may(); }
  StiffStatus stiff_step(const Moment& now, double longest);
  /// Samples functions along the piece as polynomials: `sample(i)` after it.
  StiffStatus sample(const Moment& now, std::span<const SampledFunction> functions);
  /// The zero near `root` of one of them less `offset`, by its true values.
  double polish(const Moment& now, const SampledFunction& function, double offset, double root) {
    return stiff_->polish(series_, now.counters, function, offset, piece_, root);
  }
  const double* sample(int index) const {
    return &sampled_[static_cast<size_t>(index) * (static_cast<size_t>(order_) + 1)];
  }

 private:
  /// Values that a watched series predicts at two points of a step, and the size of its terms there.
  struct Promise {
    const double* value = nullptr;  // where the value itself is found
    int output = 0;                 // of the tape
    double middle = 0, end = 0, size = 0;
  };
  double polynomial_scale() const;
  bool surfaces_are_clear(const Moment& now);
  void note_scale(double length);
  bool find_peaks(double tau);
  bool find_high_powers(double tau);
  template <class Measure>
  void add_peak(const Measure& argument, double where, double tau);
  /// A point of the piece.
  struct Point {
    double tau = 0;
    std::vector<double> x, slopes;

    void move(double to, size_t states);
  };
  void note_length(double length);
  void turn_stiff();
  std::span<const double> along(size_t i) const;
  void look_at(double tau, Point& point);
  void look_at(double middle, double end);
  bool solves(const Moment& now, const Point& point);
  bool kept(double Promise::*point);
  bool solves_at_peaks(const Moment& now);

  Series& series_;
  int most_order_ = 0, order_ = 0;
  const OrderTable* orders_ = nullptr;
  double horizon_ = 0, tolerance_ = 0, run_tolerance_ = 0, direction_ = 1;
  StepControl control_;
  std::optional<StiffFlow> stiff_;
  Piece piece_;
  bool copied_ = false;  // its coefficients are there; otherwise they are those of the series
  Point middle_, end_;   // tau of the latter is 0 where it is no end of the piece that is there
  std::vector<Promise> promises_;
  std::vector<double> peaks_;  // on the step, and beside each of them
  double scale_ = 0;
  double natural_ = 0;           // length of the last step that its series carry
  bool broken_promise_ = false;  // the last step was refused because of what is watched
  struct {
    double last, scale;
  } given_up_{};  // as they were before `begin_leg`
  long idle_steps_ = 0;
  long full_steps_ = 0;  // since the last event
  Turning turning_;
  std::vector<double> sampled_;
};

}  // namespace saltus
