// What an engine is told: the options of a command, then the model's [run] table, then defaults.
#pragma once

#include <optional>
#include <vector>

#include "app/options.hpp"
#include "ask/past.hpp"
#include "ask/record.hpp"
#include "flow/simulate.hpp"

namespace saltus {

/// "event", "step" or "both": the command line, then the model.
std::string engine_of(const SolveOptions& solve, const Model& model);

/// `until`, if given, stands in for what the model says; where nothing says how long, that is an Error(usage).
RunOptions run_options(const SolveOptions& solve, const Model& model, std::optional<double> until = {});

/// What a person should know about the values of a model: contacts whose restitution adds energy.
std::vector<std::string> notes_on(const Model& model);

/// The section of that name, or the only one; an Error(usage) that says what there is otherwise.
int find_section(const Model& model, const std::string& name);

/// The times of rows that --sample asks for.
Sampling read_sampling(const std::string& text, const Model& model);

/// The same as options of a command line, to be recorded.
std::vector<Past::Option> recorded(const SolveOptions& solve, const RunOptions& options);
std::vector<Past::Option> recorded(const OutputOptions& output);

}  // namespace saltus
