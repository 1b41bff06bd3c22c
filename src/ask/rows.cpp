#include "ask/rows.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ask/value.hpp"
#include "base/index.hpp"
#include "base/numbers.hpp"

namespace saltus {
Sampling read_sampling(const std::string& text, const Model& model) {
  if (text == "smooth") return {};
  if (text == "steps") return {.kind = Sampling::Kind::steps};
  const double interval = read_number(text, "`sample`", model);
  if (!(interval > 0))
    throw Error(ErrorKind::usage, fmt::format("`sample` {} is no interval", text), {},
                "give a positive time, or 'steps'");
  return {.kind = Sampling::Kind::every, .interval = interval};
}

Table data_table(const Model& model, const Rows& rows) {
  Table table("data", "the trajectory, row by row; a row of nan is a jump");
  const size_t width = rows.columns.size(), count = rows.count(), states = model.states.size(),
               names = states + model.definitions.size();
  for (size_t k = 0; k < width; ++k) {
    Numbers values(count);
    for (size_t r = 0; r < count; ++r) values[r] = rows.cells[r * width + k];
    const std::string what = k == 0                                  ? "time"
                             : k <= states                           ? "state"
                             : k <= names                            ? "named quantity"
                             : rows.columns[k].starts_with("sigma(") ? "value of the switch"
                                                                     : "multiplier";
    table.add_numbers(rows.columns[k], std::move(values), what);
  }
  return table;
}

Table marks_table(const Rows& rows) {
  Table table("marks", "the columns at the events");
  const size_t count = rows.mark_kinds.size(), width = rows.columns.size();
  for (size_t k = 0; k < width; ++k) {
    Numbers values(count);
    for (size_t r = 0; r < count; ++r) values[r] = rows.mark_cells[r * width + k];
    table.add_numbers(rows.columns[k], std::move(values));
  }
  table.add_texts(kind_of_mark, rows.mark_kinds);
  return table;
}

Table events_table(const Model& model, const std::vector<Event>& events, const std::string& name) {
  Table table(name, "what happened, in order");
  const size_t n = model.states.size();
  const bool jumps = std::any_of(events.begin(), events.end(), [](const Event& e) { return e.jumped.has_value(); });
  Numbers t, count;
  Texts kind, on, before, after;
  std::vector<Numbers> states(n), former(jumps ? n : 0);
  for (const Event& e : events) {
    t.push_back(e.t);
    kind.emplace_back(kind_name(e.kind));
    on.push_back(fmt::format("{}", fmt::join(e.on, "; ")));
    before.push_back(e.before.text());
    after.push_back(e.after.text());
    for (size_t i = 0; i < n; ++i) states[i].push_back(e.state[i]);
    for (size_t i = 0; i < former.size(); ++i) former[i].push_back(e.jumped ? (*e.jumped)[i] : nan);
    count.push_back(e.kind == EventKind::chatter ? static_cast<double>(e.count) : nan);
  }
  const bool chatters = std::any_of(kind.begin(), kind.end(), [](const std::string& k) { return k == "chatter"; });
  table.add_numbers("t", std::move(t), "time");
  table.add_texts("kind", std::move(kind), "cross, slide, leave, impact, ...");
  table.add_texts("on", std::move(on), "surfaces, constraints, jumps or sections, separated by ';'");
  table.add_texts("mode_before", std::move(before), "a character per switch, then | and one per constraint");
  table.add_texts("mode_after", std::move(after));
  for (size_t i = 0; i < n; ++i) table.add_own(model.states[i].name, std::move(states[i]), "state after the event");
  for (size_t i = 0; i < former.size(); ++i)
    table.add_numbers("before(" + model.states[i].name + ")", std::move(former[i]), "state before, where it jumps");
  if (chatters) table.add_numbers("count", std::move(count), "events summed by a chatter");
  return table;
}

Table pieces_table(const Model& model, const Trajectory& trajectory) {
  Table table("pieces", "dense output: polynomials in the time since start");
  const size_t states = model.states.size();
  Numbers start, length;
  Texts modes;
  size_t widest = 1;  // coefficients of a state: the table has as many columns for each
  for (const Piece& p : trajectory.pieces) {
    start.push_back(p.start);
    length.push_back(p.length);
    modes.push_back(visible_mode(trajectory.arcs[at(p.arc)].mode, model.form.visible).text());
    widest = std::max(widest, p.coefficients.size() / states);
  }
  table.add_numbers("start", std::move(start), "time");
  table.add_numbers("length", std::move(length), "time");
  table.add_texts("mode", std::move(modes));
  for (size_t i = 0; i < states; ++i) {
    for (size_t k = 0; k < widest; ++k) {
      Numbers values;
      for (const Piece& p : trajectory.pieces) {
        const size_t own = p.coefficients.size() / states;
        values.push_back(k < own ? p.coefficients[i * own + k] : 0);
      }
      table.add_numbers(fmt::format("{}[{}]", model.states[i].name, k), std::move(values));
    }
  }
  return table;
}

}  // namespace saltus
