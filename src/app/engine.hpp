// Settings of an engine: the options of a command first, then the model's [run] table, then defaults.
#pragma once

#include <optional>
#include <vector>

#include "app/options.hpp"
#include "ask/past.hpp"
#include "ask/record.hpp"
#include "ask/solve.hpp"
#include "flow/simulate.hpp"

namespace saltus {

/// The options of a command that only the event-driven engine serves, whatever the model's [run] says; `what` it finds,
/// for the Error(usage) about options that do not go with that.
Solve event_driven(const Solve& solve, const std::string& what);

/// Output options as they are typed, for the record in run.toml.
std::vector<Past::Option> recorded(const OutputOptions& output);

}  // namespace saltus
