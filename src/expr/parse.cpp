#include "expr/parse.hpp"

#include "expr/letters.hpp"
#include "expr/parser.hpp"

namespace saltus {

Expr parse(const Fragment& formula, const Names& names, const Indices& indices) {
  return Parser(formula, {names, indices}).run();
}
Expr parse_condition(const Fragment& formula, const Names& names, const Indices& indices) {
  return Parser(formula, {names, indices, Wanted::truth}).run();
}

std::vector<std::string> called_functions(std::string_view formula) {
  std::vector<std::string> names;
  for (size_t i = 0; i < formula.size();) {
    if (!is_name_start(formula[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < formula.size() && is_name_part(formula[i])) ++i;
    const size_t next = formula.find_first_not_of(" \t", i);
    if (next != formula.npos && formula[next] == '(') names.emplace_back(formula.substr(begin, i - begin));
  }
  return names;
}

}  // namespace saltus
