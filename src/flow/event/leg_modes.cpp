#include "flow/event/leg_modes.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/index.hpp"
#include "flow/thresholds.hpp"
#include "solve/polynomial.hpp"

namespace saltus {

namespace {

/// True if an output is a straight line of time (a clock): its series ends at order 1.
bool is_line(const Tape& tape, int output) {
  if (output < 0) return false;
  const int slot = tape.outputs[at(output)];
  return slot == tape.time ||
         std::any_of(tape.linear.begin(), tape.linear.end(), [slot](const Operation& o) { return o.out == slot; });
}

}  // namespace

LegMode* LegModes::of(const Moment& now, Smooth& smooth, Watches& watches, Events& events) {
  constexpr size_t most_modes = 1000;
  Series& series = smooth.series();
  const size_t number = series.mode_number();
  if (number < modes_.size() && modes_[number] && modes_[number]->binding == series.binding())
    return modes_[number].get();
  if (!series.plain() || series.slope_varies() || number >= most_modes) return nullptr;
  if (number >= modes_.size()) modes_.resize(number + 1);
  modes_[number] = std::make_unique<LegMode>();
  LegMode& mode = *modes_[number];
  watches.list(now, smooth, events.jumps(), false);
  const std::span<const WatchedSeries> controlled = watches.series(smooth);
  const Tape& tape = series.tape().flow;
  for (size_t i = 0; i < watches.all().size(); ++i) {
    const Watch& w = watches.all()[i];
    const bool constraint = w.guard.kind == GuardKind::gap || w.guard.kind == GuardKind::lambda;
    const bool jump = w.guard.kind == GuardKind::jump;
    mode.watches.push_back({.watch = w,
                            .unknown = jump         ? -1
                                       : constraint ? program_.switches() + w.guard.item
                                                    : w.guard.item,
                            .noise = w.guard.kind == GuardKind::sigma ? sigma_noise * std::abs(w.offset) : 0,
                            .terms = is_line(tape, controlled[i].output) ? 2 : at(series.order()) + 1,
                            .solved = is_solved(w.guard, program_)});
  }
  for (const WatchedSeries& w : controlled) {  // lines have no last terms
    if (!is_line(tape, w.output)) mode.controlled.push_back(w);
  }
  for (LegWatch& w : mode.watches) w.lone = events.lone_guard(now, w.watch.guard, w.terms == 2);
  mode.jumps = events.jumps().size() > 0 && events.is_free(now);
  mode.binding = series.binding();
  return &mode;
}

bool find_alone(LegMode& mode, const Moment& now, const Jumps& jumps, int order, double h, double resolution,
                LegWatch*& first) {
  double reach = h;
  std::array<double, largest_order + 1> shifted;
  first = nullptr;
  for (LegWatch& leg : mode.watches) {
    Watch& w = leg.watch;
    const size_t count = std::min(at(order) + 1, leg.terms);
    if (leg.unknown >= 0) {
      w.known = w.offset != 0 && !(w.c[0] * w.offset > 0) ? 0 : now.known[at(leg.unknown)];
    } else {
      const size_t k = at(w.guard.item);
      w.known = jumps.at_zero(k) ? 1 : 0;
      w.sign = w.guard.side = jumps.side(k);
    }
    const double* c = w.c;
    if (w.offset != 0) {
      std::copy_n(c, count, shifted.data());
      shifted[0] -= w.offset;
      c = shifted.data();
    }
    if (w.known == 0 && !(c[0] * w.sign > 0)) return false;
    if (count == 2 && (w.known > 0 || !(c[1] * w.sign < 0))) continue;  // a clock goes on
    const Root root = first_root(c, count, reach + resolution, w.known, leg.noise);
    if (root.kind == RootKind::none) continue;
    if (root.kind == RootKind::tangent) return false;
    if (leg.unknown < 0 && !jumps.wanted(at(w.guard.item), root.sign_after)) return false;
    const double there = leg.solved ? root.at : with_known_zeros({c, count}, w.known, root.at, resolution);
    w.root = there > reach ? reach : there;
    // Zeros this near may be one event: the general way decides.
    if (first && std::abs(w.root - first->watch.root) <= resolution) return false;
    if (!first || w.root < first->watch.root) first = &leg;
    reach = std::min(reach, w.root);
  }
  return !first || first->watch.root > resolution;
}

}  // namespace saltus
