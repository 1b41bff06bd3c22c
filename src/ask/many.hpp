// Questions of many runs: `ask(SweepQuestion) -> SweepAnswer`, `ask(BasinsQuestion) -> BasinsAnswer`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/basins.hpp"
#include "analysis/sweep.hpp"
#include "ask/keep.hpp"
#include "ask/observer.hpp"
#include "ask/solve.hpp"
#include "ask/system.hpp"

namespace saltus {

// ---- attractors against parameters ---------------------------------------------------------------------------------

/// A parameter, or a formula of one (1/omega), and its values.
struct Vary {
  std::string name;
  std::vector<double> values;
  std::string given = {};  ///< as somebody wrote it, for complaints; empty: the name
};

struct SweepQuestion {
  System system;
  std::vector<Vary> vary;                  ///< one or two
  Solve solve = {};                        ///< `until` is an upper limit
  std::string section = {};                ///< its name; empty: the only one
  std::optional<long> skip = {};           ///< points left out (400; 0 with settle)
  long count = 100;                        ///< points recorded
  long settle = 0;                         ///< points at most until a period is found; 0: no such search
  long longest = 64;                       ///< period looked for
  std::vector<double> tolerance = {};      ///< per state: how near points of one phase are; NaN or empty: chosen
  bool exponent = false;                   ///< the largest Lyapunov exponent of each run as well
  std::vector<std::string> measures = {};  ///< "mean(P)", ... of each run: over a period, or all recorded points
  std::vector<Numbers> starts = {};        ///< states to start from; empty: the model's initial values, or random ones
  std::vector<std::pair<double, double>> box = {};  ///< per state, for random starts (NaN: the model's value)
  int random_starts = 1;                            ///< per value
  std::uint64_t seed = 1;
  Continue direction = Continue::none;  ///< start from the attractor before
};

struct SweepAnswer {
  System system;
  SweepPlan plan;
  std::vector<std::optional<SweepRun>> runs;  ///< nothing for those not computed; their order: SweepRun
  std::size_t missing = 0, resumed = 0;       ///< runs not computed, and those that came from the checkpoint
  double seconds = 0;
};

/// Throws Error for what cannot be asked.
SweepPlan plan(const SweepQuestion& question);
/// Answers a sweep; `system` is that of the question. Under mpirun every rank asks; rank 0 gets the answer, the others
/// none of it.
SweepAnswer ask(const System& system, const Solve& solve, SweepPlan plan, const Observer& observer = {},
                const Keep& checkpoint = {});
inline SweepAnswer ask(const SweepQuestion& question, const Observer& observer = {}) {
  return ask(question.system, question.solve, plan(question), observer);
}

// ---- basins of attraction ------------------------------------------------------------------------------------------

struct BasinsQuestion {
  System system;
  Mesh mesh;                                   ///< which states vary, and their cells
  Solve solve = {};                            ///< `until` is an upper limit
  std::string section = {};                    ///< its name; empty: the only one
  int period = 1;                              ///< points of the section in one application of the map
  std::vector<DependentState> dependent = {};  ///< states that follow from the varied ones
  BasinsOptions options = {};  ///< method, joining, refinement; threads, checkpoint and progress are set here
};

struct BasinsAnswer {
  System system;
  Mesh mesh;
  std::string section;                  ///< its name
  bool direct = false, refine = false;  ///< how it was computed
  Basins basins;
  std::string note;  ///< what a person should know about the map; empty if nothing
  double seconds = 0;
};

/// Everything found that must be right, and the map.
SectionMap plan(const BasinsQuestion& question);
BasinsAnswer ask(const BasinsQuestion& question, const SectionMap& map, const Observer& observer = {},
                 const Keep& checkpoint = {});
inline BasinsAnswer ask(const BasinsQuestion& question, const Observer& observer = {}) {
  return ask(question, plan(question), observer);
}

}  // namespace saltus
