// How to compute: what every question takes. What is not said comes from the model's table [run], then from defaults.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ask/value.hpp"
#include "flow/simulate.hpp"

namespace saltus {

/// From event to event; between them by Taylor series, or by an implicit method where the flow is stiff.
struct EventDriven {
  bool stiff = false;     ///< the implicit method everywhere
  bool automatic = true;  ///< where stability alone keeps Taylor steps short; otherwise never
};
/// Step by step, events within steps.
struct TimeStepping {
  std::optional<double> dt = {};  ///< 0: adaptive; nothing: the model's, or adaptive
  double theta = 0.5;             ///< 0.5 accurate, 1 backward Euler
};

using Engine = std::variant<EventDriven, TimeStepping>;

struct Solve {
  std::optional<Formula> from = {};      ///< start time: a number or a formula in parameters
  std::optional<Formula> until = {};     ///< end time, likewise; below `from` runs backward
  std::optional<double> tolerance = {};  ///< local error per step: 1e-15 .. 0.1 (1e-10)
  std::optional<Engine> engine = {};     ///< event-driven, unless the model says otherwise
  std::vector<Setting> leave = {};       ///< surface=+1|-1|0: the way to go where the solution is not unique
  double attract = 0;                    ///< C of the term -C h grad h that holds slid surfaces; 0: projection
  bool project = false;                  ///< a start that does not satisfy the joints is moved onto them
  bool zeno_stop = false;                ///< end where events accumulate, instead of going on from their limit
  Native native = Native::automatic;     ///< machine code for long runs; no result depends on it
  int threads = 0;                       ///< of questions that need many runs; 0: all cores
};

/// Options of an engine. `until`, if given, stands in for what the model says; where nothing says how long, that is
/// an Error(usage).
RunOptions run_options(const Solve& solve, const Model& model, std::optional<double> until = {});

/// Notes on unusual values of a model: contacts whose restitution adds energy.
std::vector<std::string> notes_on(const Model& model);

/// The place of a state; an Error(usage) that names the nearest otherwise. `option` is for the complaint.
int find_state(const Model& model, const std::string& name, const std::string& option);

/// The place of a parameter, likewise.
int find_parameter(const Model& model, const std::string& name, const std::string& option);

/// The section of that name, or the only one; an Error(usage) that says what there is otherwise.
int find_section(const Model& model, const std::string& name);

}  // namespace saltus
