// Conditions of jumps and functions of sections that are a surface or gap of the model: where that is at zero, so are
// they, whatever rounding left of them.
#pragma once

#include <vector>

#include "flow/moment.hpp"
#include "model/model.hpp"

namespace saltus {

struct SharedZero {
  int unknown = -1;  ///< the switch, or number of switches + constraint, or number of unknowns + jump; -1: none
  int side = 1;      ///< the sign of what shares the zero where the surface, gap or condition is positive

  /// True if it stays zero in this mode: the surface slides, the gap is closed.
  bool rests(const Mode& mode) const;
  /// How many coefficients of it are known to be zero here while it does not rest.
  int known(const Moment& now) const;
  /// Its sign in this mode while it does not rest.
  int sign(const Mode& mode) const;

 private:
  char letter(const Mode& mode) const;
};

/// The zero that each `on` of a jump shares: of a surface, else of a gap.
std::vector<SharedZero> zeros_of_jumps(const Form& form);
/// The zero that each function of an `on` section shares: of a surface, else of a gap, else of the condition of a jump.
std::vector<SharedZero> zeros_of_sections(const Model& model);

}  // namespace saltus
