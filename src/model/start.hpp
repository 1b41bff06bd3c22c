// Starts of runs: a model and values in; states checked against gaps and domains out.
#pragma once

#include <vector>

#include "model/model.hpp"

namespace saltus {

/// Complains about parameter and initial values no run can start from: a static ratio below 1, a violated gap.
void check_start(const Model& model, const std::vector<double>& parameters, const std::vector<double>& initial,
                 double t);

}  // namespace saltus
