#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/deliver.hpp"
#include "app/engine.hpp"
#include "app/orbit.hpp"
#include "app/view.hpp"
#include "ask/response.hpp"
#include "report/response.hpp"

namespace saltus {
namespace {

Past past_of(const ResponseRequest& request, const System& system, const RunOptions& options) {
  Past past{.version = this_version(),
            .command = "response",
            .name = short_name(request.orbit.model.model),
            .model = system.text(),
            .files = table_files(system.model()),
            .options = recorded(request.orbit.solve, options)};
  std::erase_if(past.options, [](const Past::Option& o) { return o.first == "from"; });  // here a frequency
  for (Past::Option& option : recorded_search(request.orbit)) past.options.push_back(std::move(option));
  const auto add = [&](const char* name, std::vector<std::string> values) {
    if (!values.empty()) past.options.push_back({name, std::move(values)});
  };
  add("input", request.inputs);
  add("output", request.outputs);
  if (!request.loop.empty()) add("loop", {request.loop});
  if (request.from) add("from", {*request.from});
  if (request.to) add("to", {*request.to});
  add("points", {fmt::format("{}", request.points)});
  if (request.sideband != 0) add("sideband", {fmt::format("{}", request.sideband)});
  for (Past::Option& option : recorded(request.orbit.output)) past.options.push_back(std::move(option));
  return past;
}

}  // namespace

Outcome response(const ResponseRequest& request, const Observer& observer) {
  const OutputOptions& output = request.orbit.output;
  output.check();
  check_applies(request.orbit);
  ModelOptions given = request.orbit.model;
  given.as_given = true;  // `again` repeats the search
  const System system = load_system(given, request.orbit.solve.from);
  check_view(output, system.model());
  ResponseQuestion question{.orbit = orbit_question(request.orbit, system, "responses"),
                            .equilibrium = request.orbit.equilibrium,
                            .inputs = request.inputs,
                            .outputs = request.outputs,
                            .loop = request.loop,
                            .points = request.points,
                            .sideband = request.sideband};
  if (request.from) question.from = *request.from;
  if (request.to) question.to = *request.to;
  const ResponsePlan planned = plan(question);
  const Past past = past_of(request, system, planned.equilibrium.options.run);
  const ResultFolder folder = open_folder(output, past);
  begin(folder, past);
  const ResponseAnswer answer = ask(planned, observer);
  const std::string words = words_of(answer);
  return deliver({.status = answer.cancelled ? Status::interrupted
                            : answer.found   ? Status::done
                                             : Status::ended_badly,
                  .tables = [&] { return tables_of(answer); },
                  .picture = [&] { return picture_of(answer); },
                  .json = [&] { return json_of(answer); },
                  .words = words,
                  .briefly = words},
                 output, folder, past, system.model());
}

}  // namespace saltus
