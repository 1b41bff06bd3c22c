#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/commands.hpp"
#include "app/engine.hpp"
#include "app/result_folder.hpp"
#include "app/view.hpp"
#include "ask/exponents.hpp"
#include "model/read.hpp"
#include "out/json.hpp"
#include "report/run_figure.hpp"
#include "report/summary.hpp"

namespace saltus {
namespace {

std::string as_json(const Exponents& e) {
  std::ostringstream text;
  JsonWriter json(text);
  json.object().key("exponents").value(std::span<const double>(e.exponents));
  json.key("error").value(std::span<const double>(e.error)).member("time", e.time).key("end").object();
  json.member("why", why_name(e.end.why)).member("message", e.end.message).member("t", e.end.t).end();
  json.key("messages").value(std::span<const std::string>(e.messages)).end().flush();
  return text.str();
}

std::string name_of(size_t k) { return fmt::format("exponent{}", k + 1); }

Table running_table(const Exponents& e) {
  Table table("data", "running estimate of the exponents");
  table.add_numbers("t", e.times, "time");
  for (size_t k = 0; k < e.running.size(); ++k) table.add_numbers(name_of(k), e.running[k]);
  return table;
}

Table exponents_table(const Exponents& e) {
  Table table("exponents", "Lyapunov exponents per unit of time");
  table.add_numbers("exponent", e.exponents).add_numbers("error", e.error, "statistical");
  return table;
}

Figure picture(const Model& model, const Exponents& e) {
  Panel panel{.x = {.label = "t"}, .y = {.label = "exponents"}};
  for (size_t k = 0; k < e.running.size(); ++k)
    panel.layers.push_back(Line{.x = "t", .y = name_of(k), .label = fmt::format("{:.4g}", e.exponents[k])});
  Figure figure{.title = model.name + ": Lyapunov exponents", .caption = caption_of(model)};
  figure.stacks.push_back({.panels = {std::move(panel)}});
  return figure;
}

}  // namespace

Outcome exponents(const ExponentsRequest& request, const Observer& observer) {
  request.output.check();
  const System system = load_system(request.model, request.solve.from);
  if (!request.section.empty()) find_section(system.model(), request.section);
  check_view(request.output, system.model());
  const Solve solve = event_driven(request.solve, "exponents");
  const ExponentsPlan planned = plan(ExponentsQuestion{.system = system, .solve = solve});
  const Model& model = planned.model;
  Past past{.version = this_version(),
            .command = "exponents",
            .name = short_name(request.model.model),
            .model = write_model(model),
            .files = table_files(model),
            .options = recorded(solve, planned.options.run)};
  if (planned.options.open) std::erase_if(past.options, [](const Past::Option& o) { return o.first == "until"; });
  if (!request.section.empty()) past.options.push_back({"section", {request.section}});
  for (Past::Option& option : recorded(request.output)) past.options.push_back(std::move(option));
  const ResultFolder folder = open_folder(request.output, past);
  begin(folder, past);
  const Exponents found = ask(planned, observer);

  Saved saved;
  std::string view_notes;
  if (folder || !request.output.picture.empty()) {
    Results results{.figure = picture(model, found), .past = std::move(past)};
    view_notes = set_view(results.figure, request.output, model);
    results.tables.push_back(running_table(found));
    results.tables.push_back(exponents_table(found));
    saved = save(std::move(results), folder, request.output);
  }
  std::vector<std::string> texts;
  for (size_t k = 0; k < std::min<size_t>(8, found.exponents.size()); ++k) {
    texts.push_back(
        std::isinf(found.exponents[k]) ? "-inf" : fmt::format("{:.5g} ± {:.2g}", found.exponents[k], found.error[k]));
  }
  Outcome outcome =
      conclude(status_of(found.end), request.output, saved,
               {.json = [&] { return as_json(found); },
                .words = fmt::format("exponents  {} over a time of {:.6g}\n", fmt::join(texts, ", "), found.time) +
                         end_line(model, found.end) + note_lines(found.messages) + cost_line(found.cost),
                .briefly = end_line(model, found.end),
                .rows = found.times.size()});
  outcome.talk += view_notes;
  return outcome;
}

}  // namespace saltus
