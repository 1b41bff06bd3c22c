// The door to the engines: a program and options in, a trajectory out.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "code/native.hpp"
#include "flow/trajectory.hpp"
#include "model/program.hpp"

namespace saltus {

/// A point of a section, while the run passes through it.
struct Passing {
  int section = 0;
  double t = 0;
  std::span<const double> state;
  long events = 0;  ///< of the run so far, sections not counted
  long slides = 0;  ///< how often sliding has begun on a surface so far, a slide at the start included
};

/// How the time-stepping engine steps.
struct StepOptions {
  double dt = 0;       ///< step; 0: adaptive, the local error kept near RunOptions::tolerance
  double theta = 0.5;  ///< 0.5: order 4, mode changes located; above, up to 1 (backward Euler): order 1, none located
  bool projection = true;  ///< closed contacts are kept on their gaps

  /// Throws Error(usage) for values no run can have.
  void check() const;
};

struct RunOptions {
  std::vector<double> parameters;     ///< one per parameter of the model
  std::vector<double> initial;        ///< one per state
  double from = 0;                    ///< start time
  double until = 0;                   ///< end time; below `from` runs backward
  double tolerance = 1e-10;           ///< local error per step relative to each state's scale; 1e-15 to 0.1
  std::optional<StepOptions> step;    ///< the time-stepping engine; without it the event-driven one
  bool stiff = false;                 ///< implicit steps instead of Taylor series for the smooth flow
  bool turns_stiff = false;           ///< the same wherever stability alone keeps Taylor steps short; not with tangents
  bool legs = true;                   ///< ordinary legs in a loop of their own; no result depends on it
  bool clusters = true;               ///< parts of a large model that nothing connects go on with clocks of their own
  std::map<std::string, char> leave;  ///< surface name -> '+', '-' or '0' where the solution is not unique
  bool project = false;               ///< a start that does not satisfy the joints is moved onto them
  bool zeno_stop = false;             ///< end at an accumulation of events instead of completing it
  Native native = Native::automatic;  ///< machine code for the series; no result depends on it
  bool keep_pieces = false;           ///< keep the dense output
  bool keep_events = true;            ///< keep the events (they are counted in any case)
  bool keep_transitions = false;      ///< keep what happened at each event as values
  bool to_the_end =
      true;  ///< a run that is too slow for `until` has stalled; otherwise `until` is no more than a bound
  bool one_of_many =
      false;  ///< a short run among many with these parameters: what they share is made at the first step
  long max_steps = 1'000'000'000;
  long max_events = 100'000'000;
  long max_kept_events = 5'000'000;  ///< memory: later events are counted, not kept
  int section = -1;                  ///< a section to count, or -1
  long section_count = 0;            ///< end (Why::count) after so many points of that section
  /// Called now and then with the time reached; false cancels the run.
  std::function<bool(double t)> progress;
  /// Asked at every step; true cancels the run.
  std::function<bool()> stop;
  /// Called with each finished piece and what is constant on it; pieces need not be kept for that.
  std::function<void(const Piece&, const Arc&)> on_piece;
  /// Called at each event, with what is constant just after it.
  std::function<void(const Event&, const Arc&)> on_event;
  /// Called at each event with all that happened, before `on_event`.
  std::function<void(const Transition&)> on_transition;
  /// Called with each step of the time-stepping engine, as it was made.
  std::function<void(const struct StepMade&)> on_step;
  /// Called at each point of a section; false ends the run (Why::stop). Cheap: no event is made for it.
  std::function<bool(const Passing&)> on_section;

  /// Throws Error(usage) for values no run can have.
  void check(const Model& model) const;
};

Trajectory simulate(const Program& program, const RunOptions& options);

/// Many runs of one program, one after the other: what they share is set up once. One per thread.
class Simulator {
 public:
  explicit Simulator(const Program& program);
  ~Simulator();
  Simulator(Simulator&&) noexcept;

  /// The trajectory of `simulate`, bitwise equal, whatever was run before.
  Trajectory run(const RunOptions& options);
  /// Runs into `result`, whose contents are overwritten and whose memory is reused.
  void run(const RunOptions& options, Trajectory& result);
  /// Leaves what it has set up to the program, for the next one: this one runs no more.
  void give_back();

 private:
  void set_up(const Program& program);

  std::unique_ptr<struct EngineMemory> memory_;
  std::unique_ptr<struct StepMemory> steps_;
  bool running_ = false;  // or the last run was left by an exception, which may have left it half changed
};

}  // namespace saltus
