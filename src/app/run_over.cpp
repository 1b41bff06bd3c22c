#include "app/run_over.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/engine.hpp"
#include "app/range.hpp"
#include "app/result_folder.hpp"
#include "app/view.hpp"
#include "ask/run.hpp"
#include "expr/print.hpp"
#include "model/read.hpp"
#include "report/run_figure.hpp"
#include "report/run_json.hpp"
#include "report/summary.hpp"

namespace saltus {
namespace {

constexpr size_t most_runs = 20, most_shown = 6;

/// One of the runs: which model, and how the legend calls it.
struct Variant {
  ModelOptions model;
  std::string label;
};

std::vector<Variant> variants_of(const RunRequest& request) {
  std::vector<Variant> variants{{request.model, request.over.empty() ? "" : short_name(request.model.model)}};
  for (size_t k = 0; k < request.model.parameters.size(); ++k) {
    const Setting& s = request.model.parameters[k];
    const auto values = split_list(s.value);
    if (values.size() == 1) continue;
    if (variants.size() > 1) misuse("two parameters have several values", "give several values to one of them");
    const Variant base = variants.front();
    variants.clear();
    for (const std::string& value : values) {
      variants.push_back(base);
      variants.back().model.parameters[k].value = value;
      variants.back().label += fmt::format("{}{} = {}", base.label.empty() ? "" : ", ", s.name, value);
    }
  }
  for (const std::string& other : request.over)
    variants.push_back({{.model = other, .parameters = {}, .initial = {}}, short_name(other)});
  if (variants.size() > most_runs)
    misuse(fmt::format("these are {} runs", variants.size()), fmt::format("a picture holds {}", most_runs));
  for (size_t i = 0; i < variants.size(); ++i) {  // two models of one name
    const auto same = std::count_if(variants.begin(), variants.begin() + static_cast<std::ptrdiff_t>(i),
                                    [&](const Variant& v) { return v.label == variants[i].label; });
    if (same > 0) variants[i].label += fmt::format(" ({})", same + 1);
  }
  return variants;
}

Table renamed(const Table& table, const std::string& name) {
  Table out(name, table.description());
  for (const Column& c : table.columns()) {
    if (c.is_text()) {
      out.add_texts(c.name, std::get<Texts>(c.values), c.description);
    } else {
      out.add_numbers(c.name, std::get<Numbers>(c.values), c.description);
    }
  }
  return out;
}

/// Each quantity in a panel of its own, each run in a colour of its own.
Figure picture(const std::string& title, const std::vector<Shown>& shown, const std::vector<Variant>& variants,
               const std::vector<Table>& tables) {
  Figure figure{.title = title};
  Stack time{.share_x = true};
  const auto table = [](size_t run) { return fmt::format("data-{}", run + 1); };
  const auto has = [&](size_t run, const Shown& names) {
    const Table& data = find_table(tables, table(run));
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) { return data.has(name); });
  };
  for (const Shown& axes : shown) {
    Panel panel;
    panel.x.label = axes.size() == 1 ? "t" : axes[0];
    panel.y.label = axes.size() == 1 ? axes[0] : axes[1];
    if (axes.size() == 3) panel.z.label = axes[2];
    for (size_t i = 0; i < variants.size(); ++i) {
      if (!has(i, axes)) continue;
      if (axes.size() == 3) {
        panel.layers.push_back(
            Curve{.table = table(i), .x = axes[0], .y = axes[1], .z = axes[2], .label = variants[i].label});
      } else {
        panel.layers.push_back(
            Line{.table = table(i), .x = panel.x.label, .y = panel.y.label, .label = variants[i].label});
      }
    }
    if (axes.size() > 1) {
      figure.stacks.push_back({.panels = {std::move(panel)}});
    } else if (time.panels.size() < most_shown) {
      time.panels.push_back(std::move(panel));
    }
  }
  if (!time.panels.empty()) figure.stacks.insert(figure.stacks.begin(), std::move(time));
  return figure;
}

}  // namespace

std::vector<Past::Option> recorded_view(const RunRequest& request) {
  std::vector<Past::Option> list;
  if (!request.measures.empty()) list.push_back({"measure", request.measures});
  if (!request.window.empty()) list.push_back({"window", {request.window}});
  return list;
}

bool asks_for_several(const RunRequest& request) {
  return !request.over.empty() || std::any_of(request.model.parameters.begin(), request.model.parameters.end(),
                                              [](const Setting& s) { return split_list(s.value).size() > 1; });
}

namespace {

Past past_of(const RunRequest& request, const Model& model) {
  const ModelOptions base{.model = request.model.model, .parameters = {}, .initial = request.model.initial};
  Past past{.version = this_version(),
            .command = "run",
            .name = short_name(request.model.model),
            .model = write_model(load_model(base, request.solve.from)),
            .files = table_files(model),
            .options = recorded(request.solve, run_options(request.solve, model))};
  std::vector<std::string> settings, others;
  for (const Setting& s : request.model.parameters) settings.push_back(s.name + "=" + s.value);
  if (!settings.empty()) past.options.push_back({"parameter", settings});
  for (const std::string& other : request.over) {
    std::error_code ignored;
    const bool file = std::filesystem::exists(other, ignored);
    others.push_back(file ? std::filesystem::absolute(other).string() : other);
  }
  if (!others.empty()) past.options.push_back({"over", others});
  past.options.push_back({"sample", {request.sample}});
  for (Past::Option& option : recorded_view(request)) past.options.push_back(std::move(option));
  for (Past::Option& option : recorded(request.output)) past.options.push_back(std::move(option));
  return past;
}

/// The quantities asked for, or else all states, with the phase plane where there are two.
std::vector<Shown> shown_of(const RunRequest& request, const Model& model, const std::vector<std::string>& columns) {
  std::vector<Shown> shown = find_shown(request.output.show, columns);
  if (!shown.empty()) return shown;
  for (const std::string& name : model.state_names()) shown.push_back({name});
  if (shown.size() == 2) shown.push_back({shown[0][0], shown[1][0]});
  return shown;
}

}  // namespace

Outcome run_over(const RunRequest& request, const Observer& observer) {
  request.output.check();
  if (request.store != "samples") misuse("--store pieces keeps one run", "leave it out");
  const std::vector<Variant> variants = variants_of(request);
  std::vector<RunPlan> plans;  // all mistakes are found before anything is computed
  for (const Variant& v : variants) {
    const System system = load_system(v.model, request.solve.from);
    plans.push_back(plan(RunQuestion{.system = system,
                                     .solve = request.solve,
                                     .sample = read_sampling(request.sample, system.model()),
                                     .measures = request.measures,
                                     .window = request.window,
                                     .dense = false}));
  }
  const Model& first = plans.front().question.system.model();
  const std::vector<Shown> shown = shown_of(request, first, quantity_names(first));
  check_view(request.output, first);
  Results results{.past = past_of(request, first)};
  const ResultFolder folder = open_folder(request.output, results.past);
  begin(folder, results.past);

  Outcome outcome;
  std::vector<std::string> documents;
  size_t rows = 0;
  for (size_t i = 0; i < variants.size(); ++i) {
    const RunAnswer answer = ask(plans[i], observer);
    const Model& model = answer.system.model();
    const Trajectory& trajectory = answer.trajectory;
    if (i == 0) rows = answer.rows.count();
    results.tables.push_back(renamed(data_table(model, answer.rows), fmt::format("data-{}", i + 1)));
    results.tables.push_back(events_table(model, trajectory.events, fmt::format("events-{}", i + 1)));
    outcome.status = std::max(outcome.status, status_of(trajectory.end));
    if (request.output.json) {
      documents.push_back(run_as_json(model, answer.options, trajectory, trajectory.messages, {}, answer.measures));
      while (documents.back().ends_with('\n')) documents.back().pop_back();
    } else if (!request.output.quiet) {
      outcome.text += fmt::format("run {:<6} {}\n", i + 1, variants[i].label) + end_line(model, trajectory.end) +
                      events_line(answer.rows.counts) + measure_lines(answer.measures) +
                      note_lines(trajectory.messages);
    }
    if (trajectory.end.why == Why::cancelled) break;
  }

  const std::vector<Variant> done(variants.begin(),
                                  variants.begin() + static_cast<std::ptrdiff_t>(results.tables.size() / 2));
  results.figure = picture(first.name, shown, done, results.tables);
  outcome.talk += set_view(results.figure, request.output, first);
  Saved saved;
  if (folder || !request.output.picture.empty()) saved = save(std::move(results), folder, request.output);
  tell(saved, outcome);
  if (request.output.json) outcome.text = fmt::format("{{\"runs\": [\n{}]}}\n", fmt::join(documents, ",\n"));
  if (!request.output.json && !request.output.quiet) outcome.text += files_line(saved, rows);
  return outcome;
}

}  // namespace saltus
