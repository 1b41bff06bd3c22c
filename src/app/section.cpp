#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/engine.hpp"
#include "app/result_folder.hpp"
#include "app/view.hpp"
#include "model/read.hpp"
#include "report/section.hpp"
#include "report/summary.hpp"

namespace saltus {
namespace {

Past past_of(const SectionRequest& request, const SectionPlan& plan) {
  Past past{.version = this_version(),
            .command = "section",
            .name = short_name(request.model.model),
            .model = plan.question.system.text(),
            .files = table_files(plan.question.system.model()),
            .options = recorded(request.solve, plan.options)};
  if (!request.solve.until) std::erase_if(past.options, [](const Past::Option& o) { return o.first == "until"; });
  past.options.push_back({"points", {fmt::format("{}", request.count)}});
  past.options.push_back({"skip", {fmt::format("{}", request.skip)}});
  past.options.push_back({"section", {plan.question.section}});
  if (request.level) past.options.push_back({"level", {*request.level}});
  for (Past::Option& option : recorded(request.output)) past.options.push_back(std::move(option));
  return past;
}

}  // namespace

Outcome section(const SectionRequest& request, const Observer& observer) {
  request.output.check();
  const System system = load_system(request.model, request.solve.from);
  const Model& model = system.model();
  const SectionPlan planned = plan(SectionQuestion{.system = system,
                                                   .solve = request.solve,
                                                   .section = request.section,
                                                   .count = request.count,
                                                   .skip = request.skip,
                                                   .level = request.level.value_or("0")});
  std::vector<std::string> columns{"t"};
  for (const State& state : model.states) columns.push_back(state.name);
  const std::vector<std::string> shown = find_columns(request.output.show, columns);
  check_view(request.output, model);
  const Past past = past_of(request, planned);
  const ResultFolder folder = open_folder(request.output, past);
  begin(folder, past);

  const SectionAnswer answer = ask(planned, observer);

  Saved saved;
  std::string view_notes;
  if (folder || !request.output.picture.empty()) {
    Results results{.past = past};
    results.tables.push_back(section_table(answer));
    Picturing picturing = picture_section(model, results.tables.front(), answer.section, shown);
    view_notes = set_view(picturing.figure, request.output, model);
    results.figure = std::move(picturing.figure);
    results.drawn = std::move(picturing.tables);
    saved = save(std::move(results), folder, request.output);
  }

  const Trajectory& run = answer.trajectory;
  Outcome outcome = conclude(
      status_of(run.end), request.output, saved,
      {.json = [&] { return section_as_json(answer); },
       .words = fmt::format("points     {} of '{}'{}\n", answer.times.size(), answer.section,
                            request.skip > 0 ? fmt::format(" after the first {}", request.skip) : "") +
                end_line(model, run.end) + sliding_line(model, run) + note_lines(run.messages) + cost_line(run.cost),
       .briefly = end_line(model, run.end),
       .rows = answer.times.size()});
  outcome.talk += view_notes;
  return outcome;
}

}  // namespace saltus
