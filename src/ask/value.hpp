// Values given as text: a number, a formula in parameters, NAME=VALUE; and how a complaint names an option.
//
// Below `app` an option is called by its name in backquotes: "`dt` -1 is no step". Who shows the message may put his
// own spelling there: the command line writes --dt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/model.hpp"

namespace saltus {

/// A number, kept to its last digit, or a formula in parameters and constants.
struct Formula {
  std::string text;

  Formula(double number);
  Formula(std::string formula) : text(std::move(formula)) {}
  Formula(const char* formula) : text(formula) {}
};

/// A name and its value: a number, or a formula.
struct Setting {
  std::string name = {};
  std::string value = {};

  Setting() = default;
  Setting(std::string of, Formula is) : name(std::move(of)), value(std::move(is.text)) {}
};

/// Wrong use: what is wrong, and what to do instead.
[[noreturn]] void misuse(std::string message, std::string hint);

/// Complains (usage) about a word that is not among the known ones.
void check_word(const std::string& word, const std::vector<std::string>& known, std::string_view what);

/// Splits NAME=VALUE; `option` is for the complaint, and so is the hint, where an option has none of its own.
Setting read_setting(std::string_view text, std::string_view option, std::string_view hint = {});

/// The value of a constant expression given to an option.
double read_number(const std::string& text, std::string_view option);

/// The value of a formula in the model's parameters given to an option.
double read_number(const std::string& text, std::string_view option, const Model& model);

/// A formula in the model's parameters; `given` is what a complaint quotes.
Expr read_formula(const std::string& text, std::string_view given, const Model& model);

/// "`dt`" in messages as somebody spells it: `spell` gives the spelling of a name, or "" for one it does not know.
template <class Spell>
std::string spell_options(std::string_view message, const Spell& spell) {
  std::string out;
  while (!message.empty()) {
    const size_t open = message.find('`'), close = open == message.npos ? open : message.find('`', open + 1);
    if (close == message.npos) break;
    const std::string word = spell(message.substr(open + 1, close - open - 1));
    out += message.substr(0, open);
    out += word.empty() ? std::string(message.substr(open, close + 1 - open)) : word;
    message.remove_prefix(close + 1);
  }
  return out + std::string(message);
}

}  // namespace saltus
