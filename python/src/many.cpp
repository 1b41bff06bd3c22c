// Many runs: sweeps and basins.
#include <map>

#include <cmath>
#include "ask/many.hpp"

#include "convert.hpp"
#include "report/basins.hpp"
#include "waiting.hpp"

namespace saltus::python {
namespace {

py::dict sweep(const System& system, const py::dict& options,
               const std::vector<std::pair<std::string, std::vector<double>>>& vary, const py::dict& how,
               const py::object& progress, const py::object& stop) {
  SweepQuestion question{.system = system, .vary = {}, .solve = solve_of(options)};
  for (const auto& [name, values] : vary) question.vary.push_back({name, values});
  take(how, "section", question.section);
  take(how, "skip", question.skip);
  take(how, "count", question.count);
  take(how, "settle", question.settle);
  take(how, "longest", question.longest);
  take(how, "tolerance", question.tolerance);
  take(how, "exponent", question.exponent);
  take(how, "measures", question.measures);
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
  std::vector<std::vector<double>> measured(answer.plan.measures.size(), std::vector<double>(runs, NAN));
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
    for (size_t m = 0; m < run.measures.size(); ++m) measured[m][i] = run.measures[m];
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
  py::dict measures;
  for (size_t m = 0; m < measured.size(); ++m)
    measures[py::str(answer.plan.measures[m].name)] = array_of(std::move(measured[m]));
  d["measures"] = measures;
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
                          .solve = solve_of(options),
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

}  // namespace

void add_many(py::module_& m) {
  m.def("sweep", &sweep);
  m.def("basins", &basins);
}

}  // namespace saltus::python
