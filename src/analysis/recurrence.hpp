// The period of a sequence of points, told apart from a sequence that only converges slowly.
//
// Period p means: every point agrees with the one p places later, component by component, within the tolerance. That is
// not enough: next to a period doubling, points alternate about their limit with a factor just above -1 and agree two
// places on long before they have arrived. So the sequence must also have stopped moving: let d1 be how far the average
// of a phase moves from the first third of the record to the second, and d2 from there to the last. A geometric
// approach has the way d2*g/(1-g), g = d2/d1, still before it, and that must be within a quarter of the tolerance (or
// d2 below a hundredth of it: rounding). An approach so slow that it does not show in the record at all cannot be told
// from having arrived.
#pragma once

#include <cstddef>
#include <span>

namespace saltus {

struct Recurrence {
  long period = 0;    ///< 0: none found
  bool slow = false;  ///< none found, because a sequence that looks periodic is still on its way
};

/// Looks for periods up to `longest`, but no longer than a third of the points. `points` holds one point after another,
/// each with as many components as there are tolerances (all above 0; infinite: the component does not count).
Recurrence find_period(std::span<const double> points, std::span<const double> tolerance, long longest);

}  // namespace saltus
