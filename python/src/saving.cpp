// A run again as what `saltus run` draws and writes, from the arrays of its answer.
#include <filesystem>
#include <limits>
#include <map>

#include <fmt/ranges.h>

#include "ask/past.hpp"
#include "convert.hpp"
#include "expr/print.hpp"
#include "out/hdf5.hpp"
#include "out/svg.hpp"
#include "out/write.hpp"
#include "report/run_figure.hpp"

namespace saltus::python {
namespace {

/// "+0|c" -> switches and constraints.
Mode mode_of(const std::string& text) {
  const size_t bar = text.find('|');
  return {text.substr(0, bar), bar == text.npos ? "" : text.substr(bar + 1)};
}

EventKind kind_of(const std::string& name) {
  int kind = 0;
  while (kind_name(static_cast<EventKind>(kind)) != name && kind < static_cast<int>(EventKind::mode)) ++kind;
  return static_cast<EventKind>(kind);
}

std::vector<Event> events_from(const py::dict& kept, size_t states) {
  const auto t = kept["t"].cast<Columns>(), state = kept["state"].cast<Columns>(),
             jumped = kept["jumped"].cast<Columns>();
  const auto kind = kept["kind"].cast<std::vector<std::string>>();
  const auto on = kept["on"].cast<std::vector<std::vector<std::string>>>();
  const auto before = kept["before"].cast<std::vector<std::string>>(),
             after = kept["after"].cast<std::vector<std::string>>();
  const auto count = kept["count"].cast<std::vector<long>>();
  std::vector<Event> events(kind.size());
  for (size_t i = 0; i < events.size(); ++i) {
    const double *x = state.data() + i * states, *former = jumped.data() + i * states;
    events[i] = {.t = t.data()[i],
                 .kind = kind_of(kind[i]),
                 .on = on[i],
                 .before = mode_of(before[i]),
                 .after = mode_of(after[i]),
                 .state = {x, x + states},
                 .count = count[i]};
    if (std::any_of(former, former + states, [](double v) { return !std::isnan(v); }))
      events[i].jumped = std::vector<double>(former, former + states);
  }
  return events;
}

/// Rows with the stretches of time in a mode; marks at the events, unless there are too many to be seen.
Rows rows_from(const Model& model, const py::dict& kept, const std::vector<Event>& events) {
  constexpr size_t most_marks = 2000;
  Rows rows{.columns = quantity_names(model)};
  const auto cells = kept["cells"].cast<Columns>();
  rows.cells.assign(cells.data(), cells.data() + cells.size());
  const auto from = kept["from"].cast<std::vector<double>>(), to = kept["to"].cast<std::vector<double>>();
  const auto modes = kept["mode"].cast<std::vector<std::string>>();
  std::map<std::string, int> known;
  for (size_t i = 0; i < modes.size(); ++i) {
    const auto [place, fresh] = known.try_emplace(modes[i], static_cast<int>(rows.modes.size()));
    if (fresh) rows.modes.push_back(mode_of(modes[i]));
    rows.stays.push_back({from[i], to[i], place->second});
  }
  for (size_t i = 0; i < events.size() && events.size() <= most_marks; ++i) {
    std::vector<double> row(rows.columns.size(), std::numeric_limits<double>::quiet_NaN());
    row[0] = events[i].t;
    std::copy(events[i].state.begin(), events[i].state.end(), row.begin() + 1);
    rows.mark_cells.insert(rows.mark_cells.end(), row.begin(), row.end());
    rows.mark_kinds.emplace_back(kind_name(events[i].kind));
  }
  return rows;
}

/// The picture of a run, as `saltus run` draws it, from the arrays of its answer.
std::string run_svg(const System& system, const py::dict& kept, const py::dict& kept_events) {
  const Model& model = system.model();
  const Rows rows = rows_from(model, kept, events_from(kept_events, model.states.size()));
  const py::gil_scoped_release without;
  std::vector<Table> tables{data_table(model, rows)};
  Picturing picturing = picture_run(model, rows, tables.front(), {});
  for (Table& table : picturing.tables) tables.push_back(std::move(table));
  return draw_svg(picturing.figure, tables);
}

/// The rows as FILE.csv, rows and events as FILE.h5, or each as a .csv of a folder that is there.
void write_run(const System& system, const py::dict& kept, const py::dict& kept_events, const std::string& target) {
  const Model& model = system.model();
  const std::vector<Event> events = events_from(kept_events, model.states.size());
  const Rows rows = rows_from(model, kept, events);
  const py::gil_scoped_release without;
  const std::vector<Table> tables{data_table(model, rows), events_table(model, events)};
  const std::filesystem::path path(target);
  if (path.extension() == ".csv") {
    write_csv(path, tables.front());
  } else if (path.extension() == ".h5") {
    write_hdf5(path, tables);
  } else {
    write_tables(path, tables);
  }
}

/// The run.toml from which `saltus again` repeats a run that began at `start`.
std::string run_record(const System& system, const std::string& name, const py::dict& options,
                       const std::vector<double>& start, const std::string& sample,
                       const std::optional<std::vector<std::string>>& sensitivity,
                       const std::vector<std::string>& measures, const std::string& window) {
  std::vector<Setting> initial;
  for (size_t i = 0; i < start.size(); ++i) initial.emplace_back(system.model().states[i].name, print_number(start[i]));
  const System begun = system.with({}, initial);
  const Solve words = solve_of(options);
  const RunPlan planned = plan({.system = begun, .solve = words, .sensitivity = sensitivity});
  Past past{.version = this_version(),
            .command = "run",
            .name = name,
            .model = begun.text(),
            .files = table_files(begun.model()),
            .options = recorded(words, planned.options)};
  past.options.push_back({"sample", {sample}});
  if (sensitivity)
    past.options.push_back({"sensitivity", sensitivity->empty()
                                               ? std::vector<std::string>{}
                                               : std::vector{fmt::format("{}", fmt::join(*sensitivity, ","))}});
  if (!measures.empty()) past.options.push_back({"measure", measures});
  if (!window.empty()) past.options.push_back({"window", {window}});
  return write_past(past);
}

}  // namespace

void add_saving(py::module_& m) {
  m.def("run_svg", &run_svg);
  m.def("write_run", &write_run);
  m.def("run_record", &run_record);
}

}  // namespace saltus::python
