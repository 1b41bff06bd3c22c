// A periodic orbit for the page.
#pragma once

#include <string>

#include "analysis/orbit.hpp"

namespace saltus {

/// The closed curve, its multipliers and legs; or why there is none.
std::string orbit_frame(long id, const Model& model, const Orbit& orbit);

}  // namespace saltus
