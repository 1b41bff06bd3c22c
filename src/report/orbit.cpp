#include "report/orbit.hpp"

#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include "ask/record.hpp"
#include "out/json.hpp"
#include "report/run_json.hpp"
#include "report/summary.hpp"
#include "report/words.hpp"

namespace saltus {
namespace {

using Complex = std::complex<double>;

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
  for (const std::vector<double>& row : orbit.monodromy) {
    json.array();
    for (const double v : row) write_number(json, v);
    json.end();
  }
  json.end().member("symmetric", orbit.symmetric).key("signature").array();
  for (const OrbitLeg& leg : orbit.legs) json.value(leg.mode.text());
  json.end().key("events").rows();
  for (const Event& e : orbit.trajectory.events) write_event(json, model, e);
  json.end().key("messages").value(std::span<const std::string>(orbit.notes));
  json.member("residual", orbit.residual).end();
}

template <class Write>
std::string document(const Write& write) {
  std::ostringstream text;
  JsonWriter json(text);
  write(json);
  json.flush();
  return text.str();
}

// ---- tables --------------------------------------------------------------------------------------------------------

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

Table marks_of(const Model& model, const Orbit& orbit) {
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
  return table.add_numbers("t", std::move(t)).add_texts(kind_of_mark, std::move(kinds));
}

/// In a word; a largest multiplier of 1, as far as one knows, neither attracts nor repels.
std::string_view stability_of(const Orbit& orbit) {
  const double known = std::max(1e-9, 10 * std::abs(orbit.trivial - 1.0));
  if (!orbit.multipliers.empty() && std::abs(std::abs(orbit.multipliers.front()) - 1) <= known) return "neutral";
  return orbit.stable ? "stable" : "unstable";
}

}  // namespace

// ---- one orbit -----------------------------------------------------------------------------------------------------

std::string words_of(const OrbitAnswer& answer) {
  const Orbit& orbit = answer.orbit;
  if (!orbit.found) return fmt::format("none       {}\n", orbit.message);
  std::string out = fmt::format("orbit      period {}{}, {}{}\n", number(orbit.period),
                                orbit.returns > 1 ? fmt::format(" ({} returns)", orbit.returns) : "",
                                stability_of(orbit), orbit.symmetric ? ", symmetric" : "");
  out += fmt::format("state      t = {}, {}\n", number(orbit.t), state_words(answer.system.model(), orbit.state));
  out += fmt::format("multipliers {}", list_of(orbit.multipliers));
  if (orbit.autonomous) out += fmt::format("; trivial 1 to within {:.2g}", std::abs(orbit.trivial - 1.0));
  out += "\n";
  constexpr size_t most = 20;
  for (size_t i = 0; i < std::min(most, orbit.legs.size()); ++i) {
    const OrbitLeg& leg = orbit.legs[i];
    const std::string mode = leg.mode.text();
    out += fmt::format("  leg      {:8} for {}, until {}\n", mode.empty() ? "smooth" : mode, number(leg.length),
                       leg.ended_by);
  }
  if (orbit.legs.size() > most) out += fmt::format("  and {} more legs\n", orbit.legs.size() - most);
  out += fmt::format("residual   {:.2g} after {} iterations\n", orbit.residual, orbit.iterations);
  return out + note_lines(orbit.notes);
}

std::string json_of(const OrbitAnswer& answer) {
  return document([&](JsonWriter& json) { write_orbit(json, answer.system.model(), answer.orbit); });
}

Rows orbit_rows(const OrbitAnswer& answer) {
  RunTables tables(answer.system.program(), answer.options, {});
  const Trajectory& run = answer.orbit.trajectory;
  size_t next = 0;
  for (const Piece& piece : run.pieces) {
    for (; next < run.events.size() &&
           std::abs(run.events[next].t - run.start_time) <= std::abs(piece.start - run.start_time);
         ++next)
      tables.event(run.events[next], run.arcs[static_cast<size_t>(piece.arc)]);
    tables.piece(piece, run.arcs[static_cast<size_t>(piece.arc)]);
  }
  tables.finish(run);
  return tables.take_rows();
}

std::vector<Table> tables_of(const OrbitAnswer& answer) {
  if (!answer.orbit.found) return {};
  const Model& model = answer.system.model();
  return {data_table(model, orbit_rows(answer)), events_table(model, answer.orbit.trajectory.events),
          legs_table(answer.orbit), complex_table("multipliers", "without the trivial one", answer.orbit.multipliers)};
}

Picturing picture_of(const OrbitAnswer& answer, const std::vector<std::string>& shown) {
  const Model& model = answer.system.model();
  const Orbit& orbit = answer.orbit;
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
    result.tables.push_back(marks_of(model, orbit));
    const Table& marks = result.tables.back();
    if (marks.has(x) && marks.has(y))
      plane.layers.push_back(Points{.table = "marks", .x = x, .y = y, .kind = kind_of_mark});
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

// ---- many orbits ---------------------------------------------------------------------------------------------------

std::string words_of(const OrbitsAnswer& answer) {
  std::string out;
  for (const Orbit& o : answer.orbits)
    out += fmt::format("orbit      period {}, {}, {}; multipliers {}\n", number(o.period), stability_of(o),
                       state_words(answer.system.model(), o.state), list_of(o.multipliers));
  return out.empty() ? "none       no start led to an orbit\n" : out;
}

std::string json_of(const OrbitsAnswer& answer) {
  return document([&](JsonWriter& json) {
    json.object().key("orbits").rows();
    for (const Orbit& o : answer.orbits) write_orbit(json, answer.system.model(), o);
    json.end().end();
  });
}

std::vector<Table> tables_of(const OrbitsAnswer& answer) {
  const Model& model = answer.system.model();
  Table data("data", "orbits found");
  Numbers periods, stable, largest;
  for (const Orbit& o : answer.orbits) {
    periods.push_back(o.period);
    stable.push_back(o.stable);
    largest.push_back(o.multipliers.empty() ? 0 : std::abs(o.multipliers[0]));
  }
  data.add_numbers("period", std::move(periods)).add_numbers("stable", std::move(stable));
  data.add_numbers("largest", std::move(largest), "modulus of the largest multiplier");
  for (size_t i = 0; i < model.states.size(); ++i) {
    Numbers values;
    for (const Orbit& o : answer.orbits) values.push_back(o.state[i]);
    data.add_own(model.states[i].name, std::move(values));
  }
  return {std::move(data)};
}

Picturing picture_of(const OrbitsAnswer& answer, const std::vector<std::string>&) {
  const Model& model = answer.system.model();
  const std::string x = model.states.front().name, y = model.states.size() > 1 ? model.states[1].name : "period";
  Picturing result{{.title = model.name + ": orbits", .caption = caption_of(model)}, {}};
  result.figure.stacks.push_back(
      {.panels = {Panel{.x = {.label = x}, .y = {.label = y}, .layers = {Points{.x = x, .y = y}}}}});
  return result;
}

// ---- points of rest ------------------------------------------------------------------------------------------------

std::string kind_of(const Equilibrium& equilibrium) {
  switch (equilibrium.kind) {
    case Equilibrium::Kind::equilibrium: return "equilibrium";
    case Equilibrium::Kind::pseudo: return "pseudo-equilibrium";
    case Equilibrium::Kind::set: return "equilibrium-set";
    case Equilibrium::Kind::none: break;
  }
  return "none";
}

/// In a word; eigenvalues on the imaginary axis, as far as one knows, neither attract nor repel.
std::string_view stability_of(const Equilibrium& e) {
  constexpr double known = 1e-9;
  double largest = 0;
  for (const std::complex<double>& z : e.eigenvalues) largest = std::max(largest, std::abs(z));
  if (!e.eigenvalues.empty() && std::abs(e.eigenvalues.front().real()) <= known * largest) return "neutral";
  return e.stable ? "stable" : "unstable";
}

std::string words_of(const EquilibriumAnswer& answer) {
  const Equilibrium& e = answer.equilibrium;
  const Model& model = answer.system.model();
  if (e.kind == Equilibrium::Kind::none) return fmt::format("none       {}\n", e.message);
  const bool set = e.kind == Equilibrium::Kind::set;
  std::string out = fmt::format("{:11}{}{}{}\n", "rest", kind_of(e), set ? "" : ", ", set ? "" : stability_of(e));
  out += fmt::format("state      {}{}\n", state_words(model, e.state),
                     e.mode.text().empty() ? "" : ", mode " + e.mode.text());
  if (set) out += fmt::format("from       {}\nto         {}\n", state_words(model, e.from), state_words(model, e.to));
  out += fmt::format("eigenvalues {}\n", list_of(e.eigenvalues));
  if (e.margin) out += fmt::format("margin     {} (smallest contact force)\n", number(*e.margin));
  return out;
}

std::string json_of(const EquilibriumAnswer& answer) {
  const Equilibrium& e = answer.equilibrium;
  const Model& model = answer.system.model();
  return document([&](JsonWriter& json) {
    json.object().member("kind", kind_of(e));
    if (e.kind == Equilibrium::Kind::none) {
      json.member("why", e.why).member("message", e.message).member("residual", e.residual).end();
      return;
    }
    json.member("t", answer.options.from);
    write_state(json.key("state"), model, e.state);
    json.member("mode", e.mode.text()).member("stable", e.stable);
    write_list(json, "eigenvalues", e.eigenvalues);
    if (e.margin) json.member("margin", *e.margin);
    if (e.kind == Equilibrium::Kind::set) {
      write_state(json.key("from"), model, e.from);
      write_state(json.key("to"), model, e.to);
    }
    json.member("residual", e.residual).end();
  });
}

std::vector<Table> tables_of(const EquilibriumAnswer& answer) {
  const Equilibrium& e = answer.equilibrium;
  Table data("data", "the equilibrium");
  for (size_t i = 0; i < answer.system.model().states.size(); ++i)
    data.add_numbers(answer.system.model().states[i].name, e.state.empty() ? Numbers{} : Numbers{e.state[i]});
  return {std::move(data), complex_table("eigenvalues", "of the flow in the mode", e.eigenvalues)};
}

Picturing picture_of(const EquilibriumAnswer& answer, const std::vector<std::string>&) {
  const Model& model = answer.system.model();
  Panel panel{.title = "eigenvalues", .x = {.label = "re"}, .y = {.label = "im"}};
  if (!answer.equilibrium.eigenvalues.empty()) panel.layers = {Points{.table = "eigenvalues", .x = "re", .y = "im"}};
  Picturing result{{.title = model.name + ": " + kind_of(answer.equilibrium), .caption = caption_of(model)}, {}};
  result.figure.stacks.push_back({.panels = {std::move(panel)}});
  return result;
}

}  // namespace saltus
