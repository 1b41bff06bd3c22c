#include "model/ports.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/index.hpp"
#include "model/lower.hpp"

namespace saltus {
namespace {

/// The replacements where an input is moved.
struct Moved {
  InputPort port;
  Expr z;     ///< of a named quantity: what is added
  Expr base;  ///< of a parameter: what it is without that
};

/// Puts moved numbers into formulas; where a formula must stay constant nothing is moved.
class Move {
 public:
  Move(const Model& model, const std::vector<Moved>& moved)
      : model_(model), moved_(moved), rebuild_([this](const Expr& e, std::span<const Expr> a) { return node(e, a); }) {
    for (size_t i = 0; i < model.parameters.size(); ++i) values_.push_back(parameter(static_cast<int>(i), 0));
  }

  Expr operator()(const Expr& e) { return rebuild_(e); }

 private:
  /// A parameter as a formula of what is moved; itself if nothing in it is.
  Expr parameter(int i, int depth) {
    const Expr self = parameter_symbol(model_, i);
    Expr out = self;
    for (const Moved& m : moved_) {
      if (!m.port.named && m.port.index == i) out = m.base + m.z;
    }
    if (!(out == self) || depth > static_cast<int>(model_.parameters.size())) return out;
    const Expr& formula = model_.parameters[at(i)].value;
    ExprMap<Expr> inner;
    for (const Expr& s : symbols_in(std::span(&formula, 1))) {
      if (!s.is_symbol(SymbolKind::parameter)) continue;
      const Expr of = parameter(s.symbol().index, depth + 1);
      if (!(of == s)) inner.emplace(s, of);
    }
    return inner.empty() ? self : substitute(formula, inner);
  }

  Expr node(const Expr& e, std::span<const Expr> a) {
    if (e.is_symbol(SymbolKind::parameter)) return values_[at(e.symbol().index)];
    if (e.is_symbol(SymbolKind::definition)) {
      for (const Moved& m : moved_) {
        if (m.port.named && m.port.index == e.symbol().index) return e + m.z;
      }
    }
    if (e.size() == 0) return e;
    std::vector<Expr> arguments(a.begin(), a.end());
    if (e.op() == Op::mod || e.op() == Op::hold_sign) arguments[1] = e.argument(1);
    return Expr::raw(e.op(), arguments);
  }

  const Model& model_;
  const std::vector<Moved>& moved_;
  std::vector<Expr> values_;
  Rebuild rebuild_;
};

void move_all(Model& model, Move& move) {
  for (State& s : model.states) s.rate = move(s.rate);
  for (Definition& d : model.definitions) d.value = move(d.value);
  for (Balance& b : model.balances) b.left = move(b.left), b.right = move(b.right);
  for (Constraint& c : model.constraints) {
    c.gap = move(c.gap);
    if (c.restitution) c.restitution = move(*c.restitution);
    if (c.friction) c.friction = move(*c.friction);
    if (c.tangential) c.tangential = move(*c.tangential);
    for (Expr& e : c.slip) e = move(e);
    for (Expr& e : c.slip_sign) e = move(e);
  }
  for (Jump& j : model.jumps) {
    j.on = move(j.on);
    if (j.when) j.when = move(*j.when);
    for (Assignment& a : j.set) a.value = move(a.value);
  }
}

/// A further state, whose rate is the last equation.
int add_state(Model& model, const std::string& name, const Expr& rate) {
  const int index = static_cast<int>(model.states.size());
  model.states.push_back({.name = name, .rate = rate, .initial = 0.0});
  model.order.push_back({WrittenLine::rate, index});
  return index;
}

PortedModel ported(const Model& model, std::span<const InputPort> inputs, std::span<const Expr> outputs, bool moves) {
  PortedModel out{.model = model};
  Model& m = out.model;
  m.sections.clear();
  std::vector<Moved> moved;
  for (size_t k = 0; k < inputs.size() && moves; ++k) {
    const int rate = static_cast<int>(m.parameters.size());
    m.parameters.push_back({.name = fmt::format("input{} rate", k + 1), .value = 0.0});
    out.input_rate.push_back(rate);
    out.input_state.push_back(add_state(m, fmt::format("input{} moved", k + 1), parameter_symbol(m, rate)));
    Expr base;
    out.input_base.push_back(-1);
    if (!inputs[k].named) {
      out.input_base.back() = static_cast<int>(m.parameters.size());
      m.parameters.push_back(
          {.name = fmt::format("input{} base", k + 1), .value = parameter_symbol(model, inputs[k].index)});
      base = parameter_symbol(m, out.input_base.back());
    }
    moved.push_back({inputs[k], state_symbol(m, out.input_state.back()), base});
  }
  if (!moves) {
    out.input_rate.assign(inputs.size(), -1);
    out.input_state.assign(inputs.size(), -1);
    out.input_base.assign(inputs.size(), -1);
  }
  Move move(model, moved);
  // An output that is an injected name itself is what stands before the place of injection.
  const auto is_injected = [&](const Expr& e) {
    return e.is_symbol(SymbolKind::definition) && std::any_of(moved.begin(), moved.end(), [&](const Moved& of) {
             return of.port.named && of.port.index == e.symbol().index;
           });
  };
  const size_t own = model.states.size();
  std::vector<Expr> rates;
  for (const Expr& e : outputs) rates.push_back(is_injected(e) ? e : move(e));
  std::vector<State> added(m.states.begin() + ix(own), m.states.end());
  m.states.resize(own);
  move_all(m, move);
  for (State& s : added) m.states.push_back(std::move(s));
  for (size_t k = 0; k < outputs.size(); ++k)
    out.output_state.push_back(add_state(m, fmt::format("integral of output{}", k + 1), rates[k]));
  lower(m);
  return out;
}

}  // namespace

PortedModel with_ports(const Model& model, std::span<const InputPort> inputs, std::span<const Expr> outputs) {
  try {
    return ported(model, inputs, outputs, true);
  } catch (const Error&) {  // somewhere else a constant is needed
    if (std::any_of(inputs.begin(), inputs.end(), [](const InputPort& p) { return p.named; })) throw;
    return ported(model, inputs, outputs, false);
  }
}

}  // namespace saltus
