#include "app/options.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ask/gallery.hpp"
#include "ask/option_table.hpp"
#include "ask/past.hpp"
#include "ask/system.hpp"
#include "expr/print.hpp"
#include "model/read.hpp"

namespace saltus {
ModelSource find_model(const std::string& name) {
  if (name == "-") return {"standard input", read_all(std::cin, "standard input")};
  std::error_code ignored;
  const bool shadow = std::filesystem::is_directory(name, ignored) && find_in_gallery(name);
  if (std::filesystem::exists(name, ignored) && !shadow) {
    const auto past = read_past(name);
    return past ? ModelSource{name, past->model, past->start} : ModelSource{name};
  }
  if (const auto found = find_in_gallery(name)) return {name, std::string(found->text)};
  const std::string near = nearest_in_gallery(short_name(name));
  if (near.empty()) return {name};  // reading says why it cannot be opened
  throw Error(
      ErrorKind::file, fmt::format("there is no file '{}'", name), {},
      fmt::format("the gallery has '{}': 'saltus examples {} > {}.toml' writes it to a file", near, near, near));
}

std::string as_flags(std::string_view message) {
  constexpr std::array<std::string_view, 4> commands{"check", "examples", "again", "run"};
  const std::span<const OptionFact> options = option_table();
  return spell_options(message, [&](std::string_view name) -> std::string {
    const auto option = std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.name == name; });
    if (option != options.end()) return option->flag();
    if (std::find(commands.begin(), commands.end(), name) != commands.end()) return fmt::format("'saltus {}'", name);
    return "";
  });
}

void OutputOptions::check() const {
  if (force && folder.empty())
    misuse("--force without -o: there is nothing to replace", "name the folder whose results are replaced: -o DIR");
  check_word(format, {"csv", "h5"}, "format");
  const std::string kind = std::filesystem::path(picture).extension().string();
  if (!picture.empty() && kind != ".svg" && kind != ".png" && kind != ".pdf")
    misuse(fmt::format("--plot {}: unknown kind of picture", picture), "name a file .svg, .png or .pdf");
}

Model load_model(const ModelOptions& options, const std::optional<Formula>& from) {
  return make_model(find_model(options.model), {options.parameters, options.initial, options.as_given, from});
}

System load_system(const ModelOptions& options, const std::optional<Formula>& from) {
  return System(find_model(options.model), {options.parameters, options.initial, options.as_given, from},
                short_name(options.model));
}

}  // namespace saltus
