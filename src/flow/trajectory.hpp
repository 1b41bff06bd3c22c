// One trajectory: dense pieces, events, modes, and how it ended.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flow/guard.hpp"

namespace saltus {

/// One character per switch (`+` `-` `0` sliding), one per constraint (`o` open, `c` closed).
/// Inside the engines hidden switches follow the visible ones, and `=` says that a surface stays zero by itself,
/// without the help of its sigma, and `^` that a vector switch leaves rest along its departure series (`~` afterwards);
/// users see neither (`visible_mode`).
struct Mode {
  std::string switches;
  std::string constraints;

  Mode() = default;
  Mode(std::string of_switches, std::string of_constraints)
      : switches(std::move(of_switches)), constraints(std::move(of_constraints)) {}
  Mode(const Mode&) = default;
  Mode(Mode&&) = default;
  Mode& operator=(Mode&&) = default;
  /// Modes of one model have as many letters: copying and comparing them is what an event does most.
  Mode& operator=(const Mode& other) {
    copy(other.switches, switches);
    copy(other.constraints, constraints);
    return *this;
  }

  void clear() {
    switches.clear();
    constraints.clear();
  }
  /// "+0|c"
  std::string text() const { return constraints.empty() ? switches : switches + "|" + constraints; }
  friend bool operator==(const Mode& a, const Mode& b) {
    return same(a.switches, b.switches) && same(a.constraints, b.constraints);
  }

 private:
  static constexpr size_t few = 8;
  [[gnu::always_inline]] static void copy(const std::string& from, std::string& to) {
    if (from.size() != to.size() || from.size() > few) {
      to = from;
    } else {
      for (size_t i = 0; i < from.size(); ++i) to[i] = from[i];
    }
  }
  [[gnu::always_inline]] static bool same(const std::string& a, const std::string& b) {
    if (a.size() != b.size() || a.size() > few) return a == b;
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }
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
/// The mode as users see it: the first `visible` switches, `=` as `0`.
Mode visible_mode(const Mode& mode, int visible);
void write_visible(const Mode& mode, int visible, Mode& out);
/// The kind of event in which one switch or constraint alone changes its letter.
EventKind kind_of_change(char from, char to);

/// A jump of the model that has happened.
struct JumpDone {
  int jump = 0;
  std::vector<double> before, after;
  /// Where the jump is frozen: what the nonsmooth functions in each value that is set have chosen (code/sides).
  std::vector<std::vector<double>> sides{};
  /// Signs of the functions of `on` sections just after it; 0: zero up to rounding, or none. Empty without such
  /// sections.
  std::vector<int> section_signs{};
};

/// Contacts hit at once, and how.
struct Hit {
  Mode mode;                                   ///< whose formulas hold: impact switches are '0', contacts open
  std::vector<double> counters;                ///< whole numbers of mod and floor
  std::vector<int> contacts;                   ///< that touch
  std::vector<double> impulse;                 ///< per contact; 0: it was not hit
  std::vector<std::pair<int, char>> switches;  ///< that took part, with their letters after it
  std::vector<double> sigma;                   ///< of those
  std::vector<double> before, after;           ///< states
};

/// All changes at one instant: guards became zero, jumps changed the state, contacts their velocities, then a mode
/// followed. Events are printed from it.
struct Transition {
  double t = 0;
  Mode before, after;  ///< all switches, hidden ones included
  std::vector<Guard> guards;
  std::vector<double> x_minus, x_plus;
  std::vector<double> counters_before, counters;  ///< whole numbers of mod and floor before and after
  std::vector<std::pair<int, double>> impulse{};  ///< of each contact hit, in order
  std::vector<JumpDone> jumps{};                  ///< in the order in which they happened
  std::vector<Hit> hits{};      ///< after the jumps, in order; filled where transitions are told or kept
  long count = 0;               ///< events summed by a chatter
  std::vector<int> resting{};   ///< unknowns that a chatter has brought to rest
  bool silent = false;          ///< nothing has changed that a user could see
  std::vector<double> guess{};  ///< as Arc::guess, of the mode after it

  /// Clears the transition; memory is kept.
  void reset() {
    guards.clear();
    impulse.clear();
    jumps.clear();
    hits.clear();
    resting.clear();
    count = 0;
    silent = false;
  }
};

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

/// Constants of a piece besides its polynomials: enough to evaluate sigma, lambda and named quantities on it.
struct Arc {
  Mode mode;                                   ///< all switches, hidden ones included
  std::vector<double> counters;                ///< whole numbers of mod and floor
  std::vector<std::pair<int, double>> held{};  ///< redundant forces that stand at a bound: (unknown, value)
  std::vector<double> guess{};                 ///< of all unknowns, where the mode is not affine in them

  friend bool operator==(const Arc&, const Arc&) = default;
};

/// A polynomial in tau = t - start for every state, valid for tau between 0 and length (which is negative backward).
struct Piece {
  double start = 0;
  double length = 0;
  int arc = 0;                       ///< index into Trajectory::arcs
  std::vector<double> coefficients;  ///< [state * (order + 1) + k]
};

struct Cost {
  long steps = 0;
  long events = 0;
  double seconds = 0;
  long native = 0;  ///< series that machine code computed
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
  std::vector<Arc> arcs;      ///< of the kept pieces
  std::vector<Event> events;
  std::vector<Transition> transitions;  ///< empty unless the run was asked to keep them
  std::vector<std::string> messages;
  std::vector<SlidingRecord> sliding;  ///< per visible switch
  End end;
  Arc last;  ///< what is constant at the end
  Cost cost;

  /// Clears the trajectory; memory is kept.
  void clear();
  bool dense() const { return !pieces.empty(); }
  /// The piece that holds time t, found in O(log n); between two pieces the later one.
  size_t piece_at(double t) const;
  /// State at time t between start and end of a dense trajectory; throws Error elsewhere.
  std::vector<double> operator()(double t) const;
  static void evaluate(const Piece& piece, int states, double tau, double* x);
};

}  // namespace saltus
