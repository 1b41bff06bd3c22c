// Where two curves of one zero problem meet: F(z) = 0 with F_z of one rank less, found together with both directions.
//
//   F(z) + beta d = 0,  t.(z - z0) = s,  q.(z - z0) = y      d, q: null vectors nearby, t: along the curve that is
//   known
//
// has one solution for all small s and y, also where the curves meet; both are beta(s, y) = 0, and they meet where beta
// has a saddle. beta's slopes are exact, those of them differences: they decide how fast it is found, not where.
#pragma once

#include <optional>

#include "analysis/continuation.hpp"

namespace saltus {

struct CurveCrossing {
  Vec z;
  Vec along, other;  ///< directions of the curve that is known and of the other one, unit in units of the scale
};

/// From a point of one curve near the place, and one farther away, whose tangent is that curve's; nothing if no other
/// curve is met there.
std::optional<CurveCrossing> find_crossing(const Followed& followed, const Vec& scale, const CurvePoint& near,
                                           const CurvePoint& away);

}  // namespace saltus
