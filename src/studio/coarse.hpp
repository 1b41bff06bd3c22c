// The order in which a diagram fills: recognisable after a few values, complete after all.
#pragma once

#include <cstddef>
#include <vector>

namespace saltus {

/// First, last, middle, quarters, eighths, ...: each value once.
inline std::vector<double> coarse_to_fine(const std::vector<double>& values) {
  std::vector<double> out;
  if (values.empty()) return out;
  const std::size_t last = values.size() - 1;
  std::vector<char> taken(values.size(), 0);
  const auto take = [&](std::size_t i) {
    if (!taken[i]) out.push_back(values[i]);
    taken[i] = 1;
  };
  take(0);
  take(last);
  for (std::size_t parts = 2; out.size() < values.size(); parts *= 2) {
    for (std::size_t k = 1; k < parts; k += 2) take(last * k / parts);
    if (parts > 2 * values.size()) {
      for (std::size_t i = 0; i <= last; ++i) take(i);
    }
  }
  return out;
}

}  // namespace saltus
