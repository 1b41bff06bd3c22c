#include "studio/desk.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>

#include <fmt/format.h>

#include "analysis/plane.hpp"
#include "app/engine.hpp"
#include "ask/gallery.hpp"
#include "ask/rates.hpp"
#include "ask/section.hpp"
#include "model/points.hpp"
#include "model/read.hpp"
#include "out/write.hpp"
#include "report/model_page.hpp"
#include "studio/export.hpp"
#include "studio/frame.hpp"
#include "studio/model_card.hpp"
#include "studio/run_frame.hpp"

namespace saltus {
namespace {

using Clock = std::chrono::steady_clock;

/// The longest run while a control is dragged; the end of the next run follows from the cost of the last.
constexpr double most_drag_seconds = 0.02;

/// The text of a model file, or of the run.toml of a result.
ModelSource source_of(const std::string& text, const std::string& name) {
  const auto past = read_past_text(text, name);
  return past ? ModelSource{name, past->model, past->start} : ModelSource{name, text};
}

System make_system(const StudioModel& model, const ModelSettings& settings = {}) {
  const OnlyTheseFiles guard(model.tables);
  return System(model.source, settings, short_name(model.name));
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw file_error(path, errno, "read");
  return read_all(file, path);
}

/// The field on a grid of a plane: of each point its place and the rates of its two states.
std::vector<double> field_on(const System& system, const PlaneView& view) {
  constexpr int along = 19;
  std::vector<double> points, field;
  const auto place = [](double from, double to, int i) { return from + (to - from) * (i + 0.5) / along; };
  const auto across = static_cast<size_t>(view.across), up = static_cast<size_t>(view.up), n = view.state.size();
  for (int k = 0; k < along * along; ++k) {
    std::vector<double> x = view.state;
    x[across] = place(view.x_from, view.x_to, k % along);
    x[up] = place(view.y_from, view.y_to, k / along);
    points.insert(points.end(), x.begin(), x.end());
  }
  const std::vector<double> rate = rates(system, points, view.t);
  for (size_t at = 0; at < points.size(); at += n)
    for (const double v : {points[at + across], points[at + up], rate[at + across], rate[at + up]}) field.push_back(v);
  return field;
}

/// Points on their way to the page, gathered for some milliseconds.
class PointBuffer {
 public:
  PointBuffer(const SectionQuestion& question, size_t states) : question_(question), states_(states) {}

  void add(const Event& event) {
    if (event.kind != EventKind::section || event.on.front() != question_.section || ++seen_ <= question_.skip) return;
    times_.push_back(event.t);
    points_.insert(points_.end(), event.state.begin(), event.state.end());
  }
  /// Results since the last call, as a frame.
  std::string take(long id, double level) {
    Frame frame;
    frame.add("t", times_).add("points", points_);
    std::string bytes = frame.bytes(id, "points", [&](JsonWriter& json) {
      json.member("section", question_.section).member("states", states_).member("level", level);
    });
    times_.clear();
    points_.clear();
    return bytes;
  }
  bool empty() const { return times_.empty(); }

 private:
  const SectionQuestion& question_;
  size_t states_;
  long seen_ = 0;
  std::vector<double> times_, points_;
};

/// The value of a section's function at a state.
double level_through(const Model& model, int section, double t, const std::vector<double>& state) {
  if (state.size() != model.states.size()) throw Error(ErrorKind::usage, "a level goes through a state");
  const std::vector<double> parameters = parameter_values(model);
  const double level = evaluate(model.sections[static_cast<size_t>(section)].value, [&](const Symbol& s) {
    const auto i = static_cast<size_t>(s.index);
    return s.kind == SymbolKind::state       ? state.at(i)
           : s.kind == SymbolKind::parameter ? parameters.at(i)
           : s.kind == SymbolKind::time      ? t
                                             : std::numeric_limits<double>::quiet_NaN();
  });
  return level;
}

}  // namespace

StudioModel Desk::now() const {
  const std::scoped_lock lock(mutex_);
  return now_;
}

void Desk::take(StudioModel model) {
  const std::scoped_lock lock(mutex_);
  now_ = std::move(model);
}

void Desk::answer(const PageRequest& m, const std::stop_token& stop) {
  if (m.verb == "open") return open(m);
  if (m.verb == "check") return check(m);
  if (m.verb == "run") return run(m, stop);
  if (m.verb == "window") return window(m, stop);
  if (m.verb == "plane") return plane(m);
  if (m.verb == "section") return section(m, stop);
  if (m.verb == "sweep") return sweep(m, stop);
  if (m.verb == "basins") return basins(m, stop);
  if (m.verb == "orbit") return orbit(m, stop);
  if (m.verb == "branch") return branch(m, stop);
  if (m.verb == "export") return export_as(m);
  if (m.verb == "save") return save(m);
  throw Error(ErrorKind::usage, fmt::format("there is no request '{}'", m.verb));
}

// ---- the model -----------------------------------------------------------------------------------------------------

void Desk::open(const PageRequest& m) {
  StudioModel model = first_;
  if (m.text) {
    model = {source_of(*m.text, "model"), "model.toml", {}, {}};
  } else if (m.name) {
    const auto found = find_in_gallery(*m.name);
    if (!found) throw Error(ErrorKind::usage, fmt::format("the gallery has no model '{}'", *m.name));
    model = {{*m.name, std::string(found->text)}, *m.name, {}, {}};
  } else if (model.file) {
    saved_ = read_file(*model.file);
    model.source = source_of(*saved_, *model.file);
  }
  last_.reset();
  seconds_per_run_ = 0;
  const std::string text = *model.source.text;
  const std::string name = model.name;
  const bool file = model.file.has_value();
  const System system = make_system(model);
  take(std::move(model));
  {
    const std::scoped_lock lock(mutex_);
    last_branch_.reset();
  }
  send(note_to_page(m.id, "model",
                    [&](JsonWriter& json) {
                      json.member("call", name).member("file", file).member("text", text);
                      write_model_card(json, system.model());
                      write_options(json);
                      write_gallery(json);
                    }),
       false);
}

void Desk::check(const PageRequest& m) {
  StudioModel model = now();
  model.source.text = m.text.value_or("");
  const System system = make_system(model);
  take(model);
  send(note_to_page(m.id, "checked", [&](JsonWriter& json) { write_model_card(json, system.model()); }), false);
}

System Desk::system_of(const PageRequest& m) const {
  return make_system(now(), {m.parameters, m.initial, false, solve_of(m).from});
}

Solve Desk::solve_of(const PageRequest& m) const {
  Solve solve;
  for (const Setting& option : m.solve) solve.give(option.name, option.value);
  if (solve.threads == 0) solve.threads = threads_;
  return solve;
}

Solve Desk::solve_without_end(const PageRequest& m) const {
  Solve solve = solve_of(m);
  solve.until.reset();
  return solve;
}

Solve Desk::search_solve(const PageRequest& m) const {
  Solve solve = solve_of(m);
  if (!solve.engine) solve.engine = "event";
  return solve;
}

// ---- a run ---------------------------------------------------------------------------------------------------------

void Desk::run(const PageRequest& m, const std::stop_token& stop) {
  const Clock::time_point begin = Clock::now();
  const auto patience = m.drag ? std::chrono::milliseconds(25) : std::chrono::milliseconds(20'000);
  const System system = system_of(m);
  RunPlan planned =
      plan(RunQuestion{.system = system, .solve = solve_of(m), .dense = false, .max_kept_events = 200'000});
  RunOptions& options = planned.options;
  const double until = options.until, span = until - options.from;
  if (m.drag) options.until = options.from + std::min(1.0, most_drag_seconds / seconds_per_run_) * span;
  bool late = options.until != until;
  const auto in_time = [&](const Progress&) {
    const bool goes_on = Clock::now() - begin < patience;
    late = late || !goes_on;
    return goes_on;
  };
  RunAnswer answer = ask(planned, {.progress = in_time, .stop = stop});
  if (stop.stop_requested()) return send(note_to_page(m.id, "dropped"), false);
  const double done = std::abs(answer.trajectory.end.t - options.from);
  if (done > 0) seconds_per_run_ = answer.trajectory.cost.seconds * std::abs(span) / done;
  send(run_frame(m.id, answer, {.drag = m.drag, .late = late, .until = until}));
  if (m.drag) return;
  last_ = std::move(answer);
  last_asked_ = m;
}

/// The last run with rows in a window of time only, as dense as a screen shows.
void Desk::window(const PageRequest& m, const std::stop_token& stop) {
  constexpr int rows = 2000;
  const System system = system_of(m);
  RunQuestion question{.system = system, .solve = solve_of(m), .dense = false};
  const RunOptions whole = plan(question).options;
  if (m.window.size() != 2) throw Error(ErrorKind::usage, "a stretch of time has two ends");
  const auto [low, high] = std::minmax(whole.from, whole.until);
  double a = std::clamp(m.window[0], low, high), b = std::clamp(m.window[1], low, high);
  if (whole.until < whole.from ? a < b : b < a) std::swap(a, b);
  question.sample.kind = Sampling::Kind::times;
  for (int k = 0; k <= rows; ++k) question.sample.times.push_back(k == rows ? b : a + (b - a) * k / rows);
  const Clock::time_point begin = Clock::now();
  const auto in_time = [&](const Progress&) { return Clock::now() - begin < std::chrono::seconds(20); };
  const RunAnswer answer = ask(std::move(question), {.progress = in_time, .stop = stop});
  send(run_frame(m.id, answer, {.drag = true, .until = whole.until}));
}

// ---- the plane -----------------------------------------------------------------------------------------------------

void Desk::plane(const PageRequest& m) {
  const System system = system_of(m);
  const Model& model = system.model();
  const auto& names = model.state_names();
  const auto index = [&](size_t axis) {
    const auto found = axis < m.axes.size() ? std::find(names.begin(), names.end(), m.axes[axis]) : names.end();
    if (found == names.end()) throw Error(ErrorKind::usage, "a plane has two states");
    return static_cast<int>(found - names.begin());
  };
  PlaneView view{.across = index(0), .up = index(1), .t = m.t, .state = m.state};
  if (!m.box || m.state.size() != names.size() || view.across == view.up)
    throw Error(ErrorKind::usage, "a plane needs two states, a box and a point");
  const auto& [x_from, x_to, y_from, y_to] = *m.box;
  view.x_from = x_from;
  view.x_to = x_to;
  view.y_from = y_from;
  view.y_to = y_to;
  if (!(view.x_from < view.x_to && view.y_from < view.y_to)) throw Error(ErrorKind::usage, "the box is empty");
  std::optional<Program> moved;
  if (m.level) {
    const int s = find_section(model, m.section);
    moved.emplace(with_level(model, s, read_number(*m.level, "`level`", model)));
  }
  const PlanePicture picture = picture_plane(moved ? *moved : system.program(), parameter_values(model), view);
  Frame frame;
  std::vector<double> ends;
  for (const PlaneLines& lines : picture.lines) ends.insert(ends.end(), lines.ends.begin(), lines.ends.end());
  frame.add("ends", ends).add("forbidden", picture.forbidden);
  std::vector<double> field;
  if (m.field) field = field_on(system, view);
  if (m.field) frame.add("field", field);
  send(frame.bytes(m.id, "plane", [&](JsonWriter& json) {
    json.member("cells", view.cells).member("t", m.t).key("box").value(std::span<const double>(*m.box));
    json.key("axes").value(std::span<const std::string>(m.axes)).key("lines").array();
    for (const PlaneLines& lines : picture.lines) {
      json.object().member("of", lines.of).member("kind", plane_kind_name(lines.kind));
      json.member("count", lines.ends.size() / 4).end();
    }
    json.end();
  }));
}

// ---- points of a section -------------------------------------------------------------------------------------------

void Desk::section(const PageRequest& m, const std::stop_token& stop) {
  const System system = system_of(m);
  const Model& model = system.model();
  SectionQuestion question{.system = system,
                           .solve = solve_without_end(m),
                           .section = m.section,
                           .count = std::clamp(m.points.value_or(1000), 1L, 200'000L),
                           .skip = std::clamp(m.skip.value_or(0), 0L, 10'000'000L)};
  if (m.level) question.level = *m.level;
  if (!m.through.empty()) question.level = level_through(model, find_section(model, m.section), m.t, m.through);
  const SectionPlan planned = plan(question);
  PointBuffer points(planned.question, model.states.size());
  const Report tell = progress_to(m.id);
  const auto send_points = [&, last = Clock::now()](const Progress& p) mutable {
    if (!points.empty() && Clock::now() - last > std::chrono::milliseconds(100)) {
      send(points.take(m.id, planned.level));
      let_page_follow(stop);
      last = Clock::now();
    }
    return tell(p);
  };
  const SectionAnswer answer = ask(
      planned,
      {.progress = send_points, .stop = stop, .on_event = [&](const Event& event, const Arc&) { points.add(event); }});
  send(points.take(m.id, planned.level));
  const End& end = answer.trajectory.end;
  finish(m.id, stop, std::string(why_name(end.why)), end.why == Why::count ? "" : end.message);
}

Report Desk::progress_to(long id) const {
  return [this, id, last = Clock::time_point()](const Progress& p) mutable {
    if (Clock::now() - last < std::chrono::milliseconds(100)) return true;
    last = Clock::now();
    const double share = p.to > p.from ? (p.now - p.from) / (p.to - p.from) : 0;
    send(note_to_page(id, "progress", [&](JsonWriter& json) { json.member("what", p.what).member("share", share); }),
         false);
    return true;
  };
}

void Desk::finish(long id, const std::stop_token& stop, const std::string& why, const std::string& message) const {
  send(note_to_page(id, "done",
                    [&](JsonWriter& json) {
                      json.member("ended", stop.stop_requested() ? "stopped" : why).member("message", message);
                    }),
       false);
}

// ---- what leaves ---------------------------------------------------------------------------------------------------

void Desk::export_as(const PageRequest& m) {
  if (!last_) throw Error(ErrorKind::usage, "there is no run to take along yet");
  std::string text;
  if (m.what == "toml") {
    text = write_past(past_of(*last_, recorded(solve_of(last_asked_), last_->options), now().name));
  } else if (m.what == "data") {
    text = csv_text(data_table(last_->system.model(), last_->rows));
  } else if (m.what == "events") {
    text = csv_text(events_table(last_->system.model(), last_->trajectory.events));
  } else if (m.what == "latex") {
    text = model_as_latex(last_->system.model());
  } else {
    throw Error(ErrorKind::usage, fmt::format("'{}' cannot be taken along", m.what));
  }
  send(note_to_page(m.id, "export", [&](JsonWriter& json) { json.member("what", m.what).member("text", text); }),
       false);
}

void Desk::save(const PageRequest& m) {
  const StudioModel model = now();
  if (!model.file || !m.text)
    throw Error(ErrorKind::usage, "the model comes from no file", {}, "take it along: Export, model.toml");
  const std::string there = read_file(*model.file);
  if (there != saved_.value_or(*first_.source.text) && !m.force)
    throw Error(ErrorKind::file, fmt::format("'{}' has changed on disk meanwhile", *model.file));
  write_text(*model.file, *m.text);
  saved_ = *m.text;
  send(note_to_page(m.id, "saved", [&](JsonWriter& json) { json.member("file", *model.file); }), false);
}

void Desk::let_page_follow(const std::stop_token& stop) const {
  constexpr size_t most = 64 << 20;
  while (outbox_.waiting() > most && !stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace saltus
