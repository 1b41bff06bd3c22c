#include "expr/functions.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace saltus {
namespace {

constexpr std::array<FormulaFunction, 32> functions{{
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
    {"unit", Op::unit},
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
    case Op::unit: return "unit(a, b), unit(a, b, c), or unit(a, b; ratio) for static friction";
    case Op::select: return "if(condition, then, else)";
    case Op::sat: return "sat(e, low, high)";
    case Op::mod: return "mod(e, period)";
    case Op::atan2: return "atan2(y, x)";
    default: return fmt::format("{}({})", f.name, op_arity(f.op) == 1 ? "x" : "a, b");
  }
}

std::string hint_for_foreign(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 27> renamed{{
      {"sgn", "sign"},       {"ceiling", "ceil"},   {"signum", "sign"}, {"ln", "log"},      {"fabs", "abs"},
      {"heaviside", "step"}, {"Heaviside", "step"}, {"arcsin", "asin"}, {"arccos", "acos"}, {"arctan", "atan"},
      {"arctan2", "atan2"},  {"fmod", "mod"},       {"rem", "mod"},     {"clamp", "sat"},   {"ifelse", "if"},
      {"where", "if"},       {"Abs", "abs"},        {"Sign", "sign"},   {"clip", "sat"},    {"H", "step"},
      {"Theta", "step"},     {"theta", "step"},     {"θ", "step"},      {"Θ", "step"},      {"unitstep", "step"},
      {"Max", "max"},        {"Min", "min"},
  }};
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 27> said{{
      {"pow", "power is written a^b"},
      {"relu", "write max(a, 0)"},
      {"pos", "write max(a, 0)"},
      {"cot", "write 1/tan(a)"},
      {"sec", "write 1/cos(a)"},
      {"csc", "write 1/sin(a)"},
      {"frac", "write mod(a, 1)"},
      {"sawtooth", "write mod(a, 1)"},
      {"trunc", "write if(a > 0, floor(a), ceil(a))"},
      {"fix", "write if(a > 0, floor(a), ceil(a))"},
      {"int", "write floor(a), ceil(a) or round(a)"},
      {"deadzone", "write a - sat(a, -d, d)"},
      {"dead_zone", "write a - sat(a, -d, d)"},
      {"square", "for a wave write sign(sin(a)), for a power a^2"},
      {"pulse", "write step(on - mod(t, T)): 1 for a time `on` of each period T"},
      {"pwm", "write step(on - mod(t, T)): 1 for a time `on` of each period T"},
      {"piecewise", "write if(c, a, b), one inside the other"},
      {"Piecewise", "write if(c, a, b), one inside the other"},
      {"delta", "an impulse is a jump: [jump.NAME] with `every` or `on`, and `set`"},
      {"dirac", "an impulse is a jump: [jump.NAME] with `every` or `on`, and `set`"},
      {"delay", "there are no delays: rates depend on the present state"},
      {"noise", "there is no noise: a run is determined by its start"},
      {"rand", "there is no noise: a run is determined by its start"},
      {"randn", "there is no noise: a run is determined by its start"},
      {"random", "there is no noise: a run is determined by its start"},
      {"asinh", "write log(a + sqrt(a^2 + 1))"},
      {"acosh", "write log(a + sqrt(a^2 - 1))"},
  }};
  for (const auto& [foreign, ours] : renamed) {
    if (foreign == name) return fmt::format("it is called '{}' here", ours);
  }
  for (const auto& [foreign, hint] : said) {
    if (foreign == name) return std::string(hint);
  }
  return {};
}

}  // namespace saltus
