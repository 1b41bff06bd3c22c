// The plan of tangents in a mode, made once: which derivatives count, where they are added, the representatives of
// unknowns.
#include <algorithm>

#include "base/index.hpp"
#include "flow/variation.hpp"

namespace saltus {

/// The plan of the mode of the series at its last point.
Variation::Plan& Variation::plan_of(const Arc& arc) {
  const Series& series = *memory_.series;
  std::vector<int> held;
  for (const int u : series.active()) {
    if (series.held(u)) held.push_back(u);
  }
  const auto serves = [&](const Plan* plan) { return plan && plan->mode == arc.mode && plan->held == held; };
  if (serves(plan_)) return *plan_;
  for (const std::unique_ptr<Plan>& plan : lent_->plans) {
    if (serves(plan.get())) return *plan;
  }
  constexpr size_t most = 500;  // models with redundant forces come in many plans
  if (lent_->plans.size() >= most) {
    lent_->forget_plans();
    plan_ = nullptr;
  }
  lent_->plans.push_back(std::make_unique<Plan>(Plan{.mode = arc.mode, .held = std::move(held)}));
  make_plan(*lent_->plans.back());
  return *lent_->plans.back();
}

void Variation::Memory::forget_plans() {
  plans.clear();
  for (auto& [tape, of_tape] : jets) of_tape->entered = nullptr;
}

size_t Variation::Memory::size() const {
  size_t sum = engine.size();
  for (const auto& [tape, of_tape] : jets) sum += at(tape->slots) * at(of_tape->jet.order() + 1);
  for (const std::unique_ptr<Plan>& plan : plans)
    sum += 8 * (plan->schedule.free_start.size() + plan->schedule.bound_start.size() + plan->system.terms.size());
  return sum;
}

void Variation::make_plan(Plan& plan) {
  const Series& series = *memory_.series;
  plan.tape = &program_.tangent(plan.mode.switches);
  find_standing(plan);
  plan.position.assign(at(program_.unknowns() + program_.constraints()), -1);
  for (size_t a = 0; a < series.active().size(); ++a) {
    const int u = series.active()[a];
    plan.position[at(series.raised(u) ? program_.unknowns() + u - program_.switches() : u)] = static_cast<int>(a);
  }
  sort_terms(plan);
}

/// Finds the representative of each unknown: its position among the active ones, its own or that of a multiple.
void Variation::find_standing(Plan& plan) const {
  const Series& series = *memory_.series;
  const std::string& switches = plan.mode.switches;
  plan.stand.assign(at(program_.unknowns()), -1);
  plan.stand_sign.assign(at(program_.unknowns()), 1.0);
  for (size_t a = 0; a < series.active().size(); ++a) {
    const int u = series.active()[a];
    if (!series.held(u)) plan.stand[at(u)] = static_cast<int>(a);
  }
  for (const auto& [u, tie] : series.ties()) {
    if (switches[at(u)] != '0' || switches[at(tie.first)] != '0') continue;
    plan.stand[at(u)] = plan.stand[at(tie.first)];
    plan.stand_sign[at(u)] = tie.second;
  }
}

/// The derivatives of the mode by the rows they are added to, and the operations behind them.
void Variation::sort_terms(Plan& plan) {
  const LinearTape& arc = plan.tape->arc;
  const Jet<double>& jet = jet_of(arc.tape, order_).jet;
  const int n = program_.states();
  const size_t active = memory_.series->active().size();
  std::vector<std::vector<std::pair<size_t, TangentTerm>>> rows(active + at(n));
  std::vector<size_t> outputs;
  const auto sort = [&](const std::vector<SlopeEntry>& entries, bool unknown) {
    for (const SlopeEntry& e : entries) {
      const int residual = e.row < n ? -1 : plan.position[at(e.row - n)];
      if ((e.row >= n && residual < 0) || (unknown && plan.stand[at(e.column)] < 0)) continue;
      TangentTerm term{.series = jet.output(at(e.output)), .column = e.column};
      if (unknown) {
        term.column = n + plan.stand[at(e.column)];
        term.open = residual >= 0;
        term.negative = plan.stand_sign[at(e.column)] < 0;
      }
      rows[residual >= 0 ? at(residual) : active + at(e.row)].emplace_back(at(e.output), term);
      outputs.push_back(at(e.output));
    }
  };
  sort(arc.by_state, false);
  sort(arc.by_unknown, true);
  plan.schedule = jet.schedule(outputs, varying_slots(arc.tape));

  std::vector<bool> still(at(arc.tape.slots), false);
  for (const int slot : plan.schedule.still) still[at(slot)] = true;
  TangentSystem& system = plan.system;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (auto& [output, term] : rows[r]) {
      term.constant = arc.tape.constant[output] || still[at(arc.tape.outputs[output])];
      system.terms.push_back(term);
    }
    (r < active ? system.residual_end : system.rate_end).push_back(system.terms.size());
  }
}

/// Machine code for the derivatives of a mode that comes back often, as its rates have it (flow/series).
void Variation::consider_native(Plan& plan) {
  constexpr long often = 8, worthwhile = 10'000;
  ++plan.uses;
  if (plan.compile_tried || options_.native == Native::off) return;
  const bool on = options_.native == Native::on;
  if (plan.uses != often && plan.uses != worthwhile) return;
  const bool known = !on && plan.uses < worthwhile;
  Jet<double>& jet = jet_of(plan.tape->arc.tape, order_).jet;
  plan.compile_tried = jet.compile_filling(plan.schedule, order_, known) || !known;
}

/// The slots of the unknowns that are solved for, and of those that follow them.
std::vector<int> Variation::varying_slots(const Tape& tape) const {
  const Series& series = *memory_.series;
  const int m = program_.switches();
  std::vector<int> slots;
  for (const int u : series.active()) slots.push_back(u < m ? tape.sigmas[at(u)] : tape.lambdas[at(u - m)]);
  for (const auto& [u, tie] : series.ties()) {
    if (series.mode().switches[at(u)] == '0') slots.push_back(tape.sigmas[at(u)]);
  }
  return slots;
}

/// Sorts the terms that parameters add to rates and residuals.
void Variation::sort_parameters(Plan& plan) {
  std::vector<int> moving;
  for (Index q = 0; q < p_.rows(); ++q) {
    if (!p_.row(q).isZero(0)) moving.push_back(static_cast<int>(q));
  }
  if (moving == plan.moving) return;
  plan.moving = std::move(moving);
  plan.by_parameter.clear();
  const int n = program_.states();
  const LinearTape& tape = plan.tape->arc_parameter;
  std::vector<size_t> outputs;
  for (const SlopeEntry& e : tape.by_parameter) {
    if (!std::binary_search(plan.moving.begin(), plan.moving.end(), e.column)) continue;
    if (e.row >= n && plan.position[at(e.row - n)] < 0) continue;
    plan.by_parameter.push_back(e);
    outputs.push_back(at(e.output));
  }
  TangentJet& of_tape = jet_of(tape.tape, order_);
  if (of_tape.entered == &plan.parameter_schedule) of_tape.entered = nullptr;
  plan.parameter_schedule = of_tape.jet.schedule(outputs, varying_slots(tape.tape));
}

}  // namespace saltus
