#include "ask/options.hpp"

#include <cmath>

#include <fmt/format.h>

#include "ask/option_table.hpp"
#include "expr/print.hpp"

namespace saltus {
void SolveOptions::check() const {
  if (tolerance) check_range("tolerance", *tolerance);
  if (dt && !(*dt > 0 && std::isfinite(*dt)))
    misuse(fmt::format("`dt` {} is no step", print_number(*dt)), "give a positive time");
  if (theta) check_range("theta", *theta);
  if (dt && adaptive)
    misuse("`dt` and `adaptive` exclude each other", "give a fixed step, or let the engine choose it");
  if (engine) check_word(*engine, {"event", "step", "both"}, "engine");
  check_word(flow, {"auto", "taylor", "stiff"}, "flow");
  check_word(native, {"auto", "on", "off"}, "choice for `native`");
  check_word(zeno, {"complete", "stop"}, "choice for `zeno`");
  if (attract) check_range("attract", *attract);
  for (const Setting& s : leave) {
    if (s.value != "+1" && s.value != "1" && s.value != "-1" && s.value != "0")
      misuse(fmt::format("`leave` {}={}: there is no such side", s.name, s.value), "sides: +1, -1, 0 (stay)");
  }
  if (threads < 0) misuse(fmt::format("`threads` {} is no number of threads", threads), "give 1 or more");
}

std::string engine_of(const SolveOptions& solve, const Model& model) {
  return solve.engine.value_or(model.run.engine.value_or("event"));
}

Solve solve_of(const SolveOptions& solve, const Model& model) {
  solve.check();
  const std::string engine = engine_of(solve, model);
  if (engine == "event" && (solve.dt || solve.theta || solve.adaptive))
    throw Error(ErrorKind::usage,
                fmt::format("{} belongs to the engine 'step'", solve.dt      ? "`dt`"
                                                               : solve.theta ? "`theta`"
                                                                             : "`adaptive`"),
                {}, "add `engine` step");
  if (engine == "step" && solve.flow == "stiff")
    throw Error(ErrorKind::usage, "`flow` stiff belongs to the engine 'event'", {},
                "leave out `flow`, or `engine` step");
  if (engine == "both")
    throw Error(ErrorKind::usage, "`engine` both compares single trajectories", {},
                "use it with `run`, or choose `engine` event or step");
  Solve out{.from = solve.from,
            .until = solve.until,
            .tolerance = solve.tolerance,
            .leave = solve.leave,
            .attract = solve.attract.value_or(0),
            .project = solve.project,
            .zeno_stop = solve.zeno == "stop",
            .native = solve.native == "on"    ? Native::on
                      : solve.native == "off" ? Native::off
                                              : Native::automatic,
            .threads = solve.threads};
  if (engine == "step") {
    out.engine = TimeStepping{.dt = solve.adaptive ? 0.0 : solve.dt, .theta = solve.theta.value_or(0.5)};
  } else {
    out.engine = EventDriven{.stiff = solve.flow == "stiff", .automatic = solve.flow == "auto"};
  }
  return out;
}

}  // namespace saltus
