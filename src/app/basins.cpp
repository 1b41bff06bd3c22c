#include "analysis/basins.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/commands.hpp"
#include "app/engine.hpp"
#include "app/range.hpp"
#include "app/result_folder.hpp"
#include "app/view.hpp"
#include "ask/many.hpp"
#include "expr/parse.hpp"
#include "expr/print.hpp"
#include "model/read.hpp"
#include "out/json.hpp"
#include "out/write.hpp"
#include "report/run_figure.hpp"
#include "report/summary.hpp"

namespace saltus {
namespace {

namespace fs = std::filesystem;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

[[noreturn]] void misuse(std::string message, std::string hint) {
  throw Error(ErrorKind::usage, std::move(message), {}, std::move(hint));
}

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

int find_state(const Model& model, const std::string& name, const std::string& given) {
  const auto names = model.state_names();
  const auto it = std::find(names.begin(), names.end(), name);
  if (it != names.end()) return static_cast<int>(it - names.begin());
  const auto parameters = model.parameter_names();
  if (std::find(parameters.begin(), parameters.end(), name) != parameters.end())
    misuse(fmt::format("{}: '{}' is a parameter", given, name),
           fmt::format("basins vary states; 'saltus sweep' varies parameters. States: {}", fmt::join(names, ", ")));
  const std::string near = nearest_name(name, names);
  misuse(fmt::format("{}: the model has no state '{}'", given, name),
         near.empty() ? fmt::format("states: {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", near));
}

// ---- what was asked ------------------------------------------------------------------------------------------------

Setting read_axis(const std::string& text) {
  if (text.find('=') == text.npos)
    misuse(fmt::format("'{}' is no axis", text), "name a state and its interval with cells: y=-2:2:400");
  return read_setting(text, "--axis");
}

/// The axes, and how they are written so that files are not needed again.
struct Axes {
  std::vector<CellAxis> list;
  std::vector<std::string> record;
};

CellAxis edges_axis(int state, std::vector<double> edges, const std::string& given) {
  if (edges.size() < 2)
    misuse(fmt::format("{}: these are no cells", given), "cells need two edges or more, in ascending order");
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    if (edges[i] < edges[i + 1]) continue;
    misuse(fmt::format("{}: the edge {} comes after {}", given, print_number(edges[i + 1]), print_number(edges[i])),
           "write the edges of the cells in ascending order, each once");
  }
  return {.state = state, .edges = std::move(edges)};
}

/// `a:b:n`; with random points `a:b`.
CellAxis range_axis(int state, const std::string& text, const std::string& given, const Model& model, bool random,
                    std::size_t cells) {
  const std::vector<std::string> parts = split_list(text, ':');
  if (parts.size() < 2 || parts.size() > 3)
    misuse(fmt::format("{}: this is no interval with cells", given), "write NAME=a:b:n, such as y=-2:2:400");
  const double from = read_number(parts[0], given + ":", model), to = read_number(parts[1], given + ":", model);
  if (from == to)
    misuse(fmt::format("{}: the interval is a single point", given), "give two different ends: y=-2:2:400");
  if (from > to)
    misuse(fmt::format("{}: the interval runs backward", given),
           fmt::format("write the lower end first: {}:{}", parts[1], parts[0]));
  if (random) {
    if (parts.size() == 3)
      misuse(fmt::format("{}: random points come in no rows", given),
             fmt::format("with --random write {}:{}", parts[0], parts[1]));
    return {.state = state, .edges = {from, to}};
  }
  if (parts.size() == 3) {
    const double n = read_number(parts[2], given + ":", model);
    if (!(n >= 1 && n <= static_cast<double>(most_cells) && n == std::floor(n)))
      misuse(fmt::format("{}: {} is no number of cells", given, parts[2]),
             "write a whole number of 1 or more: y=-2:2:400");
    cells = static_cast<std::size_t>(n);
  }
  return uniform_axis(state, from, to, cells);
}

Axes read_axes(const BasinsRequest& request, const Model& model) {
  Axes axes;
  if (request.axes.empty()) misuse("no state is varied", "name two states and their intervals: y=-2:2:400 v=-2:2:400");
  const std::size_t usual = request.axes.size() <= 2 ? 400 : 50;
  double cells = 1;
  for (const std::string& text : request.axes) {
    const Setting s = read_axis(text);
    const int state = find_state(model, s.name, text);
    for (const CellAxis& other : axes.list) {
      if (other.state == state)
        misuse(fmt::format("{}: '{}' is varied twice", text, s.name), "every axis needs a state of its own");
    }
    std::string record = text;
    if (s.value.starts_with('@') || s.value.find(':') == s.value.npos) {
      std::vector<double> edges;
      if (s.value.starts_with('@')) {
        for (const std::vector<double>& row : read_rows(s.value.substr(1), text))
          edges.insert(edges.end(), row.begin(), row.end());
      } else {
        for (const std::string& part : split_list(s.value)) edges.push_back(read_number(part, text + ":", model));
      }
      if (request.random) misuse(fmt::format("{}: random points have no edges", text), "with --random write NAME=a:b");
      axes.list.push_back(edges_axis(state, std::move(edges), text));
      std::vector<std::string> numbers;
      for (const double e : axes.list.back().edges) numbers.push_back(print_number(e));
      record = fmt::format("{}={}", s.name, fmt::join(numbers, ","));
    } else {
      axes.list.push_back(range_axis(state, s.value, text, model, request.random.has_value(), usual));
    }
    axes.record.push_back(std::move(record));
    cells *= static_cast<double>(axes.list.back().cells());
  }
  if (request.random) cells = static_cast<double>(*request.random);
  if (!(cells <= static_cast<double>(most_cells)))
    misuse(fmt::format("{:.3g} cells are too many", cells),
           fmt::format("take fewer along each axis; at most {:.0g} fit", static_cast<double>(most_cells)));
  return axes;
}

/// Whether a formula uses one of these names.
bool mentions(const std::string& formula, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < formula.size();) {
    std::size_t end = i;
    while (end < formula.size() && is_name_part(formula[end])) ++end;
    if (end > i && std::find(names.begin(), names.end(), formula.substr(i, end - i)) != names.end()) return true;
    i = std::max(end, i + 1);
  }
  return false;
}

/// Initial values that follow from the varied states, and the others.
struct Initial {
  std::vector<Setting> constant, dependent;
};

Initial split_initial(const BasinsRequest& request) {
  std::vector<std::string> varied;
  for (const std::string& text : request.axes) varied.push_back(read_axis(text).name);
  Initial result;
  for (const Setting& s : request.model.initial) {
    if (std::find(varied.begin(), varied.end(), s.name) != varied.end())
      misuse(fmt::format("-x {}={}: '{}' is varied", s.name, s.value, s.name), "give either its interval or its value");
    (mentions(s.value, varied) ? result.dependent : result.constant).push_back(s);
  }
  return result;
}

std::vector<DependentState> read_dependent(const std::vector<Setting>& settings, const Model& model, const Axes& axes) {
  Names names;
  names.forbid("t", "the value must be constant");
  for (std::size_t i = 0; i < model.parameters.size(); ++i)
    names.add(model.parameters[i].name, parameter_symbol(model, static_cast<int>(i)), "a parameter");
  for (const CellAxis& axis : axes.list)
    names.add(model.states[at(axis.state)].name, state_symbol(model, axis.state), "a varied state");
  std::vector<DependentState> result;
  for (const Setting& s : settings) {
    const std::string given = fmt::format("-x {}={}", s.name, s.value);
    try {
      result.push_back({find_state(model, s.name, given), parse(whole_text("command line", s.value), names)});
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::usage) throw;
      misuse(fmt::format("{}: {}", given, error.message()),
             error.hint().starts_with("did you mean") ? error.hint() : "use parameters and the states that are varied");
    }
  }
  return result;
}

/// "1e-6" for all states, "v=1e-4" for one; "inf" for one that does not count.
std::vector<double> read_tolerance(const std::vector<std::string>& texts, const Model& model) {
  std::vector<double> tolerance(model.states.size(), nan);
  for (const std::string& text : texts) {
    for (const std::string& part : split_list(text)) {
      const std::string given = "--period-tolerance " + part;
      const std::size_t equals = part.find('=');
      const std::string value = equals == part.npos ? part : part.substr(equals + 1);
      const double number = value == "inf" ? HUGE_VAL : read_number(value, given + ":", model);
      if (!(number > 0)) misuse(fmt::format("{}: no two numbers are that near", given), "give a positive number");
      if (equals == part.npos) {
        tolerance.assign(tolerance.size(), number);
      } else {
        tolerance[at(find_state(model, part.substr(0, equals), given))] = number;
      }
    }
  }
  return tolerance;
}

void read_join(const std::string& text, BasinsOptions& options) {
  const std::size_t colon = text.find(':');
  const std::string word = text.substr(0, colon);
  check_word(word, {"nearest", "run", "touch", "none"}, "choice for --join");
  options.join = word == "nearest" ? BasinsOptions::Join::nearest
                 : word == "run"   ? BasinsOptions::Join::run
                 : word == "touch" ? BasinsOptions::Join::touch
                                   : BasinsOptions::Join::none;
  if (colon == text.npos) return;
  const double distance = read_number(text.substr(colon + 1), "--join");
  if (word != "touch" || !(distance >= 1 && distance <= 1e6))
    misuse(fmt::format("--join {}: no such distance", text), "write --join touch:2 for cycles up to two cells apart");
  options.join_distance = distance;
}

void check(const BasinsRequest& request) {
  request.output.check();
  check_word(request.method, {"cells", "direct"}, "method");
  const bool direct = request.method == "direct";
  if (request.refine && !direct)
    misuse("--refine needs direct runs: cell mapping needs the image of every cell", "add --method direct");
  if (request.refine && request.random) misuse("--refine needs a grid", "leave out --random or --refine");
  if (request.random && *request.random < 1)
    misuse(fmt::format("--random {}: no points", *request.random), "give 1 or more");
  if (request.period < 1 || request.period > 1'000'000)
    misuse(fmt::format("--period {}: no such map", request.period), "give 1 or more");
  if (request.points < 10) misuse(fmt::format("-n {}: too few points to settle", request.points), "give 10 or more");
  if (request.longest < 1 || request.longest > 100'000)
    misuse(fmt::format("--longest {}: no such period", request.longest), "give 1 to 100000");
}

// ---- tables --------------------------------------------------------------------------------------------------------

/// How many cells of each group there are, attractors and fates.
std::map<std::int32_t, std::size_t> count_groups(const Basins& basins) {
  std::map<std::int32_t, std::size_t> counts;
  for (const std::int32_t g : basins.group) ++counts[g];
  return counts;
}

std::string group_name(const Basins& basins, std::int32_t group) {
  if (group < 1) return std::string(fate_name(group));
  const int period = basins.basins[at(group) - 1].attractor.period;
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
    table.add_numbers(model.states[at(mesh.axes()[a].state)].name, column([&](std::size_t i) {
                        mesh.centre(i, values);
                        return values[a];
                      }),
                      "state at the centre");
  }
  if (!basins.images.empty()) {
    table.add_numbers("image", column([&](std::size_t i) { return std::max(0, basins.images[i] + 1); }),
                      "the cell its centre is mapped to");
  }
  table.add_numbers("group", column([&](std::size_t i) { return basins.group[i]; }), "where it ends: see groups");
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
  for (const auto& [g, count] : count_groups(basins)) {
    group.push_back(g);
    what.push_back(g >= 1 ? "attractor" : std::string(fate_name(g)));
    period.push_back(g >= 1 ? basins.basins[at(g) - 1].attractor.period : nan);
    cells.push_back(static_cast<double>(count));
    fraction.push_back(basins.fraction(count));
    cycles.push_back(g >= 1 ? static_cast<double>(basins.basins[at(g) - 1].cycles.size()) : nan);
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
    group.push_back(basins.group_of_cycle[c]);
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
  for (std::size_t s = 0; s < n; ++s) table.add_numbers(model.states[s].name, std::move(states[s]), "state");
  return table;
}

// ---- picture -------------------------------------------------------------------------------------------------------

/// The plane that is shown: two axes, and the cells of the others.
struct Plane {
  std::size_t across = 0, up = 1;
  std::vector<std::size_t> place;  ///< along every axis
  std::string note;                ///< "z = 0.5"
};

Plane read_plane(const BasinsRequest& request, const Model& model, const Mesh& mesh) {
  Plane plane;
  std::vector<std::string> names;
  for (const CellAxis& axis : mesh.axes()) names.push_back(model.states[at(axis.state)].name);
  const std::vector<std::string> shown = find_columns(request.output.show, names);
  check_view(request.output, model);
  if (!shown.empty()) {
    if (shown.size() != 2 || shown[0] == shown[1])
      misuse("--show: a plane has two axes", fmt::format("name two of {}", fmt::join(names, ", ")));
    const auto place = [&](const std::string& name) {
      return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    };
    plane.across = place(shown[0]);
    plane.up = place(shown[1]);
  }
  for (const CellAxis& axis : mesh.axes()) plane.place.push_back(axis.cells() / 2);
  for (const Setting& s : request.at) {
    const std::string given = fmt::format("--at {}={}", s.name, s.value);
    const int state = find_state(model, s.name, given);
    std::size_t a = 0;
    while (a < mesh.axes().size() && mesh.axes()[a].state != state) ++a;
    if (a == mesh.axes().size() || a == plane.across || a == plane.up)
      misuse(fmt::format("{}: '{}' is no axis beside the plane shown", given, s.name),
             "--at chooses the plane of a grid with three axes or more");
    const std::int64_t k = mesh.axes()[a].locate(read_number(s.value, given + ":", model));
    if (k < 0) misuse(fmt::format("{} lies outside the box", given), "choose a value on the axis");
    plane.place[a] = at(k);
  }
  if (mesh.scattered()) return plane;
  std::vector<std::string> notes;
  for (std::size_t a = 0; a < mesh.axes().size(); ++a) {
    if (a == plane.across || a == plane.up) continue;
    notes.push_back(fmt::format("{} = {:.6g}", names[a], mesh.axes()[a].centre(plane.place[a])));
  }
  plane.note = fmt::format("{}", fmt::join(notes, ", "));
  return plane;
}

/// The groups of the plane on a uniform grid of picture elements, one per cell where cells are equal and not too many.
Table plane_table(const Mesh& mesh, const Basins& basins, const Plane& plane) {
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
      group.push_back(basins.group[cell]);
    }
  }
  Table table("plane", "groups in the plane shown");
  table.add_numbers("x", std::move(x)).add_numbers("y", std::move(y)).add_numbers("group", std::move(group));
  return table;
}

Table scatter_table(const Mesh& mesh, const Basins& basins, const Plane& plane) {
  Table table("plane", "groups of random points");
  Numbers x, y;
  Texts group;
  std::vector<double> values(std::max<std::size_t>(2, mesh.axes().size()), 0.5);
  for (std::size_t i = 0; i < mesh.cells(); ++i) {
    mesh.centre(i, std::span(values).first(mesh.axes().size()));
    x.push_back(values[plane.across]);
    y.push_back(values[plane.up]);
    const std::int32_t g = basins.group[i];
    group.push_back(g >= 1 ? fmt::format("{}: {}", g, group_name(basins, g)) : group_name(basins, g));
  }
  table.add_numbers("x", std::move(x)).add_numbers("y", std::move(y)).add_texts("group", std::move(group));
  return table;
}

std::vector<Category> categories(const Basins& basins) {
  std::vector<Category> list;
  const auto counts = count_groups(basins);
  const auto percent = [&](std::int32_t g) { return 100 * basins.fraction(counts.at(g)); };
  for (std::size_t b = 0; b < basins.basins.size(); ++b) {
    const std::int32_t g = static_cast<std::int32_t>(b) + 1;
    list.push_back({static_cast<double>(g), fmt::format("{}: {}, {:.3g} %", g, group_name(basins, g), percent(g)), {}});
  }
  const char* const greys[] = {"#ededed", "#c4c4c4", "#9a9a9a", "#707070"};
  std::size_t used = 0;
  for (auto it = counts.rbegin(); it != counts.rend(); ++it) {
    if (it->first >= 1 || it->first == CellFate::not_computed) continue;
    const double value = it->first;
    list.push_back({value, fmt::format("{}, {:.3g} %", fate_name(it->first), percent(it->first)),
                    greys[std::min<std::size_t>(used++, 3)]});
  }
  return list;
}

Picturing picture_basins(const Model& model, const Mesh& mesh, const Basins& basins, const Plane& plane) {
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

std::string basins_as_json(const Model& model, const Mesh& mesh, const Basins& basins, const BasinsRequest& request,
                           const std::string& section) {
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
  json.end().member("section", section).key("attractors").rows();
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
  for (const auto& [g, count] : count_groups(basins)) {
    if (g >= 1) continue;
    nowhere += count;
    outcomes[std::string(fate_name(g))] = count;
  }
  json.end().member("sink", basins.fraction(nowhere)).key("outcomes").object();
  for (const auto& [name, count] : outcomes) json.member(name, basins.fraction(count));
  json.end().member("method", request.method).member("computed", basins.computed);
  if (request.refine) json.member("checked", basins.checked).member("wrong", basins.wrong);
  json.end().flush();
  return text.str();
}

std::string attractor_line(const Model& model, const Basins& basins, std::size_t b) {
  constexpr std::size_t most = 4;
  const Attractor& a = basins.basins[b].attractor;
  std::vector<std::string> values;
  for (std::size_t s = 0; s < std::min(most, model.states.size()); ++s)
    values.push_back(fmt::format("{} = {:.6g}", model.states[s].name, a.points[s]));
  return fmt::format("attractor  {}: {}, fraction {:.6g}, through {}{}\n", b + 1,
                     group_name(basins, static_cast<std::int32_t>(b) + 1), basins.fraction(basins.basins[b].cells),
                     fmt::join(values, ", "), model.states.size() > most ? ", ..." : "");
}

std::string summary(const Model& model, const Mesh& mesh, const Basins& basins, const BasinsRequest& request,
                    const std::string& section, double seconds) {
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
      fmt::join(ranges, ", "), request.method == "cells" ? "mapped" : "run", section);
  for (std::size_t b = 0; b < std::min(most, basins.basins.size()); ++b) out += attractor_line(model, basins, b);
  if (basins.basins.size() > most) out += fmt::format("attractor  and {} more\n", basins.basins.size() - most);
  if (basins.basins.empty()) out += "attractor  none found\n";
  for (const auto& [g, count] : count_groups(basins)) {
    if (g < 1)
      out += fmt::format("{:11}{}{:.6g}\n", g == CellFate::sink ? "sink" : "none",
                         g == CellFate::sink ? "fraction " : fmt::format("{}, fraction ", fate_name(g)),
                         basins.fraction(count));
  }
  out += fmt::format("cost       {:.3g} s, {:.3g} {} per s", seconds,
                     static_cast<double>(basins.computed) / std::max(seconds, 1e-9),
                     request.method == "cells" ? "cells" : "runs");
  if (request.refine)
    out += fmt::format("; {} of {} cells run, {:.1f} % saved", basins.computed, mesh.cells(),
                       100 * (1 - basins.fraction(basins.computed)));
  out += "\n";
  if (request.refine && basins.checked > 0)
    out += fmt::format("check      of {} cells filled in, {} wrong\n", basins.checked,
                       basins.wrong > 0 ? fmt::format("{} were", basins.wrong) : "none was");
  return out;
}

Past record(const BasinsRequest& request, const Model& model, const Axes& axes, const Initial& initial,
            const SectionMap& map) {
  Past past{.version = this_version(),
            .command = "basins",
            .name = short_name(request.model.model),
            .model = write_model(model),
            .files = table_files(model),
            .options = {{"axis", axes.record}}};
  const auto add = [&](const char* name, std::vector<std::string> values) {
    past.options.push_back({name, std::move(values)});
  };
  const auto number = [](auto v) { return std::vector{fmt::format("{}", v)}; };
  std::vector<std::string> dependent, plane;
  for (const Setting& s : initial.dependent) dependent.push_back(s.name + "=" + s.value);
  for (const Setting& s : request.at) plane.push_back(s.name + "=" + s.value);
  if (!dependent.empty()) add("initial", dependent);
  add("section", {model.sections[at(map.section)].name});
  add("period", number(request.period));
  add("method", {request.method});
  if (request.method == "cells") add("join", {request.join});
  if (request.refine) add("refine", {});
  if (request.random) {
    add("random", number(*request.random));
    add("seed", number(request.seed));
  }
  add("points", number(request.points));
  add("longest", number(request.longest));
  if (!request.near.empty()) add("period-tolerance", request.near);
  if (!plane.empty()) add("at", plane);
  for (Past::Option& option : recorded(request.solve, map.run)) {
    if (option.first != "until" || request.solve.until) past.options.push_back(std::move(option));
  }
  for (Past::Option& option : recorded(request.output)) past.options.push_back(std::move(option));
  return past;
}

/// What the computation depends on: pictures, formats and joining do not count.
std::string identity_of(Past past) {
  for (const char* idle : {"format", "no-plot", "show", "at", "native"})
    std::erase_if(past.options, [&](const Past::Option& o) { return o.first == idle; });
  return write_past(past);
}

}  // namespace

Outcome basins(const BasinsRequest& request, const Report& report) {
  check(request);
  const Initial initial = split_initial(request);
  const System system =
      load_system({request.model.model, request.model.parameters, initial.constant}, request.solve.from);
  const Model& model = system.model();
  const Axes axes = read_axes(request, model);
  const Mesh mesh = request.random ? Mesh(axes.list, at(*request.random), request.seed) : Mesh(axes.list);
  const Plane plane = read_plane(request, model, mesh);
  BasinsOptions options{
      .method = request.method == "cells" ? BasinsOptions::Method::cells : BasinsOptions::Method::direct,
      .refine = request.refine,
      .points = request.points,
      .most_period = static_cast<int>(request.longest),
      .tolerance = read_tolerance(request.near, model)};
  read_join(request.join, options);
  const BasinsQuestion question{.system = system,
                                .mesh = mesh,
                                .solve = solve_of(request.solve, model),
                                .section = request.section,
                                .period = request.period,
                                .dependent = read_dependent(initial.dependent, model, axes),
                                .options = options};
  const SectionMap map = plan(question);
  const std::string& section = model.sections[at(map.section)].name;
  const Past past = record(request, model, axes, initial, map);

  const bool leads = rank() == 0;
  const ResultFolder folder = leads ? open_folder(request.output, past) : ResultFolder();
  Keep checkpoint{.identity = identity_of(past)};
  if (folder) {
    begin(folder, past);
    checkpoint.path = *folder / "checkpoint";
    make_folder(checkpoint.path);
  }
  const BasinsAnswer answer = ask(question, map, {.progress = report}, checkpoint);
  if (!leads) return {};
  const Basins& found = answer.basins;

  Saved saved;
  std::string view_notes;
  if (folder || !request.output.picture.empty()) {
    Results results{.past = past};
    Picturing picturing = picture_basins(model, mesh, found, plane);
    view_notes = set_view(picturing.figure, request.output, model);
    results.figure = std::move(picturing.figure);
    results.drawn = std::move(picturing.tables);
    results.tables.push_back(cells_table(model, mesh, found));
    results.tables.push_back(groups_table(found));
    if (!found.images.empty() && !found.interrupted) results.tables.push_back(cycles_table(found));
    results.tables.push_back(attractors_table(model, found));
    saved = save(std::move(results), folder, request.output);
  }
  std::error_code ignored;
  if (folder && !found.interrupted && !saved.lost) fs::remove_all(checkpoint.path, ignored);

  const bool badly =
      std::all_of(found.group.begin(), found.group.end(), [](std::int32_t g) { return g <= CellFate::ended; });
  Outcome outcome{.text = "",
                  .status = found.interrupted ? Status::interrupted
                            : badly           ? Status::ended_badly
                                              : Status::done};
  tell(saved, outcome);
  outcome.talk += view_notes;
  if (found.interrupted && folder)
    outcome.talk += fmt::format("interrupted: 'saltus again {}' goes on\n", (*folder / "run.toml").string());
  const std::string& note = answer.note;
  if (request.output.json) {
    outcome.text = basins_as_json(model, mesh, found, request, section);
    if (!note.empty() && !request.output.quiet) outcome.talk += "note: " + note + "\n";
  } else if (!request.output.quiet) {
    outcome.text = summary(model, mesh, found, request, section, answer.seconds) +
                   note_lines(note.empty() ? std::vector<std::string>{} : std::vector{note}) +
                   files_line(saved, mesh.cells());
  }
  return outcome;
}

}  // namespace saltus
