// Equilibration: rows and columns multiplied by powers of two until the largest entry of each is near 1 (Ruiz 2001).
// Powers of two change no digit, so that a problem and its equilibrated one have the same solutions, in other units.
#pragma once

#include "base/linear.hpp"

namespace saltus {

/// Powers of two: entry (i, j) of the equilibrated matrix is row_i M_ij column_j.
struct Equilibration {
  Vec row, column;

  Mat of(const Mat& M) const;
};

/// M may be rectangular; rows and columns of zeros keep the factor 1.
Equilibration equilibrate(const Mat& M);

/// The power of two next below |x|: dividing by it leaves a number between 1 and 2. 1 for 0.
double power_of_two(double x);

}  // namespace saltus
