// The usual answer of a search for roots, settled in one box: a polynomial on a step that has no root, or crosses.
//
//   p = q + r on the step, q its first 8, 12, 16 or 24 terms, |r| <= R the sum of the others
//   |p(0)| exceeds everything else: no root
//   E = R + N + rounding;  zones of the Bernstein coefficients of q: above E, between, below -E
//   all in one zone: no root
//   from one side to the other: q passes E and -E once each. A root s of p with p'(s)^2 > 8 E max |p''| is then the
//     only one: p is monotone wherever |q| <= E
//   over to the other side and back: the same up to a point where p is known to be on the other side
//
// Whatever does not fit is left to the walk (solve/polynomial).
#pragma once

#include <span>

#include "solve/polynomial.hpp"

namespace saltus {

/// The first zero of p(tau) = sum c[k] tau^k on (0, h]; `unclear` where that is not certain. `noise`: its absolute
/// uncertainty.
Root settle_in_one_box(std::span<const double> c, double h, double noise);

}  // namespace saltus
