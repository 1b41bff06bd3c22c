// How to compute, in the words in which people give it: what the command line and Python fill, and what it means.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ask/solve.hpp"
#include "model/model.hpp"

namespace saltus {

/// How to compute. What is not said comes from the model's [run] table, then from the defaults of the engine.
struct SolveOptions {
  std::optional<std::string> from;    ///< start time: a formula in parameters
  std::optional<std::string> until;   ///< end time, likewise; below `from` runs backward
  std::optional<double> tolerance;    ///< 1e-15 .. 0.1
  std::optional<std::string> engine;  ///< "event", "step", or "both" (of `run`)
  std::optional<double> dt;           ///< step of the engine "step", > 0; without it the step is adaptive
  std::optional<double> theta;        ///< of the engine "step", 0.5 .. 1
  bool adaptive = false;              ///< the engine "step" chooses its steps, whatever the model's [run] says
  int threads = 0;                    ///< 0: as many as there are cores
  std::string flow = "auto";          ///< of the engine "event": "taylor", "stiff", or "auto" (stiff where it is)
  std::vector<Setting> leave;         ///< surface=+1|-1|0: the way to go where the solution is not unique
  std::optional<double> attract;      ///< C of the term -C h grad h instead of projection
  bool project = false;               ///< a start that does not satisfy the joints is moved onto them
  std::string zeno = "complete";      ///< where events accumulate: "complete" or "stop"
  std::string native = "auto";        ///< machine code: "auto" (in long runs), "on" or "off"; no result depends on it

  void check() const;
};

/// "event", "step" or "both": what was said, then the model.
std::string engine_of(const SolveOptions& solve, const Model& model);

/// The options as settings of engines; an option that belongs to the other engine is an Error(usage).
Solve solve_of(const SolveOptions& solve, const Model& model);

}  // namespace saltus
