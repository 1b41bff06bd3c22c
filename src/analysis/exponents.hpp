// Lyapunov exponents: the whole spectrum along one run, by QR of its tangents with saltation.
//
//   tangents Q (orthonormal) over a piece or through an event:  X = Q' R,   sums += log |R_kk|,   Q = Q'
//   a direction whose R_kk vanishes at an event is forgotten: its exponent is -inf, and one column fewer is carried
//   errors from the spread of the exponents over blocks of time
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "flow/simulate.hpp"

namespace saltus {

struct ExponentOptions {
  RunOptions run;       ///< `until`: how long; the first tenth is transient
  bool open = false;    ///< no end was given: until the errors are small or there are too many steps
  double error = 0.01;  ///< of an open run: the largest error, as a share of the largest exponent, or where none is
                        ///< above zero of the largest modulus
  long most_steps = 1'000'000;
};

struct Exponents {
  std::vector<double> exponents;             ///< largest first; -inf where a direction is forgotten
  std::vector<double> error;                 ///< statistical; NaN where the exponent is infinite
  double time = 0;                           ///< over which they were averaged
  std::vector<double> times;                 ///< of the running estimate
  std::vector<std::vector<double>> running;  ///< [exponent][time]
  End end;
  Cost cost;
  std::vector<std::string> messages;
};

Exponents find_exponents(const Program& program, const ExponentOptions& options);

}  // namespace saltus
