// Runs for programs: one JSON document.
#pragma once

#include <string>
#include <vector>

#include "ask/run.hpp"
#include "flow/simulate.hpp"
#include "out/json.hpp"

namespace saltus {

std::string run_as_json(const Model& model, const RunOptions& options, const Trajectory& trajectory,
                        const std::vector<std::string>& notes, const std::optional<Sensitivity>& sensitivity = {},
                        const std::vector<std::pair<std::string, double>>& measures = {});

/// A state as an object by names; the member "end"; one event as an object.
void write_state(JsonWriter& json, const Model& model, const std::vector<double>& x);
void write_end(JsonWriter& json, const Model& model, const End& end);
void write_event(JsonWriter& json, const Model& model, const Event& e);

}  // namespace saltus
