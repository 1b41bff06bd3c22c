#include "flow/events.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/index.hpp"
#include "flow/leading.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
Events::Events(Series& series, Rounding& point, Chatter& chatter, Recorder& recorder, const RunOptions& options)
    : series_(series),
      program_(series.program()),
      act_(series, point, options),
      chatter_(chatter),
      recorder_(recorder) {
  take(options);
}

void Events::begin_run(const RunOptions& options) {
  act_.begin_run(options);
  take(options);
}

void Events::take(const RunOptions& options) {
  options_ = &options;
  direction_ = options.until < options.from ? -1.0 : 1.0;
}

void Events::start(Moment& now, std::function<double()> first_scale) {
  Transition& first = event_;
  first.reset();
  act_.time_scale = 0;
  act_.first_scale = std::move(first_scale);
  const std::optional<Fate> fate = act_.start(now, first);
  tell_messages();
  recorder_.start(now, first);
  if (fate) recorder_.finish(fate->why, fate->message, now);
  note_sections(now, 0);
}

bool Events::happen(Moment& now, std::span<const Guard> guards, double time_scale, double resolution, bool may_step) {
  bool seen = false;
  pass_sections(now, guards, resolution);
  if (recorder_.ended()) return true;
  touched_.clear();
  act_.time_scale = time_scale;
  if (guards.size() == 1 && happen_alone(now, guards[0])) {
    note_sections(now, resolution);
    recorder_.pass_due(now, resolution);
    if (!recorder_.ended()) finish_chatter(now, time_scale, resolution);
    return true;
  }
  Transition& event = event_;
  event.reset();
  event.guards.assign(guards.begin(), guards.end());
  while (!event.guards.empty() && !recorder_.ended()) {
    act_.time_scale = time_scale;
    const std::optional<Moment> before = may_step ? std::optional(now) : std::nullopt;
    known_ = now.known;
    const std::optional<Fate> fate = act_.happen(now, event);
    if (!fate && event.impulse.empty() && event.jumps.empty()) keep_known(now);
    tell_messages();
    if (may_step && fate && fate->why == Why::inconsistent && event.jumps.empty() && event.impulse.empty()) {
      now = *before;
      return seen;
    }
    recorder_.happened(event, now);
    if (fate) {
      recorder_.finish(fate->why, fate->message, now);
      return true;
    }
    leap_sections(event, now, resolution);
    note_sections(now, resolution);
    seen = seen || !event.silent;
    mark(event);
    event.reset();
    for (const int k : act_.caused()) event.guards.push_back({GuardKind::jump, k, 0});
  }
  recorder_.pass_due(now, resolution);
  if (seen && !recorder_.ended()) finish_chatter(now, time_scale, resolution);
  return seen;
}

/// The ordinary event, without the books of a transition where nobody reads them.
bool Events::happen_alone(Moment& now, const Guard& guard) {
  const bool surface = guard.kind == GuardKind::surface || guard.kind == GuardKind::sigma;
  if (!surface || recorder_.wants_transition(now.t())) return false;
  char& letter = now.mode.switches[at(guard.item)];
  const char before = letter;
  if (!act_.happen_alone(now, guard)) return false;
  const char after = std::exchange(letter, before);
  chatter_.note(guard, now.mode);
  letter = after;
  touched_.push_back(guard.item);
  recorder_.happened_alone(guard.item, before, now);
  return true;
}

/// What was zero at the last event of this instant is zero still, whatever rounding left of it: as long as it goes the
/// way of its letter.
void Events::keep_known(Moment& now) {
  const int m = program_.switches();
  bool expanded = false;
  for (size_t u = 0; u < known_.size(); ++u) {
    if (known_[u] != 1 || now.known[u] != 0) continue;
    const bool contact = u >= at(m);
    const char letter = contact ? now.mode.constraints[u - at(m)] : now.mode.switches[u];
    const double side = letter == '-' ? -1 : letter == '+' || letter == 'o' ? 1 : 0;
    if (side == 0) continue;
    if (!expanded) {
      series_.set_mode(now.mode);
      if (series_.expand(now.x, now.t(), now.counters, 1) != SeriesStatus::ok) return;
      expanded = true;
    }
    const int item = static_cast<int>(u);
    const double rate = contact ? series_.gap(item - m)[1] : series_.surface(item)[1];
    if (rate * side * direction_ > 0) now.known[u] = 1;
  }
}

std::vector<Guard> Events::crossed(const Moment& now) {
  std::vector<Guard> out;
  for (const int k : act_.note_signs(now)) out.push_back({GuardKind::jump, k, 0});
  return out;
}

void Events::tell_messages() {
  if (!act_.has_messages()) return;
  for (const std::string& message : act_.take_messages()) recorder_.say(message);
}

/// What an event touched, for the recognition of sequences: guards with their sides, and whether contacts were hit.
void Events::mark(const Transition& event) {
  const int m = program_.switches(), unknowns = program_.unknowns();
  for (const Guard& g : event.guards) {
    switch (g.kind) {
      case GuardKind::surface:
      case GuardKind::sigma:
      case GuardKind::slip:
      case GuardKind::slope: touched_.push_back(g.item); break;
      case GuardKind::gap:
      case GuardKind::lambda: touched_.push_back(m + g.item); break;
      case GuardKind::jump: touched_.push_back(unknowns + g.item); break;
      case GuardKind::clock: break;
    }
  }
  chatter_.note(event);
}

void Events::finish_chatter(Moment& now, double time_scale, double resolution) {
  chatter_.add(now.t(), touched_, now.x);
  const std::optional<Accumulation> found = chatter_.find(
      resolution, time_scale, options_->tolerance,
      [&](double t, std::span<const int> touched, std::span<const double> x) { return blur(now, t, touched, x); },
      [&](double t, std::span<const int> touched, std::span<const double> x) { return lowest(now, t, touched, x); });
  if (found) go_to_limit(*found, now, resolution);
}

/// Rounding of what was touched at x over its rate there.
double Events::blur(const Moment& now, double t, std::span<const int> touched, std::span<const double> x) {
  const int m = program_.switches(), unknowns = program_.unknowns();
  series_.set_mode(now.mode);
  if (series_.expand(x, t, now.counters, 1) != SeriesStatus::ok) return 0;
  double widest = 0;
  for (const int u : touched) {
    const size_t output = u < m          ? program_.surface(u)
                          : u < unknowns ? program_.gap(u - m)
                                         : program_.jump(u - unknowns);
    const double* h = u < m ? series_.surface(u) : u < unknowns ? series_.gap(u - m) : series_.jump(u - unknowns);
    const double rate = std::abs(h[1]);
    if (rate > 0) widest = std::max(widest, series_.noise(output) / rate);
  }
  return widest;
}

/// A flight of height rate^2/(2 a) takes 2 rate/a, that is 4 heights/rate.
double Events::lowest(const Moment& now, double t, std::span<const int> touched, std::span<const double> x) {
  const int m = program_.switches();
  series_.set_mode(now.mode);
  if (touched.empty() || series_.expand(x, t, now.counters, 1) != SeriesStatus::ok) return 0;
  double shortest = HUGE_VAL;
  for (const int u : touched) {
    if (u < m || u >= program_.unknowns() || program_.model().form.gaps[at(u - m)].degree != 2) return 0;
    if (now.mode.constraints[at(u - m)] == 'c') continue;
    const double rate = std::abs(series_.gap(u - m)[1]);
    shortest = std::min(shortest, 4 * low_flight_bounds * series_.noise(program_.gap(u - m)) / rate);
  }
  return shortest < HUGE_VAL ? shortest : 0;
}

/// Whether each state is where its sequence will still take it, to a small part of the tolerance: hits of several
/// contacts approach their common ratio by and by.
bool Events::limit_is_seen(const Accumulation& found, const Moment& now) {
  series_.set_mode(now.mode);
  if (series_.evaluate(now.x, now.t(), now.counters) != SeriesStatus::ok) return true;
  for (size_t i = 0; i < now.x.size(); ++i) {
    const double moved = std::abs(series_.rate(static_cast<int>(i))[0]) * act_.scale();
    const double size = std::max({std::abs(now.x[i]), moved, std::abs(options_->initial[i])});
    if (chatter_.limit_moved(found, i) > limit_error * options_->tolerance * size) return false;
  }
  return true;
}

/// The limit: what chattered has come to rest; everything else went on as in the mode in which it rests.
void Events::go_to_limit(const Accumulation& found, Moment& now, double resolution) {
  for (size_t i = 0; i < now.x.size(); ++i) {
    if (!chatter_.grows(found, i)) continue;
    if (found.exhausted)
      recorder_.finish(Why::diverged,
                       fmt::format("events accumulate at t = {} and '{}' grows without bound from one to the next",
                                   now.t(), program_.model().states[i].name),
                       now);
    return;
  }
  if (!found.exhausted && !found.blurred && !limit_is_seen(found, now)) return;
  const std::vector<int> resting = chatter_.members(found);
  if ((found.exhausted || found.blurred || found.rest == 0) && hit_in_turn(resting, found.rest, now, resolution))
    return;
  const Moment last = now;
  for (const char letter : {'0', '='}) {  // held by sigma, or, where roots leave no series, by itself
    now = last;
    if (!extrapolate(found, resting, letter, now)) continue;
    if (options_->zeno_stop) return recorder_.finish(Why::zeno, "events accumulate here", now);
    Transition event{.x_minus = last.x};
    bool rests = false;
    const std::optional<Fate> fate = act_.rest_at(now, resting, event, rests);
    tell_messages();
    if (fate) return recorder_.finish(fate->why, fate->message, now);
    if (!rests) continue;
    chatter_.clear();
    event.before = last.mode;
    const double smallest = 16 * eps * std::max(std::abs(now.t()), found.rest);
    const double left = found.rest > smallest ? std::log(smallest / found.rest) / std::log(found.ratio) : 1;
    event.count = static_cast<long>(found.period) * std::max(1L, static_cast<long>(left));
    recorder_.happened(event, now);
    note_sections(now, resolution);
    return;
  }
  // No rest at the limit: go on event by event, as long as time can tell them apart.
  now = last;
  series_.set_mode(now.mode);
  if (found.exhausted)
    recorder_.finish(
        Why::zeno, fmt::format("events accumulate at t = {} and none of the model's modes goes on from there", now.t()),
        now);
}

bool Events::hit_in_turn(const std::vector<int>& contacts, double rest, Moment& now, double resolution) {
  const int m = program_.switches();
  const auto flies = [&](int u) {
    const auto j = static_cast<size_t>(u - m);
    return u >= m && u < program_.unknowns() && program_.model().form.gaps[j].degree == 2 &&
           now.mode.constraints[j] == 'o';
  };
  if (contacts.size() < 2 || options_->zeno_stop || !std::all_of(contacts.begin(), contacts.end(), flies)) return false;
  // No force brings them back within what is left of the sequence, but the other contacts.
  series_.set_mode(now.mode);
  if (series_.expand(now.x, now.t(), now.counters, 2) != SeriesStatus::ok) return false;
  const auto goes_straight = [&](int u) {
    const double* gap = series_.gap(u - m);
    return std::abs(gap[1]) > straight_flight * std::abs(2 * gap[2] * rest);
  };
  if (std::none_of(contacts.begin(), contacts.end(), goes_straight)) return false;
  Transition event;
  for (const int u : contacts) event.guards.push_back({GuardKind::gap, u - m, 1});
  const std::optional<Fate> fate = act_.happen(now, event);
  tell_messages();
  recorder_.happened(event, now);
  if (fate) {
    recorder_.finish(fate->why, fate->message, now);
    return true;
  }
  chatter_.clear();
  note_sections(now, resolution);
  return true;
}

/// Whether impulses of these contacts, or these jumps, change a state.
bool Events::is_pushed(const std::vector<int>& members, int state) const {
  const int m = program_.switches();
  return std::any_of(members.begin(), members.end(), [&](int u) {
    if (u < m) return false;
    if (u >= program_.unknowns()) return true;
    const auto& along = program_.model().form.gaps[at(u - m)].direction;
    return std::any_of(along.begin(), along.end(), [&](const Assignment& a) { return a.state == state; });
  });
}

/// Time and states at the limit: each state follows its own sequence, or its rate where that is not to be seen; what
/// rests is put on its surface. False where the equations have no value there.
bool Events::extrapolate(const Accumulation& found, const std::vector<int>& resting, char letter, Moment& now) {
  const int m = program_.switches(), unknowns = program_.unknowns();
  Mode limit = now.mode;
  for (const int u : resting) {
    if (u < unknowns) (u < m ? limit.switches[at(u)] : limit.constraints[at(u - m)]) = u < m ? letter : 'c';
  }
  const size_t n = now.x.size();
  std::vector<std::array<double, 2>> flying(n, {std::nan(""), std::nan("")});  // before it rests
  series_.set_mode(now.mode);
  if (series_.expand(now.x, now.t(), now.counters, 2) == SeriesStatus::ok) {
    for (size_t i = 0; i < n; ++i)
      flying[i] = {series_.state(static_cast<int>(i))[1], series_.state(static_cast<int>(i))[2]};
  }
  series_.set_mode(limit);
  std::vector<double> x = now.x;
  series_.project(x, now.t(), now.counters);
  const bool expanded = series_.expand(x, now.t(), now.counters, 2) == SeriesStatus::ok;
  if (!expanded && series_.evaluate(x, now.t(), now.counters) != SeriesStatus::ok) return false;
  const double rest = direction_ * found.rest;
  for (size_t i = 0; i < n; ++i) {
    const double* c = series_.state(static_cast<int>(i));
    const double rate = series_.rate(static_cast<int>(i))[0];
    // What goes on alike with and without the chatter is no part of it: its own sequence would be off by its bend.
    const auto alike = [&](double a, double b) { return std::abs(a - b) <= clear_rate * (std::abs(a) + std::abs(b)); };
    const bool apart =
        expanded && !is_pushed(resting, static_cast<int>(i)) && alike(flying[i][0], c[1]) && alike(flying[i][1], c[2]);
    now.x[i] =
        apart ? now.x[i] + rest * (rate + rest * c[2]) : chatter_.limit(found, i).value_or(now.x[i] + rest * rate);
  }
  now.clock.advance(direction_ * found.rest);
  series_.project_together(now.x, now.t(), now.counters);
  // Surfaces at an angle to each other are reached by and by: until it comes no nearer.
  constexpr int most_sweeps = 1000;
  double off = HUGE_VAL, next = 0;
  for (int k = 0; k < most_sweeps && (next = series_.project(now.x, now.t(), now.counters)) < off; ++k) off = next;
  for (double& value : now.x) {  // which no digits are left of
    if (std::abs(value) < std::numeric_limits<double>::min()) value = 0;
  }
  return true;
}

/// A section on a surface or gap that arrives at zero is met there, if its last sign says that it has not been yet.
void Events::pass_sections(const Moment& now, std::span<const Guard> guards, double resolution) {
  if (!recorder_.has_surface_sections()) return;
  for (size_t s = 0; s < program_.model().sections.size(); ++s) {
    const SharedZero& shared = recorder_.section_shared(s);
    const auto arrives = std::find_if(guards.begin(), guards.end(), [&](const Guard& g) {
      const int first = g.kind == GuardKind::surface ? 0
                        : g.kind == GuardKind::gap   ? program_.switches()
                        : g.kind == GuardKind::jump  ? program_.unknowns()
                                                     : -1;
      return first >= 0 && shared.unknown == first + g.item && g.side != 0;
    });
    if (arrives == guards.end()) continue;
    const int from = shared.side * arrives->side;
    if (recorder_.section_sign(s) == from) recorder_.pass_here(static_cast<int>(s), -from, now, resolution);
    recorder_.set_section_sign(s, from);  // which it leaves, whatever rounding says: coming back is no crossing
  }
}

/// Sections whose functions a jump has carried over zero.
void Events::leap_sections(const Transition& event, const Moment& now, double resolution) {
  for (const JumpDone& done : event.jumps) {
    for (size_t s = 0; s < done.section_signs.size(); ++s) {
      if (const int sign = done.section_signs[s]; sign != 0)
        recorder_.leap(static_cast<int>(s), sign, done.after, now, resolution);
    }
  }
}

/// Signs of sections at the current state, where the next step starts from. One that has changed since the last look
/// (by an impact, a step of floor, another branch of a function) is a crossing, as is arriving at zero for good.
void Events::note_sections(const Moment& now, double resolution) {
  if (!recorder_.has_surface_sections() || recorder_.ended()) return;
  series_.set_mode(now.mode);
  if (series_.evaluate(now.x, now.t(), now.counters) != SeriesStatus::ok) return;
  values_.clear();
  for (size_t s = 0; s < program_.model().sections.size(); ++s)
    values_.push_back(series_.section(static_cast<int>(s))[0]);
  for (size_t s = 0; s < values_.size(); ++s) {
    if (program_.model().sections[s].kind != Section::Kind::on) continue;
    const SharedZero& shared = recorder_.section_shared(s);
    const bool zero = shared.rests(now.mode) || shared.known(now) > 0;
    const int before = recorder_.section_sign(s), sign = zero ? 0 : values_[s] > 0 ? 1 : values_[s] < 0 ? -1 : 0;
    recorder_.set_section_sign(s, sign);
    if (before == 0 || sign == before || (sign == 0 && section_lead(static_cast<int>(s), now) == before)) continue;
    recorder_.pass_here(static_cast<int>(s), -before, now, resolution);
  }
}

/// The sign that the function of a section, which is zero here, is about to have; 0: it stays zero.
int Events::section_lead(int section, const Moment& now) {
  const SharedZero& shared = recorder_.section_shared(at(section));
  if (shared.rests(now.mode)) return 0;
  if (shared.known(now) > 0) return shared.sign(now.mode);
  const double scale = act_.scale();
  const int order = std::min(decision_order, series_.order());
  series_.set_mode(now.mode);
  if (series_.expand(now.x, now.t(), now.counters, order) != SeriesStatus::ok) return 0;
  return leading_coefficient(series_.section(section), 1, order, scale, direction_).sign;
}

}  // namespace saltus
