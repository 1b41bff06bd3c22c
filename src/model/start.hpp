// Starts of runs: a model and values in; states checked against gaps and domains out.
#pragma once

#include <vector>

#include "model/model.hpp"

namespace saltus {

/// Complains about parameter and initial values no run can start from: a static ratio below 1, a violated gap, a joint
/// that is not satisfied (unless the engine is to `project` the start onto joints).
void check_start(const Model& model, const std::vector<double>& parameters, const std::vector<double>& initial,
                 double t, bool project = false);

}  // namespace saltus
