// Outputs of a tape as weighted sums of its inputs, where that is what they are: the rates of blocks on springs, the
// surfaces they stick on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "code/tape.hpp"

namespace saltus {

class AffineRows {
 public:
  struct Term {
    int from = 0;  ///< a state; behind the states a sigma, behind those a lambda
    double weight = 0;
  };
  /// terms + constant + time*t
  struct Row {
    std::span<const Term> terms;
    double constant = 0, time = 0;
    bool affine = false;  ///< otherwise there is nothing here
  };

  /// The affine rows of these outputs, in this order. `values`: per slot, of constants. The tape must have no counters.
  AffineRows(const Tape& tape, std::span<const double> values, std::span<const size_t> outputs);

  Row operator[](size_t k) const {
    const Sum& sum = rows_[k];
    return {{terms_.data() + sum.first, sum.count}, sum.constant, sum.time, sum.affine};
  }

 private:
  struct Sum {
    double constant = 0, time = 0;
    uint32_t first = 0;  // of its terms
    uint16_t count = 0;
    bool affine = false;
  };
  std::vector<Sum> rows_;
  std::vector<Term> terms_;
};

}  // namespace saltus
