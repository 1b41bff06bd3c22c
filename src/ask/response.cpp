#include "ask/response.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "analysis/signature.hpp"
#include "analysis/thresholds.hpp"
#include "ask/quantity.hpp"
#include "base/index.hpp"
#include "expr/diff.hpp"
#include "expr/print.hpp"
#include "flow/parameter_directions.hpp"
#include "flow/variation.hpp"
#include "model/period.hpp"
#include "model/program.hpp"

namespace saltus {
namespace {

using Complex = std::complex<double>;
/// Gain at an angular frequency, of every output.
using Gains = std::function<std::vector<Complex>(double w, size_t input)>;

int find_definition(const Model& model, const std::string& name) {
  for (size_t i = 0; i < model.definitions.size(); ++i) {
    if (model.definitions[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

InputPort read_input(const std::string& name, const Model& model) {
  if (const int d = find_definition(model, name); d >= 0) return {.named = true, .index = d};
  const int p = find_parameter(model, name, "`input`");
  if (std::find(model.unused.begin(), model.unused.end(), name) != model.unused.end())
    misuse(fmt::format("`input` {}: nothing in the model depends on '{}'", name, name), "`check` shows the equations");
  return {.named = false, .index = p};
}

void read_loop(const ResponseQuestion& question, const Model& model, ResponsePlan& out) {
  if (!question.inputs.empty() || !question.outputs.empty())
    misuse("`loop` is input and output at once", "leave out `input` and `output`");
  const int d = find_definition(model, question.loop);
  if (d < 0)
    misuse(fmt::format("`loop` {}: the model has no named quantity of this name", question.loop),
           "a loop is opened at a name with an equation, such as u = kp*(r - y)");
  out.loop = true;
  out.inputs = out.outputs = {question.loop};
  out.ports = {{.named = true, .index = d}};
  out.quantities = {Expr::symbol(SymbolKind::definition, d, question.loop)};
}

void read_frequencies(const ResponseQuestion& question, const Model& model, ResponsePlan& out) {
  const auto read = [&](const std::optional<Formula>& text, const char* name) -> std::optional<double> {
    if (!text) return std::nullopt;
    const double f = read_number(text->text, name, model);
    if (!(f > 0)) misuse(fmt::format("{} {} is no frequency", name, text->text), "give a positive one");
    return f;
  };
  out.from = read(question.from, "`lowest`");
  out.to = read(question.to, "`highest`");
  if (out.from && out.to && *out.to < *out.from)
    misuse(fmt::format("`highest` {} is below `lowest` {}", print_number(*out.to), print_number(*out.from)),
           "give the lowest frequency first");
  if (question.points < 1) misuse(fmt::format("`points` {}: no number of points", question.points), "give 1 or more");
}

/// Where nothing happens for the longest time, so that one period begins and ends there alike; out of sliding if it
/// can.
double quiet_time(const Trajectory& run) {
  double best = run.start_time, longest = 0, from = run.start_time;
  const auto consider = [&](double to) {
    const Piece& piece = run.pieces[run.piece_at(0.5 * (from + to))];
    const Mode& mode = run.arcs[at(piece.arc)].mode;
    const bool rests = mode.switches.find('0') != std::string::npos || mode.constraints.find('c') != std::string::npos;
    constexpr double less = 1e-3;
    const double length = (to - from) * (rests ? less : 1.0);
    if (length > longest) longest = length, best = 0.5 * (from + to);
    from = to;
  };
  if (run.transitions.empty()) return best;
  for (const Transition& e : run.transitions) consider(e.t);
  consider(run.end.t);
  return best;
}

/// A model with its ports, its program, and the directions of parameters that are followed.
struct Ported {
  PortedModel ported;
  Program program;
  RunOptions options;
  Mat directions;
  ResponsePorts ports;

  Ported(const Model& model, const ResponsePlan& plan, const RunOptions& of)
      : ported(with_ports(model, plan.ports, plan.quantities)), program(ported.model), options(of) {
    options.parameters = parameter_values(ported.model);
    add_directions(model, plan);
    ports.kept.resize(model.states.size());
    std::iota(ports.kept.begin(), ports.kept.end(), Index{0});
    for (const int z : ported.input_state) ports.input_state.push_back(z);
    for (const int q : ported.output_state) ports.output_state.push_back(q);
  }

  std::vector<double> start(std::vector<double> x) const {
    x.resize(ported.model.states.size(), 0.0);
    return x;
  }

 private:
  /// Directions of all parameters of the model; then for each input the part that stays constant in it, and the speed
  /// of its z.
  void add_directions(const Model& model, const ResponsePlan& plan) {
    std::vector<int> own(model.parameters.size());
    std::iota(own.begin(), own.end(), 0);
    const Mat all = parameter_directions(ported.model, options.parameters, own).p;
    const Index count = all.cols(), inputs = ix(plan.ports.size());
    directions = Mat::Zero(all.rows(), count + 2 * inputs);
    directions.leftCols(count) = all;
    for (Index k = 0; k < inputs; ++k) {
      const InputPort& port = plan.ports[ux(k)];
      const Index by = count + 2 * k;
      ports.by_input.push_back(port.named ? -1 : by);
      ports.by_speed.push_back(ported.input_rate[ux(k)] >= 0 ? by + 1 : -1);
      if (!port.named) {
        directions.col(by) = all.col(port.index);
        if (const int base = ported.input_base[ux(k)]; base >= 0) directions(base, by) = 0;
      }
      if (const int rate = ported.input_rate[ux(k)]; rate >= 0) directions(rate, by + 1) = 1;
    }
  }
};

/// How the period of a forced orbit moves: it is a multiple of that of time, or of the section that is its clock.
std::vector<double> clock_by(const Model& model, const RunOptions& options, int section, double period) {
  std::vector<double> out(model.parameters.size(), 0.0);
  std::optional<Expr> formula;
  if (const auto time = period_in_time(model, options.parameters)) formula = time->formula;
  if (!formula && section >= 0 && model.sections[at(section)].kind == Section::Kind::every)
    formula = model.sections[at(section)].value;
  if (!formula) return out;
  const double turns = std::round(period / constant_value(*formula, options.parameters));
  std::vector<int> own(model.parameters.size());
  std::iota(own.begin(), own.end(), 0);
  const Mat P = parameter_directions(model, options.parameters, own).p;
  for (const Partial& d : gradient(*formula, SymbolKind::parameter)) {
    for (size_t c = 0; c < out.size(); ++c)
      out[c] += turns * constant_value(d.value, options.parameters) * P(d.symbol.symbol().index, ix(c));
  }
  return out;
}

std::vector<double> frequencies(double from, double to, int points) {
  std::vector<double> out;
  for (int k = 0; k < points; ++k) {
    const double share = points > 1 ? static_cast<double>(k) / (points - 1) : 0;
    out.push_back(k == 0 ? from : k + 1 == points ? to : from * std::pow(to / from, share));
  }
  return out;
}

double degrees(const Complex& z) { return std::arg(z) * 180 / M_PI; }

/// A zero of a function of the frequency between two frequencies at which its signs differ.
double zero_of(const std::function<double(double)>& f, double a, double b) {
  constexpr int halvings = 60;
  const bool rises = f(b) > 0;
  for (int k = 0; k < halvings && b - a > 1e-14 * b; ++k) {
    const double c = std::sqrt(a * b);
    ((f(c) > 0) == rises ? b : a) = c;
  }
  return std::sqrt(a * b);
}

/// The first passages of |L| through 1 and of the phase through -180 degrees.
void find_margins(ResponseCurve& curve, const std::function<Complex(double)>& L) {
  const auto gain = [&](double f) { return std::log(std::abs(L(f))); };
  const auto beyond = [&](double f) { return L(f).imag(); };
  for (size_t k = 1; k < curve.points.size(); ++k) {
    const ResponsePoint &a = curve.points[k - 1], &b = curve.points[k];
    if (!curve.phase_margin && (std::abs(a.value) > 1) != (std::abs(b.value) > 1)) {
      const double f = zero_of(gain, a.frequency, b.frequency);
      curve.phase_margin = Margin{f, std::remainder(180 + degrees(L(f)), 360)};
    }
    const bool crosses = (a.value.imag() > 0) != (b.value.imag() > 0) && (a.value.real() < 0 || b.value.real() < 0);
    if (curve.gain_margin || !crosses) continue;
    const double f = zero_of(beyond, a.frequency, b.frequency);
    if (L(f).real() < 0) curve.gain_margin = Margin{f, 1 / std::abs(L(f))};
  }
}

void fill_curves(const ResponsePlan& plan, double from, double to, const Gains& gains, Observing& watch,
                 ResponseAnswer& answer) {
  const std::vector<double> at_frequencies = frequencies(from, to, plan.points);
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const size_t first = answer.curves.size();
    for (const std::string& output : plan.outputs) answer.curves.push_back({plan.inputs[i], output, {}, {}, {}});
    // Loop gain: the signal that returns before the place of injection, divided by the signal behind it.
    const auto finished = [&](const Complex& h) { return plan.loop ? -h / (1.0 + h) : h; };
    for (size_t k = 0; k < at_frequencies.size() && !watch.stopped(); ++k) {
      const std::vector<Complex> values = gains(2 * M_PI * at_frequencies[k], i);
      for (size_t o = 0; o < values.size(); ++o)
        answer.curves[first + o].points.push_back({at_frequencies[k], finished(values[o])});
      watch.go_on({"frequency", 0, static_cast<double>(k + 1), static_cast<double>(at_frequencies.size())});
    }
    if (plan.loop)
      find_margins(answer.curves[first], [&](double f) { return finished(gains(2 * M_PI * f, i).front()); });
  }
}

void respond_about_orbit(const ResponsePlan& plan, Observing& watch, ResponseAnswer& answer) {
  constexpr double most_panels = 20'000, turn_of_panel = 5;  // the angle by which an input turns on a panel
  const Model& model = answer.system.model();
  const Orbit& orbit = answer.orbit;
  const double T = orbit.period, from = plan.from.value_or(std::min(0.01 / T, plan.to.value_or(HUGE_VAL))),
               to = plan.to.value_or(std::max(10 / T, from));
  const double fastest = 2 * M_PI * (to + std::abs(plan.sideband) / T);
  const double longest = std::min(T / 8, turn_of_panel / fastest);
  if (T / longest > most_panels)
    misuse(fmt::format("`highest` {}: more than {:.0f} turns in a period of {}", print_number(to), to * T,
                       print_number(T)),
           "ask for lower frequencies");
  Ported ported(model, plan, answer.options);
  RunOptions lap = ported.options;
  lap.from = quiet_time(orbit.trajectory);
  lap.until = lap.from + T;
  lap.initial = ported.start(orbit.trajectory(lap.from));
  lap.keep_pieces = lap.keep_transitions = true;
  const Trajectory run = simulate(ported.program, lap);
  if (run.end.why != Why::time) {
    answer.found = false;
    answer.why = "run";
    answer.message = "a run along the orbit ends early: " + run.end.message;
    return;
  }
  const OrbitTangents along = tangents_along(ported.program, lap, run, ported.directions, longest);
  for (const std::string& note : along.notes) answer.notes.push_back(note);
  const double origin = orbit.autonomous ? orbit.t : 0.0;
  const OrbitResponse response(along, ported.ports, T, origin);
  fill_curves(
      plan, from, to, [&](double w, size_t input) { return response(w, input, plan.sideband); }, watch, answer);
  const std::vector<Index> kept = closing_states(orbit);
  const Vec scale = scales_of(sizes_on(run.pieces, ported.ported.model.states.size()));
  const Index count = ix(model.parameters.size());
  const Mat M = along.monodromy(), by = along.by_parameters().leftCols(count);
  const std::vector<double> period_by = orbit.autonomous
                                            ? moved_period(M, by, along.start_rates, kept, scale, T)
                                            : clock_by(model, answer.options, plan.orbit->options.section, T);
  answer.means =
      means_of(along, ported.ports, T, moved_start(M, by, along.start_rates, period_by, kept, scale), period_by);
}

void respond_about_rest(const ResponsePlan& plan, Observing& watch, ResponseAnswer& answer) {
  const Model& model = answer.system.model();
  const Equilibrium& rest = answer.equilibrium;
  Ported ported(model, plan, answer.options);
  RunOptions still = ported.options;
  still.initial = ported.start(rest.state);
  still.until = still.from;
  const Arc arc = simulate(ported.program, still).last;
  Variation variation(ported.program, still);
  EquilibriumSlopes slopes;
  slopes.rates = variation.rate_slopes(arc, still.initial, still.from, ported.directions);
  slopes.values = variation.rates(arc, still.initial, still.from);
  Vec values;
  variation.manifold(arc, still.initial, still.from, values, slopes.manifold, ported.directions);
  double slowest = HUGE_VAL, fastest = 0;
  for (const Complex& e : rest.eigenvalues) {
    if (std::abs(e) == 0) continue;
    slowest = std::min(slowest, std::abs(e));
    fastest = std::max(fastest, std::abs(e));
  }
  if (fastest == 0) slowest = fastest = 1;
  constexpr double decade = 10;
  const double from = plan.from.value_or(std::min(slowest / (2 * M_PI) / decade, plan.to.value_or(HUGE_VAL)));
  const double to = plan.to.value_or(std::max(fastest / (2 * M_PI) * decade, from));
  fill_curves(
      plan, from, to, [&](double w, size_t input) { return equilibrium_response(slopes, ported.ports, w, input); },
      watch, answer);
  answer.means = means_of(slopes, ported.ports, ix(model.parameters.size()));
}

}  // namespace

ResponsePlan plan(const ResponseQuestion& question) {
  const Model& model = question.orbit.system.model();
  ResponsePlan out{.equilibrium = plan(EquilibriumQuestion{
                       .system = question.orbit.system, .solve = question.orbit.solve, .start = question.orbit.start})};
  if (question.orbit.backward)
    misuse("`backward`: responses are those of time that goes on",
           "leave it out; with `guess` unstable orbits are found");
  if (!question.equilibrium) out.orbit = plan(question.orbit);
  if (question.sideband != 0 && question.equilibrium)
    misuse("`sideband`: an equilibrium has no harmonics", "leave it out");
  if (!question.loop.empty()) {
    read_loop(question, model, out);
  } else {
    if (question.inputs.empty()) misuse("no `input` is given", "name a parameter: `input` Vin");
    if (question.outputs.empty()) misuse("no `output` is given", "name a state or a named quantity: `output` v");
    out.inputs = question.inputs;
    out.outputs = question.outputs;
    for (const std::string& name : question.inputs) out.ports.push_back(read_input(name, model));
    for (const std::string& text : question.outputs) out.quantities.push_back(read_quantity(text, "`output`", model));
  }
  read_frequencies(question, model, out);
  out.points = question.points;
  out.sideband = question.sideband;
  return out;
}

ResponseAnswer ask(const ResponsePlan& plan, const Observer& observer) {
  ResponseAnswer answer{.system = plan.equilibrium.system, .options = plan.equilibrium.options.run};
  answer.loop = plan.loop;
  answer.sideband = plan.sideband;
  answer.outputs = plan.outputs;
  answer.parameters = answer.system.model().parameter_names();
  Observing watch(observer);
  if (plan.orbit) {
    OrbitAnswer orbit = ask(*plan.orbit, observer);
    answer.options = orbit.options;
    answer.orbit = std::move(orbit.orbit);
    answer.cancelled = orbit.cancelled;
    answer.found = answer.orbit.found;
    answer.why = answer.orbit.why;
    answer.message = answer.orbit.message;
    answer.notes = answer.orbit.notes;
  }
  const bool may_rest = !plan.orbit || (answer.system.model().autonomous() && plan.sideband == 0);
  if (!answer.found && !answer.cancelled && may_rest) {
    EquilibriumAnswer rest = ask(plan.equilibrium, observer);
    answer.cancelled = rest.cancelled;
    answer.equilibrium = std::move(rest.equilibrium);
    answer.rests = answer.found = answer.equilibrium.kind != Equilibrium::Kind::none;
    if (!plan.orbit && !answer.found) {
      answer.why = answer.equilibrium.why;
      answer.message = answer.equilibrium.message;
    }
  }
  if (!answer.found) return answer;
  if (answer.rests)
    respond_about_rest(plan, watch, answer);
  else
    respond_about_orbit(plan, watch, answer);
  answer.cancelled = watch.stopped();
  const bool stable = answer.rests ? answer.equilibrium.stable : answer.orbit.stable;
  if (!stable && answer.found)
    answer.notes.push_back(
        fmt::format("the {} is not stable: a signal that is switched on grows away from this response",
                    answer.rests ? "equilibrium" : "orbit"));
  return answer;
}

}  // namespace saltus
