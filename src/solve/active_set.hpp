// Block principal pivoting for box problems: the common kernel of solve_lcp, solve_box and solve_relay.
//   guess a state (lower, inside, upper) for every variable
//   repeat:
//     solve M_ff x_f = -(q + M_fc x_c)_f for the inside ones; w = M x + q
//     V = variables with x_i outside its bounds, or at a bound with w_i of the wrong sign
//     stop if V is empty; move all of V to where they belong, or only the last one if V has not shrunk for a while
// The last rule makes the method finite for P-matrices (Murty; Judice and Pires).
#pragma once

#include <vector>

#include "base/linear.hpp"
#include "solve/active_factor.hpp"
#include "solve/box.hpp"

namespace saltus {

/// Units in which errors are measured: row i of w, and the effect of x_j on the row it changes most.
struct BoxScales {
  Vec row, effect;
};

template <class Matrix>
BoxScales box_scales(const Matrix& M, const Vec& q, const Vec& x);
/// Solves with row = |q| + |M| |x| given; the effects of variables without bounds do not matter.
template <class Matrix>
BoxScales box_scales(const Matrix& M, Vec row, const Vec& x, const Vec& lo, const Vec& hi);

double box_residual(const BoxScales& scales, const Vec& lo, const Vec& hi, const Vec& x, const Vec& w);

struct ActiveSetLimits {
  double tolerance = 1e-13;
  int iterations = 100;
  int patience = 8;          ///< block steps without progress before single ones
  bool single_steps = true;  ///< false: give up where single steps would begin
};

struct ActiveSetResult {
  Vec x, w;
  BoxScales scales;  ///< by which the residual was measured
  double residual = 0;
  int iterations = 0;
  bool converged = false;
  bool singular = false;  ///< a least-norm solution was used in the last step
};

template <class Matrix>
ActiveSetResult active_set(const Matrix& M, const Vec& q, const Vec& lo, const Vec& hi, std::vector<BoundState> state,
                           const ActiveSetLimits& limits, ActiveFactor& factor);

/// The states that a point suggests: at a bound if x_i - w_i (in their units) is beyond it.
std::vector<BoundState> states_of(const BoxScales& scales, const Vec& lo, const Vec& hi, const Vec& x, const Vec& w);

}  // namespace saltus
