// The linear equations of a step of Newton's method on the legs of an orbit: slopes in, a step out.
//
//   few legs    one matrix, by LU; where orbits come in families the shortest step, by orthogonal decomposition
//   many legs   one after the other (analysis/leg_chain): equations for the first and the last are left
#pragma once

#include <optional>
#include <vector>

#include "analysis/leg_chain.hpp"
#include "analysis/shooting.hpp"

namespace saltus {

class ShootingStep {
 public:
  /// `unknowns`, `rows`: what they are measured by.
  ShootingStep(const Shooting& shooting, const std::vector<Leg>& legs, const Closing& closing,
               const std::vector<LegSlopes>& slopes, const Vec& unknowns, const Vec& rows);

  /// True if the step is not unique: orbits come in families (a centre).
  bool family() const { return family_; }
  /// The unknowns, in their units, whose change would make up for residuals r; in a family the least change.
  Vec solve(const Vec& r) const;
  /// The step as if there were no family.
  Vec solve_regular(const Vec& r) const;

 private:
  void decompose(const Mat& A);
  Vec solve_decomposed(const Vec& r, bool shortest) const;

  bool family_ = false;
  Lu lu_;  // of the whole, or of what is left for the first leg and the last
  std::optional<Orthogonal> shortest_;
  Vec row_size_;                   // few legs
  std::optional<LegChain> chain_;  // many
};

}  // namespace saltus
