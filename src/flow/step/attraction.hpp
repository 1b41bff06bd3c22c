// True if sliding still attracts: the slopes d(h')/dsigma of what is slid on keep their signs along a step.
#pragma once

#include <vector>

#include "flow/series.hpp"
#include "flow/step/locate.hpp"

namespace saltus {

/// Where one of them has lost its sign the step is shortened to that point; says which surfaces are concerned, by
/// guards of kind `slope`. Nothing: sliding goes on.
std::vector<Guard> find_lost_attraction(Series& series, StepSolver& solver, const StepRule& rule, const Here& here,
                                        Step& step);

}  // namespace saltus
