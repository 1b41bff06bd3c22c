// The linear equations of a step of Newton's method on the legs of an orbit: slopes in, a step out.
//
//   few legs    one matrix, by LU; where orbits come in families the shortest step, by orthogonal decomposition
//   many legs   y_i = (x_i, T_i, s_i), s_i the time at which leg i starts:
//                 A_i y_i + B_i y_{i+1} = r_i       the last one leads back to y_0
//               y_1, y_2, ... are eliminated one after the other by reflections of the two block rows that hold them,
//               so that work and memory grow with the number of legs; what is left are equations for y_0 and y_last
//
// Reflections do not grow, whatever the legs do to tangents (S. J. Wright, SIAM J. Sci. Stat. Comput. 13, 1992).
#pragma once

#include <optional>
#include <vector>

#include "analysis/shooting.hpp"

namespace saltus {

class ShootingStep {
 public:
  /// `unknowns`, `rows`: what they are measured by.
  ShootingStep(const Shooting& shooting, const std::vector<Leg>& legs, const Closing& closing,
               const std::vector<LegSlopes>& slopes, const Vec& unknowns, const Vec& rows);

  /// Whether no step is the only one: orbits come in families (a centre).
  bool family() const { return family_; }
  /// The unknowns, in their units, whose change would make up for residuals r; in a family the least change.
  Vec solve(const Vec& r) const;
  /// As if there were no family.
  Vec solve_regular(const Vec& r) const;

 private:
  /// The rows of a leg: entries of y_i and y_{i+1}, and what they are divided by.
  struct Rows {
    Mat here, next;
    Vec size;
    std::vector<Index> residual;  ///< which one each row is for; -1: none
  };
  /// Rows that have been reflected so that y_i is theirs alone: R y_i + first y_0 + next y_{i+1}.
  struct Eliminated {
    Mat reflected;  ///< columns: of y_i (R above reflections), y_0, y_{i+1}
    Vec scales;
  };

  void one_matrix(const Mat& J, const Vec& unknowns, const Vec& rows);
  std::vector<Rows> block_rows(const Shooting& shooting, const std::vector<Leg>& legs, const Closing& closing,
                               const std::vector<LegSlopes>& slopes, const Vec& unknowns, const Vec& rows) const;
  void leg_by_leg();
  void decompose(const Mat& A);
  Vec solve_decomposed(const Vec& r, bool shortest) const;
  Vec solve_legs(const Vec& r, bool shortest) const;

  Index states_;
  bool family_ = false;
  Lu lu_;  // of the whole, or of what is left for y_0 and y_last
  std::optional<Orthogonal> shortest_;
  Vec row_size_;
  std::vector<Rows> rows_;  // many legs
  std::vector<Eliminated> eliminated_;
  Index width_ = 0;  // of a y_i
};

}  // namespace saltus
