// Multipliers that stand in no equation act by virtual power: along the gradient of their gap, and with friction
// against their slip.
//
//   M a = F + sum_j lambda_j (dg_j/dq - mu_j sum_k sigma_jk ds_jk/dq')      sigma_j in Sgn s_j, or in Unit (s_j1, s_j2)
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "expr/print.hpp"
#include "model/lowering.hpp"

namespace saltus {

bool Lowering::stands_in_equations(const Expr& multiplier) const {
  const auto in = [&](const Expr& e) { return contains_kind(e, SymbolKind::lambda) && depends_on(e, multiplier); };
  return std::any_of(form_.f.begin(), form_.f.end(), in) || std::any_of(balances_.begin(), balances_.end(), in) ||
         std::any_of(form_.gaps.begin(), form_.gaps.end(), [&](const Gap& g) { return in(g.gap); });
}

/// Derivatives by the speeds of coordinates.
std::vector<Partial> Lowering::by_speed(const Expr& e) const {
  std::vector<bool> is_speed(model_.states.size(), false);
  for (const State& s : model_.states) {
    if (s.speed >= 0) is_speed[static_cast<size_t>(s.speed)] = true;
  }
  std::vector<Partial> out = gradient(e, SymbolKind::state);
  std::erase_if(out, [&](const Partial& p) { return !is_speed[static_cast<size_t>(p.symbol.symbol().index)]; });
  return out;
}

void Lowering::add_virtual_force(size_t j, std::vector<VirtualForce>& forces) {
  const Constraint& c = model_.constraints[j];
  const bool coordinates =
      std::any_of(model_.states.begin(), model_.states.end(), [](const State& s) { return s.speed >= 0; });
  const Expr multiplier = Expr::symbol(SymbolKind::lambda, static_cast<int>(j), c.name);
  place_ = c.friction ? &c.friction_place : &c.place;
  if (!coordinates && !c.friction) return;
  if (!coordinates)
    fail(fmt::format("friction of '{}' needs coordinates", c.name),
         fmt::format("write balances with x'', or friction into the rates: -mu*{}*sign(v)", c.name));
  if (stands_in_equations(multiplier)) {
    if (!c.friction) return;
    fail(fmt::format("'{}' has friction of its own and stands in an equation", c.name),
         fmt::format("take {0} out of the equations, where it acts by virtual power, or write -mu*{0}*sign(v) there",
                     c.name));
  }
  VirtualForce force{.name = c.name, .place = c.place};
  const Expr& gap = form_.gaps[j].gap;
  const std::vector<Partial> along = by_speed(gap);  // a gap of velocities acts along its gradient by speeds
  for (const Partial& p : along)
    force.on.emplace_back(rate_symbol(model_, p.symbol.symbol().index), p.value * multiplier);
  for (const Partial& p : along.empty() ? gradient(gap, SymbolKind::state) : std::vector<Partial>{}) {
    const int speed = model_.states[static_cast<size_t>(p.symbol.symbol().index)].speed;
    if (speed >= 0) force.on.emplace_back(rate_symbol(model_, speed), p.value * multiplier);
  }
  if (force.on.empty()) return;  // it moves nothing, which find_degrees tells
  if (c.friction) add_friction(j, force);
  forces.push_back(std::move(force));
}

void Lowering::add_friction(size_t j, VirtualForce& force) {
  const Constraint& c = model_.constraints[j];
  const Expr multiplier = Expr::symbol(SymbolKind::lambda, static_cast<int>(j), c.name);
  const Expr size = c.joint ? rebuild_(Expr::raw(Op::abs, std::array{multiplier})) : multiplier;
  const Expr bound = formula(*c.friction, c.friction_place) * size;
  for (size_t k = 0; k < c.slip.size(); ++k) {
    const Expr slip = formula(c.slip[k], c.friction_place);
    const std::vector<Partial> directions = by_speed(slip);
    if (directions.empty())
      fail(fmt::format("the slip '{}' has no speed in it", print(simplify(c.slip[k]))),
           "a tangential velocity is linear in the speeds: slip = \"x' - V\"");
    const Expr sigma = formula(c.slip_sign[k], c.friction_place);
    for (const Partial& d : directions) {
      if (!by_speed(d.value).empty())
        fail(fmt::format("the slip '{}' is not linear in the speeds", print(simplify(c.slip[k]))),
             "the tangential velocity of the contact point is");
      force.on.emplace_back(rate_symbol(model_, d.symbol.symbol().index), -(bound * sigma * d.value));
    }
    if (c.tangential) set_rebound(sigma, formula(*c.tangential, c.friction_place));
  }
}

/// The tangential restitution of all switches in a friction force.
void Lowering::set_rebound(const Expr& sigma, const Expr& rebound) {
  for (const Expr& s : symbols_in(std::span(&sigma, 1))) {
    if (!s.is_symbol(SymbolKind::sigma)) continue;
    Switch& own = form_.switches[static_cast<size_t>(s.symbol().index)];
    if (own.rebound && !(*own.rebound == rebound))
      fail(fmt::format("two tangential restitutions on the slip '{}'", own.name), "give both contacts the same");
    own.rebound = rebound;
  }
}

}  // namespace saltus
