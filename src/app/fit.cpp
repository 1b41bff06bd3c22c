#include <algorithm>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/deliver.hpp"
#include "app/engine.hpp"
#include "app/range.hpp"
#include "app/view.hpp"
#include "ask/fit.hpp"
#include "report/fit.hpp"

namespace saltus {
namespace {

/// NAME or NAME=LOW:HIGH; one of the two may be left out.
FreeValue read_free(const std::string& text, const Model& model) {
  FreeValue out;
  const size_t equals = text.find('=');
  out.name = text.substr(0, equals);
  std::erase(out.name, ' ');
  if (equals == text.npos) return out;
  const size_t colon = text.find(':', equals);
  if (colon == text.npos)
    misuse(fmt::format("'{}' has no bounds", text), "write F=0.1:3; --begin F=0.2 is where the search begins");
  const auto bound = [&](const std::string& given) -> std::optional<double> {
    if (given.find_first_not_of(' ') == given.npos) return std::nullopt;
    return read_number(given, out.name, model);
  };
  out.low = bound(text.substr(equals + 1, colon - equals - 1));
  out.high = bound(text.substr(colon + 1));
  return out;
}

FitQuestion question_of(const FitRequest& request, const System& system) {
  const Model& model = system.model();
  FitQuestion out{.system = system,
                  .solve = event_driven(request.solve, "fits"),
                  .starts = request.starts,
                  .seed = request.seed.value_or(1),
                  .profile = request.profile,
                  .robust = request.robust};
  for (const std::string& text : request.free) out.free.push_back(read_free(text, model));
  const auto named = [&](const std::string& name, const char* option) -> FreeValue& {
    const auto found =
        std::find_if(out.free.begin(), out.free.end(), [&](const FreeValue& f) { return f.name == name; });
    if (found == out.free.end())
      misuse(fmt::format("{} {}: this is not free", option, name), "name it among what is fitted");
    return *found;
  };
  for (const std::string& text : request.log) {
    for (const std::string& name : split_list(text)) named(name, "--log").log = true;
  }
  for (const Setting& s : request.begin) named(s.name, "--begin").start = read_number(s.value, "--begin", model);
  return out;
}

/// The fitted model is kept, and with it where the search began.
Past past_of(const FitRequest& request, const FitPlan& plan, const System& system) {
  Past past{.version = this_version(),
            .command = "fit",
            .name = short_name(request.model.model),
            .model = system.text() + write_data(plan.question.data),
            .files = table_files(system.model()),
            .options = recorded(request.solve, plan.options)};
  std::erase_if(past.options, [](const Past::Option& o) { return o.first == "until"; });
  for (const DataTable& d : plan.question.data) {
    if (!d.file.empty()) past.files.emplace_back(d.file, fmt::format("{:016x}", d.checksum));
  }
  past.options.push_back({"free", request.free});
  if (!request.log.empty()) past.options.push_back({"log", request.log});
  std::vector<std::string> begin;
  for (const FreeValue& f : plan.question.free) begin.push_back(fmt::format("{}={}", f.name, Formula(*f.start).text));
  past.options.push_back({"begin", begin});
  if (request.starts > 1) {
    past.options.push_back({"starts", {fmt::format("{}", request.starts)}});
    past.options.push_back({"seed", {fmt::format("{}", request.seed.value_or(1))}});
  }
  if (request.profile) past.options.push_back({"profile", {}});
  if (request.robust) past.options.push_back({"robust", {}});
  for (Past::Option& option : recorded(request.output)) past.options.push_back(std::move(option));
  return past;
}

}  // namespace

Outcome fit(const FitRequest& request, const Observer& observer) {
  request.output.check();
  const System system = load_system(request.model, request.solve.from);
  check_view(request.output, system.model());
  if (request.seed && request.starts <= 1) misuse("--seed: nothing is random", "add --starts K, or leave it out");
  const FitPlan planned = plan(question_of(request, system));
  const Past past = past_of(request, planned, system);
  const ResultFolder folder = open_folder(request.output, past);
  begin(folder, past);
  const FitAnswer answer = ask(planned, observer);
  const Past fitted = past_of(request, planned, answer.system);
  begin(folder, fitted);
  const std::string words = words_of(answer);
  const Status status = answer.why == "converged"   ? Status::done
                        : answer.why == "cancelled" ? Status::interrupted
                                                    : Status::ended_badly;
  return deliver({.status = status,
                  .tables = [&] { return tables_of(answer); },
                  .picture = [&] { return picture_of(answer); },
                  .json = [&] { return json_of(answer); },
                  .words = words,
                  .briefly = words},
                 request.output, folder, fitted, system.model());
}

}  // namespace saltus
