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
};

/// Throws Error for what cannot be asked.
SectionPlan plan(SectionQuestion question);
SectionAnswer ask(const SectionPlan& plan, const Observer& observer = {});

}  // namespace saltus
