#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/engine.hpp"
#include "app/result_folder.hpp"
#include "app/run_both.hpp"
#include "app/run_over.hpp"
#include "app/view.hpp"
#include "ask/record.hpp"
#include "ask/sensitivity.hpp"
#include "expr/print.hpp"
#include "model/clocks.hpp"
#include "model/read.hpp"
#include "report/run_figure.hpp"
#include "report/run_json.hpp"
#include "report/summary.hpp"

namespace saltus {
namespace {

Past past_of(const RunRequest& request, const RunOptions& options, const Sampling& sampling, const Model& model) {
  Past past{.version = this_version(),
            .command = "run",
            .name = short_name(request.model.model),
            .model = write_model(model),
            .options = recorded(request.solve, options)};
  past.options.push_back(
      {"sample", {sampling.kind == Sampling::Kind::every ? print_number(sampling.interval) : request.sample}});
  past.options.push_back({"store", {request.store}});
  if (request.sensitivity)
    past.options.push_back({"sensitivity", request.sensitivity->empty()
                                               ? std::vector<std::string>{}
                                               : std::vector<std::string>{*request.sensitivity}});
  for (Past::Option& option : recorded(request.output)) past.options.push_back(std::move(option));
  return past;
}

}  // namespace

Sampling read_sampling(const std::string& text, const Model& model) {
  if (text == "smooth") return {};
  if (text == "steps") return {Sampling::Kind::steps};
  const double interval = read_number(text, "--sample", model);
  if (!(interval > 0))
    throw Error(ErrorKind::usage, fmt::format("--sample {} is no interval", text), {},
                "give a positive time, or 'steps'");
  return {Sampling::Kind::every, interval};
}

Outcome run(const RunRequest& request, const Report& report) {
  if (asks_for_several(request)) return run_over(request, report);
  request.output.check();
  check_word(request.store, {"samples", "pieces"}, "choice for --store");
  Model model = load_model(request.model, request.solve.from);
  if (model.name.empty()) model.name = short_name(request.model.model);
  if (request.sensitivity && engine_of(request.solve, model) != "event")
    throw Error(ErrorKind::usage, "--sensitivity belongs to the engine 'event'", {}, "leave out --engine");
  if (engine_of(request.solve, model) == "both") return run_both(request, model, report);
  RunOptions options = run_options(request.solve, model);
  check_ticks(model, options.parameters, options.from, options.until);
  const Sampling sampling = read_sampling(request.sample, model);

  const Program program(model, request.solve.attract.value_or(0));
  RunTables recorder(program, options, sampling);
  const std::vector<Shown> shown = find_shown(request.output.show, recorder.columns());
  check_view(request.output, model);
  const Past past = past_of(request, options, sampling, model);
  const ResultFolder folder = open_folder(request.output, past);
  begin(folder, past);
  const bool rows_wanted = folder || !request.output.picture.empty();
  const bool pieces_wanted = folder && request.store == "pieces";
  PieceStore pieces(model.states.size());
  options.max_kept_events = 1'000'000;
  if (rows_wanted) {
    options.on_piece = [&](const Piece& piece, const Arc& arc) {
      recorder.piece(piece, arc);
      if (pieces_wanted) pieces.add(piece, visible_mode(arc.mode, model.form.visible));
    };
    options.on_event = [&](const Event& event, const Arc& after) { recorder.event(event, after); };
  }
  std::optional<SensitivityRun> sensitivity;
  if (request.sensitivity) sensitivity.emplace(program, options, *request.sensitivity);
  if (sensitivity) sensitivity->attach(options);
  if (report) options.progress = [&](double t) { return report({"t", options.from, t, options.until}); };

  const Trajectory trajectory = simulate(program, options);

  std::vector<std::string> notes = notes_on(model);
  notes.insert(notes.end(), trajectory.messages.begin(), trajectory.messages.end());
  std::optional<Sensitivity> derivatives;
  if (sensitivity) {
    derivatives = sensitivity->result();
    notes.insert(notes.end(), derivatives->notes.begin(), derivatives->notes.end());
  }
  Saved saved;
  std::string view_notes;
  size_t rows = 0;
  if (rows_wanted) {
    recorder.finish(trajectory);
    if (const std::string note = recorder.note(); !note.empty()) notes.push_back(note);
    rows = recorder.rows();
    Results results{.past = past};
    results.tables.push_back(recorder.take_data());
    results.tables.push_back(events_table(model, trajectory.events));
    if (pieces_wanted) {
      if (const std::string note = pieces.note(); !note.empty()) notes.push_back(note);
      results.tables.push_back(pieces.take_table(model));
    }
    if (derivatives) results.tables.push_back(sensitivity_table(model, *derivatives));
    Picturing picturing = picture_run(model, recorder, results.tables.front(), shown);
    view_notes = set_view(picturing.figure, request.output, model);
    results.figure = std::move(picturing.figure);
    results.drawn = std::move(picturing.tables);
    saved = save(std::move(results), folder, request.output);
  }

  Outcome outcome{.text = "", .status = status_of(trajectory.end)};
  tell(saved, outcome);
  outcome.talk += view_notes;
  if (request.output.json) {
    outcome.text = run_as_json(model, options, trajectory, notes, derivatives);
  } else if (!request.output.quiet) {
    outcome.text = end_line(model, trajectory.end) + events_line(recorder.counts()) + sliding_line(model, trajectory) +
                   (derivatives ? sensitivity_line(model, *derivatives) : "") + note_lines(notes) +
                   cost_line(trajectory.cost) + files_line(saved, rows);
  } else if (outcome.status != Status::done) {
    outcome.talk += end_line(model, trajectory.end);
  }
  return outcome;
}

}  // namespace saltus
