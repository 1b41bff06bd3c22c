// One cluster: states that move each other and no others, with the surfaces that read them alone; or surfaces that only
// watch, driven by the series of the clusters they read. Each has its own series and clock, and shares an engine room
// with all clusters of the same structure.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "code/columns.hpp"
#include "code/rounding.hpp"
#include "flow/act.hpp"
#include "flow/event/watches.hpp"
#include "flow/limit.hpp"
#include "flow/moment.hpp"
#include "flow/recorder.hpp"
#include "flow/series.hpp"
#include "flow/smooth.hpp"
#include "model/subsystem.hpp"
#include "solve/polynomial.hpp"

namespace saltus {

struct ClusterRoom;

enum class ClusterOutcome {
  step,   ///< the whole makes a step from `now`
  event,  ///< at `now` the guards are zero: the whole acts on them
  end,    ///< of the run, or the recorder has ended it
};

/// Steps that the whole makes before clusters are tried again where they are not worth while.
inline constexpr long not_worth_while = 256;
/// Events of a surface that come ever faster and are this close, in units of the time scale, may accumulate: so many
/// steps are left to the whole, which sees them all.
inline constexpr double close_events = 1e-3;
inline constexpr long accumulation_steps = 256;

/// A state outside a cluster that moves.
struct Drive {
  int state = 0;   ///< of the cluster's program
  int source = 0;  ///< the cluster in which it moves
  int from = 0;    ///< the state of the whole
};

/// Fields that an event reads stand first, to lie on few lines of memory.
struct Cluster {
  Clock clock{0};      ///< where its series begin
  double length = 0;   ///< of its series: to the next event, or as far as they carry
  double due = 0;      ///< the time of its end
  double scale = 0;    ///< the time in which it changes
  int place = 0;       ///< among all clusters
  unsigned birth = 0;  ///< which of the clusters that have had this place
  bool alive = false;
  bool last = false;                               ///< it ends with the run
  bool whole = false;                              ///< only the whole can go on from here
  bool waits = false;                              ///< it ends where what drives it does, and goes on with that
  ClusterRoom* room = nullptr;                     ///< none: its series are rows of the whole (clusters_affine)
  std::vector<int> moving;                         ///< states of the whole that move in it, ascending
  Columns series{};                                ///< theirs, which begin with the states
  std::vector<std::pair<int, unsigned>> driven{};  ///< clusters that read it: places, births
  std::vector<Guard> guards;  ///< zero at its end, with the numbers of its program; none: the series end
  size_t switches = 0;        ///< among part.unknowns
  Subsystem part;             ///< its unknowns; all the rest only where it has a room
  std::vector<Drive> drives;  ///< states outside that move: it has none of its own that do
  double horizon = 0;         ///< as far as those are known
  // Where it has a room.
  std::vector<int> movers;     ///< places in part.states of those that move
  std::vector<double> x, end;  ///< all states of its program: where it begins and ends

  /// The cluster has no series that converge: its states stay where they are until the full system takes over.
  void leave_to_whole();
};

/// The data shared by clusters of one structure: their program, its series and its events.
struct ClusterRoom {
  ClusterRoom(SubsystemProgram made, std::span<const int> key, const std::vector<double>& parameters,
              const RunOptions& run);

  /// The order of all steps, somewhat above that of the tolerance: the cost of a step of a subsystem hardly depends on
  /// it.
  static int order_for(double local_tolerance);
  /// The slots of its tapes: most of its memory.
  size_t slots() const { return static_cast<size_t>(series->tape().flow.slots); }
  /// Makes it that of a cluster: constants, and the moment at which its series begin. `mode`, `known`: of the cluster.
  void enter(const Cluster& c);
  /// The series of a state that drives the cluster, in the time since its clock; none: it rests.
  void drive(int state, std::span<const double> series);
  /// The series of the cluster from its clock to its next event or as far as they carry; `moment` holds mode and
  /// `known`.
  void expand(Cluster& c, double until, double first_scale);

  SubsystemProgram made;
  std::vector<int> key;  ///< of the shape
  const Program* program;
  RunOptions options;
  double direction;
  int order;
  OrderTable orders;
  std::optional<Series> series;
  std::optional<Rounding> point;
  std::optional<Smooth> smooth;
  std::optional<Watches> watches;
  std::optional<Act> act;
  std::optional<Limit> limit;
  Moment moment;
  std::vector<char> driven;  ///< per state

 private:
  bool make_step(Cluster& c, double until);
};

/// p(tau) -> p(tau + by).
void shift_polynomial(std::span<double> c, double by);

/// The first crossing of zero of a series on (0, h], or infinity; what is within `resolution` behind h counts as at h.
double first_zero(std::span<const double> series, double h, double resolution, int known_zeros, double noise);

/// True if the run has come to an end of its own: too many steps, or somebody has stopped it. `assemble`: the moment of
/// the whole, asked for only then.
template <class Assemble>
bool limits_reached(Recorder& recorder, const RunOptions& options, double t, const Assemble& assemble) {
  const bool spent = recorder.steps() >= options.max_steps;
  const bool ask = recorder.steps() % 256 == 0 && options.progress;
  const bool stopped = options.stop && options.stop();
  if (!spent && !ask && !stopped) return false;
  if (spent) {
    recorder.finish(Why::stalled, fmt::format("{} steps were not enough", options.max_steps), assemble());
  } else if (stopped || !options.progress(t)) {
    recorder.finish(Why::cancelled, "interrupted", assemble());
  }
  return recorder.ended();
}

/// The resolution of time near t where the flow changes in `scale`.
double time_resolution(double t, double scale);

}  // namespace saltus
