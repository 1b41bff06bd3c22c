// A few numbers and the sign of one.
#pragma once

#include <limits>

namespace saltus {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double eps = std::numeric_limits<double>::epsilon();

inline int sign_of(double v) { return (v > 0) - (v < 0); }

}  // namespace saltus
