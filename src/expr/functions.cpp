#include "expr/functions.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace saltus {
namespace {

constexpr std::array<FormulaFunction, 31> functions{{
    {"sin", Op::sin},
    {"cos", Op::cos},
    {"tan", Op::tan},
    {"asin", Op::asin},
    {"acos", Op::acos},
    {"atan", Op::atan},
    {"atan2", Op::atan2},
    {"sinh", Op::sinh},
    {"cosh", Op::cosh},
    {"tanh", Op::tanh},
    {"exp", Op::exp},
    {"log", Op::log},
    {"sqrt", Op::sqrt},
    {"cbrt", Op::cbrt},
    {"sign", Op::sign},
    {"abs", Op::abs},
    {"min", Op::min},
    {"max", Op::max},
    {"sat", Op::sat},
    {"step", Op::step},
    {"if", Op::select},
    {"mod", Op::mod},
    {"floor", Op::floor},
    {"hypot", Op::hypot},
    {"log10", Op::log10},
    {"log2", Op::log2},
    {"expm1", Op::expm1},
    {"log1p", Op::log1p},
    {"ceil", Op::floor, FormulaFunction::ceil},
    {"round", Op::floor, FormulaFunction::round},
    {"sum", Op::add, FormulaFunction::sum},
}};

}  // namespace

const FormulaFunction* find_function(std::string_view name) {
  const auto it =
      std::find_if(functions.begin(), functions.end(), [&](const FormulaFunction& f) { return f.name == name; });
  return it == functions.end() ? nullptr : &*it;
}

std::vector<std::string> formula_function_names() {
  std::vector<std::string> names;
  for (const FormulaFunction& f : functions) names.emplace_back(f.name);
  return names;
}

std::string usage_of(const FormulaFunction& f) {
  switch (f.op) {
    case Op::sign: return "sign(v), or sign(v, ratio) for static friction";
    case Op::select: return "if(condition, then, else)";
    case Op::sat: return "sat(e, low, high)";
    case Op::mod: return "mod(e, period)";
    case Op::atan2: return "atan2(y, x)";
    default: return fmt::format("{}({})", f.name, op_arity(f.op) == 1 ? "x" : "a, b");
  }
}

std::string_view foreign_function(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 19> table{{
      {"sgn", "sign"},       {"ceiling", "ceil"},   {"signum", "sign"}, {"ln", "log"},      {"fabs", "abs"},
      {"heaviside", "step"}, {"Heaviside", "step"}, {"arcsin", "asin"}, {"arccos", "acos"}, {"arctan", "atan"},
      {"arctan2", "atan2"},  {"fmod", "mod"},       {"rem", "mod"},     {"clamp", "sat"},   {"ifelse", "if"},
      {"where", "if"},       {"Abs", "abs"},        {"Sign", "sign"},   {"pow", "^"},
  }};
  for (const auto& [foreign, ours] : table) {
    if (foreign == name) return ours;
  }
  return {};
}

}  // namespace saltus
