// Indices of models are plain ints, those of containers unsigned, those of matrices signed.
#pragma once

#include <cstddef>

namespace saltus {

inline std::size_t at(int i) { return static_cast<std::size_t>(i); }
inline std::size_t ux(std::ptrdiff_t i) { return static_cast<std::size_t>(i); }
inline std::ptrdiff_t ix(std::size_t i) { return static_cast<std::ptrdiff_t>(i); }

}  // namespace saltus
