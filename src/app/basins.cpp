#include "analysis/basins.hpp"

#include <algorithm>
#include <cmath>
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
#include "base/numbers.hpp"
#include "expr/letters.hpp"
#include "expr/parse.hpp"
#include "expr/print.hpp"
#include "model/read.hpp"
#include "out/json.hpp"
#include "out/write.hpp"
#include "report/basins.hpp"
#include "report/summary.hpp"

namespace saltus {
namespace {

namespace fs = std::filesystem;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Basins vary states, and nothing else.
int find_axis(const Model& model, const std::string& name, const std::string& given) {
  const auto parameters = model.parameter_names();
  if (std::find(parameters.begin(), parameters.end(), name) != parameters.end())
    misuse(fmt::format("{}: '{}' is a parameter", given, name),
           fmt::format("basins vary states; 'saltus sweep' varies parameters. States: {}",
                       fmt::join(model.state_names(), ", ")));
  return find_state(model, name, given);
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
    const int state = find_axis(model, s.name, text);
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

/// True if a formula uses one of these names.
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
    misuse(fmt::format("--period {}: no such map", request.period), "give 1 to 1000000");
  if (request.seed && !request.random) misuse("--seed: nothing is random", "leave it out, or add --random N");
  if (request.join && request.method == "direct")
    misuse("--join: direct runs give no cycles of cells to join", "leave it out, or --method direct");
  if (request.points < 10) misuse(fmt::format("-n {}: too few points to settle", request.points), "give 10 or more");
  if (request.longest < 1 || request.longest > 100'000)
    misuse(fmt::format("--longest {}: no such period", request.longest), "give 1 to 100000");
}

// ---- what is shown -------------------------------------------------------------------------------------------------

BasinsPlane read_plane(const BasinsRequest& request, const Model& model, const Mesh& mesh) {
  BasinsPlane plane;
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
    const int state = find_axis(model, s.name, given);
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
  if (request.method == "cells") add("join", {request.join.value_or("nearest")});
  if (request.refine) add("refine", {});
  if (request.random) {
    add("random", number(*request.random));
    add("seed", number(request.seed.value_or(1)));
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

}  // namespace

Outcome basins(const BasinsRequest& request, const Observer& observer) {
  check(request);
  const Initial initial = split_initial(request);
  const System system =
      load_system({request.model.model, request.model.parameters, initial.constant}, request.solve.from);
  const Model& model = system.model();
  const Axes axes = read_axes(request, model);
  const Mesh mesh = request.random ? Mesh(axes.list, at(*request.random), request.seed.value_or(1)) : Mesh(axes.list);
  const BasinsPlane plane = read_plane(request, model, mesh);
  BasinsOptions options{
      .method = request.method == "cells" ? BasinsOptions::Method::cells : BasinsOptions::Method::direct,
      .refine = request.refine,
      .points = request.points,
      .most_period = static_cast<int>(request.longest),
      .tolerance = read_nearness(request.near, model)};
  read_join(request.join.value_or("nearest"), options);
  const BasinsQuestion question{.system = system,
                                .mesh = mesh,
                                .solve = request.solve,
                                .section = request.section,
                                .period = request.period,
                                .dependent = read_dependent(initial.dependent, model, axes),
                                .options = options};
  const SectionMap map = plan(question);
  const Past past = record(request, model, axes, initial, map);

  const bool leads = rank() == 0;
  const ResultFolder folder = leads ? open_folder(request.output, past) : ResultFolder();
  const Keep checkpoint = checkpoint_in(folder, past, {"at"});
  if (folder) {
    begin(folder, past, checkpoint);
    make_folder(checkpoint.path);
  }
  const BasinsAnswer answer = ask(question, map, observer, checkpoint);
  if (!leads) return {};
  const Basins& found = answer.basins;

  Saved saved;
  std::string view_notes;
  if (folder || !request.output.picture.empty()) {
    Results results{.past = past};
    Picturing picturing = picture_of(answer, plane);
    view_notes = set_view(picturing.figure, request.output, model);
    results.figure = std::move(picturing.figure);
    results.drawn = std::move(picturing.tables);
    results.tables = tables_of(answer);
    saved = save(std::move(results), folder, request.output);
  }
  if (!found.interrupted && !saved.lost) remove_checkpoint(checkpoint);

  const bool badly = std::all_of(found.fate.begin(), found.fate.end(),
                                 [](const CellFate& f) { return f.kind == CellFate::Kind::ended; });
  Outcome outcome{.text = "",
                  .status = found.interrupted ? Status::interrupted
                            : badly           ? Status::ended_badly
                                              : Status::done};
  tell(saved, outcome);
  outcome.talk += view_notes;
  if (found.interrupted) outcome.talk += how_to_go_on(folder);
  const std::string& note = answer.note;
  if (request.output.json) {
    outcome.text = json_of(answer);
    if (!note.empty() && !request.output.quiet) outcome.talk += "note: " + note + "\n";
  } else if (!request.output.quiet) {
    outcome.text = words_of(answer) + note_lines(note.empty() ? std::vector<std::string>{} : std::vector{note}) +
                   files_line(saved, mesh.cells());
  }
  return outcome;
}

}  // namespace saltus
