#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/commands.hpp"
#include "app/engine.hpp"
#include "app/result_folder.hpp"
#include "app/view.hpp"
#include "model/read.hpp"
#include "report/run_figure.hpp"
#include "report/run_json.hpp"
#include "report/summary.hpp"

namespace saltus {
namespace {

/// Steps without a point after which a run gives up. The engine reports every 256 steps.
constexpr long patience = 2'000'000;

/// A time by which the points must have come if the user gives none.
double last_time(const Section& section, const RunOptions& options, long points) {
  if (section.kind == Section::Kind::every)
    return options.from + constant_value(section.value, options.parameters) * (static_cast<double>(points) + 0.5);
  return options.from + 1e12;
}

Table points_table(const Model& model, const std::vector<SectionPoint>& points, long skip) {
  Table table("data", "points of the section");
  Numbers k, t;
  for (size_t i = 0; i < points.size(); ++i) {
    k.push_back(static_cast<double>(skip) + static_cast<double>(i) + 1);
    t.push_back(points[i].t);
  }
  table.add_numbers("k", std::move(k), "number of the point").add_numbers("t", std::move(t), "time");
  for (size_t s = 0; s < model.states.size(); ++s) {
    Numbers values;
    for (const SectionPoint& p : points) values.push_back(p.state[s]);
    table.add_numbers(model.states[s].name, std::move(values), "state");
  }
  return table;
}

/// Whether a state keeps one value on the section (its own surface): such an axis shows nothing.
bool is_flat(const std::vector<SectionPoint>& points, size_t state) {
  double lo = HUGE_VAL, hi = -HUGE_VAL, size = 0;
  for (const SectionPoint& p : points) {
    lo = std::min(lo, p.state[state]);
    hi = std::max(hi, p.state[state]);
    size = std::max(size, std::abs(p.state[state]));
  }
  return !(hi - lo > 1e-9 * size) || hi - lo < 1e-12;
}

/// Two states against each other, or one against its next value.
Picturing picture_section(const Model& model, const std::vector<SectionPoint>& points, const std::string& section,
                          std::vector<std::string> shown) {
  if (shown.empty()) {
    for (size_t s = 0; s < model.states.size() && shown.size() < 2; ++s) {
      if (!is_flat(points, s)) shown.push_back(model.states[s].name);
    }
    if (shown.empty()) shown.push_back(model.states.front().name);
  }
  Picturing result{{.title = fmt::format("{}: section {}", model.name, section), .caption = caption_of(model)}, {}};
  Panel panel;
  if (shown.size() >= 2) {
    panel = {.x = {.label = shown[0]}, .y = {.label = shown[1]}, .layers = {Dots{.x = shown[0], .y = shown[1]}}};
  } else {
    const auto names = model.state_names();
    const size_t s = static_cast<size_t>(std::find(names.begin(), names.end(), shown[0]) - names.begin());
    Table table("map", "a state and its next value");
    Numbers now, next;
    for (size_t i = 0; i + 1 < points.size(); ++i) {
      now.push_back(points[i].state[s]);
      next.push_back(points[i + 1].state[s]);
    }
    double lowest = HUGE_VAL, highest = -HUGE_VAL;
    for (const double v : now) lowest = std::min(lowest, v), highest = std::max(highest, v);
    Table diagonal("diagonal", "where a point is its own next");
    const bool any = lowest <= highest;
    diagonal.add_numbers("now", any ? Numbers{lowest, highest} : Numbers{})
        .add_numbers("next", any ? Numbers{lowest, highest} : Numbers{});
    table.add_numbers("now", std::move(now)).add_numbers("next", std::move(next));
    result.tables.push_back(std::move(table));
    result.tables.push_back(std::move(diagonal));
    panel = {.x = {.label = shown[0]},
             .y = {.label = shown[0] + ", next"},
             .layers = {Line{.table = "diagonal", .x = "now", .y = "next", .colour = "#b0b0b0"},
                        Dots{.table = "map", .x = "now", .y = "next"}}};
  }
  result.figure.stacks.push_back({.panels = {std::move(panel)}});
  return result;
}

}  // namespace

Outcome section(const SectionRequest& request, const Report& report) {
  request.output.check();
  if (request.count < 1 || request.skip < 0 || request.count > 100'000'000 || request.skip > 10'000'000'000)
    throw Error(ErrorKind::usage, fmt::format("-n {} --skip {}: no such points", request.count, request.skip), {},
                "give -n 1 or more and --skip 0 or more");
  Model model = load_model(request.model, request.solve.from);
  if (model.name.empty()) model.name = short_name(request.model.model);
  constexpr double most_numbers = 2e8;
  if (static_cast<double>(request.count) * static_cast<double>(model.states.size() + 1) > most_numbers)
    throw Error(ErrorKind::usage,
                fmt::format("-n {}: points of {} states need too much memory", request.count, model.states.size()), {},
                fmt::format("give at most -n {:.0f}, and go on from the last point",
                            most_numbers / static_cast<double>(model.states.size() + 1)));
  const int s = find_section(model, request.section);
  const Section& wanted = model.sections[static_cast<size_t>(s)];
  const long all = request.count + request.skip;
  RunOptions options = run_options(request.solve, model, std::numeric_limits<double>::max());
  if (!request.solve.until) options.until = last_time(wanted, options, all);
  options.section = s;
  options.section_count = all;
  options.keep_events = false;

  std::vector<std::string> columns{"t"};
  for (const State& state : model.states) columns.push_back(state.name);
  const std::vector<std::string> shown = find_columns(request.output.show, columns);
  check_view(request.output, model);
  Past past{.version = this_version(),
            .command = "section",
            .name = short_name(request.model.model),
            .model = write_model(model),
            .options = recorded(request.solve, options)};
  if (!request.solve.until) std::erase_if(past.options, [](const Past::Option& o) { return o.first == "until"; });
  past.options.push_back({"points", {fmt::format("{}", request.count)}});
  past.options.push_back({"skip", {fmt::format("{}", request.skip)}});
  past.options.push_back({"section", {wanted.name}});
  for (Past::Option& option : recorded(request.output)) past.options.push_back(std::move(option));
  const ResultFolder folder = open_folder(request.output, past);
  begin(folder, past);

  std::vector<SectionPoint> points;
  long seen = 0, reports = 0;
  bool gave_up = false;
  options.on_event = [&](const Event& event, const Arc&) {
    if (event.kind != EventKind::section || event.on.front() != wanted.name) return;
    reports = 0;
    if (++seen > request.skip) points.push_back({event.t, event.state});
  };
  options.progress = [&](double) {
    gave_up = ++reports > patience / 256;
    return !gave_up && (!report || report({"point", 0, static_cast<double>(seen), static_cast<double>(all)}));
  };
  const Program program(model, request.solve.attract.value_or(0));
  Trajectory trajectory = simulate(program, options);
  End& end = trajectory.end;
  if (gave_up) {
    end.why = Why::stalled;
    end.message = fmt::format("no {}point of '{}' in {} steps", seen > 0 ? "further " : "", wanted.name, patience);
  } else if (end.why == Why::time && !request.solve.until) {
    end.why = Why::stalled;
    end.message = fmt::format("'{}' is not met any more", wanted.name);
  }

  Saved saved;
  std::string view_notes;
  if (folder || !request.output.picture.empty()) {
    Picturing picturing = picture_section(model, points, wanted.name, shown);
    view_notes = set_view(picturing.figure, request.output, model);
    Results results{.figure = std::move(picturing.figure), .drawn = std::move(picturing.tables), .past = past};
    results.tables.push_back(points_table(model, points, request.skip));
    saved = save(std::move(results), folder, request.output);
  }

  Outcome outcome{.text = "", .status = status_of(end)};
  tell(saved, outcome);
  outcome.talk += view_notes;
  if (request.output.json) {
    outcome.text = section_as_json(model, wanted.name, points, trajectory);
  } else if (!request.output.quiet) {
    outcome.text = fmt::format("points     {} of '{}'{}\n", points.size(), wanted.name,
                               request.skip > 0 ? fmt::format(" after the first {}", request.skip) : "") +
                   end_line(model, end) + sliding_line(model, trajectory) + note_lines(trajectory.messages) +
                   cost_line(trajectory.cost) + files_line(saved, points.size());
  } else if (outcome.status != Status::done) {
    outcome.talk += end_line(model, end);
  }
  return outcome;
}

}  // namespace saltus
