#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "expr/print.hpp"
#include "model/describe.hpp"
#include "model/period.hpp"
#include "out/text.hpp"
#include "report/model_page.hpp"

namespace saltus {
namespace {

constexpr size_t page_width = 96;
constexpr size_t label_width = 13;
constexpr size_t most_items = 12;   ///< longer lists are cut
constexpr size_t most_blocks = 20;  ///< of switches, constraints and jumps, which take several lines each

std::string more(size_t hidden) { return fmt::format("... {} more", hidden); }

/// How many items of a list are shown: all, or enough to see what the rest is like.
size_t shown_of(size_t count, size_t most = most_items) { return count <= most ? count : most / 2; }

/// Lines no longer than the page, broken before the outermost + or - that fits; reads as continuation lines do.
std::string folded(const std::string& text, size_t indent) {
  std::string out;
  std::string_view rest = text;
  for (size_t room = page_width - indent; rest.size() > room;) {
    size_t best = 0;
    int depth = 0, best_depth = 1000;
    for (size_t i = 0; i + 2 < rest.size() && i <= room; ++i) {
      if (rest[i] == '(') ++depth;
      if (rest[i] == ')') --depth;
      const bool operation = rest[i] == ' ' && (rest[i + 1] == '+' || rest[i + 1] == '-') && rest[i + 2] == ' ';
      if (operation && i > room / 3 && depth <= best_depth) {
        best = i;
        best_depth = depth;
      }
    }
    if (best == 0) break;
    out += fmt::format("{}\n{}", rest.substr(0, best), std::string(indent, ' '));
    rest.remove_prefix(best + 1);
  }
  return out + std::string(rest);
}

/// Items separated by commas, broken between items.
std::string listed(const std::vector<std::string>& items, size_t indent) {
  std::string out;
  size_t column = indent;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? "," : "");
    if (i > 0 && column + 1 + item.size() > page_width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (i > 0) {
      out += ' ';
      ++column;
    }
    out += item;
    column += item.size();
  }
  return out;
}

/// A formula with its number, where the formula is not that number already.
std::string with_value(const Expr& e, const std::vector<double>& parameters) {
  if (e.is_number()) return print(e);
  return fmt::format("{} = {:.6g}", print(e), constant_value(e, parameters));
}

std::string condition(const Expr& on, Direction direction) {
  switch (direction) {
    case Direction::rising: return fmt::format("{} rises through 0", print(on));
    case Direction::falling: return fmt::format("{} falls through 0", print(on));
    case Direction::any: break;
  }
  return fmt::format("{} crosses 0", print(on));
}

class TextPage {
 public:
  explicit TextPage(const Model& model)
      : model_(model), form_(shown_form(model.form)), parameters_(parameter_values(model)) {}

  std::string write() {
    write_title();
    write_values();
    write_equations();
    write_names();
    write_switches();
    write_constraints();
    write_jumps();
    write_sections();
    write_tables();
    write_unused();
    return std::move(out_);
  }

 private:
  void line(std::string_view text) {
    out_ += text;
    out_ += '\n';
  }
  void row(std::string_view label, std::string_view text) { line(fmt::format("{:{}}{}", label, label_width, text)); }
  void formula_row(std::string_view label, const std::string& text) { row(label, folded(text, label_width)); }

  std::string state(int i) const { return model_.states[static_cast<size_t>(i)].name; }

  std::string states(const std::vector<int>& indices) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < shown_of(indices.size()); ++i) names.push_back(state(indices[i]));
    if (names.size() < indices.size()) names.push_back(more(indices.size() - names.size()));
    return listed(names, label_width);
  }

  void write_title() {
    line(one_line(model_.name));
    if (!model_.ref.empty()) line(one_line(model_.ref));
    line("");
  }

  void write_values() {
    std::vector<std::string> items;
    for (size_t i = 0; i < shown_of(model_.states.size()); ++i)
      items.push_back(fmt::format("{} = {}", model_.states[i].name, with_value(model_.states[i].initial, parameters_)));
    if (items.size() < model_.states.size()) items.push_back(more(model_.states.size() - items.size()));
    row("states", listed(items, label_width));

    items.clear();
    const size_t most = 60, count = model_.parameters.size();
    for (size_t i = 0; i < std::min(count, most); ++i)
      items.push_back(
          fmt::format("{} = {}", model_.parameters[i].name, with_value(model_.parameters[i].value, parameters_)));
    if (count > most) items.push_back(more(count - most));
    if (count > 0) row("parameters", listed(items, label_width));
    row("time", dependence_on_time());
  }

  std::string dependence_on_time() const {
    if (model_.autonomous()) return "does not appear";
    if (const auto period = period_in_time(model_, parameters_))
      return "period " +
             (period->formula.is_number() ? print(period->formula) : with_value(period->formula, parameters_));
    return "appears, without an evident period";
  }

  void write_equations() {
    line("\nequations");
    std::vector<size_t> own;  // states whose rates have lines of their own
    for (size_t i = 0; i < form_.f.size(); ++i) {
      if (model_.states[i].speed < 0 && model_.states[i].has_line()) own.push_back(i);
    }
    for (size_t k = 0; k < shown_of(own.size()); ++k)
      write_formula(model_.states[own[k]].name + "'", 0, form_.f[own[k]], model_.states[own[k]].rate);
    if (own.size() > most_items) line("  " + more(own.size() - shown_of(own.size())));
    const size_t balances = shown_of(model_.balances.size());
    for (size_t k = 0; k < balances; ++k) {
      const Expr left = simplify(model_.balances[k].left), right = simplify(model_.balances[k].right);
      line("  " + folded(fmt::format("{} = {}", print(left), print(right)), 4));
    }
    if (balances < model_.balances.size()) line("  " + more(model_.balances.size() - balances));
    for (size_t i = 0; i < shown_of(form_.counters.size()); ++i)
      line(fmt::format("  wraps{} = floor({})", i + 1,
                       printed_size(form_.counters[i].phase) <= 300 ? print(form_.counters[i].phase) : "..."));
  }

  void write_formula(const std::string& name, size_t width, const Expr& lowered, const Expr& written) {
    const std::string text = print(printed_size(lowered) <= longest_formula / 10 ? lowered : written);
    line(fmt::format("  {:{}} = {}", name, width, folded(text, std::max(width, name.size()) + 5)));
  }

  void write_names() {
    const auto& names = model_.definitions;
    if (names.empty()) return;
    const size_t shown = shown_of(names.size());
    size_t width = 0;
    for (size_t i = 0; i < shown; ++i) width = std::max(width, names[i].name.size());
    line("\nnames");
    for (size_t i = 0; i < shown; ++i) write_formula(names[i].name, width, form_.definitions[i], names[i].value);
    if (shown < names.size()) line("  " + more(names.size() - shown));
  }

  void write_switches() {
    const size_t shown = shown_of(form_.switches.size(), most_blocks);
    for (size_t i = 0; i < shown; ++i) write_switch(i);
    if (shown < form_.switches.size()) row("\nswitches", " " + more(form_.switches.size() - shown));
  }

  void write_vector(const Switch& s) {
    std::vector<int> moved;
    for (const int part : model_.form.vectors[static_cast<size_t>(s.vector)].parts) {
      const std::vector<int>& of = model_.form.switches[static_cast<size_t>(part)].acts_on;
      moved.insert(moved.end(), of.begin(), of.end());
    }
    std::sort(moved.begin(), moved.end());
    moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
    line("");
    formula_row("vector", fmt::format("unit{}", s.name));
    row("  at rest",
        s.holds ? fmt::format("any s with |s| <= {}", with_value(s.hold, parameters_)) : "any s with |s| <= 1");
    row("  acts on", moved.empty() ? "no state" : states(moved));
  }

  void write_switch(size_t i) {
    const Switch& s = form_.switches[i];
    if (s.vector >= 0) return write_vector(s);
    line("");
    formula_row("switch", fmt::format("sgn({})", s.name));
    if (s.holds) row("  holds", fmt::format("while |sigma| <= {}", with_value(s.hold, parameters_)));
    row("  acts on", s.acts_on.empty() ? "no state" : states(s.acts_on));
    formula_row("  sliding", sliding(i));
    if (s.interacts.empty()) return;
    std::vector<std::string> partners;
    for (size_t k = 0; k < shown_of(s.interacts.size()); ++k)
      partners.push_back(sigma_symbol(form_, s.interacts[k]).symbol().name);
    if (partners.size() < s.interacts.size()) partners.push_back(more(s.interacts.size() - partners.size()));
    row("  multiplies", listed(partners, label_width));
    row("", "where both surfaces meet, sliding follows the hierarchical convex combination");
  }

  std::string sliding(size_t i) const {
    const SurfaceBehaviour b = describe_surface(model_, static_cast<int>(i), parameters_);
    switch (b.kind) {
      case SurfaceKind::silent: return "none";
      case SurfaceKind::kink: return "none: a kink, the rates are continuous here";
      case SurfaceKind::crossed: return "none: the switch does not act on the rate of its surface";
      case SurfaceKind::sliding: break;
    }
    const Switch& s = form_.switches[i];
    std::string bound = "1";
    if (s.holds) bound = print(s.hold);
    const std::string effect = b.attraction == Attraction::attracting  ? "attracting"
                               : b.attraction == Attraction::repelling ? "repelling"
                                                                       : "possible";
    std::string out;
    if (b.sigma.is_number()) {
      const double sigma = b.sigma.value();
      if (std::abs(sigma) > constant_value(s.hold, parameters_))
        return fmt::format("none: it would need sigma = {:.6g}", sigma);
      out = fmt::format("{}, sigma = {:.6g}", effect, sigma);
    } else if (printed_size(b.sigma) <= 120) {
      const Expr size = b.sigma.op() == Op::neg ? b.sigma.argument(0) : b.sigma;
      out = fmt::format("{} while |{}| <= {}", effect, print(size), bound);
    } else {
      out = fmt::format("{} while |sigma| <= {}", effect, bound);
    }
    if (b.attraction == Attraction::varying && printed_size(b.push) <= 60)
      out += fmt::format("; attracting where {} < 0", print(b.push));
    return out;
  }

  void write_constraints() {
    const size_t shown = shown_of(form_.gaps.size(), most_blocks);
    for (size_t j = 0; j < shown; ++j) write_constraint(j);
    if (shown < form_.gaps.size()) row("\nconstraints", " " + more(form_.gaps.size() - shown));
  }

  void write_constraint(size_t j) {
    const Constraint& c = model_.constraints[j];
    const Gap& gap = form_.gaps[j];
    line("");
    row(c.joint ? "joint" : "constraint", c.name);
    const bool brief = printed_size(gap.gap) <= longest_formula / 10;
    if (c.joint)
      formula_row("  equals", fmt::format("{} = 0, {} has either sign", print(brief ? gap.gap : c.gap), c.name));
    else
      formula_row("  gap", fmt::format("{} >= 0, {} >= 0, one of them is 0", print(brief ? gap.gap : c.gap), c.name));
    row("  degree", gap.degree == 0              ? (c.joint ? "0: algebraic, it contains a multiplier"
                                                            : "0: algebraic, the gap contains a multiplier")
                    : c.joint && gap.degree == 1 ? "1: the multiplier moves its rate"
                    : c.joint                    ? "2: the multiplier is a force between bodies"
                    : gap.degree == 1            ? "1: like a diode, the multiplier moves the gap's rate"
                                                 : "2: a contact, the multiplier is a force between bodies");
    if (gap.restitution) row("  rebound", "restitution " + restitution(*gap.restitution));
    if (c.friction) row("  friction", fmt::format("{} against {}", print(simplify(*c.friction)), slips(c)));
    row("  acts on", direction(gap));
  }

  static std::string slips(const Constraint& c) {
    std::string text = print(simplify(c.slip[0]));
    if (c.slip.size() > 1) text = fmt::format("({}, {})", text, print(simplify(c.slip[1])));
    return c.tangential ? fmt::format("{}, which rebounds by {}", text, print(simplify(*c.tangential))) : text;
  }

  std::string restitution(const Expr& r) const {
    const auto used = symbols_in(std::span(&r, 1));
    const bool constant = std::all_of(used.begin(), used.end(), is_constant);
    return constant ? with_value(r, parameters_) : print(r);
  }

  std::string direction(const Gap& gap) const {
    if (gap.direction.empty()) return "no state";
    std::vector<std::string> items;
    for (size_t i = 0; i < shown_of(gap.direction.size()); ++i) {
      const auto& [index, value] = gap.direction[i];
      items.push_back(printed_size(value) <= 60 ? fmt::format("{}' by {}", state(index), print(value))
                                                : state(index) + "'");
    }
    if (items.size() < gap.direction.size()) items.push_back(more(gap.direction.size() - items.size()));
    return listed(items, label_width);
  }

  void write_jumps() {
    const size_t shown = shown_of(model_.jumps.size(), most_blocks);
    for (size_t i = 0; i < shown; ++i) {
      const Jump& jump = model_.jumps[i];
      std::vector<std::string> sets;
      for (size_t k = 0; k < shown_of(jump.set.size()); ++k)
        sets.push_back(fmt::format("{} = {}", state(jump.set[k].state), print(jump.set[k].value)));
      if (sets.size() < jump.set.size()) sets.push_back(more(jump.set.size() - sets.size()));
      line("");
      row("jump", jump.name);
      formula_row("  when", jump.every ? clock(jump) : condition(jump.on, jump.direction));
      if (jump.level) row("  level", "also where it is found beyond");
      if (jump.when) formula_row("  if", print(*jump.when));
      row("  sets", listed(sets, label_width));
    }
    if (shown < model_.jumps.size()) row("\njumps", " " + more(model_.jumps.size() - shown));
  }

  std::string clock(const Jump& jump) const {
    const std::string every = "every " + with_value(*jump.every, parameters_);
    return jump.phase ? fmt::format("{}, at {} first", every, with_value(*jump.phase, parameters_)) : every;
  }

  void write_sections() {
    if (!model_.sections.empty()) line("");
    const size_t shown = shown_of(model_.sections.size());
    for (size_t i = 0; i < shown; ++i) {
      const Section& s = model_.sections[i];
      formula_row("section", fmt::format("{}: {}{}", s.name, section(s), s.stop ? ", then stop" : ""));
    }
    if (shown < model_.sections.size()) row("sections", more(model_.sections.size() - shown));
  }

  void write_tables() {
    if (!model_.tables.empty()) line("");
    for (size_t i = 0; i < shown_of(model_.tables.size()); ++i) {
      const PointTable& t = model_.tables[i];
      row("table", fmt::format("{}: {}", t.name, describe_table(t)));
      if (!t.file.empty()) row("  file", one_line(t.file));
    }
  }

  void write_unused() {
    std::vector<std::string> names(model_.unused.begin(),
                                   model_.unused.begin() + static_cast<std::ptrdiff_t>(shown_of(model_.unused.size())));
    if (names.empty()) return;
    if (names.size() < model_.unused.size()) names.push_back(more(model_.unused.size() - names.size()));
    line("");
    row("used by none", listed(names, label_width));
  }

  std::string section(const Section& s) const {
    const size_t i = static_cast<size_t>(s.index);
    switch (s.kind) {
      case Section::Kind::every: return "every " + with_value(s.value, parameters_);
      case Section::Kind::constraint:
        return fmt::format("at every impact or closing of {}", model_.constraints[i].name);
      case Section::Kind::jump: return fmt::format("at every jump {}", model_.jumps[i].name);
      case Section::Kind::on: break;
    }
    return "when " + condition(s.value, s.direction);
  }

  const Model& model_;
  const Form form_;
  std::vector<double> parameters_;
  std::string out_;
};

}  // namespace

std::string model_as_text(const Model& model) { return TextPage(model).write(); }

}  // namespace saltus
