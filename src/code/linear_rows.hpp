// Sums and multiples as rows of weights. Above order 0 a chain of them is a weighted sum of what it starts from,
// whatever its operations: rates that are affine become rows of a sparse matrix, and a step of a linear flow products
// with it.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "code/tape.hpp"

namespace saltus {

struct LinearRows {
  struct Row {
    int out = 0;     ///< where its series begins
    size_t end = 0;  ///< of its terms
  };
  struct Term {
    int from = 0;  ///< a series
    double weight = 0;
  };

  std::vector<Row> rates, others;  ///< those that the states wait for; those that wait for the states, behind them
  std::vector<Term> terms;

  bool empty() const { return rates.empty() && others.empty(); }
  /// Coefficients first..order of all results, and of the states from their rates: pairs (state, rate). first > 0.
  void expand(std::span<const std::pair<int, int>> states, double* series, int first, int order) const;
};

/// `wanted` and the rates of the states as rows of `operations`, if all of them are sums and multiples and
/// rows are not longer work; otherwise empty. Operations hold places in `series`, where constants have their values,
/// `stride` apart; `varies`: slots that have coefficients above 0 and are no results.
LinearRows linear_rows(std::span<const Operation> operations, std::span<const std::pair<int, int>> states,
                       std::span<const int> wanted, const std::vector<char>& varies, const double* series, int stride);

}  // namespace saltus
