// Tangents through the assignments of jumps, and what a reset is made of.
#include <cmath>
#include <utility>

#include "base/index.hpp"
#include "expr/diff.hpp"
#include "flow/variation.hpp"

namespace saltus {

bool Variation::reset(const Transition& event, const Arc& arc, std::span<double> x, double t, Mat& z, const Mat& dt) {
  if (!event.jumps.empty()) {
    const Multipliers before = multipliers(arc, x, t, z, dt);
    for (const JumpDone& jump : event.jumps) pass_jump(jump, before, x, t, z, dt);
  }
  for (const Hit& hit : event.hits) {
    if (!pass_hit(hit, x, t, z, dt)) return false;
  }
  return true;
}

/// Multipliers in what a jump sets are those before the event.
Variation::Multipliers Variation::multipliers(const Arc& arc, std::span<const double> x, double t, const Mat& z,
                                              const Mat& dt) {
  const int m = program_.switches(), q = program_.constraints();
  Multipliers out{std::vector<double>(at(q), 0.0), Mat::Zero(q, z.cols())};
  for (int j = 0; j < q; ++j) {
    const GuardSlope slope = guard({GuardKind::lambda, j, 0}, arc, x, t);
    out.lambda[at(j)] = slope.value;
    out.tangent.row(j) = slope.by_state.transpose() * z + slope.by_time * dt;
  }
  if (q > 0 && p_.cols() == z.cols() && moves_parameters()) {
    const OtherTangents parameters_alone(*this, Mat::Zero(x_.rows(), x_.cols()), p_);
    event_point(arc, x, t);
    expand_tangents(0);
    for (int j = 0; j < q; ++j) out.tangent.row(j) += unknown_tangent(m + j);
  }
  return out;
}

/// Multipliers of the constraints at a point.
std::vector<double> Variation::lambdas(const Arc& arc, std::span<const double> x, double t) {
  std::vector<double> out;
  for (int j = 0; j < program_.constraints(); ++j) out.push_back(guard({GuardKind::lambda, j, 0}, arc, x, t).value);
  return out;
}

/// The assignments of a jump and their derivatives, made when it first happens in this way.
Variation::JumpFormulas& Variation::jump_formulas(const JumpDone& jump) {
  std::list<JumpFormulas>& known = lent_->jump_formulas[at(jump.jump)];
  for (JumpFormulas& formulas : known) {
    if (formulas.sides == jump.sides) return formulas;
  }
  JumpFormulas& formulas = known.emplace_back();
  formulas.sides = jump.sides;
  const std::vector<Assignment>& set = model_.form.jumps[at(jump.jump)].set;
  for (size_t k = 0; k < set.size(); ++k) {
    const Sided kept = jump.sides.empty() ? Sided{set[k].value, {}} : on_sides(set[k].value, jump.sides[k]);
    formulas.values.emplace_back(set[k].state, Plain(kept.formula));
    for (const Expr& room : kept.room) formulas.room.emplace_back(room);
    for (const SymbolKind by : {SymbolKind::state, SymbolKind::parameter, SymbolKind::time, SymbolKind::lambda}) {
      for (const Partial& d : gradient(kept.formula, by)) {
        const int index = by == SymbolKind::time ? 0 : d.symbol.symbol().index;
        formulas.slopes.push_back({set[k].state, by, index, Plain(d.value)});
      }
    }
  }
  return formulas;
}

void Variation::freeze(Transition& event, const Arc& arc) {
  if (event.jumps.empty()) return;
  const std::vector<double> lambda = lambdas(arc, event.x_minus, event.t);
  for (JumpDone& jump : event.jumps) {
    const PlainInputs inputs{options_.parameters, jump.before, lambda, event.t};
    jump.sides.clear();
    for (const Assignment& a : model_.form.jumps[at(jump.jump)].set) jump.sides.push_back(sides_at(a.value, inputs));
  }
}

std::vector<Variation::JumpRoom> Variation::jump_room(const Transition& event, const Arc& arc,
                                                      std::span<const double> x, double t) {
  std::vector<JumpRoom> out;
  const std::vector<double> lambda = lambdas(arc, x, t);
  std::vector<double> now(x.begin(), x.end()), before;
  for (size_t k = 0; k < event.jumps.size(); ++k) {
    before = now;
    const PlainInputs inputs{options_.parameters, before, lambda, t};
    if (Plain* when = margin_of(event.jumps[k].jump)) out.push_back({k, true, (*when)(inputs)});
    JumpFormulas& formulas = jump_formulas(event.jumps[k]);
    for (Plain& room : formulas.room) out.push_back({k, false, room(inputs)});
    for (auto& [state, formula] : formulas.values) now[at(state)] = formula(inputs);
  }
  return out;
}

/// The margin of the `when` of a jump; none if it has none.
Plain* Variation::margin_of(int jump) {
  std::optional<Plain>& made = lent_->conditions[at(jump)];
  const std::optional<Expr>& when = model_.form.jumps[at(jump)].when;
  if (when && !made) made.emplace(margin(*when));
  return made ? &*made : nullptr;
}

double Variation::condition(int jump, const Transition* event, const Arc& arc, std::span<const double> x, double t) {
  Plain* when = margin_of(jump);
  if (!when) return HUGE_VAL;
  const std::vector<double> lambda = lambdas(arc, x, t);
  std::vector<double> now(x.begin(), x.end()), before;
  for (const JumpDone& done : event ? event->jumps : std::vector<JumpDone>{}) {
    if (done.jump > jump) break;
    before = now;
    for (auto& [state, formula] : jump_formulas(done).values)
      now[at(state)] = formula({options_.parameters, before, lambda, t});
  }
  return (*when)({options_.parameters, now, lambda, t});
}

void Variation::pass_jump(const JumpDone& jump, const Multipliers& before, std::span<double> x, double t, Mat& z,
                          const Mat& dt) {
  JumpFormulas& formulas = jump_formulas(jump);
  const std::vector<double> x_minus(x.begin(), x.end());
  const PlainInputs inputs{options_.parameters, x_minus, before.lambda, t};
  const Mat old = z;
  for (auto& [state, formula] : formulas.values) z.row(state).setZero();
  for (JumpSlope& s : formulas.slopes) {
    const double v = s.formula(inputs);
    if (!std::isfinite(v)) continue;
    switch (s.by) {
      case SymbolKind::state: z.row(s.state) += v * old.row(s.index); break;
      case SymbolKind::time: z.row(s.state) += v * dt; break;
      case SymbolKind::lambda: z.row(s.state) += v * before.tangent.row(s.index); break;
      default:
        if (p_.cols() == z.cols()) z.row(s.state) += v * p_.row(s.index);
    }
  }
  for (auto& [state, formula] : formulas.values) x[at(state)] = formula(inputs);
}

}  // namespace saltus
