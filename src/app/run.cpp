#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/engine.hpp"
#include "app/range.hpp"
#include "app/result_folder.hpp"
#include "app/run_both.hpp"
#include "app/run_over.hpp"
#include "app/view.hpp"
#include "ask/run.hpp"
#include "ask/sensitivity.hpp"
#include "expr/print.hpp"
#include "report/run_figure.hpp"
#include "report/run_json.hpp"
#include "report/summary.hpp"

namespace saltus {
namespace {

Past past_of(const RunRequest& request, const RunPlan& plan) {
  const Sampling& sample = plan.question.sample;
  Past past{.version = this_version(),
            .command = "run",
            .name = short_name(request.model.model),
            .model = plan.question.system.text(),
            .files = table_files(plan.question.system.model()),
            .options = recorded(request.solve, plan.options)};
  past.options.push_back(
      {"sample", {sample.kind == Sampling::Kind::every ? print_number(sample.interval) : request.sample}});
  past.options.push_back({"store", {request.store}});
  for (Past::Option& option : recorded_view(request)) past.options.push_back(std::move(option));
  if (request.sensitivity)
    past.options.push_back({"sensitivity", request.sensitivity->empty()
                                               ? std::vector<std::string>{}
                                               : std::vector<std::string>{*request.sensitivity}});
  for (Past::Option& option : recorded(request.output)) past.options.push_back(std::move(option));
  return past;
}

RunPlan plan_of(const RunRequest& request, const System& system) {
  const Model& model = system.model();
  const bool folder = !request.output.json || !request.output.folder.empty();
  RunQuestion question{.system = system,
                       .solve = request.solve,
                       .sample = read_sampling(request.sample, model),
                       .rows = folder || !request.output.picture.empty(),
                       .dense = folder && request.store == "pieces"};
  question.measures = request.measures;
  question.window = request.window;
  if (request.sensitivity) {
    question.sensitivity.emplace();
    for (std::string name : split_list(*request.sensitivity)) {
      std::erase(name, ' ');
      if (!name.empty()) question.sensitivity->push_back(std::move(name));
    }
  }
  return plan(std::move(question));
}

}  // namespace

Outcome run(const RunRequest& request, const Observer& observer) {
  if (asks_for_several(request)) return run_over(request, observer);
  request.output.check();
  check_word(request.store, {"samples", "pieces"}, "choice for --store");
  const System system = load_system(request.model, request.solve.from);
  const Model& model = system.model();
  if (engine_of(request.solve, model) == "both") {
    if (request.sensitivity)
      throw Error(ErrorKind::usage, "--sensitivity goes with one engine, not with both", {},
                  "choose --engine event or step");
    if (!request.measures.empty() || !request.window.empty())
      throw Error(ErrorKind::usage, "--measure and --window go with one engine, not with both", {},
                  "choose --engine event or step");
    return run_both(request, model, observer);
  }
  const RunPlan planned = plan_of(request, system);
  const std::vector<Shown> shown = find_shown(request.output.show, quantity_names(model));
  check_view(request.output, model);
  const Past past = past_of(request, planned);
  const ResultFolder folder = open_folder(request.output, past);
  begin(folder, past);

  const RunAnswer answer = ask(planned, observer);
  const Trajectory& trajectory = answer.trajectory;

  Saved saved;
  std::string view_notes;
  if (planned.question.rows) {
    Results results{.past = past};
    results.tables.push_back(data_table(model, answer.rows));
    results.tables.push_back(events_table(model, trajectory.events));
    if (planned.question.dense) results.tables.push_back(pieces_table(model, trajectory));
    if (answer.sensitivity) results.tables.push_back(sensitivity_table(model, *answer.sensitivity));
    Picturing picturing = picture_run(model, answer.rows, results.tables.front(), shown);
    view_notes = set_view(picturing.figure, request.output, model);
    results.figure = std::move(picturing.figure);
    results.drawn = std::move(picturing.tables);
    saved = save(std::move(results), folder, request.output);
  }

  Outcome outcome = conclude(
      status_of(trajectory.end), request.output, saved,
      {.json =
           [&] {
             return run_as_json(model, answer.options, trajectory, answer.notes, answer.sensitivity, answer.measures);
           },
       .words = end_line(model, trajectory.end) + events_line(answer.rows.counts) + sliding_line(model, trajectory) +
                measure_lines(answer.measures) +
                (answer.sensitivity ? sensitivity_line(model, *answer.sensitivity) : "") + note_lines(answer.notes) +
                cost_line(trajectory.cost),
       .briefly = end_line(model, trajectory.end),
       .rows = answer.rows.count()});
  outcome.talk += view_notes;
  return outcome;
}

}  // namespace saltus
