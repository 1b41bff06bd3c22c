#include "flow/event/watches.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "flow/leading.hpp"
#include "flow/thresholds.hpp"
#include "solve/polynomial.hpp"

namespace saltus {

bool is_solved(const Guard& guard, const Program& program) {
  if (guard.kind == GuardKind::gap) return program.model().form.gaps[at(guard.item)].degree == 0;
  return guard.kind == GuardKind::sigma || guard.kind == GuardKind::lambda;
}

void Watches::list(const Moment& now, Smooth& smooth, const Jumps& jumps, bool expand_slopes) {
  watches_.clear();
  Series& series = smooth.series();
  const int m = program_.switches();
  for (int i = 0; i < m; ++i) {
    if (!program_.moves(i)) continue;
    const char c = now.mode.switches[at(i)];
    const int known = now.known[at(i)];
    if (program_.vector_of(i) >= 0) {
      if (program_.leads(i)) watch_vector(i, c, smooth);
      continue;
    }
    if (c == '+' || c == '-') {
      const int sign = c == '+' ? 1 : -1;
      watches_.push_back(
          {.guard = {GuardKind::surface, i, sign}, .c = series.surface(i), .known = known, .sign = sign});
    } else if (c == '0' && series.tape().degree[at(i)] >= 0 && !series.held(i) && !series.ties().contains(i)) {
      const double* sigma = series.unknown(i);
      const double s = series.hold(i), start = sigma[0];
      const auto add = [&](GuardKind kind, int side, double offset, int zeros, int sign) {
        watches_.push_back({.guard = {kind, i, side}, .c = sigma, .offset = offset, .known = zeros, .sign = sign});
      };
      add(GuardKind::sigma, 1, s, start > 0 ? known : 0, -1);
      add(GuardKind::sigma, -1, -s, start < 0 ? known : 0, 1);
      if (direction_ < 0 && s > 1 && std::abs(start) > 1) {
        const int side = start > 0 ? 1 : -1;
        add(GuardKind::slip, side, side, 0, side);
      }
    }
  }
  for (int j = 0; j < program_.constraints(); ++j) {
    const bool open = now.mode.constraints[at(j)] == 'o';
    if (!open && (series.held(m + j) || program_.joint(j))) continue;
    watches_.push_back({.guard = {open ? GuardKind::gap : GuardKind::lambda, j, 1},
                        .c = open ? series.gap(j) : series.unknown(m + j),
                        .known = now.known[at(m + j)],
                        .sign = 1});
  }
  if (series.slope_varies()) {
    if (expand_slopes) series.expand_slope(smooth.order());
    for (const Series::Single& single : series.singles()) {
      const int u = series.active()[at(single.member)];
      if (u >= m || single.output < 0) continue;
      watches_.push_back(
          {.guard = {GuardKind::slope, u, 0}, .c = series.slope_series(single.output), .output = single.output});
    }
  }
  for (size_t k = 0; k < jumps.size(); ++k) {
    if (jumps.has_clock(k) || jumps.shared(k).rests(now.mode)) continue;
    watches_.push_back({.guard = {GuardKind::jump, static_cast<int>(k), jumps.side(k)},
                        .c = series.jump(static_cast<int>(k)),
                        .known = std::max(jumps.at_zero(k) ? 1 : 0, jumps.shared(k).known(now)),
                        .sign = jumps.side(k)});
  }
}

/// Slipping: the series of |h|, which shows a straight arrival where those of its components go on. At rest: the room
/// of s in its disc, hold^2 - s.s.
void Watches::watch_vector(int lead, char letter, const Smooth& smooth) {
  const Series& series = smooth.series();
  if (letter == '~')
    watches_.push_back({.guard = {GuardKind::surface, lead, 1}, .c = series.surface(lead), .known = 0, .sign = 1});
  if (letter != '0') return;
  const size_t count = at(smooth.order()) + 1;
  std::vector<double>& room = rooms_[lead];
  room.assign(count, 0.0);
  room[0] = std::pow(series.hold(lead), 2);
  for (const int part : program_.parts(program_.vector_of(lead))) {
    const double* s = series.unknown(part);
    for (size_t k = 0; k < count; ++k) {
      for (size_t j = 0; j <= k; ++j) room[k] -= s[j] * s[k - j];
    }
  }
  const bool at_bound = room[0] < bound_margin;  // it comes from there, inward or along it
  if (at_bound) room[0] = 0;
  watches_.push_back({.guard = {GuardKind::sigma, lead, 1}, .c = room.data(), .known = at_bound ? 1 : 0, .sign = 1});
}

std::span<const WatchedSeries> Watches::series(const Smooth& smooth) {
  controlled_.clear();
  for (int i = 0; smooth.series().departs() && i < program_.switches(); ++i) {
    if (smooth.series().mode().switches[at(i)] == '^') controlled_.push_back({smooth.series().unknown(i), 1.0, -1});
  }
  for (const Watch& w : watches_) controlled_.push_back({w.c, std::abs(w.offset), output(w)});
  const std::vector<Section>& sections = program_.model().sections;
  for (size_t s = 0; s < sections.size(); ++s) {
    const int number = static_cast<int>(s);
    if (sections[s].kind == Section::Kind::on)
      controlled_.push_back({smooth.series().section(number), 0, static_cast<int>(program_.section(number))});
  }
  return controlled_;
}

std::vector<SampledFunction> Watches::sampled() const {
  using Kind = SampledFunction::Kind;
  std::vector<SampledFunction> out;
  for (const Watch& w : watches_) {
    switch (w.guard.kind) {
      case GuardKind::surface: out.push_back({Kind::surface, w.guard.item, 0}); break;
      case GuardKind::sigma:
      case GuardKind::slip: out.push_back({Kind::unknown, w.guard.item, std::abs(w.offset)}); break;
      case GuardKind::gap: out.push_back({Kind::gap, w.guard.item, 0}); break;
      case GuardKind::lambda: out.push_back({Kind::unknown, program_.switches() + w.guard.item, 0}); break;
      case GuardKind::slope: out.push_back({Kind::slope, w.output, 0}); break;
      case GuardKind::jump:
      case GuardKind::clock: out.push_back({Kind::jump, w.guard.item, 0}); break;
    }
  }
  for (size_t s = 0; s < program_.model().sections.size(); ++s) out.push_back({Kind::section, static_cast<int>(s), 0});
  return out;
}

void Watches::polish(const Watch& found, const Moment& now, Smooth& smooth,
                     std::span<const SampledFunction> functions) {
  const auto index = static_cast<size_t>(&found - watches_.data());
  if (found.late || found.touch) return;
  watches_[index].root = smooth.polish(now, functions[index], found.offset, found.root);
}

/// The output of the tape that gives a watched function; -1 for an unknown of the equations of a mode.
int Watches::output(const Watch& w) const {
  switch (w.guard.kind) {
    case GuardKind::surface: return static_cast<int>(program_.surface(w.guard.item));
    case GuardKind::gap: return static_cast<int>(program_.gap(w.guard.item));
    case GuardKind::jump: return static_cast<int>(program_.jump(w.guard.item));
    default: return -1;
  }
}

const Watch* Watches::find_first(Smooth& smooth, const Jumps& jumps, double h, double resolution, bool samples) {
  Watch* first = nullptr;
  const size_t count = at(smooth.order()) + 1;
  const double known = samples ? std::abs(h) : HUGE_VAL;  // series go on behind a step, samples do not
  for (size_t i = 0; i < watches_.size(); ++i) {
    Watch& w = watches_[i];
    w.found = w.late = w.touch = false;
    w.nowhere = !samples && goes_over(w, smooth, h);
    w.blur = samples ? 0 : blur(w, smooth);
    locate(w, samples ? smooth.sample(static_cast<int>(i)) : w.c, count, jumps, h,
           std::min(resolution, known - std::abs(h)));
    if (!w.found) continue;
    if (!first || std::abs(w.root) < std::abs(first->root)) first = &w;
    if (std::abs(w.root) < std::abs(h)) h = w.root;  // nothing later matters, but ties do
    if (h == 0) h = direction_ * std::min(resolution, known);
  }
  return first;
}

/// True if a surface or gap is zero at the beginning, although nobody has said so, and goes to the other side by more
/// than rounding: it was reached just before, within its last digit.
bool Watches::goes_over(const Watch& w, Smooth& smooth, double h) const {
  const double* c = w.c;
  if (c[0] != 0 || w.known != 0 || w.sign == 0 || output(w) < 0 || w.guard.kind == GuardKind::jump) return false;
  int first = 1;
  while (first < smooth.order() && c[first] == 0) ++first;
  const double side = c[first] * (first % 2 == 0 ? 1 : direction_);
  if (!(side * w.sign < 0)) return false;
  double size = 0;
  for (int k = smooth.order(); k > 0; --k) size = (size + std::abs(c[k])) * std::abs(h);
  return size > clear_motion * smooth.series().noise(at(output(w)));
}

/// The current of a diode with a resistance that has died out is what rounding makes of the voltages beside it.
double Watches::blur(const Watch& w, Smooth& smooth) const {
  if (w.guard.kind != GuardKind::lambda || w.known != 0 || !(w.c[0] * w.sign < 0)) return 0;
  const Series& series = smooth.series();
  const int u = program_.switches() + w.guard.item;
  if (series.tape().degree[at(u)] != 0 || series.raised(u)) return 0;
  for (const Series::Single& single : series.singles()) {
    if (series.active()[at(single.member)] != u || single.slope == 0) continue;
    return zero_bounds * smooth.series().noise(program_.residual(u)) / std::abs(single.slope);
  }
  return 0;
}

void Watches::locate(Watch& w, const double* c, size_t count, const Jumps& jumps, double h, double resolution) {
  // Zeros within the resolution of time are examined together with the first event.
  const double reach = h + direction_ * resolution;
  std::span<const double> series(c, count);
  if (w.offset != 0) {
    shifted_.assign(c, c + count);
    shifted_[0] -= w.offset;
    series = shifted_;
  }
  const bool jump = w.guard.kind == GuardKind::jump;
  const double noise = w.guard.kind == GuardKind::sigma ? sigma_noise * std::abs(w.offset) : w.blur;
  if (w.known == 0 && w.sign != 0 && !jump && (series[0] * w.sign < -w.blur || w.nowhere)) {
    w.found = w.late = true;
    w.root = 0;
    return;
  }
  double from = 0;
  for (int attempt = 0; attempt < 16; ++attempt) {
    const Root root = leftmost_root(series, {.h = reach, .from = from, .known_zeros = w.known, .noise = noise});
    if (root.kind == RootKind::none) return;
    if (root.kind == RootKind::crossing && (!jump || jumps.wanted(at(w.guard.item), root.sign_after))) {
      const double at = is_solved(w.guard, program_) ? root.at : with_known_zeros(series, w.known, root.at, resolution);
      w.found = true;
      w.root = std::abs(at) > std::abs(h) ? h : at;
      return;
    }
    from = root.at;  // a touch, or a crossing in a direction that does not count
  }
}

bool Watches::has_leapt(const Watch& w, Smooth& smooth) const {
  if (w.guard.kind != GuardKind::surface || w.known != 0) return false;
  return std::abs(w.c[0]) > rested_bounds * smooth.series().noise(at(output(w)));
}

bool Watches::is_at_pole(const Watch& w, Smooth& smooth, double resolution) const {
  if (w.guard.kind != GuardKind::surface || w.known != 0 || has_leapt(w, smooth)) return false;
  return std::abs(w.c[0]) > clear_motion * resolution * std::abs(w.c[1]);
}

double Watches::find_touch(const Smooth& smooth, double h, double resolution) {
  touched_ = nullptr;
  for (Watch& w : watches_) {
    w.found = false;
    if (w.guard.kind != GuardKind::surface && w.guard.kind != GuardKind::gap) continue;
    const std::span<const double> c(w.c, at(smooth.order()) + 1);
    const Root root = leftmost_root(c, {.h = h, .known_zeros = w.known});
    if (root.kind != RootKind::tangent || std::abs(root.at) <= resolution) continue;
    w.found = w.touch = true;
    w.root = root.at;
    if (!touched_ || std::abs(root.at) < std::abs(touched_->root)) touched_ = &w;
  }
  return touched_ ? touched_->root : 0;
}

bool Watches::arrive_within(double time) {
  bool any = false;
  for (Watch& w : watches_) {
    const double* c = w.c;
    const double value = c[0] - w.offset, rate = c[1] * direction_;
    const bool arrives = value * rate < 0 || (value == 0 && w.sign * rate < 0);
    // A root that begins here has an infinite rate, which tells nothing.
    w.found = w.known == 0 && arrives && std::isfinite(rate) && std::abs(value) <= time * std::abs(rate);
    w.root = 0;
    any = any || w.found;
  }
  return any;
}

bool Watches::closes_within(double time) {
  arrive_within(time);
  bool any = false;
  for (Watch& w : watches_) {
    w.found = w.found && w.guard.kind == GuardKind::gap;
    any = any || w.found;
  }
  return any;
}

const Watch* Watches::within_rounding(Smooth& smooth, double step) {
  const Watch* first = nullptr;
  for (Watch& w : watches_) {
    w.found = w.touch = false;
    if (w.guard.kind != GuardKind::surface || w.known != 0) continue;
    const double* c = w.c;
    const double time = time_to_zero(c, direction_);
    if (!(time > 0 && std::abs(c[0]) <= few_steps * step * std::abs(c[1]))) continue;
    if (std::abs(c[0]) > smooth.series().noise(at(output(w)))) continue;
    w.found = w.late = true;
    w.root = direction_ * time;
    if (!first || time < std::abs(first->root)) first = &w;
  }
  return first;
}

double Watches::arrival(const Watch& w, const Smooth& smooth, double tau) const {
  const bool told = w.guard.kind == GuardKind::surface || w.guard.kind == GuardKind::gap;
  if (!told || w.late || w.touch) return std::nan("");
  const double* c = w.c;
  const double slope = evaluate_with_slope({c, at(smooth.order()) + 1}, tau).slope;
  const double terms = std::abs(c[0]) + (std::abs(c[1]) + std::abs(c[2] * tau)) * std::abs(tau);
  return std::abs(slope * tau) > clear_arrival * terms ? slope : std::nan("");
}

void Watches::found_at(double tau, double resolution, std::vector<Guard>& out) const {
  out.clear();
  for (const Watch& w : watches_) {
    if (!w.found || std::abs(w.root - tau) > resolution) continue;
    Guard guard = w.guard;
    if (w.late && is_solved(guard, program_)) guard.side = 0;
    if (w.touch) guard.side = 0;
    out.push_back(guard);
  }
}

}  // namespace saltus
