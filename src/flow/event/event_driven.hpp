// The event-driven engine: smooth pieces between events, each event located on the series of its step.
//
//   mode  = choose_mode(x, t)
//   until the end:
//     piece = smooth step in this mode                      sliding sigma and closed lambda are series too
//     event = earliest zero of everything watched on the piece
//     keep the piece up to the event
//     x+    = act(event, x-)                                jumps, impacts, the next mode; simultaneous events are one
//     finish an accumulating sequence by its limit
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "code/rounding.hpp"
#include "flow/chatter.hpp"
#include "flow/series.hpp"
#include "flow/simulate.hpp"
#include "flow/taylor.hpp"

namespace saltus {

class EventEngine;

/// Data that runs of one program share: tapes bound to parameters, series of modes met before, memory for marks, the
/// engine.
struct EngineMemory {
  explicit EngineMemory(const Program& shared);
  ~EngineMemory();
  /// Makes it fit a run. Nothing a run computes depends on what was run before.
  void prepare(const RunOptions& options);
  /// True if a start is known to be allowed: the parameters are those of the run before, and no gap is negative.
  bool start_is_clear(const RunOptions& options);
  /// About how many numbers it holds.
  size_t size() const { return series ? series->size() : 0; }

  const Program& program;
  double tolerance = 0;
  int order = 0;  ///< highest order of the series
  OrderTable orders;
  std::vector<double> parameters;
  Series::Ties ties;
  std::optional<Series> series;
  std::optional<Rounding> point;  ///< signs at a point
  bool plain_gaps = false;        ///< gaps depend on states, time and parameters alone, restitutions on parameters
  Chatter chatter;
  std::unique_ptr<EventEngine> engine;
};

/// Runs the program; the contents of `result` are overwritten, its memory reused.
void simulate_event_driven(EngineMemory& memory, const RunOptions& options, Trajectory& result);

}  // namespace saltus
