// Series of a linear flow with constant coefficients: above order 1 they are weighted sums of the first coefficients of
// what moves by itself, that is of states, time, and sines and cosines of time.
//
//   x' = A x + b(t),  r = x'(0):  x_k = (A^(k-1) r + ...)/k! = W_k seeds
//
// The weights are known once per set of parameters; the orders do not wait for each other. Seeds that are zero leave
// nothing behind, so that what rests, rests exactly.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "code/tape.hpp"

namespace saltus {

struct LinearFlow {
  std::vector<int> seeds;                  ///< places of coefficients 1
  std::vector<int> made;                   ///< places where the series begin that are weighted sums
  std::vector<std::pair<int, int>> rates;  ///< (state, rate): those of the states, of which the last one is a sum
  std::vector<int> zeros;                  ///< places of those that are zero above order 1
  std::vector<double> weights;             ///< of what is made: per series, per four orders, per seed: four weights
  std::vector<double> last_weights;        ///< of rates: per series, per order, per seed
  int highest = 0;                         ///< order
  int last_four = 0;
  bool tried = false, found = false;

  bool empty() const { return !found; }
  /// Coefficients first..order of all that is made, and perhaps some more. first > 1.
  void expand(double* series, int first, int order) const;
};

/// The parts of a schedule above order 0: places in `series`, `stride` apart.
struct LinearParts {
  std::span<const Operation> linear, timed, start, free;  ///< start: at order 0; free: above
  std::span<const std::pair<int, int>> rates;             ///< (state, rate)
  std::vector<int> wanted;                                ///< besides states and rates
  int time = -1;
  std::vector<int> counters;
};

/// Empty where it is not linear, where weights change with counters or overflow, or where it is more work than orders
/// one after the other. Constants have their values in `series`, and so have sines of time their frequencies (the
/// coefficient 1 of their arguments).
LinearFlow linear_flow(const LinearParts& parts, std::span<const double> series, int stride);

}  // namespace saltus
