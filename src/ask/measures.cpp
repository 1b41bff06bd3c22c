#include "ask/measures.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "ask/value.hpp"
#include "expr/parse.hpp"
#include "expr/print.hpp"
#include "model/build.hpp"

namespace saltus {
namespace {

constexpr std::array<std::pair<std::string_view, Measure::Kind>, 6> kinds{{{"mean", Measure::Kind::mean},
                                                                           {"rms", Measure::Kind::rms},
                                                                           {"pp", Measure::Kind::pp},
                                                                           {"min", Measure::Kind::min},
                                                                           {"max", Measure::Kind::max},
                                                                           {"above", Measure::Kind::above}}};
constexpr const char* example = "write mean(x), rms(x), pp(x), min(x), max(x) or above(x, 0.5)";

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

/// The place of the last comma outside brackets.
size_t last_comma(const std::string& text) {
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')' || text[i] == ']') ++depth;
    if (text[i] == '(' || text[i] == '[') --depth;
    if (text[i] == ',' && depth == 0) return i;
  }
  return text.npos;
}

/// The names of a formula: columns as arguments, parameters as themselves.
Names names_of(const Model& model, const std::vector<std::string>& columns) {
  Names names;
  for (size_t i = 0; i < model.parameters.size(); ++i)
    names.add(model.parameters[i].name, parameter_symbol(model, static_cast<int>(i)), "a parameter");
  for (size_t c = 1; c < columns.size(); ++c) {
    if (columns[c].find('(') != std::string::npos) continue;  // sigma(v) stands alone
    names.add(columns[c], Expr::symbol(SymbolKind::argument, static_cast<int>(c), columns[c]), "a quantity");
  }
  names.explain("a quantity is a state, a name with an equation of its own, a multiplier, or sigma(SURFACE)");
  return names;
}

Measure read_measure_text(const std::string& text, const Model& model, const std::vector<std::string>& columns) {
  const std::string given = fmt::format("`measure` {}", text);
  const size_t open = text.find('(');
  const std::string word = without_spaces(text.substr(0, open));
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == word; });
  const size_t close = text.find_last_not_of(' ');
  if (open == text.npos || kind == kinds.end() || text[close] != ')') {
    std::vector<std::string> known;
    for (const auto& k : kinds) known.emplace_back(k.first);
    const std::string near = open == text.npos ? "" : nearest_name(word, known);
    misuse(fmt::format("{}: this is no measure", given),
           near.empty() || near == word ? example : fmt::format("did you mean '{}'?", near));
  }
  std::string inner = text.substr(open + 1, close - open - 1);
  const auto formula = [&](const std::string& part) {
    try {
      return parse(whole_text("command line", part), names_of(model, columns));
    } catch (const Error& error) {
      misuse(fmt::format("{}: {}", given, error.message()), error.hint());
    }
  };
  Measure out{.name = without_spaces(text), .kind = kind->second};
  if (out.kind == Measure::Kind::above) {
    const size_t comma = last_comma(inner);
    if (comma == inner.npos) misuse(fmt::format("{}: above what level?", given), "write above(x, 0.5)");
    out.level = formula(inner.substr(comma + 1));
    for (const Expr& s : symbols_in(std::span(&out.level, 1))) {
      if (s.symbol().kind != SymbolKind::parameter)
        misuse(fmt::format("{}: a level is constant", given), "write a number or a formula in parameters");
    }
    inner.resize(comma);
  }
  const auto column = std::find_if(columns.begin(), columns.end(),
                                   [&](const std::string& c) { return without_spaces(c) == without_spaces(inner); });
  if (column != columns.end()) {
    out.column = static_cast<int>(column - columns.begin());
  } else {
    out.formula = formula(inner);
  }
  return out;
}

}  // namespace

std::vector<Measure> read_measures(const std::vector<std::string>& texts, const Model& model) {
  const std::vector<std::string> columns = quantity_names(model);
  std::vector<Measure> out;
  for (const std::string& text : texts) {
    Measure m = read_measure_text(text, model, columns);
    const auto same = [&](const Measure& other) { return other.name == m.name; };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back(std::move(m));
  }
  return out;
}

}  // namespace saltus
