#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/equilibrium.hpp"
#include "analysis/orbit.hpp"
#include "app/commands.hpp"
#include "app/engine.hpp"
#include "app/orbit_words.hpp"
#include "app/result_folder.hpp"
#include "app/view.hpp"
#include "ask/record.hpp"
#include "expr/print.hpp"
#include "model/read.hpp"
#include "out/json.hpp"
#include "report/run_figure.hpp"
#include "report/run_json.hpp"
#include "report/summary.hpp"

namespace saltus {
namespace {

using Complex = std::complex<double>;

[[noreturn]] void misuse(std::string message, std::string hint) {
  throw Error(ErrorKind::usage, std::move(message), {}, std::move(hint));
}

// ---- JSON ----------------------------------------------------------------------------------------------------------

void write_orbit(JsonWriter& json, const Model& model, const Orbit& orbit) {
  json.object().member("kind", orbit.found ? "orbit" : "none");
  if (!orbit.found) {
    json.member("why", orbit.why).member("message", orbit.message).member("residual", orbit.residual).end();
    return;
  }
  json.member("period", orbit.period).member("returns", orbit.returns).member("t", orbit.t);
  write_state(json.key("state"), model, orbit.state);
  json.member("mode", orbit.mode.text()).member("stable", orbit.stable);
  write_list(json, "multipliers", orbit.multipliers);
  if (orbit.autonomous) write_complex(json.key("trivial"), orbit.trivial);
  json.key("monodromy").array();
  for (Eigen::Index i = 0; i < orbit.monodromy.rows(); ++i) {
    json.array();
    for (Eigen::Index j = 0; j < orbit.monodromy.cols(); ++j) write_number(json, orbit.monodromy(i, j));
    json.end();
  }
  json.end().member("symmetric", orbit.symmetric).key("signature").array();
  for (const OrbitLeg& leg : orbit.legs) json.value(leg.mode.text());
  json.end().key("events").rows();
  for (const Event& e : orbit.trajectory.events) write_event(json, model, e);
  json.end().key("messages").value(std::span<const std::string>(orbit.notes));
  json.member("residual", orbit.residual).end();
}

std::string kind_of(const Equilibrium& e) {
  switch (e.kind) {
    case Equilibrium::Kind::equilibrium: return "equilibrium";
    case Equilibrium::Kind::pseudo: return "pseudo-equilibrium";
    case Equilibrium::Kind::set: return "equilibrium-set";
    case Equilibrium::Kind::none: break;
  }
  return "none";
}

void write_equilibrium(JsonWriter& json, const Model& model, const Equilibrium& e, double t) {
  json.object().member("kind", kind_of(e));
  if (e.kind == Equilibrium::Kind::none) {
    json.member("why", e.why).member("message", e.message).member("residual", e.residual).end();
    return;
  }
  json.member("t", t);
  write_state(json.key("state"), model, e.state);
  json.member("mode", e.mode.text()).member("stable", e.stable);
  write_list(json, "eigenvalues", e.eigenvalues);
  if (e.margin) json.member("margin", *e.margin);
  if (e.kind == Equilibrium::Kind::set) {
    write_state(json.key("from"), model, e.from);
    write_state(json.key("to"), model, e.to);
  }
  json.member("residual", e.residual).end();
}

// ---- words ---------------------------------------------------------------------------------------------------------

std::string orbit_words(const Model& model, const Orbit& orbit) {
  if (!orbit.found) return fmt::format("none       {}\n", orbit.message);
  std::string out = fmt::format("orbit      period {}{}, {}{}\n", number(orbit.period),
                                orbit.returns > 1 ? fmt::format(" ({} returns)", orbit.returns) : "",
                                orbit.stable ? "stable" : "unstable", orbit.symmetric ? ", symmetric" : "");
  out += fmt::format("state      t = {}, {}\n", number(orbit.t), state_words(model, orbit.state));
  out += fmt::format("multipliers {}", list_of(orbit.multipliers));
  if (orbit.autonomous) out += fmt::format("; trivial 1 to within {:.2g}", std::abs(orbit.trivial - 1.0));
  out += "\n";
  for (const OrbitLeg& leg : orbit.legs) {
    const std::string mode = leg.mode.text();
    out += fmt::format("  leg      {:8} for {}, until {}\n", mode.empty() ? "smooth" : mode, number(leg.length),
                       leg.ended_by);
    if (&leg - orbit.legs.data() >= 19) {
      if (orbit.legs.size() > 20) out += fmt::format("  and {} more legs\n", orbit.legs.size() - 20);
      break;
    }
  }
  out += fmt::format("residual   {:.2g} after {} iterations\n", orbit.residual, orbit.iterations);
  return out + note_lines(orbit.notes);
}

std::string equilibrium_words(const Model& model, const Equilibrium& e) {
  if (e.kind == Equilibrium::Kind::none) return fmt::format("none       {}\n", e.message);
  std::string out = fmt::format("{:11}{}{}\n", "rest", kind_of(e),
                                e.kind == Equilibrium::Kind::set ? ""
                                : e.stable                       ? ", stable"
                                                                 : ", unstable");
  out += fmt::format("state      {}{}\n", state_words(model, e.state),
                     e.mode.text().empty() ? "" : ", mode " + e.mode.text());
  if (e.kind == Equilibrium::Kind::set)
    out += fmt::format("from       {}\nto         {}\n", state_words(model, e.from), state_words(model, e.to));
  out += fmt::format("eigenvalues {}\n", list_of(e.eigenvalues));
  if (e.margin) out += fmt::format("margin     {} (smallest contact force)\n", number(*e.margin));
  return out;
}

// ---- folder --------------------------------------------------------------------------------------------------------

Table orbit_rows(const Program& program, const RunOptions& options, const Orbit& orbit) {
  RunTables tables(program, options, {});
  const Trajectory& run = orbit.trajectory;
  size_t next = 0;
  for (const Piece& piece : run.pieces) {
    for (; next < run.events.size() &&
           std::abs(run.events[next].t - run.start_time) <= std::abs(piece.start - run.start_time);
         ++next)
      tables.event(run.events[next], run.arcs[static_cast<size_t>(piece.arc)]);
    tables.piece(piece, run.arcs[static_cast<size_t>(piece.arc)]);
  }
  tables.finish(run);
  return data_table(program.model(), tables.take_rows());
}

Table legs_table(const Orbit& orbit) {
  Table table("legs", "stretches of the orbit in one mode");
  Texts modes, ends;
  Numbers lengths, stretches;
  for (const OrbitLeg& leg : orbit.legs) {
    modes.push_back(leg.mode.text());
    lengths.push_back(leg.length);
    ends.push_back(leg.ended_by);
    stretches.push_back(leg.stretch);
  }
  return table.add_texts("mode", std::move(modes))
      .add_numbers("length", std::move(lengths), "time")
      .add_texts("ended_by", std::move(ends))
      .add_numbers("stretch", std::move(stretches), "how much what ends it stretches tangents");
}

Table complex_table(const char* name, const char* what, const std::vector<Complex>& list) {
  Table table(name, what);
  Numbers re, im;
  for (const Complex& z : list) {
    re.push_back(z.real());
    im.push_back(z.imag());
  }
  return table.add_numbers("re", std::move(re)).add_numbers("im", std::move(im));
}

Table marks_table(const Model& model, const Orbit& orbit) {
  Table table("marks", "events on the orbit");
  Texts kinds;
  for (const Event& e : orbit.trajectory.events) kinds.emplace_back(kind_name(e.kind));
  for (size_t i = 0; i < model.states.size(); ++i) {
    Numbers values;
    for (const Event& e : orbit.trajectory.events) values.push_back(e.state[i]);
    table.add_numbers(model.states[i].name, std::move(values));
  }
  Numbers t;
  for (const Event& e : orbit.trajectory.events) t.push_back(e.t);
  return table.add_numbers("t", std::move(t)).add_texts("kind", std::move(kinds));
}

Picturing picture_orbit(const Model& model, const Orbit& orbit, const std::vector<std::string>& shown) {
  Picturing result{
      {.title = fmt::format("{}: orbit of period {}", model.name, number(orbit.period)), .caption = caption_of(model)},
      {}};
  std::string x = "t", y = model.states.front().name;
  if (shown.size() >= 2) {
    x = shown[0], y = shown[1];
  } else if (shown.size() == 1) {
    y = shown[0];
  } else if (model.states.size() >= 2) {
    x = model.states[0].name, y = model.states[1].name;
  }
  Panel plane{.x = {.label = x}, .y = {.label = y}, .layers = {Line{.x = x, .y = y}}};
  if (!orbit.trajectory.events.empty()) {
    result.tables.push_back(marks_table(model, orbit));
    const Table& marks = result.tables.back();
    if (marks.has(x) && marks.has(y)) plane.layers.push_back(Points{.table = "marks", .x = x, .y = y, .kind = "kind"});
  }
  std::vector<Complex> finite;
  for (const Complex& z : orbit.multipliers) {
    if (std::isfinite(z.real())) finite.push_back(z);
  }
  Panel circle{.title = "multipliers", .x = {.label = "re"}, .y = {.label = "im"}, .equal = true, .layers = {Circle{}}};
  if (!finite.empty()) {
    result.tables.push_back(complex_table("circle", "finite multipliers", finite));
    circle.layers.push_back(Points{.table = "circle", .x = "re", .y = "im"});
  }
  result.figure.stacks.push_back({.panels = {std::move(plane)}, .width = 2});
  result.figure.stacks.push_back({.panels = {std::move(circle)}});
  return result;
}

Past past_of(const OrbitRequest& request, const RunOptions& options, const Model& model) {
  Past past{.version = this_version(),
            .command = "orbit",
            .name = short_name(request.model.model),
            .model = write_model(model),
            .files = table_files(model),
            .options = recorded(request.solve, options)};
  if (!request.section.empty()) past.options.push_back({"section", {request.section}});
  if (request.guess) past.options.push_back({"guess", {}});
  if (request.period > 0) past.options.push_back({"period", {fmt::format("{}", request.period)}});
  if (request.time) past.options.push_back({"time", {*request.time}});
  if (request.backward) past.options.push_back({"backward", {}});
  if (request.equilibrium) past.options.push_back({"equilibrium", {}});
  if (!request.modulo.empty()) past.options.push_back({"modulo", request.modulo});
  if (request.starts) {
    past.options.push_back({"starts", {fmt::format("{}", *request.starts)}});
    past.options.push_back({"box", request.box});
    past.options.push_back({"seed", {fmt::format("{}", request.seed)}});
  }
  for (Past::Option& option : recorded(request.output)) past.options.push_back(std::move(option));
  return past;
}

void keep_start(Past& past, const Model& model, double t, const std::vector<double>& x, const Mode& mode) {
  past.start.emplace();
  past.start->t = t;
  past.start->mode = mode.text();
  for (size_t i = 0; i < x.size(); ++i) past.start->state.emplace_back(model.states[i].name, x[i]);
}

// ---- many starts ---------------------------------------------------------------------------------------------------

std::vector<std::pair<double, double>> read_box(const OrbitRequest& request, const Model& model) {
  std::vector<std::pair<double, double>> box(model.states.size(), {std::nan(""), std::nan("")});
  for (const std::string& text : request.box) {
    std::stringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
      const Setting s = read_setting(part, "--box");
      const size_t colon = s.value.find(':');
      if (colon == s.value.npos) misuse(fmt::format("--box {}: this is no interval", part), "write --box y=-2:2");
      box[static_cast<size_t>(find_state(model, s.name, "--box"))] = {read_number(s.value.substr(0, colon), "--box"),
                                                                      read_number(s.value.substr(colon + 1), "--box")};
    }
  }
  return box;
}

bool same_orbit(const Orbit& a, const Orbit& b) {
  if (std::abs(a.period - b.period) > 1e-6 * a.period) return false;
  // On the section an orbit of several returns may be met at any of its points.
  std::vector<double> size(a.state.size(), 0.0);
  for (const Piece& p : a.trajectory.pieces) {
    const size_t stride = p.coefficients.size() / a.state.size();
    for (size_t i = 0; i < size.size(); ++i) size[i] = std::max(size[i], std::abs(p.coefficients[i * stride]));
  }
  const int samples = std::max(1, a.returns);
  for (int k = 0; k < samples; ++k) {
    const double t = a.trajectory.start_time + (a.trajectory.end.t - a.trajectory.start_time) * k / samples;
    const std::vector<double> x = k == 0 ? a.state : a.trajectory(t);
    bool same = true;
    for (size_t i = 0; i < x.size(); ++i) same = same && std::abs(x[i] - b.state[i]) <= 1e-6 * std::max(size[i], 1e-12);
    if (same) return true;
  }
  return false;
}

std::vector<Orbit> many_orbits(const OrbitRequest& request, const Model& model, const OrbitOptions& options,
                               const Report& report) {
  if (*request.starts < 1) misuse(fmt::format("--starts {}: no such number", *request.starts), "give 1 or more");
  if (request.box.empty()) misuse("random starts need a box", "give the interval of each state: --box y=-2:2");
  const std::vector<std::pair<double, double>> box = read_box(request, model);
  std::mt19937_64 random(request.seed);
  std::vector<Orbit> found;
  for (int k = 0; k < *request.starts; ++k) {
    OrbitOptions one = options;
    for (size_t i = 0; i < box.size(); ++i) {
      const double u = static_cast<double>(random() >> 11) * 0x1p-53;
      if (!std::isnan(box[i].first)) one.run.initial[i] = box[i].first + u * (box[i].second - box[i].first);
    }
    if (report && !report({"start", 0, static_cast<double>(k), static_cast<double>(*request.starts)})) break;
    // Near each start both what it settles on and what lies close by, stable or not.
    for (const bool guess : {options.guess, true}) {
      one.guess = guess;
      Orbit orbit = try_orbit(model, one);
      if (!orbit.found) continue;
      if (std::none_of(found.begin(), found.end(), [&](const Orbit& o) { return same_orbit(o, orbit); }))
        found.push_back(std::move(orbit));
      if (options.guess) break;
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Orbit& a, const Orbit& b) {
    if (std::abs(a.period - b.period) > 1e-9 * a.period) return a.period < b.period;
    return a.state < b.state;
  });
  return found;
}

}  // namespace

Outcome orbit(const OrbitRequest& request, const Report& report) {
  request.output.check();
  ModelOptions given = request.model;
  given.as_given = true;  // `again` repeats the search
  Model model = load_model(given, request.solve.from);
  if (model.name.empty()) model.name = short_name(request.model.model);
  const SolveOptions solve = event_driven(request.solve, "orbits");
  RunOptions options =
      run_options(solve, model, model.run.until ? std::optional<double>() : std::optional<double>(100.0));
  if (report) options.progress = [&](double) { return report({"t", 0, 0, 1}); };
  std::vector<std::string> columns{"t"};
  for (const State& state : model.states) columns.push_back(state.name);
  const std::vector<std::string> shown = find_columns(request.output.show, columns);

  Status status = Status::done;
  std::ostringstream text;
  JsonWriter json(text);
  Results results{.past = past_of(request, options, model)};
  const Program program(model);
  const ResultFolder folder = open_folder(request.output, results.past);
  begin(folder, results.past);
  const bool saves = folder || !request.output.picture.empty();
  std::string summary;
  size_t rows = 0;
  if (request.equilibrium) {
    const Equilibrium rest = find_equilibrium(program, {options});
    write_equilibrium(json, model, rest, options.from);
    summary = equilibrium_words(model, rest);
    if (rest.kind == Equilibrium::Kind::none) status = Status::ended_badly;
    Table data("data", "the equilibrium");
    for (size_t i = 0; i < model.states.size(); ++i)
      data.add_numbers(model.states[i].name, rest.state.empty() ? Numbers{} : Numbers{rest.state[i]});
    results.tables.push_back(std::move(data));
    results.tables.push_back(complex_table("eigenvalues", "of the flow in the mode", rest.eigenvalues));
    Panel panel{.title = "eigenvalues", .x = {.label = "re"}, .y = {.label = "im"}};
    if (!rest.eigenvalues.empty()) panel.layers = {Points{.table = "eigenvalues", .x = "re", .y = "im"}};
    results.figure = {.title = model.name + ": " + kind_of(rest), .caption = caption_of(model)};
    results.figure.stacks.push_back({.panels = {std::move(panel)}});
    if (!rest.state.empty()) keep_start(results.past, model, options.from, rest.state, rest.mode);
    rows = 1;
  } else if (request.starts) {
    const std::vector<Orbit> found = many_orbits(request, model, orbit_options(request, model, options), report);
    json.object().key("orbits").rows();
    for (const Orbit& o : found) write_orbit(json, model, o);
    json.end().end();
    Table data("data", "orbits found");
    Numbers periods, stable, largest;
    for (const Orbit& o : found) {
      periods.push_back(o.period);
      stable.push_back(o.stable);
      largest.push_back(o.multipliers.empty() ? 0 : std::abs(o.multipliers[0]));
      summary += fmt::format("orbit      period {}, {}, {}; multipliers {}\n", number(o.period),
                             o.stable ? "stable" : "unstable", state_words(model, o.state), list_of(o.multipliers));
    }
    if (found.empty()) {
      summary = "none       no start led to an orbit\n";
      status = Status::ended_badly;
    }
    data.add_numbers("period", std::move(periods)).add_numbers("stable", std::move(stable));
    data.add_numbers("largest", std::move(largest), "modulus of the largest multiplier");
    for (size_t i = 0; i < model.states.size(); ++i) {
      Numbers values;
      for (const Orbit& o : found) values.push_back(o.state[i]);
      data.add_numbers(model.states[i].name, std::move(values));
    }
    rows = data.rows();
    const std::string x = model.states.front().name, y = model.states.size() > 1 ? model.states[1].name : "period";
    results.figure = {.title = model.name + ": orbits", .caption = caption_of(model)};
    results.figure.stacks.push_back(
        {.panels = {Panel{.x = {.label = x}, .y = {.label = y}, .layers = {Points{.x = x, .y = y}}}}});
    results.tables.push_back(std::move(data));
  } else {
    const Orbit found = find_orbit(model, orbit_options(request, model, options));
    write_orbit(json, model, found);
    summary = orbit_words(model, found);
    if (!found.found) status = Status::ended_badly;
    if (found.found && saves) {
      results.tables.push_back(orbit_rows(program, options, found));
      rows = results.tables.back().rows();
      results.tables.push_back(events_table(model, found.trajectory.events));
      results.tables.push_back(legs_table(found));
      results.tables.push_back(complex_table("multipliers", "without the trivial one", found.multipliers));
      Picturing picturing = picture_orbit(model, found, shown);
      results.figure = std::move(picturing.figure);
      results.drawn = std::move(picturing.tables);
      keep_start(results.past, model, found.t, found.state, found.mode);
      results.past.start->period = found.period;
      for (const OrbitLeg& leg : found.legs) results.past.start->signature.push_back(leg.mode.text());
    }
  }
  json.flush();
  Saved saved;
  begin(folder, results.past);  // with the orbit
  if (saves) saved = save(std::move(results), folder, request.output);
  return conclude(status, request.output, saved,
                  {.json = [&] { return text.str(); }, .words = summary, .briefly = summary, .rows = rows});
}

}  // namespace saltus
