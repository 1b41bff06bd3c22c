#include <algorithm>
#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/branch.hpp"
#include "analysis/sweep.hpp"
#include "app/commands.hpp"
#include "app/engine.hpp"
#include "app/follow_figure.hpp"
#include "app/orbit_words.hpp"
#include "app/range.hpp"
#include "app/result_folder.hpp"
#include "app/view.hpp"
#include "model/read.hpp"
#include "out/json.hpp"

namespace saltus {
namespace {

[[noreturn]] void misuse(std::string message, std::string hint) {
  throw Error(ErrorKind::usage, std::move(message), {}, std::move(hint));
}

/// NAME=a:b, with the parameter behind it.
struct Range {
  std::string name;
  Expr quantity;
  int parameter = 0;
  double from = 0, to = 0;  ///< of the quantity
  double low = 0, high = 0, start = 0;  ///< of the parameter; `start`: where the range begins
};

Range read_parameter_range(const std::string& text, const Model& model) {
  const Setting s = read_setting(text, "");
  const std::vector<std::string> parts = split_list(s.value, ':');
  if (parts.size() != 2) misuse(fmt::format("{}: this is no range", text), "write its two ends: omega=0.5:3");
  const double a = read_number(parts[0], text + ":", model), b = read_number(parts[1], text + ":", model);
  if (a == b) misuse(fmt::format("{}: the range is empty", text), "give two different ends");
  const Varied varied = vary(model, s.name, read_formula(s.name, text, model), {a, b});
  Range out{.name = s.name, .quantity = read_formula(s.name, text, model), .parameter = varied.parameter};
  out.from = a, out.to = b, out.start = varied.setting[0];
  out.low = std::min(varied.setting[0], varied.setting[1]);
  out.high = std::max(varied.setting[0], varied.setting[1]);
  return out;
}

double value_of(const Range& range, const Model& model, double parameter) {
  if (parameter == range.start) return range.from;
  return constant_value(range.quantity,
                        parameter_values(model, std::vector<GivenParameter>{{range.parameter, parameter}}));
}

// ---- JSON ----------------------------------------------------------------------------------------------------------

class BranchJson {
 public:
  BranchJson(JsonWriter& json, const Model& model, const std::vector<Range>& ranges)
      : json_(json), model_(model), ranges_(ranges) {}

  void write(const Branch& branch, const std::string& of) {
    json_.object();
    if (ranges_.size() == 1) {
      json_.member("parameter", ranges_[0].name);
    } else {
      json_.key("parameters").array().value(ranges_[0].name).value(ranges_[1].name).end().member("of", of);
    }
    json_.member("kind", branch.equilibria ? "equilibrium" : "orbit").key("points").rows();
    for (const BranchPoint& p : branch.points) {
      json_.object();
      place(p.values, p.state, p.period, branch.equilibria);
      json_.member("stable", p.stable);
      spectrum(branch, p.spectrum, "");
      signature(p.signature);
      if (!p.label.empty()) json_.member("label", p.label);
      json_.end();
    }
    json_.end().key("special").rows();
    for (const SpecialPoint& s : branch.special) {
      json_.object().member("label", s.label).member("type", s.type);
      place(s.values, s.state, s.period, branch.equilibria && s.type != "hopf");
      spectrum(branch, s.spectrum, "");
      if (s.after) spectrum(branch, *s.after, "_after");
      if (s.crosses) json_.key("crosses").value(std::span<const std::string>(*s.crosses));
      if (s.persists) json_.member("persists", *s.persists);
      signature(s.signature);
      json_.member("detail", s.detail).end();
    }
    json_.end().key("ends").rows();
    for (const BranchEnd& e : branch.ends) {
      json_.object().member("direction", e.direction).member("why", e.why);
      if (!e.detail.empty()) json_.member("message", e.detail);
      json_.member("value", end_value(branch, e)).end();
    }
    json_.end().end();
  }

 private:
  double end_value(const Branch& branch, const BranchEnd& e) const {
    if (ranges_.size() < 2 || branch.points.empty()) return value_of(ranges_[0], model_, e.value);
    return value_of(ranges_[0], model_, (e.direction < 0 ? branch.points.front() : branch.points.back()).values[0]);
  }

  void place(const std::vector<double>& values, const std::vector<double>& state, double period, bool point) {
    json_.key("value");
    if (values.size() > 1) json_.array();
    for (size_t k = 0; k < values.size(); ++k) write_number(json_, value_of(ranges_[k], model_, values[k]));
    if (values.size() > 1) json_.end();
    write_state(json_.key("state"), model_, state);
    if (!point) json_.member("period", period);
  }

  void spectrum(const Branch& branch, const Spectrum& s, const char* suffix) {
    write_list(json_, fmt::format("{}{}", branch.equilibria ? "eigenvalues" : "multipliers", suffix).c_str(), s);
  }

  void signature(const std::vector<std::string>& modes) {
    json_.key("signature").value(std::span<const std::string>(modes));
  }

  JsonWriter& json_;
  const Model& model_;
  const std::vector<Range>& ranges_;
};

// ---- words ---------------------------------------------------------------------------------------------------------

std::string special_line(const Model& model, const std::vector<Range>& ranges, const Branch& branch,
                         const SpecialPoint& s) {
  std::vector<std::string> values;
  for (size_t k = 0; k < s.values.size(); ++k)
    values.push_back(fmt::format("{:.12g}", value_of(ranges[k], model, s.values[k])));
  std::string out = fmt::format("  {:<6}{:<21}{:<17}", s.label, s.type, fmt::join(values, ", "));
  out += fmt::format("{:<12}", branch.equilibria && s.period == 0 ? "" : number(s.period));
  out += list_of(s.spectrum);
  if (s.after) out += " -> " + list_of(*s.after);
  if (s.crosses && !s.crosses->empty()) out += fmt::format(" (crosses {})", fmt::join(*s.crosses, ", "));
  if (!s.detail.empty()) out += "; " + s.detail;
  return out + "\n";
}

std::string branch_words(const Model& model, const std::vector<Range>& ranges, const Branch& branch) {
  if (!branch.found) return fmt::format("none       {}\n", branch.message);
  std::string out = fmt::format("branch     {} points of {}{}\n", branch.points.size(),
                                branch.equilibria ? "equilibria" : "orbits",
                                branch.special.empty() ? ", nothing special" : "");
  if (!branch.special.empty())
    out += fmt::format("  {:<6}{:<21}{:<17}{:<12}{}\n", "label", "type", ranges[0].name, "period",
                       branch.equilibria ? "eigenvalues" : "multipliers");
  for (const SpecialPoint& s : branch.special) out += special_line(model, ranges, branch, s);
  for (const BranchEnd& e : branch.ends)
    out += fmt::format("end        {} = {}: {}{}\n", ranges[0].name, number(value_of(ranges[0], model, e.value)), e.why,
                       e.detail.empty() ? "" : ", " + e.detail);
  return out;
}

// ---- the request ---------------------------------------------------------------------------------------------------

Past past_of(const FollowRequest& request, const RunOptions& options, const Model& model) {
  const OrbitRequest& start = request.start;
  Past past{.version = this_version(),
            .command = "follow",
            .name = short_name(start.model.model),
            .model = write_model(model),
            .files = table_files(model),
            .options = recorded(start.solve, options)};
  past.options.push_back({"range-of", request.ranges});
  if (!start.section.empty()) past.options.push_back({"section", {start.section}});
  if (start.guess) past.options.push_back({"guess", {}});
  if (start.period > 0) past.options.push_back({"period", {fmt::format("{}", start.period)}});
  if (start.time) past.options.push_back({"time", {*start.time}});
  if (start.backward) past.options.push_back({"backward", {}});
  if (start.equilibrium) past.options.push_back({"equilibrium", {}});
  if (!start.modulo.empty()) past.options.push_back({"modulo", start.modulo});
  if (request.all) past.options.push_back({"all", {}});
  if (!request.seek.empty()) past.options.push_back({"seek", {request.seek}});
  if (!request.over.empty()) past.options.push_back({"over", {request.over}});
  past.options.push_back({"points", {fmt::format("{}", request.points)}});
  if (request.step) past.options.push_back({"step", {fmt::format("{:.17g}", *request.step)}});
  if (request.longest) past.options.push_back({"longest-time", {*request.longest}});
  if (!request.measure.empty()) past.options.push_back({"measure", {request.measure}});
  for (Past::Option& option : recorded(start.output)) past.options.push_back(std::move(option));
  return past;
}

BranchAxes axes_of(const std::vector<Range>& ranges, const Model& model, const std::string& measure) {
  BranchAxes axes{.names = {}, .value = [&ranges, &model](size_t k, double p) { return value_of(ranges[k], model, p); },
                  .measure = measure};
  for (const Range& r : ranges) axes.names.push_back(r.name);
  return axes;
}

void keep_special(Past& past, const Model& model, const Branch& branch) {
  const auto start_at = [&](double t, double period, const std::vector<double>& x) {
    Past::Start start{.t = t, .period = period};
    for (size_t i = 0; i < x.size(); ++i) start.state.emplace_back(model.states[i].name, x[i]);
    return start;
  };
  for (const SpecialPoint& s : branch.special) {
    past.special.push_back({.label = s.label,
                            .type = s.type,
                            .values = s.values,
                            .at = start_at(s.t, s.period, s.state),
                            .near = start_at(s.near_t, s.near_period, s.near_state),
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

/// What a label of a past result stands for: a regular point of that branch to start from, and what to look for there.
FollowRequest at_label(const FollowRequest& given) {
  FollowRequest out = given;
  OrbitRequest& start = out.start;
  const std::optional<Past> past = read_past(start.model.model);
  if (!past || past->command != "follow")
    misuse(fmt::format("--label {}: '{}' is no result of 'follow'", given.label, start.model.model),
           "give the run.toml in its folder as MODEL");
  std::vector<std::string> labels;
  const Past::Special* special = nullptr;
  for (const Past::Special& s : past->special) {
    labels.push_back(s.label);
    if (s.label == given.label) special = &s;
  }
  if (!special)
    misuse(fmt::format("--label {}: there is no such special point", given.label),
           labels.empty() ? "the branch has none" : fmt::format("labels: {}", fmt::join(labels, ", ")));
  const std::vector<std::string>* ranges = option_of(*past, "range-of");
  if (!ranges || ranges->empty()) misuse("the result does not say what was followed", "follow the branch anew");
  if (const auto* section = option_of(*past, "section"); section && start.section.empty())
    start.section = section->front();
  if (const auto* modulo = option_of(*past, "modulo"); modulo && start.modulo.empty()) start.modulo = *modulo;
  start.backward = start.backward || option_of(*past, "backward");
  start.equilibrium = start.equilibrium || option_of(*past, "equilibrium");
  ModelOptions plain = start.model;
  plain.as_given = true;
  const Model model = load_model(plain);
  for (size_t k = 0; k < ranges->size(); ++k) {
    const Range was = read_parameter_range((*ranges)[k], model);
    start.model.parameters.push_back({model.parameters[static_cast<size_t>(was.parameter)].name,
                                      fmt::format("{:.17g}", special->near_values[k])});
    // The parameter of the branch comes first.
    if (k > 0 || out.ranges.size() < 2) continue;
    if (read_parameter_range(out.ranges[1], model).parameter == was.parameter) std::swap(out.ranges[0], out.ranges[1]);
    if (read_parameter_range(out.ranges[0], model).parameter != was.parameter)
      misuse(fmt::format("the special point was found in {}, which is not among the ranges", was.name),
             "name that parameter and another one");
  }
  if (out.ranges.size() == 1 && ranges->size() == 1 &&
      read_parameter_range(out.ranges[0], model).parameter != read_parameter_range((*ranges)[0], model).parameter)
    misuse(fmt::format("{}: the branch was followed in another quantity", out.ranges[0]),
           fmt::format("give a range of the same one: {}", (*ranges)[0]));
  for (const auto& [name, value] : special->near.state)
    start.model.initial.push_back({name, fmt::format("{:.17g}", value)});
  start.solve.from = fmt::format("{:.17g}", special->near.t);
  if (!start.equilibrium) {
    start.guess = true;
    start.period = 0;
    start.time = fmt::format("{:.17g}", special->near.period);
  }
  out.seek = fmt::format("{}={:.17g}", special->type, special->values[0]);
  return out;
}

/// Every branch that begins at a special point of those found so far.
void follow_all(const Model& model, const OrbitOptions& start, const BranchOptions& options,
                std::vector<Branch>& found) {
  constexpr size_t most = 16;
  std::vector<std::pair<std::string, double>> done;
  for (size_t k = 0; k < found.size() && found.size() < most; ++k) {
    const Branch from = found[k];
    for (const SpecialPoint& s : from.special) {
      if (!branches_at(s) || found.size() >= most) continue;
      const auto same = [&](const auto& d) {
        return d.first == s.type && std::abs(d.second - s.values[0]) < 1e-6 * (options.high - options.low);
      };
      if (std::any_of(done.begin(), done.end(), same)) continue;
      done.emplace_back(s.type, s.values[0]);
      OrbitOptions there = start;
      there.run.parameters =
          parameter_values(model, std::vector<GivenParameter>{{options.parameter, s.near_values[0]}});
      there.run.initial = s.near_state;
      there.run.from = s.near_t;
      there.guess = true;
      there.returns = 0;
      there.time = s.near_period;
      BranchOptions begin = options;
      begin.seek = {s.type, s.values[0]};
      Branch next = from.equilibria ? follow_equilibrium(model, {there.run}, begin) : follow_orbit(model, there, begin);
      if (next.found) found.push_back(std::move(next));
    }
  }
}

}  // namespace

Outcome follow(const FollowRequest& given, const Report& report) {
  const FollowRequest request = given.label.empty() ? given : at_label(given);
  const OrbitRequest& start = request.start;
  start.output.check();
  ModelOptions chosen = start.model;
  chosen.as_given = true;
  Model model = load_model(chosen, start.solve.from);
  if (model.name.empty()) model.name = short_name(start.model.model);
  const SolveOptions solve = event_driven(start.solve, "branches");
  if (!start.output.show.empty()) misuse("--show does not go with branches", "--measure chooses what is drawn");
  check_view(start.output, model);
  std::vector<Range> ranges;
  for (const std::string& text : request.ranges) ranges.push_back(read_parameter_range(text, model));
  check_measure(request.measure, model, start.equilibrium);
  if (ranges.size() > 2) misuse("more than two ranges", "give one, or two to follow a special point");
  if (ranges.size() == 2 && request.seek.empty())
    misuse("two ranges follow a special point, and none is named",
           "follow the branch in one parameter first, then: saltus follow FOLDER/run.toml --label PD1 A=.. B=..");
  if (ranges.size() == 2 && request.all) misuse("--all goes with one range", "leave out --all");

  RunOptions options =
      run_options(solve, model, model.run.until ? std::optional<double>() : std::optional<double>(100.0));
  double& present = options.parameters[static_cast<size_t>(ranges[0].parameter)];
  if (request.seek.empty() && (present < ranges[0].low || present > ranges[0].high)) {
    present = ranges[0].start;
    options.parameters =
        parameter_values(model, std::vector<GivenParameter>{{ranges[0].parameter, ranges[0].start}});
  }
  BranchOptions branch{.parameter = ranges[0].parameter, .low = ranges[0].low, .high = ranges[0].high};
  branch.most_points = request.points;
  if (request.step) branch.largest_step = *request.step;
  if (request.longest) branch.longest_time = read_number(*request.longest, "--longest-time", model);
  if (report)
    branch.on_point = [&](const BranchPoint& p) {
      return report({ranges[0].name, ranges[0].low, p.values[0], ranges[0].high});
    };
  if (!request.seek.empty()) {
    const Setting s = read_setting(request.seek, "--seek");
    branch.seek = {s.name, read_number(s.value, "--seek")};
  }
  if (ranges.size() == 2) {
    branch.second = ranges[1].parameter;
    branch.second_low = ranges[1].low;
    branch.second_high = ranges[1].high;
  }

  Status status = Status::done;
  std::ostringstream text;
  JsonWriter json(text);
  Results results{.past = past_of(request, options, model)};
  const ResultFolder folder = open_folder(start.output, results.past);
  begin(folder, results.past);
  const OrbitOptions orbit = start.equilibrium ? OrbitOptions{.run = options} : orbit_options(start, model, options);
  std::vector<Branch> found{start.equilibrium ? follow_equilibrium(model, {options}, branch)
                                              : follow_orbit(model, orbit, branch)};
  if (request.all && found[0].found) follow_all(model, orbit, branch, found);
  if (!found[0].found) {
    json.object().member("kind", "none").member("why", found[0].why).member("message", found[0].message).end();
    status = Status::ended_badly;
  } else if (request.all) {
    json.object().key("branches").rows();
    for (const Branch& b : found) BranchJson(json, model, ranges).write(b, given.label);
    json.end().end();
  } else {
    BranchJson(json, model, ranges).write(found[0], given.label);
  }
  json.flush();
  std::string summary;
  for (const Branch& b : found) summary += branch_words(model, ranges, b);
  std::string view_notes;
  size_t rows = 0;
  if (found[0].found) {
    const BranchAxes axes = axes_of(ranges, model, request.measure);
    for (size_t k = 0; k < found.size(); ++k) {
      const std::string suffix = k == 0 ? "" : fmt::format("-{}", k + 1);
      results.tables.push_back(branch_table(model, found[k], axes, "data" + suffix));
      rows += results.tables.back().rows();
      results.tables.push_back(special_table(model, found[k], axes, "special" + suffix));
    }
    Picturing picturing = picture_branches(model, found, axes, request.over);
    results.figure = std::move(picturing.figure);
    results.drawn = std::move(picturing.tables);
    view_notes = set_view(results.figure, start.output, model);
    keep_special(results.past, model, found[0]);
  }
  begin(folder, results.past);
  Saved saved;
  if (found[0].found && (folder || !start.output.picture.empty()))
    saved = save(std::move(results), folder, start.output);
  Outcome outcome = conclude(status, start.output, saved,
                             {.json = [&] { return text.str(); }, .words = summary, .briefly = summary, .rows = rows});
  outcome.talk += view_notes;
  return outcome;
}

}  // namespace saltus
