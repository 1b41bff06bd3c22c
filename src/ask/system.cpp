#include "ask/system.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ask/gallery.hpp"
#include "expr/print.hpp"
#include "model/clocks.hpp"
#include "model/lower.hpp"
#include "model/program.hpp"
#include "model/read.hpp"
#include "model/start.hpp"

namespace saltus {
namespace {

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
    const std::string given = fmt::format("`parameter` {}={}", s.name, s.value);
    const size_t i = find_name(s, known, "`parameter`", "parameter", model.state_names(), "`initial`");
    if (std::find(model.unused.begin(), model.unused.end(), s.name) != model.unused.end())
      misuse(fmt::format("{}: nothing in the model depends on '{}'", given, s.name), "`check` shows the equations");
    model.parameters[i].value = read_formula(s.value, given, model);
    if (const auto circle = parameter_circle(model); !circle.empty())
      misuse(fmt::format("{}: '{}' is given by itself", given, s.name), "break the circle: give a number");
  }
  const auto values = parameter_values(model);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    const auto own = std::find_if(settings.begin(), settings.end(),
                                  [&](const Setting& s) { return s.name == model.parameters[i].name; });
    misuse(fmt::format("{} is {}",
                       own != settings.end() ? fmt::format("`parameter` {}={}", own->name, own->value)
                                             : fmt::format("the parameter '{}'", model.parameters[i].name),
                       print_number(values[i])),
           "give a finite number");
  }
}

/// True if a setting changes which equations there are, so that the file must be read again.
bool changes_structure(const Model& model, const std::vector<Setting>& settings) {
  return std::any_of(settings.begin(), settings.end(), [&](const Setting& s) {
    return std::any_of(model.structural.begin(), model.structural.end(),
                       [&](int i) { return model.parameters[static_cast<size_t>(i)].name == s.name; });
  });
}

void set_initial(Model& model, const std::vector<Setting>& settings) {
  const auto known = model.state_names();
  for (const Setting& s : settings) {
    const size_t i = find_name(s, known, "`initial`", "state", model.parameter_names(), "`parameter`");
    model.states[i].initial = read_formula(s.value, fmt::format("`initial` {}={}", s.name, s.value), model);
  }
}

/// Repeats, under new parameters, the checks made when the file was read.
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

/// From the orbit or equilibrium that a past search has found; when it was there matters only where time does.
void start_there(Model& model, const Past::Start& start) {
  const std::vector<std::string> names = model.state_names();
  for (const auto& [name, value] : start.state) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) model.states[static_cast<size_t>(found - names.begin())].initial = value;
  }
  if (!model.autonomous()) model.run.from = start.t;
}

Model read(const ModelSource& source, const Replacements& parameters = {}) {
  return source.text ? read_model_text(*source.text, source.name, parameters) : read_model(source.name, parameters);
}

/// The later of two settings of one name stands, at its own place.
void add_settings(std::vector<Setting>& settings, const std::vector<Setting>& more) {
  for (const Setting& s : more) {
    std::erase_if(settings, [&](const Setting& other) { return other.name == s.name; });
    settings.push_back(s);
  }
}

}  // namespace

Model make_model(const ModelSource& source, const ModelSettings& settings) {
  Model model = read(source);
  if (changes_structure(model, settings.parameters)) {
    Replacements anew;
    for (const Setting& s : settings.parameters) anew.emplace_back(s.name, s.value);
    model = read(source, anew);
  }
  if (source.start && !settings.as_given) start_there(model, *source.start);
  if (!settings.parameters.empty() || !settings.initial.empty()) {
    set_parameters(model, settings.parameters);
    set_initial(model, settings.initial);
    check_values(model);
    if (!settings.parameters.empty()) lower(model);  // degrees and interactions may depend on values
  }
  const auto parameters = parameter_values(model);
  const double t = settings.from    ? read_number(settings.from->text, "`from`", model)
                   : model.run.from ? constant_value(*model.run.from, parameters)
                                    : 0.0;
  const bool joints_later = true;  // a run may project them
  check_start(model, parameters, initial_values(model, parameters), t, joints_later);
  return model;
}

struct System::Content {
  ModelSource source;
  ModelSettings settings;
  std::string name;
  Model model;
  /// By the strength of attraction; made on first use.
  mutable std::mutex mutex{};
  mutable std::vector<std::pair<double, std::unique_ptr<const Program>>> programs{};
};

System::System(ModelSource source, ModelSettings settings, const std::string& name) {
  Model model = make_model(source, settings);
  if (model.name.empty()) model.name = name;
  content_.reset(new Content{std::move(source), std::move(settings), name, std::move(model)});
}

System::System(const Model& model) : System(ModelSource{"model", write_model(model)}) {}

System System::from_file(const std::string& path) {
  const auto past = read_past(path);
  return past ? System({path, past->model, past->start}, {}, past->name) : System({path}, {}, short_name(path));
}

System System::from_text(std::string_view text, std::string_view name) {
  return System({std::string(name), std::string(text)}, {}, std::string(name));
}

System System::example(std::string_view name) {
  if (const auto found = find_in_gallery(name)) return from_text(found->text, found->name);
  const std::string near = nearest_in_gallery(name);
  misuse(fmt::format("the gallery has no model '{}'", name),
         near.empty() ? "`examples` lists its models" : fmt::format("did you mean '{}'?", near));
}

System System::with(const std::vector<Setting>& parameters, const std::vector<Setting>& initial,
                    const std::optional<Formula>& from) const {
  if (parameters.empty() && initial.empty() && !from) return *this;
  ModelSettings settings = content_->settings;
  add_settings(settings.parameters, parameters);
  add_settings(settings.initial, initial);
  if (from) settings.from = from;
  return System(content_->source, std::move(settings), content_->name);
}

const ModelSource& System::source() const { return content_->source; }

const Model& System::model() const { return content_->model; }

const Program& System::program(double attract) const {
  const std::lock_guard lock(content_->mutex);
  for (const auto& [strength, program] : content_->programs) {
    if (strength == attract) return *program;
  }
  content_->programs.emplace_back(attract, std::make_unique<const Program>(content_->model, attract));
  return *content_->programs.back().second;
}

std::string System::text() const { return write_model(content_->model); }

}  // namespace saltus
