#include "expr/print.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

namespace saltus {
namespace {

/// How tightly a piece of text binds; a looser one gets brackets inside a tighter one.
enum Binding { loose, either_, both_, not_, compare_, sum_, product_, sign_, power_, atom_, always_ };

/// The printed form of an operation: its own text, with its arguments between. An argument that binds looser than
/// `least` gets brackets.
struct Part {
  std::string text{};
  int argument = -1;
  Binding least = loose;
};
using Parts = std::vector<Part>;

Binding binding_of(Op op) {
  switch (op) {
    case Op::either: return either_;
    case Op::both: return both_;
    case Op::negation: return not_;
    case Op::less:
    case Op::greater:
    case Op::less_equal:
    case Op::greater_equal: return compare_;
    case Op::add:
    case Op::sub: return sum_;
    case Op::mul:
    case Op::div: return product_;
    case Op::neg: return sign_;
    case Op::pow: return power_;
    default: return atom_;
  }
}

Binding tighter(Binding b) { return static_cast<Binding>(b + 1); }

/// The least binding the left and right argument must have to stand without brackets.
std::array<Binding, 2> needs(Op op) {
  const Binding own = binding_of(op);
  switch (op) {
    case Op::pow: return {atom_, sign_};  // x^-1 needs no brackets, (-x)^2 and (2^3)^2 do
    case Op::neg: return {sign_, sign_};
    case Op::negation: return {not_, not_};
    case Op::less:
    case Op::greater:
    case Op::less_equal:
    case Op::greater_equal: return {sum_, sum_};
    default: return {own, tighter(own)};
  }
}

Binding plain_binding(const Expr& e) {
  if (e.is_number()) return std::signbit(e.value()) ? sign_ : atom_;
  return binding_of(e.op());
}

/// The operands of an operation as printed: max(max(a, b), c) is written max(a, b, c).
std::vector<Expr> operands_of(const Expr& e) {
  std::vector<Expr> out;
  Expr head = e;
  const bool chain = e.op() == Op::min || e.op() == Op::max;
  for (; chain && head.argument(0).op() == e.op(); head = head.argument(0)) out.push_back(head.argument(1));
  std::reverse(out.begin(), out.end());
  const size_t own = e.op() == Op::table ? 1 : e.size();
  for (size_t i = 0; i < own; ++i) out.insert(out.begin() + static_cast<std::ptrdiff_t>(i), head.argument(i));
  return out;
}

/// road(x), and with primes its derivatives.
std::string table_name(const Expr& table, std::string name) {
  return std::move(name) + std::string(static_cast<size_t>(table.symbol().index), '\'');
}

Parts call(const Expr& e, std::string open, std::string close) {
  Parts parts{{std::move(open)}};
  const size_t count = operands_of(e).size();
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) parts.push_back({", "});
    parts.push_back({.argument = static_cast<int>(i)});
  }
  parts.push_back({std::move(close)});
  return parts;
}

/// unit(a, b), unit(a, b, c; ratio): a ratio of one is not written.
Parts unit_parts(const Expr& e, std::string open, std::string close) {
  Parts parts{{std::move(open)}, {"", 0}, {", "}, {"", 1}};
  if (!e.argument(2).is_number(1)) parts.insert(parts.end(), {{"; "}, {"", 2}});
  parts.push_back({std::move(close)});
  return parts;
}

Parts plain_parts(const Expr& e) {
  const Op op = e.op();
  const auto [left, right] = needs(op);
  const std::string name(op_name(op));
  switch (op) {
    case Op::number: return {{print_number(e.value())}};
    case Op::symbol: return {{e.symbol().name}};
    case Op::neg: return {{"-"}, {"", 0, left}};
    case Op::negation: return {{"not "}, {"", 0, left}};
    case Op::table: return call(e, table_name(e.argument(1), e.argument(1).symbol().name) + "(", ")");
    case Op::unit: return unit_parts(e, "unit(", ")");
    case Op::components: return {{"", 0}, {", "}, {"", 1}};
    case Op::mul:
    case Op::div:
    case Op::pow: return {{"", 0, left}, {name}, {"", 1, right}};
    default: break;
  }
  if (binding_of(op) != atom_) return {{"", 0, left}, {" " + name + " "}, {"", 1, right}};
  return call(e, name + "(", ")");
}

std::string latex_number(double value) {
  std::string text = print_number(value);
  const size_t e = text.find('e');
  if (e == std::string::npos) return text;
  return fmt::format("{} \\cdot 10^{{{}}}", text.substr(0, e), std::stoi(text.substr(e + 1)));
}

std::string latex_function(Op op) {
  switch (op) {
    case Op::asin: return "\\arcsin";
    case Op::acos: return "\\arccos";
    case Op::atan: return "\\arctan";
    case Op::log10: return "\\log_{10}";
    case Op::log2: return "\\log_{2}";
    case Op::sin:
    case Op::cos:
    case Op::tan:
    case Op::sinh:
    case Op::cosh:
    case Op::tanh:
    case Op::exp:
    case Op::log:
    case Op::min:
    case Op::max: return fmt::format("\\{}", op_name(op));
    default: return fmt::format("\\operatorname{{{}}}", op_name(op));
  }
}

Binding latex_binding(const Expr& e) {
  const bool times_power_of_ten = e.is_number() && print_number(e.value()).find('e') != std::string::npos;
  return times_power_of_ten ? product_ : plain_binding(e);
}

/// True if the first thing printed is a minus sign: "a - -b" and "a -b" would mislead.
bool starts_with_minus(Expr e) {
  while (e.op() == Op::add || e.op() == Op::sub || e.op() == Op::mul) e = e.argument(0);
  return e.op() == Op::neg || (e.is_number() && std::signbit(e.value()));
}

Parts latex_parts(const Expr& e) {
  const Op op = e.op();
  auto [left, right] = needs(op);
  if (e.size() == 2 && starts_with_minus(e.argument(1))) right = always_;
  const auto infix = [l = left, r = right](const char* sign) { return Parts{{"", 0, l}, {sign}, {"", 1, r}}; };
  const auto around = [](const char* open, const char* close) { return Parts{{open}, {"", 0}, {close}}; };
  switch (op) {
    case Op::number: return {{latex_number(e.value())}};
    case Op::symbol: return {{latex_name(e.symbol().name)}};
    case Op::neg: return {{"-"}, {"", 0, starts_with_minus(e.argument(0)) ? always_ : left}};
    case Op::negation: return {{"\\neg "}, {"", 0, left}};
    case Op::mul: return infix(e.argument(1).is_number() ? " \\cdot " : " ");
    case Op::div: return {{"\\frac{"}, {"", 0}, {"}{"}, {"", 1}, {"}"}};
    case Op::pow: return {{"", 0, left}, {"^{"}, {"", 1}, {"}"}};
    case Op::unit: return unit_parts(e, "\\operatorname{unit}\\left(", "\\right)");
    case Op::components: return {{"", 0}, {", "}, {"", 1}};
    case Op::sqrt: return around("\\sqrt{", "}");
    case Op::cbrt: return around("\\sqrt[3]{", "}");
    case Op::table:
      return call(e, table_name(e.argument(1), latex_name(e.argument(1).symbol().name)) + "\\left(", "\\right)");
    case Op::abs: return around("\\left|", "\\right|");
    case Op::floor: return around("\\left\\lfloor ", "\\right\\rfloor ");
    case Op::add: return infix(" + ");
    case Op::sub: return infix(" - ");
    case Op::less: return infix(" < ");
    case Op::greater: return infix(" > ");
    case Op::less_equal: return infix(" \\le ");
    case Op::greater_equal: return infix(" \\ge ");
    case Op::both: return infix(" \\land ");
    case Op::either: return infix(" \\lor ");
    case Op::select:
      return {{"\\begin{cases} "}, {"", 1}, {" & "}, {"", 0}, {" \\\\ "}, {"", 2}, {" & \\text{else} \\end{cases}"}};
    default: return call(e, latex_function(op) + "\\left(", "\\right)");
  }
}

struct Style {
  Parts (*parts)(const Expr&);
  Binding (*binding)(const Expr&);
  const char *open, *close;
};

/// Writes from left to right; what is still to come waits in a list, so nesting costs neither stack nor copies.
std::string print_with(const Expr& root, const Style& style) {
  struct Pending {
    std::string text;
    Expr formula;
    bool is_text;
  };
  std::string out;
  std::vector<Pending> pending{{"", root, false}};
  while (!pending.empty()) {
    const Pending next = std::move(pending.back());
    pending.pop_back();
    if (next.is_text) {
      out += next.text;
      continue;
    }
    Parts parts = style.parts(next.formula);
    std::vector<Expr> operands = operands_of(next.formula);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (part->argument < 0) {
        pending.push_back({std::move(part->text), {}, true});
        continue;
      }
      Expr argument = std::move(operands[static_cast<size_t>(part->argument)]);
      const bool brackets = style.binding(argument) < part->least;
      if (brackets) pending.push_back({style.close, {}, true});
      pending.push_back({"", std::move(argument), false});
      if (brackets) pending.push_back({style.open, {}, true});
    }
  }
  return out;
}

}  // namespace

std::string print_number(double value) { return fmt::format("{}", value); }

std::string print(const Expr& e) { return print_with(e, {plain_parts, plain_binding, "(", ")"}); }
std::string print_latex(const Expr& e) { return print_with(e, {latex_parts, latex_binding, "\\left(", "\\right)"}); }

std::string latex_name(const std::string& name) {
  if (name.ends_with('\'')) {
    const size_t stem = name.find('\'');
    return fmt::format("\\{}{{{}}}", name.size() - stem == 1 ? "dot" : "ddot", latex_name(name.substr(0, stem)));
  }
  static const std::unordered_map<std::string, std::string> greek = [] {
    std::unordered_map<std::string, std::string> map;
    for (const char* g : {"alpha", "beta",  "gamma", "delta", "epsilon", "zeta",  "eta", "theta", "kappa", "lambda",
                          "mu",    "nu",    "xi",    "pi",    "rho",     "sigma", "tau", "phi",   "chi",   "psi",
                          "omega", "Gamma", "Delta", "Theta", "Lambda",  "Sigma", "Phi", "Psi",   "Omega"}) {
      map[g] = fmt::format("\\{}", g);
    }
    return map;
  }();
  size_t stem = name.size();
  while (stem > 1 && std::isdigit(static_cast<unsigned char>(name[stem - 1]))) --stem;
  const size_t underscore = name.find('_');
  std::string head = name.substr(0, stem), tail = name.substr(stem);
  if (underscore != std::string::npos && underscore > 0) {
    head = name.substr(0, underscore);
    tail = name.substr(underscore + 1);
  }
  if (const auto found = greek.find(head); found != greek.end()) {
    head = found->second;
  } else if (head.size() > 1) {
    std::string escaped;
    for (char c : head) escaped += c == '_' ? std::string("\\_") : std::string(1, c);
    head = fmt::format("\\mathrm{{{}}}", escaped);
  }
  if (tail.empty()) return head;
  std::string escaped;
  for (char c : tail) escaped += c == '_' ? std::string("\\_") : std::string(1, c);
  return fmt::format("{}_{{{}}}", head, escaped);
}

}  // namespace saltus
