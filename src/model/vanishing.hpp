// States that vanish together: where all of them are zero, so are their rates (populations, exposed and infected, the
// two coordinates of an oscillation). They may shrink by many orders and grow again, without the help of anything else.
//
//   a formula vanishes with a set if, as it is written, every term has one of the set as a factor
//   alive = all states; those whose rates do not vanish with `alive` leave it, until none does
//   of state i: {i}, and whatever its rate and theirs need besides, of the factors of a term the one that adds least
#pragma once

#include <span>
#include <vector>

#include "expr/expr.hpp"

namespace saltus {

/// Per state, itself and those it vanishes with, in order; empty where there are none, or too many to be of use.
std::vector<std::vector<int>> vanishing_sets(std::span<const Expr> rates);

}  // namespace saltus
