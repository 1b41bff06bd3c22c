// The printed summary of a run: a trajectory in, lines of text out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ask/run.hpp"
#include "flow/simulate.hpp"

namespace saltus {

/// "end        t = 60, y = 0.3, v = 0, mode 0", or why the run ended before.
std::string end_line(const Model& model, const End& end);
std::string events_line(const std::map<EventKind, long>& counts);
/// How long each surface was slid on and the largest error; empty for a model without switches.
std::string sliding_line(const Model& model, const Trajectory& trajectory);
std::string cost_line(const Cost& cost);
/// The line of derivatives: the largest of them.
std::string sensitivity_line(const Model& model, const Sensitivity& sensitivity);
/// "measure    mean(Pin) = 3.2, rms(i) = 0.4"; empty without measures.
std::string measure_lines(const std::vector<std::pair<std::string, double>>& measures);
std::string note_lines(const std::vector<std::string>& notes);

}  // namespace saltus
