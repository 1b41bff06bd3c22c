#include "report/section.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include "out/json.hpp"
#include "report/run_json.hpp"

namespace saltus {
namespace {

/// True if a state keeps one value on the section (its own surface): such an axis shows nothing.
bool is_flat(const Numbers& values) {
  double lo = HUGE_VAL, hi = -HUGE_VAL, size = 0;
  for (const double v : values) {
    lo = std::min(lo, v);
    hi = std::max(hi, v);
    size = std::max(size, std::abs(v));
  }
  return !(hi - lo > 1e-9 * size) || hi - lo < 1e-12;
}

}  // namespace

Table section_table(const SectionAnswer& answer) {
  const Model& model = answer.system.model();
  Table table("data", "points of the section");
  const size_t n = model.states.size();
  Numbers k;
  for (size_t i = 0; i < answer.times.size(); ++i)
    k.push_back(static_cast<double>(answer.skip) + static_cast<double>(i) + 1);
  table.add_numbers("k", std::move(k), "number of the point").add_numbers("t", answer.times, "time");
  for (size_t s = 0; s < n; ++s) {
    Numbers values;
    for (size_t i = s; i < answer.points.size(); i += n) values.push_back(answer.points[i]);
    table.add_own(model.states[s].name, std::move(values), "state");
  }
  return table;
}

Picturing picture_section(const Model& model, const Table& points, const std::string& section,
                          std::vector<std::string> shown) {
  if (shown.empty()) {
    for (size_t s = 0; s < model.states.size() && shown.size() < 2; ++s) {
      if (!is_flat(points.numbers(model.states[s].name))) shown.push_back(model.states[s].name);
    }
    if (shown.empty()) shown.push_back(model.states.front().name);
  }
  Picturing result{{.title = fmt::format("{}: section {}", model.name, section), .caption = caption_of(model)}, {}};
  Panel panel;
  if (shown.size() >= 2) {
    panel = {.x = {.label = shown[0]}, .y = {.label = shown[1]}, .layers = {Dots{.x = shown[0], .y = shown[1]}}};
  } else {
    const Numbers& values = points.numbers(shown[0]);
    Table table("map", "a state and its next value");
    Numbers now, next;
    for (size_t i = 0; i + 1 < values.size(); ++i) {
      now.push_back(values[i]);
      next.push_back(values[i + 1]);
    }
    double lowest = HUGE_VAL, highest = -HUGE_VAL;
    for (const double v : now) lowest = std::min(lowest, v), highest = std::max(highest, v);
    Table diagonal("diagonal", "where a point is its own next");
    const bool any = lowest <= highest;
    diagonal.add_numbers("now", any ? Numbers{lowest, highest} : Numbers{})
        .add_numbers("next", any ? Numbers{lowest, highest} : Numbers{});
    table.add_numbers("now", std::move(now)).add_numbers("next", std::move(next));
    result.tables.push_back(std::move(table));
    result.tables.push_back(std::move(diagonal));
    panel = {.x = {.label = shown[0]},
             .y = {.label = shown[0] + ", next"},
             .layers = {Line{.table = "diagonal", .x = "now", .y = "next", .colour = "#b0b0b0"},
                        Dots{.table = "map", .x = "now", .y = "next"}}};
  }
  result.figure.stacks.push_back({.panels = {std::move(panel)}});
  return result;
}

std::string section_as_json(const SectionAnswer& answer) {
  const Model& model = answer.system.model();
  const auto n = static_cast<std::ptrdiff_t>(model.states.size());
  std::ostringstream text;
  JsonWriter json(text);
  json.object().member("section", answer.section).key("points").rows();
  auto point = answer.points.begin();
  for (const double t : answer.times) {
    json.object().member("t", t);
    write_state(json.key("state"), model, {point, point + n});
    json.end();
    point += n;
  }
  json.end();
  write_end(json, model, answer.trajectory.end);
  json.end().flush();
  return text.str();
}

}  // namespace saltus
