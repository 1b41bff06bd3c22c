#include "expr/print.hpp"

#include <array>
#include <cctype>
#include <unordered_map>

#include <fmt/format.h>

namespace saltus {
namespace {

/// How tightly a piece of text binds; a looser one gets brackets inside a tighter one.
enum Binding { loose, either_, both_, not_, compare_, sum_, product_, sign_, power_, atom_ };

struct Piece {
  std::string text;
  Binding binding = atom_;
};

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

using Bracket = std::string (*)(const std::string&);
std::string round_brackets(const std::string& text) { return "(" + text + ")"; }
std::string tall_brackets(const std::string& text) { return "\\left(" + text + "\\right)"; }

std::string within(const Piece& p, Binding least, Bracket bracket) {
  return p.binding < least ? bracket(p.text) : p.text;
}

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

Piece plain_piece(const Expr& e, const std::array<const Piece*, 3>& a) {
  const Op op = e.op();
  if (op == Op::number) return {print_number(e.value()), e.value() < 0 ? sign_ : atom_};
  if (op == Op::symbol) return {e.symbol().name, atom_};
  const auto [left, right] = needs(op);
  const std::string_view name = op_name(op);
  const Binding own = binding_of(op);
  switch (op) {
    case Op::neg: return {"-" + within(*a[0], left, round_brackets), own};
    case Op::negation: return {"not " + within(*a[0], left, round_brackets), own};
    case Op::mul:
    case Op::div:
    case Op::pow:
      return {fmt::format("{}{}{}", within(*a[0], left, round_brackets), name, within(*a[1], right, round_brackets)),
              own};
    default: break;
  }
  if (own != atom_) {
    return {fmt::format("{} {} {}", within(*a[0], left, round_brackets), name, within(*a[1], right, round_brackets)),
            own};
  }
  std::string list;
  for (size_t i = 0; i < e.size(); ++i) list += (i ? ", " : "") + a[i]->text;
  return {fmt::format("{}({})", name, list), atom_};
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

Piece latex_piece(const Expr& e, const std::array<const Piece*, 3>& a) {
  const Op op = e.op();
  const auto [left, right] = needs(op);
  const Binding own = binding_of(op);
  const auto lhs = [&] { return within(*a[0], left, tall_brackets); };
  const auto rhs = [&] { return within(*a[1], right, tall_brackets); };
  switch (op) {
    case Op::number: return {latex_number(e.value()), e.value() < 0 ? sign_ : atom_};
    case Op::symbol: return {latex_name(e.symbol().name), atom_};
    case Op::neg: return {"-" + lhs(), own};
    case Op::negation: return {"\\neg " + lhs(), own};
    case Op::mul: return {lhs() + " " + rhs(), own};
    case Op::div: return {fmt::format("\\frac{{{}}}{{{}}}", a[0]->text, a[1]->text), product_};
    case Op::pow: return {fmt::format("{}^{{{}}}", lhs(), a[1]->text), own};
    case Op::sqrt: return {fmt::format("\\sqrt{{{}}}", a[0]->text), atom_};
    case Op::cbrt: return {fmt::format("\\sqrt[3]{{{}}}", a[0]->text), atom_};
    case Op::abs: return {fmt::format("\\left|{}\\right|", a[0]->text), atom_};
    case Op::floor: return {fmt::format("\\left\\lfloor {}\\right\\rfloor", a[0]->text), atom_};
    case Op::add: return {lhs() + " + " + rhs(), own};
    case Op::sub: return {lhs() + " - " + rhs(), own};
    case Op::less: return {lhs() + " < " + rhs(), own};
    case Op::greater: return {lhs() + " > " + rhs(), own};
    case Op::less_equal: return {lhs() + " \\le " + rhs(), own};
    case Op::greater_equal: return {lhs() + " \\ge " + rhs(), own};
    case Op::both: return {lhs() + " \\land " + rhs(), own};
    case Op::either: return {lhs() + " \\lor " + rhs(), own};
    case Op::select:
      return {fmt::format("\\begin{{cases}} {} & {} \\\\ {} & \\text{{else}} \\end{{cases}}", a[1]->text, a[0]->text,
                          a[2]->text),
              atom_};
    default: break;
  }
  std::string list;
  for (size_t i = 0; i < e.size(); ++i) list += (i ? ", " : "") + a[i]->text;
  return {fmt::format("{}\\left({}\\right)", latex_function(op), list), atom_};
}

template <class MakePiece>
std::string print_with(const Expr& root, MakePiece piece) {
  std::unordered_map<const Node*, Piece> done;
  for (const Expr& e : postorder(std::span(&root, 1))) {
    std::array<const Piece*, 3> a{};
    for (size_t i = 0; i < e.size(); ++i) a[i] = &done.at(e.argument(i).node());
    Piece p = piece(e, a);
    done.emplace(e.node(), std::move(p));
  }
  return std::move(done.at(root.node()).text);
}

}  // namespace

std::string print_number(double value) { return fmt::format("{}", value); }

std::string print(const Expr& e) { return print_with(e, plain_piece); }
std::string print_latex(const Expr& e) { return print_with(e, latex_piece); }

std::string latex_name(const std::string& name) {
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
