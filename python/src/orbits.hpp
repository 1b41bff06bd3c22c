// Which orbit a question is about, from dictionaries.
#pragma once

#include <optional>
#include <vector>

#include "ask/orbit.hpp"
#include "convert.hpp"

namespace saltus::python {

/// `options`: how to compute; `how`: section, guess, period, time, backward, modulo.
OrbitQuestion orbit_question(const System& system, const py::dict& options,
                             const std::optional<std::vector<double>>& start, const py::dict& how);

}  // namespace saltus::python
