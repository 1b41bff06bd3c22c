#include <numeric>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/deliver.hpp"
#include "app/engine.hpp"
#include "app/orbit.hpp"
#include "app/range.hpp"
#include "app/view.hpp"
#include "ask/phase.hpp"
#include "report/phase.hpp"

namespace saltus {
namespace {

Past past_of(const PhaseRequest& request, const System& system, const RunOptions& options) {
  Past past{.version = this_version(),
            .command = "phase",
            .name = short_name(request.orbit.model.model),
            .model = system.text(),
            .files = table_files(system.model()),
            .options = recorded(request.orbit.solve, options)};
  for (Past::Option& option : recorded_search(request.orbit)) past.options.push_back(std::move(option));
  if (!request.of.empty()) past.options.push_back({"of", request.of});
  if (!request.couple.empty()) past.options.push_back({"couple", request.couple});
  if (request.per_cycle) past.options.push_back({"per-cycle", {}});
  for (Past::Option& option : recorded(request.orbit.output)) past.options.push_back(std::move(option));
  return past;
}

/// The states of `--of`, or all.
std::vector<int> states_of(const PhaseRequest& request, const Model& model) {
  std::vector<int> out;
  for (const std::string& text : request.of) {
    for (const std::string& name : split_list(text)) out.push_back(find_state(model, name, "`of`"));
  }
  if (out.empty()) {
    out.resize(model.states.size());
    std::iota(out.begin(), out.end(), 0);
  }
  return out;
}

}  // namespace

Outcome phase(const PhaseRequest& request, const Observer& observer) {
  const OutputOptions& output = request.orbit.output;
  output.check();
  check_applies(request.orbit);
  ModelOptions given = request.orbit.model;
  given.as_given = true;  // `again` repeats the search
  const System system = load_system(given, request.orbit.solve.from);
  const std::vector<int> of = states_of(request, system.model());
  check_view(output, system.model());
  const PhasePlan planned = plan(PhaseQuestion{.orbit = orbit_question(request.orbit, system, "phase responses"),
                                               .couple = request.couple,
                                               .per_cycle = request.per_cycle});
  const Past past = past_of(request, system, planned.orbit.options.run);
  const ResultFolder folder = open_folder(output, past);
  begin(folder, past);
  const PhaseAnswer answer = ask(planned, observer);
  const std::string words = words_of(answer);
  return deliver({.status = answer.orbit.cancelled ? Status::interrupted
                            : answer.found         ? Status::done
                                                   : Status::ended_badly,
                  .tables = [&] { return tables_of(answer, of); },
                  .picture = [&] { return picture_of(answer, of); },
                  .json = [&] { return json_of(answer, of); },
                  .words = words,
                  .briefly = words},
                 output, folder, past, system.model());
}

}  // namespace saltus
