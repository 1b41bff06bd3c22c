#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/checkpoint.hpp"
#include "app/commands.hpp"
#include "app/engine.hpp"
#include "app/range.hpp"
#include "app/result_folder.hpp"
#include "app/view.hpp"
#include "ask/many.hpp"
#include "base/numbers.hpp"
#include "expr/print.hpp"
#include "model/read.hpp"
#include "out/json.hpp"
#include "out/write.hpp"
#include "report/sweep.hpp"

namespace saltus {
namespace {

// ---- what was asked ------------------------------------------------------------------------------------------------

struct SweepAxes {
  std::vector<Vary> vary;
  std::vector<std::string> record;  ///< the same as arguments, files read
  bool uniform = true;
};

SweepAxes read_axes(const SweepRequest& request, const Model& model) {
  SweepAxes axes;
  if (request.vary.empty()) misuse("nothing is varied", "name a parameter and its values: omega=0.15:2:400");
  if (request.random && request.vary.size() > 1)
    misuse("--random with two parameters", "vary one parameter, or give both as a:b:n");
  for (const std::string& text : request.vary) {
    const Setting s = read_setting(text, "", "name a parameter and its values: omega=0.15:2:400");
    const auto states = model.state_names();
    if (std::find(states.begin(), states.end(), s.name) != states.end())
      misuse(fmt::format("'{}' is a state, and a sweep varies parameters", s.name),
             fmt::format("'saltus basins MODEL {}' varies initial values; -x {}=\"...\" lets one follow a parameter",
                         text, s.name));
    const ValueRange range =
        read_range(s.value, text,
                   {.log = request.log, .random = request.random, .seed = request.seed.value_or(1), .model = &model});
    axes.vary.push_back({s.name, range.values, text});
    axes.uniform = axes.uniform && range.uniform;
    std::vector<std::string> numbers;
    if (s.value.starts_with('@')) {
      for (const double v : range.values) numbers.push_back(print_number(v));
    }
    axes.record.push_back(numbers.empty() ? text : fmt::format("{}={}", s.name, fmt::join(numbers, ",")));
  }
  return axes;
}

/// Starts given one by one: values in the order of the states.
std::vector<Numbers> read_starts(const std::vector<std::string>& texts, const Model& model) {
  std::vector<Numbers> starts;
  for (const std::string& text : texts) {
    const std::string given = "--start " + text;
    if (text.starts_with('@')) {
      for (Numbers& row : read_rows(text.substr(1), given)) starts.push_back(std::move(row));
      if (starts.empty())
        misuse(fmt::format("{}: the file holds no numbers", given), "write the states of a start per line");
    } else {
      Numbers row;
      for (const std::string& part : split_list(text)) row.push_back(read_number(part, given + ":", model));
      starts.push_back(std::move(row));
    }
    for (const Numbers& row : starts) {
      if (row.size() != model.states.size())
        misuse(fmt::format("{}: a start has {} values, the model {} states", given, row.size(), model.states.size()),
               fmt::format("write them in this order: {}", fmt::join(model.state_names(), ",")));
    }
  }
  return starts;
}

void read_where_to_start(const SweepRequest& request, const Model& model, SweepQuestion& plan) {
  const bool random = std::find(request.start.begin(), request.start.end(), "random") != request.start.end();
  if (random || request.starts || !request.box.empty()) {
    if (request.start.size() > (random ? 1 : 0)) misuse("--start names states and random ones", "choose one of both");
    if (request.box.empty()) misuse("random starts need a box", "give the interval of each state: --box y=-2:2");
    plan.box = read_box(request.box, model);
    plan.random_starts = request.starts.value_or(1);
    plan.seed = request.seed.value_or(1);
  } else {
    if (request.seed && !request.random)
      misuse("--seed: nothing is random", "leave it out, or add --random N or --box NAME=A:B");
    plan.starts = read_starts(request.start, model);
  }
  plan.direction = request.direction == "up"     ? Continue::up
                   : request.direction == "down" ? Continue::down
                   : request.direction == "both" ? Continue::both
                                                 : Continue::none;
}

SweepQuestion question_of(const SweepRequest& request, const System& system, std::vector<Vary> vary) {
  const Model& model = system.model();
  SweepQuestion question{.system = system,
                         .vary = std::move(vary),
                         .solve = request.solve,
                         .section = request.section,
                         .skip = request.skip,
                         .count = request.count,
                         .settle = request.settle,
                         .longest = request.longest,
                         .tolerance = read_nearness(request.near, model),
                         .exponent = request.colour == "exponent",
                         .measures = request.measures};
  read_where_to_start(request, model, question);
  return question;
}

/// A named quantity has no value at a point of the section alone, but measures.
void check_shown(const std::vector<std::string>& asked, const std::vector<std::string>& columns, const Model& model) {
  const std::vector<std::string> known = quantity_names(model);
  for (const std::string& list : asked) {
    for (const std::string& name : split_list(list)) {
      if (std::find(columns.begin(), columns.end(), name) != columns.end() || name == "t") continue;
      if (std::find(known.begin(), known.end(), name) == known.end()) continue;
      misuse(fmt::format("--show {}: points of a section have states", name),
             fmt::format("measure it: --measure 'mean({0})', 'max({0})', ...", name));
    }
  }
}

// ---- the command ---------------------------------------------------------------------------------------------------

Past record(const SweepRequest& request, const SweepPlan& plan, const Model& model, const SweepAxes& axes) {
  Past past{.version = this_version(),
            .command = "sweep",
            .name = short_name(request.model.model),
            .model = write_model(model),
            .files = table_files(model),
            .options = {{"vary", axes.record}}};
  const auto add = [&](const char* name, std::vector<std::string> values) {
    past.options.push_back({name, std::move(values)});
  };
  const auto number = [](auto v) { return std::vector{fmt::format("{}", v)}; };
  if (request.log) add("log", {});
  if (request.random) add("random", number(*request.random));
  if (request.random || !plan.box.empty()) add("seed", number(request.seed.value_or(1)));
  add("section", {model.sections[static_cast<size_t>(plan.section)].name});
  add("skip", number(plan.skip));
  add("points", number(plan.count));
  if (plan.settle > 0) add("settle", number(plan.settle));
  add("longest", number(plan.longest));
  if (!request.near.empty()) add("period-tolerance", request.near);
  if (!plan.box.empty()) {
    add("box", request.box);
    add("starts", number(plan.random_starts));
  }
  std::vector<std::string> starts;
  for (const Numbers& start : plan.starts) {
    std::vector<std::string> numbers;
    for (const double v : start) numbers.push_back(print_number(v));
    starts.push_back(fmt::format("{}", fmt::join(numbers, ",")));
  }
  if (!starts.empty()) add("start", starts);
  if (request.direction != "no") add("continue", {request.direction});
  if (!request.measures.empty()) add("measure", request.measures);
  if (!request.colour.empty()) add("colour", {request.colour});
  for (Past::Option& option : recorded(request.solve, plan.run)) {
    if (option.first != "until" || request.solve.until) past.options.push_back(std::move(option));
  }
  for (Past::Option& option : recorded(request.output)) past.options.push_back(std::move(option));
  return past;
}

}  // namespace

Outcome sweep(const SweepRequest& request, const Observer& observer) {
  request.output.check();
  check_word(request.direction, {"no", "up", "down", "both"}, "direction for --continue");
  if (!request.colour.empty())
    check_word(request.colour, {"none", "start", "sliding", "period", "exponent"}, "choice for --colour");
  const System system = load_system(request.model, request.solve.from);
  const Model& model = system.model();
  const SweepAxes axes = read_axes(request, model);
  const SweepQuestion question = question_of(request, system, axes.vary);
  const SweepPlan plan = saltus::plan(question);
  std::vector<std::string> columns = model.state_names();
  for (const Measure& m : plan.measures) columns.push_back(m.name);
  check_shown(request.output.show, columns, model);
  const std::vector<std::string> shown = find_columns(request.output.show, columns);
  check_view(request.output, model);
  const Past past = record(request, plan, model, axes);

  const bool leads = rank() == 0;
  const ResultFolder folder = leads ? open_folder(request.output, past) : ResultFolder();
  // Colours count only where they cost something.
  const Keep checkpoint =
      request.colour == "exponent" ? checkpoint_in(folder, past) : checkpoint_in(folder, past, {"colour"});
  if (folder) {
    check_checkpoint(checkpoint.path, checkpoint.identity);
    begin(folder, past, checkpoint);
  }

  const SweepAnswer answer = ask(system, question.solve, plan, observer, checkpoint);
  if (!leads) return {};
  const bool complete = answer.missing == 0;

  Saved saved;
  std::string view_notes;
  if (folder || !request.output.picture.empty()) {
    Results results{.past = past};
    results.tables = tables_of(answer);
    Picturing picturing = picture_of(answer, results.tables, shown, {request.colour, request.log, axes.uniform});
    view_notes = set_view(picturing.figure, request.output, model);
    results.figure = std::move(picturing.figure);
    results.drawn = std::move(picturing.tables);
    saved = save(std::move(results), folder, request.output);
  }
  if (complete && !saved.lost) remove_checkpoint(checkpoint);

  const bool all_badly =
      std::all_of(answer.runs.begin(), answer.runs.end(), [](const auto& r) { return r && ended_badly(*r); });
  Outcome outcome{.text = "",
                  .status = !complete   ? Status::interrupted
                            : all_badly ? Status::ended_badly
                                        : Status::done};
  tell(saved, outcome);
  outcome.talk += view_notes;
  if (!complete) outcome.talk += how_to_go_on(folder);
  if (request.output.json) {
    outcome.text = json_of(answer);
  } else if (!request.output.quiet) {
    outcome.text = words_of(answer) + files_line(saved, answer.runs.size() - answer.missing);
  }
  return outcome;
}

}  // namespace saltus
