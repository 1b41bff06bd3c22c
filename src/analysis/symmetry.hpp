// Symmetric orbits: x(t + T/2) = S x(t) with a sign change S of states that the model has as well.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/linear.hpp"
#include "flow/trajectory.hpp"
#include "flow/variation.hpp"

namespace saltus {

/// A sign change of states that maps the model onto itself half a period later.
struct Symmetry {
  Vec sign;
  std::vector<std::pair<int, int>> switches;  ///< switch -> (switch, sign) it becomes
};

/// A closed orbit as a run over one period.
struct Closed {
  const Trajectory* run = nullptr;  ///< dense
  double duration = 0;              ///< the period, negative if it is passed backward
  std::vector<bool> free{};         ///< states that need not come back
  std::vector<double> shift{};      ///< by which states grow in a period
  Vec size{};                       ///< of each state
};

/// The symmetry that orbit and model have, if there is one; `variation` has the parameters.
std::optional<Symmetry> find_symmetry(const Program& program, Variation& variation, const Closed& orbit);

}  // namespace saltus
