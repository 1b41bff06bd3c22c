#include "ask/quantity.hpp"

#include <fmt/format.h>

#include "ask/value.hpp"
#include "expr/parse.hpp"
#include "model/build.hpp"

namespace saltus {
namespace {

/// All that a formula of a model may contain.
Names names_of_output(const Model& model) {
  Names names;
  for (const PointTable& t : model.tables) names.add_function(t.name, table_function(t));
  for (size_t i = 0; i < model.states.size(); ++i)
    names.add(model.states[i].name, state_symbol(model, static_cast<int>(i)), "a state");
  for (size_t i = 0; i < model.parameters.size(); ++i)
    names.add(model.parameters[i].name, parameter_symbol(model, static_cast<int>(i)), "a parameter");
  for (size_t i = 0; i < model.definitions.size(); ++i) {
    const std::string& name = model.definitions[i].name;
    names.add(name, Expr::symbol(SymbolKind::definition, static_cast<int>(i), name), "a name with an equation");
  }
  for (size_t i = 0; i < model.constraints.size(); ++i) {
    const std::string& name = model.constraints[i].name;
    names.add(name, Expr::symbol(SymbolKind::lambda, static_cast<int>(i), name), "a multiplier");
  }
  return names;
}

}  // namespace

Expr read_quantity(const std::string& text, const std::string& option, const Model& model) {
  try {
    return parse(whole_text("command line", text), names_of_output(model));
  } catch (const Error& error) {
    misuse(fmt::format("{} {}: {}", option, text, error.message()),
           error.hint().empty() ? "name a state, a named quantity, a multiplier, or a formula of them" : error.hint());
  }
}

}  // namespace saltus
