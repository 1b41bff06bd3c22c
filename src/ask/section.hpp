// Points of a Poincaré or stroboscopic map: `ask(SectionQuestion) -> SectionAnswer`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ask/ask.hpp"
#include "ask/solve.hpp"
#include "ask/system.hpp"

namespace saltus {

struct SectionQuestion {
  System system;
  Solve solve = {};                               ///< `until` is an upper limit
  std::string section = {};                       ///< its name; empty: the only one
  long count = 1000;                              ///< points wanted
  long skip = 0;                                  ///< points left out before them
  Formula level = 0.0;                            ///< of a section `on` a function: met where that has this value
  std::optional<std::vector<double>> start = {};  ///< a state, instead of the model's initial values
};

struct SectionAnswer {
  System system;
  RunOptions options;          ///< what the engine was told
  std::string section;         ///< its name
  long skip = 0;               ///< points left out
  std::vector<double> times;   ///< of the points
  std::vector<double> points;  ///< state after state
  Trajectory trajectory;       ///< how the run ended, without its events
};

struct SectionPlan {
  SectionQuestion question;
  RunOptions options;
  double level = 0;
};

/// Throws Error for what cannot be asked.
SectionPlan plan(SectionQuestion question);
SectionAnswer ask(const SectionPlan& plan, const Observer& observer = {});

/// A copy of the model with a section `on` a function that is met where the function has this value, instead of zero.
/// Throws Error(usage) where the section is none of these, or the level no finite number.
Model with_level(Model model, int section, double level);

}  // namespace saltus
