// Piecewise-linear relations in a linear loop: y = a + B lambda with lambda_i on the graph of a relation of y_i,
// possibly with vertical pieces (relay, dead zone, saturation, end stops with stiffness), reduced to one box problem.
#pragma once

#include <vector>

#include "base/linear.hpp"
#include "solve/box.hpp"

namespace saltus {

/// lambda = value + slope y + sum of jumps + sum of kinks. A jump of height H at c contributes 0 below c, H above, and
/// anything in between at c; a kink adds `change` to the slope above c. Order is free.
struct Relation {
  struct Jump {
    double at, height;
  };
  struct Kink {
    double at, change;
  };
  double value = 0, slope = 0;
  std::vector<Jump> jumps = {};
  std::vector<Kink> kinks = {};
};

/// level * sign(y)
Relation relay(double level);
/// -level below -width, 0 within, +level above width
Relation relay_with_dead_zone(double width, double level);
/// slope * y, limited to [lo, hi]; slope > 0
Relation saturation(double lo, double hi, double slope = 1);
/// 0 within [-width, width], slope * (distance to it) outside
Relation dead_zone(double width, double slope = 1);

struct PiecewiseProblem {
  Mat B;
  Vec a;
  std::vector<Relation> relations;
};

struct PiecewiseSolution {
  Vec y, lambda;
  SolveStatus status = SolveStatus::not_converged;
  double residual = 0;  ///< of the box problem
};

PiecewiseSolution solve_piecewise(const PiecewiseProblem& problem, const BoxOptions& options = {});

}  // namespace saltus
