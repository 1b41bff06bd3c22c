// The binding: questions and answers as dictionaries of NumPy arrays. The only file that knows pybind11; what makes it
// pleasant to use is in saltus/*.py.
//
// Arrays own what the answer has computed: nothing is copied. Another thread computes, without the GIL; the calling one
// takes it every 50 ms, to ask for Ctrl-C, for `stop` and to tell progress. A stop is seen within a step.
#include <atomic>
#include <chrono>
#include <future>
#include <limits>
#include <memory>
#include <numeric>

#include <pybind11/complex.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <fmt/ranges.h>

#include "ask/exponents.hpp"
#include "ask/follow.hpp"
#include "ask/gallery.hpp"
#include "ask/many.hpp"
#include "ask/option_table.hpp"
#include "ask/options.hpp"
#include "ask/past.hpp"
#include "ask/rates.hpp"
#include "ask/run.hpp"
#include "ask/section.hpp"
#include "expr/print.hpp"
#include "model/build.hpp"
#include "model/period.hpp"
#include "out/hdf5.hpp"
#include "out/svg.hpp"
#include "out/write.hpp"
#include "report/basins.hpp"
#include "report/model_page.hpp"
#include "report/orbit.hpp"
#include "report/run_figure.hpp"

namespace py = pybind11;
using namespace saltus;

namespace {

// ---- arrays --------------------------------------------------------------------------------------------------------

template <class T>
py::array array_of(std::vector<T>&& values, std::vector<py::ssize_t> shape = {}) {
  auto* owner = new std::vector<T>(std::move(values));
  const py::capsule base(owner, [](void* p) { delete static_cast<std::vector<T>*>(p); });
  if (shape.empty()) shape = {static_cast<py::ssize_t>(owner->size())};
  py::array_t<T> array(shape, owner->data(), base);
  array.attr("flags").attr("writeable") = false;
  return array;
}

py::array rows_of(std::vector<double>&& values, size_t width) {
  const size_t rows = width == 0 ? 0 : values.size() / width;
  return array_of(std::move(values), {static_cast<py::ssize_t>(rows), static_cast<py::ssize_t>(width)});
}

// ---- who waits -----------------------------------------------------------------------------------------------------

/// Ctrl-C, `stop` and `progress` of a question that is being answered.
class Waiting {
 public:
  Waiting(py::object progress, py::object stop) : progress_(std::move(progress)), stop_(std::move(stop)) {}

  /// The answer, computed in a thread of its own; to be called with the GIL.
  template <class Compute>
  auto operator()(const Compute& compute) {
    const py::gil_scoped_release without;
    const Observer observer{.progress =
                                [this](const Progress& p) {
                                  share_ = p.to == p.from ? 1 : (p.now - p.from) / (p.to - p.from);
                                  return true;
                                },
                            .stop = source_.get_token()};
    auto answer = std::async(std::launch::async, [&] { return compute(observer); });
    while (answer.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) look();
    return answer.get();
  }
  /// To be called with the GIL when the answer is there: what Python code has thrown goes on.
  void finish(py::dict& answer) {
    if (thrown_) std::rethrow_exception(thrown_);
    answer["interrupted"] = interrupted_;
  }

 private:
  void look() {
    const py::gil_scoped_acquire gil;
    if (source_.stop_requested()) return;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (!stop_.is_none() && stop_.attr("is_set")().cast<bool>()) {
        source_.request_stop();
      } else if (!progress_.is_none()) {
        const py::object answer = progress_(share_.load());
        if (!answer.is_none() && !answer.cast<bool>()) source_.request_stop();
      }
    } catch (const py::error_already_set& thrown) {  // Ctrl-C, here or in `progress`, keeps what there is
      interrupted_ = thrown.matches(PyExc_KeyboardInterrupt);
      if (!interrupted_) thrown_ = std::current_exception();
      source_.request_stop();
    } catch (...) {
      thrown_ = std::current_exception();
      source_.request_stop();
    }
  }

  py::object progress_, stop_;
  std::atomic<double> share_ = 0;
  std::stop_source source_;
  bool interrupted_ = false;
  std::exception_ptr thrown_;
};

// ---- models --------------------------------------------------------------------------------------------------------

std::optional<Fragment> fragment(const py::dict& table, const char* key, const std::string& name) {
  if (!table.contains(key)) return std::nullopt;
  return whole_text(name, table[key].cast<std::string>());
}

Direction direction_of(const py::dict& table) {
  if (!table.contains("direction")) return Direction::any;
  const std::string word = table["direction"].cast<std::string>();
  check_word(word, {"any", "rising", "falling"}, "direction");
  return word == "rising" ? Direction::rising : word == "falling" ? Direction::falling : Direction::any;
}

std::vector<NamedText> named(const py::dict& values, const std::string& where) {
  std::vector<NamedText> list;
  for (const auto& [key, value] : values) {
    const std::string name = key.cast<std::string>();
    list.push_back({whole_text(where, name), whole_text(where + " " + name, value.cast<std::string>())});
  }
  return list;
}

/// A model from its parts, as those of a file.
System build(const std::string& name, const std::string& equations, const py::dict& parameters, const py::dict& initial,
             const py::dict& constraints, const py::dict& jumps, const py::dict& sections) {
  ModelText text;
  text.name = name;
  text.equations = whole_text("model", equations);
  text.parameters = named(parameters, "parameter");
  text.initial = named(initial, "initial");
  for (const auto& [key, value] : constraints) {
    const std::string of = "constraint " + key.cast<std::string>();
    const auto table = value.cast<py::dict>();
    const auto gap = fragment(table, "gap", of);
    if (!gap) throw Error(ErrorKind::usage, of + " has no gap", {}, "write {\"gap\": \"q\", \"restitution\": 0.8}");
    text.constraints.push_back({whole_text(of, key.cast<std::string>()), *gap, fragment(table, "restitution", of),
                                fragment(table, "for", of)});
  }
  for (const auto& [key, value] : jumps) {
    const std::string of = "jump " + key.cast<std::string>();
    const auto table = value.cast<py::dict>();
    text.jumps.push_back({.name = whole_text(of, key.cast<std::string>()),
                          .on = fragment(table, "on", of),
                          .every = fragment(table, "every", of),
                          .phase = fragment(table, "phase", of),
                          .when = fragment(table, "when", of),
                          .direction = direction_of(table),
                          .set = named(table["set"].cast<py::dict>(), of),
                          .range = fragment(table, "for", of)});
  }
  for (const auto& [key, value] : sections) {
    const std::string of = "section " + key.cast<std::string>();
    const auto table = value.cast<py::dict>();
    text.sections.push_back({.name = whole_text(of, key.cast<std::string>()),
                             .every = fragment(table, "every", of),
                             .on = fragment(table, "on", of),
                             .direction = direction_of(table),
                             .stop = table.contains("stop") && table["stop"].cast<bool>(),
                             .range = fragment(table, "for", of)});
  }
  const py::gil_scoped_release without;
  return System(build_model(text));
}

py::dict facts_of(const System& system) {
  const Model& model = system.model();
  const std::vector<double> parameters = parameter_values(model), initial = initial_values(model, parameters);
  py::dict facts, values, start;
  for (size_t i = 0; i < parameters.size(); ++i) values[py::str(model.parameters[i].name)] = parameters[i];
  for (size_t i = 0; i < initial.size(); ++i) start[py::str(model.states[i].name)] = initial[i];
  facts["name"] = model.name;
  facts["ref"] = model.ref;
  facts["states"] = model.state_names();
  facts["parameters"] = values;
  facts["initial"] = start;
  std::vector<std::string> formulas;
  for (const Parameter& p : model.parameters) formulas.push_back(print(p.value));
  facts["formulas"] = formulas;
  facts["columns"] = row_columns(model);
  facts["json"] = model_as_json(model);
  const auto period = period_in_time(model, parameters);
  facts["period"] = period ? py::object(py::float_(period->value)) : py::none();
  return facts;
}

std::vector<Setting> settings(const py::dict& values) {
  std::vector<Setting> list;
  for (const auto& [name, value] : values) list.emplace_back(name.cast<std::string>(), value.cast<std::string>());
  return list;
}

// ---- how to compute ------------------------------------------------------------------------------------------------

template <class T>
void take(const py::dict& options, const char* name, T& value) {
  if (options.contains(name)) value = options[name].cast<T>();
}

template <class T>
void take(const py::dict& options, const char* name, std::optional<T>& value) {
  if (options.contains(name)) value = options[name].cast<T>();
}

SolveOptions said(const py::dict& options) {
  SolveOptions o;
  take(options, "from", o.from);
  take(options, "until", o.until);
  take(options, "tolerance", o.tolerance);
  take(options, "engine", o.engine);
  take(options, "dt", o.dt);
  take(options, "theta", o.theta);
  take(options, "adaptive", o.adaptive);
  take(options, "threads", o.threads);
  take(options, "flow", o.flow);
  take(options, "attract", o.attract);
  take(options, "zeno", o.zeno);
  take(options, "native", o.native);
  if (options.contains("leave")) o.leave = settings(options["leave"].cast<py::dict>());
  return o;
}

Solve solve_of(const py::dict& options, const Model& model) { return saltus::solve_of(said(options), model); }

// ---- answers -------------------------------------------------------------------------------------------------------

py::dict end_of(const End& end) {
  py::dict d;
  d["why"] = std::string(why_name(end.why));
  d["message"] = end.message;
  d["t"] = end.t;
  d["state"] = array_of(std::vector<double>(end.state));
  d["mode"] = end.mode.text();
  return d;
}

/// All events as columns.
py::dict events_of(const std::vector<Event>& events, size_t states) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> t, state, jumped;
  std::vector<std::int64_t> count;
  py::list kind(events.size()), on(events.size()), before(events.size()), after(events.size());
  std::map<std::string, py::str> known;  // the same words again and again
  const auto word = [&](const std::string& text) { return known.try_emplace(text, text).first->second; };
  t.reserve(events.size());
  state.reserve(events.size() * states);
  jumped.reserve(events.size() * states);
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& e = events[i];
    t.push_back(e.t);
    kind[i] = word(std::string(kind_name(e.kind)));
    py::tuple names(e.on.size());
    for (size_t k = 0; k < e.on.size(); ++k) names[k] = word(e.on[k]);
    on[i] = names;
    before[i] = word(e.before.text());
    after[i] = word(e.after.text());
    state.insert(state.end(), e.state.begin(), e.state.end());
    if (e.jumped) {
      jumped.insert(jumped.end(), e.jumped->begin(), e.jumped->end());
    } else {
      jumped.insert(jumped.end(), states, none);
    }
    count.push_back(e.count);
  }
  py::dict d;
  d["t"] = array_of(std::move(t));
  d["kind"] = kind;
  d["on"] = on;
  d["before"] = before;
  d["after"] = after;
  d["state"] = rows_of(std::move(state), states);
  d["jumped"] = rows_of(std::move(jumped), states);
  d["count"] = array_of(std::move(count));
  return d;
}

/// The dense output as one block: [piece, state, power].
py::dict pieces_of(Trajectory& trajectory, const Model& model) {
  const size_t n = static_cast<size_t>(trajectory.states), count = trajectory.pieces.size();
  size_t powers = 1;
  for (const Piece& p : trajectory.pieces) powers = std::max(powers, p.coefficients.size() / n);
  std::vector<double> start(count), length(count), coefficients(count * n * powers);
  py::list modes(count);
  std::vector<py::str> names;
  for (const Arc& arc : trajectory.arcs) names.emplace_back(visible_mode(arc.mode, model.form.visible).text());
  for (size_t i = 0; i < count; ++i) {
    Piece& p = trajectory.pieces[i];
    start[i] = p.start;
    length[i] = p.length;
    modes[i] = names[static_cast<size_t>(p.arc)];
    const size_t own = p.coefficients.size() / n;
    for (size_t s = 0; s < n; ++s)
      std::copy_n(p.coefficients.begin() + static_cast<std::ptrdiff_t>(s * own), own,
                  coefficients.begin() + static_cast<std::ptrdiff_t>((i * n + s) * powers));
    p.coefficients = {};
  }
  trajectory.pieces = {};
  py::dict d;
  d["start"] = array_of(std::move(start));
  d["length"] = array_of(std::move(length));
  d["mode"] = modes;
  d["coefficients"] = array_of(std::move(coefficients), {static_cast<py::ssize_t>(count), static_cast<py::ssize_t>(n),
                                                         static_cast<py::ssize_t>(powers)});
  return d;
}

void add_run(py::dict& d, const Trajectory& run, const Model& model) {
  d["end"] = end_of(run.end);
  d["start_t"] = run.start_time;
  d["start_state"] = array_of(std::vector<double>(run.start_state));
  d["start_mode"] = run.start_mode.text();
  d["steps"] = run.cost.steps;
  d["event_count"] = run.cost.events;
  d["seconds"] = run.cost.seconds;
  py::dict sliding;
  for (size_t i = 0; i < run.sliding.size(); ++i)
    sliding[py::str(model.form.switches[i].name)] = py::make_tuple(run.sliding[i].time, run.sliding[i].largest_error);
  d["sliding"] = sliding;
}

py::dict path_of(const Trajectory& run, const std::vector<std::string>& notes, const Model& model) {
  py::dict d;
  add_run(d, run, model);
  d["events"] = events_of(run.events, model.states.size());
  d["messages"] = notes;
  return d;
}

void add_rows(py::dict& d, Rows& rows) {
  const size_t width = rows.columns.size();
  d["cells"] = rows_of(std::move(rows.cells), width);
  std::vector<double> from, to;
  py::list mode;
  std::vector<py::str> names;
  for (const Mode& m : rows.modes) names.emplace_back(m.text());
  for (const Stay& s : rows.stays) {
    from.push_back(s.from);
    to.push_back(s.to);
    mode.append(names[static_cast<size_t>(s.mode)]);
  }
  d["ribbon"] = py::make_tuple(array_of(std::move(from)), array_of(std::move(to)), mode);
}

py::dict run(const System& system, const py::dict& options, const std::optional<std::vector<double>>& start,
             const py::object& sample, bool rows, bool dense, std::optional<long> max_events,
             const std::optional<std::vector<std::string>>& sensitivity, const py::object& progress,
             const py::object& stop) {
  RunQuestion question{.system = system,
                       .solve = solve_of(options, system.model()),
                       .start = start,
                       .rows = rows,
                       .dense = dense,
                       .sensitivity = sensitivity};
  if (max_events) question.max_events = *max_events;
  if (py::isinstance<py::str>(sample)) {
    question.sample = read_sampling(sample.cast<std::string>(), system.model());
  } else {
    question.sample = {.kind = Sampling::Kind::times, .times = sample.cast<std::vector<double>>()};
  }
  Waiting waiting(progress, stop);
  RunAnswer answer = waiting([&](const Observer& observer) { return ask(std::move(question), observer); });
  const Model& model = system.model();
  py::dict d = path_of(answer.trajectory, answer.notes, model);
  if (rows) add_rows(d, answer.rows);
  if (dense) d["pieces"] = pieces_of(answer.trajectory, model);
  if (answer.sensitivity) {
    const Sensitivity& s = *answer.sensitivity;
    d["sensitivity"] = py::make_tuple(s.parameters, s.by_state, s.by_parameter);
  }
  waiting.finish(d);
  return d;
}

py::dict section(const System& system, const py::dict& options, const std::optional<std::vector<double>>& start,
                 const std::string& name, long count, long skip, const std::string& level, const py::object& progress,
                 const py::object& stop) {
  SectionQuestion question{.system = system,
                           .solve = solve_of(options, system.model()),
                           .section = name,
                           .count = count,
                           .skip = skip,
                           .level = level,
                           .start = start};
  Waiting waiting(progress, stop);
  SectionAnswer answer = waiting([&](const Observer& observer) { return ask(question, observer); });
  const Model& model = system.model();
  py::dict d;
  add_run(d, answer.trajectory, model);
  d["messages"] = answer.trajectory.messages;
  d["section"] = answer.section;
  d["t"] = array_of(std::move(answer.times));
  d["points"] = rows_of(std::move(answer.points), model.states.size());
  waiting.finish(d);
  return d;
}

py::dict sweep(const System& system, const py::dict& options,
               const std::vector<std::pair<std::string, std::vector<double>>>& vary, const py::dict& how,
               const py::object& progress, const py::object& stop) {
  SweepQuestion question{.system = system, .vary = {}, .solve = solve_of(options, system.model())};
  for (const auto& [name, values] : vary) question.vary.push_back({name, values});
  take(how, "section", question.section);
  take(how, "skip", question.skip);
  take(how, "count", question.count);
  take(how, "settle", question.settle);
  take(how, "longest", question.longest);
  take(how, "tolerance", question.tolerance);
  take(how, "exponent", question.exponent);
  take(how, "starts", question.starts);
  take(how, "box", question.box);
  take(how, "random_starts", question.random_starts);
  take(how, "seed", question.seed);
  std::string direction = "no";
  take(how, "direction", direction);
  question.direction = direction == "up"     ? Continue::up
                       : direction == "down" ? Continue::down
                       : direction == "both" ? Continue::both
                                             : Continue::none;
  Waiting waiting(progress, stop);
  SweepAnswer answer = waiting([&](const Observer& observer) { return ask(question, observer); });
  const size_t runs = answer.runs.size(), states = system.model().states.size();
  std::vector<std::int64_t> period(runs), seen(runs), offsets(runs + 1);
  std::vector<double> time(runs), sliding(runs), events(runs), exponent(runs), points;
  py::array_t<bool> slow(static_cast<py::ssize_t>(runs)), computed(static_cast<py::ssize_t>(runs));
  py::list end(runs), message(runs), start(runs);
  for (size_t i = 0; i < runs; ++i) {
    std::optional<SweepRun>& r = answer.runs[i];
    start[i] = answer.plan.start_name(i % answer.plan.starts_per_value());
    computed.mutable_at(static_cast<py::ssize_t>(i)) = r.has_value();
    const SweepRun none{.why = Why::cancelled};
    const SweepRun& run = r ? *r : none;
    period[i] = run.period;
    slow.mutable_at(static_cast<py::ssize_t>(i)) = run.slow;
    time[i] = run.time;
    sliding[i] = run.sliding;
    events[i] = run.events;
    exponent[i] = run.exponent;
    seen[i] = run.seen;
    end[i] = std::string(why_name(run.why));
    message[i] = run.message;
    points.insert(points.end(), run.points.begin(), run.points.end());
    offsets[i + 1] = static_cast<std::int64_t>(points.size() / states);
    r.reset();
  }
  py::dict d;
  py::list values, settings_of, parameters;
  for (const Varied& v : answer.plan.varied) {
    values.append(array_of(std::vector<double>(v.values)));
    settings_of.append(array_of(std::vector<double>(v.setting)));
    parameters.append(system.model().parameters[static_cast<size_t>(v.parameter)].name);
  }
  d["values"] = values;
  d["settings"] = settings_of;
  d["parameters"] = parameters;
  d["starts_per_value"] = answer.plan.starts_per_value();
  d["section"] = system.model().sections[static_cast<size_t>(answer.plan.section)].name;
  d["period"] = array_of(std::move(period));
  d["slow"] = slow;
  d["computed"] = computed;
  d["time"] = array_of(std::move(time));
  d["sliding"] = array_of(std::move(sliding));
  d["events"] = array_of(std::move(events));
  d["exponent"] = array_of(std::move(exponent));
  d["seen"] = array_of(std::move(seen));
  d["end"] = end;
  d["message"] = message;
  d["start"] = start;
  d["offsets"] = array_of(std::move(offsets));
  d["points"] = rows_of(std::move(points), states);
  d["seconds"] = answer.seconds;
  waiting.finish(d);
  return d;
}

py::dict basins(const System& system, const py::dict& options,
                const std::vector<std::pair<int, std::vector<double>>>& axes, const py::dict& how,
                const py::object& progress, const py::object& stop) {
  std::vector<CellAxis> list;
  for (const auto& [state, edges] : axes) list.push_back({state, edges});
  BasinsOptions o;
  std::string method = "cells", join = "nearest";
  take(how, "method", method);
  take(how, "join", join);
  take(how, "join_distance", o.join_distance);
  o.method = method == "cells" ? BasinsOptions::Method::cells : BasinsOptions::Method::direct;
  o.join = join == "nearest" ? BasinsOptions::Join::nearest
           : join == "run"   ? BasinsOptions::Join::run
           : join == "touch" ? BasinsOptions::Join::touch
                             : BasinsOptions::Join::none;
  take(how, "refine", o.refine);
  take(how, "points", o.points);
  take(how, "longest", o.most_period);
  take(how, "tolerance", o.tolerance);
  std::optional<size_t> random;
  std::uint64_t seed = 1;
  take(how, "random", random);
  take(how, "seed", seed);
  BasinsQuestion question{.system = system,
                          .mesh = random ? Mesh(list, *random, seed) : Mesh(list),
                          .solve = solve_of(options, system.model()),
                          .options = o};
  take(how, "section", question.section);
  take(how, "period", question.period);
  Waiting waiting(progress, stop);
  BasinsAnswer answer = waiting([&](const Observer& observer) { return ask(question, observer); });
  const size_t n = system.model().states.size(), dimensions = list.size();
  const Mesh& mesh = answer.mesh;
  std::vector<double> centres(mesh.cells() * dimensions);
  for (size_t i = 0; i < mesh.cells(); ++i) mesh.centre(i, {centres.data() + i * dimensions, dimensions});
  std::map<std::int32_t, std::string> fates;
  std::vector<std::int32_t> group;
  group.reserve(answer.basins.fate.size());
  for (const CellFate& f : answer.basins.fate) {
    group.push_back(group_number(f));
    if (!f.settles()) fates.try_emplace(group.back(), fate_name(f));
  }
  py::list attractors;
  for (Basin& b : answer.basins.basins) {
    const int period = b.attractor.period;
    attractors.append(py::make_tuple(period, rows_of(std::move(b.attractor.points), n), b.cells));
  }
  py::dict d;
  d["group"] = array_of(std::move(group));
  d["centres"] = rows_of(std::move(centres), dimensions);
  d["scattered"] = mesh.scattered();
  d["attractors"] = attractors;
  d["fates"] = fates;
  d["section"] = answer.section;
  d["note"] = answer.note;
  d["computed"] = answer.basins.computed;
  d["seconds"] = answer.seconds;
  waiting.finish(d);
  return d;
}

py::dict exponents(const System& system, const py::dict& options, const std::optional<std::vector<double>>& start,
                   const py::object& progress, const py::object& stop) {
  const ExponentsQuestion question{.system = system, .solve = solve_of(options, system.model()), .start = start};
  Waiting waiting(progress, stop);
  Exponents answer = waiting([&](const Observer& observer) { return ask(question, observer); });
  py::dict d;
  d["exponents"] = array_of(std::move(answer.exponents));
  d["error"] = array_of(std::move(answer.error));
  d["time"] = answer.time;
  d["times"] = array_of(std::move(answer.times));
  py::list running;
  for (std::vector<double>& estimate : answer.running) running.append(array_of(std::move(estimate)));
  d["running"] = running;
  d["end"] = end_of(answer.end);
  d["messages"] = answer.messages;
  waiting.finish(d);
  return d;
}

// ---- orbits, equilibria, branches ----------------------------------------------------------------------------------

py::array complex_of(const std::vector<std::complex<double>>& values) {
  return array_of(std::vector<std::complex<double>>(values));
}

OrbitQuestion orbit_question(const System& system, const py::dict& options,
                             const std::optional<std::vector<double>>& start, const py::dict& how) {
  OrbitQuestion question{.system = system, .solve = solve_of(options, system.model()), .start = start};
  take(how, "section", question.section);
  take(how, "guess", question.guess);
  take(how, "period", question.period);
  std::optional<std::string> time;
  take(how, "time", time);
  if (time) question.time = *time;
  take(how, "backward", question.backward);
  if (how.contains("modulo")) question.modulo = settings(how["modulo"].cast<py::dict>());
  return question;
}

py::dict orbit_dict(OrbitAnswer& answer) {
  Orbit& orbit = answer.orbit;
  const Model& model = answer.system.model();
  py::dict d;
  d["found"] = orbit.found;
  d["why"] = orbit.why;
  d["message"] = orbit.message;
  d["residual"] = orbit.residual;
  d["cancelled"] = answer.cancelled;
  if (!orbit.found) return d;
  Rows rows = orbit_rows(answer);
  d["period"] = orbit.period;
  d["returns"] = orbit.returns;
  d["t"] = orbit.t;
  d["state"] = array_of(std::vector<double>(orbit.state));
  d["mode"] = orbit.mode.text();
  d["stable"] = orbit.stable;
  d["symmetric"] = orbit.symmetric;
  d["multipliers"] = complex_of(orbit.multipliers);
  d["trivial"] = orbit.autonomous ? py::cast(orbit.trivial) : py::none();
  std::vector<double> monodromy;
  for (const std::vector<double>& row : orbit.monodromy) monodromy.insert(monodromy.end(), row.begin(), row.end());
  d["monodromy"] = rows_of(std::move(monodromy), model.states.size());
  py::list legs;
  for (const OrbitLeg& leg : orbit.legs)
    legs.append(py::make_tuple(leg.mode.text(), leg.length, leg.ended_by, leg.stretch));
  d["legs"] = legs;
  d["messages"] = orbit.notes;
  d["iterations"] = orbit.iterations;
  py::dict path = path_of(orbit.trajectory, orbit.notes, model);
  add_rows(path, rows);
  path["pieces"] = pieces_of(orbit.trajectory, model);
  d["path"] = path;
  return d;
}

py::dict orbit(const System& system, const py::dict& options, const std::optional<std::vector<double>>& start,
               const py::dict& how, const py::object& progress, const py::object& stop) {
  const OrbitQuestion question = orbit_question(system, options, start, how);
  Waiting waiting(progress, stop);
  OrbitAnswer answer = waiting([&](const Observer& observer) { return ask(question, observer); });
  py::dict d = orbit_dict(answer);
  waiting.finish(d);
  return d;
}

py::dict orbits(const System& system, const py::dict& options, const std::optional<std::vector<double>>& start,
                const py::dict& how, int starts, const std::vector<std::pair<double, double>>& box, std::uint64_t seed,
                const py::object& progress, const py::object& stop) {
  const OrbitsQuestion question{
      .orbit = orbit_question(system, options, start, how), .starts = starts, .box = box, .seed = seed};
  Waiting waiting(progress, stop);
  OrbitsAnswer answer = waiting([&](const Observer& observer) { return ask(question, observer); });
  py::list list;
  for (Orbit& orbit : answer.orbits) {
    OrbitAnswer one{.system = system, .options = answer.options, .orbit = std::move(orbit)};
    list.append(orbit_dict(one));
  }
  py::dict d;
  d["orbits"] = list;
  waiting.finish(d);
  return d;
}

py::dict equilibrium(const System& system, const py::dict& options, const std::optional<std::vector<double>>& start,
                     const py::object& progress, const py::object& stop) {
  const EquilibriumQuestion question{.system = system, .solve = solve_of(options, system.model()), .start = start};
  Waiting waiting(progress, stop);
  const EquilibriumAnswer answer = waiting([&](const Observer& observer) { return ask(question, observer); });
  const Equilibrium& rest = answer.equilibrium;
  py::dict d;
  d["kind"] = kind_of(rest);
  d["why"] = rest.why;
  d["message"] = rest.message;
  d["t"] = answer.options.from;
  d["state"] = array_of(std::vector<double>(rest.state));
  d["mode"] = rest.mode.text();
  d["eigenvalues"] = complex_of(rest.eigenvalues);
  d["stable"] = rest.stable;
  d["residual"] = rest.residual;
  d["margin"] = rest.margin;
  d["from"] = array_of(std::vector<double>(rest.from));
  d["to"] = array_of(std::vector<double>(rest.to));
  waiting.finish(d);
  return d;
}

/// What a special point is, and what is needed to begin there again.
py::dict special_dict(const SpecialPoint& s, const FollowAnswer& answer) {
  const Model& model = answer.system.model();
  py::dict d, near;
  std::vector<double> values;
  for (size_t k = 0; k < s.values.size(); ++k) values.push_back(value_of(answer.ranges[k], model, s.values[k]));
  d["label"] = s.label;
  d["type"] = s.type;
  d["detail"] = s.detail;
  d["values"] = values;
  d["state"] = array_of(std::vector<double>(s.state));
  d["t"] = s.t;
  d["period"] = s.period;
  d["spectrum"] = complex_of(s.spectrum);
  d["after"] = s.after ? py::object(complex_of(*s.after)) : py::none();
  d["crosses"] = s.crosses;
  d["persists"] = s.persists;
  d["signature"] = s.signature;
  near["values"] = s.near_values;
  near["state"] = s.near_state;
  near["t"] = s.near_t;
  near["period"] = s.near_period;
  near["parameters"] = s.values;
  d["near"] = near;
  return d;
}

py::dict branch_dict(const Branch& branch, const FollowAnswer& answer) {
  const Model& model = answer.system.model();
  const size_t n = model.states.size(), count = branch.points.size(), width = answer.ranges.size();
  size_t most = 0;
  for (const BranchPoint& p : branch.points) most = std::max(most, p.spectrum.size());
  const double none = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values, states, low, high, t, period;
  std::vector<std::complex<double>> spectrum(count * most, {none, none});
  py::array_t<bool> stable(static_cast<py::ssize_t>(count));
  py::list signature, labels, special, ends;
  const auto append = [](std::vector<double>& to, const std::vector<double>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  for (size_t i = 0; i < count; ++i) {
    const BranchPoint& p = branch.points[i];
    for (size_t k = 0; k < width; ++k) values.push_back(value_of(answer.ranges[k], model, p.values[k]));
    append(states, p.state);
    append(low, p.lowest.empty() ? p.state : p.lowest);
    append(high, p.highest.empty() ? p.state : p.highest);
    t.push_back(p.t);
    period.push_back(p.period);
    stable.mutable_at(static_cast<py::ssize_t>(i)) = p.stable;
    std::copy(p.spectrum.begin(), p.spectrum.end(), spectrum.begin() + static_cast<std::ptrdiff_t>(i * most));
    signature.append(py::tuple(py::cast(p.signature)));
    labels.append(p.label);
  }
  for (const SpecialPoint& s : branch.special) special.append(special_dict(s, answer));
  for (const BranchEnd& e : branch.ends)
    ends.append(py::make_tuple(e.direction, e.why, e.detail, value_of(answer.ranges[0], model, e.value)));
  py::dict d;
  d["found"] = branch.found;
  d["why"] = branch.why;
  d["message"] = branch.message;
  d["equilibria"] = branch.equilibria;
  d["values"] = rows_of(std::move(values), width);
  d["states"] = rows_of(std::move(states), n);
  d["lowest"] = rows_of(std::move(low), n);
  d["highest"] = rows_of(std::move(high), n);
  d["t"] = array_of(std::move(t));
  d["period"] = array_of(std::move(period));
  d["stable"] = stable;
  d["spectrum"] = array_of(std::move(spectrum), {static_cast<py::ssize_t>(count), static_cast<py::ssize_t>(most)});
  d["signature"] = signature;
  d["labels"] = labels;
  d["special"] = special;
  d["ends"] = ends;
  return d;
}

using Ends = std::vector<std::tuple<std::string, std::string, std::string>>;  // name, from, to

std::vector<FollowRange> follow_ranges(const Ends& ends) {
  std::vector<FollowRange> ranges;
  for (const auto& [name, from, to] : ends) ranges.push_back({name, from, to});
  return ranges;
}

py::dict follow(const System& system, const py::dict& options, const std::optional<std::vector<double>>& start,
                const Ends& ends, const py::dict& how, const py::object& progress, const py::object& stop) {
  FollowQuestion question{.start = orbit_question(system, options, start, how), .ranges = follow_ranges(ends)};
  take(how, "equilibrium", question.equilibrium);
  take(how, "all", question.all);
  take(how, "points", question.points);
  take(how, "step", question.step);
  std::optional<std::string> longest;
  take(how, "longest_time", longest);
  if (longest) question.longest_time = *longest;
  if (how.contains("at")) {
    const auto at = how["at"].cast<py::dict>();
    SpecialPoint there{.label = at["label"].cast<std::string>(), .type = at["type"].cast<std::string>()};
    there.values = at["parameters"].cast<std::vector<double>>();
    there.near_values = at["values"].cast<std::vector<double>>();
    there.near_state = at["state"].cast<std::vector<double>>();
    there.near_t = at["t"].cast<double>();
    there.near_period = at["period"].cast<double>();
    question = begin_at(question, follow_ranges(at["followed"].cast<Ends>()), there);
  }
  Waiting waiting(progress, stop);
  const FollowAnswer answer = waiting([&](const Observer& observer) { return ask(question, observer); });
  py::list branches;
  for (const Branch& branch : answer.branches) branches.append(branch_dict(branch, answer));
  py::dict d;
  d["branches"] = branches;
  waiting.finish(d);
  return d;
}

using Columns = py::array_t<double, py::array::c_style | py::array::forcecast>;

// ---- a run again as what `saltus run` writes ------------------------------------------------------------------------

/// "+0|c" -> switches and constraints.
Mode mode_of(const std::string& text) {
  const size_t bar = text.find('|');
  return {text.substr(0, bar), bar == text.npos ? "" : text.substr(bar + 1)};
}

EventKind kind_of(const std::string& name) {
  int kind = 0;
  while (kind_name(static_cast<EventKind>(kind)) != name && kind < static_cast<int>(EventKind::mode)) ++kind;
  return static_cast<EventKind>(kind);
}

std::vector<Event> events_from(const py::dict& kept, size_t states) {
  const auto t = kept["t"].cast<Columns>(), state = kept["state"].cast<Columns>(),
             jumped = kept["jumped"].cast<Columns>();
  const auto kind = kept["kind"].cast<std::vector<std::string>>();
  const auto on = kept["on"].cast<std::vector<std::vector<std::string>>>();
  const auto before = kept["before"].cast<std::vector<std::string>>(),
             after = kept["after"].cast<std::vector<std::string>>();
  const auto count = kept["count"].cast<std::vector<long>>();
  std::vector<Event> events(kind.size());
  for (size_t i = 0; i < events.size(); ++i) {
    const double *x = state.data() + i * states, *former = jumped.data() + i * states;
    events[i] = {.t = t.data()[i],
                 .kind = kind_of(kind[i]),
                 .on = on[i],
                 .before = mode_of(before[i]),
                 .after = mode_of(after[i]),
                 .state = {x, x + states},
                 .count = count[i]};
    if (std::any_of(former, former + states, [](double v) { return !std::isnan(v); }))
      events[i].jumped = std::vector<double>(former, former + states);
  }
  return events;
}

/// Rows with the stretches of time in a mode; marks at the events, unless there are too many to be seen.
Rows rows_from(const Model& model, const py::dict& kept, const std::vector<Event>& events) {
  constexpr size_t most_marks = 2000;
  Rows rows{.columns = row_columns(model)};
  const auto cells = kept["cells"].cast<Columns>();
  rows.cells.assign(cells.data(), cells.data() + cells.size());
  const auto from = kept["from"].cast<std::vector<double>>(), to = kept["to"].cast<std::vector<double>>();
  const auto modes = kept["mode"].cast<std::vector<std::string>>();
  std::map<std::string, int> known;
  for (size_t i = 0; i < modes.size(); ++i) {
    const auto [place, fresh] = known.try_emplace(modes[i], static_cast<int>(rows.modes.size()));
    if (fresh) rows.modes.push_back(mode_of(modes[i]));
    rows.stays.push_back({from[i], to[i], place->second});
  }
  for (size_t i = 0; i < events.size() && events.size() <= most_marks; ++i) {
    std::vector<double> row(rows.columns.size(), std::numeric_limits<double>::quiet_NaN());
    row[0] = events[i].t;
    std::copy(events[i].state.begin(), events[i].state.end(), row.begin() + 1);
    rows.mark_cells.insert(rows.mark_cells.end(), row.begin(), row.end());
    rows.mark_kinds.emplace_back(kind_name(events[i].kind));
  }
  return rows;
}

/// The picture of a run, as `saltus run` draws it, from the arrays of its answer.
std::string run_svg(const System& system, const py::dict& kept, const py::dict& kept_events) {
  const Model& model = system.model();
  const Rows rows = rows_from(model, kept, events_from(kept_events, model.states.size()));
  const py::gil_scoped_release without;
  std::vector<Table> tables{data_table(model, rows)};
  Picturing picturing = picture_run(model, rows, tables.front(), {});
  for (Table& table : picturing.tables) tables.push_back(std::move(table));
  return draw_svg(picturing.figure, tables);
}

/// The rows as FILE.csv, rows and events as FILE.h5, or each as a .csv of a folder that is there.
void write_run(const System& system, const py::dict& kept, const py::dict& kept_events, const std::string& target) {
  const Model& model = system.model();
  const std::vector<Event> events = events_from(kept_events, model.states.size());
  const Rows rows = rows_from(model, kept, events);
  const py::gil_scoped_release without;
  const std::vector<Table> tables{data_table(model, rows), events_table(model, events)};
  const std::filesystem::path path(target);
  if (path.extension() == ".csv") {
    write_csv(path, tables.front());
  } else if (path.extension() == ".h5") {
    write_hdf5(path, tables);
  } else {
    write_tables(path, tables);
  }
}

/// The run.toml from which `saltus again` repeats a run that began at `start`.
std::string run_record(const System& system, const std::string& name, const py::dict& options,
                       const std::vector<double>& start, const std::string& sample,
                       const std::optional<std::vector<std::string>>& sensitivity) {
  std::vector<Setting> initial;
  for (size_t i = 0; i < start.size(); ++i) initial.emplace_back(system.model().states[i].name, print_number(start[i]));
  const System begun = system.with({}, initial);
  const SolveOptions words = said(options);
  const RunPlan planned =
      plan({.system = begun, .solve = saltus::solve_of(words, begun.model()), .sensitivity = sensitivity});
  Past past{.version = this_version(),
            .command = "run",
            .name = name,
            .model = begun.text(),
            .files = table_files(begun.model()),
            .options = recorded(words, planned.options)};
  past.options.push_back({"sample", {sample}});
  if (sensitivity)
    past.options.push_back({"sensitivity", sensitivity->empty()
                                               ? std::vector<std::string>{}
                                               : std::vector{fmt::format("{}", fmt::join(*sensitivity, ","))}});
  return write_past(past);
}

/// The polynomials of a dense output, or their `order`-th derivatives, at many times; at a time where one piece ends
/// and the next begins the later one, or with `left` the earlier one.
py::array evaluate_pieces(const Columns& start, const Columns& length, const Columns& coefficients,
                          const Columns& times, bool left, int order) {
  const size_t pieces = static_cast<size_t>(coefficients.shape(0)), n = static_cast<size_t>(coefficients.shape(1)),
               powers = static_cast<size_t>(coefficients.shape(2)), count = static_cast<size_t>(times.size());
  std::vector<double> out(count * n);
  {
    const double *s = start.data(), *l = length.data(), *c = coefficients.data(), *t = times.data();
    const py::gil_scoped_release without;
    const bool backward = pieces > 0 && l[pieces - 1] < 0;
    const auto before = [backward, left](double a, double b) {
      return left ? (backward ? a >= b : a <= b) : (backward ? a > b : a < b);
    };
    for (size_t k = 0; k < count; ++k) {
      const double* later = std::upper_bound(s, s + pieces, t[k], before);
      const size_t p = later == s ? 0 : static_cast<size_t>(later - s) - 1;
      const double tau = t[k] - s[p];
      for (size_t i = 0; i < n; ++i) {
        const double* a = c + (p * n + i) * powers;
        double value = 0;
        for (size_t j = powers; j-- > static_cast<size_t>(order);) {
          double factor = 1;
          for (int d = 0; d < order; ++d) factor *= static_cast<double>(j) - d;
          value = value * tau + factor * a[j];
        }
        out[k * n + i] = value;
      }
    }
  }
  return rows_of(std::move(out), n);
}

/// Rates of states that stand one after the other.
py::array rates_at(const System& system, const Columns& points, double t) {
  std::vector<double> out;
  {
    const std::span<const double> states(points.data(), static_cast<size_t>(points.size()));
    const py::gil_scoped_release without;
    out = rates(system, states, t);
  }
  return rows_of(std::move(out), system.model().states.size());
}

}  // namespace

PYBIND11_MODULE(_core, m) {
  m.doc() = "What saltus.py is made of; import saltus instead.";

  // Errors become the classes of saltus/_errors.py, with their parts as attributes.
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const Error& e) {
      const py::module_ errors = py::module_::import("saltus._errors");
      const char* name = e.kind() == ErrorKind::usage   ? "UsageError"
                         : e.kind() == ErrorKind::model ? "ModelError"
                                                        : "FileError";
      const py::object value =
          errors.attr(name)(e.report(), e.message(), e.hint(), e.place().file, e.place().line, e.place().column);
      PyErr_SetObject(errors.attr(name).ptr(), value.ptr());
    }
  });

  using Release = py::call_guard<py::gil_scoped_release>;
  py::class_<System>(m, "System")
      .def_static("from_file", &System::from_file, Release())
      .def_static("from_text", &System::from_text, Release())
      .def_static("example", &System::example, Release())
      .def("with_values", [](const System& system, const py::dict& parameters,
                             const py::dict& initial) { return system.with(settings(parameters), settings(initial)); })
      .def("facts", &facts_of)
      .def("text", &System::text)
      .def("describe", [](const System& system) { return model_as_text(system.model()); })
      .def("latex", [](const System& system) { return model_as_latex(system.model()); });
  m.def("build", &build);
  m.def("run", &run);
  m.def("section", &section);
  m.def("sweep", &sweep);
  m.def("basins", &basins);
  m.def("exponents", &exponents);
  m.def("orbit", &orbit);
  m.def("orbits", &orbits);
  m.def("equilibrium", &equilibrium);
  m.def("follow", &follow);
  m.def("run_svg", &run_svg);
  m.def("write_run", &write_run);
  m.def("run_record", &run_record);
  m.def("evaluate", &evaluate_pieces);
  m.def("rates", &rates_at);
  m.def("examples", [] {
    py::dict d;
    for (const GalleryModel& g : gallery()) d[py::str(std::string(g.name))] = std::string(g.description());
    return d;
  });
  m.def("option_table", [] {
    py::list rows;
    for (const OptionFact& o : option_table()) {
      if (!o.sentence.empty())
        rows.append(py::make_tuple(std::string(o.name), std::string(o.type), o.words(), std::string(o.commands)));
    }
    return rows;
  });
  m.def("nearest",
        [](const std::string& word, const std::vector<std::string>& known) { return nearest_name(word, known); });
  m.def("number", [](double v) { return print_number(v); });
  m.def("version", &this_version);
}
