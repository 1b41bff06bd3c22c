// Every option, described once: the command line and its --help, docs/options.md, the keywords of Python and the names
// in messages are made from this table.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saltus {

struct OptionFact {
  std::string_view name;  ///< as messages and Python call it: `until`
  std::string_view
      flags;  ///< as it is typed, what messages print first: "-n,--points"; VALUES,--vary: also by its place
  std::string_view type;                                ///< of its value: "TIME"; empty: it has none
  std::string_view fallback;                            ///< without it, in words; empty: nothing to say
  std::string_view sentence;                            ///< what it does; empty: accepted, but for `again` alone
  std::string_view commands;                            ///< that take it: "run section"
  std::optional<std::pair<double, double>> range = {};  ///< of a number

  bool applies_to(std::string_view command) const;
  /// True if it may be given several times: NAME=VALUE.
  bool repeats() const { return type.starts_with("NAME="); }
  /// The first flag: "-n".
  std::string flag() const;
  /// "start time (0)"
  std::string words() const;
};

std::span<const OptionFact> option_table();

/// The row of a command; null: it does not take that option.
const OptionFact* find_option(std::string_view name, std::string_view command);

/// The commands that take an option given as typed: "run, section"; empty: there is no such option.
std::string commands_with(std::string_view flag);

/// The words that an option may be, from its type: "auto|taylor|stiff".
std::vector<std::string> words_of(std::string_view name);

/// Complains (usage) about a number outside the range of the option.
void check_range(std::string_view name, double value);

}  // namespace saltus
