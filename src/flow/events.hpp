// Events as both engines see them: act on what was found, tell the recorder, follow what it causes at the same time,
// and complete sequences that accumulate by their limit.
#pragma once

#include <span>
#include <vector>

#include "flow/act.hpp"
#include "flow/chatter.hpp"
#include "flow/limit.hpp"
#include "flow/recorder.hpp"

namespace saltus {

class Events {
 public:
  Events(Series& series, Rounding& point, Chatter& chatter, Recorder& recorder, const RunOptions& options);
  /// A further run; `options` must outlive it.
  void begin_run(const RunOptions& options);

  Jumps& jumps() { return act_.jumps(); }
  const Jumps& jumps() const { return act_.jumps(); }
  /// The mode at the start, with what happens there at once. `first_scale` tells the time in which the flow changes,
  /// and is asked where something depends on it.
  void start(Moment& now, std::function<double()> first_scale);
  /// Makes the event where the guards are zero, and all that follows at the same time. Returns if anything has changed.
  /// `time_scale`: the time in which the flow changes; `resolution`: the resolution of time. `may_step`: where no mode
  /// is consistent nothing happens, and the caller makes a step without one; otherwise that ends the run.
  bool happen(Moment& now, std::span<const Guard> guards, double time_scale, double resolution, bool may_step = false);
  /// Makes the event of a guard that is alone at its instant; false, with nothing changed, where more must be examined
  /// than its rates.
  bool happen(Moment& now, LoneGuard& lone, double time_scale, double resolution);
  /// Makes the jump of a guard that is alone at its instant; requires `is_free` of the mode.
  bool jump_alone(Moment& now, const Guard& guard, double time_scale, double resolution);
  /// True if jumps may leave the mode of `now`, whose series are there, as it is.
  bool is_free(const Moment& now) { return act_.is_free(now) && series_.simple(); }
  /// Facts about a guard in the mode of `now`. `line`: its function is constant + constant*t.
  LoneGuard lone_guard(const Moment& now, const Guard& guard, bool line);
  /// True if a surface is zero but for what many steps leave, at x and t in the mode of `now`.
  bool is_near(const Moment& now, std::span<const double> x, double t, int surface) {
    return act_.is_near(now, x, t, surface);
  }
  /// The surfaces of the next event have changed their signs without being zero.
  void note_leap() { act_.leapt = true; }
  /// Puts the state on the surfaces of these guards.
  void land(Moment& now, std::span<const Guard> guards) { act_.land(now, guards); }
  /// True if ordinary legs may look after jumps: their conditions are functions of states and time alone.
  bool jumps_are_plain() const { return act_.jumps_are_plain(); }
  /// After a step without event, where all conditions of jumps are clearly on their sides; false: `crossed` says more.
  bool passes_no_jump(const Moment& now) { return act_.jumps().size() == 0 || act_.note_clear_signs(now); }
  /// After a step without event: jumps that have been crossed after all.
  std::vector<Guard> crossed(const Moment& now);

 private:
  void take(const RunOptions& options);
  Change* find_change(Moment& now, LoneGuard& lone, Change& change, char letter, size_t sides);
  bool step_in_time(Moment& now, LoneGuard& lone, double time_scale, double resolution);
  bool rebound(Moment& now, LoneGuard& lone, double time_scale, double resolution);
  void end_lone(Moment& now, int unknown, uint64_t key, double time_scale, double resolution);
  void follow(const Limit::Reached& reached, Moment& now, double resolution);
  void tell_messages();
  void mark(const Transition& event);
  void keep_known(Moment& now);
  void finish_chatter(Moment& now, double time_scale, double resolution);
  void pass_sections(const Moment& now, std::span<const Guard> guards, double resolution);
  void leap_sections(const Transition& event, const Moment& now, double resolution);
  void note_sections(const Moment& now, double resolution);
  int section_lead(int section, const Moment& now);
  bool turns_back(const Crossing& crossing, const Moment& now, std::span<const Guard> guards);

  Series& series_;
  const Program& program_;
  const RunOptions* options_ = nullptr;
  double direction_ = 1;
  Act act_;
  Limit limit_;
  Chatter& chatter_;
  Recorder& recorder_;
  std::vector<int> touched_;
  Mode before_step_;
  std::vector<double> before_;     // states before an impact
  std::vector<double> values_;     // of the functions of sections
  std::vector<char> touching_;     // per section: whether it touches zero at this event, whatever rounding says
  decltype(Moment::known) known_;  // before the event
  Transition event_, at_limit_;    // the last one; and where events accumulated: their memory is used again
};

}  // namespace saltus
