// The derivatives engines need, by symbol: along the flow, and with respect to states, parameters, sigma, lambda.
#pragma once

#include <span>
#include <vector>

#include "expr/diff.hpp"
#include "model/model.hpp"

namespace saltus {

/// The rate of e along the flow: sum of de/dx_i f_i, plus de/dt; switches and multipliers inside e count as fixed.
Expr lie_derivative(const Expr& e, const Form& form);

/// For each formula its nonzero derivatives with respect to symbols of one kind, in order of their index.
std::vector<std::vector<Partial>> jacobian(std::span<const Expr> formulas, SymbolKind kind);
/// Rows of df/d(kind): for each state the nonzero derivatives of its rate.
std::vector<std::vector<Partial>> jacobian(const Form& form, SymbolKind kind);

/// A surface or gap y with what an engine asks of it.
struct FunctionDerivatives {
  std::vector<Partial> by_state;  ///< gradient
  Expr by_time;
  std::vector<Partial> by_parameter;
  Expr rate;  ///< first derivative along the flow
};
FunctionDerivatives derive(const Expr& y, const Form& form);

}  // namespace saltus
