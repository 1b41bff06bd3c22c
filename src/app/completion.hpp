// Completion of command lines: words typed so far in, words that may stand next out. The scripts that shells read ask
// the program itself, so that they know its options, the gallery, and the model on the line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/known_command.hpp"

namespace saltus {

struct Completion {
  std::string word, sentence;

  bool operator==(const Completion&) const = default;
};

/// Words that may replace the last of `words`, which may be empty; all begin with it. `words` are without "saltus".
std::vector<Completion> candidates(const std::vector<KnownCommand>& commands, const std::vector<std::string>& words);

/// The script for a shell: "bash", "zsh" or "fish"; none for others.
std::optional<std::string> completion_script(const std::string& shell);

}  // namespace saltus
