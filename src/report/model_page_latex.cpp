#include <fmt/format.h>
#include <fmt/ranges.h>

#include "expr/print.hpp"
#include "model/describe.hpp"
#include "report/model_page.hpp"

namespace saltus {
namespace {

/// Text outside of mathematics.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\': out += "\\textbackslash{}"; break;
      case '~': out += "\\textasciitilde{}"; break;
      case '^': out += "\\textasciicircum{}"; break;
      case '&':
      case '%':
      case '$':
      case '#':
      case '_':
      case '{':
      case '}': out += '\\'; [[fallthrough]];
      default: out += c;
    }
  }
  return out;
}

class LatexPage {
 public:
  explicit LatexPage(const Model& model) : model_(model), form_(shown_form(model.form)) {
    for (size_t i = 0; i < form_.switches.size(); ++i) {
      const int index = static_cast<int>(i);
      sigmas_.emplace(sigma_symbol(model.form, index),
                      Expr::symbol(SymbolKind::sigma, index, fmt::format("sigma_{}", i + 1)));
    }
  }

  std::string equations() {
    const Form& form = form_;
    for (size_t i = 0; i < form.f.size(); ++i) {
      if (model_.states[i].speed >= 0 || !model_.states[i].has_line()) continue;
      line(fmt::format("{} &= {}", name(model_.states[i].name + "'"), formula(form.f[i], model_.states[i].rate)));
    }
    for (const Balance& b : model_.balances)
      line(fmt::format("{} &= {}", print_latex(simplify(b.left)), print_latex(simplify(b.right))));
    for (size_t i = 0; i < form.switches.size(); ++i) write_switch(i);
    for (size_t i = 0; i < form.counters.size(); ++i)
      line(fmt::format("\\mathrm{{wraps}}_{{{}}} &= \\left\\lfloor {} \\right\\rfloor", i + 1,
                       formula_or(form.counters[i].phase, "\\cdots")));
    for (size_t j = 0; j < form.gaps.size(); ++j) write_constraint(j);
    for (const Jump& jump : model_.jumps) write_jump(jump);
    for (const PointTable& table : model_.tables)
      line(fmt::format("{}(x) &: \\text{{{}}}", name(table.name), escaped(describe_table(table))));
    return fmt::format("\\begin{{align}}\n  {}\n\\end{{align}}\n", fmt::join(lines_, " \\\\\n  "));
  }

 private:
  static std::string name(const std::string& text) { return latex_name(text); }
  void line(std::string text) { lines_.push_back(std::move(text)); }

  std::string formula(const Expr& lowered, const Expr& written) const {
    return formula_or(lowered, printed_size(lowered) <= longest_formula ? "" : print_latex(written));
  }

  std::string formula_or(const Expr& e, const std::string& otherwise) const {
    return printed_size(e) <= longest_formula ? print_latex(substitute(e, sigmas_)) : otherwise;
  }

  void write_switch(size_t i) {
    const Switch& s = form_.switches[i];
    if (s.vector >= 0) {
      std::vector<std::string> h;
      for (const int part : model_.form.vectors[static_cast<size_t>(s.vector)].parts)
        h.push_back(print_latex(model_.form.switches[static_cast<size_t>(part)].surface));
      return line(
          fmt::format("\\sigma_{{{}}} &\\in \\operatorname{{Unit}}\\left({}\\right)", i + 1, fmt::join(h, ", ")));
    }
    const std::string surface = formula_or(s.surface, "\\mathtt{" + escaped(s.name) + "}");
    if (s.holds) {
      line(fmt::format("\\sigma_{{{}}} &\\in \\operatorname{{Sgn}}_{{{}}}\\left({}\\right)", i + 1, print_latex(s.hold),
                       surface));
    } else {
      line(fmt::format("\\sigma_{{{}}} &\\in \\operatorname{{Sgn}}\\left({}\\right)", i + 1, surface));
    }
  }

  void write_constraint(size_t j) {
    const Constraint& c = model_.constraints[j];
    const Gap& gap = form_.gaps[j];
    const std::string g = formula(gap.gap, c.gap);
    if (c.joint) return line(fmt::format("0 &= {} \\quad ({})", g, name(c.name)));
    line(fmt::format("0 &\\le {} \\perp {} \\ge 0", name(c.name), g));
    if (gap.restitution)
      line(fmt::format("\\dot{{g}}_{{{}}}^{{+}} &= -{} \\, \\dot{{g}}_{{{}}}^{{-}}", name(c.name),
                       bracketed(*gap.restitution, *c.restitution), name(c.name)));
  }

  std::string bracketed(const Expr& e, const Expr& written) const {
    const std::string text = formula(e, written);
    return e.is_symbol() || (e.is_number() && e.value() >= 0) ? text : "\\left(" + text + "\\right)";
  }

  void write_jump(const Jump& jump) {
    std::vector<std::string> sets;
    for (const Assignment& a : jump.set) {
      sets.push_back(
          fmt::format("{}^{{+}} = {}", name(model_.states[static_cast<size_t>(a.state)].name), print_latex(a.value)));
    }
    std::string cause = print_latex(jump.on) + " = 0";
    if (jump.every) {
      cause = jump.phase
                  ? fmt::format("t = {} + k \\, {}", print_latex(*jump.phase), bracketed(*jump.every, *jump.every))
                  : fmt::format("t = k \\, {}", bracketed(*jump.every, *jump.every));
    }
    if (jump.when) cause += " \\wedge " + print_latex(*jump.when);
    line(fmt::format("{} &\\Rightarrow {}", cause, fmt::join(sets, ",\\; ")));
  }

  const Model& model_;
  const Form form_;
  ExprMap<Expr> sigmas_;
  std::vector<std::string> lines_;
};

std::string parameter_table(const Model& model) {
  if (model.parameters.empty()) return "";
  std::string rows;
  for (const Parameter& p : model.parameters)
    rows += fmt::format("  ${}$ & ${}$ \\\\\n", latex_name(p.name), print_latex(p.value));
  return fmt::format("\\begin{{tabular}}{{ll}}\n{}\\end{{tabular}}\n", rows);
}

}  // namespace

std::string model_as_latex(const Model& model) {
  std::string title = "% " + escaped(model.name);
  if (!model.ref.empty()) title += ", " + escaped(model.ref);
  for (char& c : title) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return title + "\n" + LatexPage(model).equations() + parameter_table(model);
}

}  // namespace saltus
