// The start of a search, shared by `orbit` and `follow`: options in, a question out.
#pragma once

#include <string>

#include "app/commands.hpp"
#include "ask/orbit.hpp"

namespace saltus {

/// Throws Error(usage) for options that do nothing for what is asked.
void check_applies(const OrbitRequest& request);

/// `what` is found, for complaints about options that do not go with it.
OrbitQuestion orbit_question(const OrbitRequest& request, const System& system, const std::string& what);

}  // namespace saltus
