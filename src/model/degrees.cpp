#include "model/degrees.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "expr/diff.hpp"
#include "model/derive.hpp"

namespace saltus {
namespace {

/// States that feel the multiplier, directly or through other states.
std::vector<bool> reached_states(const Form& form, const Expr& multiplier) {
  std::vector<bool> reached(form.f.size(), false);
  for (bool grew = true; grew;) {
    grew = false;
    for (size_t i = 0; i < form.f.size(); ++i) {
      if (reached[i]) continue;
      const auto used = symbols_in(std::span(&form.f[i], 1));
      reached[i] = std::any_of(used.begin(), used.end(), [&](const Expr& s) {
        return s == multiplier || (s.is_symbol(SymbolKind::state) && reached[static_cast<size_t>(s.symbol().index)]);
      });
      grew = grew || reached[i];
    }
  }
  return reached;
}

void check_affine_in_multipliers(const Model& model, const Probe& probe) {
  for (size_t i = 0; i < model.states.size(); ++i) {
    for (const Partial& d : gradient(model.form.f[i], SymbolKind::lambda)) {
      if (probe.is_zero(differentiate(d.value, d.symbol))) continue;
      throw Error(ErrorKind::model,
                  fmt::format("the rate of '{}' is not linear in the multiplier '{}'", model.states[i].name,
                              d.symbol.symbol().name),
                  model.states[i].place, "a multiplier is a force, current or voltage and enters rates linearly");
    }
  }
}

/// How many times the gap must be differentiated until its multiplier appears.
int relative_degree(const Model& model, size_t j, const Probe& probe, Gradients& gradients) {
  const Form& form = model.form;
  const Constraint& c = model.constraints[j];
  const Expr multiplier = Expr::symbol(SymbolKind::lambda, static_cast<int>(j), c.name);
  Expr y = form.gaps[j].gap;
  if (contains_kind(y, SymbolKind::lambda)) return 0;
  for (int degree = 1; degree <= 2; ++degree) {
    y = lie_derivative(y, form);
    const std::vector<Partial>& by = gradients.of(y, SymbolKind::lambda);
    const auto own = std::lower_bound(by.begin(), by.end(), static_cast<int>(j),
                                      [](const Partial& d, int index) { return d.symbol.symbol().index < index; });
    if (own != by.end() && own->symbol == multiplier && !probe.is_zero(own->value)) return degree;
  }
  const auto reached = reached_states(form, multiplier);
  const auto used = symbols_in(std::span(&form.gaps[j].gap, 1));
  const bool moves = std::any_of(used.begin(), used.end(), [&](const Expr& s) {
    return s.is_symbol(SymbolKind::state) && reached[static_cast<size_t>(s.symbol().index)];
  });
  if (moves) {
    const std::string name = fmt::format("{} '{}'", c.joint ? "joint" : "gap of", c.name);
    throw Error(ErrorKind::model, fmt::format("the {} has a relative degree above 2", name), c.place,
                fmt::format("'{}' must enter the {}, its first or its second time derivative", c.name,
                            c.joint ? "formula of equals" : "gap"));
  }
  throw Error(
      ErrorKind::model, fmt::format("the multiplier '{}' never moves its {}", c.name, c.joint ? "joint" : "gap"),
      c.place,
      fmt::format("let '{}' act on the rate of a state that the {} depends on", c.name, c.joint ? "joint" : "gap"));
}

}  // namespace

void find_degrees(Model& model, const Probe& probe) {
  check_affine_in_multipliers(model, probe);
  Gradients gradients;
  for (size_t j = 0; j < model.constraints.size(); ++j) {
    const Constraint& c = model.constraints[j];
    Gap& gap = model.form.gaps[j];
    gap.degree = relative_degree(model, j, probe, gradients);
    if (gap.degree == 2 && !gap.restitution && !c.joint) {
      throw Error(ErrorKind::model, fmt::format("the contact '{}' has no restitution", c.name), c.place,
                  "add restitution = 0 (no rebound) up to 1 (no loss) below the gap");
    }
    if (gap.degree < 2 && gap.restitution) {
      throw Error(
          ErrorKind::model,
          fmt::format("'{}' is no contact (relative degree {}) and cannot have a restitution", c.name, gap.degree),
          c.restitution_place, "remove the line: only gaps between bodies with velocities rebound");
    }
  }
  // By rate, not by multiplier: a rate holds few of them, so long rows of contacts stay cheap.
  for (size_t i = 0; i < model.form.f.size(); ++i) {
    for (Partial& d : gradient(model.form.f[i], SymbolKind::lambda)) {
      const size_t j = static_cast<size_t>(d.symbol.symbol().index);
      model.form.gaps[j].direction.push_back({static_cast<int>(i), std::move(d.value)});
    }
  }
}

}  // namespace saltus
