// Lagrange's equations: d/dt dL/dq' - dL/dq = Q - dD/dq', one balance for each coordinate whose speed is in L.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "expr/diff.hpp"
#include "expr/tidy.hpp"
#include "model/builder.hpp"

namespace saltus {
namespace {

constexpr std::array<std::string_view, 3> energies{"kinetic", "potential", "energy"};

/// True if momenta are linear in the speeds.
bool is_quadratic(const std::vector<std::pair<Expr, Expr>>& momenta, const ExprMap<Expr>& speeds) {
  return std::all_of(momenta.begin(), momenta.end(), [&](const auto& m) {
    const std::vector<Partial> slopes = gradient(m.second, SymbolKind::state);
    return std::all_of(slopes.begin(), slopes.end(), [&](const Partial& p) {
      const std::vector<Expr> used = symbols_in(std::span(&p.value, 1));
      return !speeds.contains(p.symbol) ||
             std::none_of(used.begin(), used.end(), [&](const Expr& s) { return speeds.contains(s); });
    });
  });
}

}  // namespace

/// kinetic, potential and energy, where the model has no other use for these names.
void Builder::name_energies() {
  if (!text_.mechanics) return;
  for (const std::string_view name : energies) {
    const std::string text(name);
    if (names_.find(text) || names_.find_indexed(text) || names_.find_function(text)) continue;
    const int i = static_cast<int>(model_.definitions.size());
    names_.add(text, Expr::symbol(SymbolKind::definition, i, text), "an energy of the Lagrangian");
    model_.definitions.push_back({.name = text, .made = true});
  }
}

/// Names replaced by what was written for them.
Expr Builder::written_out(Expr e) const {
  while (contains_kind(e, SymbolKind::definition)) {
    ExprMap<Expr> values;
    for (const Expr& s : symbols_in(std::span(&e, 1))) {
      if (s.is_symbol(SymbolKind::definition))
        values.emplace(s, model_.definitions[static_cast<size_t>(s.symbol().index)].value);
    }
    e = insert(e, values);
  }
  return simplify(e);
}

/// The Lagrangian or the dissipation function: of states, parameters and time alone.
Expr Builder::energy_formula(const Fragment& text, std::string_view what) {
  const Expr written = parse(text, names_);
  for (const Expr& s : symbols_in(std::span(&written, 1))) {
    if (s.is_symbol(SymbolKind::definition) && model_.definitions[static_cast<size_t>(s.symbol().index)].made)
      fail(text, fmt::format("the {} uses '{}', which is made of it", what, s.symbol().name),
           "give your own part of it another name");
  }
  const Expr whole = written_out(written);
  for (const SymbolKind kind : {SymbolKind::lambda, SymbolKind::rate}) {
    if (contains_kind(whole, kind))
      fail(text, fmt::format("the {} depends on a {}", what, kind == SymbolKind::rate ? "rate" : "multiplier"),
           "it depends on coordinates, speeds, time and parameters");
  }
  return written;
}

void Builder::parse_forces() {
  std::vector<Assignment>& forces = model_.mechanics->forces;
  for (const bool single : {false, true}) {
    for (const NamedText& force : text_.mechanics->forces) {
      for_each_state(force.name, {}, single, "forces", [&](size_t state, const Indices& indices) {
        const std::string& name = model_.states[state].name;
        if (model_.states[state].speed < 0)
          fail(force.name, fmt::format("a force on '{}', which is no coordinate", name),
               "forces act on the coordinates of the Lagrangian");
        std::erase_if(forces, [&](const Assignment& a) { return a.state == static_cast<int>(state); });
        forces.push_back({static_cast<int>(state), parse(force.value, names_, indices)});
        used_.push_back(forces.back().value);
      });
    }
  }
}

Expr Builder::force_on(int coordinate, const Expr& dissipation) const {
  const int speed = model_.states[static_cast<size_t>(coordinate)].speed;
  Expr force = collect_terms(-differentiate(dissipation, state_symbol(model_, speed)));
  for (const Assignment& a : model_.mechanics->forces) {
    if (a.state == coordinate) force = force.is_number(0) ? a.value : a.value + force;
  }
  return force;
}

/// Lagrange's equation of a coordinate with this momentum dL/dq'.
Balance Builder::lagrange_equation(int coordinate, const Expr& momentum, const Expr& lagrangian,
                                   const Expr& dissipation) const {
  Expr inertia = 0.0, left = differentiate(momentum, time_symbol());
  for (const Partial& p : gradient(momentum, SymbolKind::state)) {
    const int i = p.symbol.symbol().index;
    const int speed = model_.states[static_cast<size_t>(i)].speed;  // positions move with their speeds
    if (speed >= 0) {
      left = left + p.value * state_symbol(model_, speed);
    } else {
      inertia = inertia + collect_terms(p.value) * rate_symbol(model_, i);
    }
  }
  left = inertia + collect_terms(left - differentiate(lagrangian, state_symbol(model_, coordinate)));
  return {left, force_on(coordinate, dissipation), model_.mechanics->place, true};
}

void Builder::parse_mechanics() {
  if (!text_.mechanics) return;
  const MechanicsText& text = *text_.mechanics;
  model_.mechanics.emplace();
  model_.mechanics->place = place_of(text.lagrangian);
  model_.mechanics->lagrangian = energy_formula(text.lagrangian, "Lagrangian");
  if (text.dissipation) model_.mechanics->dissipation = energy_formula(*text.dissipation, "dissipation function");
  parse_forces();
  const Expr l = written_out(model_.mechanics->lagrangian);
  const Expr d = text.dissipation ? written_out(*model_.mechanics->dissipation) : Expr(0.0);
  std::vector<std::pair<Expr, Expr>> momenta;  // by speed
  ExprMap<Expr> at_rest;
  for (size_t i = 0; i < model_.states.size(); ++i) {
    if (model_.states[i].speed < 0) continue;
    const Expr speed = state_symbol(model_, model_.states[i].speed);
    const Expr momentum = collect_terms(differentiate(l, speed));
    if (momentum.is_number(0)) continue;
    momenta.emplace_back(speed, momentum);
    at_rest.emplace(speed, 0.0);
    model_.balances.push_back(lagrange_equation(static_cast<int>(i), momentum, l, d));
  }
  // energy = sum q' p - L; where L is of second degree in the speeds, sum q' (p - p(0))/2 of it is kinetic.
  const Expr potential = collect_terms(-substitute(l, at_rest));
  Expr kinetic = 0.0, energy = -l;
  for (const auto& [speed, momentum] : momenta) {
    kinetic = kinetic + speed * (momentum - substitute(momentum, at_rest)) / Expr(2);
    energy = energy + speed * momentum;
  }
  kinetic = collect_terms(is_quadratic(momenta, at_rest) ? kinetic : energy - potential);
  for (Definition& e : model_.definitions) {
    if (!e.made) continue;
    e.place = model_.mechanics->place;
    e.value = e.name == "kinetic" ? kinetic : e.name == "potential" ? potential : kinetic + potential;
  }
}

}  // namespace saltus
