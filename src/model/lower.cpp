#include "model/lower.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "expr/diff.hpp"
#include "model/balances.hpp"
#include "model/degrees.hpp"
#include "model/interactions.hpp"
#include "model/lowering.hpp"
#include "model/probe.hpp"

namespace saltus {

void lower(Model& model) {
  Lowering lowering(model);
  lowering.run();
  const Probe probe(model);
  find_interactions(model.form, probe, lowering.disjoint());
  if (!model.constraints.empty()) find_degrees(model, probe);
}

Lowering::Lowering(Model& model)
    : model_(model),
      form_(model.form),
      parameters_(parameter_values(model)),
      rebuild_([this](const Expr& e, std::span<const Expr> a) { return lower_node(e, a); }) {}

void Lowering::fail(std::string message, std::string hint) const {
  throw Error(ErrorKind::model, std::move(message), *place_, std::move(hint));
}

void Lowering::run() {
  find_constants();
  do {  // again where a surface turned out to need three values
    forget();
    lower_equations();
    lower_constraints();
    solve_rates();
    hiding_ = true;
    lower_jumps();
    lower_sections();
  } while (anew_);
  put_hidden_last();
  check_vectors();
}

/// Forces of a vector switch enter rates linearly and nothing else.
void Lowering::check_vectors() {
  if (form_.vectors.empty()) return;
  const auto is_part = [&](const Expr& s) {
    return s.is_symbol(SymbolKind::sigma) && form_.switches[static_cast<size_t>(s.symbol().index)].vector >= 0;
  };
  const auto check = [&](const Expr& e, const Place& place, bool rate) {
    for (const Expr& s : symbols_in(std::span(&e, 1))) {
      if (!is_part(s)) continue;
      place_ = &place;
      if (rate && differentiate(differentiate(e, s), s).is_number(0)) continue;
      fail(fmt::format(
               "unit of '{}' does not enter linearly",
               form_
                   .switches[static_cast<size_t>(
                       form_.vectors[static_cast<size_t>(form_.switches[static_cast<size_t>(s.symbol().index)].vector)]
                           .parts[0])]
                   .name),
           "unit is a direction of a force: it stands in rates, times anything that does not contain it");
    }
  };
  for (size_t i = 0; i < form_.f.size(); ++i) check(form_.f[i], model_.states[i].place, true);
  for (size_t j = 0; j < form_.gaps.size(); ++j) check(form_.gaps[j].gap, model_.constraints[j].place, false);
  for (const Switch& s : form_.switches) check(s.surface, model_.states[0].place, false);
}

/// Everything but the surfaces that need three values.
void Lowering::forget() {
  form_ = Form{};
  rebuild_ = Rebuild([this](const Expr& e, std::span<const Expr> a) { return lower_node(e, a); });
  expanded_.reset();
  lowered_.clear();
  definition_values_.clear();
  by_shape_.clear();
  shapes_.clear();
  ratio_fixed_.clear();
  selected_in_.clear();
  rank_.clear();
  disjoint_.clear();
  hiding_ = anew_ = false;
}

/// In the order in which they are written, so that switches are numbered as a reader meets them.
void Lowering::lower_equations() {
  lowered_.resize(model_.definitions.size());
  std::vector<Expr> rates;
  balances_.assign(model_.balances.size(), Expr(0.0));
  const auto lower_balance = [&](size_t index) {
    const Balance& b = model_.balances[index];
    place_ = &b.place;
    const Expr left = rebuild_(b.left);
    balances_[index] = left - rebuild_(b.right);
  };
  for (const State& s : model_.states) rates.push_back(s.rate);
  for (const auto& [kind, i] : model_.order) {
    const size_t index = static_cast<size_t>(i);
    switch (kind) {
      case WrittenLine::rate:
        place_ = &model_.states[index].place;
        rates[index] = rebuild_(model_.states[index].rate);
        break;
      case WrittenLine::name: lower_definition(index); break;
      case WrittenLine::balance: lower_balance(index); break;
    }
  }
  for (size_t k = 0; k < balances_.size(); ++k) {
    if (model_.balances[k].made) lower_balance(k);
  }
  for (size_t k = 0; k < lowered_.size(); ++k) lower_definition(k);
  for (const Expr& rate : rates) form_.f.push_back(expand(rate));
  for (Expr& balance : balances_) balance = expand(balance);
  for (const auto& definition : lowered_) form_.definitions.push_back(expand(*definition));
}

/// Rates that stand in formulas, or that multipliers act on by virtual power, are solved for; those with a line of
/// their own are put in.
void Lowering::solve_rates() {
  std::vector<VirtualForce> forces;
  for (size_t j = 0; j < model_.constraints.size(); ++j) add_virtual_force(j, forces);
  std::vector<bool> moved(form_.f.size(), false);
  for (const VirtualForce& force : forces) {
    for (const auto& [rate, e] : force.on) moved[static_cast<size_t>(rate.symbol().index)] = true;
  }
  std::vector<RateEquation> equations;
  std::vector<Expr> unknowns;
  ExprMap<Expr> known;
  for (size_t i = 0; i < form_.f.size(); ++i) {
    const Expr own = rate_symbol(model_, static_cast<int>(i));
    if (!contains_kind(form_.f[i], SymbolKind::rate) && !moved[i]) {
      known.emplace(own, form_.f[i]);
      continue;
    }
    unknowns.push_back(own);
    if (!(form_.f[i] == own)) equations.push_back({own - form_.f[i], model_.states[i].place});
  }
  for (size_t k = 0; k < balances_.size(); ++k) equations.push_back({balances_[k], model_.balances[k].place});
  if (!unknowns.empty()) {
    for (RateEquation& e : equations) e.residual = substitute(e.residual, known);
    const std::vector<Expr> rates = solve_balances(model_, form_, equations, unknowns, forces);
    for (size_t k = 0; k < unknowns.size(); ++k) {
      form_.f[static_cast<size_t>(unknowns[k].symbol().index)] = rates[k];
      known.emplace(unknowns[k], rates[k]);
    }
  }
  for (Expr& d : form_.definitions) {
    if (contains_kind(d, SymbolKind::rate)) d = substitute(d, known);
  }
}

void Lowering::lower_constraints() {
  for (const Constraint& c : model_.constraints) {
    Gap gap{.gap = formula(c.gap, c.place), .joint = c.joint};
    if (c.restitution) gap.restitution = formula(*c.restitution, c.restitution_place);
    form_.gaps.push_back(std::move(gap));
  }
}

void Lowering::lower_jumps() {
  for (const Jump& j : model_.jumps) {
    LoweredJump jump{
        .on = without_odd_power(formula(j.on, j.place)), .direction = j.direction, .every = j.every, .phase = j.phase};
    if (j.when) jump.when = plain(*j.when);
    for (const Assignment& a : j.set) jump.set.push_back({a.state, plain(a.value)});
    form_.jumps.push_back(std::move(jump));
  }
}

void Lowering::lower_sections() {
  for (const Section& s : model_.sections) {
    form_.sections.push_back(s.kind == Section::Kind::on ? without_odd_power(formula(s.value, s.place)) : Expr(0.0));
  }
}

/// Numbers the switches anew, those with a letter in modes first.
void Lowering::put_hidden_last() {
  const size_t count = form_.switches.size();
  std::vector<size_t> old_of;  // by new number
  for (const bool hidden : {false, true}) {
    for (size_t i = 0; i < count; ++i) {
      if (form_.switches[i].hidden == hidden) old_of.push_back(i);
    }
    if (!hidden) form_.visible = static_cast<int>(old_of.size());
  }
  std::vector<int> new_of(count);
  for (size_t i = 0; i < count; ++i) new_of[old_of[i]] = static_cast<int>(i);
  form_.order = new_of;  // they were made in an order in which each depends on earlier ones
  if (static_cast<size_t>(form_.visible) == count || std::is_sorted(new_of.begin(), new_of.end())) return;
  std::vector<Switch> switches;
  for (const size_t old : old_of) switches.push_back(form_.switches[old]);
  form_.switches = std::move(switches);
  renumber(new_of);
}

/// Every formula and number that knows the switches by their old numbers.
void Lowering::renumber(const std::vector<int>& new_of) {
  Rebuild anew([&](const Expr& node, std::span<const Expr> a) {
    if (!a.empty()) return make(node.op(), a);
    return node.is_symbol(SymbolKind::sigma) ? sigma_symbol(form_, new_of[static_cast<size_t>(node.symbol().index)])
                                             : node;
  });
  const auto change = [&](Expr& e) { e = anew(e); };
  for (Expr& f : form_.f) change(f);
  for (Switch& s : form_.switches) change(s.surface);
  for (Gap& g : form_.gaps) {
    change(g.gap);
    if (g.restitution) change(*g.restitution);
  }
  for (VectorSwitch& v : form_.vectors) {
    for (int& part : v.parts) part = new_of[static_cast<size_t>(part)];
  }
  for (Counter& c : form_.counters) {
    change(c.phase);
    c.below = new_of[static_cast<size_t>(c.below)];
    c.above = new_of[static_cast<size_t>(c.above)];
  }
  for (LoweredJump& j : form_.jumps) change(j.on);
  for (Expr& e : form_.sections) change(e);
  for (Expr& e : form_.definitions) change(e);
  SwitchPairs disjoint;
  for (const auto& [i, j] : disjoint_)
    disjoint.insert(std::minmax(new_of[static_cast<size_t>(i)], new_of[static_cast<size_t>(j)]));
  disjoint_ = std::move(disjoint);
}

}  // namespace saltus
