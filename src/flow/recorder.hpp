// The record of a run and its reports: pieces, transitions as events, section points, sliding, messages, limits, the
// end. Written once, told by both engines.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flow/act.hpp"
#include "flow/change.hpp"
#include "flow/moment.hpp"
#include "flow/shared_zero.hpp"
#include "flow/simulate.hpp"
#include "flow/trajectory.hpp"

namespace saltus {

/// A zero of the function of an `on` section along a piece.
struct Crossing {
  int section = 0;
  double tau = 0;
  int sign = 0;  ///< of the function just after, along the direction of the run
};

/// Events in memory that is used again.
class EventList {
 public:
  void clear() { count_ = 0; }
  Event& add();
  std::span<Event> events() { return {events_.data(), count_}; }

  Mode before, after;  ///< of the transition, as users see them

 private:
  std::vector<Event> events_;
  size_t count_ = 0;
};

/// The events a user sees of a transition: jumps, impacts, then the change of mode.
void list_events(const Transition& transition, const Model& model, EventList& out);
std::vector<Event> events_of(const Transition& transition, const Model& model);

class Recorder {
 public:
  /// `options` and `result`, whose memory is used, must outlive the run.
  Recorder(const Program& program, const RunOptions& options, Trajectory& result);
  /// A further run.
  void begin_run(const RunOptions& options, Trajectory& result);

  // ---- the run ------------------------------------------------------------------------------------------------------

  void start(const Moment& now, const Transition& first);
  /// A step has been made that ends here. Limits are looked after: steps, the pace, who asks to stop.
  void step(const Moment& now);
  /// Counts it alone: where the moment of the whole costs too much to have at every step.
  void count_step() { ++result_->cost.steps; }
  /// A transition has happened; it is counted, told and kept, and sections on its contacts and jumps are passed.
  void happened(const Transition& transition, const Moment& now);
  /// Records a change of switches that `describe` has filled, where no transition is wanted.
  void happened_alone(Change& change, const Moment& now);
  /// Describes the change of switches from this mode to that of `now`.
  void describe(const Mode& before, const Moment& now, Change& change) const;
  /// Describes the rebound of a contact, alone, from this state.
  void describe_hit(int contact, const Moment& now, Change& change) const;
  void hit_alone(Change& change, int contact, std::span<const double> before, const Moment& now);
  /// True if somebody reads all that happens at the next event, or it may be the last.
  bool wants_transition(double t) const {
    return reads_transitions_ || result_->cost.events + 1 >= options_->max_events ||
           (t == last_event_ && at_once_ >= most_events_at_once);
  }
  /// True if a transition is told to anybody or may be the last; otherwise it is enough to `count` it.
  bool tells(double t) const { return tells_events() || wants_transition(t); }
  void count(double t, long slides);
  void say(const std::string& message);
  void finish(Why why, std::string_view message, const Moment& now);
  /// Steps cannot go on for this reason; where the state has grown large meanwhile, that is the end.
  void stall(std::string cause, const Moment& now);
  bool end_where_singular(const Moment& now);
  /// Steps have become too short: at a singularity, or where they are what they were at the start and time is large.
  void stall(double length, double first_scale, const Moment& now);
  /// The equations of sliding on these unknowns have no solution any more; where their slope varies, because it has
  /// become zero: sliding stops being attractive.
  void end_sliding(std::span<const int> active, bool slope_varies, const Moment& now);
  void end_at_joints(std::span<const int> active, const Moment& now);
  /// One of the rates, if any, is not a finite number.
  void end_undefined(std::span<const double> rates, const Moment& now);
  /// A surface or gap has no value here: nobody could say on which side it is.
  void end_without_value(const Guard& guard, const Moment& now);
  /// These states come to zero here, where the rate of the first of them is 0/0 (u/hypot(u, v)).
  void end_where_rest_is_open(std::span<const int> states, const Moment& now);
  /// Ends the run if a state is too large to go on.
  bool has_grown(const Moment& now);
  bool ended() const { return ended_; }

  // ---- pieces -------------------------------------------------------------------------------------------------------

  /// True if pieces are of any use.
  bool wants_pieces() const { return options_->keep_pieces || options_->on_piece; }
  void keep(Piece& piece, const Moment& now, std::vector<std::pair<int, double>> held = {});
  /// Sliding went on for so long.
  void slid(const Mode& mode, double length);
  void slid(int i, double length);
  /// States were so far from what they slid on.
  void drifted(const Mode& mode, double error);
  void drifted(int i, double error);

  // ---- sections -----------------------------------------------------------------------------------------------------

  bool has_surface_sections() const { return has_surface_sections_; }
  /// The shortest interval between points of `every` sections; infinite without.
  double shortest_interval() const;
  int section_sign(size_t s) const { return section_sign_[s]; }
  void set_section_sign(size_t s, int sign) { section_sign_[s] = sign; }
  /// The surface or gap that the function of an `on` section is.
  const SharedZero& section_shared(size_t s) const { return section_shared_[s]; }
  /// Reports the points of sections on the piece that starts at `now`, in order, `crossings` among them. Where one of
  /// them ends the run, the piece is cut there and `now` moved. `happens`: at the end of the piece something does, and
  /// points of `every` sections at that time wait for it.
  void pass(Piece& piece, std::vector<Crossing>& crossings, Moment& now, double resolution, bool happens = false);
  /// True if an `every` section has a point within this time.
  bool is_due(const Moment& now, double length) const {
    for (const Every& e : every_) {
      if (!(direction_ * now.clock.until(e.due) > length)) return true;
    }
    return false;
  }
  /// Crossings at the end of a piece at which something happens wait for it: it may turn them back.
  void wait_for_event(std::vector<Crossing>& crossings, double tau, double resolution);
  bool has_waiting() const { return !waiting_.empty(); }
  /// Takes the crossings that have waited.
  std::vector<Crossing> take_waiting() { return std::exchange(waiting_, {}); }
  /// The function of an `on` section touches zero here and turns back: nothing is met.
  void touch(int section, const Moment& now);
  /// The points that have waited: what happens now has happened.
  void pass_due(const Moment& now, double resolution) {
    if (is_due(now, 4 * resolution)) pass_those_due(now, resolution);
  }
  /// The function of an `on` section is zero here and would have this sign; where that has been told, nothing happens.
  void pass_here(int section, int sign, const Moment& now, double resolution);
  /// The function of an `on` section has this strict sign after a jump at this time, with the state `x`: where it had
  /// the other one the section is met, unless the flow has met it at the same time.
  void leap(int section, int sign, const std::vector<double>& x, const Moment& now, double resolution);

  long events() const { return result_->cost.events; }
  long steps() const { return result_->cost.steps; }
  const std::vector<double>& start_state() const { return result_->start_state; }

 private:
  struct Every {
    int section = 0;
    double interval = 0;
    long next = 1;
    double due = 0;  // the time of that one
  };
  struct Point {
    int section = 0;
    double tau = 0;
    int sign = 0;
    int every = -1;
  };

  void keep(Event event);
  bool point(int section, double t, const std::vector<double>& x, const Mode& mode,
             const std::vector<double>& counters);
  bool counts(int section, double t, int sign, double resolution);
  bool has_told(int section, double t, double resolution) const;
  bool is_wanted(int section, int sign) const;
  void end_at(int s, const Moment& now);
  void look_at_pace(const Moment& now);
  void look_at_doubling(const Moment& now, double left);
  void tell(const Mode& mode, const std::vector<double>& counters, const std::vector<double>& guess);
  bool tells_events() const { return options_->keep_events || options_->on_event; }
  double time_of(const Every& e, long k) const;
  double take_due(Every& e);
  const Every* too_fast(double resolution) const;
  void end_too_fast(const Every& e, const Moment& now);
  void pass_those_due(const Moment& now, double resolution);

  const Program& program_;
  const Model& model_;
  const RunOptions* options_ = nullptr;
  double direction_ = 1;
  Trajectory* result_ = nullptr;
  bool ended_ = false, events_full_ = false, counted_out_ = false;
  bool reads_transitions_ = false;  // somebody does
  long slides_ = 0, section_points_ = 0;
  double last_event_ = 0;
  long at_once_ = 0;
  double paced_from_ = 0;                        // time at the last look at the pace
  double doubled_from_ = 0, doubling_gain_ = 0;  // the same when steps had doubled, and what the doubling before gained
  int slowing_ = 0;                              // doublings in a row that gained no more than the one before
  std::vector<Every> every_;
  std::vector<double> every_for_;  // parameters under which those intervals hold
  bool has_surface_sections_ = false, has_item_sections_ = false;
  std::vector<std::string> section_ends_;  // what is said of a run that ends there
  std::vector<SharedZero> section_shared_;
  std::vector<int> section_sign_;
  std::vector<double> section_seen_;
  EventList told_;                 // of the last transition or section
  Arc after_;                      // what is constant after it
  std::vector<double> x_;          // at one of them
  std::vector<Crossing> waiting_;  // at the end of the last piece
};

}  // namespace saltus
