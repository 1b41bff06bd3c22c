// Attractors against one or two parameters: a run for every value (or pair of values) and start, its points on a
// section, the period they have, and the largest Lyapunov exponent if asked for. The brute-force bifurcation diagram
// and the maps of periods and exponents.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/meter.hpp"
#include "analysis/work.hpp"
#include "base/table.hpp"
#include "flow/simulate.hpp"

namespace saltus {

/// A parameter and its values; where a person varies a formula of it (1/omega), the values of both.
struct Varied {
  std::string name;             ///< of what is varied, as written
  int parameter = 0;            ///< index into Model::parameters
  std::vector<double> values;   ///< of what is varied
  std::vector<double> setting;  ///< of the parameter
};

/// The parameter's values under which `quantity`, a formula of one parameter, has the given values. They are sought
/// around the parameter's present value, among numbers of its sign. Throws Error(usage) if the formula has no parameter
/// or several, does not reach a value, or is not monotone in between.
Varied vary(const Model& model, const std::string& name, const Expr& quantity, std::vector<double> values);

enum class Continue { none, up, down, both };

struct SweepPlan {
  std::vector<Varied> varied;  ///< one or two
  RunOptions run;              ///< what all runs share; `until` infinite: as long as the points take

  int section = 0;
  long skip = 400;          ///< points left out: transients
  long count = 100;         ///< points recorded
  long settle = 0;          ///< above 0: go on, up to so many points, until the last `count` have a period
  long longest = 64;        ///< period looked for
  Numbers tolerance;        ///< per state, how near points of one phase are; NaN: a millionth of the largest |value|
  bool keep_points = true;  ///< false: a map of periods needs none
  bool exponent = false;    ///< the largest Lyapunov exponent of each run as well
  /// Measures of each run: over a period of its last points, or over all recorded ones where it has none.
  std::vector<Measure> measures = {};

  /// Where runs start: states that are given, one list per start, or else random in a box (NaN: the model's value).
  std::vector<Numbers> starts;
  std::vector<std::pair<double, double>> box;  ///< per state; empty: the model's initial values
  int random_starts = 1;
  std::uint64_t seed = 1;
  /// Where the attractor of one value is the start for the next: along the values of the first parameter.
  Continue direction = Continue::none;

  std::size_t starts_per_value() const;
  std::size_t runs() const;
  /// "up", "down", "2", "2 down"
  std::string start_name(std::size_t start) const;
  /// Throws Error(usage) for what no sweep can be.
  void check(const Model& model) const;
};

/// One run. Its number is (second value * number of first values + first value) * starts_per_value() + start.
struct SweepRun {
  long period = 0;     ///< in points of the section; 0: none found
  bool slow = false;   ///< none found because the points are still on their way
  double time = 0;     ///< of a period; of a point, on average, where there is none
  double sliding = 0;  ///< segments of sliding, likewise
  double events = 0;   ///< likewise
  /// The largest Lyapunov exponent per unit of time, over as many of the recorded points as are whole periods; -inf
  /// where all directions are forgotten, NaN where it is not asked for or the run ended too early.
  double exponent = std::numeric_limits<double>::quiet_NaN();
  Why why = Why::count;
  std::string message;
  long seen = 0;          ///< points in all, those left out included
  Numbers points;         ///< the recorded ones, state after state
  Numbers last;           ///< the last point, and its time
  Numbers measures = {};  ///< NaN where fewer than two points were recorded
};

/// The sweep as a job for run_job, and its result; nothing for runs that were not computed. The program and the plan
/// must outlive the job. `on_run` is told each run that there is, in no order, by the thread that calls run_job.
using SweepRuns = std::vector<SweepRun>;  ///< of one item
using SweepJob = Job<SweepRuns>;
SweepJob sweep_job(const Program& program, const SweepPlan& plan, std::string identity,
                   std::function<void(std::size_t run, const SweepRun& done)> on_run = {});
std::vector<std::optional<SweepRun>> sweep_runs(const SweepPlan& plan, WorkResult<SweepRuns> result);

}  // namespace saltus
