// Impulses whose directions depend on what they change: mu*N*tanh(v/eps).
//
//   dx/ds = D(x, sigma) Lambda,  0 <= s <= 1,  x(0) = x-,  x(1) = x+        Y = integral of D(x(s)) ds,  x+ = x- + Y
//   Lambda
//
// The laws of impact are met with Y instead of D(x-); Y depends on Lambda in turn, which is repeated until it does not
// change. Friction opposes the slip all along the path, so that it takes energy whatever its steepness is, and a steep
// function has Coulomb's law as its limit. docs/method/impacts.md
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/linear.hpp"

namespace saltus {

/// D at a point, a column per contact.
using Directions = std::function<Mat(const Vec& x)>;

/// Y of these impulses from x-: extrapolated linearly implicit Euler steps, as the directions may be steep. `moved` are
/// the states that D moves. Nothing comes of a path that leaves where D has values: the answer is then not finite.
Mat mean_directions(const Directions& directions, const Vec& before, std::span<const int> moved, const Vec& impulse);

}  // namespace saltus
