// A model on a page: for a person, for a program, for a paper.
#pragma once

#include <string>

#include "model/model.hpp"

namespace saltus {

/// The model as understood, for a terminal of 96 columns; long lists are cut ("... 990 more"; the other two give all).
std::string model_as_text(const Model& model);

/// Everything, as one JSON document.
std::string model_as_json(const Model& model);

/// Equations, inclusions and complementarity conditions as an align environment, parameters as a table.
std::string model_as_latex(const Model& model);

/// Shared parts of formulas are written out each time they are used: beyond this size a page leaves a formula out.
constexpr double longest_formula = 20'000;

}  // namespace saltus
