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

/// What a jump assigns, and its derivatives, made when it first happens.
Variation::JumpFormulas& Variation::jump_formulas(int jump) {
  JumpFormulas& formulas = jump_formulas_[at(jump)];
  if (!formulas.values.empty()) return formulas;
  for (const Assignment& a : model_.form.jumps[at(jump)].set) {
    formulas.values.emplace_back(a.state, Plain(a.value));
    for (const SymbolKind by : {SymbolKind::state, SymbolKind::parameter, SymbolKind::time, SymbolKind::lambda}) {
      for (const Partial& d : gradient(a.value, by)) {
        const int index = by == SymbolKind::time ? 0 : d.symbol.symbol().index;
        formulas.slopes.push_back({a.state, by, index, Plain(d.value)});
      }
    }
  }
  return formulas;
}

void Variation::pass_jump(const JumpDone& jump, const Multipliers& before, std::span<double> x, double t, Mat& z,
                          const Mat& dt) {
  JumpFormulas& formulas = jump_formulas(jump.jump);
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
