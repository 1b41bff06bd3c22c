// Radau IIA collocation: what a step of s stages needs, whatever its equations are.
//
//   p of degree s with p(0) = x, p'(c_i h) = f(p(c_i h));   Z_i = p(c_i h) - x solves Z = h A F(x + Z)
//   A^-1 = T diag(mu) T^-1: one mu is real, the others come in pairs, so that Newton's method falls apart into
//   (s + 1)/2 systems (mu_k/h - J) dw_k = r_k in the unknowns w = T^-1 Z
//
// Errors are of order 2s at the end of a step and s + 1 within; docs/method/stiff.md.
#pragma once

#include <complex>
#include <vector>

namespace saltus {

struct Radau {
  using Complex = std::complex<double>;

  int stages = 0;
  std::vector<double> c;      ///< where the stages are, the last one at 1
  std::vector<double> A;      ///< row after row
  std::vector<Complex> mu;    ///< the real one, then one of each pair
  std::vector<Complex> to;    ///< [k * stages + i]: w_k = sum to Z_i
  std::vector<Complex> from;  ///< [k * stages + i]: Z_i = Re from w_0 + 2 Re sum of from w_k, k > 0
  /// [(k - 1) * stages + i]: what Z_i adds to the coefficient of (tau/h)^k of p; what they add cancels, up to four
  /// digits.
  std::vector<long double> powers;
  std::vector<double> compare;  ///< sum of compare Z_i + h f(x)/mu_0: distance to a formula of order s
  double between = 0;           ///< where p, which is exact at the stages, is farthest from them: a share of the step
};

/// The Radau method of 3, 5 or 7 stages; made on first use.
const Radau& radau(int stages);

}  // namespace saltus
