// One cluster: states that move each other and no others, with the surfaces that read them alone; or surfaces that only
// watch, driven by the series of the clusters they read. Each has its own series and clock, and shares an engine room
// with all clusters of the same structure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "code/rounding.hpp"
#include "flow/act.hpp"
#include "flow/event/watches.hpp"
#include "flow/moment.hpp"
#include "flow/series.hpp"
#include "flow/smooth.hpp"
#include "model/subsystem.hpp"

namespace saltus {

struct ClusterRoom;

/// A state outside a cluster that moves.
struct Drive {
  int state = 0;   ///< of the cluster's program
  int source = 0;  ///< the cluster in which it moves
  int row = 0;     ///< of that cluster's piece
};

struct Cluster {
  Subsystem part;
  ClusterRoom* room = nullptr;  ///< none: its series are rows of the whole (clusters_affine)
  size_t switches = 0;          ///< among part.unknowns
  Clock clock{0};               ///< where its series begin
  std::vector<double> x;        ///< there, of all states of its program
  std::vector<int> moving;      ///< places in part.states of those that move
  std::vector<Drive> drives;    ///< states outside that move: it has none of its own that do
  Piece piece;                  ///< of those; ends at the next event or where the series do
  std::vector<double> end;      ///< all states at its end, where it has a room
  std::vector<Guard> guards;    ///< zero there, with the numbers of its program; none: the series end
  double scale = 0;             ///< the time in which it changes
  double due = 0;               ///< the time of its end
  double horizon = 0;           ///< as far as what drives it is known
  std::vector<std::pair<int, unsigned>> driven{};  ///< clusters that read it: places, births
  bool last = false;                               ///< it ends with the run
  bool whole = false;                              ///< only the whole can go on from here
  int place = 0;                                   ///< among all clusters
  unsigned birth = 0;                              ///< which of the clusters that have had this place
  unsigned stamp = 0;                              ///< which of its series
  bool waits = false;                              ///< it ends where what drives it does, and goes on with that
  bool alive = false;
};

/// What clusters of one structure share: their program, its series and what acts on it.
struct ClusterRoom {
  ClusterRoom(SubsystemProgram made, std::span<const int> key, const std::vector<double>& parameters,
              const RunOptions& run);

  /// What a step of a part costs hardly depends on its order: all are of one, somewhat above that of the tolerance.
  static int order_for(double local_tolerance);
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
  Moment moment;
  std::vector<char> driven;  ///< per state

 private:
  bool make_step(Cluster& c, double until);
};

/// p(tau) -> p(tau + by).
void shift_polynomial(std::span<double> c, double by);

/// What time can tell apart near t where the flow changes in `scale`.
double time_resolution(double t, double scale);

}  // namespace saltus
