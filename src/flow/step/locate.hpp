// Where on a step the first disagreement with its mode begins.
#pragma once

#include <functional>
#include <vector>

#include "flow/recorder.hpp"
#include "flow/step/judge.hpp"

namespace saltus {

/// How steps are made in a known mode.
struct StepRule {
  double theta = 0.5;
  bool rates = false;  ///< a Simpson step has its rates at both ends

  bool simpson() const { return theta == 0.5; }
};

/// The step from here over h in the mode of here.
StepFate step_in_mode(StepSolver& solver, const StepRule& rule, const Here& here, double h, Step& out);

enum class OnStep {
  ahead,   ///< the step has been shortened to the first disagreement
  here,    ///< it is there from the beginning
  nowhere  ///< it could not be found
};

/// True if what a surface says along a step is rounding, because it is that of one slid on.
using RestsBeside = std::function<bool(const Guard&, const Step&)>;

/// Shortens `step` to the first of the disagreements in `found`; leaves those that are zero there.
OnStep locate(StepSolver& solver, const StepRule& rule, const Judge& judge, const Here& here, Step& step,
              const RestsBeside& rests, std::vector<Disagreement>& found);

/// A function watched along a cubic step, by the quartic through five of its values.
struct Along {
  double dip = 0;      ///< where something falls below zero that is back at the end; 0 if nothing does
  bool timed = false;  ///< it falls there as time does
  bool told = true;    ///< whether the quartics tell what is watched: no error of states tells a step too long
  double passes = 0;   ///< where the function of a section is beyond a zero that it passes again before the end; or 0
};
Along look_along(StepSolver& solver, const Judge& judge, const Here& here, const Step& step, const Recorder& recorder,
                 const RestsBeside& rests);

}  // namespace saltus
