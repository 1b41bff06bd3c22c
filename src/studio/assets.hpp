// The files of the page, inside the program: what is not in this table cannot be had.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saltus {

struct Asset {
  std::string_view path;  ///< "/studio.js"
  std::string_view type;  ///< of its content
  std::string_view bytes;
};

/// All files of the page. Written at build time from web/ (cmake/web.cmake).
std::span<const Asset> assets();

/// The asset that a request names ("/" is the page), or none.
const Asset* find_asset(std::string_view target);

/// The content served for an asset: the bytes in the program or, for people who work on the page, of the file of that
/// name in the folder that the environment variable SALTUS_WEB names.
std::string content_of(const Asset& asset);

}  // namespace saltus
