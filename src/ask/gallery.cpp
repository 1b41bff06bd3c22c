#include "ask/gallery.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace saltus {

std::string_view GalleryModel::description() const {
  if (!text.starts_with('#')) return {};
  std::string_view line = text.substr(1, text.find('\n') - 1);
  while (line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

std::optional<GalleryModel> find_in_gallery(std::string_view name) {
  const auto found =
      std::find_if(gallery().begin(), gallery().end(), [&](const GalleryModel& m) { return m.name == name; });
  if (found == gallery().end()) return std::nullopt;
  return *found;
}

std::string nearest_in_gallery(std::string_view word) {
  std::vector<std::string> names;
  for (const GalleryModel& m : gallery()) names.emplace_back(m.name);
  const std::string near = nearest_name(word, names);
  if (!near.empty() || word.size() < 3) return near;
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const std::string& n) { return n.find(word) != n.npos; });
  return found == names.end() ? "" : *found;
}

}  // namespace saltus
