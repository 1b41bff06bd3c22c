// Numbers from one list to another that usually has as many: without a call where nothing has to be allocated.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

namespace saltus {

inline void copy_numbers(std::span<const double> from, std::vector<double>& to) {
  if (from.size() != to.size()) return to.assign(from.begin(), from.end());
  std::copy(from.begin(), from.end(), to.begin());
}

}  // namespace saltus
