// How small a state has become together with those it vanishes with (model/vanishing): what its errors are compared
// with shrinks with them. A single one of them may pass zero.
#pragma once

#include <algorithm>
#include <cmath>

#include "model/program.hpp"

namespace saltus {

/// The largest of |x_j| / largest_j among them; 1 for a state that does not vanish. `x`, `largest`: called with a
/// state.
template <class X, class Largest>
double present_share(const Program& program, int i, const X& x, const Largest& largest) {
  if (program.vanishing(i).empty()) return 1;
  double share = 0;
  for (const int j : program.vanishing(i)) {
    if (largest(j) > 0) share = std::max(share, std::abs(x(j)) / largest(j));
  }
  return share;
}

}  // namespace saltus
