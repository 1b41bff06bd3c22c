#include <type_traits>

#include <fmt/format.h>

#include "analysis/checkpoint.hpp"
#include "analysis/work.hpp"
#include "app/commands.hpp"
#include "app/engine.hpp"
#include "app/orbit.hpp"
#include "app/range.hpp"
#include "app/result_folder.hpp"
#include "app/view.hpp"
#include "report/orbit.hpp"

namespace saltus {
namespace {

Past past_of(const OrbitRequest& request, const System& system, const RunOptions& options) {
  Past past{.version = this_version(),
            .command = "orbit",
            .name = short_name(request.model.model),
            .model = system.text(),
            .files = table_files(system.model()),
            .options = recorded(request.solve, options)};
  for (Past::Option& option : recorded_search(request)) past.options.push_back(std::move(option));
  if (request.starts) {
    past.options.push_back({"starts", {fmt::format("{}", *request.starts)}});
    past.options.push_back({"box", request.box});
    past.options.push_back({"seed", {fmt::format("{}", request.seed.value_or(1))}});
  }
  for (Past::Option& option : recorded(request.output)) past.options.push_back(std::move(option));
  return past;
}

/// Where a command that takes the result as its model starts.
std::optional<Past::Start> start_at(const Model& model, double t, const std::vector<double>& x, const Mode& mode) {
  Past::Start start{.t = t, .mode = mode.text()};
  for (size_t i = 0; i < x.size(); ++i) start.state.emplace_back(model.states[i].name, x[i]);
  return start;
}

std::optional<Past::Start> start_of(const OrbitAnswer& answer) {
  const Orbit& orbit = answer.orbit;
  if (!orbit.found) return std::nullopt;
  auto start = start_at(answer.system.model(), orbit.t, orbit.state, orbit.mode);
  start->period = orbit.period;
  for (const OrbitLeg& leg : orbit.legs) start->signature.push_back(leg.mode.text());
  return start;
}

std::optional<Past::Start> start_of(const OrbitsAnswer&) { return std::nullopt; }

std::optional<Past::Start> start_of(const EquilibriumAnswer& answer) {
  const Equilibrium& rest = answer.equilibrium;
  if (rest.state.empty()) return std::nullopt;
  return start_at(answer.system.model(), answer.options.from, rest.state, rest.mode);
}

bool is_found(const OrbitAnswer& answer) { return answer.orbit.found; }
bool is_found(const OrbitsAnswer& answer) { return !answer.orbits.empty(); }
bool is_found(const EquilibriumAnswer& answer) { return answer.equilibrium.kind != Equilibrium::Kind::none; }

template <class Plan>
auto ask_keeping(const Plan& planned, const Observer& observer, const Keep& checkpoint) {
  if constexpr (std::is_same_v<Plan, OrbitsPlan>) {
    return ask(planned, observer, checkpoint);
  } else {
    return ask(planned, observer);
  }
}

/// Computes what is planned, and leaves it where the request says.
template <class Plan>
Outcome answer_to(const OrbitRequest& request, const Plan& planned, const System& system, const RunOptions& options,
                  const Observer& observer) {
  std::vector<std::string> columns{"t"};
  for (const State& state : system.model().states) columns.push_back(state.name);
  const std::vector<std::string> shown = find_columns(request.output.show, columns);
  check_view(request.output, system.model());
  Results results{.past = past_of(request, system, options)};
  const bool leads = rank() == 0;
  const ResultFolder folder = leads ? open_folder(request.output, results.past) : ResultFolder();
  Keep checkpoint;
  if (folder && request.starts) {
    checkpoint = checkpoint_in(folder, results.past);
    check_checkpoint(checkpoint.path, checkpoint.identity);
  }
  begin(folder, results.past, checkpoint);
  const auto answer = ask_keeping(planned, observer, checkpoint);
  if (!leads) return {};

  results.past.start = start_of(answer);
  begin(folder, results.past);  // with the orbit
  Saved saved;
  size_t rows = 0;
  std::string view_notes;
  if (folder || !request.output.picture.empty()) {
    results.tables = tables_of(answer);
    if (!results.tables.empty()) {
      rows = results.tables.front().rows();
      Picturing picturing = picture_of(answer, shown);
      view_notes = set_view(picturing.figure, request.output, system.model());
      results.figure = std::move(picturing.figure);
      results.drawn = std::move(picturing.tables);
    }
    saved = save(std::move(results), folder, request.output);
  }
  if (!answer.cancelled && !saved.lost) remove_checkpoint(checkpoint);
  const Status status = answer.cancelled ? Status::interrupted : is_found(answer) ? Status::done : Status::ended_badly;
  const std::string words = words_of(answer);
  Outcome outcome = conclude(status, request.output, saved,
                             {.json = [&] { return json_of(answer); }, .words = words, .briefly = words, .rows = rows});
  outcome.talk += view_notes;
  if (answer.cancelled && !checkpoint.path.empty()) outcome.talk += how_to_go_on(folder);
  return outcome;
}

}  // namespace

std::vector<Past::Option> recorded_search(const OrbitRequest& request) {
  std::vector<Past::Option> out;
  if (!request.section.empty()) out.push_back({"section", {request.section}});
  if (request.guess) out.push_back({"guess", {}});
  if (request.period) out.push_back({"period", {fmt::format("{}", *request.period)}});
  if (request.time) out.push_back({"time", {*request.time}});
  if (request.backward) out.push_back({"backward", {}});
  if (request.equilibrium) out.push_back({"equilibrium", {}});
  if (!request.modulo.empty()) out.push_back({"modulo", request.modulo});
  return out;
}

void check_applies(const OrbitRequest& request) {
  const auto refuse = [](bool given, const char* option, const char* why, const char* hint) {
    if (given) throw Error(ErrorKind::usage, fmt::format("{}: {}", option, why), {}, hint);
  };
  const char* const of_orbits = "leave it out, or --equilibrium";
  const auto of_equilibria = [&](bool given, const char* option) {
    refuse(request.equilibrium && given, option, "an equilibrium has no period", of_orbits);
  };
  of_equilibria(!request.section.empty(), "--section");
  of_equilibria(request.period.has_value(), "--period");
  of_equilibria(request.time.has_value(), "--time");
  of_equilibria(request.backward, "--backward");
  of_equilibria(!request.modulo.empty(), "--modulo");
  of_equilibria(request.starts.has_value(), "--starts");
  if (request.period && *request.period < 1)
    misuse(fmt::format("--period {}: no such number of returns", *request.period), "give 1 or more");
  const char* const of_starts = "add --starts K, or leave it out";
  refuse(!request.starts && !request.box.empty(), "--box", "nothing starts there", of_starts);
  refuse(!request.starts && request.seed.has_value(), "--seed", "nothing is random", of_starts);
}

OrbitQuestion orbit_question(const OrbitRequest& request, const System& system, const std::string& what) {
  OrbitQuestion question{.system = system,
                         .solve = event_driven(request.solve, what),
                         .section = request.section,
                         .guess = request.guess,
                         .period = request.period.value_or(0),
                         .time = request.time,
                         .backward = request.backward};
  for (const std::string& text : request.modulo) question.modulo.push_back(read_setting(text, "--modulo"));
  return question;
}

Outcome orbit(const OrbitRequest& request, const Observer& observer) {
  if (!request.starts && rank() > 0) return {};
  request.output.check();
  if (!request.starts && request.solve.threads > 0)
    throw Error(ErrorKind::usage, "-j: one thread finds one orbit", {}, "leave it out; with --starts it applies");
  check_applies(request);
  ModelOptions given = request.model;
  given.as_given = true;  // `again` repeats the search
  const System system = load_system(given, request.solve.from);
  if (request.equilibrium) {
    const EquilibriumPlan planned =
        plan(EquilibriumQuestion{.system = system, .solve = event_driven(request.solve, "equilibria")});
    return answer_to(request, planned, system, planned.options.run, observer);
  }
  const OrbitQuestion question = orbit_question(request, system, "orbits");
  if (request.starts) {
    const OrbitsPlan planned = plan(OrbitsQuestion{.orbit = question,
                                                   .starts = *request.starts,
                                                   .box = read_box(request.box, system.model()),
                                                   .seed = request.seed.value_or(1)});
    return answer_to(request, planned, system, planned.orbit.options.run, observer);
  }
  const OrbitPlan planned = plan(question);
  return answer_to(request, planned, system, planned.options.run, observer);
}

}  // namespace saltus
