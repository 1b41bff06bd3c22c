// Orbits, equilibria and their branches.
#include <limits>

#include "ask/follow.hpp"
#include "ask/orbit.hpp"
#include "convert.hpp"
#include "orbits.hpp"
#include "report/orbit.hpp"
#include "waiting.hpp"

namespace saltus::python {

OrbitQuestion orbit_question(const System& system, const py::dict& options,
                             const std::optional<std::vector<double>>& start, const py::dict& how) {
  OrbitQuestion question{.system = system, .solve = solve_of(options), .start = start};
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

namespace {

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
  const EquilibriumQuestion question{.system = system, .solve = solve_of(options), .start = start};
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
  d["crosses_at"] = s.crosses_at;
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

}  // namespace

void add_orbits(py::module_& m) {
  m.def("orbit", &orbit);
  m.def("orbits", &orbits);
  m.def("equilibrium", &equilibrium);
  m.def("follow", &follow);
}

}  // namespace saltus::python
