// Events that follow each other at geometrically shrinking intervals: where they accumulate, and with what state.
//
//   intervals d0 < d1 < d2 < d3 (the last one first) between events that repeat with some period
//   ratio = d0/d1;  time left = d0 ratio/(1 - ratio), if the ratio is steady and what is left is too short to matter
//   each state follows its own geometric sequence to its limit
//
// Heights away from zero have last digits (x = 1): below them intervals are noise. The limit is then the one that was
// foretold best on the way there.
//
// docs/method/event_driven.md says why a long but finite sequence is not cut off.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "flow/trajectory.hpp"

namespace saltus {

/// A sequence of events about to accumulate.
struct Accumulation {
  double rest = 0;         ///< time left
  double ratio = 0;        ///< of successive intervals
  size_t period = 1;       ///< events that repeat
  bool exhausted = false;  ///< they have become too close for time to tell them apart
  bool blurred = false;    ///< they have become too close for what they touch to tell them apart
};

class Chatter {
 public:
  /// Part of the event that is about to be added: its guards with their sides, its modes, what was hit.
  void note(const Transition& part);
  /// Notes an event that consists of this guard alone, in this mode.
  void note(const Guard& guard, const Mode& before);
  /// The key that `note` gives to such an event.
  static uint64_t key_of(const Guard& guard, const Mode& before, std::optional<int> hit = {});
  /// An event of which that is all, on one surface or contact.
  void add(double t, int touched, std::span<const double> x, uint64_t key) {
    key_ = key;
    add(t, std::span(&touched, 1), x);
  }
  /// True if the last event is no part of a sequence that shrinks: `find` would find nothing.
  bool is_steady(double resolution);
  /// The event: it touched these surfaces, contacts or jumps and left the state x.
  void add(double t, std::span<const int> touched, std::span<const double> x);
  void clear();

  /// By how much rounding of what an event touched may put it off in time, there at (t, x).
  using Blur = std::function<double(double t, std::span<const int> touched, std::span<const double> x)>;
  /// `resolution`: what time can tell apart; `time_scale`: in which the flow changes; `lowest`: how long a flight from
  /// what an event touched may take without being told from rest, 0 for what does not fly.
  std::optional<Accumulation> find(double resolution, double time_scale, double tolerance, const Blur& blur,
                                   const Blur& lowest);

  /// The items touched by the last period of events, each once.
  std::vector<int> members(const Accumulation& a) const;
  /// The limit of state i, if its sequence is to be seen above rounding.
  std::optional<double> limit(const Accumulation& a, size_t i) const { return limit_seen(a, i, 0); }
  /// How far it is from what it was a period before, as a share of which it may still be off.
  double limit_moved(const Accumulation& a, size_t i) const;
  /// True if state i has none: it grows from period to period by a steady factor (a ball between walls that throw it).
  bool grows(const Accumulation& a, size_t i) const;

 private:
  struct Mark {
    std::vector<int> touched;
    std::vector<double> x;
  };
  static constexpr size_t memory = 40;

  /// The event `back` events ago.
  const Mark& mark(size_t back) const { return marks_[next_ > back ? next_ - 1 - back : next_ + memory - 1 - back]; }
  double time(size_t back) const { return times_[last_ + back]; }
  uint64_t key(size_t back) const { return keys_[last_ + back]; }
  bool repeats(size_t period, size_t times) const;
  /// The limit as it is seen `back` periods ago.
  std::optional<double> limit_seen(const Accumulation& a, size_t i, size_t back) const;
  double blur_of(size_t period, size_t back, const Blur& blur) const;
  bool is_blurred(size_t period, double interval, double ratio, const Blur& blur) const;
  double foretold(double rest, double toward) const;
  std::optional<Accumulation> find_lost(double resolution, double time_scale, const Blur& blur,
                                        const Blur& lowest) const;
  void note(const Guard& guard);
  void note(const Mode& before);
  void note_hit(int contact);

  std::array<Mark, memory> marks_;  // in a ring
  size_t next_ = 0, count_ = 0;
  // Times and keys, which every event compares, stand in a row, the last one first; moved to the end now and then.
  static constexpr size_t room = 4 * memory;
  std::array<double, room> times_{};
  std::array<uint64_t, room> keys_{};  // of what happened
  size_t last_ = room;
  uint64_t key_ = 0;                           // of the event being noted
  double longest_ = 0;                         // how long the current sequence has lasted at most
  double limit_ = 0, limit_error_ = HUGE_VAL;  // where it accumulates, as far as it was foretold best
};

}  // namespace saltus
