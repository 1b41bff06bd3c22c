// The last moment before rest of a vector switch, and a passage so near to it that time cannot tell: forces are frozen,
// directions are not.
//
//   h_k' = W_k - sum_j A_kj h_j/|h_j|,     dt = r ds,     r the least |h_k|
//
// In s the directions turn at their own pace and r falls or grows exponentially: docs/method/vector_friction.md
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "flow/moment.hpp"
#include "flow/series.hpp"

namespace saltus {

struct FrozenEnd {
  double time = 0;          ///< until then
  std::vector<double> x{};  ///< states there
  std::vector<int>
      rests{};  ///< vector switches whose h is zero there; none: they have passed, and are as far as before
};

/// From here, with the vector switches `near` slipping towards rest; nothing where the equations have no value, or
/// nothing comes of it in many steps.
std::optional<FrozenEnd> follow_to_rest(Series& series, const Moment& now, std::span<const int> near, double direction);

}  // namespace saltus
