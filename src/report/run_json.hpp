// Runs for programs: one JSON document.
#pragma once

#include <string>
#include <vector>

#include "ask/sensitivity.hpp"
#include "flow/simulate.hpp"
#include "out/json.hpp"

namespace saltus {

/// A point of a Poincaré map.
struct SectionPoint {
  double t = 0;
  std::vector<double> state;
};

std::string run_as_json(const Model& model, const RunOptions& options, const Trajectory& trajectory,
                        const std::vector<std::string>& notes, const std::optional<Sensitivity>& sensitivity = {});

/// One event as an object.
void write_event(JsonWriter& json, const Model& model, const Event& e);

std::string section_as_json(const Model& model, const std::string& section, const std::vector<SectionPoint>& points,
                            const Trajectory& trajectory);

}  // namespace saltus
