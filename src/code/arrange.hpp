// The operations of a schedule above order 0, simplified and grouped: operations without effect are left out, and only
// series that depend on themselves go order by order; every other series is done to its end before the next.
//
//   before           needed by the states that wait, which it does not need
//   rates, together  states that wait for themselves, and what lies between them and their rates
//   after            made of them, and not needed by them
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "code/tape.hpp"

namespace saltus {

struct Arrangement {
  std::vector<Operation> before, together, after;
  std::vector<std::pair<int, int>> rates;  ///< (state, rate) of the states that wait

  bool empty() const { return before.empty() && together.empty() && after.empty() && rates.empty(); }
};

/// Which series are known before they are computed.
struct KnownSeries {
  std::vector<char> varies;  ///< per slot: it has coefficients above 0 and is no result
  std::vector<char> null;    ///< it is zero at all orders
};

/// The operations of an order above 0 that `wanted` and the rates of the states need. Operations on series that end
/// at order 0, as those of states do whose rates are zero, become multiples or zeros. What is wanted keeps its bits,
/// but for the signs of zeros.
std::vector<Operation> simplified(std::span<const Operation> operations, std::span<const std::pair<int, int>> rates,
                                  std::span<const int> wanted, KnownSeries known);

/// The operations split into before, together and after, where before and after hold states as Instr::integral; nothing
/// if a slot is the result of two operations.
Arrangement arrange(std::span<const Operation> operations, std::span<const std::pair<int, int>> rates, size_t slots);

}  // namespace saltus
