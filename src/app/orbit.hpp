// The start of a search, shared by the commands that begin with an orbit: options in, a question out.
#pragma once

#include <string>
#include <vector>

#include "app/commands.hpp"
#include "ask/orbit.hpp"
#include "ask/past.hpp"

namespace saltus {

/// Throws Error(usage) for options that do nothing for what is asked.
void check_applies(const OrbitRequest& request);

/// The options of the search as they are typed, for the record in run.toml.
std::vector<Past::Option> recorded_search(const OrbitRequest& request);

/// `what` is found, for complaints about options that do not go with it.
OrbitQuestion orbit_question(const OrbitRequest& request, const System& system, const std::string& what);

}  // namespace saltus
