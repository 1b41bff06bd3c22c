#include <algorithm>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "ask/gallery.hpp"

namespace saltus {
namespace {

std::string list_gallery() {
  size_t width = 0;
  for (const GalleryModel& m : gallery()) width = std::max(width, m.name.size());
  std::string out;
  for (const GalleryModel& m : gallery()) out += fmt::format("{:{}}  {}\n", m.name, width, m.description());
  return out;
}

}  // namespace

Outcome examples(const ExamplesOptions& options) {
  if (options.name.empty()) return {list_gallery()};
  if (const auto found = find_in_gallery(options.name)) return {std::string(found->text)};
  const std::string near = nearest_in_gallery(options.name);
  throw Error(ErrorKind::usage, fmt::format("the gallery has no model '{}'", options.name), {},
              near.empty() ? "'saltus examples' lists all models" : fmt::format("did you mean '{}'?", near));
}

}  // namespace saltus
