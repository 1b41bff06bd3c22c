// Newton's impact law for all contacts that touch at one instant.
//
//   w- = gap rates before,  w+ = w- + W Lambda,  W_ij = grad(g_i') . df/dlambda_j
//   0 <= Lambda  perp  w+ + r w- >= 0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "flow/series.hpp"

namespace saltus {

struct Impact {
  bool solved = false;
  std::vector<bool> closed;  ///< per contact: it takes an impulse and ends without velocity
  std::string message;       ///< why not solved
};

/// Changes x by the impulses of the given contacts (degree 2, touching). `series` has been evaluated at (x, t).
/// Backward in time (direction -1) the law is inverted.
Impact apply_impact(Series& series, std::span<const int> contacts, std::span<double> x, double direction);

}  // namespace saltus
