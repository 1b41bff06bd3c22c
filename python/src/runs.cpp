// Runs, sections, exponents; dense output and rates at many points.
#include "ask/exponents.hpp"
#include "ask/rates.hpp"
#include "ask/section.hpp"
#include "convert.hpp"
#include "waiting.hpp"

namespace saltus::python {
namespace {

py::dict run(const System& system, const py::dict& options, const std::optional<std::vector<double>>& start,
             const py::object& sample, bool rows, bool dense, std::optional<long> max_events,
             const std::optional<std::vector<std::string>>& sensitivity, const std::vector<std::string>& measures,
             const std::string& window, const py::object& progress, const py::object& stop) {
  RunQuestion question{.system = system,
                       .solve = solve_of(options),
                       .start = start,
                       .measures = measures,
                       .window = window,
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
  py::dict measured;
  for (const auto& [name, number] : answer.measures) measured[py::str(name)] = number;
  d["measures"] = measured;
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
                           .solve = solve_of(options),
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

py::dict exponents(const System& system, const py::dict& options, const std::optional<std::vector<double>>& start,
                   const py::object& progress, const py::object& stop) {
  const ExponentsQuestion question{.system = system, .solve = solve_of(options), .start = start};
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

void add_runs(py::module_& m) {
  m.def("run", &run);
  m.def("section", &section);
  m.def("exponents", &exponents);
  m.def("evaluate", &evaluate_pieces);
  m.def("rates", &rates_at);
}

}  // namespace saltus::python
