// Right sides of equations, functions, and formulas that may use some names only.
#include <algorithm>

#include <fmt/format.h>

#include "expr/letters.hpp"
#include "model/builder.hpp"
#include "model/order.hpp"

namespace saltus {

/// Functions may call each other, but not in a circle; those called come first.
void Builder::parse_functions(Names& all) {
  std::unordered_map<std::string, int> number;
  for (size_t i = 0; i < functions_.size(); ++i) number.emplace(lines_[functions_[i]].left.text, static_cast<int>(i));
  std::vector<std::vector<int>> uses(functions_.size());
  for (size_t i = 0; i < functions_.size(); ++i) {
    for (const std::string& name : called_functions(lines_[functions_[i]].right.text)) {
      if (const auto found = number.find(name); found != number.end()) uses[i].push_back(found->second);
    }
  }
  const UseOrder order = order_by_use(uses);
  if (!order.circle.empty()) {
    std::string circle;
    for (const int i : order.circle) circle += lines_[functions_[static_cast<size_t>(i)]].left.text + " -> ";
    const EquationLine& first = lines_[functions_[static_cast<size_t>(order.circle.front())]];
    fail(first.right, fmt::format("'{}' calls itself: {}{}", first.left.text, circle, first.left.text),
         "a function cannot be recursive");
  }
  for (const int i : order.sequence) parse_function(lines_[functions_[static_cast<size_t>(i)]], all);
}

void Builder::parse_function(const EquationLine& line, Names& all) {
  Names names;
  names.build_on(all);
  UserFunction function;
  for (const Fragment& a : line.arguments) {
    if (!is_name(a.text))
      fail(a.text.empty() ? line.left : a, fmt::format("'{}' is not the name of an argument", a.text),
           "write f(u) = ... or f(u, w) = ...");
    if (is_reserved_name(a.text))
      fail(a, fmt::format("'{}' cannot be an argument", a.text),
           a.text == "t" ? fmt::format("write {} = ...: names depend on time by themselves", line.left.text)
                         : std::string(reserved_hint));
    const Expr symbol = Expr::symbol(SymbolKind::argument, static_cast<int>(function.arguments.size()), a.text);
    if (std::any_of(function.arguments.begin(), function.arguments.end(),
                    [&](const Expr& other) { return other.symbol().name == a.text; }))
      fail(a, fmt::format("two arguments are called '{}'", a.text), "rename one of them");
    names.add(a.text, symbol, "an argument");
    function.arguments.push_back(symbol);
  }
  function.body = parse(line.right, names);
  used_.push_back(function.body);
  all.add_function(line.left.text, std::move(function));
}

void Builder::parse_equations() {
  Indices indices;
  size_t current = lines_.size();
  Place place;
  for (size_t i = 0; i < equations_.size(); ++i) {
    const EquationLine& line = lines_[equations_[i].line];
    if (equations_[i].line != current) {
      current = equations_[i].line;
      place = place_of(line.right);
      indices.resize(line.indices.size());
      for (size_t k = 0; k < indices.size(); ++k) indices[k].first = line.indices[k];
    }
    for (size_t k = 0; k < indices.size(); ++k) indices[k].second = equations_[i].index[k];
    const Expr right = parse(line.right, names_, indices);
    const auto [kind, index] = model_.order[i];
    switch (kind) {
      case WrittenLine::rate:
        model_.states[static_cast<size_t>(index)].rate = right;
        model_.states[static_cast<size_t>(index)].place = place;
        break;
      case WrittenLine::name:
        model_.definitions[static_cast<size_t>(index)].value = right;
        model_.definitions[static_cast<size_t>(index)].place = place;
        break;
      case WrittenLine::balance:
        model_.balances[static_cast<size_t>(index)] = {parse(line.left, names_, indices), right, place_of(line.left)};
        break;
    }
  }
}

/// Names defined by each other in a circle are a mistake; those that depend on parameters only may stand for numbers.
void Builder::order_definitions() {
  const size_t n = model_.definitions.size();
  std::vector<std::vector<int>> uses(n);
  std::vector<bool> constant(n, true);
  for (size_t i = 0; i < n; ++i) {
    constant[i] = !model_.definitions[i].made;
    for (const Expr& s : symbols_in(std::span(&model_.definitions[i].value, 1))) {
      if (s.is_symbol(SymbolKind::definition)) {
        uses[i].push_back(s.symbol().index);
      } else if (!is_constant(s)) {
        constant[i] = false;
      }
    }
  }
  const UseOrder order = order_by_use(uses);
  if (!order.circle.empty()) report_circle(order.circle);
  std::vector<double> size(n, 0);
  for (const int i : order.sequence) {
    const size_t k = static_cast<size_t>(i);
    for (const int j : uses[k]) constant[k] = constant[k] && constant[static_cast<size_t>(j)];
    if (!constant[k]) continue;
    const Definition& d = model_.definitions[k];
    for (const Expr& e : postorder(std::span(&d.value, 1)))
      size[k] += e.is_symbol(SymbolKind::definition) ? size[static_cast<size_t>(e.symbol().index)] : 1;
    // A definition that would be endless when written out stays a name.
    if (!(size[k] < 1e4)) {
      constant[k] = false;
      continue;
    }
    const Expr symbol = Expr::symbol(SymbolKind::definition, i, d.name);
    constants_.emplace(symbol, insert(d.value, constants_));
    parameters_only_.add(d.name, symbol, "a name with an equation");
  }
}

void Builder::report_circle(const std::vector<int>& circle) const {
  std::string names;
  for (const int i : circle) names += model_.definitions[static_cast<size_t>(i)].name + " -> ";
  const Definition& first = model_.definitions[static_cast<size_t>(circle.front())];
  throw Error(ErrorKind::model, fmt::format("'{}' is defined by itself: {}{}", first.name, names, first.name),
              first.place, "break the circle; a quantity with memory is a state (with ')");
}

/// A formula of parameters, also by way of names and functions.
Expr Builder::constant(const Fragment& text, const Indices& indices) {
  const Expr written = parse(text, parameters_only_, indices);
  bool named = false;
  for (const Expr& s : symbols_in(std::span(&written, 1))) {
    named = named || s.is_symbol(SymbolKind::definition);
    if (is_constant(s) || constants_.contains(s)) continue;
    // from the body of a function
    fail(text, fmt::format("this depends on '{}'", s.symbol().name), std::string(only_parameters_hint));
  }
  if (!written.is_number()) used_.push_back(written);
  return named ? insert(written, constants_) : written;
}

Expr Builder::formula(const Fragment& text, const Indices& indices) {
  const auto occurs = [&](const std::string& name) {
    for (size_t at = text.text.find(name); at != text.text.npos; at = text.text.find(name, at + 1)) {
      const size_t end = at + name.size();
      const bool begins = at == 0 || !is_name_part(text.text[at - 1]);
      if (begins && (end == text.text.size() || !is_name_part(text.text[end]))) return true;
    }
    return false;
  };
  const auto read = [&] { return without_multiplier(parse(text, without_multipliers_, indices), text); };
  std::vector<long> used;
  for (const auto& [name, value] : indices) {
    if (occurs(name)) used.push_back(value);
  }
  if (used.size() == indices.size()) return read();
  const auto key = std::pair(text.text, std::move(used));  // the same for all values of an index that it does not name
  const auto known = formulas_.find(key);
  return known != formulas_.end() ? known->second : formulas_.emplace(key, read()).first->second;
}

Expr Builder::without_multiplier(const Expr& e, const Fragment& text) {
  used_.push_back(e);
  if (contains_kind(e, SymbolKind::rate))
    fail(text, "this depends on a rate that the balances give", "use states, speeds and names without it here");
  if (contains_kind(e, SymbolKind::lambda)) fail(text, "this depends on a multiplier", std::string(no_multiplier_hint));
  return e;
}

}  // namespace saltus
