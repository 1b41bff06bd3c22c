// Derivatives of formulas, as formulas.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "expr/expr.hpp"

namespace saltus {

/// d e / d symbol, simplified. A switch has derivative 0; abs, min, max, sat and if differentiate side by side.
Expr differentiate(const Expr& e, const Expr& symbol);

/// Derivatives of many formulas with respect to one symbol; shared parts are done once.
class Derivative {
 public:
  explicit Derivative(Expr symbol) : symbol_(std::move(symbol)) {}
  Expr operator()(const Expr& e);

 private:
  Expr symbol_;
  ExprMap<Expr> done_;
};

/// One entry of a sparse derivative: the symbol and the derivative with respect to it (never the formula 0).
struct Partial {
  Expr symbol;
  Expr value;
};

/// Derivatives of many formulas with respect to every symbol of a kind; what they share (a mean field, a chain of
/// kinks) is differentiated once.
class Gradients {
 public:
  /// All nonzero derivatives of a formula with respect to symbols of one kind, in order of their index.
  std::vector<Partial> operator()(const Expr& e, SymbolKind kind) { return of(e, kind); }
  /// The partial derivatives of e, valid until the next call: many rows of a model may be one formula.
  const std::vector<Partial>& of(const Expr& e, SymbolKind kind);

 private:
  ExprMap<Expr> of_sum(const Expr& root, SymbolKind kind);

  ExprMap<Derivative> by_;
  struct Last {
    Expr of = 0.0;
    std::vector<Partial> partials{};
    bool known = false;
  };
  std::map<SymbolKind, Last> last_;
};

/// Partial derivatives of one formula.
std::vector<Partial> gradient(const Expr& e, SymbolKind kind);

}  // namespace saltus
