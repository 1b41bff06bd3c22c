// Where events that accumulate end: recognised by their sequence, completed by its limit.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "flow/act.hpp"
#include "flow/chatter.hpp"

namespace saltus {

class Limit {
 public:
  Limit(Series& series, Act& act);
  Limit(const Limit&) = delete;
  /// A further run; `options` must outlive it.
  void begin_run(const RunOptions& options);

  struct Reached {
    bool event = false;          ///< it is there, and the event says how
    std::optional<Fate> fate{};  ///< nothing goes on from there
  };
  /// After an event that touched these unknowns and jumps, and which `chatter` has noted: whether such events
  /// accumulate. `now` is their limit then. `time_scale`, `resolution`: as Events::happen; `latest`: a limit behind
  /// that time, in the direction of the run, is left for later.
  Reached look(Chatter& chatter, Moment& now, Transition& event, double time_scale, double resolution,
               double latest = HUGE_VAL);
  /// Looks for a limit after an event that touched these, and adds the event.
  Reached look(Chatter& chatter, std::span<const int> touched, Moment& now, Transition& event, double time_scale,
               double resolution, double latest = HUGE_VAL);

 private:
  double blur(double t, std::span<const int> touched, std::span<const double> x);
  double lowest(double t, std::span<const int> touched, std::span<const double> x);
  bool is_seen(const Accumulation& found, const Chatter& chatter, const Moment& now);
  Reached go_to(const Accumulation& found, Chatter& chatter, Moment& now, Transition& event);
  Reached hit_in_turn(const std::vector<int>& contacts, double rest, Chatter& chatter, Moment& now, Transition& event);
  bool is_pushed(const std::vector<int>& members, int state) const;
  bool extrapolate(const Accumulation& found, const Chatter& chatter, const std::vector<int>& resting, char letter,
                   Moment& now);

  Series& series_;
  const Program& program_;
  Act& act_;
  const RunOptions* options_ = nullptr;
  double direction_ = 1;
  const Moment* now_ = nullptr;  // of the last look
  Chatter::Blur blur_, lowest_;  // what a sequence may ask of the events in it
};

}  // namespace saltus
