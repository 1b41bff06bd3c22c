#include "app/completion.hpp"

#include <algorithm>
#include <filesystem>

#include "app/options.hpp"
#include "ask/gallery.hpp"

namespace saltus {
namespace {

namespace fs = std::filesystem;

using Completions = std::vector<Completion>;

/// Files and folders whose path begins with what is typed; of files only those of one kind, if one is given.
Completions paths(const std::string& typed, const std::string& kind) {
  const size_t slash = typed.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : typed.substr(0, slash + 1);
  Completions found;
  std::error_code trouble;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, trouble), end; !trouble && it != end;
       it.increment(trouble)) {
    const std::string name = it->path().filename().string();
    std::error_code unknown;
    const bool is_folder = it->is_directory(unknown);
    if (name.starts_with('.') || !(is_folder || name.ends_with(kind))) continue;
    found.push_back({folder + name + (is_folder ? "/" : ""), ""});
  }
  return found;
}

Completions models(const std::string& typed) {
  Completions found;
  for (const GalleryModel& model : gallery())
    found.push_back({std::string(model.name), std::string(model.description())});
  const Completions files = paths(typed, ".toml");
  found.insert(found.end(), files.begin(), files.end());
  return found;
}

const KnownOption* find_flag(const KnownCommand& command, const std::string& flag) {
  for (const KnownOption& o : command.options)
    if (std::find(o.flags.begin(), o.flags.end(), flag) != o.flags.end()) return &o;
  return nullptr;
}

/// The line before the word under the cursor.
struct TypedLine {
  std::vector<std::string> places;       ///< arguments without a flag
  const KnownOption* waiting = nullptr;  ///< the option whose value comes next
};

TypedLine read_line(const KnownCommand& command, const std::vector<std::string>& words) {
  TypedLine line;
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    line.waiting = nullptr;
    if (!words[i].starts_with('-') || words[i] == "-") {
      line.places.push_back(words[i]);
    } else if (const KnownOption* o = find_flag(command, words[i]); o && o->values > 0) {
      line.waiting = o;
      if (i + 2 < words.size()) ++i, line.waiting = nullptr;
    }
  }
  return line;
}

std::optional<Model> model_on(const TypedLine& line) {
  if (line.places.empty()) return {};
  try {
    return load_model({.model = line.places.front()});
  } catch (const std::exception&) {
    return {};
  }
}

void add_all(const std::vector<std::string>& names, const std::string& sentence, const std::string& suffix,
             Completions& found) {
  for (const std::string& name : names) found.push_back({name + suffix, sentence});
}

/// Names that the model on the line has, for a value described as NAME=..., or as names.
Completions names_of(const Model& model, const KnownOption& option, const std::string& typed) {
  const std::string about = option.flags.empty() ? option.place : option.flags.back();
  Completions found;
  if (about == "--section") {
    for (const Section& section : model.sections) found.push_back({section.name, "section"});
    return found;
  }
  const bool of_states =
      about == "-x" || about == "--initial" || about == "--axis" || about == "--box" || about == "--at";
  const bool of_parameters = about == "-p" || about == "--parameter" || about == "--vary" || about == "--range-of";
  const bool assigned = option.type.find('=') != std::string::npos || !option.place.empty();
  const std::string suffix = assigned ? "=" : "";
  if (typed.find('=') != std::string::npos) return found;
  if (!of_states) add_all(model.parameter_names(), "parameter", suffix, found);
  if (!of_parameters) add_all(model.state_names(), "state", suffix, found);
  return found;
}

/// The words of a type such as "cells|direct".
Completions choices(const std::string& type) {
  Completions found;
  if (type.find('|') == std::string::npos) return found;
  for (size_t begin = 0; begin <= type.size();) {
    const size_t end = std::min(type.find('|', begin), type.size());
    const std::string word = type.substr(begin, end - begin);
    const bool literal =
        !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
    if (literal) found.push_back({word, ""});
    begin = end + 1;
  }
  return found;
}

Completions values_of(const KnownOption& option, const TypedLine& line, const std::string& typed) {
  if (option.place == "MODEL" || option.place == "NAME") return models(typed);
  if (option.place == "SHELL") return {{"bash", ""}, {"fish", ""}, {"zsh", ""}};
  if (option.type == "DIR" || option.type == "FOLDER") return paths(typed, "/");
  if (option.place == "FILE" || option.type == "FILE") return paths(typed, "");
  if (Completions words = choices(option.type); !words.empty()) return words;
  const bool named = option.type.starts_with("NAME") || option.type.starts_with("Y,") || !option.place.empty() ||
                     option.flags.back() == "--section" || option.flags.back() == "--show" ||
                     option.flags.back() == "--sensitivity" || option.flags.back() == "--of";
  if (const auto model = named ? model_on(line) : std::nullopt) return names_of(*model, option, typed);
  return {};
}

Completions of_command(const KnownCommand& command, const std::vector<std::string>& words) {
  const TypedLine line = read_line(command, words);
  const std::string& typed = words.back();
  if (line.waiting) return values_of(*line.waiting, line, typed);
  Completions found;
  if (typed.starts_with('-') && typed != "-") {
    for (const KnownOption& o : command.options)
      for (const std::string& flag : o.flags)
        if (o.listed && flag.size() > 1) found.push_back({flag, o.sentence});
    return found;
  }
  size_t place = 0;
  for (const KnownOption& o : command.options) {
    if (o.place.empty()) continue;
    if (place == line.places.size() || o.values > 1) return values_of(o, line, typed);
    ++place;
  }
  return found;
}

Completions commands_and_pages(const std::vector<KnownCommand>& commands) {
  Completions found;
  for (const KnownCommand& c : commands) found.push_back({c.name, c.summary});
  return found;
}

const char* const bash_script = R"(# saltus completion bash > ~/.local/share/bash-completion/completions/saltus
_saltus() {
  local line="${COMP_LINE:0:COMP_POINT}" words word candidate
  read -ra words <<< "$line"
  [[ $line == *' ' ]] && words+=("")
  word="${words[-1]}"
  # Bash cuts words at = and : and replaces what stands behind the last of them.
  local kept="${word%"${word##*[=:]}"}"
  COMPREPLY=()
  while IFS=$'\t' read -r candidate _; do
    COMPREPLY+=("${candidate#"$kept"}")
  done < <("${words[0]}" completion --of "${words[@]:1}" 2>/dev/null)
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -o default -F _saltus saltus
)";

const char* const zsh_script = R"(#compdef saltus
# saltus completion zsh > a file _saltus in a folder of $fpath
_saltus() {
  local -a found assigned
  local candidate sentence
  while IFS=$'\t' read -r candidate sentence; do
    candidate="${candidate//:/\\:}"
    if [[ $candidate == *[=/] ]]; then assigned+=("$candidate:$sentence"); else found+=("$candidate:$sentence"); fi
  done < <("${words[1]}" completion --of "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( $#found )) && _describe -o saltus found
  (( $#assigned )) && _describe -o saltus assigned -S ''
  (( $#found + $#assigned )) || _files
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _saltus "$@"; else compdef _saltus saltus; fi
)";

const char* const fish_script = R"(# saltus completion fish > ~/.config/fish/completions/saltus.fish
function __saltus_candidates
  set -l words (commandline -opc) (commandline -ct)
  $words[1] completion --of $words[2..-1] 2>/dev/null
end
complete -c saltus -a '(__saltus_candidates)'
)";

}  // namespace

std::vector<Completion> candidates(const std::vector<KnownCommand>& commands, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  Completions all;
  if (words.size() == 1) {
    all = commands_and_pages(commands);
    all.insert(all.end(),
               {{"help", "the options of a command"}, {"--help", "all commands"}, {"--version", "the version"}});
  } else if (words[0] == "help") {
    if (words.size() == 2) all = commands_and_pages(commands), all.push_back({"options", "all of them"});
  } else {
    for (const KnownCommand& c : commands)
      if (c.name == words[0]) all = of_command(c, words);
  }
  Completions fitting;
  for (Completion& c : all)
    if (c.word.starts_with(words.back())) fitting.push_back(std::move(c));
  std::sort(fitting.begin(), fitting.end(), [](const Completion& a, const Completion& b) { return a.word < b.word; });
  fitting.erase(std::unique(fitting.begin(), fitting.end(),
                            [](const Completion& a, const Completion& b) { return a.word == b.word; }),
                fitting.end());
  return fitting;
}

std::optional<std::string> completion_script(const std::string& shell) {
  if (shell == "bash") return bash_script;
  if (shell == "zsh") return zsh_script;
  if (shell == "fish") return fish_script;
  return {};
}

}  // namespace saltus
