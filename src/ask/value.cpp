#include "ask/value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "expr/parse.hpp"
#include "expr/print.hpp"
#include "model/build.hpp"

namespace saltus {
namespace {

/// The factor of an SI prefix and unit behind a number: "u", "ms", "kHz", "uF"; nothing for what is none.
std::optional<double> scale_of(std::string_view suffix) {
  constexpr std::array<std::string_view, 16> units{"",  "s", "Hz", "V",  "A",  "F", "H",   "Ohm",
                                                   "W", "J", "N",  "Nm", "Pa", "K", "rad", "C"};
  constexpr std::array<std::pair<std::string_view, double>, 9> prefixes{{{"f", 1e-15},
                                                                         {"p", 1e-12},
                                                                         {"n", 1e-9},
                                                                         {"u", 1e-6},
                                                                         {"µ", 1e-6},
                                                                         {"m", 1e-3},
                                                                         {"k", 1e3},
                                                                         {"M", 1e6},
                                                                         {"G", 1e9}}};
  const auto is_unit = [&](std::string_view s) { return std::find(units.begin(), units.end(), s) != units.end(); };
  if (is_unit(suffix)) return 1;
  for (const auto& [prefix, factor] : prefixes) {
    if (suffix.starts_with(prefix) && (is_unit(suffix.substr(prefix.size())) || suffix.substr(prefix.size()) == "m"))
      return factor;
  }
  return std::nullopt;
}

/// A number as engineers write it, 4.7uF, as one that a formula has: 4.7*1e-06; anything else as it is. Where the
/// suffix is a name, it is not touched: 2m is not 2*m, but it might be meant.
std::string without_prefix(const std::string& text, const Names& names) {
  size_t from = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  if (from == text.npos) return text;
  const size_t digits = text.find_first_not_of("+-", from);
  double number = 0;
  if (digits == text.npos || digits > from + 1) return text;
  const auto [rest, trouble] = std::from_chars(text.data() + digits, text.data() + end + 1, number);
  if (trouble != std::errc()) return text;
  std::string_view suffix(rest, static_cast<size_t>(text.data() + end + 1 - rest));
  while (suffix.starts_with(' ')) suffix.remove_prefix(1);
  if (suffix.empty() || names.find(std::string(suffix))) return text;
  const auto scale = scale_of(suffix);
  if (!scale) return text;
  const std::string digits_alone = text.substr(from, static_cast<size_t>(rest - text.data()) - from);
  if (*scale == 1) return digits_alone;
  return *scale > 1 ? fmt::format("{}*{:.0f}", digits_alone, *scale)
                    : fmt::format("{}/{:.0f}", digits_alone, 1 / *scale);  // 4.7/1000000 is right to the last digit
}

/// A formula given to an option. Its mistakes are mistakes of who gave it, quoted whole.
Expr read_formula(const std::string& text, const std::string& given, const Names& names) {
  try {
    return parse(whole_text("command line", without_prefix(text, names)), names);
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
