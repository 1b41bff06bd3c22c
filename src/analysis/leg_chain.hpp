// The equations of the legs of an orbit, linear, without a matrix of all: slopes in, equations for the ends of the
// chain out.
//
//   y_i = (x_i, T_i, s_i), s_i the time at which leg i starts, and the parameters p that are followed:
//     A_i y_i + B_i y_{i+1} + C_i p = r_i       the last one leads back to y_0
//   y_1, y_2, ... are eliminated one after the other by reflections of the two block rows that hold them, so that work
//   and memory grow with the number of legs; what is left are equations for y_0, y_last and p
//
// With a parameter there is one equation more, the border, in which all unknowns may stand. It is brought to the ends
// by means of the rows that were reflected.
//
// Reflections do not grow, whatever the legs do to tangents (S. J. Wright, SIAM J. Sci. Stat. Comput. 13, 1992).
#pragma once

#include <vector>

#include "analysis/shooting.hpp"

namespace saltus {

class LegChain {
 public:
  static constexpr double small_row = 1e-3;  ///< in units of the states and times: rows below it keep their length

  /// True if each leg depends on the next one alone, and there are enough for this to be less work than one matrix.
  static bool fits(const std::vector<Leg>& legs);
  /// `unknowns`: what legs and parameters are measured by; rows are, at least, by a part of `rows`. `start_by`: how the
  /// time of the start moves with each parameter followed.
  LegChain(const Shooting& shooting, const std::vector<Leg>& legs, const Closing& closing,
           const std::vector<LegSlopes>& slopes, const Vec& unknowns, const Vec& rows, const Vec& start_by = {});

  /// The border, over all unknowns in their units.
  void set_border(const Vec& border);
  /// The matrix for y_0, y_last and p; the border is its last row.
  Mat ends() const;
  /// The right side that goes with it, and with residuals r and the value of the border.
  struct RightSide {
    std::vector<Vec> above;  ///< per y_i that is eliminated, what its rows are equal to
    Vec ends;
  };
  RightSide reduce(const Vec& r, double border = 0) const;
  /// All unknowns from those at the ends, in their units, without the s_i.
  Vec expand(const RightSide& right, const Vec& ends) const;
  /// The sign of the determinant of all, with the border, over that of `ends`.
  double sign() const { return sign_; }

 private:
  /// The rows of a leg: entries of y_i, y_{i+1} and p, and what they are divided by.
  struct Rows {
    Mat here, next, by;
    Vec size;
    std::vector<Index> residual;  ///< which one each row is for; -1: none
  };
  /// Rows that have been reflected so that y_i is theirs alone: R y_i + first y_0 + by p + next y_{i+1}.
  struct Eliminated {
    Mat reflected;  ///< columns: of y_i (R above reflections), y_0, p, y_{i+1}
    Vec scales;
    Vec border;  ///< how much of each of its rows the border has taken
  };
  void make_rows(const Shooting& shooting, const std::vector<Leg>& legs, const Closing& closing,
                 const std::vector<LegSlopes>& slopes, const Vec& unknowns, const Vec& rows, const Vec& start_by);
  void eliminate();

  Index n_, m_, d_;  // states, width of a y_i, parameters
  std::vector<Rows> rows_;
  std::vector<Eliminated> eliminated_;
  Mat first_, now_;  // entries of (y_0, p) and y_last of the rows that are left
  Vec border_first_, border_last_;
  double sign_ = 1;
};

}  // namespace saltus
