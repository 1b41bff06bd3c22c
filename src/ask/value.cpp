#include "ask/value.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "expr/parse.hpp"
#include "expr/print.hpp"
#include "model/build.hpp"

namespace saltus {
namespace {

/// A formula given to an option. Its mistakes are mistakes of who gave it, quoted whole.
Expr read_formula(const std::string& text, const std::string& given, const Names& names) {
  try {
    return parse(whole_text("command line", text), names);
  } catch (const Error& error) {
    if (text.find("..") != std::string::npos)
      misuse(fmt::format("{}: ranges have colons", given), "write them as 0.5:3, or 0.5:3:400 for 400 values");
    const bool near = error.hint().starts_with("did you mean");
    misuse(fmt::format("{}: {}", given, error.message()),
           near ? error.hint() : "give a number or a constant expression such as 1/3 or 2*pi");
  }
}

double finite(double value, const std::string& given) {
  if (!std::isfinite(value)) misuse(fmt::format("{} is {}", given, print_number(value)), "give a finite number");
  return value;
}

Names constants() {
  Names names;
  names.forbid("t", "the value must be constant");
  return names;
}

Names constants_and_parameters(const Model& model) {
  Names names = constants();
  for (const PointTable& t : model.tables) names.add_function(t.name, table_function(t));
  for (size_t i = 0; i < model.parameters.size(); ++i)
    names.add(model.parameters[i].name, parameter_symbol(model, static_cast<int>(i)), "a parameter");
  for (size_t i = 0; i < model.definitions.size(); ++i) {
    const Expr& value = model.form.definitions[i];
    const auto used = symbols_in(std::span(&value, 1));
    if (std::all_of(used.begin(), used.end(), is_constant))
      names.add(model.definitions[i].name, value, "a name with an equation");
  }
  return names;
}

}  // namespace

void misuse(std::string message, std::string hint) {
  throw Error(ErrorKind::usage, std::move(message), {}, std::move(hint));
}

Formula::Formula(double number) : text(print_number(number)) {}

void check_word(const std::string& word, const std::vector<std::string>& known, std::string_view what) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  const std::string near = nearest_name(word, known);
  misuse(fmt::format("unknown {} '{}'", what, word),
         near.empty() ? fmt::format("known: {}", fmt::join(known, ", ")) : fmt::format("did you mean '{}'?", near));
}

Setting read_setting(std::string_view text, std::string_view option, std::string_view hint) {
  const size_t equals = text.find('=');
  const auto trim = [](std::string_view s) {
    while (s.starts_with(' ')) s.remove_prefix(1);
    while (s.ends_with(' ')) s.remove_suffix(1);
    return std::string(s);
  };
  Setting s{trim(text.substr(0, equals)), equals == text.npos ? "" : trim(text.substr(equals + 1))};
  if (equals == text.npos || s.name.empty() || s.value.empty())
    misuse(option.empty() ? fmt::format("'{}' is not NAME=VALUES", text)
                          : fmt::format("{} {}: this is not NAME=VALUE", option, text),
           hint.empty() ? fmt::format("write {} NAME=0.3", option) : std::string(hint));
  return s;
}

double read_number(const std::string& text, std::string_view option) {
  const std::string given = fmt::format("{} {}", option, text);
  return finite(constant_value(read_formula(text, given, constants()), {}), given);
}

double read_number(const std::string& text, std::string_view option, const Model& model) {
  const std::string given = fmt::format("{} {}", option, text);
  return finite(constant_value(read_formula(text, given, constants_and_parameters(model)), parameter_values(model)),
                given);
}

Expr read_formula(const std::string& text, std::string_view given, const Model& model) {
  return read_formula(text, std::string(given), constants_and_parameters(model));
}

}  // namespace saltus
