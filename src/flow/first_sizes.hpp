// Sizes of states at the start of a run: a state that is zero where a flow begins has no size of its
// own (the last of a chain of lags), and a relative error of its first step no shorter step makes smaller.
#pragma once

#include <vector>

#include "flow/series.hpp"

namespace saltus {

/// Raises `largest`, a size for each state, to what its series reaches in the time in which the fastest state changes,
/// at most `longest`; states that their series do not reach yet to the least that those reach which they vanish with
/// (model/vanishing). Returns that time. `series` is expanded.
double take_first_sizes(const Series& series, double longest, std::vector<double>& largest);

}  // namespace saltus
