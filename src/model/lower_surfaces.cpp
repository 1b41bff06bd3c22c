// Switches on surfaces: found again or made, and what each use of one says about it.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "expr/interpolant.hpp"
#include "expr/print.hpp"
#include "model/derive.hpp"
#include "model/lowering.hpp"
#include "model/quotient.hpp"

namespace saltus {
namespace {

bool is_odd_power(const Expr& e) {
  if (e.op() != Op::pow || !e.argument(1).is_number()) return false;
  const double power = e.argument(1).value();
  return power > 0 && std::fmod(power, 2) == 1;
}

}  // namespace

/// The value of the switch on this surface: an existing one or a new one, with the sign that fits.
Expr Lowering::sigma(const SurfaceUse& use) {
  const Expr surface = without_odd_power(expand(use.lowered));
  if (contains_kind(surface, SymbolKind::rate))
    fail(fmt::format("the surface '{}' depends on a rate that the balances give", print(use.written)),
         "a switch may depend on states, time, parameters and other switches");
  if (contains_kind(surface, SymbolKind::lambda)) {
    if (const std::optional<Expr> side = side_of_joint_force(use, linear_form(surface))) return *side;
    fail(
        fmt::format("the surface '{}' depends on a multiplier", print(use.written)),
        "a switch may depend on states, time, parameters and other switches; abs also takes the multiplier of a joint");
  }
  if (const std::optional<Expr> value = sigma_at_poles(use, surface)) return *value;
  const LinearForm shape = linear_form(surface);
  if (shape.terms.empty()) return shape.constant > 0 ? 1.0 : shape.constant < 0 ? -1.0 : 0.0;
  size_t key = 0;
  for (const auto& [atom, c] : shape.terms) key = key * 31 + std::hash<const void*>{}(atom.node());
  for (const int i : by_shape_[key]) {
    const double c = ratio(shape, shapes_[static_cast<size_t>(i)]);
    if (c == 0) continue;
    Switch& known = form_.switches[static_cast<size_t>(i)];
    if (!hiding_ && !use.hidden && known.hidden) {  // so far it was the sign of a divisor only
      known.hidden = false;
      known.name = print(simplify(use.written));
    }
    return value_of_use(i, use, c > 0 ? 1 : -1);
  }
  const int index = static_cast<int>(form_.switches.size());
  by_shape_[key].push_back(index);
  add_switch({.name = print(simplify(use.written)), .surface = surface, .kink = true, .hidden = hiding_ || use.hidden},
             shape);
  return value_of_use(index, use, 1);
}

/// The value of the switch of a surface that changes its sign through poles or cuts; nothing if it has none.
std::optional<Expr> Lowering::sigma_at_poles(const SurfaceUse& use, const Expr& surface) {
  const std::vector<Expr> cuts = cuts_of(surface);
  const Quotient q = quotient_of(surface);
  if (cuts.empty() && q.numerator == surface) return std::nullopt;
  const auto sign_of = [this](const Expr& e) {
    return sigma({.written = e, .lowered = e, .fixes_ratio = true, .rank = 2, .hidden = true});
  };
  if (!cuts.empty()) {
    if (surface.op() == Op::atan2) return sigma(with_surface(use, cuts[0]));
    std::vector<Expr> signs;
    for (const Expr& cut : cuts) signs.push_back(sign_of(cut));
    return sigma(with_surface(use, without_cuts(surface, cuts, signs)));
  }
  const LinearForm shape = linear_form(q.numerator);
  Expr out = 1.0;
  size_t first = 0;
  if (shape.terms.empty() && shape.constant != 0 && !q.divisors.empty()) {  // a/d has no zeros: the switch is that of d
    out = sigma(with_surface(use, shape.constant > 0 ? q.divisors[0] : -q.divisors[0]));
    first = 1;
  } else {
    out = sigma(with_surface(use, q.numerator));
  }
  for (size_t i = first; i < q.divisors.size(); ++i) out = out * sign_of(q.divisors[i]);
  return out;
}

/// The side of a joint's multiplier inside abs, min or max, for friction mu*abs(N); nothing for other surfaces. Its
/// letter follows the multiplier that the equations of the mode give.
std::optional<Expr> Lowering::side_of_joint_force(const SurfaceUse& use, const LinearForm& shape) {
  if (shape.terms.size() != 1 || shape.constant != 0 || !use.kink) return std::nullopt;
  const auto& [multiplier, factor] = shape.terms[0];
  if (!multiplier.is_symbol(SymbolKind::lambda)) return std::nullopt;
  if (!model_.constraints[static_cast<size_t>(multiplier.symbol().index)].joint) return std::nullopt;
  int i = 0;
  while (i < static_cast<int>(form_.switches.size()) && !(form_.switches[static_cast<size_t>(i)].surface == multiplier))
    ++i;
  if (i == static_cast<int>(form_.switches.size()))
    add_switch({.name = print(multiplier), .surface = multiplier, .kink = true, .hidden = true},
               linear_form(multiplier));
  const Expr sigma = sigma_symbol(form_, i);
  return factor > 0 ? sigma : -sigma;
}

Switch& Lowering::add_switch(Switch s, const LinearForm& shape) {
  const bool mixed = std::find(mixed_.begin(), mixed_.end(), s.surface) != mixed_.end();
  s.discrete = changes_at_events_only(s.surface);
  s.may_be_zero = s.discrete || mixed || contains_kind(s.surface, SymbolKind::sigma);
  shapes_.push_back(shape);
  ratio_fixed_.push_back(false);
  selected_in_.emplace_back();
  rank_.push_back(0);
  return form_.switches.emplace_back(std::move(s));
}

/// The value of a use of the switch, which has the opposite sign of the surface as used there if `side` is -1. Where
/// uses mean different things on the surface itself (n > 1 false, n < 1 false), the switch is 0 there and each of them
/// is the parabola through its three values.
Expr Lowering::value_of_use(int i, const SurfaceUse& use, int side) {
  const size_t index = static_cast<size_t>(i);
  Switch& s = form_.switches[index];
  // Both selections of abs, min and max are equal there, and a surface that is only crossed hardly ever rests.
  const int matters = s.may_be_zero ? 2 : 3;
  const bool mixed = std::find(mixed_.begin(), mixed_.end(), s.surface) != mixed_.end();
  if (!mixed && std::min(use.rank, rank_[index]) >= matters && s.at_zero != side * use.at_zero) {
    mixed_.push_back(s.surface);
    anew_ = true;
  }
  note_use(s, use, side);
  const Expr sigma = sigma_symbol(form_, i), there = side > 0 ? sigma : -sigma;
  if (!mixed) return there;
  s.at_zero = 0;
  return use.rank < matters || use.at_zero == 0 ? there : there + Expr(use.at_zero) * (Expr(1) - pow(sigma, 2));
}

/// The surface of an odd power is that of its base: the base has simple zeros where the power has flat ones.
Expr Lowering::without_odd_power(Expr surface) {
  while (is_odd_power(surface) || surface.op() == Op::cbrt) surface = surface.argument(0);
  if (surface.op() != Op::mul) return surface;
  const auto base = [](const Expr& e) { return is_odd_power(e) ? e.argument(0) : e; };
  return base(surface.argument(0)) * base(surface.argument(1));  // K*u^3; deeper products are left alone
}

bool Lowering::changes_at_events_only(const Expr& surface) const {
  const std::vector<Expr> used = symbols_in(std::span(&surface, 1));
  return std::none_of(used.begin(), used.end(), [this](const Expr& s) {
    return s.is_symbol(SymbolKind::time) ||
           (s.is_symbol(SymbolKind::state) && !model_.states[static_cast<size_t>(s.symbol().index)].rate.is_number(0));
  });
}

/// `side`: -1 if the switch has the opposite sign of the surface as used here.
void Lowering::note_use(Switch& s, const SurfaceUse& use, int side) {
  const size_t i = static_cast<size_t>(&s - form_.switches.data());
  s.selects = s.selects || use.selects;
  s.kink = s.kink && use.kink;
  if (use.rank > rank_[i]) {
    s.at_zero = side * use.at_zero;
    rank_[i] = use.rank;
  }
  if (!use.inside.empty()) selected_in_[i] = std::string(use.inside);
  if (use.fixes_ratio && use.inside.empty()) {
    const Expr hold = use.hold.value_or(1.0);
    if (ratio_fixed_[i] && !(s.hold == hold)) {
      fail(fmt::format("two different static ratios on the surface '{}'", s.name),
           "holding belongs to the surface: give every sign on it the same second argument");
    }
    s.hold = hold;
    s.holds = use.hold.has_value();
    s.hold_place = *place_;
    ratio_fixed_[i] = true;
  }
  if (s.holds && !selected_in_[i].empty()) {
    fail(fmt::format("the holding surface '{}' is used inside '{}'", s.name, selected_in_[i]),
         "a switch that holds may appear in sign and abs only");
  }
}

/// A switch beside a counter, which no other formula shares.
int Lowering::add_step(std::string name, const Expr& surface, bool kink) {
  add_switch({.name = std::move(name), .surface = surface, .at_zero = 1, .kink = kink, .hidden = true}, {});
  ratio_fixed_.back() = true;
  selected_in_.back() = "floor";
  rank_.back() = 3;
  return static_cast<int>(form_.switches.size()) - 1;
}

/// The counter of a phase: an existing one, or a new one with the two steps next to it.
const Counter& Lowering::counter_of(const Expr& written, const Expr& phase,
                                    const std::shared_ptr<const Interpolant>& curve) {
  size_t floors = 0;
  for (const Counter& c : form_.counters) {
    const bool same = curve ? c.curve && *c.curve == *curve : !c.curve;
    if (same && c.phase == phase) return c;
    if (!c.curve) ++floors;
  }
  Counter c{.phase = phase, .at = form_.counter_values, .curve = curve};
  c.name = curve ? written.argument(1).symbol().name : fmt::format("wraps{}", floors + 1);
  form_.counter_values += 1 + (curve ? table_values : 0);
  const std::string name = print(simplify(written));
  const bool kink = curve && !curve->jumps();
  c.below = add_step(name, phase - (curve ? table_symbol(c, TableValue::from) : count_symbol(c)), kink);
  c.above = add_step(name, phase - (curve ? table_symbol(c, TableValue::to) : count_symbol(c) + Expr(1)), kink);
  form_.counters.push_back(std::move(c));
  return form_.counters.back();
}

}  // namespace saltus
