// Which coefficient rules a series just after zero.
#pragma once

#include "flow/thresholds.hpp"

#include <algorithm>
#include <cmath>

namespace saltus {

/// The first coefficient that rules a series just after zero: its index and the sign it gives (0: none up to `last`).
struct Leading {
  int index = 0;
  int sign = 0;
};

/// "Rules" compares times: a coefficient counts if it rules later than a negligible share of `time_scale`.
/// `noise`: rounding error of the first coefficient.
inline Leading leading_coefficient(const double* c, int first, int last, double time_scale, double direction,
                                   double noise = 0) {
  const double soon = negligible_time * time_scale;
  for (int k = 1; k < first; ++k) noise /= time_scale;
  for (int k = first; k <= last; ++k) {
    const double least = k > 0 ? noise : 0;  // rounding in h' is in all that follows from it
    if (k > 0) noise /= time_scale;
    if (!std::isfinite(c[k]) || c[k] == 0) continue;
    double later = 0, power = soon;
    for (int j = k + 1; j <= last; ++j, power *= soon) {
      if (std::isfinite(c[j])) later = std::max(later, std::abs(c[j]) * power);
    }
    if (!(std::abs(c[k]) > std::max(later, least))) continue;
    const double sign = (c[k] > 0 ? 1.0 : -1.0) * (direction < 0 && k % 2 ? -1.0 : 1.0);
    return {k, sign > 0 ? 1 : -1};
  }
  return {last + 1, 0};
}

/// When a series falls to zero, from its first coefficients; not positive if it does not. At the end of h' = -h^p the
/// tangent is as many times too short as the root has multiplicity, 1/(1 - p).
inline double time_to_zero(const double* c, double direction) {
  const double along = -c[0] / c[1] * direction, power = 2 * c[0] * c[2] / (c[1] * c[1]);
  return along / (1 - std::clamp(power, 0.0, steepest_power));
}

}  // namespace saltus
