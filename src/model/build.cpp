#include "model/build.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "expr/interpolant.hpp"
#include "expr/letters.hpp"
#include "expr/parse.hpp"
#include "expr/print.hpp"
#include "model/lower.hpp"
#include "model/order.hpp"

namespace saltus {
namespace {

constexpr size_t most_equations = 4'000'000;

/// A line of the equations: a rate, a name for a formula, or a function; for one index or a range of them.
struct Line {
  enum Kind { rate, name, function } kind = name;
  Fragment left;   ///< without the prime, with its index if it has one
  Fragment right;  ///< without the range
  std::optional<Fragment> range{};
  std::string index{};                ///< the name of the range's index
  std::vector<Fragment> arguments{};  ///< of a function
};

/// What one line says for one index.
struct Equation {
  size_t line = 0;
  long index = 0;  ///< of the line's range
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
  return word("and") || word("or") || word("for");
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

constexpr std::string_view reserved_hint = "t, pi, e, and, or, not, for and the functions keep their meaning";

size_t equal_sign(std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '=') continue;
    if (i > 0 && std::string_view("<>!=~").find(line[i - 1]) != std::string_view::npos) continue;
    if (i + 1 < line.size() && line[i + 1] == '=') continue;
    return i;
  }
  return std::string_view::npos;
}

/// `f(u, w)` apart; false if this is no head of a function.
bool split_function(Line& line) {
  const std::string& left = line.left.text;
  const size_t open = left.find('(');
  if (open == left.npos || open == 0 || !left.ends_with(')') || left.find_first_of("()", open + 1) + 1 != left.size())
    return false;
  const Fragment head = trimmed(line.left.part(0, open)), inside = line.left.part(open + 1, left.size() - open - 2);
  if (!is_name(head.text)) return false;
  for (size_t at = 0; at <= inside.text.size();) {
    const size_t comma = std::min(inside.text.find(',', at), inside.text.size());
    line.arguments.push_back(trimmed(inside.part(at, comma - at)));
    at = comma + 1;
  }
  line.kind = Line::function;
  line.left = head;
  return true;
}

/// A single name stands on the left, perhaps with an index.
void check_left(const Line& line) {
  const std::string& left = line.left.text;
  const size_t open = left.find('[');
  const std::string stem = trimmed(line.left.part(0, open)).text;
  if (is_name(stem) && (open == left.npos || left.ends_with(']'))) {
    if (is_reserved_name(stem))
      fail(line.left, fmt::format("'{}' is a reserved name", stem), std::string(reserved_hint));
    return;
  }
  std::string hint = "the left side is one name, with ' for a rate: x' = ...";
  if (left.size() > 4 && left.starts_with("d") && left.ends_with("/dt")) {
    const std::string state = left.substr(1, left.size() - 4);
    hint = fmt::format("the rate of {} is written {}'", state, state);
  }
  fail(line.left, fmt::format("'{}' is not a name", left), hint);
}

Line split_equation(const Fragment& text) {
  const size_t equals = equal_sign(text.text);
  if (equals == std::string::npos) {
    fail(text, "this line is not an equation",
         "write name' = rate or name = formula; a line that continues the one above starts with an operator");
  }
  Line line{.left = trimmed(text.part(0, equals)), .right = trimmed(text.part(equals + 1, std::string::npos))};
  if (line.left.text.empty())
    fail(text.part(equals, 1), "an equation without a left side", "write name' = rate or name = formula");
  if (const size_t word = find_for(line.right.text); word != std::string::npos) {
    line.range = trimmed(line.right.part(word + 3, std::string::npos));
    if (line.range->text.empty()) line.range = line.right.part(word, 3);
    line.right = trimmed(line.right.part(0, word));
  }
  if (line.right.text.empty())
    fail(text.part(equals, 1), "nothing follows '='", "write the right side of the equation");
  const std::string& name = line.left.text;
  if (name.ends_with("''") || name.ends_with("\"")) {
    const std::string stem = name.substr(0, name.find_first_of("'\""));
    fail(line.left, fmt::format("second derivative of '{}'", stem),
         fmt::format("give the velocity a name: {}' = v and v' = ...", stem));
  }
  if (name.ends_with('\'')) {
    line.kind = Line::rate;
    line.left = trimmed(line.left.part(0, name.size() - 1));
  } else if (split_function(line)) {
    return line;
  }
  check_left(line);
  return line;
}

/// The line below is no equation: it continues this one if this one ends with an operator.
void check_line_end(const Fragment& line) {
  const char last = line.text.back();
  if (std::string_view("+-*/^<>").find(last) == std::string_view::npos) return;
  fail(line.part(line.text.size() - 1, 1), fmt::format("nothing follows '{}'", last),
       "to continue on the next line, start that line with the operator");
}

/// Every name of one kind with the place where it was first given.
class Registry {
 public:
  void claim(const Fragment& name, std::string_view role) {
    if (!is_name(name.text)) {
      fail(name, fmt::format("'{}' is not a name", name.text), "a name is a letter followed by letters, digits and _");
    }
    if (is_reserved_name(name.text))
      fail(name, fmt::format("'{}' is a reserved name", name.text), std::string(reserved_hint));
    enter(name.text, name, role, "rename one of them");
  }

  /// A name that is known to be one; `text` is what `given` stands for: x[3] for x[i].
  void enter(const std::string& text, const Fragment& given, std::string_view role, std::string_view hint) {
    const auto [it, fresh] =
        first_.emplace(text, Entry{role, given.source.get(), given.offsets.front(), given.text.size()});
    if (fresh) return;
    Error error(ErrorKind::model, fmt::format("'{}' is already {}", text, it->second.role),
                given.place(0, given.text.size()), std::string(hint));
    error.also("first given here", it->second.source->place(it->second.offset, it->second.length));
    throw error;
  }

 private:
  struct Entry {
    std::string_view role;
    const Source* source;
    size_t offset, length;
  };
  std::unordered_map<std::string, Entry> first_;
};

class Builder {
 public:
  explicit Builder(const ModelText& text) : text_(text) {}

  Model run() {
    model_.name = text_.name;
    model_.ref = text_.ref;
    split_lines();
    add_tables();
    parse_parameters();
    collect_names();
    parse_functions();
    parse_equations();
    order_definitions();
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

 private:
  static constexpr std::string_view parameter_hint =
      "a parameter is a number or a formula of other parameters; a formula of other names is a name with its own "
      "equation";
  static constexpr std::string_view only_parameters_hint =
      "numbers, parameters and names that depend on parameters only can be used here";
  static constexpr std::string_view no_multiplier_hint = "a multiplier acts in rates and gaps only";

  static Place place_of(const Fragment& f) { return f.place(0, f.text.size()); }

  // ---- lines and names ---------------------------------------------------------------------------------------------

  void split_lines() {
    for (const Fragment& line : logical_lines(text_.equations)) {
      if (!lines_.empty() && equal_sign(line.text) == std::string::npos) check_line_end(lines_.back().right);
      lines_.push_back(split_equation(line));
    }
    if (lines_.empty()) {
      throw Error(ErrorKind::model, "there are no equations",
                  text_.equations.source ? text_.equations.place(0) : Place{},
                  "write at least one rate, for example x' = -x");
    }
  }

  /// Tables are functions of one argument.
  void add_tables() {
    for (const TableText& t : text_.tables) {
      registry_.claim(t.name, "a table");
      for (Names* names : {&tables_, &names_}) names->add_function(t.name.text, table_function(t.table));
      model_.tables.push_back(t.table);
    }
  }

  /// Parameters come first: they say how many equations a line stands for.
  void parse_parameters() {
    Names names;
    names.build_on(tables_);
    names.forbid("t", parameter_hint);
    for (const Line& line : lines_) names.forbid(line.left.text, parameter_hint);
    for (size_t i = 0; i < text_.parameters.size(); ++i) {
      const std::string& name = text_.parameters[i].name.text;
      names.add(name, Expr::symbol(SymbolKind::parameter, static_cast<int>(i), name), "a parameter");
    }
    names.explain(parameter_hint);
    for (const NamedText& p : text_.parameters)
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

  /// Parameters that have been asked for as whole numbers, and those in their formulas.
  void find_structural() {
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

  /// The indices that occur with a name, for which there must be no gap.
  struct Family {
    Line::Kind kind = Line::name;
    const Fragment* given = nullptr;
    long first = 0, last = 0, count = 0;
  };

  static std::string_view role_of(Line::Kind kind) {
    return kind == Line::rate ? "a state" : kind == Line::function ? "a function" : "a name with an equation";
  }

  void collect_names() {
    for (size_t i = 0; i < lines_.size(); ++i) collect_line(i);
    for (const auto& [stem, family] : families_) check_family(stem, family);
    if (model_.states.empty()) {
      fail(lines_[0].left, "there is no state", fmt::format("a state has a rate: {}' = ...", lines_[0].left.text));
    }
    for (size_t i = 0; i < text_.parameters.size(); ++i) {
      const Fragment& name = text_.parameters[i].name;
      registry_.claim(name, "a parameter");
      parameters_only_.add(name.text, parameter_symbol(model_, static_cast<int>(i)), "a parameter");
    }
    for (const ConstraintText& c : text_.constraints) collect_constraint(c);
    for (const Line& line : lines_) {
      if (line.range) parse_index_range(*line.range, names_);  // an index must not be called like something else
    }
    parameters_only_.forbid("t", only_parameters_hint);
    parameters_only_.explain(only_parameters_hint);
    parameters_only_.forbid_others(names_, only_parameters_hint);
    without_multipliers_.build_on(names_);
    for (const Constraint& c : model_.constraints) without_multipliers_.forbid(c.name, no_multiplier_hint);
  }

  void collect_line(size_t number) {
    const Line& line = lines_[number];
    if (line.kind == Line::function) {
      if (line.range) fail(*line.range, "a function has no range", "remove 'for'; give the index as an argument");
      registry_.claim(line.left, role_of(line.kind));
      functions_.push_back(number);
      return;
    }
    if (!line.range) {
      if (const auto name = parse_indexed_name(line.left, names_)) {
        add_member(*name, number, 0);
      } else {
        check_plain(line);
        registry_.claim(line.left, role_of(line.kind));
        add_equation(line.left.text, number, 0);
      }
      return;
    }
    const IndexRange range = parse_index_range(*line.range, names_);
    lines_[number].index = range.name;
    if (line.left.text.find('[') == std::string::npos)
      fail(line.left, fmt::format("'{}' has a range, but no index", line.left.text),
           fmt::format("write {}[{}]{} = ...", line.left.text, range.name, line.kind == Line::rate ? "'" : ""));
    Indices indices{{range.name, 0}};
    for (long k = range.first; k <= range.last; ++k) {
      indices[0].second = k;
      const auto name = parse_indexed_name(line.left, names_, indices);
      if (!name) check_plain(line);
      add_member(*name, number, k);
    }
  }

  void check_plain(const Line& line) {
    if (line.left.text.find('[') != std::string::npos)
      fail(line.left, fmt::format("'{}' is not a name with an index", line.left.text), "write x[i], x[i-1] or x[3]");
  }

  void add_member(const IndexedName& name, size_t number, long index) {
    const Line& line = lines_[number];
    auto [it, fresh] = families_.try_emplace(name.stem.text, Family{line.kind, &line.left, name.index, name.index, 0});
    Family& family = it->second;
    if (fresh) registry_.claim(name.stem, role_of(line.kind));
    if (family.kind != line.kind)
      fail(line.left,
           fmt::format("'{}' is {}, and elsewhere {}", name.text(), role_of(line.kind), role_of(family.kind)),
           "give all indices of a name a rate, or none");
    family.first = std::min(family.first, name.index);
    family.last = std::max(family.last, name.index);
    ++family.count;
    const std::string text = name.text();
    registry_.enter(text, line.left, role_of(line.kind), "one equation for each index: ranges must not overlap");
    add_equation(text, number, index);
  }

  /// An equation that was forgotten.
  void check_family(const std::string& stem, const Family& family) {
    names_.add_indexed(stem, family.first, family.last);
    if (family.count == family.last - family.first + 1) return;
    for (long k = family.first; k <= family.last; ++k) {
      if (names_.find(fmt::format("{}[{}]", stem, k))) continue;
      fail(*family.given, fmt::format("there is no equation for {}[{}]", stem, k),
           fmt::format("{} has equations from {} to {}: let a range or a line of its own cover {}", stem, family.first,
                       family.last, k));
    }
  }

  void add_equation(const std::string& name, size_t number, long index) {
    if (equations_.size() >= most_equations)
      fail(lines_[number].left, fmt::format("these are more than {} equations", most_equations), "choose a smaller N");
    const bool is_rate = lines_[number].kind == Line::rate;
    const int i = static_cast<int>(is_rate ? model_.states.size() : model_.definitions.size());
    model_.order.emplace_back(is_rate, i);
    equations_.push_back({number, index});
    if (is_rate) {
      names_.add(name, Expr::symbol(SymbolKind::state, i, name), "a state");
      states_.emplace(name, i);
      model_.states.push_back({.name = name});
    } else {
      names_.add(name, Expr::symbol(SymbolKind::definition, i, name), "a name with an equation");
      model_.definitions.push_back({.name = name});
    }
  }

  void collect_constraint(const ConstraintText& c) {
    const auto own = c.range ? std::nullopt : parse_indexed_name(c.name, names_);
    if (own) {
      registry_.enter(own->text(), c.name, "a constraint", "rename one of them");
    } else {
      registry_.claim(c.name, "a constraint");
    }
    for_each_index(c.range, [&](const Indices& indices) {
      const std::string name = own ? own->text() : indexed_text(c.name.text, indices);
      const Expr symbol = Expr::symbol(SymbolKind::lambda, static_cast<int>(model_.constraints.size()), name);
      names_.add(name, symbol, "a multiplier");
      constraints_.emplace(name, static_cast<int>(model_.constraints.size()));
      model_.constraints.push_back({.name = name});
    });
    if (!c.range) return;
    const IndexRange range = parse_index_range(*c.range, names_);
    names_.add_indexed(c.name.text, range.first, range.last);
  }

  static std::string indexed_text(const std::string& stem, const Indices& indices) {
    return indices.empty() ? stem : fmt::format("{}[{}]", stem, indices[0].second);
  }

  /// Once without an index, or once for each of a range.
  template <class Do>
  void for_each_index(const std::optional<Fragment>& text, Do action) {
    if (!text) return action(Indices{});
    const IndexRange range = parse_index_range(*text, names_);
    Indices indices{{range.name, 0}};
    for (long k = range.first; k <= range.last; ++k) {
      indices[0].second = k;
      action(indices);
    }
  }

  // ---- formulas ----------------------------------------------------------------------------------------------------

  /// Functions may call each other, but not in a circle; those called come first.
  void parse_functions() {
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
      const Line& first = lines_[functions_[static_cast<size_t>(order.circle.front())]];
      fail(first.right, fmt::format("'{}' calls itself: {}{}", first.left.text, circle, first.left.text),
           "a function cannot be recursive");
    }
    for (const int i : order.sequence) parse_function(lines_[functions_[static_cast<size_t>(i)]]);
  }

  void parse_function(const Line& line) {
    Names names;
    names.build_on(names_);
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
    names_.add_function(line.left.text, std::move(function));
  }

  void parse_equations() {
    Indices indices(1);
    const Indices none;
    size_t current = lines_.size();
    Place place;
    for (size_t i = 0; i < equations_.size(); ++i) {
      const Line& line = lines_[equations_[i].line];
      if (equations_[i].line != current) {
        current = equations_[i].line;
        place = place_of(line.right);
        indices[0].first = line.index;
      }
      indices[0].second = equations_[i].index;
      const Expr right = parse(line.right, names_, line.range ? indices : none);
      const auto [is_rate, index] = model_.order[i];
      if (is_rate) {
        model_.states[static_cast<size_t>(index)].rate = right;
        model_.states[static_cast<size_t>(index)].place = place;
      } else {
        model_.definitions[static_cast<size_t>(index)].value = right;
        model_.definitions[static_cast<size_t>(index)].place = place;
      }
    }
  }

  /// Names defined by each other in a circle are a mistake; those that depend on parameters only may stand for numbers.
  void order_definitions() {
    const size_t n = model_.definitions.size();
    std::vector<std::vector<int>> uses(n);
    std::vector<bool> constant(n, true);
    for (size_t i = 0; i < n; ++i) {
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
      // What would be endless when written out stays a name.
      if (!(size[k] < 1e4)) {
        constant[k] = false;
        continue;
      }
      const Expr symbol = Expr::symbol(SymbolKind::definition, i, d.name);
      constants_.emplace(symbol, insert(d.value, constants_));
      parameters_only_.add(d.name, symbol, "a name with an equation");
    }
  }

  [[noreturn]] void report_circle(const std::vector<int>& circle) const {
    std::string names;
    for (const int i : circle) names += model_.definitions[static_cast<size_t>(i)].name + " -> ";
    const Definition& first = model_.definitions[static_cast<size_t>(circle.front())];
    throw Error(ErrorKind::model, fmt::format("'{}' is defined by itself: {}{}", first.name, names, first.name),
                first.place, "break the circle; a quantity with memory is a state (with ')");
  }

  /// A formula of parameters, also by way of names and functions.
  Expr constant(const Fragment& text, const Indices& indices = {}) {
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

  Expr without_multiplier(const Expr& e, const Fragment& text) {
    used_.push_back(e);
    if (contains_kind(e, SymbolKind::lambda))
      fail(text, "this depends on a multiplier", std::string(no_multiplier_hint));
    return e;
  }

  Expr formula(const Fragment& text, const Indices& indices) {
    return without_multiplier(parse(text, without_multipliers_, indices), text);
  }

  // ---- initial values ----------------------------------------------------------------------------------------------

  /// The states that a key means: q, x[3], or all of x[i]; with the index for the formula beside it.
  template <class Do>
  void for_each_state(const Fragment& key, const Indices& indices, bool single, std::string_view what, Do action) {
    const size_t open = key.text.find('['), close = key.text.find(']');
    if (open != std::string::npos && close + 1 == key.text.size()) {
      const Fragment stem = trimmed(key.part(0, open)), inside = trimmed(key.part(open + 1, close - open - 1));
      const Names::Range* range = names_.find_indexed(stem.text);
      const bool known =
          std::any_of(indices.begin(), indices.end(), [&](const auto& index) { return index.first == inside.text; });
      if (range && is_name(inside.text) && !known && !names_.find(inside.text)) {
        if (single) return;
        Indices all = indices;
        all.emplace_back(inside.text, 0);
        for (long k = range->first; k <= range->last; ++k) {
          all.back().second = k;
          action(state_of(key, fmt::format("{}[{}]", stem.text, k), what), all);
        }
        return;
      }
      if (single) {
        const auto name = parse_indexed_name(key, names_, indices);
        action(state_of(key, name ? name->text() : key.text, what), indices);
      }
      return;
    }
    if (single) action(state_of(key, key.text, what), indices);
  }

  size_t state_of(const Fragment& given, const std::string& name, std::string_view what) const {
    const auto found = states_.find(name);
    if (found != states_.end()) return static_cast<size_t>(found->second);
    const auto names = model_.state_names();
    const std::string near = nearest_name(name, names);
    const std::string again = !near.empty() ? fmt::format("did you mean '{}'?", near) : "";
    if (what == "set")
      fail(given, fmt::format("a jump sets '{}', which is no state", name),
           !again.empty() ? again : "a jump changes states; a discrete variable is a state with rate 0");
    const Names::Range* range = names_.find_indexed(name.substr(0, name.find('[')));
    fail(given, fmt::format("an initial value for '{}', which is no state", name),
         range
             ? fmt::format("the indices of {} are {} to {}", name.substr(0, name.find('[')), range->first, range->last)
         : !again.empty()   ? again
         : names.size() < 9 ? fmt::format("the states are: {}", fmt::join(names, ", "))
                            : "states have a rate in the equations");
  }

  void parse_initial() {
    std::vector<bool> given(model_.states.size(), false);
    for (const bool single : {false, true}) {  // a single index wins over all
      for (const NamedText& v : text_.initial) {
        for_each_state(v.name, {}, single, "initial", [&](size_t i, const Indices& indices) {
          State& state = model_.states[i];
          state.initial = constant(v.value, indices);
          const double value = constant_value(state.initial, parameter_values_);
          if (!std::isfinite(value))
            fail(v.value, fmt::format("the initial value of '{}' is {}", state.name, not_finite(value)),
                 "give a finite number");
          given[i] = true;
        });
      }
    }
    for (size_t e = 0; e < equations_.size(); ++e) {
      const auto [is_rate, i] = model_.order[e];
      if (!is_rate || given[static_cast<size_t>(i)]) continue;
      const std::string& name = model_.states[static_cast<size_t>(i)].name;
      const size_t open = name.find('[');
      fail(lines_[equations_[e].line].left, fmt::format("the state '{}' has no initial value", name),
           open == name.npos ? fmt::format("add {} = 0 (or another number) below [initial]", name)
                             : fmt::format("add \"{}[i]\" = 0 (for all), or \"{}\" = 0, below [initial]",
                                           name.substr(0, open), name));
    }
  }

  // ---- constraints, jumps, sections --------------------------------------------------------------------------------

  void parse_constraints() {
    size_t next = 0;
    for (const ConstraintText& c : text_.constraints) {
      for_each_index(c.range, [&](const Indices& indices) {
        Constraint& constraint = model_.constraints[next++];
        constraint.gap = parse(c.gap, names_, indices);
        constraint.place = place_of(c.gap);
        used_.push_back(constraint.gap);
        if (!c.restitution) return;
        constraint.restitution = formula(*c.restitution, indices);
        constraint.restitution_place = place_of(*c.restitution);
      });
    }
  }

  void parse_jumps() {
    for (const JumpText& j : text_.jumps) {
      claim_event(jumps_, j.name, "a jump");
      for_each_index(j.range, [&](const Indices& indices) { parse_jump(j, indices); });
    }
  }

  void parse_jump(const JumpText& j, const Indices& indices) {
    Jump jump{.name = indexed_text(j.name.text, indices),
              .direction = j.direction,
              .place = place_of(j.on ? *j.on : *j.every)};
    if (j.on) jump.on = formula(*j.on, indices);
    if (j.every) jump.every = positive_time(*j.every, "jump", indices);
    if (j.phase) jump.phase = finite_time(*j.phase, indices);
    if (j.when) jump.when = without_multiplier(parse_condition(*j.when, without_multipliers_, indices), *j.when);
    std::unordered_map<size_t, size_t> place;  // of a state among those set
    for (const bool single : {false, true}) {
      for (const NamedText& s : j.set) {
        for_each_state(s.name, indices, single, "set", [&](size_t state, const Indices& all) {
          const auto [it, fresh] = place.try_emplace(state, jump.set.size());
          if (fresh) jump.set.push_back({.state = static_cast<int>(state)});
          jump.set[it->second].value = formula(s.value, all);
        });
      }
    }
    jump_index_.emplace(jump.name, static_cast<int>(model_.jumps.size()));
    model_.jumps.push_back(std::move(jump));
  }

  /// Jumps and sections have names of their own: they may be called like a function, a state or each other.
  void claim_event(Registry& registry, const Fragment& name, std::string_view role) {
    if (!is_name(name.text) && !parse_indexed_name(name, names_))
      fail(name, fmt::format("'{}' is not a name", name.text), "a name is a letter followed by letters, digits and _");
    registry.enter(name.text, name, role, "rename one of them");
  }

  void parse_sections() {
    for (const SectionText& s : text_.sections) {
      claim_event(sections_, s.name, "a section");
      for_each_index(s.range, [&](const Indices& indices) {
        Section section{.name = indexed_text(s.name.text, indices),
                        .direction = s.direction,
                        .stop = s.stop,
                        .place = place_of(s.every ? *s.every : *s.on)};
        if (s.every) {
          section.value = positive_time(*s.every, "section", indices);
        } else {
          parse_on(section, *s.on, indices);
        }
        model_.sections.push_back(std::move(section));
      });
    }
  }

  /// The interval of a clock.
  Expr positive_time(const Fragment& every, std::string_view of, const Indices& indices) {
    Expr value = constant(every, indices);
    const double interval = constant_value(value, parameter_values_);
    if (!(interval > 0) || !std::isfinite(interval)) {
      fail(every,
           fmt::format("the interval of the {} is {}", of,
                       std::isfinite(interval) ? print_number(interval) : std::string(not_finite(interval))),
           "give a positive time");
    }
    return value;
  }

  Expr finite_time(const Fragment& text, const Indices& indices = {}) {
    Expr value = constant(text, indices);
    const double v = constant_value(value, parameter_values_);
    if (!std::isfinite(v)) fail(text, fmt::format("the time is {}", not_finite(v)), "give a finite number");
    return value;
  }

  void parse_on(Section& section, const Fragment& on, const Indices& indices) {
    const Fragment text = trimmed(on);
    std::string name = text.text;
    if (const auto indexed = parse_indexed_name(text, names_, indices)) name = indexed->text();
    if (const auto found = constraints_.find(name); found != constraints_.end()) {
      section.kind = Section::Kind::constraint;
      section.index = found->second;
    } else if (const auto jump = jump_index_.find(name); jump != jump_index_.end()) {
      section.kind = Section::Kind::jump;
      section.index = jump->second;
    } else {
      section.kind = Section::Kind::on;
      section.value = formula(on, indices);
    }
  }

  void parse_run() {
    if (text_.from) model_.run.from = finite_time(*text_.from);
    if (text_.until) model_.run.until = finite_time(*text_.until);
    model_.run.tolerance = text_.tolerance;
    model_.run.dt = text_.dt;
    model_.run.engine = text_.engine;
  }

  // ---- what is said about names ------------------------------------------------------------------------------------

  void read_labels() {
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

  /// Of an indexed name, it is enough that one index is used.
  void find_unused() {
    for (const State& s : model_.states) used_.push_back(s.rate);
    for (const Definition& d : model_.definitions) used_.push_back(d.value);
    for (const Parameter& p : model_.parameters) used_.push_back(p.value);
    const auto stem = [](const std::string& name) { return name.substr(0, name.find('[')); };
    std::unordered_set<std::string> used;
    for (const Expr& s : symbols_in(used_)) used.insert(stem(s.symbol().name));
    for (const int i : model_.structural) used.insert(model_.parameters[static_cast<size_t>(i)].name);
    const auto note = [&](const std::string& name) {
      if (used.insert(stem(name)).second) model_.unused.push_back(stem(name));
    };
    for (const Parameter& p : model_.parameters) note(p.name);
    for (const Definition& d : model_.definitions) note(d.name);
    for (const PointTable& t : model_.tables) note(t.name);
  }

  const ModelText& text_;
  Model model_;
  std::vector<Line> lines_;
  std::vector<Equation> equations_;  ///< one per entry of model_.order
  std::vector<size_t> functions_;    ///< their lines
  std::unordered_map<std::string, Family> families_;
  Registry registry_, jumps_, sections_;
  Names names_, tables_, parameters_only_, without_multipliers_;
  std::unordered_map<std::string, int> states_, constraints_, jump_index_;
  std::vector<double> parameter_values_;
  ExprMap<Expr> constants_;  ///< names that depend on parameters only, with their formulas
  std::vector<Expr> used_;   ///< formulas whose names count as used
};

}  // namespace

UserFunction table_function(const PointTable& table) {
  const Expr x = Expr::symbol(SymbolKind::argument, 0, "x");
  return {{x}, Expr::raw(Op::table, std::array{x, Expr::table(table.curve, table.name)})};
}

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

ModelBuilder& ModelBuilder::table(std::string_view name, Interpolant curve) {
  PointTable table{.name = std::string(name), .curve = std::make_shared<const Interpolant>(std::move(curve))};
  text_.tables.push_back({whole_text("table", name), std::move(table)});
  return *this;
}

Model ModelBuilder::build() const {
  ModelText text = text_;
  text.equations = whole_text("equations", lines_);
  return build_model(text);
}

}  // namespace saltus
