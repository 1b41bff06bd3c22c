#include "app/run_both.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/engine.hpp"
#include "app/result_folder.hpp"
#include "app/view.hpp"
#include "ask/record.hpp"
#include "expr/print.hpp"
#include "model/clocks.hpp"
#include "model/read.hpp"
#include "out/json.hpp"
#include "report/run_figure.hpp"
#include "report/run_json.hpp"
#include "report/summary.hpp"

namespace saltus {
namespace {

constexpr int default_rows = 4000;
constexpr size_t most_panels = 3;
constexpr size_t most_numbers = 50'000'000;  // of the pieces of a run, which are kept whole

/// Where the two runs differ most.
struct Difference {
  double largest = 0, t = 0;
  size_t state = 0;
  std::vector<double> by_state;
};

struct Comparison {
  Trajectory event, step;
  Table table{"data", "states by the event-driven engine, by time stepping, and their difference"};
  Difference difference;
};

std::string step_column(const std::string& name) { return fmt::format("step({})", name); }
std::string difference_column(const std::string& name) { return fmt::format("difference({})", name); }

std::vector<double> times(const RunRequest& request, const Model& model, double from, double end) {
  double interval = (end - from) / default_rows;
  if (request.sample != "smooth" && request.sample != "steps") {
    interval = read_number(request.sample, "--sample", model);
    if (!(interval > 0))
      throw Error(ErrorKind::usage, fmt::format("--sample {} is no interval", request.sample), {},
                  "give a positive time");
  }
  constexpr double most_rows = 1e6;
  if (std::abs(end - from) > most_rows * std::abs(interval))
    throw Error(ErrorKind::usage, fmt::format("--sample {} asks for more than {:.0e} rows", request.sample, most_rows),
                {}, "choose a longer interval");
  std::vector<double> out;
  for (long k = 0;; ++k) {
    const double t = from + interval * static_cast<double>(k);
    if (!(t < end - 1e-9 * interval)) break;
    out.push_back(t);
  }
  out.push_back(end);
  return out;
}

void compare(const RunRequest& request, const Model& model, Comparison& c) {
  const size_t n = model.states.size();
  const double end = std::min(c.event.end.t, c.step.end.t);
  const std::vector<double> ts = times(request, model, c.event.start_time, end);
  std::vector<Numbers> event(n), step(n), difference(n);
  c.difference.by_state.assign(n, 0.0);
  for (const double t : ts) {
    const auto x = c.event.dense() ? c.event(t) : c.event.start_state;
    const auto y = c.step.dense() ? c.step(t) : c.step.start_state;
    for (size_t i = 0; i < n; ++i) {
      event[i].push_back(x[i]);
      step[i].push_back(y[i]);
      const double d = y[i] - x[i];
      difference[i].push_back(d);
      c.difference.by_state[i] = std::max(c.difference.by_state[i], std::abs(d));
      if (std::abs(d) > c.difference.largest) c.difference = {std::abs(d), t, i, std::move(c.difference.by_state)};
    }
  }
  c.table.add_numbers("t", ts, "time");
  for (size_t i = 0; i < n; ++i) {
    const std::string& name = model.states[i].name;
    c.table.add_numbers(name, std::move(event[i]), "event-driven");
    c.table.add_numbers(step_column(name), std::move(step[i]), "time stepping");
    c.table.add_numbers(difference_column(name), std::move(difference[i]), "time stepping minus event-driven");
  }
}

Figure picture(const Model& model, const std::vector<std::string>& shown) {
  Figure figure{.title = fmt::format("{}: two engines", model.name), .caption = caption_of(model)};
  Stack stack{.share_x = true};
  for (size_t i = 0; i < std::min(shown.size(), most_panels); ++i) {
    const std::string& name = shown[i];
    stack.panels.push_back(
        {.x = {.label = "t"},
         .y = {.label = name},
         .layers = {Line{.x = "t", .y = name, .label = "event-driven"},
                    Line{.x = "t", .y = step_column(name), .label = "time stepping", .dashed = true}}});
    stack.panels.push_back({.x = {.label = "t"},
                            .y = {.label = "difference of " + name},
                            .layers = {Line{.x = "t", .y = difference_column(name)}}});
  }
  figure.stacks.push_back(std::move(stack));
  return figure;
}

std::string as_json(const Model& model, const RunOptions& event, const RunOptions& step, const Comparison& c) {
  const auto run = [&](const RunOptions& options, const Trajectory& trajectory) {
    std::string text = run_as_json(model, options, trajectory, trajectory.messages);
    while (text.ends_with('\n')) text.pop_back();
    return text;
  };
  std::ostringstream text;
  JsonWriter json(text);
  json.object().member("largest", c.difference.largest).member("t", c.difference.t);
  json.member("on", model.states[c.difference.state].name).key("states").object();
  for (size_t i = 0; i < model.states.size(); ++i) json.member(model.states[i].name, c.difference.by_state[i]);
  json.end().end().flush();
  std::string difference = text.str();
  while (difference.ends_with('\n')) difference.pop_back();
  return fmt::format("{{\"model\": {},\n\"event\": {},\n\"step\": {},\n\"difference\": {}}}\n", json_string(model.name),
                     run(event, c.event), run(step, c.step), difference);
}

std::string difference_line(const Model& model, const Difference& d) {
  std::vector<std::string> items;
  for (size_t i = 0; i < std::min<size_t>(model.states.size(), 8); ++i)
    items.push_back(fmt::format("{:.2g} in {}", d.by_state[i], model.states[i].name));
  return fmt::format("difference at most {}; largest at t = {:.6g}\n", fmt::join(items, ", "), d.t);
}

Past past_of(const RunRequest& request, const Solve& as_step, const RunOptions& step, const Model& model) {
  Past past{.version = this_version(),
            .command = "run",
            .name = short_name(request.model.model),
            .model = write_model(model),
            .files = table_files(model),
            .options = recorded(as_step, step)};
  for (Past::Option& option : past.options) {
    if (option.first == "engine") option.second = {"both"};
  }
  past.options.push_back({"sample", {request.sample}});
  for (Past::Option& option : recorded(request.output)) past.options.push_back(std::move(option));
  return past;
}

}  // namespace

Outcome run_both(const RunRequest& request, const Model& model, const Observer& observer) {
  Solve as_event = request.solve, as_step = request.solve;
  as_event.engine = "event";
  as_event.dt.reset();
  as_event.theta.reset();
  as_event.adaptive = false;
  as_step.engine = "step";
  RunOptions event = run_options(as_event, model), step = run_options(as_step, model);
  check_ticks(model, event.parameters, event.from, event.until);
  const std::vector<std::string> shown =
      request.output.show.empty() ? model.state_names() : find_columns(request.output.show, [&] {
        std::vector<std::string> known{"t"};
        for (const std::string& name : model.state_names()) known.push_back(name);
        return known;
      }());
  times(request, model, event.from, event.until);  // a wrong --sample is said before the run
  const Past past = past_of(request, as_step, step, model);
  const ResultFolder folder = open_folder(request.output, past);
  begin(folder, past);
  size_t numbers = 0;  // of the pieces kept
  for (RunOptions* options : {&event, &step}) {
    options->keep_pieces = true;
    options->max_kept_events = 1'000'000;
    options->on_piece = [&](const Piece& piece, const Arc&) { numbers += piece.coefficients.size(); };
    options->progress = [&](double t) {
      return numbers <= most_numbers && observer({"t", event.from, t, event.until});
    };
    options->stop = [&] { return observer.stopped(); };
  }

  const Program program(model);
  Comparison c;
  for (const auto& [options, run] : {std::pair{&event, &c.event}, std::pair{&step, &c.step}}) {
    numbers = 0;
    *run = simulate(program, *options);
    if (numbers <= most_numbers || run->end.why != Why::cancelled) continue;
    run->end.why = Why::stalled;
    run->end.message = fmt::format("{} pieces are all that can be compared", run->pieces.size());
  }
  compare(request, model, c);

  Saved saved;
  const size_t rows = c.table.rows();
  if (folder || !request.output.picture.empty()) {
    Results results{.figure = picture(model, shown), .past = past};
    set_view(results.figure, request.output, model);
    results.tables.push_back(c.table);
    results.tables.push_back(events_table(model, c.event.events));
    results.tables.push_back(events_table(model, c.step.events, "events_step"));
    saved = save(std::move(results), folder, request.output);
  }

  const Status worst = std::max(status_of(c.event.end), status_of(c.step.end));
  Outcome outcome{.text = "", .status = worst};
  tell(saved, outcome);
  const auto part = [&](const std::string& name, const Trajectory& run) {
    std::map<EventKind, long> counts;
    for (const Event& e : run.events) ++counts[e.kind];
    return fmt::format("engine     {}\n", name) + end_line(model, run.end) + events_line(counts) +
           note_lines(run.messages) + cost_line(run.cost);
  };
  const std::string steps = step.step->dt > 0 ? "dt = " + print_number(step.step->dt) : "adaptive";
  if (request.output.json) {
    outcome.text = as_json(model, event, step, c);
  } else if (!request.output.quiet) {
    outcome.text = part("event-driven", c.event) +
                   part(fmt::format("time stepping, {}, theta = {}", steps, print_number(step.step->theta)), c.step) +
                   difference_line(model, c.difference) + files_line(saved, rows);
  } else if (worst != Status::done) {
    outcome.talk += end_line(model, c.event.end) + end_line(model, c.step.end);
  }
  return outcome;
}

}  // namespace saltus
