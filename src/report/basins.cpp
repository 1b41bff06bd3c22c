#include "report/basins.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/numbers.hpp"
#include "out/json.hpp"

namespace saltus {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// ---- tables --------------------------------------------------------------------------------------------------------

struct FateCount {
  CellFate fate;
  std::size_t cells = 0;
};

/// How many cells have each fate there is, the lowest number first.
std::vector<FateCount> count_fates(const Basins& basins) {
  std::map<CellFate, std::size_t> counts;
  for (const CellFate& f : basins.fate) ++counts[f];
  std::vector<FateCount> list;
  for (const auto& [fate, cells] : counts) list.push_back({fate, cells});
  std::sort(list.begin(), list.end(),
            [](const FateCount& a, const FateCount& b) { return group_number(a.fate) < group_number(b.fate); });
  return list;
}

std::string group_name(const Basins& basins, const CellFate& fate) {
  if (!fate.settles()) return std::string(fate_name(fate));
  const int period = basins.basins[fate.place()].attractor.period;
  return period > 0 ? fmt::format("period {}", period) : "no period";
}

Table cells_table(const Model& model, const Mesh& mesh, const Basins& basins) {
  Table table("data", "one row per cell");
  const std::size_t n = mesh.cells();
  const auto column = [&](auto value) {
    Numbers numbers(n);
    for (std::size_t i = 0; i < n; ++i) numbers[i] = static_cast<double>(value(i));
    return numbers;
  };
  table.add_numbers("cell", column([](std::size_t i) { return i + 1; }),
                    "number, the first axis fastest; 0 is the sink");
  std::vector<double> values(mesh.axes().size());
  for (std::size_t a = 0; a < values.size(); ++a) {
    table.add_own(model.states[at(mesh.axes()[a].state)].name, column([&](std::size_t i) {
                    mesh.centre(i, values);
                    return values[a];
                  }),
                  "state at the centre");
  }
  if (!basins.images.empty()) {
    table.add_numbers("image", column([&](std::size_t i) { return std::max(0, basins.images[i] + 1); }),
                      "the cell its centre is mapped to");
  }
  table.add_numbers("group", column([&](std::size_t i) { return group_number(basins.fate[i]); }),
                    "where it ends: see groups");
  if (!basins.images.empty()) {
    table.add_numbers("cycle", column([&](std::size_t i) { return basins.mapping.cycle[i] + 1; }),
                      "the cycle of cells it ends on: see cycles");
    table.add_numbers("transient", column([&](std::size_t i) { return basins.mapping.transient[i]; }),
                      "steps until it is there");
    table.add_numbers("period", column([&](std::size_t i) {
                        const std::int32_t c = basins.mapping.cycle[i];
                        return c < 0 ? 0 : basins.mapping.cycles[at(c)].period();
                      }),
                      "of the cycle");
  }
  if (!basins.was_run.empty())
    table.add_numbers("run", column([&](std::size_t i) { return basins.was_run[i]; }), "1: run, 0: filled in");
  return table;
}

Table groups_table(const Basins& basins) {
  Table table("groups", "where cells end");
  Numbers group, period, cells, fraction, cycles;
  Texts what;
  for (const auto& [fate, count] : count_fates(basins)) {
    const Basin* basin = fate.settles() ? &basins.basins[fate.place()] : nullptr;
    group.push_back(group_number(fate));
    what.emplace_back(fate_name(fate));
    period.push_back(basin ? basin->attractor.period : nan);
    cells.push_back(static_cast<double>(count));
    fraction.push_back(basins.fraction(count));
    cycles.push_back(basin ? static_cast<double>(basin->cycles.size()) : nan);
  }
  table.add_numbers("group", std::move(group), "attractors from 1; 0 is the sink");
  table.add_texts("what", std::move(what));
  table.add_numbers("period", std::move(period), "of the attractor, in points of the section; 0: none found");
  table.add_numbers("cells", std::move(cells));
  table.add_numbers("fraction", std::move(fraction), "of all cells");
  if (!basins.images.empty()) table.add_numbers("cycles", std::move(cycles), "of cells that were joined");
  return table;
}

Table cycles_table(const Basins& basins) {
  Table table("cycles", "cycles of the cell mapping");
  Numbers number, group, period, cells;
  Texts members;
  for (std::size_t c = 0; c < basins.mapping.cycles.size(); ++c) {
    const CellCycle& cycle = basins.mapping.cycles[c];
    number.push_back(static_cast<double>(c) + 1);
    group.push_back(group_number(basins.fate_of_cycle[c]));
    period.push_back(static_cast<double>(cycle.period()));
    cells.push_back(static_cast<double>(cycle.basin));
    std::vector<CellIndex> numbers;
    for (const CellIndex cell : cycle.cells) numbers.push_back(cell + 1);
    members.push_back(fmt::format("{}", fmt::join(numbers, " ")));
  }
  table.add_numbers("cycle", std::move(number)).add_numbers("group", std::move(group), "it was joined to");
  table.add_numbers("period", std::move(period)).add_numbers("cells", std::move(cells), "that end on it");
  table.add_texts("zero_transient", std::move(members), "the cells on it, in order");
  return table;
}

Table attractors_table(const Model& model, const Basins& basins) {
  Table table("attractors", "points of the attractors on the section");
  const std::size_t n = model.states.size();
  Numbers group, k;
  std::vector<Numbers> states(n);
  for (std::size_t b = 0; b < basins.basins.size(); ++b) {
    const Attractor& a = basins.basins[b].attractor;
    for (std::size_t i = 0; i < a.count(n); ++i) {
      group.push_back(static_cast<double>(b) + 1);
      k.push_back(static_cast<double>(i) + 1);
      for (std::size_t s = 0; s < n; ++s) states[s].push_back(a.point(i, n)[s]);
    }
  }
  table.add_numbers("group", std::move(group)).add_numbers("k", std::move(k), "number of the point");
  for (std::size_t s = 0; s < n; ++s) table.add_own(model.states[s].name, std::move(states[s]), "state");
  return table;
}

// ---- picture -------------------------------------------------------------------------------------------------------

/// The groups of the plane on a uniform grid of picture elements, one per cell where cells are equal and not too many.
Table plane_table(const Mesh& mesh, const Basins& basins, const BasinsPlane& plane) {
  constexpr std::size_t most = 1000;
  const auto is_uniform = [](const CellAxis& axis) {
    const double width = (axis.to() - axis.from()) / static_cast<double>(axis.cells());
    for (std::size_t k = 0; k < axis.cells(); ++k) {
      if (std::abs(axis.edges[k + 1] - axis.edges[k] - width) > 1e-6 * width) return false;
    }
    return true;
  };
  const auto elements = [&](const CellAxis& axis) { return is_uniform(axis) ? std::min(most, axis.cells()) : most; };
  const bool line = mesh.axes().size() == 1;
  const CellAxis unit = uniform_axis(0, 0, 1, 1);
  const CellAxis &across = mesh.axes()[plane.across], &up = line ? unit : mesh.axes()[plane.up];
  const std::size_t nx = elements(across), ny = elements(up);
  std::vector<std::size_t> stride{1};
  for (const CellAxis& axis : mesh.axes()) stride.push_back(stride.back() * axis.cells());
  std::vector<std::size_t> place = plane.place;
  Numbers x, y, group;
  for (std::size_t j = 0; j < ny; ++j) {
    for (std::size_t i = 0; i < nx; ++i) {
      const auto middle = [](const CellAxis& axis, std::size_t k, std::size_t n) {
        return axis.from() + (axis.to() - axis.from()) * (static_cast<double>(k) + 0.5) / static_cast<double>(n);
      };
      x.push_back(middle(across, i, nx));
      y.push_back(middle(up, j, ny));
      place[plane.across] = at(across.locate(x.back()));
      if (!line) place[plane.up] = at(up.locate(y.back()));
      std::size_t cell = 0;
      for (std::size_t a = 0; a < place.size(); ++a) cell += place[a] * stride[a];
      group.push_back(group_number(basins.fate[cell]));
    }
  }
  Table table("plane", "groups in the plane shown");
  table.add_numbers("x", std::move(x)).add_numbers("y", std::move(y)).add_numbers("group", std::move(group));
  return table;
}

Table scatter_table(const Mesh& mesh, const Basins& basins, const BasinsPlane& plane) {
  Table table("plane", "groups of random points");
  Numbers x, y;
  Texts group;
  std::vector<double> values(std::max<std::size_t>(2, mesh.axes().size()), 0.5);
  for (std::size_t i = 0; i < mesh.cells(); ++i) {
    mesh.centre(i, std::span(values).first(mesh.axes().size()));
    x.push_back(values[plane.across]);
    y.push_back(values[plane.up]);
    const CellFate& f = basins.fate[i];
    const std::string name = group_name(basins, f);
    group.push_back(f.settles() ? fmt::format("{}: {}", group_number(f), name) : name);
  }
  table.add_numbers("x", std::move(x)).add_numbers("y", std::move(y)).add_texts("group", std::move(group));
  return table;
}

std::vector<Category> categories(const Basins& basins) {
  const auto percent = [&](std::size_t cells) { return 100 * basins.fraction(cells); };
  std::vector<Category> attractors, others;
  const char* const greys[] = {"#ededed", "#c4c4c4", "#9a9a9a", "#707070"};
  const std::vector<FateCount> counts = count_fates(basins);
  for (const auto& [fate, cells] : counts) {
    if (fate.settles()) {
      const int g = group_number(fate);
      attractors.push_back(
          {static_cast<double>(g), fmt::format("{}: {}, {:.3g} %", g, group_name(basins, fate), percent(cells)), {}});
    }
  }
  for (auto it = counts.rbegin(); it != counts.rend(); ++it) {
    if (it->fate.settles() || !it->fate.computed()) continue;
    others.push_back({static_cast<double>(group_number(it->fate)),
                      fmt::format("{}, {:.3g} %", fate_name(it->fate), percent(it->cells)),
                      greys[std::min<std::size_t>(others.size(), 3)]});
  }
  attractors.insert(attractors.end(), others.begin(), others.end());
  return attractors;
}

Picturing picture_basins(const Model& model, const Mesh& mesh, const Basins& basins, const BasinsPlane& plane) {
  Picturing result{{.title = model.name + ": basins", .caption = caption_of(model)}, {}};
  if (!plane.note.empty()) result.figure.title += ", " + plane.note;
  const auto axis = [&](std::size_t a) {
    const CellAxis& c = mesh.axes()[a];
    return Axis{.label = model.states[at(c.state)].name, .from = c.from(), .to = c.to()};
  };
  Panel panel{.x = axis(plane.across)};
  panel.y = mesh.axes().size() > 1 ? axis(plane.up) : Axis{.from = 0, .to = 1};
  if (mesh.scattered()) {
    result.tables.push_back(scatter_table(mesh, basins, plane));
    panel.layers.push_back(Dots{.table = "plane", .x = "x", .y = "y", .colour = "group"});
  } else {
    result.tables.push_back(plane_table(mesh, basins, plane));
    panel.layers.push_back(
        Heat{.table = "plane", .x = "x", .y = "y", .value = "group", .categories = categories(basins)});
  }
  if (mesh.axes().size() > 1 && !basins.basins.empty())
    panel.layers.push_back(
        Points{.table = "attractors", .x = panel.x.label, .y = panel.y.label, .label = "attractors"});
  result.figure.stacks.push_back({.panels = {std::move(panel)}});
  return result;
}

// ---- words ---------------------------------------------------------------------------------------------------------

std::string attractor_line(const Model& model, const Basins& basins, std::size_t b) {
  constexpr std::size_t most = 4;
  const Attractor& a = basins.basins[b].attractor;
  std::vector<std::string> values;
  for (std::size_t s = 0; s < std::min(most, model.states.size()); ++s)
    values.push_back(fmt::format("{} = {:.6g}", model.states[s].name, a.points[s]));
  return fmt::format("attractor  {}: {}, fraction {:.6g}, through {}{}\n", b + 1, group_name(basins, CellFate::to(b)),
                     basins.fraction(basins.basins[b].cells), fmt::join(values, ", "),
                     model.states.size() > most ? ", ..." : "");
}

}  // namespace

std::int32_t group_number(const CellFate& fate) {
  switch (fate.kind) {
    case CellFate::Kind::attractor: return fate.basin + 1;
    case CellFate::Kind::sink: return 0;
    case CellFate::Kind::no_start: return -1;
    case CellFate::Kind::no_return: return -2;
    case CellFate::Kind::unsettled: return -3;
    case CellFate::Kind::not_computed: return -4;
    case CellFate::Kind::ended: return -10 - static_cast<std::int32_t>(fate.why);
  }
  return 0;
}

std::string json_of(const BasinsAnswer& answer) {
  const Model& model = answer.system.model();
  const Mesh& mesh = answer.mesh;
  const Basins& basins = answer.basins;
  std::ostringstream text;
  JsonWriter json(text);
  json.object().key("axes").array();
  for (const CellAxis& axis : mesh.axes()) json.value(model.states[at(axis.state)].name);
  json.end().key("box").array();
  for (const CellAxis& axis : mesh.axes()) json.array().value(axis.from()).value(axis.to()).end();
  json.end().key("cells").array();
  if (mesh.scattered()) json.value(mesh.cells());
  for (const CellAxis& axis : mesh.axes()) {
    if (!mesh.scattered()) json.value(axis.cells());
  }
  json.end().member("section", answer.section).key("attractors").rows();
  const std::size_t n = model.states.size();
  for (std::size_t b = 0; b < basins.basins.size(); ++b) {
    const Basin& basin = basins.basins[b];
    json.object().member("id", b + 1).member("period", basin.attractor.period).key("points").array();
    for (std::size_t i = 0; i < basin.attractor.count(n); ++i) {
      json.object();
      for (std::size_t s = 0; s < n; ++s) json.member(model.states[s].name, basin.attractor.point(i, n)[s]);
      json.end();
    }
    json.end().member("fraction", basins.fraction(basin.cells)).end();
  }
  std::size_t nowhere = 0;
  std::map<std::string, std::size_t> outcomes;
  for (const auto& [fate, count] : count_fates(basins)) {
    if (fate.settles()) continue;
    nowhere += count;
    outcomes[std::string(fate_name(fate))] = count;
  }
  json.end().member("sink", basins.fraction(nowhere)).key("outcomes").object();
  for (const auto& [name, count] : outcomes) json.member(name, basins.fraction(count));
  json.end().member("method", answer.direct ? "direct" : "cells").member("computed", basins.computed);
  if (answer.refine) json.member("checked", basins.checked).member("wrong", basins.wrong);
  json.end().flush();
  return text.str();
}

/// Fraction of all cells: so many that leave the box say more about the box than about the system.
constexpr double many_outside = 0.2;

static std::size_t count_outside(const Basins& basins) {
  std::size_t outside = 0;
  for (const auto& [fate, count] : count_fates(basins)) outside += fate.kind == CellFate::Kind::sink ? count : 0;
  return outside;
}

std::string words_of(const BasinsAnswer& answer) {
  const Model& model = answer.system.model();
  const Mesh& mesh = answer.mesh;
  const Basins& basins = answer.basins;
  constexpr std::size_t most = 8;
  std::vector<std::string> sizes, ranges;
  for (const CellAxis& axis : mesh.axes()) {
    sizes.push_back(fmt::format("{}", axis.cells()));
    ranges.push_back(
        fmt::format("{} from {:.6g} to {:.6g}", model.states[at(axis.state)].name, axis.from(), axis.to()));
  }
  std::string out = fmt::format(
      "cells      {}: {}; {} by '{}'\n",
      mesh.scattered() ? fmt::format("{} random", mesh.cells()) : fmt::format("{}", fmt::join(sizes, " x ")),
      fmt::join(ranges, ", "), answer.direct ? "run" : "mapped", answer.section);
  for (std::size_t b = 0; b < std::min(most, basins.basins.size()); ++b) out += attractor_line(model, basins, b);
  if (basins.basins.size() > most) out += fmt::format("attractor  and {} more\n", basins.basins.size() - most);
  if (basins.basins.empty()) out += "attractor  none found\n";
  for (const auto& [fate, count] : count_fates(basins)) {
    const bool sink = fate.kind == CellFate::Kind::sink;
    if (!fate.settles())
      out += fmt::format("{:11}{}{:.6g}\n", sink ? "sink" : "none",
                         sink ? "fraction " : fmt::format("{}, fraction ", fate_name(fate)), basins.fraction(count));
  }
  const std::size_t outside = count_outside(basins);
  if (!answer.direct && basins.fraction(outside) > many_outside)
    out +=
        "note       many cells leave the box, and cell mapping follows none outside it: take a larger box, or "
        "`method` direct, which runs each until it settles\n";
  out += fmt::format("cost       {:.3g} s, {:.3g} {} per s", answer.seconds,
                     static_cast<double>(basins.computed) / std::max(answer.seconds, 1e-9),
                     answer.direct ? "runs" : "cells");
  if (answer.refine)
    out += fmt::format("; {} of {} cells run, {:.1f} % saved", basins.computed, mesh.cells(),
                       100 * (1 - basins.fraction(basins.computed)));
  out += "\n";
  if (answer.refine && basins.checked > 0)
    out += fmt::format("check      of {} cells filled in, {} wrong\n", basins.checked,
                       basins.wrong > 0 ? fmt::format("{} were", basins.wrong) : "none was");
  return out;
}

std::vector<Table> tables_of(const BasinsAnswer& answer) {
  const Model& model = answer.system.model();
  const Basins& found = answer.basins;
  std::vector<Table> tables{cells_table(model, answer.mesh, found), groups_table(found)};
  if (!found.images.empty() && !found.interrupted) tables.push_back(cycles_table(found));
  tables.push_back(attractors_table(model, found));
  return tables;
}

Picturing picture_of(const BasinsAnswer& answer, const BasinsPlane& plane) {
  return picture_basins(answer.system.model(), answer.mesh, answer.basins, plane);
}

}  // namespace saltus
