// Periodic orbits and equilibria: `ask(OrbitQuestion) -> OrbitAnswer`, `ask(OrbitsQuestion) -> OrbitsAnswer` from many
// starts, `ask(EquilibriumQuestion) -> EquilibriumAnswer`. The engine is the event-driven one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/equilibrium.hpp"
#include "analysis/orbit.hpp"
#include "ask/ask.hpp"
#include "ask/keep.hpp"
#include "ask/solve.hpp"
#include "ask/system.hpp"

namespace saltus {

// ---- one orbit -----------------------------------------------------------------------------------------------------

struct OrbitQuestion {
  System system;
  Solve solve = {};                               ///< `until`: length of the first run of a model without section
  std::optional<std::vector<double>> start = {};  ///< a state, instead of the model's initial values
  std::string section = {};                       ///< its name; empty: the only one, or none
  bool guess = false;                             ///< the start is near the orbit: no run first
  int period = 0;                                 ///< returns to the section until it closes; 0: what the run shows
  std::optional<Formula> time = {};               ///< or, with a guess, the time until it closes, about
  bool backward = false;                          ///< settle and close backward in time
  std::vector<Setting> modulo = {};               ///< states that may grow by multiples of a number
};

struct OrbitPlan {
  System system;
  OrbitOptions options;
};

struct OrbitAnswer {
  System system;
  RunOptions options;  ///< what the engine was told
  Orbit orbit;         ///< Orbit::found says whether there is one, Orbit::why why not
  bool cancelled = false;
};

/// Throws Error for what cannot be asked.
OrbitPlan plan(const OrbitQuestion& question);
OrbitAnswer ask(const OrbitPlan& plan, const Observer& observer = {});

// ---- the orbits near many starts -----------------------------------------------------------------------------------

struct OrbitsQuestion {
  OrbitQuestion orbit;
  int starts = 1;                                   ///< random ones
  std::vector<std::pair<double, double>> box = {};  ///< per state (NaN: the model's value)
  std::uint64_t seed = 1;
};

struct OrbitsPlan {
  OrbitPlan orbit;
  int starts = 1;
  std::vector<std::pair<double, double>> box;
  std::uint64_t seed = 1;
  int threads = 0;  ///< 0: all cores
};

struct OrbitsAnswer {
  System system;
  RunOptions options;
  std::vector<Orbit> orbits;  ///< distinct ones, stable or not, by their period
  bool cancelled = false;
};

OrbitsPlan plan(const OrbitsQuestion& question);
/// Answers `--starts`, identically for any number of threads; under mpirun every rank asks, and rank 0 gets the answer.
OrbitsAnswer ask(const OrbitsPlan& plan, const Observer& observer = {}, const Keep& checkpoint = {});

// ---- points of rest ------------------------------------------------------------------------------------------------

struct EquilibriumQuestion {
  System system;
  Solve solve = {};                               ///< `until`: of the run that is tried last
  std::optional<std::vector<double>> start = {};  ///< a state, instead of the model's initial values
};

struct EquilibriumPlan {
  System system;
  EquilibriumOptions options;
};

struct EquilibriumAnswer {
  System system;
  RunOptions options;
  Equilibrium equilibrium;
  bool cancelled = false;
};

EquilibriumPlan plan(const EquilibriumQuestion& question);
EquilibriumAnswer ask(const EquilibriumPlan& plan, const Observer& observer = {});

/// Options of runs inside searches for orbits and branches; `what` names the search in complaints about options it does
/// not take.
RunOptions search_options(const Solve& solve, const Model& model, const std::optional<std::vector<double>>& start,
                          const std::string& what);

/// Run options whose progress goes to `watch` as `now`, and which stop when `watch` asks for it.
RunOptions watched(RunOptions run, Observing& watch, const Progress& now);

}  // namespace saltus
