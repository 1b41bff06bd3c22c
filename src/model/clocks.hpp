// Sections and jumps that come at fixed intervals, under given parameters: are these times a run can keep?
#pragma once

#include <span>

#include "model/model.hpp"

namespace saltus {

/// Throws Error(model) where the interval of a section or a jump is not a positive time under these parameters.
void check_clocks(const Model& model, std::span<const double> parameters);

/// Throws Error(model) where a clock would tick more than 1e8 times between two times: nobody waits for that.
void check_ticks(const Model& model, std::span<const double> parameters, double from, double until);

}  // namespace saltus
