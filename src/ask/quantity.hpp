// Quantities of a model given as text: states, named quantities, multipliers, or formulas of them.
#pragma once

#include <string>

#include "base/source.hpp"
#include "model/model.hpp"

namespace saltus {

/// The formula as the model is written (not lowered). `option` names what the text was given to, for complaints.
Expr read_quantity(const std::string& text, const std::string& option, const Model& model);

}  // namespace saltus
