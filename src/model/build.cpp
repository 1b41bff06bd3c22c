#include "model/build.hpp"

#include <array>
#include <cmath>
#include <unordered_set>

#include <fmt/format.h>

#include "model/builder.hpp"
#include "model/lower.hpp"

namespace saltus {
namespace {

constexpr std::string_view parameter_hint =
    "a parameter is a number or a formula of other parameters; a formula of other names is a name with its own "
    "equation";

}  // namespace

UserFunction table_function(const PointTable& table) {
  const Expr x = Expr::symbol(SymbolKind::argument, 0, "x");
  return {{x}, Expr::raw(Op::table, std::array{x, Expr::table(table.curve, table.name)})};
}

std::string entry_name(const ParameterArray& array, int row, int column) {
  return array.matrix ? fmt::format("{}[{},{}]", array.name, row, column) : fmt::format("{}[{}]", array.name, row);
}

Model build_model(const ModelText& text) { return Builder(text).run(); }

Model Builder::run() {
  model_.name = text_.name;
  model_.ref = text_.ref;
  read_lines();
  add_tables();
  parse_parameters();
  collect_names();
  parse_functions(names_);
  parse_equations();
  order_definitions();
  parse_mechanics();
  check_balances();
  parse_initial();
  parse_constraints();
  parse_jumps();
  parse_sections();
  parse_run();
  read_labels();
  find_structural();
  find_unused();
  lower(model_);
  return std::move(model_);
}

void Builder::read_lines() {
  if (text_.equations.source) lines_ = split_equations(text_.equations);
  if (lines_.empty() && !text_.mechanics) {
    throw Error(ErrorKind::model, "there are no equations", text_.equations.source ? text_.equations.place(0) : Place{},
                "write at least one rate, for example x' = -x");
  }
}

/// Tables are functions of one argument.
void Builder::add_tables() {
  for (const TableText& t : text_.tables) {
    registry_.claim(t.name, "a table");
    for (Names* names : {&tables_, &names_}) names->add_function(t.name.text, table_function(t.table));
    model_.tables.push_back(t.table);
  }
}

/// Parameters come first: they say how many equations a line stands for.
void Builder::parse_parameters() {
  Names names;
  names.build_on(tables_);
  names.forbid("t", parameter_hint);
  for (const EquationLine& line : lines_) names.forbid(line.left.text, parameter_hint);
  parameters_ = text_.parameters;
  for (const ArrayText& array : text_.arrays) {
    Names::Range range{.first = {1, 1}, .last = {array.shape.rows, array.shape.columns}, .zeros = true};
    range.dimensions = array.shape.matrix ? 2 : 1;
    for (Names* all : {&names, &names_, &parameters_only_}) all->add_indexed(array.name.text, range);
    for (const ArrayText::Entry& e : array.entries)
      parameters_.push_back({{array.name.source, entry_name(array, e), {}}, e.value});
    model_.arrays.push_back(array.shape);
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const std::string& name = parameters_[i].name.text;
    names.add(name, Expr::symbol(SymbolKind::parameter, static_cast<int>(i), name), "a parameter");
  }
  names.explain(parameter_hint);
  for (const NamedText& p : parameters_)
    model_.parameters.push_back({p.name.text, parse(p.value, names), place_of(p.value)});
  if (const auto circle = parameter_circle(model_); !circle.empty()) {
    std::string names_in_circle;
    for (const int i : circle) names_in_circle += model_.parameters[static_cast<size_t>(i)].name + " -> ";
    const Parameter& first = model_.parameters[static_cast<size_t>(circle.front())];
    throw Error(ErrorKind::model,
                fmt::format("the parameter '{}' is given by itself: {}{}", first.name, names_in_circle, first.name),
                first.place, "break the circle: give one of them as a number");
  }
  parameter_values_ = parameter_values(model_);
  for (size_t i = 0; i < parameter_values_.size(); ++i) {
    const Parameter& p = model_.parameters[i];
    if (!std::isfinite(parameter_values_[i]))
      throw Error(ErrorKind::model, fmt::format("the parameter '{}' is {}", p.name, not_finite(parameter_values_[i])),
                  p.place, "give a finite number");
    names_.add(p.name, parameter_symbol(model_, static_cast<int>(i)), "a parameter");
    names_.add_whole(p.name, parameter_values_[i]);
  }
}

void Builder::parse_run() {
  if (text_.from) model_.run.from = finite_time(*text_.from);
  if (text_.until) model_.run.until = finite_time(*text_.until);
  model_.run.tolerance = text_.tolerance;
  model_.run.dt = text_.dt;
  model_.run.engine = text_.engine;
}

void Builder::read_labels() {
  for (const NamedText& label : text_.labels) {
    if (!names_.find(label.name.text)) {
      const std::string near = names_.suggestion(label.name.text);
      fail(label.name, fmt::format("a label for '{}', which is no name of the model", label.name.text),
           near.starts_with("did you mean") ? near
                                            : "labels belong to states, parameters, names with an equation and t");
    }
    model_.labels.push_back({label.name.text, label.value.text});
  }
}

/// Parameters that have been asked for as whole numbers, and those in their formulas.
void Builder::find_structural() {
  std::vector<bool> decides(model_.parameters.size(), false);
  std::vector<int> pending;
  for (size_t i = 0; i < decides.size(); ++i) {
    if (names_.whole_was_used(model_.parameters[i].name)) pending.push_back(static_cast<int>(i));
  }
  while (!pending.empty()) {
    const size_t i = static_cast<size_t>(pending.back());
    pending.pop_back();
    if (decides[i]) continue;
    decides[i] = true;
    model_.structural.push_back(static_cast<int>(i));
    for (const Expr& s : symbols_in(std::span(&model_.parameters[i].value, 1))) {
      if (s.is_symbol(SymbolKind::parameter)) pending.push_back(s.symbol().index);
    }
  }
}

/// Lists names that no formula uses. An indexed name counts as used if one index is.
void Builder::find_unused() {
  for (const State& s : model_.states) used_.push_back(s.rate);
  for (const Balance& b : model_.balances) used_.insert(used_.end(), {b.left, b.right});
  for (const Definition& d : model_.definitions) used_.push_back(d.value);
  for (const Parameter& p : model_.parameters) used_.push_back(p.value);
  if (model_.mechanics) {
    used_.push_back(model_.mechanics->lagrangian);
    if (model_.mechanics->dissipation) used_.push_back(*model_.mechanics->dissipation);
  }
  const auto stem = [](const std::string& name) { return name.substr(0, name.find('[')); };
  std::unordered_set<std::string> used;
  for (const Expr& s : symbols_in(used_)) used.insert(stem(s.symbol().name));
  for (const int i : model_.structural) used.insert(model_.parameters[static_cast<size_t>(i)].name);
  const auto note = [&](const std::string& name) {
    if (used.insert(stem(name)).second) model_.unused.push_back(stem(name));
  };
  for (const Parameter& p : model_.parameters) note(p.name);
  for (const Definition& d : model_.definitions) {
    if (!d.made) note(d.name);
  }
  for (const PointTable& t : model_.tables) note(t.name);
}

}  // namespace saltus
