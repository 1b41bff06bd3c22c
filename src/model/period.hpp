// With what period a model depends on time, where its formulas make that evident.
#pragma once

#include <optional>

#include "model/model.hpp"

namespace saltus {

struct Period {
  Expr formula;  ///< in parameters and constants, such as 2*pi/omega
  double value = 0;
};

/// The common period in time of all that moves the model, under given parameter values. Evident means: t stands only
/// inside sin, cos, tan or mod(., T), linearly and with constant frequency, or jumps happen by a clock, and the periods
/// have a common multiple.
/// Nothing for a model without time, and where no period is evident.
std::optional<Period> period_in_time(const Model& model, const std::vector<double>& parameters);

/// True if time moves the model under given parameter values: a force with the amplitude 0 does not.
bool time_counts(const Model& model, const std::vector<double>& parameters);

}  // namespace saltus
