// Jumps on a frozen orbit: how far each is from happening where it does not, and from not happening, or doing something
// else, where it does.
//
//   a condition `on` is watched on every leg. Where it turns without reaching zero the jump is as far away as it is
//   there; where it passes zero the way that counts, the jump should have happened, unless its `when` does not hold
//   a tick of a clock that finds its `when` not holding is as far away as that condition
#pragma once

#include <vector>

#include "analysis/shooting.hpp"
#include "analysis/signature.hpp"

namespace saltus {

struct JumpWatch {
  enum class What {
    touch,      ///< `on` turns near zero, or is met without speed
    condition,  ///< its `when` is about to change, or another event carries `on` over zero
    choice,     ///< a nonsmooth function in what it sets is at its kink or step
  };
  int jump = 0;
  What what = What::touch;
  int number = 0;  ///< among those of one kind on the leg
  Lowest lowest;
};

/// A leg as it is flown: where it begins, what it looks like, and what happened before.
struct FlownLeg {
  const Leg& leg;
  double t = 0;
  const LegTrace& trace;  ///< guards from `first_jump` on: the `on` of each jump
  size_t first_jump = 0;
  const Shot::End& end;
  const Transition* before = nullptr;
};
std::vector<JumpWatch> watch_jumps(const Program& program, Variation& variation, const FlownLeg& flown);

/// True if legs differ only in choices that lead to the same formulas.
bool jumps_alike(const Program& program, const std::vector<Leg>& a, const std::vector<Leg>& b);

/// Keeps what jumps choose, and on which side of zero each `on` begins a leg.
void freeze_jumps(const Program& program, Variation& variation, std::vector<Leg>& legs, double t0);

}  // namespace saltus
