// Nonlinear least squares in a box: residuals with their derivatives in, a minimum of their sum of squares out.
//
//   until no step helps:
//     s = the step of Levenberg and Marquardt, |J s + r|^2 + lambda |D s|^2 least, D the largest columns of J so far,
//         over the unknowns that may move: not at a bound and pushed outward
//     the sum of squares at x + s, put into the box: less, as the linear model says, then there and lambda smaller;
//     else
//         lambda larger
//
// docs/method/fit.md
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/dense.hpp"

namespace saltus {

struct Residuals {
  Vec r;
  Mat J;  ///< dr/dx
};

struct LeastSquaresOptions {
  std::vector<double> low, high;  ///< of each unknown; infinite: none
  int most_iterations = 100;
  std::function<bool()> stop = {};                            ///< asked at each iteration; true ends it
  std::function<void(int iteration, double cost)> each = {};  ///< called with each point that is gone on from
};

enum class LeastSquaresEnd { converged, iterations, stopped };

struct LeastSquares {
  std::vector<double> x;
  Residuals at;     ///< there
  double cost = 0;  ///< |r|^2
  int iterations = 0;
  LeastSquaresEnd end = LeastSquaresEnd::iterations;
};

LeastSquares minimise(const std::function<Residuals(const std::vector<double>&)>& residuals, std::vector<double> start,
                      const LeastSquaresOptions& options);

}  // namespace saltus
