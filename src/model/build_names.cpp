// Which names a model has: states, names with an equation, functions, parameters, multipliers.
#include <algorithm>

#include <fmt/format.h>

#include "model/builder.hpp"

namespace saltus {
namespace {

std::string_view role_of(EquationLine::Kind kind) {
  return kind == EquationLine::rate       ? "a state"
         : kind == EquationLine::function ? "a function"
                                          : "a name with an equation";
}

void check_plain(const EquationLine& line) {
  if (line.left.text.find('[') != std::string::npos)
    fail(line.left, fmt::format("'{}' is not a name with an index", line.left.text), "write x[i], x[i-1] or x[3]");
}

}  // namespace

void Builder::collect_names() {
  find_coordinates();
  for (size_t i = 0; i < lines_.size(); ++i) collect_line(i);
  if (primes_in_formulas_) open_names();
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i].kind == EquationLine::balance) collect_balances(i);
  }
  collect_mechanics();
  sort_equations();
  for (const auto& [stem, family] : families_) check_family(stem, family);
  if (model_.states.empty() && lines_.empty())
    fail(text_.mechanics->lagrangian, "there is no coordinate", "the speed of a coordinate x is written x'");
  if (model_.states.empty()) {
    std::string_view name = lines_[0].left.text;
    for (const std::string_view dot : {"_dot", "dot"}) {
      if (name.size() > dot.size() && name.ends_with(dot)) {
        name.remove_suffix(dot.size());
        break;
      }
    }
    fail(lines_[0].left, "there is no state", fmt::format("a state has a rate: {}' = ...", name));
  }
  for (size_t i = 0; i < text_.parameters.size(); ++i) {
    const Fragment& name = text_.parameters[i].name;
    registry_.claim(name, "a parameter");
  }
  for (const ArrayText& array : text_.arrays) registry_.claim(array.name, "a parameter");
  for (size_t i = 0; i < parameters_.size(); ++i)
    parameters_only_.add(parameters_[i].name.text, parameter_symbol(model_, static_cast<int>(i)), "a parameter");
  for (const ConstraintText& c : text_.constraints) collect_constraint(c);
  name_energies();
  for (const EquationLine& line : lines_) {
    if (line.range) check_index_ranges(*line.range, names_);  // an index must not be called like something else
  }
  parameters_only_.forbid("t", only_parameters_hint);
  parameters_only_.explain(only_parameters_hint);
  parameters_only_.forbid_others(names_, only_parameters_hint);
  without_multipliers_.build_on(names_);
  for (const Constraint& c : model_.constraints) without_multipliers_.forbid(c.name, no_multiplier_hint);
}

void Builder::collect_line(size_t number) {
  const EquationLine& line = lines_[number];
  if (line.kind == EquationLine::balance) return;  // after all others: it may have unknowns of theirs
  if (line.kind == EquationLine::function) {
    if (line.range) fail(*line.range, "a function has no range", "remove 'for'; give the index as an argument");
    registry_.claim(line.left, role_of(line.kind));
    functions_.push_back(number);
    return;
  }
  if (line.range) return collect_range(number);
  if (const auto name = parse_indexed_name(line.left, names_)) return add_member(*name, number, {});
  check_plain(line);
  registry_.claim(line.left, role_of(line.kind));
  add_equation(line.left.text, number, {});
}

/// One equation for each index.
void Builder::collect_range(size_t number) {
  const EquationLine& line = lines_[number];
  lines_[number].indices = check_index_ranges(*line.range, names_);
  if (line.left.text.find('[') == std::string::npos)
    fail(line.left, fmt::format("'{}' has a range, but no index", line.left.text),
         fmt::format("write {}[{}]{} = ...", line.left.text, fmt::join(line.indices, ","),
                     std::string(static_cast<size_t>(line.primes), '\'')));
  size_t count = 0;
  for_each_index(line.range, [&](const Indices&) {  // before anything is made of them
    if (++count > most_equations) fail_too_many(number);
  });
  for_each_index(line.range, [&](const Indices& indices) {
    const auto name = parse_indexed_name(line.left, names_, indices);
    if (!name) check_plain(line);
    add_member(*name, number, values_of(indices));
  });
}

std::array<long, 2> Builder::values_of(const Indices& indices) {
  std::array<long, 2> values{};
  for (size_t k = 0; k < indices.size() && k < values.size(); ++k) values[k] = indices[k].second;
  return values;
}

void Builder::Family::widen(const std::array<long, 2>& index) {
  for (size_t k = 0; k < range.dimensions; ++k) {
    range.first[k] = std::min(range.first[k], index[k]);
    range.last[k] = std::max(range.last[k], index[k]);
  }
  ++count;
}

void Builder::add_member(const IndexedName& name, size_t number, const std::array<long, 2>& index) {
  const EquationLine& line = lines_[number];
  auto [it, fresh] = families_.try_emplace(name.stem.text,
                                           Family{line.kind, &line.left, {name.index, name.index, name.dimensions}, 0});
  Family& family = it->second;
  if (fresh) registry_.claim(name.stem, role_of(line.kind));
  if (family.kind != line.kind)
    fail(line.left, fmt::format("'{}' is {}, and elsewhere {}", name.text(), role_of(line.kind), role_of(family.kind)),
         "give all indices of a name a rate, or none");
  if (family.range.dimensions != name.dimensions)
    fail(line.left, fmt::format("'{}' has {} here", name.stem.text, name.dimensions == 1 ? "one index" : "two indices"),
         "give a name one index everywhere, or two");
  family.widen(name.index);
  const std::string text = name.text();
  registry_.enter(text, line.left, role_of(line.kind), "one equation for each index: ranges must not overlap");
  add_equation(text, number, index);
}

/// An equation that was forgotten.
void Builder::check_family(const std::string& stem, const Family& family) {
  const Names::Range& r = family.range;
  names_.add_indexed(stem, r);
  const long rows = r.last[0] - r.first[0] + 1, columns = r.dimensions == 1 ? 1 : r.last[1] - r.first[1] + 1;
  if (family.count == rows * columns) return;
  for (long i = r.first[0]; i <= r.last[0]; ++i) {
    for (long j = r.first[1]; j < r.first[1] + columns; ++j) {
      const std::string name = IndexedName{{{}, stem, {}}, {i, j}, r.dimensions}.text();
      if (names_.find(name)) continue;
      fail(*family.given, fmt::format("there is no equation for {}", name),
           r.dimensions == 1 ? fmt::format("{} has equations from {} to {}: let a range or a line of its own cover {}",
                                           stem, r.first[0], r.last[0], i)
                             : "let a range or a line of its own cover it");
    }
  }
}

void Builder::fail_too_many(size_t number) const {
  fail(lines_[number].left, fmt::format("these are more than {} equations", most_equations), "choose a smaller N");
}

void Builder::add_equation(const std::string& name, size_t number, const std::array<long, 2>& index) {
  if (equations_.size() >= most_equations) fail_too_many(number);
  if (lines_[number].kind == EquationLine::rate) return add_rate(name, number, index);
  const int i = static_cast<int>(model_.definitions.size());
  model_.order.push_back({WrittenLine::name, i});
  equations_.push_back({number, index});
  names_.add(name, Expr::symbol(SymbolKind::definition, i, name), "a name with an equation");
  model_.definitions.push_back({.name = name});
}

/// The rate of a state, or with two primes that of the speed of a coordinate.
void Builder::add_rate(const std::string& name, size_t number, const std::array<long, 2>& index) {
  const EquationLine& line = lines_[number];
  const bool coordinate = line.primes == 2;
  if (!coordinate && is_coordinate(name))
    fail(line.left, fmt::format("'{}' stands with two primes elsewhere, so {}' is its speed", name, name),
         fmt::format("leave this line out: {}' is known; or give the speed a name and write no {}''", name, name));
  add_state(name, coordinate, line.left);
  int state = states_.at(name);
  has_rate_[static_cast<size_t>(state)] = true;
  if (coordinate) state = model_.states[static_cast<size_t>(state)].speed;
  has_rate_[static_cast<size_t>(state)] = true;
  model_.order.push_back({WrittenLine::rate, state});
  equations_.push_back({number, index});
}

/// A state, with its speed if it is a coordinate; the names for them and for the unknown rate.
void Builder::add_state(const std::string& name, bool coordinate, const Fragment& given) {
  const int i = static_cast<int>(model_.states.size());
  const auto add = [&](const std::string& text, std::string_view role) {
    const int state = static_cast<int>(model_.states.size());
    names_.add(text, Expr::symbol(SymbolKind::state, state, text), role);
    states_.emplace(text, state);
    model_.states.push_back({.name = text});
    given_.push_back(&given);
    has_rate_.push_back(false);
  };
  add(name, "a state");
  if (coordinate) {
    add(name + "'", "a speed");
    State& position = model_.states[static_cast<size_t>(i)];
    position.speed = i + 1;
    position.rate = state_symbol(model_, i + 1);
    has_rate_[static_cast<size_t>(i)] = true;
  }
  if (!primes_in_formulas_) return;
  const int last = i + (coordinate ? 1 : 0);
  names_.add(model_.states[static_cast<size_t>(last)].name + "'", rate_symbol(model_, last), "a rate");
}

void Builder::collect_constraint(const ConstraintText& c) {
  const auto own = c.range ? std::nullopt : parse_indexed_name(c.name, names_);
  if (own) {
    registry_.enter(own->text(), c.name, "a constraint", "rename one of them");
  } else {
    registry_.claim(c.name, "a constraint");
  }
  Names::Range range{.first = {1, 1}, .last = {0, 0}};
  for_each_index(c.range, [&](const Indices& indices) {
    const std::array<long, 2> at = values_of(indices);
    if (range.last[0] < range.first[0]) range = {at, at, indices.size()};
    for (size_t k = 0; k < indices.size(); ++k) {
      range.first[k] = std::min(range.first[k], at[k]);
      range.last[k] = std::max(range.last[k], at[k]);
    }
    const std::string name = own ? own->text() : indexed_text(c.name.text, indices);
    const Expr symbol = Expr::symbol(SymbolKind::lambda, static_cast<int>(model_.constraints.size()), name);
    names_.add(name, symbol, "a multiplier");
    constraints_.emplace(name, static_cast<int>(model_.constraints.size()));
    model_.constraints.push_back({.name = name});
  });
  if (!c.range) return;
  names_.add_indexed(c.name.text, range);
}

std::string Builder::indexed_text(const std::string& stem, const Indices& indices) {
  return indices.empty() ? stem : IndexedName{{{}, stem, {}}, values_of(indices), indices.size()}.text();
}

}  // namespace saltus
