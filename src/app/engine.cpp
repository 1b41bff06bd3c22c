#include "app/engine.hpp"

#include <fmt/format.h>

#include "expr/print.hpp"

namespace saltus {

std::string engine_of(const SolveOptions& solve, const Model& model) {
  return solve.engine.value_or(model.run.engine.value_or("event"));
}

Solve solve_of(const SolveOptions& solve, const Model& model) {
  solve.check();
  const std::string engine = engine_of(solve, model);
  if (engine == "event" && (solve.dt || solve.theta || solve.adaptive))
    throw Error(ErrorKind::usage,
                fmt::format("{} belongs to the engine 'step'", solve.dt      ? "--dt"
                                                               : solve.theta ? "--theta"
                                                                             : "--adaptive"),
                {}, "add --engine step");
  if (engine == "step" && solve.flow == "stiff")
    throw Error(ErrorKind::usage, "--flow stiff belongs to the engine 'event'", {},
                "leave out --flow, or --engine step");
  if (engine == "both")
    throw Error(ErrorKind::usage, "--engine both compares single trajectories", {},
                "use it with 'saltus run', or choose --engine event or step");
  Solve out{.from = solve.from,
            .until = solve.until,
            .tolerance = solve.tolerance,
            .leave = solve.leave,
            .attract = solve.attract.value_or(0),
            .zeno_stop = solve.zeno == "stop",
            .threads = solve.threads};
  if (engine == "step") {
    out.engine = TimeStepping{.dt = solve.adaptive ? 0.0 : solve.dt, .theta = solve.theta.value_or(0.5)};
  } else {
    out.engine = EventDriven{.stiff = solve.flow == "stiff"};
  }
  return out;
}

RunOptions run_options(const SolveOptions& solve, const Model& model, std::optional<double> until) {
  return run_options(solve_of(solve, model), model, until);
}

std::vector<Past::Option> recorded(const SolveOptions& solve, const RunOptions& options) {
  std::vector<Past::Option> list{{"from", {print_number(options.from)}},
                                 {"until", {print_number(options.until)}},
                                 {"tolerance", {print_number(options.tolerance)}},
                                 {"engine", {options.step ? "step" : "event"}},
                                 {"flow", {solve.flow}},
                                 {"zeno", {solve.zeno}}};
  if (options.step) {
    list.push_back({"theta", {print_number(options.step->theta)}});
    if (options.step->dt > 0) list.push_back({"dt", {print_number(options.step->dt)}});
    if (options.step->dt == 0) list.push_back({"adaptive", {}});
  }
  Past::Option leave{"leave", {}};
  for (const Setting& s : solve.leave) leave.second.push_back(s.name + "=" + s.value);
  if (!leave.second.empty()) list.push_back(leave);
  if (solve.attract) list.push_back({"attract", {print_number(*solve.attract)}});
  return list;
}

std::vector<Past::Option> recorded(const OutputOptions& output) {
  std::vector<Past::Option> list{{"format", {output.format}}};
  if (!output.plot) list.push_back({"no-plot", {}});
  if (!output.show.empty()) list.push_back({"show", output.show});
  if (!output.range.empty()) list.push_back({"range", output.range});
  if (output.equal) list.push_back({"equal", {}});
  if (output.log_x) list.push_back({"log-x", {}});
  if (output.log_y) list.push_back({"log-y", {}});
  return list;
}

}  // namespace saltus
