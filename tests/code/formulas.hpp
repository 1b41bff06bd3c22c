// Formulas for the tests of tapes and jets: text -> Tape, with names for states and parameters.
#pragma once

#include <string>
#include <vector>

#include "code/tape.hpp"
#include "expr/parse.hpp"

namespace saltus {

inline Expr state(int i) { return Expr::symbol(SymbolKind::state, i, "x" + std::to_string(i)); }

inline Tape tape_of(const std::vector<std::string>& formulas, const std::vector<std::string>& states,
                    const std::vector<std::string>& parameters = {}, const std::vector<std::string>& sigmas = {}) {
  Names names;
  const auto add = [&](const std::vector<std::string>& list, SymbolKind kind, const char* role) {
    for (size_t i = 0; i < list.size(); ++i) {
      names.add(list[i], Expr::symbol(kind, static_cast<int>(i), list[i]), role);
    }
  };
  add(states, SymbolKind::state, "a state");
  add(parameters, SymbolKind::parameter, "a parameter");
  add(sigmas, SymbolKind::sigma, "a switch");
  std::vector<Expr> outputs;
  for (const std::string& f : formulas) outputs.push_back(simplify(parse(whole_text("formula", f), names)));
  return build_tape(outputs, {.states = static_cast<int>(states.size()), .sigmas = static_cast<int>(sigmas.size())});
}

}  // namespace saltus
