// Who watches a question being answered: apart from what is asked, because it changes no answer.
#pragma once

#include <functional>
#include <stop_token>

#include "base/observer.hpp"
#include "flow/trajectory.hpp"

namespace saltus {

struct BranchPoint;
struct SpecialPoint;
struct BranchEnd;
struct SweepRun;

struct Observer {
  Report progress = {};       ///< called now and then in the calling thread; false stops with what there is
  std::stop_token stop = {};  ///< likewise, from any thread; looked at in every step
  std::function<bool()> interrupted = {};  ///< the same for those who have no token, such as signal handlers
  std::function<void(const Piece&, const Arc&)> on_piece = {};  ///< of a run: each finished piece
  std::function<void(const Event&, const Arc&)> on_event = {};  ///< of a run: each event, and what is constant after it
  std::function<void(const Transition&)> on_transition = {};    ///< of a run: all that happened there
  /// Called with each finished run of a sweep, in no order, in the calling thread; its number is that of SweepRun.
  std::function<void(std::size_t run, const SweepRun&)> on_run = {};
  std::function<void(const BranchPoint&)> on_point = {};     ///< of a branch: each point, as it is found
  std::function<void(const SpecialPoint&)> on_special = {};  ///< of a branch: each special point
  std::function<void(const BranchPoint&)> on_start = {};     ///< of a branch: where it is followed from
  std::function<void(const BranchEnd&)> on_end = {};         ///< of a branch: why it ends, each way

  bool stopped() const { return stop.stop_requested() || (interrupted && interrupted()); }
  /// True if to go on; tells how far it is.
  bool operator()(const Progress& now) const { return !stopped() && (!progress || progress(now)); }
};

/// An observer of a computation in several stages: once asked to stop, all of them do.
class Observing {
 public:
  explicit Observing(const Observer& observer) : observer_(observer) {}

  bool go_on(const Progress& now) { return !(stopped_ = stopped_ || !observer_(now)); }
  bool stopped() { return stopped_ = stopped_ || observer_.stopped(); }
  const Observer& observer() const { return observer_; }

 private:
  const Observer& observer_;
  bool stopped_ = false;
};

}  // namespace saltus
