// How parameters and initial values move when one parameter is moved.
#pragma once

#include <span>
#include <vector>

#include "base/linear.hpp"
#include "model/model.hpp"

namespace saltus {

/// How parameters and initial values move with one parameter, derived ones and [initial] included: columns of P and of
/// X at the start.
struct ParameterDirections {
  Mat x, p;
};
ParameterDirections parameter_directions(const Model& model, const std::vector<double>& parameters,
                                         std::span<const int> of);

}  // namespace saltus
