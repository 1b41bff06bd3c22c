#include "model/build.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "expr/parse.hpp"
#include "expr/print.hpp"
#include "model/lower.hpp"

namespace saltus {
namespace {

struct Equation {
  bool is_rate = false;
  Fragment name;
  Fragment right;
};

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)); }

Fragment trimmed(const Fragment& f) {
  size_t begin = 0, end = f.text.size();
  while (begin < end && is_space(f.text[begin])) ++begin;
  while (end > begin && is_space(f.text[end - 1])) --end;
  return f.part(begin, end - begin);
}

Fragment without_comment(const Fragment& f) { return f.part(0, f.text.find('#')); }

/// Lines that start with an operator belong to the line above.
bool continues(std::string_view line) {
  if (std::string_view("+-*/^<>=),&|").find(line[0]) != std::string_view::npos) return true;
  const auto word = [&](std::string_view w) {
    return line.starts_with(w) && (line.size() == w.size() || !is_name_part(line[w.size()]));
  };
  return word("and") || word("or");
}

void append(Fragment& head, const Fragment& tail) {
  head.offsets.back() = head.offsets[head.offsets.size() - 2] + 1;
  head.text += ' ';
  head.text += tail.text;
  head.offsets.insert(head.offsets.end(), tail.offsets.begin(), tail.offsets.end());
}

std::vector<Fragment> logical_lines(const Fragment& block) {
  std::vector<Fragment> lines;
  for (size_t at = 0; at <= block.text.size();) {
    size_t end = block.text.find('\n', at);
    if (end == std::string::npos) end = block.text.size();
    const Fragment line = trimmed(without_comment(block.part(at, end - at)));
    at = end + 1;
    if (line.text.empty()) continue;
    if (!lines.empty() && continues(line.text)) {
      append(lines.back(), line);
    } else {
      lines.push_back(line);
    }
  }
  return lines;
}

[[noreturn]] void fail(const Fragment& at, std::string message, std::string hint) {
  throw Error(ErrorKind::model, std::move(message), at.place(0, std::max<size_t>(at.text.size(), 1)), std::move(hint));
}

size_t equal_sign(std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '=') continue;
    if (i > 0 && std::string_view("<>!=~").find(line[i - 1]) != std::string_view::npos) continue;
    if (i + 1 < line.size() && line[i + 1] == '=') continue;
    return i;
  }
  return std::string_view::npos;
}

Equation split_equation(const Fragment& line) {
  const size_t equals = equal_sign(line.text);
  if (equals == std::string::npos) {
    fail(line, "this line is not an equation",
         "write name' = rate or name = formula; a line that continues the one above starts with an operator");
  }
  Equation eq{.name = trimmed(line.part(0, equals)), .right = trimmed(line.part(equals + 1, std::string::npos))};
  if (eq.name.text.empty())
    fail(line.part(equals, 1), "an equation without a left side", "write name' = rate or name = formula");
  if (eq.right.text.empty()) fail(line.part(equals, 1), "nothing follows '='", "write the right side of the equation");
  std::string& name = eq.name.text;
  if (name.ends_with("''") || name.ends_with("\"")) {
    const std::string stem = name.substr(0, name.find_first_of("'\""));
    fail(eq.name, fmt::format("second derivative of '{}'", stem),
         fmt::format("give the velocity a name: {}' = v and v' = ...", stem));
  }
  if (name.ends_with('\'')) {
    eq.is_rate = true;
    eq.name = trimmed(eq.name.part(0, name.size() - 1));
  }
  if (!is_name(eq.name.text)) {
    const std::string& left = eq.name.text;
    std::string hint = "the left side is one name, with ' for a rate: x' = ...";
    if (left.size() > 4 && left.starts_with("d") && left.ends_with("/dt")) {
      const std::string state = left.substr(1, left.size() - 4);
      hint = fmt::format("the rate of {} is written {}'", state, state);
    }
    fail(eq.name, fmt::format("'{}' is not a name", left), hint);
  }
  if (is_reserved_name(eq.name.text)) {
    fail(eq.name, fmt::format("'{}' is a reserved name", eq.name.text),
         "t, pi, e, and, or, not and the functions keep their meaning");
  }
  return eq;
}

/// The line below is no equation: it continues this one if this one ends with an operator.
void check_line_end(const Fragment& line) {
  const char last = line.text.back();
  if (std::string_view("+-*/^<>").find(last) == std::string_view::npos) return;
  fail(line.part(line.text.size() - 1, 1), fmt::format("nothing follows '{}'", last),
       "to continue on the next line, start that line with the operator");
}

/// Every name of the model with the place where it was first given.
class Registry {
 public:
  void claim(const Fragment& name, std::string_view role) {
    if (!is_name(name.text)) {
      fail(name, fmt::format("'{}' is not a name", name.text), "a name is a letter followed by letters, digits and _");
    }
    if (is_reserved_name(name.text)) {
      fail(name, fmt::format("'{}' is a reserved name", name.text),
           "t, pi, e, and, or, not and the functions keep their meaning");
    }
    const auto [it, fresh] = first_.emplace(name.text, Entry{std::string(role), name.place(0, name.text.size())});
    if (fresh) return;
    Error error(ErrorKind::model, fmt::format("'{}' is already {}", name.text, it->second.role),
                name.place(0, name.text.size()), "rename one of them");
    error.also("first given here", it->second.place);
    throw error;
  }

 private:
  struct Entry {
    std::string role;
    Place place;
  };
  std::unordered_map<std::string, Entry> first_;
};

class Builder {
 public:
  explicit Builder(const ModelText& text) : text_(text) {}

  Model run() {
    model_.name = text_.name;
    model_.ref = text_.ref;
    for (const Fragment& line : logical_lines(text_.equations)) {
      if (!equations_.empty() && equal_sign(line.text) == std::string::npos) check_line_end(equations_.back().right);
      equations_.push_back(split_equation(line));
    }
    if (equations_.empty()) {
      throw Error(ErrorKind::model, "there are no equations",
                  text_.equations.source ? text_.equations.place(0) : Place{},
                  "write at least one rate, for example x' = -x");
    }
    collect_names();
    parse_parameters();
    parse_equations();
    find_circles();
    parse_initial();
    parse_constraints();
    parse_jumps();
    parse_sections();
    parse_run();
    lower(model_);
    return std::move(model_);
  }

 private:
  static constexpr std::string_view constant_hint =
      "a parameter is a number or a constant expression such as \"1/3\"; "
      "a formula of other names is a name with its own equation";
  static constexpr std::string_view only_parameters_hint = "numbers, constants and parameters can be used here";

  static Place place_of(const Fragment& f) { return f.place(0, f.text.size()); }

  std::vector<std::string> definition_names() const {
    std::vector<std::string> names;
    for (const Definition& d : model_.definitions) names.push_back(d.name);
    return names;
  }

  void collect_names() {
    for (const Equation& eq : equations_) {
      registry_.claim(eq.name, eq.is_rate ? "a state" : "a name with an equation");
      const int index = static_cast<int>(eq.is_rate ? model_.states.size() : model_.definitions.size());
      model_.order.emplace_back(eq.is_rate, index);
      if (eq.is_rate) {
        names_.add(eq.name.text, Expr::symbol(SymbolKind::state, index, eq.name.text), "a state");
        states_.emplace(eq.name.text, index);
        model_.states.push_back({.name = eq.name.text, .place = place_of(eq.right)});
      } else {
        names_.add(eq.name.text, Expr::symbol(SymbolKind::definition, index, eq.name.text), "a name with an equation");
        model_.definitions.push_back({.name = eq.name.text, .place = place_of(eq.right)});
      }
    }
    if (model_.states.empty()) {
      fail(equations_[0].name, "there is no state",
           fmt::format("a state has a rate: {}' = ...", equations_[0].name.text));
    }
    for (size_t i = 0; i < text_.parameters.size(); ++i) {
      const Fragment& name = text_.parameters[i].name;
      registry_.claim(name, "a parameter");
      const Expr symbol = Expr::symbol(SymbolKind::parameter, static_cast<int>(i), name.text);
      names_.add(name.text, symbol, "a parameter");
      parameters_only_.add(name.text, symbol, "a parameter");
    }
    for (size_t i = 0; i < text_.constraints.size(); ++i) {
      const Fragment& name = text_.constraints[i].name;
      registry_.claim(name, "a constraint");
      names_.add(name.text, Expr::symbol(SymbolKind::lambda, static_cast<int>(i), name.text), "a multiplier");
    }
    for (const auto& names : {model_.state_names(), definition_names()}) {
      for (const std::string& name : names) {
        constants_.forbid(name, constant_hint);
        parameters_only_.forbid(name, only_parameters_hint);
      }
    }
    for (const NamedText& p : text_.parameters) constants_.forbid(p.name.text, constant_hint);
    for (const ConstraintText& c : text_.constraints) parameters_only_.forbid(c.name.text, only_parameters_hint);
    parameters_only_.forbid("t", only_parameters_hint);
    parameters_only_.explain(only_parameters_hint);
    constants_.forbid("t", constant_hint);
    constants_.explain(constant_hint);
    without_multipliers_ = names_;
    for (const ConstraintText& c : text_.constraints) {
      without_multipliers_.forbid(c.name.text, "a multiplier acts in rates and gaps only");
    }
  }

  void parse_parameters() {
    for (const NamedText& p : text_.parameters) {
      const Expr value = parse(p.value, constants_);
      const double v = constant_value(value, {});
      if (!std::isfinite(v)) {
        throw Error(ErrorKind::model, fmt::format("the parameter '{}' is {}", p.name.text, not_finite(v)),
                    place_of(p.value), "give a finite number");
      }
      model_.parameters.push_back({p.name.text, value, place_of(p.value)});
    }
    parameter_values_ = parameter_values(model_);
  }

  void parse_equations() {
    for (size_t i = 0; i < equations_.size(); ++i) {
      const auto [is_rate, index] = model_.order[i];
      const Expr right = parse(equations_[i].right, names_);
      if (is_rate) {
        model_.states[static_cast<size_t>(index)].rate = right;
      } else {
        model_.definitions[static_cast<size_t>(index)].value = right;
      }
    }
  }

  /// Names defined by each other in a circle; the search keeps its path in a list, names may chain deeply.
  void find_circles() {
    const size_t n = model_.definitions.size();
    std::vector<std::vector<size_t>> uses(n);
    for (size_t i = 0; i < n; ++i) {
      for (const Expr& s : symbols_in(std::span(&model_.definitions[i].value, 1))) {
        if (s.is_symbol(SymbolKind::definition)) uses[i].push_back(static_cast<size_t>(s.symbol().index));
      }
    }
    std::vector<int> colour(n, 0);
    for (size_t root = 0; root < n; ++root) {
      std::vector<std::pair<size_t, size_t>> path;
      if (colour[root] == 0) path.emplace_back(root, 0);
      while (!path.empty()) {
        auto& [i, next] = path.back();
        colour[i] = 1;
        if (next == uses[i].size()) {
          colour[i] = 2;
          path.pop_back();
          continue;
        }
        const size_t j = uses[i][next++];
        if (colour[j] == 1) report_circle(path, j);
        if (colour[j] == 0) path.emplace_back(j, 0);
      }
    }
  }

  [[noreturn]] void report_circle(const std::vector<std::pair<size_t, size_t>>& path, size_t start) const {
    std::string circle;
    bool inside = false;
    for (const auto& [i, next] : path) {
      inside = inside || i == start;
      if (inside) circle += model_.definitions[i].name + " -> ";
    }
    circle += model_.definitions[start].name;
    throw Error(ErrorKind::model, fmt::format("'{}' is defined by itself: {}", model_.definitions[start].name, circle),
                model_.definitions[start].place, "break the circle; a quantity with memory is a state (with ')");
  }

  void parse_initial() {
    std::vector<bool> given(model_.states.size(), false);
    for (const NamedText& v : text_.initial) {
      const auto found = states_.find(v.name.text);
      if (found == states_.end()) {
        const auto names = model_.state_names();
        const std::string near = nearest_name(v.name.text, names);
        fail(v.name, fmt::format("an initial value for '{}', which is no state", v.name.text),
             !near.empty()      ? fmt::format("did you mean '{}'?", near)
             : names.size() < 9 ? fmt::format("the states are: {}", fmt::join(names, ", "))
                                : "states have a rate in the equations");
      }
      const size_t index = static_cast<size_t>(found->second);
      State& state = model_.states[index];
      state.initial = parse(v.value, parameters_only_);
      const double value = constant_value(state.initial, parameter_values_);
      if (!std::isfinite(value))
        fail(v.value, fmt::format("the initial value of '{}' is {}", state.name, not_finite(value)),
             "give a finite number");
      given[index] = true;
    }
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i]) continue;
      const auto eq = std::find_if(equations_.begin(), equations_.end(), [&](const Equation& e) {
        return e.is_rate && e.name.text == model_.states[i].name;
      });
      fail(eq->name, fmt::format("the state '{}' has no initial value", model_.states[i].name),
           fmt::format("add {} = 0 (or another number) below [initial]", model_.states[i].name));
    }
  }

  void parse_constraints() {
    for (const ConstraintText& c : text_.constraints) {
      Constraint constraint{.name = c.name.text, .gap = parse(c.gap, names_), .place = place_of(c.gap)};
      if (c.restitution) {
        constraint.restitution = parse(*c.restitution, without_multipliers_);
        constraint.restitution_place = place_of(*c.restitution);
      }
      model_.constraints.push_back(std::move(constraint));
    }
  }

  void parse_jumps() {
    for (const JumpText& j : text_.jumps) {
      events_.claim(j.name, "a jump");
      Jump jump{.name = j.name.text, .direction = j.direction, .place = place_of(j.on ? *j.on : *j.every)};
      if (j.on) jump.on = parse(*j.on, without_multipliers_);
      if (j.every) jump.every = positive_time(*j.every, "jump");
      if (j.phase) jump.phase = finite_time(*j.phase);
      if (j.when) jump.when = parse_condition(*j.when, without_multipliers_);
      for (const NamedText& s : j.set) {
        const auto found = states_.find(s.name.text);
        if (found == states_.end()) {
          const std::string near = nearest_name(s.name.text, model_.state_names());
          fail(s.name, fmt::format("a jump sets '{}', which is no state", s.name.text),
               near.empty() ? "a jump changes states; a discrete variable is a state with rate 0"
                            : fmt::format("did you mean '{}'?", near));
        }
        jump.set.push_back({found->second, parse(s.value, without_multipliers_)});
      }
      model_.jumps.push_back(std::move(jump));
    }
  }

  void parse_sections() {
    for (const SectionText& s : text_.sections) {
      events_.claim(s.name, "a section");
      Section section{
          .name = s.name.text, .direction = s.direction, .stop = s.stop, .place = place_of(s.every ? *s.every : *s.on)};
      if (s.every) {
        section.value = positive_time(*s.every, "section");
      } else {
        parse_on(section, *s.on);
      }
      model_.sections.push_back(std::move(section));
    }
  }

  /// The interval of a clock.
  Expr positive_time(const Fragment& every, std::string_view of) const {
    Expr value = parse(every, parameters_only_);
    const double interval = constant_value(value, parameter_values_);
    if (!(interval > 0) || !std::isfinite(interval)) {
      fail(every,
           fmt::format("the interval of the {} is {}", of,
                       std::isfinite(interval) ? print_number(interval) : std::string(not_finite(interval))),
           "give a positive time");
    }
    return value;
  }

  Expr finite_time(const Fragment& text) const {
    Expr value = parse(text, parameters_only_);
    const double v = constant_value(value, parameter_values_);
    if (!std::isfinite(v)) fail(text, fmt::format("the time is {}", not_finite(v)), "give a finite number");
    return value;
  }

  void parse_on(Section& section, const Fragment& on) {
    const std::string name = trimmed(on).text;
    for (size_t i = 0; i < model_.constraints.size(); ++i) {
      if (model_.constraints[i].name == name) {
        section.kind = Section::Kind::constraint;
        section.index = static_cast<int>(i);
        return;
      }
    }
    for (size_t i = 0; i < model_.jumps.size(); ++i) {
      if (model_.jumps[i].name == name) {
        section.kind = Section::Kind::jump;
        section.index = static_cast<int>(i);
        return;
      }
    }
    section.kind = Section::Kind::on;
    section.value = parse(on, without_multipliers_);
  }

  void parse_run() {
    if (text_.from) model_.run.from = finite_time(*text_.from);
    if (text_.until) model_.run.until = finite_time(*text_.until);
    model_.run.tolerance = text_.tolerance;
    model_.run.dt = text_.dt;
    model_.run.engine = text_.engine;
  }

  const ModelText& text_;
  Model model_;
  std::vector<Equation> equations_;
  Registry registry_, events_;
  Names names_, constants_, parameters_only_, without_multipliers_;
  std::unordered_map<std::string, int> states_;
  std::vector<double> parameter_values_;
};

}  // namespace

Model build_model(const ModelText& text) { return Builder(text).run(); }

ModelBuilder::ModelBuilder(std::string_view name) { text_.name = name; }

ModelBuilder& ModelBuilder::ref(std::string_view source) {
  text_.ref = source;
  return *this;
}

ModelBuilder& ModelBuilder::equations(std::string_view lines) {
  lines_ += lines;
  lines_ += '\n';
  return *this;
}

ModelBuilder& ModelBuilder::parameter(std::string_view name, double value) {
  return parameter(name, print_number(value));
}
ModelBuilder& ModelBuilder::parameter(std::string_view name, std::string_view constant) {
  text_.parameters.push_back({whole_text("parameter", name), whole_text("parameter", constant)});
  return *this;
}

ModelBuilder& ModelBuilder::initial(std::string_view state, double value) {
  return initial(state, print_number(value));
}
ModelBuilder& ModelBuilder::initial(std::string_view state, std::string_view formula) {
  text_.initial.push_back({whole_text("initial", state), whole_text("initial", formula)});
  return *this;
}

ModelBuilder& ModelBuilder::constraint(std::string_view name, std::string_view gap, std::string_view restitution) {
  ConstraintText c{.name = whole_text("constraint", name), .gap = whole_text("gap", gap)};
  if (!restitution.empty()) c.restitution = whole_text("restitution", restitution);
  text_.constraints.push_back(std::move(c));
  return *this;
}

ModelBuilder& ModelBuilder::jump(std::string_view name, std::string_view on, Direction direction,
                                 const std::vector<std::pair<std::string, std::string>>& set, std::string_view when) {
  JumpText j{.name = whole_text("jump", name), .on = whole_text("jump", on), .direction = direction};
  for (const auto& [state, value] : set) j.set.push_back({whole_text("jump", state), whole_text("jump", value)});
  if (!when.empty()) j.when = whole_text("when", when);
  text_.jumps.push_back(std::move(j));
  return *this;
}

ModelBuilder& ModelBuilder::jump_every(std::string_view name, std::string_view every,
                                       const std::vector<std::pair<std::string, std::string>>& set,
                                       std::string_view when, std::string_view phase) {
  JumpText j{.name = whole_text("jump", name), .every = whole_text("every", every)};
  for (const auto& [state, value] : set) j.set.push_back({whole_text("jump", state), whole_text("jump", value)});
  if (!when.empty()) j.when = whole_text("when", when);
  if (!phase.empty()) j.phase = whole_text("phase", phase);
  text_.jumps.push_back(std::move(j));
  return *this;
}

ModelBuilder& ModelBuilder::section_every(std::string_view name, std::string_view interval) {
  text_.sections.push_back({.name = whole_text("section", name), .every = whole_text("section", interval)});
  return *this;
}

ModelBuilder& ModelBuilder::section_on(std::string_view name, std::string_view formula, Direction direction,
                                       bool stop) {
  text_.sections.push_back({.name = whole_text("section", name),
                            .on = whole_text("section", formula),
                            .direction = direction,
                            .stop = stop});
  return *this;
}

Model ModelBuilder::build() const {
  ModelText text = text_;
  text.equations = whole_text("equations", lines_);
  return build_model(text);
}

}  // namespace saltus
