// The leftmost real root of a polynomial on a step: coefficients and an interval in, the first crossing or touch out.
//
//   strip the known zeros at tau = 0
//   if one box settles it (solve/one_box): that                           nearly always
//   if |c_0| exceeds everything else on the step: no root
//   scale tau by a power of two (exact), so that the step ends between 1 and 2
//   walk from the left in boxes [a, b]:
//     expand p at a; a box is settled if p passes each edge of the band |p| <= N at most once in it
//     not settled: halve the box;  settled: note sign or band, go on from b with a box twice as wide
//     the sign changed: polish the crossing
//     p entered the band and came out on the same side: compare its minimum with N
//
// N(tau) = noise + 4 eps sum |c_k tau^k| is the uncertainty of p: what happens inside the band is rounding.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace saltus {

/// Coefficients beyond this degree are a bug of the caller.
inline constexpr int max_degree = 40;

/// A tangent touches zero within the uncertainty N without changing sign.
/// `unclear`: only where one box was to settle it, and could not (solve/one_box).
enum class RootKind : std::uint8_t { none, crossing, tangent, unclear };

/// A root, as small as two registers: nearly every answer is `none`, and is not worth a way through memory.
struct Root {
  double at = 0;  ///< tau of the root; for a tangent the minimum of |p|
  RootKind kind = RootKind::none;
  bool last = false;   ///< nothing follows it on the step; false also where nobody has looked for that
  int sign_after = 0;  ///< sign of p just after the root, +1 or -1; 0 for none
};

/// Where to look, and what is known beforehand.
struct RootSearch {
  double h = 0;         ///< end of the step, included; may be negative, then "after" means further away from 0
  double from = 0;      ///< start of the search, excluded; between 0 and h
  int known_zeros = 0;  ///< c[0 .. known_zeros-1] are zero by knowledge, whatever rounding left in them
  double noise = 0;     ///< absolute uncertainty of p; with known zeros that at h, shrinking as (tau/h)^known_zeros
};

/// The first root of p(tau) = sum c[k] tau^k after `from`, up to and including h.
/// - At from = 0 the sign of the first coefficient that is neither known to be zero nor zero counts, however small it
/// is.
///   At another `from` a value within N is a root at `from`, and everything until p leaves the band belongs to that
///   root.
/// - At a crossing before h, p(at) is zero or has its new sign already.
/// - A value within N at h, reached from outside the band, is a root at h.
/// - No root: p identically zero, a coefficient or h that is not finite, `from` not before h.
Root leftmost_root(std::span<const double> c, const RootSearch& search);
/// The first root on (0, h], the most frequent call.
Root first_root(const double* c, std::size_t count, double h, int known_zeros, double noise);

/// A root of the whole polynomial beside one that was found without its known zeros: these are what rounding has left
/// of an earlier root, and taken for zero they would never go. One step of Newton's method, where that is not longer
/// than `resolution`; otherwise `at`.
double with_known_zeros(std::span<const double> c, int known_zeros, double at, double resolution);

/// p(tau), as if computed in twice the precision and then rounded.
double evaluate(std::span<const double> c, double tau);

/// p(tau) as plain arithmetic gives it: the value of evaluate_with_slope.
double evaluate_plainly(std::span<const double> c, double tau);

struct ValueAndSlope {
  double value = 0, slope = 0;
};
/// p(tau) and dp/dtau as plain arithmetic gives them.
ValueAndSlope evaluate_with_slope(std::span<const double> c, double tau);
/// Value and slope at two points.
std::array<ValueAndSlope, 2> evaluate_with_slope(std::span<const double> c, double tau, double other);

/// sum |c_k| s^k, s >= 0
double magnitude(std::span<const double> c, double s);

/// dp/dtau, with an error of a few eps sum |k c_k tau^(k-1)| at most.
double evaluate_derivative(std::span<const double> c, double tau);

}  // namespace saltus
