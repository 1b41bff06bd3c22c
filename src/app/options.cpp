#include "app/options.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ask/gallery.hpp"
#include "ask/past.hpp"
#include "expr/parse.hpp"
#include "expr/print.hpp"
#include "model/clocks.hpp"
#include "model/lower.hpp"
#include "model/read.hpp"

namespace saltus {
namespace {

[[noreturn]] void misuse(std::string message, std::string hint) {
  throw Error(ErrorKind::usage, std::move(message), {}, std::move(hint));
}

/// A formula from the command line. Its mistakes are mistakes of the command line, quoted whole.
Expr read_formula(const std::string& text, const std::string& given, const Names& names) {
  try {
    return parse(whole_text("command line", text), names);
  } catch (const Error& error) {
    const bool near = error.hint().starts_with("did you mean");
    misuse(fmt::format("{}: {}", given, error.message()),
           near ? error.hint() : "give a number or a constant expression such as 1/3 or 2*pi");
  }
}

double finite(double value, const std::string& given) {
  if (!std::isfinite(value)) misuse(fmt::format("{} is {}", given, print_number(value)), "give a finite number");
  return value;
}

Names constants() {
  Names names;
  names.forbid("t", "the value must be constant");
  return names;
}

Names constants_and_parameters(const Model& model) {
  Names names = constants();
  for (size_t i = 0; i < model.parameters.size(); ++i)
    names.add(model.parameters[i].name, parameter_symbol(model, static_cast<int>(i)), "a parameter");
  for (size_t i = 0; i < model.definitions.size(); ++i) {
    const Expr& value = model.form.definitions[i];
    const auto used = symbols_in(std::span(&value, 1));
    if (std::all_of(used.begin(), used.end(), [](const Expr& s) {
          return s.is_symbol(SymbolKind::parameter) || s.is_symbol(SymbolKind::constant);
        }))
      names.add(model.definitions[i].name, value, "a name with an equation");
  }
  return names;
}

/// The index of a name among those of its kind, or a complaint that names the nearest.
size_t find_name(const Setting& s, const std::vector<std::string>& known, std::string_view option,
                 std::string_view kind, const std::vector<std::string>& others, std::string_view other_option) {
  const auto it = std::find(known.begin(), known.end(), s.name);
  if (it != known.end()) return static_cast<size_t>(it - known.begin());
  std::string hint;
  if (std::find(others.begin(), others.end(), s.name) != others.end()) {
    hint = fmt::format("write {} {}={}", other_option, s.name, s.value);
  } else if (const std::string near = nearest_name(s.name, known); !near.empty()) {
    hint = fmt::format("did you mean '{}'?", near);
  } else if (known.empty()) {
    hint = fmt::format("the model has no {}", kind);
  } else {
    const size_t shown = std::min<size_t>(known.size(), 20);
    hint =
        fmt::format("known: {}{}", fmt::join(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                    known.size() > shown ? ", ..." : "");
  }
  misuse(fmt::format("{} {}={}: the model has no {} '{}'", option, s.name, s.value, kind, s.name), hint);
}

void set_parameters(Model& model, const std::vector<Setting>& settings) {
  const auto known = model.parameter_names();
  for (const Setting& s : settings) {
    const std::string given = fmt::format("-p {}={}", s.name, s.value);
    const size_t i = find_name(s, known, "-p", "parameter", model.state_names(), "-x");
    if (std::find(model.unused.begin(), model.unused.end(), s.name) != model.unused.end())
      misuse(fmt::format("{}: nothing in the model depends on '{}'", given, s.name),
             "'saltus check' shows the equations");
    model.parameters[i].value = read_formula(s.value, given, constants_and_parameters(model));
    if (const auto circle = parameter_circle(model); !circle.empty())
      misuse(fmt::format("{}: '{}' is given by itself", given, s.name), "break the circle: give a number");
  }
  const auto values = parameter_values(model);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    const auto own = std::find_if(settings.begin(), settings.end(),
                                  [&](const Setting& s) { return s.name == model.parameters[i].name; });
    misuse(fmt::format("{} is {}",
                       own != settings.end() ? fmt::format("-p {}={}", own->name, own->value)
                                             : fmt::format("the parameter '{}'", model.parameters[i].name),
                       print_number(values[i])),
           "give a finite number");
  }
}

/// Whether a setting changes which equations there are, so that the file must be read again.
bool changes_structure(const Model& model, const std::vector<Setting>& settings) {
  return std::any_of(settings.begin(), settings.end(), [&](const Setting& s) {
    return std::any_of(model.structural.begin(), model.structural.end(),
                       [&](int i) { return model.parameters[static_cast<size_t>(i)].name == s.name; });
  });
}

void set_initial(Model& model, const std::vector<Setting>& settings) {
  const auto known = model.state_names();
  for (const Setting& s : settings) {
    const size_t i = find_name(s, known, "-x", "state", model.parameter_names(), "-p");
    model.states[i].initial =
        read_formula(s.value, fmt::format("-x {}={}", s.name, s.value), constants_and_parameters(model));
  }
}

/// What reading a file checks under the file's parameters, once more under the new ones.
void check_values(const Model& model) {
  const auto parameters = parameter_values(model);
  const auto initial = initial_values(model, parameters);
  for (size_t i = 0; i < initial.size(); ++i) {
    if (std::isfinite(initial[i])) continue;
    misuse(fmt::format("the initial value of '{}' is {}", model.states[i].name, print_number(initial[i])),
           "choose parameters and initial values that give a finite number");
  }
  try {
    check_clocks(model, parameters);
  } catch (const Error& error) {  // the file is right, the values given are not
    misuse(error.message(), error.hint());
  }
}

/// From the orbit or equilibrium that a past search has found.
void start_there(Model& model, const Past::Start& start) {
  const std::vector<std::string> names = model.state_names();
  for (const auto& [name, value] : start.state) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) model.states[static_cast<size_t>(found - names.begin())].initial = value;
  }
  model.run.from = start.t;
}

/// The text of a model, once: standard input cannot be read again.
struct ModelSource {
  std::string name;
  std::optional<std::string> text{};   ///< nothing: a file, to be opened by its name
  std::optional<Past::Start> start{};  ///< of a past search for an orbit

  Model read(const Replacements& parameters = {}) const {
    return text ? read_model_text(*text, name, parameters) : read_model(name, parameters);
  }
};

ModelSource find_model(const std::string& name) {
  if (name == "-") return {"standard input", std::string(std::istreambuf_iterator<char>(std::cin), {})};
  std::error_code ignored;
  const bool shadow = std::filesystem::is_directory(name, ignored) && find_in_gallery(name);
  if (std::filesystem::exists(name, ignored) && !shadow) {
    const auto past = read_past(name);
    return past ? ModelSource{name, past->model, past->start} : ModelSource{name};
  }
  if (const auto found = find_in_gallery(name)) return {name, std::string(found->text)};
  const std::string near = nearest_in_gallery(short_name(name));
  if (near.empty()) return {name};  // reading says why it cannot be opened
  throw Error(
      ErrorKind::file, fmt::format("there is no file '{}'", name), {},
      fmt::format("the gallery has '{}': 'saltus examples {} > {}.toml' writes it to a file", near, near, near));
}

}  // namespace

void check_word(const std::string& word, const std::vector<std::string>& known, std::string_view what) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  const std::string near = nearest_name(word, known);
  misuse(fmt::format("unknown {} '{}'", what, word),
         near.empty() ? fmt::format("known: {}", fmt::join(known, ", ")) : fmt::format("did you mean '{}'?", near));
}

void SolveOptions::check() const {
  if (tolerance && !(*tolerance >= 1e-15 && *tolerance <= 0.1))
    misuse(fmt::format("--tolerance {} is out of range", print_number(*tolerance)),
           "a tolerance lies between 1e-15 and 0.1");
  if (dt && !(*dt > 0 && std::isfinite(*dt)))
    misuse(fmt::format("--dt {} is no step", print_number(*dt)), "give a positive time");
  if (theta && !(*theta >= 0.5 && *theta <= 1))
    misuse(fmt::format("--theta {} is out of range", print_number(*theta)),
           "theta lies between 0.5 (accurate) and 1 (backward Euler)");
  if (dt && adaptive)
    misuse("--dt and --adaptive exclude each other", "give a fixed step, or let the engine choose it");
  if (engine) check_word(*engine, {"event", "step", "both"}, "engine");
  check_word(flow, {"taylor", "stiff"}, "flow");
  check_word(zeno, {"complete", "stop"}, "choice for --zeno");
  if (attract && !(*attract >= 0 && *attract <= 1e12))
    throw Error(ErrorKind::usage, fmt::format("--attract {}", *attract), {}, "give a number from 0 to 1e12");
  for (const Setting& s : leave) {
    if (s.value != "+1" && s.value != "1" && s.value != "-1" && s.value != "0")
      misuse(fmt::format("--leave {}={}: there is no such side", s.name, s.value), "sides: +1, -1, 0 (stay)");
  }
  if (threads < 0) misuse(fmt::format("-j {} is no number of threads", threads), "give 1 or more");
}

void OutputOptions::check() const {
  if (force && folder.empty())
    misuse("--force without -o: there is nothing to replace", "name the folder whose results are replaced: -o DIR");
  check_word(format, {"csv", "h5"}, "format");
  const std::string kind = std::filesystem::path(picture).extension().string();
  if (!picture.empty() && kind != ".svg" && kind != ".png" && kind != ".pdf")
    misuse(fmt::format("--plot {}: unknown kind of picture", picture), "name a file .svg, .png or .pdf");
}

Setting read_setting(std::string_view text, std::string_view option) {
  const size_t equals = text.find('=');
  const auto trim = [](std::string_view s) {
    while (s.starts_with(' ')) s.remove_prefix(1);
    while (s.ends_with(' ')) s.remove_suffix(1);
    return std::string(s);
  };
  Setting s{trim(text.substr(0, equals)), equals == text.npos ? "" : trim(text.substr(equals + 1))};
  if (equals == text.npos || s.name.empty() || s.value.empty())
    misuse(fmt::format("{} {}: this is not NAME=VALUE", option, text), fmt::format("write {} NAME=0.3", option));
  return s;
}

double read_number(const std::string& text, std::string_view option) {
  const std::string given = fmt::format("{} {}", option, text);
  return finite(constant_value(read_formula(text, given, constants()), {}), given);
}

double read_number(const std::string& text, std::string_view option, const Model& model) {
  const std::string given = fmt::format("{} {}", option, text);
  return finite(constant_value(read_formula(text, given, constants_and_parameters(model)), parameter_values(model)),
                given);
}

Expr read_formula(const std::string& text, std::string_view given, const Model& model) {
  return read_formula(text, std::string(given), constants_and_parameters(model));
}

Model load_model(const ModelOptions& options, const std::optional<std::string>& from) {
  const ModelSource source = find_model(options.model);
  Model model = source.read();
  if (changes_structure(model, options.parameters)) {
    Replacements anew;
    for (const Setting& s : options.parameters) anew.emplace_back(s.name, s.value);
    model = source.read(anew);
  }
  if (source.start && !options.as_given) start_there(model, *source.start);
  if (!options.parameters.empty() || !options.initial.empty()) {
    set_parameters(model, options.parameters);
    set_initial(model, options.initial);
    check_values(model);
    if (!options.parameters.empty()) lower(model);  // degrees and interactions may depend on values
  }
  const auto parameters = parameter_values(model);
  const double t = from             ? read_number(*from, "--from", model)
                   : model.run.from ? constant_value(*model.run.from, parameters)
                                    : 0.0;
  check_start(model, parameters, initial_values(model, parameters), t);
  return model;
}

std::string short_name(const std::string& model) {
  if (model == "-") return "model";
  const std::filesystem::path path(model);
  const std::string stem = path.stem().string();
  if (stem == "run") {
    if (const auto past = read_past(model)) return past->name;
  }
  if (stem != "model") return stem;
  const std::string folder = std::filesystem::absolute(path).parent_path().filename().string();
  return folder.empty() ? stem : folder;
}

}  // namespace saltus
