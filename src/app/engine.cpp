#include "app/engine.hpp"

#include <fmt/format.h>

namespace saltus {

Solve event_driven(const Solve& solve, const std::string& what) {
  if (solve.engine && *solve.engine != "event")
    throw Error(ErrorKind::usage, fmt::format("{} come from the engine 'event', not '{}'", what, *solve.engine), {},
                "leave out --engine");
  if (solve.dt || solve.theta || solve.adaptive)
    throw Error(ErrorKind::usage,
                fmt::format("{} belongs to the engine 'step', and {} come from 'event'",
                            solve.dt      ? "--dt"
                            : solve.theta ? "--theta"
                                          : "--adaptive",
                            what),
                {}, "leave it out");
  if (solve.attract)
    throw Error(ErrorKind::usage, fmt::format("--attract does not go with {}: they slide exactly", what), {},
                "leave it out, or use it with 'run'");
  Solve out = solve;
  out.engine = "event";
  return out;
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
