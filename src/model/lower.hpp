// Lowers nonsmooth functions to switches, constraints and jumps: Model as written -> Model with its form.
//
//   sign(e)            sigma on e = 0                          sign(e, s)   the same, holding while |sigma| <= s
//   abs(e)             e*sigma                                 step(e)      (1 + sigma)/2
//   min(a,b) max(a,b)  sigma on a - b                          sat(e,lo,hi) sigma on e - lo and on e - hi
//   if(c,a,b)          c*a + (1-c)*b, with a > b as (1 + sigma)/2, `and` as product, `not c` as 1 - c
//   mod(e,T) floor(e)  e - T*k and k, where k counts how often the phase has wrapped
#pragma once

#include "model/model.hpp"

namespace saltus {

/// Fills model.form from the written equations. Throws Error(model) for what no form exists for.
void lower(Model& model);

}  // namespace saltus
