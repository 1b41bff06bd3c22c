#include "ask/phase.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include <fmt/format.h>

#include "analysis/signature.hpp"
#include "analysis/thresholds.hpp"
#include "base/index.hpp"
#include "code/plain.hpp"
#include "expr/parse.hpp"
#include "flow/parameter_directions.hpp"
#include "flow/recorder.hpp"
#include "model/build.hpp"

namespace saltus {
namespace {

constexpr int interaction_points = 128;
constexpr std::string_view other_word = "other.", other_mark = "other__";

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

Names coupling_names(const Model& model) {
  Names names;
  names.forbid("t", "a coupling of oscillations that keep their own time cannot use it");
  for (const PointTable& t : model.tables) names.add_function(t.name, table_function(t));
  const int n = static_cast<int>(model.states.size());
  for (int i = 0; i < n; ++i) {
    const std::string name = model.states[at(i)].name, other = std::string(other_mark) + name;
    names.add(name, Expr::symbol(SymbolKind::state, i, name), "a state");
    names.add(other, Expr::symbol(SymbolKind::state, n + i, other), "a state of the other copy");
  }
  for (size_t i = 0; i < model.parameters.size(); ++i)
    names.add(model.parameters[i].name, parameter_symbol(model, static_cast<int>(i)), "a parameter");
  for (const Definition& d : model.definitions) names.forbid(d.name, "a coupling is written in states and parameters");
  return names;
}

/// STATE += FORMULA
CouplingTerm read_coupling(const std::string& text, const Model& model) {
  const size_t sign = text.find("+=");
  if (sign == text.npos)
    misuse(fmt::format("`couple` {}: this is not STATE += FORMULA", text),
           "write, say, `couple` \"v += g*(other.v - v)\"");
  std::string name = text.substr(0, sign);
  std::erase(name, ' ');
  CouplingTerm out{find_state(model, name, "`couple`"), {}};
  const std::string formula = replace_all(text.substr(sign + 2), other_word, other_mark);
  try {
    out.formula = parse(whole_text("command line", formula), coupling_names(model));
  } catch (const Error& error) {
    misuse(replace_all(fmt::format("`couple` {}: {}", text, error.message()), other_mark, other_word),
           replace_all(error.hint(), other_mark, other_word));
  }
  return out;
}

/// The words of an orbit that was not found, or found without a phase of its own.
bool has_phase(PhaseAnswer& answer) {
  const Orbit& orbit = answer.orbit.orbit;
  answer.why = orbit.why;
  answer.message = orbit.message;
  if (!orbit.found) return false;
  if (orbit.autonomous) return true;
  answer.why = "forced";
  answer.message = "time drives the orbit: its phase is that of the clock";
  return false;
}

Coupling coupling_of(const std::vector<CouplingTerm>& terms, const std::vector<double>& parameters) {
  std::vector<Plain> formulas;
  for (const CouplingTerm& term : terms) formulas.emplace_back(term.formula);
  return [terms, formulas = std::move(formulas), parameters, both = std::vector<double>()](
             std::span<const double> own, std::span<const double> other, std::span<double> rates) mutable {
    both.assign(own.begin(), own.end());
    both.insert(both.end(), other.begin(), other.end());
    for (size_t k = 0; k < terms.size(); ++k)
      rates[at(terms[k].state)] += formulas[k]({.parameters = parameters, .states = both});
  };
}

/// Phases of nodes: since the start of the orbit in its own direction of time.
class Scale {
 public:
  Scale(const Orbit& orbit, bool per_cycle)
      : start_(orbit.trajectory.start_time - (orbit.backward ? std::abs(orbit.period) : 0.0)),
        per_time_(per_cycle ? 2 * std::numbers::pi / std::abs(orbit.period) : 1.0) {}

  double per_time() const { return per_time_; }
  double phase(double t) const { return (t - start_) * per_time_; }
  PhasePoint point(const OrbitTangents::Node& node, const Vec& z) const {
    PhasePoint out{phase(node.t), node.x, {z.begin(), z.end()}};
    for (double& v : out.z) v *= per_time_;
    return out;
  }

 private:
  double start_, per_time_;
};

bool is_same(const PhasePoint& a, const PhasePoint& b) {
  constexpr double same = 1e-9;  // of the size
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.z.size(); ++i) {
    difference = std::max(difference, std::abs(a.z[i] - b.z[i]));
    size = std::max(size, std::abs(a.z[i]));
  }
  return a.state == b.state && difference <= same * size;
}

/// Points along the orbit in order of their phase, jumps apart.
void tell_points(const OrbitTangents& along, const std::vector<Vec>& z, const Scale& scale, PhaseAnswer& answer) {
  std::vector<char> apart(along.nodes.size(), 0);  // at an event: told with the jump, or by the node behind it
  for (const OrbitTangents::Link& link : along.links) {
    if (link.kind == OrbitTangents::Link::Kind::panel) continue;
    const PhasePoint before = scale.point(along.nodes[link.from], z[link.from]);
    const PhasePoint after = scale.point(along.nodes[link.to], z[link.to]);
    if (link.kind == OrbitTangents::Link::Kind::event) apart[link.from] = 1;
    if (is_same(before, after)) continue;
    if (link.kind == OrbitTangents::Link::Kind::event) apart[link.to] = 1;
    answer.jumps.push_back({before, after});
  }
  for (size_t k = 0; k < along.nodes.size(); ++k) {
    if (!apart[k]) answer.points.push_back(scale.point(along.nodes[k], z[k]));
  }
  if (!answer.orbit.orbit.backward) return;
  std::reverse(answer.points.begin(), answer.points.end());
  std::reverse(answer.jumps.begin(), answer.jumps.end());
  for (PhaseJump& jump : answer.jumps) std::swap(jump.before, jump.after);
}

void tell_events(const OrbitTangents& along, const PhaseResponse& response, const Scale& scale, PhaseAnswer& answer) {
  const Trajectory& run = answer.orbit.orbit.trajectory;
  const Model& model = answer.orbit.system.model();
  for (size_t k = 0; k < along.links.size(); ++k) {
    if (response.event_by[k].empty()) continue;
    const OrbitTangents::Link& link = along.links[k];
    for (int i = link.first; i < link.first + link.count && at(i) < run.transitions.size(); ++i) {
      for (Event& e : events_of(run.transitions[at(i)], model)) {
        e.t = scale.phase(e.t);
        answer.events.push_back({std::move(e), response.event_by[k]});
      }
    }
  }
}

}  // namespace

PhasePlan plan(const PhaseQuestion& question) {
  PhasePlan out{.orbit = plan(question.orbit), .per_cycle = question.per_cycle};
  const Model& model = question.orbit.system.model();
  for (const std::string& text : question.couple) out.coupling.push_back(read_coupling(text, model));
  if (!out.coupling.empty() && question.orbit.backward)
    misuse("`couple` goes with an orbit that is found forward in time", "leave out `backward`");
  return out;
}

PhaseAnswer ask(const PhasePlan& plan, const Observer& observer) {
  PhaseAnswer answer{.orbit = ask(plan.orbit, observer)};
  if (!has_phase(answer)) return answer;
  const Orbit& orbit = answer.orbit.orbit;
  const Model& model = answer.orbit.system.model();
  const RunOptions& options = answer.orbit.options;
  std::vector<int> parameters(model.parameters.size());
  std::iota(parameters.begin(), parameters.end(), 0);
  answer.parameters = model.parameter_names();
  const Mat P = parameter_directions(model, options.parameters, parameters).p;
  const OrbitTangents along =
      tangents_along(answer.orbit.system.program(), options, orbit.trajectory, P, std::abs(orbit.period) / 8);
  answer.notes = orbit.notes;
  for (const std::string& note : along.notes) {
    if (std::find(answer.notes.begin(), answer.notes.end(), note) == answer.notes.end()) answer.notes.push_back(note);
  }
  const PhaseResponse response = phase_response(along, orbit, sizes_on(orbit.trajectory.pieces, model.states.size()));
  answer.found = response.found;
  answer.why = response.why;
  answer.message = response.message;
  if (!answer.found) return answer;
  answer.period = std::abs(orbit.period);
  answer.cycle = plan.per_cycle ? 2 * std::numbers::pi : answer.period;
  answer.error = response.error;
  if (answer.error > open_response)
    answer.notes.push_back(fmt::format("Z closes to {:.1g} only: the orbit is too unstable for more", answer.error));
  answer.period_by_parameter = response.period_by;
  if (orbit.backward) {
    for (double& d : answer.period_by_parameter) d = -d;
  }
  const Scale scale(orbit, plan.per_cycle);
  tell_points(along, response.z, scale, answer);
  tell_events(along, response, scale, answer);
  if (plan.coupling.empty()) return answer;
  answer.interaction =
      interaction_of(along, orbit, response, coupling_of(plan.coupling, options.parameters), interaction_points);
  for (double& h : answer.interaction->value) h *= scale.per_time();
  return answer;
}

}  // namespace saltus
