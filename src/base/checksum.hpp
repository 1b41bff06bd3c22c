// Bytes to a number: to tell whether a file is what it was.
#pragma once

#include <cstdint>
#include <string_view>

namespace saltus {

/// A number that differs, but for chance, where the bytes differ (FNV-1a, 64 bits).
constexpr std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t sum = 0xcbf29ce484222325u;
  for (const char c : bytes) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return sum;
}

}  // namespace saltus
