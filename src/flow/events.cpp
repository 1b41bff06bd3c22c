#include "flow/events.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/copy.hpp"
#include "base/index.hpp"
#include "expr/interpolant.hpp"
#include "flow/impact.hpp"
#include "flow/leading.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
Events::Events(Series& series, Rounding& point, Chatter& chatter, Recorder& recorder, const RunOptions& options)
    : series_(series),
      program_(series.program()),
      act_(series, point, options),
      limit_(series, act_),
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
  limit_.begin_run(options);
  touching_.clear();
}

void Events::start(Moment& now, std::function<double()> first_scale) {
  Transition& first = event_;
  first.reset();
  act_.time_scale = 0;
  act_.first_scale = std::move(first_scale);
  const std::optional<Fate> fate = act_.start(now, first);
  std::vector<Guard> beyond;
  if (!fate && act_.has_jumps()) {
    for (const int k : act_.found_beyond(now, nullptr)) beyond.push_back({GuardKind::jump, k, 0});
  }
  tell_messages();
  recorder_.start(now, first);
  if (fate) recorder_.finish(fate->why, fate->message, now);
  note_sections(now, 0);
  if (!beyond.empty() && !recorder_.ended()) happen(now, beyond, act_.scale_here(), 0, false);
}

bool Events::happen(Moment& now, std::span<const Guard> guards, double time_scale, double resolution, bool may_step) {
  bool seen = false;
  act_.time_scale = time_scale;
  pass_sections(now, guards, resolution);
  if (recorder_.ended()) return true;
  touched_.clear();
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
    std::vector<int> next = act_.caused();
    if (act_.has_jumps() && !recorder_.ended()) {
      for (const int k : act_.found_beyond(now, &event)) {
        if (std::find(next.begin(), next.end(), k) == next.end()) next.push_back(k);
      }
      tell_messages();
    }
    event.reset();
    for (const int k : next) event.guards.push_back({GuardKind::jump, k, 0});
  }
  recorder_.pass_due(now, resolution);
  if (seen && !recorder_.ended()) finish_chatter(now, time_scale, resolution);
  return seen;
}

/// A surface that was zero at the last event of this instant is zero still, whatever rounding left of it: as long as it
/// moves to the side of its switch state.
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

/// Marks the items touched by an event, for the recognition of sequences: guards with their sides, and if contacts were
/// hit.
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

LoneGuard Events::lone_guard(const Moment& now, const Guard& guard, bool line) {
  LoneGuard lone;
  if (!act_.decides_alone(now, guard, line, lone)) return lone;
  const int u = lone.hits ? program_.switches() + guard.item : guard.item;
  for (size_t s = 0; s < program_.model().sections.size(); ++s)
    lone.meets = lone.meets || (recorder_.section_shared(s).unknown == u && guard.kind != GuardKind::sigma);
  lone.key = Chatter::key_of(guard, now.mode, lone.hits ? std::optional(guard.item) : std::nullopt);
  lone.changes.resize(lone.hits ? 1 : lone.dependents.empty() ? 3 : size_t{1} << lone.dependents.size());
  if (lone.hits) recorder_.describe_hit(guard.item, now, lone.changes[0]);
  return lone;
}

namespace {

/// The letters that follow a lone guard: its own, those of its dependents by their sides, and those of its counter,
/// which has gone on by one step.
void set_letters(const LoneGuard& lone, char letter, size_t sides, bool counted, Mode& mode) {
  mode.switches[at(lone.guard.item)] = letter;
  for (size_t i = 0; i < lone.dependents.size(); ++i)
    mode.switches[at(lone.dependents[i])] = (sides >> i) & 1 ? '+' : '-';
  if (!lone.counter || !counted) return;
  mode.switches[at(lone.counter->below)] = '+';
  mode.switches[at(lone.counter->above)] = '-';
}

/// The counter of a step that is passed goes on, upward where that is its upper one. False, with nothing changed, where
/// its table ends.
bool count_step(const Counter& counter, bool up, Moment& now) {
  const double whole = now.counters[at(counter.at)] + (up ? 1 : -1);
  if (counter.curve && !counter.curve->given(whole)) return false;
  set_counter(counter, whole, now.counters);
  return true;
}

/// Leading zeros behind the guard: the step it has come by is the lower or the upper one of its counter now.
int known_behind(const LoneGuard& lone) {
  if (!lone.counter) return lone.guard.item;
  return lone.guard.item == lone.counter->above ? lone.counter->below : lone.counter->above;
}

}  // namespace

/// The change to these letters, if it is as simple as that.
Change* Events::find_change(Moment& now, LoneGuard& lone, Change& change, char letter, size_t sides) {
  constexpr int most_tries = 100;  // a mode is not ready before it has come back
  if (change.to || change.tries >= most_tries) return change.to ? &change : nullptr;
  ++change.tries;
  const Mode before = now.mode;
  Series::Plan* through = nullptr;
  if (!lone.dependents.empty()) {
    set_letters(lone, letter, sides, false, now.mode);
    series_.set_mode(now.mode);
    through = series_.here();
  }
  set_letters(lone, letter, sides, true, now.mode);
  series_.set_mode(now.mode);
  if (series_.simple()) {
    change.to = series_.here();
    change.through = through;
    recorder_.describe(before, now, change);
  }
  now.mode = before;
  series_.set_mode(now.mode);
  return change.to ? &change : nullptr;
}

bool Events::happen(Moment& now, LoneGuard& lone, double time_scale, double resolution) {
  if (!lone.decides || recorder_.wants_transition(now.t())) return false;
  if (recorder_.has_surface_sections()) {
    if (lone.meets || recorder_.has_waiting()) return false;
    touching_.assign(program_.model().sections.size(), 0);
  }
  if (lone.hits) return rebound(now, lone, time_scale, resolution);
  act_.time_scale = time_scale;
  if (act_.may_fly_low(now.t())) return false;
  if (!lone.dependents.empty()) return step_in_time(now, lone, time_scale, resolution);
  const int u = lone.guard.item;
  const bool leaves = lone.guard.kind == GuardKind::sigma;
  SimpleChoice choice;
  if (leaves) {
    choice = {lone.guard.side > 0 ? '+' : '-', lone.hold > 1 ? 1 : 2};
  } else {  // h' on both sides, from the one it has come with
    const double here = now.arrival, across = here - (lone.before == '+' ? 2 : -2) * lone.slope;
    const double above = lone.before == '+' ? here : across, below = lone.before == '+' ? across : here;
    if (!far_from_a_change(above, below, lone.hold)) return false;
    const std::optional<SimpleChoice> sides = by_sides(above, below, lone.hold);
    if (!sides) return false;
    choice = *sides;
  }
  // A surface that begins to slide is projected, and conditions of jumps with it.
  if (act_.jumps().size() > 0 && (choice.letter == '0' || !act_.note_clear_signs(now))) return false;
  Change* const change = find_change(now, lone, lone.change(choice.letter), choice.letter, 0);
  if (!change) return false;
  if (leaves) {  // steep enough to rule from the start; the series are those of the next step
    series_.go_beside(change->to, u, choice.letter);
    const int order = std::max(choice.leading, series_.usual_order());
    if (series_.expand(now.x, now.t(), now.counters, order) != SeriesStatus::ok) return false;
    const double lead = series_.surface(u)[choice.leading] * (choice.letter == '+' ? 1 : -1);
    const double jump = std::abs(lone.slope) * (1 + lone.hold);
    if (!(lead * (choice.leading == 2 ? time_scale : 1) > clear_rate * jump)) return false;
  }
  if (lone.counter) {  // the letters are what they were, one step on
    const bool passes = choice.letter == (lone.before == '+' ? '-' : '+');
    if (!passes || !count_step(*lone.counter, u == lone.counter->above, now)) return false;
  } else {
    if (!leaves) series_.go_beside(change->to, u, choice.letter);
    now.mode.switches[at(u)] = choice.letter;
  }
  now.known[at(known_behind(lone))] = choice.leading;
  act_.note_nothing_caused();
  now.arrival = std::nan("");
  series_.project(now.x, now.t(), now.counters);
  now.guess.clear();
  recorder_.happened_alone(*change, now);
  end_lone(now, u, lone.key, time_scale, resolution);
  return true;
}

/// A step in time and what depends on it (Act::switch_in_time).
bool Events::step_in_time(Moment& now, LoneGuard& lone, double time_scale, double resolution) {
  const int u = lone.guard.item;
  const char letter = lone.before == '+' ? '-' : '+';
  const std::optional<size_t> sides = act_.sides_behind(now, lone);
  if (!sides || !passes_no_jump(now)) return false;
  Change* const change = find_change(now, lone, lone.changes[*sides], letter, *sides);
  if (!change) return false;
  const bool up = lone.counter && u == lone.counter->above;
  if (lone.counter && !count_step(*lone.counter, up, now)) return false;
  before_step_ = now.mode;
  set_letters(lone, letter, *sides, true, now.mode);
  series_.go_through(change->through, change->to, now.mode);
  if (series_.expand(now.x, now.t(), now.counters, series_.usual_order()) != SeriesStatus::ok) {
    now.mode = before_step_;  // a field that begins at its surface
    if (lone.counter) count_step(*lone.counter, !up, now);
    series_.set_mode(now.mode);
    return false;
  }
  now.known[at(known_behind(lone))] = 1;
  now.arrival = std::nan("");
  now.guess.clear();
  act_.note_nothing_caused();
  recorder_.happened_alone(*change, now);
  end_lone(now, u, lone.key, time_scale, resolution);
  return true;
}

/// The only contact of a model rebounds, if it does: by its law in closed form, and moves apart.
bool Events::rebound(Moment& now, LoneGuard& lone, double time_scale, double resolution) {
  const int contact = lone.guard.item;
  if (!(now.arrival < 0)) return false;
  copy_numbers(now.x, before_);
  const std::optional<OneHit> hit = hit_one(series_, now.mode, contact, now.x, now.t(), now.counters, 1);
  const auto parts = [&] {
    series_.set_mode(now.mode);
    const int order = std::max(2, series_.usual_order());
    if (series_.expand(now.x, now.t(), now.counters, order) != SeriesStatus::ok) return false;
    const double* gap = series_.gap(contact);
    return gap[1] > clear_rate * std::abs(gap[2]) * time_scale;
  };
  if (!hit || hit->closed || !parts()) {
    copy_numbers(before_, now.x);
    return false;
  }
  act_.time_scale = time_scale;
  act_.note_hit(contact, now.t());
  const int u = program_.switches() + contact;
  now.arrival = std::nan("");
  now.known[at(u)] = 1;
  recorder_.hit_alone(lone.changes[0], contact, before_, now);
  if (!recorder_.ended()) end_lone(now, u, lone.key, time_scale, resolution);
  return true;
}

bool Events::jump_alone(Moment& now, const Guard& guard, double time_scale, double resolution) {
  if (recorder_.has_surface_sections() || recorder_.wants_transition(now.t())) return false;
  act_.time_scale = time_scale;
  event_.reset();
  event_.guards.assign(1, guard);
  if (!act_.jump_alone(now, guard, event_)) return false;
  now.arrival = std::nan("");
  now.guess.clear();
  recorder_.happened(event_, now);
  touched_.clear();
  mark(event_);
  recorder_.pass_due(now, resolution);
  if (!recorder_.ended()) finish_chatter(now, time_scale, resolution);
  return true;
}

/// Ends an event of one surface or contact alone.
void Events::end_lone(Moment& now, int unknown, uint64_t key, double time_scale, double resolution) {
  note_sections(now, resolution);
  recorder_.pass_due(now, resolution);
  if (recorder_.ended()) return;
  chatter_.add(now.t(), unknown, now.x, key);
  if (chatter_.is_steady(resolution)) return;
  follow(limit_.look(chatter_, now, at_limit_, time_scale, resolution), now, resolution);
}

void Events::finish_chatter(Moment& now, double time_scale, double resolution) {
  follow(limit_.look(chatter_, touched_, now, at_limit_, time_scale, resolution), now, resolution);
}

void Events::follow(const Limit::Reached& reached, Moment& now, double resolution) {
  tell_messages();
  if (reached.event) recorder_.happened(at_limit_, now);
  if (reached.fate) return recorder_.finish(reached.fate->why, reached.fate->message, now);
  if (reached.event) note_sections(now, resolution);
}

/// A section on a surface or gap that arrives at zero is met there, if its last sign says that it has not been yet.
void Events::pass_sections(const Moment& now, std::span<const Guard> guards, double resolution) {
  if (!recorder_.has_surface_sections()) return;
  touching_.assign(program_.model().sections.size(), 0);
  for (const Crossing& c : recorder_.take_waiting()) {
    if (recorder_.ended()) return;
    if (!turns_back(c, now, guards)) recorder_.pass_here(c.section, c.sign, now, resolution);
  }
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
    if (touching_[s]) continue;
    if (recorder_.section_sign(s) != -from) {  // on its side, or it has left zero since the last look
      const Crossing arrival{.section = static_cast<int>(s), .sign = -from};
      if (turns_back(arrival, now, guards)) continue;
      recorder_.pass_here(arrival.section, arrival.sign, now, resolution);
    }
    recorder_.set_section_sign(s, from);  // which it leaves, whatever rounding says: coming back is no crossing
  }
}

/// True if the mode that follows turns the function of a section back where it comes to zero together with surfaces: a
/// touch is no crossing, of a section as of a jump.
bool Events::turns_back(const Crossing& crossing, const Moment& now, std::span<const Guard> guards) {
  const size_t s = at(crossing.section);
  const std::optional<Moment> after = act_.follow_surfaces(now, guards, recorder_.section_shared(s).unknown);
  if (!after || section_lead(crossing.section, *after) != -crossing.sign) return false;
  touching_[s] = 1;
  recorder_.touch(crossing.section, now);
  return true;
}

/// Sections whose functions a jump has carried over zero.
void Events::leap_sections(const Transition& event, const Moment& now, double resolution) {
  for (const JumpDone& done : event.jumps) {
    for (size_t s = 0; s < done.section_signs.size(); ++s) {
      const int sign = done.section_signs[s];
      if (sign == 0) continue;
      if (s < touching_.size()) touching_[s] = 0;
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
    const bool zero = shared.rests(now.mode) || shared.known(now) > 0 || (s < touching_.size() && touching_[s]);
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
