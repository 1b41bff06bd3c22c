// Householder's reflections, of which orthogonal decompositions are made: I - scale v v', v = (1, x[1], ..., x[n-1]).
#pragma once

#include "base/linear.hpp"

namespace saltus {

/// Turns the vector x into the reflection that takes it to (beta, 0, ..., 0), and x[0] into beta. Gives its scale.
double make_reflection(double* x, Index n);

/// Reflects y by the v that begins at x.
void reflect(const double* x, double scale, double* y, Index n);

/// Triangle of A above reflections, without exchanges. Gives their scales.
Vec triangularise(Mat& A);

}  // namespace saltus
