#include "flow/trajectory.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "solve/polynomial.hpp"

namespace saltus {

void write_visible(const Mode& mode, int visible, Mode& out) {
  const size_t count = static_cast<size_t>(visible);
  if (out.switches.size() != count) out.switches.resize(count);
  for (size_t i = 0; i < count; ++i)
    out.switches[i] = mode.switches[i] == '=' ? '0' : mode.switches[i] == '^' ? '~' : mode.switches[i];
  if (!mode.constraints.empty() || !out.constraints.empty()) out.constraints = mode.constraints;
}

Mode visible_mode(const Mode& mode, int visible) {
  Mode out;
  write_visible(mode, visible, out);
  return out;
}

std::string_view kind_name(EventKind kind) {
  static constexpr std::array<std::string_view, 11> names{"cross", "slide",   "leave", "graze",   "impact", "close",
                                                          "open",  "chatter", "jump",  "section", "mode"};
  return names[static_cast<size_t>(kind)];
}

EventKind kind_of_change(char from, char to) {
  return to == 'c'     ? EventKind::close
         : to == 'o'   ? EventKind::open
         : to == '0'   ? EventKind::slide
         : from == '0' ? EventKind::leave
                       : EventKind::cross;
}

std::string_view why_name(Why why) {
  static constexpr std::array<std::string_view, 10> names{
      "time", "stop", "count", "zeno", "nonunique", "inconsistent", "stalled", "diverged", "undefined", "cancelled"};
  return names[static_cast<size_t>(why)];
}

void Trajectory::clear() {
  states = 0;
  start_time = 0;
  start_state.clear();
  start_mode.clear();
  pieces.clear();
  arcs.clear();
  events.clear();
  transitions.clear();
  messages.clear();
  sliding.clear();
  end.why = Why::time;
  end.message.clear();
  end.t = 0;
  end.state.clear();
  end.mode.clear();
  last.mode.clear();
  last.counters.clear();
  last.held.clear();
  last.guess.clear();
  cost = {};
}

size_t Trajectory::piece_at(double t) const {
  assert(dense());
  const bool backward = pieces.back().length < 0;
  const auto later = std::upper_bound(pieces.begin(), pieces.end(), t, [backward](double time, const Piece& p) {
    return backward ? time > p.start : time < p.start;
  });
  return later == pieces.begin() ? 0 : static_cast<size_t>(later - pieces.begin()) - 1;
}

std::vector<double> Trajectory::operator()(double t) const {
  if (!dense())
    throw Error(ErrorKind::usage, "the run has kept no pieces: its state is known at its end and at events alone", {},
                "ask for a dense run");
  const double from = pieces.front().start, drawn = pieces.back().start + pieces.back().length;
  const bool beyond = std::abs(end.t - from) > std::abs(drawn - from);  // the limit at which events accumulate
  const double to = beyond ? end.t : drawn, rounding = 1e-9 * std::abs(to - from);
  if (!(t >= std::min(from, to) - rounding && t <= std::max(from, to) + rounding))
    throw Error(ErrorKind::usage, fmt::format("there is no state at t = {:.15g}", t), {},
                fmt::format("the run goes from {:.15g} to {:.15g}", from, to));
  const Piece& p = pieces[piece_at(t)];
  std::vector<double> x(static_cast<size_t>(states));
  evaluate(p, states, t - p.start, x.data());
  return x;
}

void Trajectory::evaluate(const Piece& piece, int states, double tau, double* x) {
  const size_t stride = piece.coefficients.size() / static_cast<size_t>(states);
  for (size_t i = 0; i < static_cast<size_t>(states); ++i)
    x[i] = evaluate_plainly({&piece.coefficients[i * stride], stride}, tau);
}

}  // namespace saltus
