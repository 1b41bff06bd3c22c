#include "code/plain.hpp"

#include <unordered_map>

namespace saltus {

Plain::Plain(const Expr& formula) : nodes_(postorder(std::span(&formula, 1))) {
  std::unordered_map<const Node*, size_t> place;
  for (const Expr& e : nodes_) {
    std::array<size_t, 3> from{};
    for (size_t k = 0; k < e.size(); ++k) from[k] = place.at(e.argument(k).node());
    arguments_.push_back(from);
    place.emplace(e.node(), place.size());
    const bool constant = e.size() == 0 && (e.is_number() || e.is_symbol(SymbolKind::constant));
    values_.push_back(constant ? evaluate(e, [](const Symbol&) { return 0.0; }) : 0.0);
  }
}

double Plain::operator()(const PlainInputs& inputs) {
  std::array<double, 3> a{};
  for (size_t k = 0; k < nodes_.size(); ++k) {
    const Expr& e = nodes_[k];
    if (e.size() > 0) {
      for (size_t i = 0; i < e.size(); ++i) a[i] = values_[arguments_[k][i]];
      values_[k] = apply(e, a.data());
      continue;
    }
    if (!e.is_symbol()) continue;
    const size_t i = static_cast<size_t>(e.symbol().index);
    switch (e.symbol().kind) {
      case SymbolKind::parameter: values_[k] = inputs.parameters[i]; break;
      case SymbolKind::state: values_[k] = inputs.states[i]; break;
      case SymbolKind::lambda: values_[k] = i < inputs.lambdas.size() ? inputs.lambdas[i] : 0; break;
      case SymbolKind::time: values_[k] = inputs.t; break;
      default: break;
    }
  }
  return values_.back();
}

}  // namespace saltus
