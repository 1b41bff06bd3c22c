// Models from their parts, and what is known of them.
#include "ask/gallery.hpp"
#include "convert.hpp"
#include "expr/print.hpp"
#include "model/build.hpp"
#include "model/period.hpp"
#include "report/model_page.hpp"
#include "report/run_figure.hpp"

namespace saltus::python {
namespace {

std::optional<Fragment> fragment(const py::dict& table, const char* key, const std::string& name) {
  if (!table.contains(key)) return std::nullopt;
  return whole_text(name, table[key].cast<std::string>());
}

Direction direction_of(const py::dict& table) {
  if (!table.contains("direction")) return Direction::any;
  const std::string word = table["direction"].cast<std::string>();
  check_word(word, {"any", "rising", "falling"}, "direction");
  return word == "rising" ? Direction::rising : word == "falling" ? Direction::falling : Direction::any;
}

std::vector<NamedText> named(const py::dict& values, const std::string& where) {
  std::vector<NamedText> list;
  for (const auto& [key, value] : values) {
    const std::string name = key.cast<std::string>();
    list.push_back({whole_text(where, name), whole_text(where + " " + name, value.cast<std::string>())});
  }
  return list;
}

/// A vector (a list of texts) or a matrix (a list of lists).
ArrayText matrix_parameter(const std::string& name, const py::list& rows) {
  ArrayText array{.name = whole_text("parameter", name),
                  .shape = {.name = name, .rows = static_cast<int>(rows.size())}};
  array.shape.matrix = !rows.empty() && py::isinstance<py::list>(rows[0]);
  for (size_t i = 0; i < rows.size(); ++i) {
    py::list row;
    if (array.shape.matrix) {
      row = rows[i].cast<py::list>();
    } else {
      row.append(rows[i]);
    }
    array.shape.columns = static_cast<int>(row.size());
    for (size_t j = 0; j < row.size(); ++j) {
      const std::string value = row[j].cast<std::string>();
      if (value == "0") continue;
      array.entries.push_back(
          {static_cast<int>(i) + 1, static_cast<int>(j) + 1, whole_text("parameter " + name, value)});
    }
  }
  return array;
}

MechanicsText mechanics_of(const py::dict& table) {
  MechanicsText out{.lagrangian = whole_text("lagrangian", table["lagrangian"].cast<std::string>())};
  if (table.contains("forces")) out.forces = named(table["forces"].cast<py::dict>(), "forces");
  out.dissipation = fragment(table, "dissipation", "dissipation");
  return out;
}

/// A model from its parts, as those of a file.
System build(const std::string& name, const std::string& equations, const py::dict& parameters, const py::dict& initial,
             const py::dict& constraints, const py::dict& jumps, const py::dict& sections, const py::dict& mechanics) {
  ModelText text;
  text.name = name;
  text.equations = whole_text("model", equations);
  py::dict scalars;
  for (const auto& [key, value] : parameters) {
    if (py::isinstance<py::list>(value)) {
      text.arrays.push_back(matrix_parameter(key.cast<std::string>(), value.cast<py::list>()));
    } else {
      scalars[key] = value;
    }
  }
  text.parameters = named(scalars, "parameter");
  text.initial = named(initial, "initial");
  if (!mechanics.empty()) text.mechanics = mechanics_of(mechanics);
  for (const auto& [key, value] : constraints) {
    const std::string of = "constraint " + key.cast<std::string>();
    const auto table = value.cast<py::dict>();
    const auto gap = fragment(table, "gap", of), equals = fragment(table, "equals", of);
    if (!gap && !equals)
      throw Error(ErrorKind::usage, of + " has no gap", {},
                  "write {\"gap\": \"q\", \"restitution\": 0.8}, or {\"equals\": \"x^2 + y^2 - 1\"} for a joint");
    if (gap && equals) throw Error(ErrorKind::usage, of + " has both gap and equals", {}, "leave one of them out");
    text.constraints.push_back({.name = whole_text(of, key.cast<std::string>()),
                                .gap = gap ? *gap : *equals,
                                .joint = !gap,
                                .restitution = fragment(table, "restitution", of),
                                .range = fragment(table, "for", of),
                                .friction = fragment(table, "friction", of),
                                .tangential = fragment(table, "restitution_tangential", of)});
    if (!table.contains("slip")) continue;
    for (const auto& slip : table["slip"].cast<py::list>())
      text.constraints.back().slip.push_back(whole_text(of, slip.cast<std::string>()));
  }
  for (const auto& [key, value] : jumps) {
    const std::string of = "jump " + key.cast<std::string>();
    const auto table = value.cast<py::dict>();
    text.jumps.push_back({.name = whole_text(of, key.cast<std::string>()),
                          .on = fragment(table, "on", of),
                          .every = fragment(table, "every", of),
                          .phase = fragment(table, "phase", of),
                          .when = fragment(table, "when", of),
                          .direction = direction_of(table),
                          .set = named(table["set"].cast<py::dict>(), of),
                          .range = fragment(table, "for", of)});
  }
  for (const auto& [key, value] : sections) {
    const std::string of = "section " + key.cast<std::string>();
    const auto table = value.cast<py::dict>();
    text.sections.push_back({.name = whole_text(of, key.cast<std::string>()),
                             .every = fragment(table, "every", of),
                             .on = fragment(table, "on", of),
                             .direction = direction_of(table),
                             .stop = table.contains("stop") && table["stop"].cast<bool>(),
                             .range = fragment(table, "for", of)});
  }
  const py::gil_scoped_release without;
  return System(build_model(text));
}

py::dict facts_of(const System& system) {
  const Model& model = system.model();
  const std::vector<double> parameters = parameter_values(model), initial = initial_values(model, parameters);
  py::dict facts, values, start;
  for (size_t i = 0; i < parameters.size(); ++i) values[py::str(model.parameters[i].name)] = parameters[i];
  for (size_t i = 0; i < initial.size(); ++i) start[py::str(model.states[i].name)] = initial[i];
  facts["name"] = model.name;
  facts["ref"] = model.ref;
  facts["states"] = model.state_names();
  facts["parameters"] = values;
  facts["initial"] = start;
  std::vector<std::string> formulas;
  for (const Parameter& p : model.parameters) formulas.push_back(print(p.value));
  facts["formulas"] = formulas;
  facts["columns"] = quantity_names(model);
  facts["json"] = model_as_json(model);
  const auto period = period_in_time(model, parameters);
  facts["period"] = period ? py::object(py::float_(period->value)) : py::none();
  return facts;
}

}  // namespace

void add_models(py::module_& m) {
  using Release = py::call_guard<py::gil_scoped_release>;
  py::class_<System>(m, "System")
      .def_static("from_file", &System::from_file, Release())
      .def_static("from_text", &System::from_text, Release())
      .def_static("example", &System::example, Release())
      .def("with_values", [](const System& system, const py::dict& parameters,
                             const py::dict& initial) { return system.with(settings(parameters), settings(initial)); })
      .def("facts", &facts_of)
      .def("text", &System::text)
      .def("describe", [](const System& system) { return model_as_text(system.model()); })
      .def("latex", [](const System& system) { return model_as_latex(system.model()); });
  m.def("build", &build);
  m.def("examples", [] {
    py::dict d;
    for (const GalleryModel& g : gallery()) d[py::str(std::string(g.name))] = std::string(g.description());
    return d;
  });
}

}  // namespace saltus::python
