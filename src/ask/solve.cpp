#include "ask/solve.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ask/option_table.hpp"
#include "expr/print.hpp"

namespace saltus {
namespace {

std::string in_quotes(std::string_view name) { return fmt::format("`{}`", name); }

// ---- a field from text ---------------------------------------------------------------------------------------------

void give_field(std::string_view, std::optional<Formula>& field, const std::string& text) { field = Formula(text); }

void give_field(std::string_view name, std::optional<double>& field, const std::string& text) {
  const double value = read_number(text, in_quotes(name));
  check_range(name, value);
  field = value;
}

void give_field(std::string_view, std::optional<std::string>& field, const std::string& text) { field = text; }
void give_field(std::string_view, std::string& field, const std::string& text) { field = text; }

void give_field(std::string_view name, bool& field, const std::string& text) {
  if (!text.empty()) check_word(text, {"true", "false"}, fmt::format("choice for `{}`", name));
  field = text != "false";
}

void give_field(std::string_view name, int& field, const std::string& text) {
  int count = 0;
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (trouble != std::errc() || end != text.data() + text.size() || count < 1)
    misuse(fmt::format("`{}` {}: no number of {}", name, text.empty() ? "''" : text, name),
           "give 1 or more; without it all cores are used");
  field = count;
}

void give_field(std::string_view name, std::vector<Setting>& field, const std::string& text) {
  field.push_back(read_setting(text, in_quotes(name)));
}

// ---- a field as text: nothing where it has none --------------------------------------------------------------------

using OptionTexts = std::optional<std::vector<std::string>>;

OptionTexts texts_of(const std::optional<Formula>& field) { return field ? OptionTexts({field->text}) : OptionTexts(); }
OptionTexts texts_of(const std::optional<double>& field) {
  return field ? OptionTexts({print_number(*field)}) : OptionTexts();
}
OptionTexts texts_of(const std::optional<std::string>& field) { return field ? OptionTexts({*field}) : OptionTexts(); }
OptionTexts texts_of(const std::string& field) { return OptionTexts({field}); }
OptionTexts texts_of(bool field) { return field ? OptionTexts(std::in_place) : OptionTexts(); }
OptionTexts texts_of(int field) { return field != 0 ? OptionTexts({std::to_string(field)}) : OptionTexts(); }
OptionTexts texts_of(const std::vector<Setting>& field) {
  std::vector<std::string> texts;
  for (const Setting& s : field) texts.push_back(fmt::format("{}={}", s.name, s.value));
  return texts.empty() ? OptionTexts() : OptionTexts(std::move(texts));
}

constexpr std::string_view kind_of(const std::optional<Formula>&) { return "formula"; }
constexpr std::string_view kind_of(const std::optional<double>&) { return "number"; }
constexpr std::string_view kind_of(const std::optional<std::string>&) { return "word"; }
constexpr std::string_view kind_of(const std::string&) { return "word"; }
constexpr std::string_view kind_of(bool) { return "flag"; }
constexpr std::string_view kind_of(int) { return "count"; }
constexpr std::string_view kind_of(const std::vector<Setting>&) { return "settings"; }

// ---- checks --------------------------------------------------------------------------------------------------------

void check_field(std::string_view, const std::optional<Formula>&) {}
void check_field(std::string_view, bool) {}

void check_field(std::string_view name, const std::optional<double>& field) {
  if (field) check_range(name, *field);
}
void check_field(std::string_view name, const std::string& field) {
  check_word(field, words_of(name), fmt::format("choice for `{}`", name));
}
void check_field(std::string_view name, const std::optional<std::string>& field) {
  if (field) check_field(name, *field);
}
void check_field(std::string_view name, int field) {
  if (field < 0) misuse(fmt::format("`{0}` {1} is no number of {0}", name, field), "give 1 or more");
}
void check_field(std::string_view name, const std::vector<Setting>& field) {
  for (const Setting& s : field) {
    if (s.value != "+1" && s.value != "1" && s.value != "-1" && s.value != "0")
      misuse(fmt::format("`{}` {}={}: there is no such side", name, s.name, s.value), "sides: +1, -1, 0 (stay)");
  }
}

// ---- what engines are told -----------------------------------------------------------------------------------------

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

/// Complains about options that belong to the other engine.
void check_engine(const Solve& solve, const std::string& engine) {
  if (engine == "event" && (solve.dt || solve.theta || solve.adaptive))
    misuse(fmt::format("{} belongs to the engine 'step'", solve.dt      ? "`dt`"
                                                          : solve.theta ? "`theta`"
                                                                        : "`adaptive`"),
           "add `engine` step");
  if (engine == "step" && solve.flow == "stiff")
    misuse("`flow` stiff belongs to the engine 'event'", "leave out `flow`, or `engine` step");
  if (engine == "both")
    misuse("`engine` both compares single trajectories", "use it with `run`, or choose `engine` event or step");
}

}  // namespace

void Solve::give(std::string_view name, const std::string& text) {
  bool known = false;
  visit(*this, [&](std::string_view option, auto& field) {
    if (option != name) return;
    known = true;
    give_field(name, field, text);
  });
  if (known) return;
  std::vector<std::string> names;
  for (const SolveOption& option : solve_options()) names.push_back(option.name);
  const std::string near = nearest_name(std::string(name), names);
  misuse(fmt::format("there is no option '{}'", name), near.empty() ? "" : fmt::format("did you mean '{}'?", near));
}

std::vector<std::pair<std::string, std::vector<std::string>>> Solve::texts() const {
  std::vector<std::pair<std::string, std::vector<std::string>>> list;
  visit(*this, [&](std::string_view name, const auto& field) {
    if (OptionTexts texts = texts_of(field)) list.emplace_back(name, std::move(*texts));
  });
  return list;
}

void Solve::check() const {
  if (dt && !(*dt > 0 && std::isfinite(*dt)))
    misuse(fmt::format("`dt` {} is no step", print_number(*dt)), "give a positive time");
  if (dt && adaptive)
    misuse("`dt` and `adaptive` exclude each other", "give a fixed step, or let the engine choose it");
  visit(*this, [](std::string_view name, const auto& field) { check_field(name, field); });
}

const std::vector<SolveOption>& solve_options() {
  static const std::vector<SolveOption> all = [] {
    std::vector<SolveOption> list;
    const Solve any;
    Solve::visit(any, [&](std::string_view name, const auto& field) {
      list.push_back({std::string(name), kind_of(field)});
    });
    return list;
  }();
  return all;
}

std::string engine_of(const Solve& solve, const Model& model) {
  return solve.engine.value_or(model.run.engine.value_or("event"));
}

RunOptions run_options(const Solve& solve, const Model& model, std::optional<double> until) {
  solve.check();
  const RunDefaults& file = model.run;
  RunOptions o;
  const std::string engine = engine_of(solve, model);
  check_engine(solve, engine);
  if (engine == "step") {
    const double dt = solve.adaptive ? 0.0 : solve.dt.value_or(file.dt.value_or(0.0));
    o.step = StepOptions{.dt = dt, .theta = solve.theta.value_or(0.5)};
  } else {
    o.stiff = solve.flow == "stiff";
    o.turns_stiff = solve.flow == "auto";
  }
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
  o.zeno_stop = solve.zeno == "stop";
  o.native = solve.native == "on" ? Native::on : solve.native == "off" ? Native::off : Native::automatic;
  for (const Setting& s : solve.leave) o.leave[surface_name(model, s.name)] = s.value == "1" ? '+' : s.value[0];
  o.check(model);
  return o;
}

Solve resolved(const Solve& solve, const RunOptions& options) {
  Solve all = solve;
  all.from = options.from;
  all.until = options.until;
  all.tolerance = options.tolerance;
  all.engine = options.step ? "step" : "event";
  if (options.step) {
    all.adaptive = options.step->dt == 0;
    all.dt = all.adaptive ? std::optional<double>() : options.step->dt;
    all.theta = options.step->theta;
  }
  all.threads = 0;  // of the machine: no result depends on it
  return all;
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
