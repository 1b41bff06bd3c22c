// One trajectory: `ask(RunQuestion) -> RunAnswer`.
//
//     const RunAnswer path = ask(RunQuestion{.system = System::example("dry_friction"), .solve = {.until = 60}});
//     path.trajectory.events, path.trajectory(30.5), path.rows
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/meter.hpp"
#include "ask/ask.hpp"
#include "ask/rows.hpp"
#include "ask/solve.hpp"
#include "ask/system.hpp"

namespace saltus {

struct RunQuestion {
  System system;
  Solve solve = {};
  std::optional<std::vector<double>> start = {};  ///< a state per name, instead of the model's initial values
  Sampling sample = {};
  std::vector<std::string> measures = {};  ///< "mean(Pin)": numbers of the run, or of its window
  std::string window = {};  ///< "A:B": rows, events and measures of this stretch of time alone; "A:", ":B" to an end
  bool rows = true;         ///< of time, states, named quantities, sigma, multipliers
  bool dense = true;        ///< pieces: the state at any time
  long max_kept_events = 1'000'000;  ///< later ones are counted
  long max_events = 100'000'000;     ///< the run ends there
  /// Derivatives of the end by the initial values and by these parameters (empty: by all of them).
  std::optional<std::vector<std::string>> sensitivity = {};
};

/// Derivatives of the states at the fixed end time; a row per state.
struct Sensitivity {
  std::vector<std::string> parameters;
  std::vector<std::vector<double>> by_state;  ///< a column per initial value
  std::vector<std::vector<double>>
      by_parameter;  ///< a column per parameter, total: through derived parameters and [initial]
};

struct RunAnswer {
  System system;
  RunOptions options;     ///< what the engine was told
  Trajectory trajectory;  ///< with its pieces, where the dense output was asked for
  Rows rows;
  std::optional<Sensitivity> sensitivity;
  std::vector<std::pair<std::string, double>> measures = {};  ///< by name, in the order in which they were asked for
  std::vector<std::string> notes;  ///< what a person should know, the messages of the run included
};

struct RunPlan {
  RunQuestion question;
  RunOptions options;
  std::vector<Measure> measures = {};
  std::pair<double, double> window{};  ///< of time, in the order of the run
};

/// Throws Error for what cannot be asked.
RunPlan plan(RunQuestion question);
RunAnswer ask(const RunPlan& plan, const Observer& observer = {});

}  // namespace saltus
