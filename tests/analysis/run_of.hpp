// A run of a model with its own parameters and initial values.
#pragma once

#include "flow/simulate.hpp"
#include "model/read.hpp"

namespace saltus {

inline RunOptions run_of(const Model& model, double until = 100) {
  RunOptions o;
  o.parameters = parameter_values(model);
  o.initial = initial_values(model, o.parameters);
  o.until = until;
  return o;
}

}  // namespace saltus
