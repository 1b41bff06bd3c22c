// Engine 1: smooth flow between located events.
//
//   mode = choose_mode(x, t)
//   until the end:
//     series of the mode at (x, t); step from its last two coefficients
//     event = earliest zero of everything watched on the step
//     shorten the step to the event; check the defect |p'(tau) - f(p(tau))| there, halve the step if it is too large
//     keep the piece up to the event
//     x-  = state at the event;  x+ = apply(event, x-)     impact or jump; identity for switches
//     mode = choose_mode(x+, t)                            simultaneous events are one event with a set
//     finish an accumulating sequence by its limit
#pragma once

#include "flow/simulate.hpp"

namespace saltus {

struct EngineMemory;

Trajectory simulate_event_driven(EngineMemory& memory, const RunOptions& options);

}  // namespace saltus
