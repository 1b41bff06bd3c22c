// Engine 2: one complementarity problem per step, no event needs to be located.
//
//   u = (sigma, lambda): the items; c(x) = (h, g or its rate): the conditions against them
//   for each step from t to t + dt:
//     repeat until the step is done:
//       solve the step in the mode so far                       one linear system, Newton where f is not affine
//       mode and signs agree at its end: accept it
//       theta = 1/2, and few splits so far:
//         shorten it until the first disagreement just vanishes, accept that part
//         x-  = state there;  x+ = apply(jump or impact, x-)
//         mode = that of a very short complementarity step from x+
//       otherwise:
//         complementarity step over the rest, u against c(x(t + dt)):  contacts at velocity level (Moreau-Jean),
//         0 <= lambda  perp  g'(t + dt) + r min(g'(t), 0) >= 0  where the gap would close
//         the mode is what it says; project closed gaps
//
// docs/method/time_stepping.md
#pragma once

#include "flow/simulate.hpp"

namespace saltus {

Trajectory simulate_time_stepping(const Program& program, const RunOptions& options);

}  // namespace saltus
