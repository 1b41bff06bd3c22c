// The time-stepping engine: one problem per step; events are located only where that pays.
//
//   u = (sigma, lambda): the items; c(x) = (h, g or its rate): the conditions against them
//   for each part of a step, up to its end, a clock, what Newton's method allows:
//     solve it in the mode so far                               one linear system, Newton where f is not affine
//     its error is too large: a shorter step
//     mode and signs agree at its end: accept it
//     theta = 1/2, and few splits so far (jumps and steps of floor: always):
//       shorten it until the first disagreement just vanishes, accept that part
//       x+ = act(event, x-)                                     the same rules as the event-driven engine
//     a rate has no value at its end: a shorter part; up to the surface at which the field ends
//     otherwise:
//       complementarity over the rest, u against c(x(t + dt)):  contacts at velocity level (Moreau-Jean),
//       0 <= lambda  perp  g'(t + dt) + r min(g'(t), 0) >= 0    where the gap would close
//       the mode is what it says; project closed gaps
//
// docs/method/time_stepping.md
#pragma once

#include <memory>

#include "flow/simulate.hpp"

namespace saltus {

struct EngineMemory;
class StepSolver;

/// Data that runs of one program share: its formulas differentiated once.
struct StepMemory {
  StepMemory();
  ~StepMemory();
  std::unique_ptr<StepSolver> solver;
};

/// `memory` provides what acting on events needs. Whatever `result` held is forgotten, its memory used.
void simulate_time_stepping(EngineMemory& memory, StepMemory& steps, const RunOptions& options, Trajectory& result);

}  // namespace saltus
