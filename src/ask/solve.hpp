// How to compute: what every question takes, in the words in which people give it. What is not said comes from the
// model's table [run], then from defaults.
//
// An option is three edits: its field with its line in `visit`, its row in ask/option_table.cpp, and its use. The
// command line, run.toml, Python, the studio's request and controls, checks and records are loops over these.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ask/value.hpp"
#include "flow/simulate.hpp"

namespace saltus {

struct Solve {
  std::optional<Formula> from = {};        ///< start time: a number or a formula in parameters
  std::optional<Formula> until = {};       ///< end time, likewise; below `from` runs backward
  std::optional<double> tolerance = {};    ///< local error per step: 1e-15 .. 0.1 (1e-10)
  std::optional<std::string> engine = {};  ///< "event" (unless the model says otherwise), "step"; of `run`: "both"
  std::optional<double> dt = {};           ///< step of the engine "step", > 0; without it the step is adaptive
  bool adaptive = false;                   ///< the engine "step" chooses its steps, whatever the model's [run] says
  std::optional<double> theta = {};        ///< of the engine "step": 0.5 accurate .. 1 backward Euler (0.5)
  int threads = 0;                         ///< of questions that need many runs; 0: all cores
  std::string flow = "auto";           ///< of the engine "event": "taylor", "stiff", or "auto" (implicit where stiff)
  std::vector<Setting> leave = {};     ///< surface=+1|-1|0: the way to go where the solution is not unique
  bool project = false;                ///< a start that does not satisfy the joints is moved onto them
  std::optional<double> attract = {};  ///< C of the term -C h grad h that holds slid surfaces; without it: projection
  std::string native = "auto";         ///< machine code: "auto" (in long runs), "on" or "off"; no result depends on it
  std::string zeno = "complete";       ///< where events accumulate: go on from their limit, or "stop"

  /// visit(name, field) for every option, by its name in the option table. A field is an optional<Formula>, an
  /// optional<double>, a word, a flag, a number of things, or settings.
  template <class Options, class Visit>
  static void visit(Options& o, const Visit& visit) {
    visit("from", o.from);
    visit("until", o.until);
    visit("tolerance", o.tolerance);
    visit("engine", o.engine);
    visit("dt", o.dt);
    visit("adaptive", o.adaptive);
    visit("theta", o.theta);
    visit("threads", o.threads);
    visit("flow", o.flow);
    visit("leave", o.leave);
    visit("project", o.project);
    visit("attract", o.attract);
    visit("native", o.native);
    visit("zeno", o.zeno);
  }

  /// Puts an option in, given as text: "1e-9", "60*pi", "step", "v=+1" (settings add up); a flag takes "true", "false"
  /// or nothing. Throws Error(usage) for what it cannot be, and where there is no such option.
  void give(std::string_view name, const std::string& text);

  /// Options that were given, in words, by name, with one text per value.
  std::vector<std::pair<std::string, std::vector<std::string>>> texts() const;

  /// Words, sides and ranges; throws Error(usage).
  void check() const;
};

/// An option by its name, and of what kind it is: "formula", "number", "word", "flag", "count" or "settings".
struct SolveOption {
  std::string name;
  std::string_view kind;
};

/// All options, in their order.
const std::vector<SolveOption>& solve_options();

/// "event", "step" or "both": what was said, then the model.
std::string engine_of(const Solve& solve, const Model& model);

/// Options of an engine; one that belongs to the other engine is an Error(usage). `until`, if given, stands in for what
/// the model says; where nothing says how long, that is an Error(usage).
RunOptions run_options(const Solve& solve, const Model& model, std::optional<double> until = {});

/// Options that were given, with the values the engine took in place of defaults and formulas: another machine and
/// another version compute the same from it.
Solve resolved(const Solve& solve, const RunOptions& options);

/// Notes on unusual values of a model: contacts whose restitution adds energy.
std::vector<std::string> notes_on(const Model& model);

/// The place of a state; an Error(usage) that names the nearest otherwise. `option` is for the complaint.
int find_state(const Model& model, const std::string& name, const std::string& option);

/// The place of a parameter, likewise.
int find_parameter(const Model& model, const std::string& name, const std::string& option);

/// The section of that name, or the only one; an Error(usage) that says what there is otherwise.
int find_section(const Model& model, const std::string& name);

}  // namespace saltus
