// Measures given as text: mean(Pin), rms(v*i), pp(x), min(x), max(x), above(x, 0.5).
#pragma once

#include <string>
#include <vector>

#include "analysis/meter.hpp"
#include "model/model.hpp"

namespace saltus {

/// Each is KIND(QUANTITY) or above(QUANTITY, LEVEL); a quantity is a name of the model, sigma(SURFACE), or a formula of
/// these. Throws Error(usage) that names what there is.
std::vector<Measure> read_measures(const std::vector<std::string>& texts, const Model& model);

}  // namespace saltus
