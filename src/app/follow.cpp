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
      json_.member("value", value_of(ranges_[0], model_, e.value)).end();
    }
    json_.end().end();
  }

 private:
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

}  // namespace

Outcome follow(const FollowRequest& request, const Report& report) {
  const OrbitRequest& start = request.start;
  start.output.check();
  ModelOptions given = start.model;
  given.as_given = true;
  Model model = load_model(given, start.solve.from);
  if (model.name.empty()) model.name = short_name(start.model.model);
  if (start.solve.engine && engine_of(start.solve, model) != "event")
    misuse(fmt::format("branches are followed by the engine 'event', not '{}'", *start.solve.engine),
           "leave out --engine");
  std::vector<Range> ranges;
  for (const std::string& text : request.ranges) ranges.push_back(read_parameter_range(text, model));
  check_measure(request.measure, model, start.equilibrium);
  if (ranges.size() > 1 || !request.label.empty() || request.all)
    misuse("special points are not followed yet", "give one range, without --label and --all");

  SolveOptions solve = start.solve;
  solve.engine = "event";
  RunOptions options =
      run_options(solve, model, model.run.until ? std::optional<double>() : std::optional<double>(100.0));
  double& present = options.parameters[static_cast<size_t>(ranges[0].parameter)];
  if (present < ranges[0].low || present > ranges[0].high) {
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

  Outcome outcome;
  std::ostringstream text;
  JsonWriter json(text);
  Results results{.past = past_of(request, options, model)};
  const ResultFolder folder = open_folder(start.output, results.past);
  begin(folder, results.past);
  const Branch found = start.equilibrium ? follow_equilibrium(model, {options}, branch)
                                         : follow_orbit(model, orbit_options(start, model, options), branch);
  if (!found.found) {
    json.object().member("kind", "none").member("why", found.why).member("message", found.message).end();
    outcome.status = Status::ended_badly;
  } else {
    BranchJson(json, model, ranges).write(found, request.label);
  }
  json.flush();
  if (found.found) {
    const BranchAxes axes = axes_of(ranges, model, request.measure);
    results.tables = {branch_table(model, found, axes), special_table(model, found, axes)};
    Picturing picturing = picture_branches(model, {found}, axes, request.over);
    results.figure = std::move(picturing.figure);
    results.drawn = std::move(picturing.tables);
    keep_special(results.past, model, found);
  }
  begin(folder, results.past);
  Saved saved;
  if (found.found && (folder || !start.output.picture.empty())) saved = save(std::move(results), folder, start.output);
  if (start.output.json) {
    outcome.text = text.str();
  } else if (!start.output.quiet) {
    outcome.text = branch_words(model, ranges, found) + files_line(saved, found.points.size());
  }
  tell(saved, outcome);
  return outcome;
}

}  // namespace saltus
