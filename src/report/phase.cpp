#include "report/phase.hpp"

#include <cmath>
#include <limits>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/index.hpp"
#include "out/json.hpp"
#include "report/run_json.hpp"
#include "report/summary.hpp"
#include "report/words.hpp"

namespace saltus {
namespace {

std::string column_of(const Model& model, int state) { return "Z(" + model.states[at(state)].name + ")"; }

void write_z(JsonWriter& json, const Model& model, const std::vector<double>& z, const std::vector<int>& of) {
  json.key("z").object();
  for (const int i : of) json.key(model.states[at(i)].name).value(z[at(i)]);
  json.end();
}

void write_point(JsonWriter& json, const Model& model, const PhasePoint& point, const std::vector<int>& of) {
  json.object().member("t", point.t);
  write_z(json, model, point.z, of);
  write_state(json.key("state"), model, point.state);
  json.end();
}

void write_jump(JsonWriter& json, const Model& model, const PhaseJump& jump, const std::vector<int>& of) {
  json.object().member("t", jump.before.t).key("before");
  write_point(json, model, jump.before, of);
  json.key("after");
  write_point(json, model, jump.after, of);
  json.end();
}

void write_by_parameter(JsonWriter& json, const std::vector<std::string>& names, const std::vector<double>& values) {
  json.object();
  for (size_t i = 0; i < names.size(); ++i) json.key(names[i]).value(values[i]);
  json.end();
}

void write_interaction(JsonWriter& json, const PhaseAnswer& answer) {
  const Interaction& pair = *answer.interaction;
  json.key("interaction").rows();
  for (size_t j = 0; j < pair.value.size(); ++j) {
    const double share = static_cast<double>(j) / static_cast<double>(pair.value.size());
    json.object().member("phase", share * answer.cycle).member("value", pair.value[j]).end();
  }
  json.end().key("locked").array();
  for (const LockedPhase& l : pair.locked)
    json.object().member("phase", l.phase * answer.cycle).member("stable", l.stable).end();
  json.end();
}

std::string locked_words(const PhaseAnswer& answer) {
  if (!answer.interaction) return "";
  std::vector<std::string> texts;
  for (const LockedPhase& l : answer.interaction->locked)
    texts.push_back(fmt::format("{} ({})", number(l.phase * answer.cycle), l.stable ? "stable" : "unstable"));
  if (texts.empty()) return "locked     at every phase: the coupling does nothing\n";
  return fmt::format("locked     at phases {}\n", fmt::join(texts, ", "));
}

}  // namespace

std::string words_of(const PhaseAnswer& answer) {
  if (!answer.found) return fmt::format("none       {}\n", answer.message);
  std::string out = fmt::format("phase      period {}, {} jump{} of Z, closes to {:.2g}\n", number(answer.period),
                                answer.jumps.size(), answer.jumps.size() == 1 ? "" : "s", answer.error);
  constexpr size_t most = 8;
  std::vector<std::string> texts;
  for (size_t i = 0; i < answer.parameters.size() && texts.size() < most; ++i)
    texts.push_back(fmt::format("{} by {}", number(answer.period_by_parameter[i]), answer.parameters[i]));
  if (answer.parameters.size() > most) texts.push_back(fmt::format("{} more", answer.parameters.size() - most));
  if (!texts.empty()) out += fmt::format("period'    {}\n", fmt::join(texts, ", "));
  return out + locked_words(answer) + note_lines(answer.notes);
}

std::string json_of(const PhaseAnswer& answer, const std::vector<int>& of) {
  const Model& model = answer.orbit.system.model();
  std::ostringstream text;
  JsonWriter json(text);
  json.object();
  if (!answer.found) {
    json.member("kind", "none").member("why", answer.why).member("message", answer.message).end().flush();
    return text.str();
  }
  json.member("kind", "phase").member("period", answer.period).key("points").rows();
  for (const PhasePoint& point : answer.points) write_point(json, model, point, of);
  json.end().key("jumps").rows();
  for (const PhaseJump& jump : answer.jumps) write_jump(json, model, jump, of);
  json.end().key("period_by_parameter");
  write_by_parameter(json, answer.parameters, answer.period_by_parameter);
  json.key("events").rows();
  for (const PhaseEvent& e : answer.events) {
    json.object().member("t", e.event.t).member("kind", kind_name(e.event.kind));
    json.key("on").value(std::span<const std::string>(e.event.on)).key("by_parameter");
    write_by_parameter(json, answer.parameters, e.by_parameter);
    json.end();
  }
  json.end();
  if (answer.interaction) write_interaction(json, answer);
  json.member("error", answer.error).key("messages").value(std::span<const std::string>(answer.notes)).end().flush();
  return text.str();
}

std::vector<Table> tables_of(const PhaseAnswer& answer, const std::vector<int>& of) {
  if (!answer.found) return {};
  const Model& model = answer.orbit.system.model();
  const size_t n = model.states.size();
  std::vector<Numbers> columns(1 + n + of.size());
  const auto add = [&](const PhasePoint& p) {
    columns[0].push_back(p.t);
    for (size_t i = 0; i < n; ++i) columns[1 + i].push_back(p.state[i]);
    for (size_t k = 0; k < of.size(); ++k) columns[1 + n + k].push_back(p.z[at(of[k])]);
  };
  size_t next = 0;
  const auto jumps_until = [&](double t) {
    for (; next < answer.jumps.size() && answer.jumps[next].before.t <= t; ++next) {
      add(answer.jumps[next].before);
      for (Numbers& column : columns) column.push_back(std::numeric_limits<double>::quiet_NaN());
      add(answer.jumps[next].after);
    }
  };
  for (const PhasePoint& p : answer.points) {
    jumps_until(p.t);
    add(p);
  }
  jumps_until(HUGE_VAL);
  Table data("data", "phase response along the orbit");
  data.add_numbers("t", std::move(columns[0]), "phase");
  for (size_t i = 0; i < n; ++i) data.add_own(model.states[i].name, std::move(columns[1 + i]));
  for (size_t k = 0; k < of.size(); ++k)
    data.add_numbers(column_of(model, of[k]), std::move(columns[1 + n + k]), "phase per unit of a kick");
  std::vector<Table> out;
  out.push_back(std::move(data));
  Table periods("periods", "derivative of the period");
  periods.add_texts("parameter", answer.parameters).add_numbers("derivative", answer.period_by_parameter);
  out.push_back(std::move(periods));
  if (!answer.interaction) return out;
  Table pair("interaction", "drift of the phase by the other copy");
  Numbers phases;
  for (size_t j = 0; j < answer.interaction->value.size(); ++j)
    phases.push_back(static_cast<double>(j) / static_cast<double>(answer.interaction->value.size()) * answer.cycle);
  pair.add_numbers("phase", std::move(phases), "of the other copy").add_numbers("H", answer.interaction->value);
  out.push_back(std::move(pair));
  return out;
}

Picturing picture_of(const PhaseAnswer& answer, const std::vector<int>& of) {
  const Model& model = answer.orbit.system.model();
  Picturing out{{.title = fmt::format("{}: phase response, period {}", model.name, number(answer.period)),
                 .caption = caption_of(model)},
                {}};
  constexpr size_t most = 6;
  Stack responses{.share_x = true, .width = 2};
  for (size_t k = 0; k < std::min(most, of.size()); ++k) {
    const std::string name = column_of(model, of[k]);
    responses.panels.push_back({.x = {.label = "t"}, .y = {.label = name}, .layers = {Line{.x = "t", .y = name}}});
  }
  out.figure.stacks.push_back(std::move(responses));
  if (answer.interaction) {
    Panel panel{.title = "interaction",
                .x = {.label = "phase"},
                .y = {.label = "H"},
                .layers = {Line{.table = "interaction", .x = "phase", .y = "H"}}};
    Verticals stable;
    for (const LockedPhase& l : answer.interaction->locked) {
      if (l.stable) stable.at.push_back(l.phase * answer.cycle);
    }
    if (!stable.at.empty()) panel.layers.emplace_back(std::move(stable));
    out.figure.stacks.push_back({.panels = {std::move(panel)}});
  }
  return out;
}

}  // namespace saltus
