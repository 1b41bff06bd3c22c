// The models that come with saltus, inside the program: they are there wherever it is installed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saltus {

struct GalleryModel {
  std::string_view name;  ///< of its folder in models/
  std::string_view text;  ///< its model.toml

  /// The first comment line: what it is, in one sentence.
  std::string_view description() const;
};

/// All gallery models by name. Written at build time from models/*/model.toml (cmake/gallery.cmake).
const std::vector<GalleryModel>& gallery();

/// The model of that name, or none.
std::optional<GalleryModel> find_in_gallery(std::string_view name);

/// The name that was probably meant: a misspelt one, or the first that contains the word; "" if there is none.
std::string nearest_in_gallery(std::string_view word);

}  // namespace saltus
