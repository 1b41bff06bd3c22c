#include "model/derive.hpp"

namespace saltus {

Expr lie_derivative(const Expr& e, const Form& form) {
  Expr sum = differentiate(e, time_symbol());
  for (const Partial& d : gradient(e, SymbolKind::state)) {
    sum = sum + d.value * form.f[static_cast<size_t>(d.symbol.symbol().index)];
  }
  return sum;
}

std::vector<std::vector<Partial>> jacobian(std::span<const Expr> formulas, SymbolKind kind) {
  Gradients gradients;
  std::vector<std::vector<Partial>> rows;
  for (const Expr& formula : formulas) rows.push_back(gradients(formula, kind));
  return rows;
}

std::vector<std::vector<Partial>> jacobian(const Form& form, SymbolKind kind) { return jacobian(form.f, kind); }

FunctionDerivatives derive(const Expr& y, const Form& form) {
  return {gradient(y, SymbolKind::state), differentiate(y, time_symbol()), gradient(y, SymbolKind::parameter),
          lie_derivative(y, form)};
}

}  // namespace saltus
