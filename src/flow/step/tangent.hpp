// The derivative of a time step by its start and by parameters: implicit function of the equations that were solved.
//
//   Simpson      dx1 = dx0 + h/6 (df0 + 4 dfm + df1),  dxm = (dx0 + dx1)/2 + h/8 (df0 - df1),  dc(xm) = 0,  dc(x1) = 0
//   any theta    dx1 = dx0 + h ((1 - theta) df0 + theta df1),                                  dc(x1) = 0
//
// for the items that were solved for; the others stay where they are: at a bound, or decided. A contact that was hit
// inside the step has dc(x1) + d(r c(x0)) = 0. Lengths of steps are taken as given; what is located is an event
// (flow/variation).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/linear.hpp"
#include "flow/simulate.hpp"
#include "flow/step/formulas.hpp"

namespace saltus {

/// A step as it was made.
struct StepMade {
  enum class Rule { simpson, theta };
  Rule rule = Rule::simpson;
  double t = 0, h = 0, theta = 0.5;
  Mode mode;  ///< whose formulas were used
  std::vector<double> counters;
  Vec x0, x1, u0, um, u1;
  bool algebraic = false;                    ///< u0 is what the conditions at the start say
  std::vector<int> solved;                   ///< items: switches, then constraints
  std::vector<std::pair<int, double>> hits;  ///< items of contacts that were hit on the way, with their restitution
};

class StepTangent {
 public:
  StepTangent(const Program& program, const std::vector<double>& parameters);

  /// Columns X at the end of a step, from those at its start; P moves the parameters and stays. False where the
  /// equations do not determine them.
  bool along(const StepMade& step, const Mat& P, Mat& X);

 private:
  /// Slopes at one point of a step, those of the items that were solved for.
  struct Point {
    Mat J, G, C, D;
    Mat f, c;  ///< what parameters add
  };
  StepFormulas& formulas(const StepMade& step);
  Point point(const StepMade& step, double t, const Vec& x, const Vec& u, const Mat& P);
  Mat restitution_shift(int item, const Mat& P) const;
  bool simpson(const StepMade& step, const Mat& P, Mat& X);
  bool theta(const StepMade& step, const Mat& P, Mat& X);

  const Program& program_;
  std::vector<double> parameters_;
  std::map<StepKey, std::unique_ptr<StepFormulas>> all_;
};

}  // namespace saltus
