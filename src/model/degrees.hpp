// Relative degrees of gaps: how often each must be differentiated until its multiplier appears.
#pragma once

#include "model/model.hpp"
#include "model/probe.hpp"

namespace saltus {

/// Fills `degree` and `direction` of the gaps. Throws Error(model) where a degree is none of 0, 1, 2, or where
/// restitution does not fit to it.
void find_degrees(Model& model, const Probe& probe);

}  // namespace saltus
