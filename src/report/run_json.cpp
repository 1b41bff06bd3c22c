#include "report/run_json.hpp"

#include <span>
#include <sstream>

#include "out/json.hpp"

namespace saltus {
namespace {

void write_sensitivity(JsonWriter& json, const Sensitivity& s) {
  json.key("sensitivity").object().key("by_state").array();
  for (const std::vector<double>& row : s.by_state) {
    json.array();
    for (const double v : row) json.value(v);
    json.end();
  }
  json.end().key("by_parameter").object();
  for (size_t c = 0; c < s.parameters.size(); ++c) {
    json.key(s.parameters[c]).array();
    for (const std::vector<double>& row : s.by_parameter) json.value(row[c]);
    json.end();
  }
  json.end().end();
}

template <class List>
void write_names(JsonWriter& json, const char* key, const List& list) {
  json.key(key).array();
  for (const auto& item : list) json.value(item.name);
  json.end();
}

}  // namespace

void write_state(JsonWriter& json, const Model& model, const std::vector<double>& x) {
  json.object();
  for (size_t i = 0; i < x.size(); ++i) json.member(model.states[i].name, x[i]);
  json.end();
}

void write_end(JsonWriter& json, const Model& model, const End& end) {
  json.key("end").object().member("why", why_name(end.why)).member("message", end.message).member("t", end.t);
  write_state(json.key("state"), model, end.state);
  json.member("mode", end.mode.text()).end();
}

void write_event(JsonWriter& json, const Model& model, const Event& e) {
  json.object().member("t", e.t).member("kind", kind_name(e.kind));
  json.key("on").value(std::span<const std::string>(e.on));
  json.key("mode").array().value(e.before.text()).value(e.after.text()).end();
  write_state(json.key("state"), model, e.state);
  if (e.jumped) write_state(json.key("before"), model, *e.jumped);
  if (e.kind == EventKind::chatter) json.member("count", e.count);
  json.end();
}

std::string run_as_json(const Model& model, const RunOptions& options, const Trajectory& trajectory,
                        const std::vector<std::string>& notes, const std::optional<Sensitivity>& sensitivity,
                        const std::vector<std::pair<std::string, double>>& measures) {
  std::ostringstream text;
  JsonWriter json(text);
  json.object().member("model", model.name).key("parameters").object();
  for (size_t i = 0; i < options.parameters.size(); ++i) json.member(model.parameters[i].name, options.parameters[i]);
  json.end().member("engine", options.step ? "step" : "event").member("tolerance", options.tolerance);
  if (options.step) {
    json.member("theta", options.step->theta);
    if (options.step->dt > 0) json.member("dt", options.step->dt);
  }
  write_names(json, "switches", std::span(model.form.switches).first(static_cast<size_t>(model.form.visible)));
  write_names(json, "constraints", model.constraints);
  json.key("start").object().member("t", trajectory.start_time);
  write_state(json.key("state"), model, trajectory.start_state);
  json.member("mode", trajectory.start_mode.text()).end();
  write_end(json, model, trajectory.end);
  json.key("messages").value(std::span<const std::string>(notes));
  json.key("events").rows();
  for (const Event& e : trajectory.events) write_event(json, model, e);
  json.end().key("cost").object().member("steps", trajectory.cost.steps).member("events", trajectory.cost.events);
  json.member("seconds", trajectory.cost.seconds).member("native", trajectory.cost.native).end();
  if (sensitivity) write_sensitivity(json, *sensitivity);
  if (!measures.empty()) {
    json.key("measures").object();
    for (const auto& [name, value] : measures) json.member(name, value);
    json.end();
  }
  json.end().flush();
  return text.str();
}

}  // namespace saltus
