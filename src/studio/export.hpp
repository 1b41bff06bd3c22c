// A run as a file to take along.
#pragma once

#include <string>
#include <vector>

#include "ask/past.hpp"
#include "ask/run.hpp"

namespace saltus {

/// The run.toml that `saltus run` would write; `options` as app/engine records them.
Past past_of(const RunAnswer& answer, std::vector<Past::Option> options, const std::string& model_name);

}  // namespace saltus
