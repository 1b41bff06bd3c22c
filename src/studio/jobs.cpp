// Computations that take seconds: diagrams and basins, sent as they are computed, coarse to fine.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "app/range.hpp"
#include "ask/many.hpp"
#include "ask/orbit.hpp"
#include "report/basins.hpp"
#include "studio/coarse.hpp"
#include "studio/desk.hpp"
#include "studio/frame.hpp"

namespace saltus {
namespace {

using Clock = std::chrono::steady_clock;

constexpr long most_values = 5000, most_cells_along = 800;
constexpr double most_numbers = 2e7;
constexpr double numbers_of_a_map = 50;  ///< as which a run of it counts

// ---- diagrams ------------------------------------------------------------------------------------------------------

/// Finished runs on their way to the page, gathered for some milliseconds: the points of each, or with two parameters
/// its period alone.
class RunDots {
 public:
  RunDots(const SweepPlan& plan, const Model& model) : plan_(plan), model_(model) {}

  void add(size_t run, const SweepRun& done) {
    const size_t states = model_.states.size(), first = plan_.varied[0].values.size();
    const size_t count = map() ? 1 : done.points.size() / states;
    for (size_t k = 0; k < count; ++k) {
      for (size_t v = 0; v < plan_.varied.size(); ++v) {
        const size_t place = v == 0 ? run % first : run / first;
        now_.value[v].push_back(plan_.varied[v].values[place]);
        now_.setting[v].push_back(plan_.varied[v].setting[place]);
      }
    }
    now_.period.insert(now_.period.end(), count, static_cast<std::int32_t>(done.period));
    now_.sliding.insert(now_.sliding.end(), count,
                        done.period > 0 ? static_cast<std::int32_t>(std::lround(done.sliding)) : -1);
    now_.points.insert(now_.points.end(), done.points.begin(), done.points.end());
    ++now_.runs;
  }

  /// Results since the last call, as a frame; empty if there are none.
  std::string take(long id) {
    if (now_.runs == 0) return "";
    Frame frame;
    frame.add("value", now_.value[0])
        .add("setting", now_.setting[0])
        .add("period", now_.period)
        .add("sliding", now_.sliding);
    if (map()) frame.add("second", now_.value[1]).add("second_setting", now_.setting[1]);
    if (!map()) frame.add("points", now_.points);
    std::string bytes = frame.bytes(id, "dots", [&](JsonWriter& json) {
      json.member("runs", now_.runs).member("states", model_.states.size()).key("parameters").array();
      for (const Varied& v : plan_.varied) json.value(model_.parameters[static_cast<size_t>(v.parameter)].name);
      json.end();
    });
    now_ = {};
    return bytes;
  }

 private:
  bool map() const { return plan_.varied.size() == 2; }

  const SweepPlan& plan_;
  const Model& model_;
  struct Batch {
    std::vector<double> value[2], setting[2], points;
    std::vector<std::int32_t> period, sliding;
    size_t runs = 0;
  };
  Batch now_;
};

/// The varied quantity and its values: "omega=0.15:2:400".
Vary read_vary(const std::string& text, const Model& model) {
  const Setting s = read_setting(text, "vary");
  if (s.value.find('@') != s.value.npos)
    throw Error(ErrorKind::usage, "files are not read for a page", {}, "give a range: omega=0.15:2:400");
  const ValueRange range = read_range(s.value, text, {.model = &model});
  if (range.values.size() > most_values)
    throw Error(ErrorKind::usage, fmt::format("{} values are too many to watch", range.values.size()), {},
                fmt::format("take {} at most, or the command line", most_values));
  return {s.name, coarse_to_fine(range.values), text};
}

SweepPlan sweep_plan(const PageRequest& m, const System& system, const Solve& solve) {
  const Model& model = system.model();
  if (m.vary.empty() || m.vary.size() > 2)
    throw Error(ErrorKind::usage, "one parameter is varied, or two", {}, "name it and its range");
  std::vector<Vary> varied;
  for (const std::string& text : m.vary) varied.push_back(read_vary(text, model));
  SweepPlan planned = plan(SweepQuestion{.system = system,
                                         .vary = std::move(varied),
                                         .solve = solve,
                                         .section = m.section,
                                         .skip = m.skip,
                                         .count = m.points.value_or(100),
                                         .settle = m.settle.value_or(0)});
  const double each = planned.keep_points
                          ? static_cast<double>(model.states.size()) * static_cast<double>(planned.count)
                          : numbers_of_a_map;
  const double numbers = static_cast<double>(planned.runs()) * each;
  if (numbers > most_numbers)
    throw Error(ErrorKind::usage, fmt::format("{:.2g} numbers are too many to watch", numbers), {},
                "take fewer values or points, or the command line");
  return planned;
}

// ---- basins --------------------------------------------------------------------------------------------------------

/// An interval of a state: "u=0:5".
CellAxis read_axis(const std::string& text, const Model& model, long cells) {
  const Setting s = read_setting(text, "axis");
  const int state = find_state(model, s.name, text);
  const std::vector<std::string> ends = split_list(s.value, ':');
  if (ends.size() != 2) throw Error(ErrorKind::usage, fmt::format("{}: this is no interval", text), {}, "write y=-2:2");
  const double from = read_number(ends[0], text, model), to = read_number(ends[1], text, model);
  if (!(from < to && std::isfinite(to - from)))
    throw Error(ErrorKind::usage, fmt::format("{}: the interval is empty", text), {},
                "give a smaller and a larger end");
  return uniform_axis(state, from, to, static_cast<size_t>(cells));
}

/// Attractors keep their numbers from level to level, so that colours stay.
class Numbering {
 public:
  /// The number of each basin, from 1.
  std::vector<std::int32_t> number(const Basins& found) {
    std::vector<std::int32_t> numbers;
    std::vector<char> taken(known_.size(), 0);
    for (const Basin& basin : found.basins) {
      const size_t k = match(basin.attractor, found.tolerance, taken);
      if (k == known_.size()) {
        known_.push_back(basin.attractor);
        taken.push_back(0);
      }
      taken[k] = 1;
      numbers.push_back(static_cast<std::int32_t>(k) + 1);
    }
    return numbers;
  }

 private:
  size_t match(const Attractor& attractor, std::vector<double> tolerance, const std::vector<char>& taken) const {
    for (double& t : tolerance) t *= 100;  // coarse levels know them less well
    for (size_t k = 0; k < known_.size(); ++k) {
      if (!taken[k] && known_[k].period == attractor.period && same_attractor(known_[k], attractor, tolerance))
        return k;
    }
    return known_.size();
  }

  std::vector<Attractor> known_;
};

std::string cells_frame(long id, const Model& model, const Mesh& mesh, const Basins& found,
                        const std::vector<std::int32_t>& numbers, bool last) {
  const size_t n = model.states.size();
  std::vector<std::int32_t> group;
  std::map<CellFate, size_t> elsewhere;  // cells that go to no attractor
  for (const CellFate& f : found.fate) {
    group.push_back(f.settles() ? numbers[f.place()] : group_number(f));
    if (!f.settles()) ++elsewhere[f];
  }
  std::vector<double> points;
  for (const Basin& basin : found.basins)
    points.insert(points.end(), basin.attractor.points.begin(), basin.attractor.points.end());
  Frame frame;
  frame.add("group", group).add("points", points);
  return frame.bytes(id, "cells", [&](JsonWriter& json) {
    json.key("cells").array().value(mesh.axes()[0].cells()).value(mesh.axes()[1].cells()).end();
    json.key("box").array();
    for (const CellAxis& axis : mesh.axes()) json.value(axis.from()).value(axis.to());
    json.end().key("axes").array();
    for (const CellAxis& axis : mesh.axes()) json.value(model.states[static_cast<size_t>(axis.state)].name);
    json.end().member("states", n).member("last", last).key("attractors").array();
    for (size_t b = 0; b < found.basins.size(); ++b) {
      const Basin& basin = found.basins[b];
      json.object().member("id", numbers[b]).member("period", basin.attractor.period);
      json.member("points", basin.attractor.count(n)).member("fraction", found.fraction(basin.cells)).end();
    }
    json.end().key("fates").array();
    for (const auto& [fate, count] : elsewhere) {
      json.object().member("id", group_number(fate)).member("name", fate_name(fate));
      json.member("fraction", found.fraction(count)).end();
    }
    json.end();
  });
}

}  // namespace

void Desk::sweep(const PageRequest& m, const std::stop_token& stop) {
  const System system = system_of(m);
  const Solve solve = solve_without_end(m);
  SweepPlan planned = sweep_plan(m, system, solve);
  RunDots dots(planned, system.model());
  const auto send_dots = [&] {
    if (std::string bytes = dots.take(m.id); !bytes.empty()) send(std::move(bytes));
  };
  const Clock::time_point begin = Clock::now();
  const auto tell = [&](const Progress& p) {
    send_dots();
    send(note_to_page(
             m.id, "progress",
             [&](JsonWriter& json) {
               const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
               json.member("done", p.now).member("count", p.to).member("per_second", (p.now - p.from) / seconds);
             }),
         false);
    let_page_follow(stop);
    return true;
  };
  ask(system, solve, planned,
      {.progress = tell, .stop = stop, .on_run = [&](size_t run, const SweepRun& done) { dots.add(run, done); }});
  send_dots();
  finish(m.id, stop, "count", "");
}

void Desk::basins(const PageRequest& m, const std::stop_token& stop) {
  const System system = system_of(m);
  const Model& model = system.model();
  if (m.axes.size() != 2) throw Error(ErrorKind::usage, "basins are drawn over two states");
  if (!m.method.empty()) check_word(m.method, {"cells", "direct"}, "method");
  if (m.levels.empty()) throw Error(ErrorKind::usage, "how many cells?");
  Numbering numbering;
  for (const long cells : m.levels) {
    if (cells < 2 || cells > most_cells_along)
      throw Error(ErrorKind::usage, fmt::format("{} cells along an axis", cells), {},
                  fmt::format("take 2 to {}, or the command line", most_cells_along));
    const CellAxis across = read_axis(m.axes[0], model, cells), up = read_axis(m.axes[1], model, cells);
    if (across.state == up.state) throw Error(ErrorKind::usage, "basins are drawn over two states");
    const bool direct = m.method == "direct";
    const auto tell = [&, last = Clock::time_point()](const Progress& p) mutable {
      if (Clock::now() - last < std::chrono::milliseconds(100)) return true;
      last = Clock::now();
      send(note_to_page(m.id, "progress",
                        [&](JsonWriter& json) {
                          json.member("what", fmt::format("{0} x {0}: {1}", cells, p.what));
                          json.member("done", p.now).member("count", p.to);
                        }),
           false);
      return true;
    };
    const BasinsAnswer answer =
        ask(BasinsQuestion{.system = system,
                           .mesh = Mesh({across, up}),
                           .solve = solve_without_end(m),
                           .section = m.section,
                           .options = {.method = direct ? BasinsOptions::Method::direct : BasinsOptions::Method::cells,
                                       .refine = direct}},
            {.progress = tell, .stop = stop});
    const Basins& found = answer.basins;
    if (found.interrupted || stop.stop_requested()) break;
    send(cells_frame(m.id, model, answer.mesh, found, numbering.number(found), cells == m.levels.back()));
    let_page_follow(stop);
  }
  finish(m.id, stop, "count", "");
}

}  // namespace saltus
