// One trajectory: dense pieces, events, modes, and how it ended.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saltus {

/// One character per switch (`+` `-` `0` sliding), one per constraint (`o` open, `c` closed).
struct Mode {
  std::string switches;
  std::string constraints;

  /// "+0|c"
  std::string text() const { return constraints.empty() ? switches : switches + "|" + constraints; }
  friend bool operator==(const Mode&, const Mode&) = default;
};

enum class EventKind {
  cross,    ///< a switch from + to - or back
  slide,    ///< a switch to 0
  leave,    ///< a switch from 0
  graze,    ///< touched, mode unchanged
  impact,   ///< a contact rebounds
  close,    ///< a constraint closes
  open,     ///< a constraint opens
  chatter,  ///< infinitely many impacts or switches before a finite time, completed by their limit
  jump,     ///< a jump of the model
  section,  ///< a Poincaré section
  mode,     ///< more than one switch or constraint changed at once
};
std::string_view kind_name(EventKind kind);
/// The kind of event in which one switch or constraint alone changes its letter.
EventKind kind_of_change(char from, char to);

struct Event {
  double t = 0;
  EventKind kind = EventKind::cross;
  std::vector<std::string> on;  ///< names of the surfaces, constraints, jumps or sections
  Mode before, after;
  std::vector<double> state;                    ///< after the event
  std::optional<std::vector<double>> jumped{};  ///< state before, where it jumps
  long count = 0;                               ///< events summed by a chatter
};

/// Why a trajectory ended.
enum class Why { time, stop, count, zeno, nonunique, inconsistent, stalled, diverged, undefined, cancelled };
std::string_view why_name(Why why);

struct End {
  Why why = Why::time;
  std::string message;
  double t = 0;
  std::vector<double> state;
  Mode mode;
};

/// A polynomial in tau = t - start for every state, valid for tau between 0 and length (which is negative backward).
struct Piece {
  double start = 0;
  double length = 0;
  int mode = 0;                      ///< index into Trajectory::modes
  std::vector<double> coefficients;  ///< [state * (order + 1) + k]
};

struct Cost {
  long steps = 0;
  long events = 0;
  double seconds = 0;
};

/// How long a surface was slid on and how far from it the states were at most.
struct SlidingRecord {
  double time = 0;
  double largest_error = 0;
};

class Trajectory {
 public:
  int states = 0;
  double start_time = 0;
  std::vector<double> start_state;
  Mode start_mode;
  std::vector<Piece> pieces;  ///< empty unless the run was asked to keep them
  std::vector<Mode> modes;
  std::vector<Event> events;
  std::vector<std::string> messages;
  std::vector<SlidingRecord> sliding;  ///< per switch
  End end;
  Cost cost;

  bool dense() const { return !pieces.empty(); }
  /// The piece that holds time t, found in O(log n); between two pieces the later one.
  size_t piece_at(double t) const;
  /// State at time t, which must lie between start and end of a dense trajectory.
  std::vector<double> operator()(double t) const;
  static void evaluate(const Piece& piece, int states, double tau, double* x);
};

}  // namespace saltus
