// Operations as numbers: names, arguments, values.
#include <array>
#include <cassert>
#include <cmath>
#include <numbers>

#include "expr/expr.hpp"
#include "expr/interpolant.hpp"

namespace saltus {
namespace {

struct OpInfo {
  std::string_view name;
  int arity;
};

constexpr std::array<OpInfo, 47> op_table{{
    {"number", 0}, {"symbol", 0}, {"+", 2},     {"-", 2},    {"*", 2},    {"/", 2},    {"^", 2},          {"-", 1},
    {"sin", 1},    {"cos", 1},    {"tan", 1},   {"asin", 1}, {"acos", 1}, {"atan", 1}, {"atan2", 2},      {"sinh", 1},
    {"cosh", 1},   {"tanh", 1},   {"exp", 1},   {"log", 1},  {"sqrt", 1}, {"cbrt", 1}, {"hypot", 2},      {"log10", 1},
    {"log2", 1},   {"expm1", 1},  {"log1p", 1}, {"sign", 1}, {"sign", 2}, {"unit", 3}, {"components", 2}, {"abs", 1},
    {"min", 2},    {"max", 2},    {"sat", 3},   {"step", 1}, {"if", 3},   {"mod", 2},  {"floor", 1},      {"table", 2},
    {"<", 2},      {">", 2},      {"<=", 2},    {">=", 2},   {"and", 2},  {"or", 2},   {"not", 1},
}};

}  // namespace

std::string_view op_name(Op op) { return op_table[static_cast<size_t>(op)].name; }
int op_arity(Op op) { return op_table[static_cast<size_t>(op)].arity; }

double apply(Op op, const double* a) {
  switch (op) {
    case Op::add: return a[0] + a[1];
    case Op::sub: return a[0] - a[1];
    case Op::mul: return a[0] * a[1];
    case Op::div: return a[0] / a[1];
    case Op::pow: return std::pow(a[0], a[1]);
    case Op::neg: return -a[0];
    case Op::sin: return std::sin(a[0]);
    case Op::cos: return std::cos(a[0]);
    case Op::tan: return std::tan(a[0]);
    case Op::asin: return std::asin(a[0]);
    case Op::acos: return std::acos(a[0]);
    case Op::atan: return std::atan(a[0]);
    case Op::atan2: return std::atan2(a[0], a[1]);
    case Op::sinh: return std::sinh(a[0]);
    case Op::cosh: return std::cosh(a[0]);
    case Op::tanh: return std::tanh(a[0]);
    case Op::exp: return std::exp(a[0]);
    case Op::log: return std::log(a[0]);
    case Op::sqrt: return std::sqrt(a[0]);
    case Op::cbrt: return std::cbrt(a[0]);
    case Op::hypot: return std::hypot(a[0], a[1]);
    case Op::log10: return std::log10(a[0]);
    case Op::log2: return std::log2(a[0]);
    case Op::expm1: return std::expm1(a[0]);
    case Op::log1p: return std::log1p(a[0]);
    case Op::sign:
    case Op::hold_sign: return a[0] > 0 ? 1.0 : a[0] < 0 ? -1.0 : a[0];
    case Op::unit: return a[0] == 0 ? 0.0 : a[0] / std::hypot(a[0], a[1]);
    case Op::components: return std::hypot(a[0], a[1]);
    case Op::abs: return std::abs(a[0]);
    case Op::min: return a[1] < a[0] ? a[1] : a[0];
    case Op::max: return a[1] > a[0] ? a[1] : a[0];
    case Op::sat: return a[0] < a[1] ? a[1] : a[0] > a[2] ? a[2] : a[0];
    case Op::step: return a[0] > 0 ? 1.0 : a[0] < 0 ? 0.0 : a[0] == 0 ? 0.5 : a[0];
    case Op::select: return a[0] != 0 ? a[1] : a[2];
    case Op::mod: return a[0] - a[1] * std::floor(a[0] / a[1]);
    case Op::floor: return std::floor(a[0]);
    case Op::less: return a[0] < a[1];
    case Op::greater: return a[0] > a[1];
    case Op::less_equal: return a[0] <= a[1];
    case Op::greater_equal: return a[0] >= a[1];
    case Op::both: return a[0] != 0 && a[1] != 0;
    case Op::either: return a[0] != 0 || a[1] != 0;
    case Op::negation: return a[0] == 0;
    case Op::table:  // needs its curve: see below
    case Op::number:
    case Op::symbol: break;
  }
  assert(false && "not an operation on numbers");
  return NAN;
}

double apply(const Expr& node, const double* a) {
  if (node.op() != Op::table) return apply(node.op(), a);
  const Expr table = node.argument(1);
  return (*table.symbol().curve)(a[0], table.symbol().index);
}

double evaluate(const Expr& root, const std::function<double(const Symbol&)>& lookup) {
  if (root.is_number()) return root.value();
  std::unordered_map<const Node*, double> values;
  std::array<double, 3> a{};
  for (const Expr& e : postorder(std::span(&root, 1))) {
    double v = 0;
    if (e.is_number()) {
      v = e.value();
    } else if (e.is_symbol(SymbolKind::constant)) {
      v = e.symbol().index == 0 ? std::numbers::pi : std::numbers::e;
    } else if (e.is_symbol()) {
      v = e.is_symbol(SymbolKind::table) ? 0 : lookup(e.symbol());
    } else {
      for (size_t i = 0; i < e.size(); ++i) a[i] = values.at(e.argument(i).node());
      v = apply(e, a.data());
    }
    values.emplace(e.node(), v);
  }
  return values.at(root.node());
}

}  // namespace saltus
