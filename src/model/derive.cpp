#include "model/derive.hpp"

#include <algorithm>

namespace saltus {

Expr lie_derivative(const Expr& e, const Form& form) {
  Expr sum = differentiate(e, time_symbol());
  for (const Partial& d : gradient(e, SymbolKind::state)) {
    sum = sum + d.value * form.f[static_cast<size_t>(d.symbol.symbol().index)];
  }
  return sum;
}

std::vector<std::vector<Partial>> jacobian(std::span<const Expr> formulas, SymbolKind kind) {
  // One Derivative per symbol for all formulas: what they share (a mean field) is differentiated once.
  ExprMap<Derivative> by;
  std::vector<std::vector<Partial>> rows;
  for (const Expr& formula : formulas) {
    std::vector<Partial>& row = rows.emplace_back();
    for (const Expr& s : symbols_in(std::span(&formula, 1))) {
      if (s.symbol().kind != kind) continue;
      Expr d = by.try_emplace(s, s).first->second(formula);
      if (!d.is_number(0)) row.push_back({s, std::move(d)});
    }
    std::sort(row.begin(), row.end(),
              [](const Partial& a, const Partial& b) { return a.symbol.symbol().index < b.symbol.symbol().index; });
  }
  return rows;
}

std::vector<std::vector<Partial>> jacobian(const Form& form, SymbolKind kind) { return jacobian(form.f, kind); }

FunctionDerivatives derive(const Expr& y, const Form& form) {
  return {gradient(y, SymbolKind::state), differentiate(y, time_symbol()), gradient(y, SymbolKind::parameter),
          lie_derivative(y, form)};
}

}  // namespace saltus
