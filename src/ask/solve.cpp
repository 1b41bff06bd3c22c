#include "ask/solve.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ask/option_table.hpp"
#include "expr/print.hpp"

namespace saltus {
namespace {

/// The surface that was meant; spaces do not count.
std::string surface_name(const Model& model, const std::string& given) {
  const auto packed = [](std::string s) {
    std::erase(s, ' ');
    return s;
  };
  for (const Switch& s : model.form.switches) {
    if (packed(s.name) == packed(given)) return s.name;
  }
  return given;  // the engine's check complains
}

char side_of(const Setting& s) {
  if (s.value != "+1" && s.value != "1" && s.value != "-1" && s.value != "0")
    throw Error(ErrorKind::usage, fmt::format("`leave` {}={}: there is no such side", s.name, s.value), {},
                "sides: +1, -1, 0 (stay)");
  return s.value == "1" ? '+' : s.value[0];
}

Engine engine_of(const Solve& solve, const RunDefaults& file) {
  if (solve.engine) return *solve.engine;
  if (file.engine == "step") return TimeStepping();
  return EventDriven();
}

}  // namespace

RunOptions run_options(const Solve& solve, const Model& model, std::optional<double> until) {
  const RunDefaults& file = model.run;
  RunOptions o;
  const Engine engine = engine_of(solve, file);
  if (const auto* step = std::get_if<TimeStepping>(&engine)) {
    o.step = StepOptions{.dt = step->dt ? *step->dt : file.dt.value_or(0.0), .theta = step->theta};
  } else {
    const EventDriven& events = std::get<EventDriven>(engine);
    o.stiff = events.stiff;
    o.turns_stiff = events.automatic && !events.stiff;
  }
  check_range("attract", solve.attract);
  o.parameters = parameter_values(model);
  o.initial = initial_values(model, o.parameters);
  o.from = solve.from  ? read_number(solve.from->text, "`from`", model)
           : file.from ? constant_value(*file.from, o.parameters)
                       : 0.0;
  if (solve.until) {
    o.until = read_number(solve.until->text, "`until`", model);
  } else if (until) {
    o.until = *until;
  } else if (file.until) {
    o.until = constant_value(*file.until, o.parameters);
  } else {
    throw Error(ErrorKind::usage, "neither `until` nor the model says when to end", {},
                "give `until` TIME, or 'until' in the model's table [run]");
  }
  o.tolerance = solve.tolerance.value_or(file.tolerance.value_or(o.tolerance));
  o.project = solve.project;
  o.zeno_stop = solve.zeno_stop;
  o.native = solve.native;
  for (const Setting& s : solve.leave) o.leave[surface_name(model, s.name)] = side_of(s);
  o.check(model);
  return o;
}

std::vector<std::string> notes_on(const Model& model) {
  std::vector<std::string> notes;
  const std::vector<double> parameters = parameter_values(model);
  for (const Constraint& c : model.constraints) {
    if (!c.restitution) continue;
    const double r = constant_value(*c.restitution, parameters);  // nan where it depends on states
    if (r > 1)
      notes.push_back(fmt::format("the restitution of '{}' is {}: impacts add energy", c.name, print_number(r)));
  }
  return notes;
}

namespace {

/// Its place among the names of its kind.
int find_among(const std::vector<std::string>& known, const std::string& name, const std::string& option,
               std::string_view kind) {
  const auto found = std::find(known.begin(), known.end(), name);
  if (found != known.end()) return static_cast<int>(found - known.begin());
  const std::string near = nearest_name(name, known);
  throw Error(
      ErrorKind::usage, fmt::format("{}: there is no {} '{}'", option, kind, name), {},
      near.empty() ? fmt::format("{}s: {}", kind, fmt::join(known, ", ")) : fmt::format("did you mean '{}'?", near));
}

}  // namespace

int find_state(const Model& model, const std::string& name, const std::string& option) {
  return find_among(model.state_names(), name, option, "state");
}

int find_parameter(const Model& model, const std::string& name, const std::string& option) {
  return find_among(model.parameter_names(), name, option, "parameter");
}

int find_section(const Model& model, const std::string& name) {
  std::vector<std::string> known;
  for (const Section& s : model.sections) known.push_back(s.name);
  const std::string list = fmt::format("sections: {}", fmt::join(known, ", "));
  if (known.empty())
    throw Error(ErrorKind::usage, "the model has no section", {},
                "add a table such as [section.turn] with on = \"v\", or every = \"2*pi/omega\"");
  if (name.empty() && known.size() > 1)
    throw Error(ErrorKind::usage, "the model has several sections", {}, "choose with `section`; " + list);
  for (size_t i = 0; i < known.size(); ++i) {
    if (name.empty() || known[i] == name) return static_cast<int>(i);
  }
  const std::string near = nearest_name(name, known);
  throw Error(ErrorKind::usage, fmt::format("there is no section '{}'", name), {},
              near.empty() ? list : fmt::format("did you mean '{}'?", near));
}

}  // namespace saltus
