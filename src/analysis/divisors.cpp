#include "analysis/divisors.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/thresholds.hpp"
#include "expr/print.hpp"

namespace saltus {
namespace {

bool is_free_of(const Expr& e, SymbolKind unwanted) {
  const std::vector<Expr> nodes = postorder(std::span(&e, 1));
  return std::none_of(nodes.begin(), nodes.end(), [&](const Expr& n) { return n.is_symbol(unwanted); });
}

/// Named quantities replaced by their formulas.
Expr without_names(Expr e, const Model& model) {
  ExprMap<Expr> values;
  for (const Expr& n : postorder(std::span(&e, 1))) {
    if (n.is_symbol(SymbolKind::definition))
      values[n] = without_names(model.definitions[static_cast<size_t>(n.symbol().index)].value, model);
  }
  return values.empty() ? e : insert(e, values);
}

/// The divisor of a quotient or of a negative power.
std::optional<Expr> divisor_of(const Expr& e) {
  if (e.op() == Op::div) return e.argument(1);
  if (e.op() == Op::pow && e.argument(1).is_number() && e.argument(1).value() < 0) return e.argument(0);
  return std::nullopt;
}

}  // namespace

Divisors::Divisors(const Model& model) {
  std::vector<Expr> formulas;
  for (const State& s : model.states) formulas.push_back(s.rate);
  for (const Definition& d : model.definitions) formulas.push_back(d.value);
  std::set<const Node*> known;
  for (const Expr& e : postorder(formulas)) {
    const std::optional<Expr> divisor = divisor_of(e);
    if (!divisor) continue;
    const Expr formula = without_names(*divisor, model);
    // Multipliers have no values without a mode.
    if (is_free_of(formula, SymbolKind::state) || !is_free_of(formula, SymbolKind::lambda)) continue;
    if (known.insert(formula.node()).second) divisors_.push_back({print(*divisor), Plain(formula)});
  }
}

std::optional<std::string> Divisors::vanishing(std::span<const double> parameters, double t,
                                               std::span<const double> start, std::span<const double> x,
                                               std::span<const double> next) {
  for (Divisor& d : divisors_) {
    const auto at = [&](std::span<const double> state) {
      return d.formula({.parameters = parameters, .states = state, .t = t});
    };
    const double there = at(x), moved = std::abs(at(next) - there);
    if (std::abs(there) < vanishing_divisor * std::abs(at(start)) && !(moved < moving_divisor * std::abs(there)))
      return d.text;
  }
  return std::nullopt;
}

}  // namespace saltus
