// Derivatives at work: phase responses, responses to small signals, fits.
#include "ask/fit.hpp"
#include "ask/phase.hpp"
#include "ask/response.hpp"
#include "convert.hpp"
#include "orbits.hpp"
#include "waiting.hpp"

namespace saltus::python {
namespace {

py::array points_of(const std::vector<PhasePoint>& points, std::vector<double> PhasePoint::*what, size_t width) {
  std::vector<double> all;
  for (const PhasePoint& p : points) all.insert(all.end(), (p.*what).begin(), (p.*what).end());
  return rows_of(std::move(all), width);
}

py::dict by_name(const std::vector<std::string>& names, const std::vector<double>& values) {
  py::dict out;
  for (size_t i = 0; i < names.size(); ++i) out[py::str(names[i])] = values[i];
  return out;
}

py::dict phase_dict(const PhaseAnswer& answer) {
  const size_t n = answer.orbit.system.model().states.size();
  py::dict d;
  d["found"] = answer.found;
  d["why"] = answer.why;
  d["message"] = answer.message;
  d["messages"] = answer.notes;
  d["period"] = answer.period;
  d["cycle"] = answer.cycle;
  d["error"] = answer.error;
  std::vector<double> t;
  for (const PhasePoint& p : answer.points) t.push_back(p.t);
  d["t"] = array_of(std::move(t));
  d["z"] = points_of(answer.points, &PhasePoint::z, n);
  d["states"] = points_of(answer.points, &PhasePoint::state, n);
  py::list jumps;
  for (const PhaseJump& j : answer.jumps) {
    const auto copy = [](std::vector<double> values) { return array_of(std::move(values)); };
    jumps.append(
        py::make_tuple(j.before.t, copy(j.before.z), copy(j.after.z), copy(j.before.state), copy(j.after.state)));
  }
  d["jumps"] = jumps;
  d["period_by_parameter"] =
      by_name(answer.found ? answer.parameters : std::vector<std::string>{}, answer.period_by_parameter);
  py::list events;
  for (const PhaseEvent& e : answer.events)
    events.append(py::make_tuple(e.event.t, std::string(kind_name(e.event.kind)), e.event.on,
                                 by_name(answer.parameters, e.by_parameter)));
  d["events"] = events;
  d["interaction"] = py::none();
  py::list locked;
  if (answer.interaction) {
    d["interaction"] = array_of(std::vector<double>(answer.interaction->value));
    for (const LockedPhase& l : answer.interaction->locked)
      locked.append(py::make_tuple(l.phase * answer.cycle, l.stable));
  }
  d["locked"] = locked;
  return d;
}

py::dict phase(const System& system, const py::dict& options, const std::optional<std::vector<double>>& start,
               const py::dict& how, const std::vector<std::string>& couple, bool per_cycle, const py::object& progress,
               const py::object& stop) {
  const PhaseQuestion question{
      .orbit = orbit_question(system, options, start, how), .couple = couple, .per_cycle = per_cycle};
  Waiting waiting(progress, stop);
  const PhaseAnswer answer = waiting([&](const Observer& observer) { return ask(question, observer); });
  py::dict d = phase_dict(answer);
  waiting.finish(d);
  return d;
}

py::object margin_of(const std::optional<Margin>& margin) {
  return margin ? py::object(py::make_tuple(margin->frequency, margin->value)) : py::none();
}

py::dict response(const System& system, const py::dict& options, const std::optional<std::vector<double>>& start,
                  const py::dict& how, const py::dict& what, const py::object& progress, const py::object& stop) {
  ResponseQuestion question{.orbit = orbit_question(system, options, start, how)};
  take(what, "equilibrium", question.equilibrium);
  take(what, "inputs", question.inputs);
  take(what, "outputs", question.outputs);
  take(what, "loop", question.loop);
  take(what, "points", question.points);
  take(what, "sideband", question.sideband);
  std::optional<std::string> lowest, highest;
  take(what, "lowest", lowest);
  take(what, "highest", highest);
  if (lowest) question.from = *lowest;
  if (highest) question.to = *highest;
  Waiting waiting(progress, stop);
  const ResponseAnswer answer = waiting([&](const Observer& observer) { return ask(question, observer); });
  py::dict d;
  d["found"] = answer.found;
  d["why"] = answer.why;
  d["message"] = answer.message;
  d["messages"] = answer.notes;
  d["rests"] = answer.rests;
  d["period"] = answer.rests ? 0.0 : answer.orbit.period;
  d["state"] = array_of(std::vector<double>(answer.rests ? answer.equilibrium.state : answer.orbit.state));
  std::vector<double> frequency;
  py::list curves;
  for (const ResponseCurve& curve : answer.curves) {
    std::vector<std::complex<double>> values;
    frequency.clear();
    for (const ResponsePoint& p : curve.points) {
      frequency.push_back(p.frequency);
      values.push_back(p.value);
    }
    curves.append(py::make_tuple(curve.input, curve.output, complex_of(values), margin_of(curve.phase_margin),
                                 margin_of(curve.gain_margin)));
  }
  d["frequency"] = array_of(std::move(frequency));
  d["curves"] = curves;
  py::dict mean, by;
  for (size_t o = 0; o < answer.means.mean.size(); ++o) {
    mean[py::str(answer.outputs[o])] = answer.means.mean[o];
    by[py::str(answer.outputs[o])] = by_name(answer.parameters, answer.means.by[o]);
  }
  d["mean"] = mean;
  d["mean_by_parameter"] = by;
  waiting.finish(d);
  return d;
}

DataTable data_table(const py::dict& given) {
  DataTable out{.name = given["name"].cast<std::string>()};
  out.times = given["t"].cast<std::vector<double>>();
  for (const py::handle& item : given["series"]) {
    const py::dict s = item.cast<py::dict>();
    DataSeries series{.quantity = s["quantity"].cast<std::string>(), .column = s["quantity"].cast<std::string>()};
    series.values = s["values"].cast<std::vector<double>>();
    take(s, "sigma", series.sigma);
    out.series.push_back(std::move(series));
  }
  if (given.contains("on")) {
    out.events = DataEvents{given["on"].cast<std::string>(), given["kind"].cast<std::string>()};
    take(given, "sigma", out.event_sigma);
  }
  for (const auto& [name, value] : given["with"].cast<py::dict>())
    out.with.emplace_back(name.cast<std::string>(), value.cast<std::string>());
  return out;
}

py::dict fit(const System& system, const py::dict& options, const py::list& free, const py::list& data,
             const py::dict& how, const py::object& progress, const py::object& stop) {
  FitQuestion question{.system = system, .solve = solve_of(options)};
  for (const py::handle& item : free) {
    const py::dict f = item.cast<py::dict>();
    FreeValue value{.name = f["name"].cast<std::string>()};
    take(f, "low", value.low);
    take(f, "high", value.high);
    take(f, "log", value.log);
    take(f, "start", value.start);
    question.free.push_back(std::move(value));
  }
  for (const py::handle& item : data) question.data.push_back(data_table(item.cast<py::dict>()));
  take(how, "starts", question.starts);
  take(how, "seed", question.seed);
  take(how, "profile", question.profile);
  take(how, "robust", question.robust);
  Waiting waiting(progress, stop);
  const FitAnswer answer = waiting([&](const Observer& observer) { return ask(question, observer); });
  py::dict d, values, errors, profiles;
  for (size_t k = 0; k < answer.values.size(); ++k) {
    const py::str name(answer.values[k].name);
    values[name] = answer.values[k].value;
    errors[name] = answer.values[k].error;
    if (k < answer.profiles.size()) {
      const FitProfile& p = answer.profiles[k];
      profiles[name] =
          py::make_tuple(array_of(std::vector<double>(p.value)), array_of(std::vector<double>(p.cost)), p.low, p.high);
    }
  }
  d["values"] = values;
  d["errors"] = errors;
  d["profiles"] = profiles;
  std::vector<double> correlation;
  for (const std::vector<double>& row : answer.correlation)
    correlation.insert(correlation.end(), row.begin(), row.end());
  d["correlation"] = rows_of(std::move(correlation), answer.values.size());
  d["cost"] = answer.cost;
  d["sigma"] = answer.sigma;
  d["iterations"] = answer.iterations;
  d["why"] = answer.why;
  d["messages"] = answer.notes;
  py::list series, minima;
  for (const FittedSeries& s : answer.series) {
    std::vector<double> rows;
    for (const FittedDatum& datum : s.data) rows.insert(rows.end(), {datum.t, datum.datum, datum.model});
    series.append(py::make_tuple(s.experiment, s.name, s.rms, rows_of(std::move(rows), 3)));
  }
  for (const FitMinimum& m : answer.minima)
    minima.append(py::make_tuple(array_of(std::vector<double>(m.values)), m.cost));
  d["series"] = series;
  d["minima"] = minima;
  waiting.finish(d);
  return d;
}

}  // namespace

void add_derivatives(py::module_& m) {
  m.def("phase", &phase);
  m.def("response", &response);
  m.def("fit", &fit);
}

}  // namespace saltus::python
