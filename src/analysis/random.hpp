// Random numbers that belong to a place, not to a moment: the same whichever thread or rank asks for them, and when.
#pragma once

#include <cstdint>

namespace saltus {

/// A uniform number in [0, 1) for a seed and two indices (splitmix64).
inline double random_number(std::uint64_t seed, std::uint64_t i, std::uint64_t k) {
  std::uint64_t z = seed;
  for (const std::uint64_t part : {i, k}) {
    z += 0x9e3779b97f4a7c15u * (part + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
  }
  return static_cast<double>(z >> 11) * 0x1p-53;
}

}  // namespace saltus
