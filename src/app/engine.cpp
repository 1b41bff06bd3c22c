#include "app/engine.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

}  // namespace

std::string engine_of(const SolveOptions& solve, const Model& model) {
  return solve.engine.value_or(model.run.engine.value_or("event"));
}

RunOptions run_options(const SolveOptions& solve, const Model& model, std::optional<double> until) {
  solve.check();
  const RunDefaults& file = model.run;
  const std::string engine = engine_of(solve, model);
  if (engine == "event" && (solve.dt || solve.theta || solve.adaptive))
    throw Error(ErrorKind::usage,
                fmt::format("{} belongs to the engine 'step'", solve.dt      ? "--dt"
                                                               : solve.theta ? "--theta"
                                                                             : "--adaptive"),
                {}, "add --engine step");
  if (engine == "both")
    throw Error(ErrorKind::usage, "--engine both compares single trajectories", {},
                "use it with 'saltus run', or choose --engine event or step");
  RunOptions o;
  if (engine == "step") {
    o.step.emplace();
    o.step->dt = solve.dt ? *solve.dt : solve.adaptive ? 0.0 : file.dt.value_or(0.0);
    o.step->theta = solve.theta.value_or(o.step->theta);
  }
  o.parameters = parameter_values(model);
  o.initial = initial_values(model, o.parameters);
  o.from = solve.from  ? read_number(*solve.from, "--from", model)
           : file.from ? constant_value(*file.from, o.parameters)
                       : 0.0;
  if (solve.until) {
    o.until = read_number(*solve.until, "--until", model);
  } else if (until) {
    o.until = *until;
  } else if (file.until) {
    o.until = constant_value(*file.until, o.parameters);
  } else {
    throw Error(ErrorKind::usage, "neither the command line nor the model says when to end", {},
                "give --until TIME, or 'until' in the model's table [run]");
  }
  o.tolerance = solve.tolerance.value_or(file.tolerance.value_or(o.tolerance));
  o.stiff = solve.flow == "stiff";
  o.zeno_stop = solve.zeno == "stop";
  for (const Setting& s : solve.leave) o.leave[surface_name(model, s.name)] = s.value == "1" ? '+' : s.value[0];
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

int find_section(const Model& model, const std::string& name) {
  std::vector<std::string> known;
  for (const Section& s : model.sections) known.push_back(s.name);
  const std::string list = fmt::format("sections: {}", fmt::join(known, ", "));
  if (known.empty())
    throw Error(ErrorKind::usage, "the model has no section", {},
                "add a table such as [section.turn] with on = \"v\", or every = \"2*pi/omega\"");
  if (name.empty() && known.size() > 1)
    throw Error(ErrorKind::usage, "the model has several sections", {}, "choose with --section; " + list);
  for (size_t i = 0; i < known.size(); ++i) {
    if (name.empty() || known[i] == name) return static_cast<int>(i);
  }
  const std::string near = nearest_name(name, known);
  throw Error(ErrorKind::usage, fmt::format("there is no section '{}'", name), {},
              near.empty() ? list : fmt::format("did you mean '{}'?", near));
}

std::vector<Past::Option> recorded(const SolveOptions& solve, const RunOptions& options) {
  std::vector<Past::Option> list{{"from", {print_number(options.from)}},
                                 {"until", {print_number(options.until)}},
                                 {"tolerance", {print_number(options.tolerance)}},
                                 {"engine", {options.step ? "step" : "event"}},
                                 {"flow", {solve.flow}},
                                 {"zeno", {solve.zeno}}};
  if (options.step) {
    list.push_back({"theta", {print_number(options.step->theta)}});
    if (options.step->dt > 0) list.push_back({"dt", {print_number(options.step->dt)}});
    if (options.step->dt == 0) list.push_back({"adaptive", {}});
  }
  Past::Option leave{"leave", {}};
  for (const Setting& s : solve.leave) leave.second.push_back(s.name + "=" + s.value);
  if (!leave.second.empty()) list.push_back(leave);
  if (solve.attract) list.push_back({"attract", {print_number(*solve.attract)}});
  return list;
}

std::vector<Past::Option> recorded(const OutputOptions& output) {
  std::vector<Past::Option> list{{"format", {output.format}}};
  if (!output.plot) list.push_back({"no-plot", {}});
  if (!output.show.empty()) list.push_back({"show", output.show});
  if (!output.range.empty()) list.push_back({"range", output.range});
  if (output.equal) list.push_back({"equal", {}});
  if (output.log_x) list.push_back({"log-x", {}});
  if (output.log_y) list.push_back({"log-y", {}});
  return list;
}

}  // namespace saltus
