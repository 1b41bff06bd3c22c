// Divisors of the rates: where one of them vanishes together with its numerator, the rates are 0/0 and have no value,
// though numbers near by look like an equilibrium (u/r at r = 0, polar coordinates).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "code/plain.hpp"
#include "model/model.hpp"

namespace saltus {

class Divisors {
 public:
  explicit Divisors(const Model& model);

  /// The divisor, as written, that vanishes where Newton's method leads: much smaller at x than it was at the start,
  /// and changed by one more step to `next` by a share of itself. At an equilibrium of the model that step is rounding.
  std::optional<std::string> vanishing(std::span<const double> parameters, double t, std::span<const double> start,
                                       std::span<const double> x, std::span<const double> next);

 private:
  struct Divisor {
    std::string text;
    Plain formula;
  };
  std::vector<Divisor> divisors_;
};

}  // namespace saltus
