#include "model/derive.hpp"

namespace saltus {

Expr lie_derivative(const Expr& e, const Form& form) {
  Expr sum = differentiate(e, time_symbol());
  for (const Partial& d : gradient(e, SymbolKind::state)) {
    sum = sum + d.value * form.f[static_cast<size_t>(d.symbol.symbol().index)];
  }
  return sum;
}

std::vector<std::vector<Partial>> jacobian(const Form& form, SymbolKind kind) {
  std::vector<std::vector<Partial>> rows;
  for (const Expr& rate : form.f) rows.push_back(gradient(rate, kind));
  return rows;
}

FunctionDerivatives derive(const Expr& y, const Form& form) {
  return {gradient(y, SymbolKind::state), differentiate(y, time_symbol()), gradient(y, SymbolKind::parameter),
          lie_derivative(y, form)};
}

}  // namespace saltus
