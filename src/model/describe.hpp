// The behaviour of a switch at its surface: whether the flow can slide there, under which condition, and how that ends.
//
// Along the flow the surface function changes at the rate h' = a + b*sigma. The flow slides while sigma = -a/b lies in
// [-hold, hold]; b < 0 draws it to the surface, b > 0 drives it away.
#pragma once

#include <optional>

#include "model/model.hpp"

namespace saltus {

enum class SurfaceKind {
  silent,   ///< the switch moves no state, directly or through others
  kink,     ///< all rates are continuous across the surface
  crossed,  ///< rates jump, but h' does not: the flow goes through
  sliding,  ///< h' jumps: the flow may slide
};

enum class Attraction { attracting, repelling, varying };

struct SurfaceBehaviour {
  SurfaceKind kind = SurfaceKind::silent;
  // Only where the flow may slide:
  Attraction attraction = Attraction::varying;
  Expr push = 0.0;   ///< b, and
  Expr sigma = 0.0;  ///< -a/b, both with the surface put in where it determines a state
};

/// How the flow meets the surface of switch i. "Zero" and "sign" are decided at random points on the surface, near the
/// start, under the given parameters.
SurfaceBehaviour describe_surface(const Model& model, int i, const std::vector<double>& parameters);

/// About how many characters a formula prints to (shared parts count each time they are used).
double printed_size(const Expr& e);

/// "7 points from 0 to 12, linear, held outside"
std::string describe_table(const PointTable& table);

}  // namespace saltus
