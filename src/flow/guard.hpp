// A function whose zero ends a smooth stretch: what is watched on a step, kept in the signature of an orbit, followed
// on a branch.
#pragma once

namespace saltus {

enum class GuardKind {
  surface,  ///< h of a switch not slid on
  sigma,    ///< the bound of a sigma slid with
  slip,     ///< |sigma| = 1 on a surface that holds, backward in time: further inside nothing returns to it
  gap,      ///< gap of an open constraint
  lambda,   ///< multiplier of a closed constraint
  slope,    ///< d(h')/dsigma of a surface slid on: where it vanishes, sliding stops being attractive
  jump,     ///< the `on` of a jump
  clock,    ///< a tick of a jump's clock
};

struct Guard {
  GuardKind kind = GuardKind::surface;
  int item = 0;  ///< switch, constraint or jump
  int side = 0;  ///< surface, jump: sign before; sigma, slip: the bound that is reached; 0: not known, or touched along
                 ///< a tangent

  friend bool operator==(const Guard&, const Guard&) = default;
};

}  // namespace saltus
