#include "studio/assets.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace saltus {

const Asset* find_asset(std::string_view target) {
  if (target == "/") target = "/index.html";
  for (const Asset& asset : assets()) {
    if (asset.path == target) return &asset;
  }
  return nullptr;
}

std::string content_of(const Asset& asset) {
  if (const char* folder = std::getenv("SALTUS_WEB")) {
    std::ifstream file(folder + std::string(asset.path), std::ios::binary);
    if (file) return {std::istreambuf_iterator<char>(file), {}};
  }
  return std::string(asset.bytes);
}

}  // namespace saltus
