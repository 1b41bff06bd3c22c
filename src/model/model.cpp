#include "model/model.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "expr/interpolant.hpp"
#include "model/order.hpp"

namespace saltus {

std::string_view direction_name(Direction direction) {
  switch (direction) {
    case Direction::rising: return "rising";
    case Direction::falling: return "falling";
    case Direction::any: break;
  }
  return "any";
}

std::vector<std::string> Model::state_names() const {
  std::vector<std::string> names;
  for (const State& s : states) names.push_back(s.name);
  return names;
}

std::vector<std::string> Model::parameter_names() const {
  std::vector<std::string> names;
  for (const Parameter& p : parameters) names.push_back(p.name);
  return names;
}

bool Model::autonomous() const {
  std::vector<Expr> all = form.f;
  for (const Switch& s : form.switches) all.push_back(s.surface);
  for (const Gap& g : form.gaps) {
    all.push_back(g.gap);
    if (g.restitution) all.push_back(*g.restitution);
  }
  for (const Counter& c : form.counters) all.push_back(c.phase);
  for (const LoweredJump& j : form.jumps) {
    if (j.every) return false;
    all.push_back(j.on);
    if (j.when) all.push_back(*j.when);
    for (const Assignment& a : j.set) all.push_back(a.value);
  }
  const auto used = symbols_in(all);
  return std::none_of(used.begin(), used.end(), [](const Expr& s) { return s.is_symbol(SymbolKind::time); });
}

Expr state_symbol(const Model& model, int i) {
  return Expr::symbol(SymbolKind::state, i, model.states[static_cast<size_t>(i)].name);
}
Expr parameter_symbol(const Model& model, int i) {
  return Expr::symbol(SymbolKind::parameter, i, model.parameters[static_cast<size_t>(i)].name);
}
Expr rate_symbol(const Model& model, int i) {
  return Expr::symbol(SymbolKind::rate, i, model.states[static_cast<size_t>(i)].name + "'");
}
Expr sigma_symbol(const Form& form, int i) {
  const Switch& s = form.switches[static_cast<size_t>(i)];
  return Expr::symbol(SymbolKind::sigma, i, s.vector >= 0 ? "unit" + s.name : "sgn(" + s.name + ")", s.may_be_zero);
}

Expr table_symbol(const Counter& counter, TableValue which, int power) {
  const int slot = counter.at + 1 + static_cast<int>(which) + power;
  return Expr::symbol(SymbolKind::counter, slot, fmt::format("{}.{}", counter.name, slot - counter.at));
}

Form shown_form(const Form& form) {
  Form out = form;
  out.switches.resize(static_cast<size_t>(form.visible));
  if (form.counters.empty()) return out;
  ExprMap<Expr> between;  // between its two steps a counter is what it has counted
  for (const Counter& c : form.counters) {
    between.emplace(sigma_symbol(form, c.below), 1.0);
    between.emplace(sigma_symbol(form, c.above), -1.0);
    if (!c.curve) continue;
    for (int k = 1; k < 4; ++k) between.emplace(table_symbol(c, TableValue::value, k), 0.0);
    const std::array call{c.phase, Expr::table(c.curve, c.name)};
    between.emplace(table_symbol(c, TableValue::value), Expr::raw(Op::table, call));
  }
  const auto change = [&](Expr& e) { e = substitute(e, between); };
  for (Expr& f : out.f) change(f);
  for (Switch& s : out.switches) change(s.surface);
  for (Gap& g : out.gaps) change(g.gap);
  for (Counter& c : out.counters) change(c.phase);
  for (Expr& d : out.definitions) change(d);
  std::erase_if(out.counters, [](const Counter& c) { return c.curve != nullptr; });
  return out;
}

void set_counter(const Counter& counter, double whole, std::span<double> values) {
  auto to = values.begin() + counter.at;
  *to = whole;
  if (!counter.curve) return;
  const Interpolant::Piece p = counter.curve->piece(whole);
  for (const double v : {p.from, p.to, p.origin}) *++to = v;
  for (const Interpolant::Polynomial* polynomial : {&p.value, &p.below, &p.above}) {
    for (const double c : *polynomial) *++to = c;
  }
}

int lower_step(const Counter& counter) {
  return counter.at + (counter.curve ? 1 + static_cast<int>(TableValue::from) : 0);
}

double count_at(const Counter& counter, double phase) {
  return counter.curve ? counter.curve->number_at(phase) : std::floor(phase);
}

double nearest_step(const Counter& counter, double phase) {
  return counter.curve ? counter.curve->nearest_break(phase) : std::round(phase);
}

namespace {

UseOrder order_of_parameters(const Model& model) {
  std::vector<std::vector<int>> uses(model.parameters.size());
  for (size_t i = 0; i < uses.size(); ++i) {
    if (model.parameters[i].value.is_number()) continue;
    for (const Expr& s : symbols_in(std::span(&model.parameters[i].value, 1))) {
      if (s.is_symbol(SymbolKind::parameter)) uses[i].push_back(s.symbol().index);
    }
  }
  return order_by_use(uses);
}

}  // namespace

std::vector<double> parameter_values(const Model& model, std::span<const GivenParameter> given) {
  std::vector<double> values(model.parameters.size());
  std::vector<bool> known(values.size(), false);
  for (const GivenParameter& g : given) {
    values[static_cast<size_t>(g.parameter)] = g.value;
    known[static_cast<size_t>(g.parameter)] = true;
  }
  for (const int i : order_of_parameters(model).sequence) {
    const size_t k = static_cast<size_t>(i);
    if (!known[k]) values[k] = constant_value(model.parameters[k].value, values);
  }
  return values;
}

std::vector<int> parameter_circle(const Model& model) { return order_of_parameters(model).circle; }

std::string label_of(const Model& model, const std::string& name) {
  const auto it =
      std::find_if(model.labels.begin(), model.labels.end(), [&](const Label& label) { return label.name == name; });
  return it == model.labels.end() ? name : it->text;
}

std::vector<double> initial_values(const Model& model, const std::vector<double>& parameters) {
  std::vector<double> values;
  for (const State& s : model.states) values.push_back(constant_value(s.initial, parameters));
  return values;
}

bool is_constant(const Expr& symbol) {
  return symbol.is_symbol(SymbolKind::parameter) || symbol.is_symbol(SymbolKind::constant) ||
         symbol.is_symbol(SymbolKind::table);
}

double constant_value(const Expr& e, const std::vector<double>& parameters) {
  return evaluate(e, [&](const Symbol& s) {
    return s.kind == SymbolKind::parameter ? parameters.at(static_cast<size_t>(s.index)) : std::nan("");
  });
}

namespace {

bool same_assignments(const std::vector<Assignment>& a, const std::vector<Assignment>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Assignment& x, const Assignment& y) { return x.state == y.state && x.value == y.value; });
}

template <class T, class Same>
bool same_list(const std::vector<T>& a, const std::vector<T>& b, Same same) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

}  // namespace

bool same_model(const Model& a, const Model& b) {
  const auto named = [](const auto& x, const auto& y) { return x.name == y.name && x.value == y.value; };
  return a.name == b.name && a.ref == b.ref && a.order == b.order &&
         same_list(a.balances, b.balances,
                   [](const Balance& x, const Balance& y) { return x.left == y.left && x.right == y.right; }) &&
         same_list(a.states, b.states,
                   [](const State& x, const State& y) {
                     return x.name == y.name && x.rate == y.rate && x.initial == y.initial;
                   }) &&
         same_list(a.parameters, b.parameters, named) && same_list(a.definitions, b.definitions, named) &&
         same_list(a.constraints, b.constraints,
                   [](const Constraint& x, const Constraint& y) {
                     return x.name == y.name && x.gap == y.gap && x.joint == y.joint && x.restitution == y.restitution &&
                            x.friction == y.friction && x.slip == y.slip && x.tangential == y.tangential;
                   }) &&
         same_list(a.jumps, b.jumps,
                   [](const Jump& x, const Jump& y) {
                     return x.name == y.name && x.on == y.on && x.direction == y.direction && x.every == y.every &&
                            x.phase == y.phase && x.when == y.when && same_assignments(x.set, y.set);
                   }) &&
         same_list(a.sections, b.sections,
                   [](const Section& x, const Section& y) {
                     return x.name == y.name && x.kind == y.kind && x.value == y.value && x.index == y.index &&
                            x.direction == y.direction && x.stop == y.stop;
                   }) &&
         same_list(a.tables, b.tables,
                   [](const PointTable& x, const PointTable& y) {
                     return x.name == y.name && *x.curve == *y.curve && x.file == y.file && x.columns == y.columns;
                   }) &&
         same_list(a.labels, b.labels,
                   [](const Label& x, const Label& y) { return x.name == y.name && x.text == y.text; }) &&
         a.run.from == b.run.from && a.run.until == b.run.until && a.run.tolerance == b.run.tolerance &&
         a.run.dt == b.run.dt && a.run.engine == b.run.engine &&
         same_list(a.form.f, b.form.f, [](const Expr& x, const Expr& y) { return x == y; }) &&
         same_list(a.form.switches, b.form.switches, [](const Switch& x, const Switch& y) {
           return x.name == y.name && x.surface == y.surface && x.hold == y.hold;
         });
}

}  // namespace saltus
