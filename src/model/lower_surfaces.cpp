// Switches on surfaces: found again or made, and what each use of one says about it.
#include <cmath>

#include <fmt/format.h>

#include "expr/interpolant.hpp"
#include "expr/print.hpp"
#include "model/derive.hpp"
#include "model/lowering.hpp"

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
  if (contains_kind(surface, SymbolKind::lambda)) {
    fail(fmt::format("the surface '{}' depends on a multiplier", print(use.written)),
         "a switch may depend on states, time, parameters and other switches");
  }
  const LinearForm shape = linear_form(surface);
  if (shape.terms.empty()) return shape.constant > 0 ? 1.0 : shape.constant < 0 ? -1.0 : 0.0;
  size_t key = 0;
  for (const auto& [atom, c] : shape.terms) key = key * 31 + std::hash<const void*>{}(atom.node());
  for (const int i : by_shape_[key]) {
    const double c = ratio(shape, shapes_[static_cast<size_t>(i)]);
    if (c == 0) continue;
    note_use(form_.switches[static_cast<size_t>(i)], use, c > 0 ? 1 : -1);
    const Expr s = sigma_symbol(form_, i);
    return c > 0 ? s : -s;
  }
  const int index = static_cast<int>(form_.switches.size());
  form_.switches.push_back(
      {.name = print(simplify(use.written)), .surface = surface, .kink = true, .hidden = hiding_ || use.hidden});
  shapes_.push_back(shape);
  ratio_fixed_.push_back(false);
  selected_in_.emplace_back();
  rank_.push_back(0);
  by_shape_[key].push_back(index);
  note_use(form_.switches.back(), use, 1);
  return sigma_symbol(form_, index);
}

/// The surface of an odd power is that of its base: the base has simple zeros where the power has flat ones.
Expr Lowering::without_odd_power(Expr surface) {
  while (is_odd_power(surface) || surface.op() == Op::cbrt) surface = surface.argument(0);
  if (surface.op() != Op::mul) return surface;
  const auto base = [](const Expr& e) { return is_odd_power(e) ? e.argument(0) : e; };
  return base(surface.argument(0)) * base(surface.argument(1));  // K*u^3; deeper products are left alone
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
  form_.switches.push_back({.name = std::move(name), .surface = surface, .at_zero = 1, .kink = kink, .hidden = true});
  shapes_.emplace_back();
  ratio_fixed_.push_back(true);
  selected_in_.emplace_back("floor");
  rank_.push_back(3);
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
