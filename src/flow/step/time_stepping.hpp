// The time-stepping engine: one problem per step; events are located only where that pays.
//
//   u = (sigma, lambda): the items; c(x) = (h, g or its rate): the conditions against them
//   for each step from t to t + dt:
//     repeat until the step is done:
//       solve the step in the mode so far                       one linear system, Newton where f is not affine
//       mode and signs agree at its end: accept it
//       theta = 1/2, and few splits so far (jumps and steps of floor: always):
//         shorten it until the first disagreement just vanishes, accept that part
//         x+ = act(event, x-)                                   the same rules as the event-driven engine
//       otherwise:
//         complementarity step over the rest, u against c(x(t + dt)):  contacts at velocity level (Moreau-Jean),
//         0 <= lambda  perp  g'(t + dt) + r min(g'(t), 0) >= 0  where the gap would close
//         the mode is what it says; project closed gaps
//
// docs/method/time_stepping.md
#pragma once

#include <memory>

#include "flow/simulate.hpp"

namespace saltus {

struct EngineMemory;
class StepSolver;

/// What runs of one program share: its formulas differentiated once.
struct StepMemory {
  StepMemory();
  ~StepMemory();
  std::unique_ptr<StepSolver> solver;
};

/// `memory` provides what acting on events needs; it has been prepared for these options.
Trajectory simulate_time_stepping(EngineMemory& memory, StepMemory& steps, const RunOptions& options);

}  // namespace saltus
