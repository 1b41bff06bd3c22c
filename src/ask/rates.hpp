// The field: states in, their rates out.
#pragma once

#include <span>
#include <vector>

#include "ask/system.hpp"

namespace saltus {

/// The rates of the states at many points, state after state as the points are: each in the mode in which a run would
/// start there at time t, sliding included. NaN where no run can start.
std::vector<double> rates(const System& system, std::span<const double> points, double t = 0);

}  // namespace saltus
