#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/checkpoint.hpp"
#include "app/commands.hpp"
#include "app/engine.hpp"
#include "app/orbit.hpp"
#include "app/range.hpp"
#include "app/result_folder.hpp"
#include "app/view.hpp"
#include "report/branch.hpp"

namespace saltus {
namespace {

FollowRange read_follow_range(const std::string& text) {
  const Setting s = read_setting(text, "", "name a parameter and its range: omega=0.5:3");
  const std::vector<std::string> ends = split_list(s.value, ':');
  if (ends.size() != 2 || ends[0].empty() || ends[1].empty())
    misuse(fmt::format("{}: this is no range", text), "write its two ends: omega=0.5:3");
  return {s.name, ends[0], ends[1], text};
}

std::vector<FollowRange> read_ranges(const std::vector<std::string>& texts) {
  std::vector<FollowRange> ranges;
  for (const std::string& text : texts) ranges.push_back(read_follow_range(text));
  return ranges;
}

// ---- what is recorded ----------------------------------------------------------------------------------------------

Past past_of(const FollowRequest& request, const FollowQuestion& question, const RunOptions& options) {
  const OrbitQuestion& start = question.start;
  Past past{.version = this_version(),
            .command = "follow",
            .name = short_name(request.start.model.model),
            .model = start.system.text(),
            .files = table_files(start.system.model()),
            .options = recorded(request.start.solve, options)};
  std::vector<std::string> ranges, modulo;
  for (const FollowRange& r : question.ranges) ranges.push_back(r.given);
  for (const Setting& s : start.modulo) modulo.push_back(s.name + "=" + s.value);
  past.options.push_back({"range-of", ranges});
  if (!start.section.empty()) past.options.push_back({"section", {start.section}});
  if (start.guess) past.options.push_back({"guess", {}});
  if (start.period > 0) past.options.push_back({"period", {fmt::format("{}", start.period)}});
  if (start.time) past.options.push_back({"time", {start.time->text}});
  if (start.backward) past.options.push_back({"backward", {}});
  if (question.equilibrium) past.options.push_back({"equilibrium", {}});
  if (!modulo.empty()) past.options.push_back({"modulo", modulo});
  if (question.all) past.options.push_back({"all", {}});
  if (question.seek) {
    past.options.push_back({"seek", {fmt::format("{}={:.17g}", question.seek->type, question.seek->value)}});
    past.options.push_back({"of", {question.of}});
  }
  if (!request.over.empty()) past.options.push_back({"over", {request.over}});
  past.options.push_back({"points", {fmt::format("{}", question.points)}});
  if (question.step) past.options.push_back({"step", {fmt::format("{:.17g}", *question.step)}});
  if (question.longest_time) past.options.push_back({"longest-time", {question.longest_time->text}});
  if (!request.measure.empty()) past.options.push_back({"measure", {request.measure}});
  for (Past::Option& option : recorded(request.start.output)) past.options.push_back(std::move(option));
  return past;
}

Past::Start start_at(const Model& model, double t, double period, const std::vector<double>& x) {
  Past::Start start{.t = t, .period = period};
  for (size_t i = 0; i < x.size(); ++i) start.state.emplace_back(model.states[i].name, x[i]);
  return start;
}

void keep_special(Past& past, const Model& model, const Branch& branch) {
  for (const SpecialPoint& s : branch.special) {
    past.special.push_back({.label = s.label,
                            .type = s.type,
                            .values = s.values,
                            .at = start_at(model, s.t, s.period, s.state),
                            .near = start_at(model, s.near_t, s.near_period, s.near_state),
                            .near_values = s.near_values});
  }
}

// ---- special points as starts --------------------------------------------------------------------------------------

const std::vector<std::string>* option_of(const Past& past, const std::string& name) {
  for (const auto& [option, values] : past.options) {
    if (option == name) return &values;
  }
  return nullptr;
}

SpecialPoint special_of(const Past& past, const std::string& label, const Model& model) {
  const auto found =
      std::find_if(past.special.begin(), past.special.end(), [&](const auto& s) { return s.label == label; });
  if (found == past.special.end()) {
    std::vector<std::string> labels;
    for (const Past::Special& s : past.special) labels.push_back(s.label);
    misuse(fmt::format("--label {}: there is no such special point", label),
           labels.empty() ? "the branch has none" : fmt::format("labels: {}", fmt::join(labels, ", ")));
  }
  SpecialPoint point{.label = label, .type = found->type, .values = found->values};
  point.near_values = found->near_values;
  point.near_t = found->near.t;
  point.near_period = found->near.period;
  point.near_state = initial_values(model, parameter_values(model));
  for (const auto& [name, value] : found->near.state)
    point.near_state[static_cast<size_t>(find_state(model, name, "[special]"))] = value;
  return point;
}

/// The question that a label of a stored result stands for: its branch's options where none are given, and that point
/// to begin at.
FollowQuestion at_label(FollowQuestion question, const FollowRequest& request) {
  const std::string& file = request.start.model.model;
  const std::optional<Past> past = read_past(file);
  if (!past || past->command != "follow")
    misuse(fmt::format("--label {}: '{}' is no result of 'follow'", request.label, file),
           "give the run.toml in its folder as MODEL");
  const std::vector<std::string>* ranges = option_of(*past, "range-of");
  if (!ranges || ranges->empty()) misuse("the result does not say what was followed", "follow the branch anew");
  OrbitQuestion& start = question.start;
  if (const auto* section = option_of(*past, "section"); section && start.section.empty())
    start.section = section->front();
  if (const auto* modulo = option_of(*past, "modulo"); modulo && start.modulo.empty()) {
    for (const std::string& text : *modulo) start.modulo.push_back(read_setting(text, "--modulo"));
  }
  start.backward = start.backward || option_of(*past, "backward");
  if (question.ranges.empty()) question.ranges = read_ranges(*ranges);
  const SpecialPoint point = special_of(*past, request.label, start.system.model());
  // With --all a branch of equilibria has orbits that begin on it: those have periods.
  question.equilibrium = (question.equilibrium || option_of(*past, "equilibrium")) && point.near_period == 0;
  return begin_at(std::move(question), read_ranges(*ranges), point);
}

FollowQuestion question_of(const FollowRequest& request) {
  if (request.ranges.empty() && request.label.empty())
    misuse("nothing says which parameter is followed", "name it and its range: omega=0.5:3");
  ModelOptions chosen = request.start.model;
  chosen.as_given = true;
  const System system = load_system(chosen, request.start.solve.from);
  FollowQuestion question{.start = orbit_question(request.start, system, "branches"),
                          .equilibrium = request.start.equilibrium,
                          .ranges = read_ranges(request.ranges),
                          .of = request.of,
                          .all = request.all,
                          .points = request.points,
                          .step = request.step,
                          .longest_time = request.longest};
  if (!request.seek.empty()) {
    const Setting s = read_setting(request.seek, "--seek");
    question.seek = {s.name, read_number(s.value, "--seek")};
  }
  return request.label.empty() ? question : at_label(std::move(question), request);
}

/// The points of a sweep: its points.csv, a column for the value and one for each state.
Table read_sweep(const std::string& folder, const std::string& x, const std::string& y) {
  std::ifstream file(folder + "/points.csv");
  if (!file) misuse(fmt::format("--over {}: there are no points of a sweep", folder), "name the folder of a sweep");
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = split_list(line);
  const auto column = [&](const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      misuse(fmt::format("--over {}: the sweep has no column '{}'", folder, name),
             fmt::format("it has: {}", fmt::join(names, ", ")));
    return static_cast<size_t>(found - names.begin());
  };
  const size_t cx = column(x), cy = column(y);
  Numbers xs, ys;
  while (std::getline(file, line)) {
    const std::vector<std::string> parts = split_list(line);
    if (parts.size() <= std::max(cx, cy)) continue;
    xs.push_back(std::strtod(parts[cx].c_str(), nullptr));
    ys.push_back(std::strtod(parts[cy].c_str(), nullptr));
  }
  Table table("sweep", "points of the sweep below");
  return table.add_numbers("x", std::move(xs)).add_numbers("y", std::move(ys));
}

/// Prints the table of the branch while it is followed.
Observer printing(Observer observer, const BranchLines& lines, const Print& print) {
  observer.on_start = [&](const BranchPoint& p) { print(lines.start(p)); };
  observer.on_special = [&](const SpecialPoint& s) { print(lines.special(s)); };
  observer.on_end = [&](const BranchEnd& e) { print(lines.end(e)); };
  return observer;
}

}  // namespace

Outcome follow(const FollowRequest& request, const Observer& observer, const Print& print) {
  const OutputOptions& output = request.start.output;
  output.check();
  check_applies(request.start);
  const FollowQuestion question = question_of(request);
  const Model& model = question.start.system.model();
  check_measure(request.measure, model, question.equilibrium);
  check_view(output, model);
  const FollowPlan planned = plan(question);
  std::optional<Table> below;
  if (!request.over.empty())
    below = read_sweep(request.over, planned.ranges[0].name, model.states[measured_state(request.measure, model)].name);
  Results results{.past = past_of(request, question, planned.start.run)};
  const ResultFolder folder = open_folder(output, results.past);
  const Keep checkpoint = checkpoint_in(folder, results.past, {"measure", "over"});
  if (folder) check_checkpoint(checkpoint.path, checkpoint.identity);
  begin(folder, results.past, checkpoint);

  const BranchLines lines(model, planned.ranges);
  const bool talks = print && !output.json && !output.quiet;
  const FollowAnswer answer = ask(planned, talks ? printing(observer, lines, print) : observer, checkpoint);

  const bool found = answer.branches[0].found;
  for (const Branch& branch : answer.branches) {
    if (branch.found) keep_special(results.past, model, branch);
  }
  begin(folder, results.past);
  Saved saved;
  size_t rows = 0;
  std::string view_notes;
  if (found && (folder || !output.picture.empty())) {
    results.tables = tables_of(answer);
    for (size_t k = 0; k < results.tables.size(); k += 2) rows += results.tables[k].rows();
    Picturing picturing = picture_of(answer, request.measure, std::move(below));
    view_notes = set_view(picturing.figure, output, model);
    results.figure = std::move(picturing.figure);
    results.drawn = std::move(picturing.tables);
    saved = save(std::move(results), folder, output);
  }
  if (!answer.cancelled && !saved.lost) remove_checkpoint(checkpoint);
  const Status status = answer.cancelled ? Status::interrupted : found ? Status::done : Status::ended_badly;
  const std::string words = talks ? closing_words(answer) : words_of(answer);
  Outcome outcome = conclude(status, output, saved,
                             {.json = [&] { return json_of(answer); }, .words = words, .briefly = words, .rows = rows});
  outcome.talk += view_notes;
  if (answer.cancelled) outcome.talk += how_to_go_on(folder);
  return outcome;
}

}  // namespace saltus
