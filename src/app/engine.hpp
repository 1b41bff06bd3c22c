// What an engine is told: the options of a command, then the model's [run] table, then defaults.
#pragma once

#include <optional>
#include <vector>

#include "app/options.hpp"
#include "ask/past.hpp"
#include "ask/record.hpp"
#include "ask/solve.hpp"
#include "flow/simulate.hpp"

namespace saltus {

/// "event", "step" or "both": the command line, then the model.
std::string engine_of(const SolveOptions& solve, const Model& model);

/// The same as data; an option that belongs to the other engine is an Error(usage).
Solve solve_of(const SolveOptions& solve, const Model& model);

/// `until`, if given, stands in for what the model says; where nothing says how long, that is an Error(usage).
RunOptions run_options(const SolveOptions& solve, const Model& model, std::optional<double> until = {});

/// The same as options of a command line, to be recorded.
std::vector<Past::Option> recorded(const SolveOptions& solve, const RunOptions& options);
std::vector<Past::Option> recorded(const OutputOptions& output);

}  // namespace saltus
