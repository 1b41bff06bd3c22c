// Branches in tests: their special points, and what begins there.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "analysis/branch.hpp"
#include "model/model.hpp"

namespace saltus {

inline std::vector<const SpecialPoint*> of_type(const Branch& branch, const std::string& type) {
  std::vector<const SpecialPoint*> out;
  for (const SpecialPoint& s : branch.special) {
    if (s.type == type) out.push_back(&s);
  }
  return out;
}

/// The special point of a type nearest to a value; its distance must be small.
inline void expect_special(const Branch& branch, const std::string& type, double value, double tolerance) {
  double nearest = HUGE_VAL;
  for (const SpecialPoint* s : of_type(branch, type)) nearest = std::min(nearest, std::abs(s->values[0] - value));
  EXPECT_LE(nearest, tolerance) << type << " at " << value;
}

/// The branch that begins at a special point, as `--label` follows it.
inline Branch begun_at(const SpecialPoint& special, const Model& model, const OrbitOptions& start,
                       BranchOptions range) {
  OrbitOptions near = start;
  near.run.parameters = parameter_values(model, std::vector<GivenParameter>{{range.parameter, special.near_values[0]}});
  near.run.initial = special.near_state;
  near.run.from = special.near_t;
  near.guess = true;
  near.time = special.near_period;
  range.seek = {special.type, special.values[0]};
  return follow_orbit(model, near, range);
}

}  // namespace saltus
