#include "convert.hpp"

#include <limits>
#include <map>

namespace saltus::python {

py::array rows_of(std::vector<double>&& values, size_t width) {
  const size_t rows = width == 0 ? 0 : values.size() / width;
  return array_of(std::move(values), {static_cast<py::ssize_t>(rows), static_cast<py::ssize_t>(width)});
}

py::array complex_of(const std::vector<std::complex<double>>& values) {
  return array_of(std::vector<std::complex<double>>(values));
}

std::vector<Setting> settings(const py::dict& values) {
  std::vector<Setting> list;
  for (const auto& [name, value] : values) list.emplace_back(name.cast<std::string>(), value.cast<std::string>());
  return list;
}

Solve solve_of(const py::dict& options) {
  Solve solve;
  for (const auto& [key, value] : options) {
    const std::string name = key.cast<std::string>();
    if (py::isinstance<py::dict>(value)) {
      for (const Setting& s : settings(value.cast<py::dict>())) solve.give(name, s.name + "=" + s.value);
    } else {
      solve.give(name, value.cast<std::string>());
    }
  }
  return solve;
}

py::dict end_of(const End& end) {
  py::dict d;
  d["why"] = std::string(why_name(end.why));
  d["message"] = end.message;
  d["t"] = end.t;
  d["state"] = array_of(std::vector<double>(end.state));
  d["mode"] = end.mode.text();
  return d;
}

namespace {

/// All events as columns.
py::dict events_of(const std::vector<Event>& events, size_t states) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> t, state, jumped;
  std::vector<std::int64_t> count;
  py::list kind(events.size()), on(events.size()), before(events.size()), after(events.size());
  std::map<std::string, py::str> known;  // the same words again and again
  const auto word = [&](const std::string& text) { return known.try_emplace(text, text).first->second; };
  t.reserve(events.size());
  state.reserve(events.size() * states);
  jumped.reserve(events.size() * states);
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& e = events[i];
    t.push_back(e.t);
    kind[i] = word(std::string(kind_name(e.kind)));
    py::tuple names(e.on.size());
    for (size_t k = 0; k < e.on.size(); ++k) names[k] = word(e.on[k]);
    on[i] = names;
    before[i] = word(e.before.text());
    after[i] = word(e.after.text());
    state.insert(state.end(), e.state.begin(), e.state.end());
    if (e.jumped) {
      jumped.insert(jumped.end(), e.jumped->begin(), e.jumped->end());
    } else {
      jumped.insert(jumped.end(), states, none);
    }
    count.push_back(e.count);
  }
  py::dict d;
  d["t"] = array_of(std::move(t));
  d["kind"] = kind;
  d["on"] = on;
  d["before"] = before;
  d["after"] = after;
  d["state"] = rows_of(std::move(state), states);
  d["jumped"] = rows_of(std::move(jumped), states);
  d["count"] = array_of(std::move(count));
  return d;
}

}  // namespace

py::dict pieces_of(Trajectory& trajectory, const Model& model) {
  const size_t n = static_cast<size_t>(trajectory.states), count = trajectory.pieces.size();
  size_t powers = 1;
  for (const Piece& p : trajectory.pieces) powers = std::max(powers, p.coefficients.size() / n);
  std::vector<double> start(count), length(count), coefficients(count * n * powers);
  py::list modes(count);
  std::vector<py::str> names;
  for (const Arc& arc : trajectory.arcs) names.emplace_back(visible_mode(arc.mode, model.form.visible).text());
  for (size_t i = 0; i < count; ++i) {
    Piece& p = trajectory.pieces[i];
    start[i] = p.start;
    length[i] = p.length;
    modes[i] = names[static_cast<size_t>(p.arc)];
    const size_t own = p.coefficients.size() / n;
    for (size_t s = 0; s < n; ++s)
      std::copy_n(p.coefficients.begin() + static_cast<std::ptrdiff_t>(s * own), own,
                  coefficients.begin() + static_cast<std::ptrdiff_t>((i * n + s) * powers));
    p.coefficients = {};
  }
  trajectory.pieces = {};
  py::dict d;
  d["start"] = array_of(std::move(start));
  d["length"] = array_of(std::move(length));
  d["mode"] = modes;
  d["coefficients"] = array_of(std::move(coefficients), {static_cast<py::ssize_t>(count), static_cast<py::ssize_t>(n),
                                                         static_cast<py::ssize_t>(powers)});
  return d;
}

void add_run(py::dict& d, const Trajectory& run, const Model& model) {
  d["end"] = end_of(run.end);
  d["start_t"] = run.start_time;
  d["start_state"] = array_of(std::vector<double>(run.start_state));
  d["start_mode"] = run.start_mode.text();
  d["steps"] = run.cost.steps;
  d["event_count"] = run.cost.events;
  d["seconds"] = run.cost.seconds;
  py::dict sliding;
  for (size_t i = 0; i < run.sliding.size(); ++i)
    sliding[py::str(model.form.switches[i].name)] = py::make_tuple(run.sliding[i].time, run.sliding[i].largest_error);
  d["sliding"] = sliding;
}

py::dict path_of(const Trajectory& run, const std::vector<std::string>& notes, const Model& model) {
  py::dict d;
  add_run(d, run, model);
  d["events"] = events_of(run.events, model.states.size());
  d["messages"] = notes;
  return d;
}

void add_rows(py::dict& d, Rows& rows) {
  const size_t width = rows.columns.size();
  d["cells"] = rows_of(std::move(rows.cells), width);
  std::vector<double> from, to;
  py::list mode;
  std::vector<py::str> names;
  for (const Mode& m : rows.modes) names.emplace_back(m.text());
  for (const Stay& s : rows.stays) {
    from.push_back(s.from);
    to.push_back(s.to);
    mode.append(names[static_cast<size_t>(s.mode)]);
  }
  d["ribbon"] = py::make_tuple(array_of(std::move(from)), array_of(std::move(to)), mode);
}

}  // namespace saltus::python
