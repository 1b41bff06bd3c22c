// Values with a bound of their rounding error: what is zero, and what only looks like it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "code/tape.hpp"

namespace saltus {

/// Values of a tape at a point with first-order error bounds. Inputs are taken as rounded to the last bit. Only what
/// has changed since the last evaluation is computed: nothing at the same point, and with other sigma, lambda or
/// counters what depends on those.
class Rounding {
 public:
  /// The tape must outlive this.
  Rounding(const Tape& tape, std::span<const double> parameters);
  /// Evaluates these outputs alone; the others have no values.
  Rounding(const Tape& tape, std::span<const double> parameters, std::span<const size_t> outputs);

  void evaluate(std::span<const double> x, double t, std::span<const double> sigma, std::span<const double> counters,
                std::span<const double> lambda = {});
  double value(size_t output) const { return value_[static_cast<size_t>(tape_->outputs[output])]; }
  double error(size_t output) const { return error_[static_cast<size_t>(tape_->outputs[output])]; }
  /// +1, -1, or 0 if the value is within so many of its error bounds.
  int sign(size_t output, double bounds = 4) const;

 private:
  struct Stages {
    std::vector<Operation> linear, timed, free, bound;
  };
  const std::vector<Operation>& stage(std::vector<Operation> Tape::*of_all, std::vector<Operation> Stages::*own) const {
    return own_ ? (*own_).*own : tape_->*of_all;
  }
  void run(const std::vector<Operation>& operations);
  const std::vector<Operation>& dependent();
  /// True if the value has changed by a bit; its `error` is then asked for.
  template <class Error>
  bool set(int slot, double v, const Error& error);

  const Tape* tape_;
  std::optional<Stages> own_;  // what some outputs need; otherwise all of the tape
  std::vector<double> value_, error_;
  std::optional<std::vector<Operation>> dependent_;  // on sigma, lambda or counters; found when first needed
  bool evaluated_ = false;
};

}  // namespace saltus
