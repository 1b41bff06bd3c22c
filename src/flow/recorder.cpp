#include "flow/recorder.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/copy.hpp"
#include "base/index.hpp"
#include "expr/print.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

char letter(const Mode& mode, int u, int switches) {
  return u < switches ? mode.switches[at(u)] : mode.constraints[at(u - switches)];
}

const std::string& name_of(const Model& model, int u) {
  const int m = static_cast<int>(model.form.switches.size());
  return u < m ? model.form.switches[at(u)].name : model.constraints[at(u - m)].name;
}

/// Rates given by balances whose matrix is singular here: a divisor that has vanished, against its value at the start.
std::vector<std::string> undetermined_rates(const Model& model, const RunOptions& options, const Moment& now) {
  const auto value_at = [&](const Expr& e, std::span<const double> x, double t) {
    return evaluate(e, [&](const Symbol& s) {
      const size_t i = at(s.index);
      switch (s.kind) {
        case SymbolKind::state: return x[i];
        case SymbolKind::parameter: return options.parameters[i];
        case SymbolKind::time: return t;
        case SymbolKind::sigma: return now.mode.switches[i] == '-' ? -1.0 : now.mode.switches[i] == '+' ? 1.0 : 0.0;
        case SymbolKind::counter: return now.counters[i];
        default: return 0.0;
      }
    });
  };
  std::vector<std::string> names;
  for (size_t i = 0; i < model.states.size(); ++i) {
    if (model.states[i].has_line()) continue;
    for (const Expr& e : postorder(std::span(&model.form.f[i], 1))) {
      if (e.op() != Op::div || e.argument(1).is_number()) continue;
      const double here = std::abs(value_at(e.argument(1), now.x, now.t()));
      const double first = std::abs(value_at(e.argument(1), options.initial, options.from));
      if (!std::isfinite(here) || here > vanished_divisor * (first > 0 ? first : 1)) continue;
      names.push_back(model.states[i].name + "'");
      break;
    }
  }
  return names;
}

}  // namespace

Event& EventList::add() {
  if (count_ == events_.size()) events_.emplace_back();
  Event& event = events_[count_++];
  event.on.clear();
  event.jumped.reset();
  event.count = 0;
  return event;
}

void list_events(const Transition& transition, const Model& model, EventList& out) {
  out.clear();
  if (transition.silent) return;
  const int m = static_cast<int>(model.form.switches.size()), visible = model.form.visible;
  write_visible(transition.before, visible, out.before);
  write_visible(transition.after, visible, out.after);
  const Mode &before = out.before, &after = out.after;
  const auto add = [&](EventKind kind, const Mode& to) -> Event& {
    Event& event = out.add();
    event.t = transition.t;
    event.kind = kind;
    event.before = before;
    event.after = to;
    event.state = transition.x_plus;
    return event;
  };
  for (const JumpDone& j : transition.jumps) {
    Event& event = add(EventKind::jump, before);
    event.on.push_back(model.jumps[at(j.jump)].name);
    event.jumped = j.before;
    event.state = j.after;
  }
  const std::vector<double>& x_before = transition.jumps.empty() ? transition.x_minus : transition.jumps.back().after;
  const int unknowns = m + static_cast<int>(model.constraints.size());
  if (!transition.resting.empty()) {
    Event& event = add(EventKind::chatter, after);
    for (const int u : transition.resting)
      event.on.push_back(u < unknowns ? name_of(model, u) : model.jumps[at(u - unknowns)].name);
    event.jumped = transition.x_minus;
    event.count = transition.count;
    return;
  }
  const auto changes = [&](int u) {
    if (u < m) return u < visible && before.switches[at(u)] != after.switches[at(u)];
    return before.constraints[at(u - m)] != after.constraints[at(u - m)];
  };
  int changed = 0, last = -1;  // how many, and one of them
  for (int u = 0; u < unknowns; ++u) {
    if (!changes(u)) continue;
    ++changed;
    last = u;
  }
  const bool closes = changed == 1 && last >= m && after.constraints[at(last - m)] == 'c';
  const bool hit = !transition.impulse.empty();
  if (hit && !closes) {
    Event& event = add(EventKind::impact, before);
    for (const auto& [j, impulse] : transition.impulse) {
      const std::string& name = model.constraints[at(j)].name;
      if (std::find(event.on.begin(), event.on.end(), name) == event.on.end()) event.on.push_back(name);
    }
    event.jumped = x_before;
  }
  // Steps of floor have no letter; sliding on one is told.
  for (int u = visible; u < m; ++u) {
    const char from = transition.before.switches[at(u)], to = transition.after.switches[at(u)];
    const bool step = std::any_of(model.form.counters.begin(), model.form.counters.end(),
                                  [u](const Counter& c) { return c.below == u || c.above == u; });
    if (!step || (from == '0') == (to == '0')) continue;
    add(to == '0' ? EventKind::slide : EventKind::leave, before).on.push_back(model.form.switches[at(u)].name);
  }
  if (changed == 0) return;
  Event& event = add(EventKind::mode, after);
  for (int u = 0; u < unknowns; ++u) {
    if (changes(u)) event.on.push_back(name_of(model, u));
  }
  if (hit && closes) event.jumped = x_before;
  if (changed == 1) event.kind = kind_of_change(letter(before, last, m), letter(after, last, m));
}

std::vector<Event> events_of(const Transition& transition, const Model& model) {
  EventList list;
  list_events(transition, model, list);
  const std::span<Event> events = list.events();
  return {std::make_move_iterator(events.begin()), std::make_move_iterator(events.end())};
}

namespace {

/// Names of the items of a transition, steps of floor and mod included: they are no events.
std::string names_of(const Transition& transition, const Model& model) {
  std::vector<std::string> names;
  for (const Event& event : events_of(transition, model)) names.insert(names.end(), event.on.begin(), event.on.end());
  for (const Counter& c : model.form.counters) {
    if (transition.counters_before.empty() || transition.counters_before[at(c.at)] == transition.counters[at(c.at)])
      continue;
    names.push_back(c.name.empty() ? fmt::format("floor({})", print(c.phase)) : c.name);
  }
  return fmt::format("'{}'", fmt::join(names, "', '"));
}

}  // namespace

Recorder::Recorder(const Program& program, const RunOptions& options, Trajectory& result)
    : program_(program), model_(program.model()) {
  for (size_t s = 0; s < model_.sections.size(); ++s) {
    const Section::Kind kind = model_.sections[s].kind;
    has_surface_sections_ = has_surface_sections_ || kind == Section::Kind::on;
    has_item_sections_ = has_item_sections_ || kind == Section::Kind::jump || kind == Section::Kind::constraint;
    if (kind == Section::Kind::every) every_.push_back({.section = static_cast<int>(s)});
    section_ends_.push_back("section '" + model_.sections[s].name + "'");
  }
  if (has_surface_sections_) section_shared_ = zeros_of_sections(model_);
  section_shared_.resize(model_.sections.size());
  begin_run(options, result);
}

void Recorder::begin_run(const RunOptions& options, Trajectory& result) {
  options_ = &options;
  result_ = &result;
  direction_ = options.until < options.from ? -1.0 : 1.0;
  result_->clear();
  result_->states = program_.states();
  result_->sliding.assign(at(model_.form.visible), {});
  ended_ = events_full_ = counted_out_ = false;
  reads_transitions_ = options.on_transition || options.keep_transitions;
  slides_ = section_points_ = at_once_ = 0;
  last_event_ = paced_from_ = doubled_from_ = doubling_gain_ = 0;
  slowing_ = 0;
  section_sign_.assign(model_.sections.size(), 0);
  section_seen_.assign(model_.sections.size(), -HUGE_VAL);
  waiting_.clear();
  const bool other_intervals = every_for_ != options.parameters;
  for (Every& e : every_) {
    e.next = 1;
    if (other_intervals || e.interval == 0)
      e.interval = constant_value(model_.sections[at(e.section)].value, options.parameters);
    e.due = time_of(e, e.next);
  }
  if (!every_.empty()) every_for_ = options.parameters;
}

// ---- the run -------------------------------------------------------------------------------------------------------

void Recorder::start(const Moment& now, const Transition& first) {
  result_->start_time = options_->from;
  result_->start_state = options_->initial;
  write_visible(now.mode, model_.form.visible, result_->start_mode);
  slides_ = std::count(result_->start_mode.switches.begin(), result_->start_mode.switches.end(), '0');
  last_event_ = paced_from_ = doubled_from_ = options_->from;
  if (!first.impulse.empty()) happened(first, now);
}

void Recorder::step(const Moment& now) {
  const long steps = ++result_->cost.steps;
  if (steps >= options_->max_steps)
    finish(Why::stalled, fmt::format("{} steps were not enough", options_->max_steps), now);
  if ((options_->stop && options_->stop()) || (steps % 256 == 0 && options_->progress && !options_->progress(now.t())))
    finish(Why::cancelled, "interrupted", now);
  if (steps % pace_steps == 0) look_at_pace(now);
}

/// Ends a run that would never reach its end. One that has no such time, or that a section ends: its past is its
/// measure, and the next point where a clock gives it.
void Recorder::look_at_pace(const Moment& now) {
  const double moved = std::abs(now.clock.until(paced_from_));
  const bool timed = options_->to_the_end && !options_->on_section && options_->section_count == 0;
  double left = std::abs(now.clock.until(timed ? options_->until : options_->from));
  for (const Every& e : every_) {
    if (!timed && e.section == options_->section) left = std::max(left, std::abs(now.clock.until(time_of(e, e.next))));
  }
  if (moved * (hopeless_steps / pace_steps) < left)
    finish(Why::stalled, fmt::format("the last {} steps have moved time by no more than {:.3g}", pace_steps, moved),
           now);
  paced_from_ = now.t();
  if (const long looks = result_->cost.steps / pace_steps; (looks & (looks - 1)) == 0) look_at_doubling(now, left);
}

/// Steps have doubled. At a steady pace that moves time twice as far as the doubling before; where events come ever
/// closer (spirals that shrink like 1/n: rings of genes that are switched) no farther, as often as one looks.
void Recorder::look_at_doubling(const Moment& now, double left) {
  const double gained = std::abs(now.clock.until(doubled_from_));
  slowing_ = gained < slowing_gain * doubling_gain_ ? slowing_ + 1 : 0;
  const double steps = static_cast<double>(result_->cost.steps);
  if (slowing_ >= slowing_doublings && !ended_ && left / gained > std::log2(hopeless_steps / steps))
    finish(Why::stalled,
           fmt::format("steps become ever shorter: the last {} have moved time by no more than {:.3g}",
                       result_->cost.steps / 2, gained),
           now);
  doubling_gain_ = gained;
  doubled_from_ = now.t();
}

void Recorder::happened(const Transition& transition, const Moment& now) {
  if (transition.silent) return;
  long slides = 0;
  for (int i = 0; i < model_.form.visible; ++i)
    slides += transition.after.switches[at(i)] == '0' && transition.before.switches[at(i)] != '0' ? 1 : 0;
  count(transition.t, slides);
  if (at_once_ > 0) at_once_ += static_cast<long>(transition.jumps.size());
  if (options_->on_transition) options_->on_transition(transition);
  if (options_->keep_transitions) result_->transitions.push_back(transition);
  if (tells_events()) {
    list_events(transition, model_, told_);
    tell(transition.after, transition.counters, transition.guess);
  }
  for (size_t s = 0; s < model_.sections.size(); ++s) {
    const Section& section = model_.sections[s];
    if (section.kind == Section::Kind::jump) {
      for (const JumpDone& j : transition.jumps) {
        if (j.jump != section.index || ended_) continue;
        if (point(static_cast<int>(s), transition.t, j.after, transition.after, transition.counters))
          end_at(static_cast<int>(s), now);
      }
    } else if (section.kind == Section::Kind::constraint) {
      const bool hit = std::any_of(transition.impulse.begin(), transition.impulse.end(),
                                   [&](const auto& i) { return i.first == section.index; });
      if (hit && !ended_ && point(static_cast<int>(s), transition.t, now.x, transition.after, transition.counters))
        end_at(static_cast<int>(s), now);
    }
  }
  if (ended_) return;
  if (result_->cost.events >= options_->max_events)
    return finish(Why::stalled, fmt::format("{} events were not enough", options_->max_events), now);
  if (at_once_ > most_events_at_once) {
    finish(Why::zeno,
           fmt::format("more than {} events at t = {} (the last on {})", most_events_at_once, transition.t,
                       names_of(transition, model_)),
           now);
  }
}

void Recorder::describe(const Mode& before, const Moment& now, Change& change) const {
  const std::vector<Event> events = events_of({.before = before, .after = now.mode}, model_);
  for (int i = 0; i < model_.form.visible; ++i)
    change.slides = change.slides || (now.mode.switches[at(i)] == '0' && before.switches[at(i)] != '0');
  change.shown = !events.empty();
  if (!change.shown) return;
  change.event = events.front();
  change.after = {now.mode, now.counters, {}, now.guess};
}

void Recorder::happened_alone(Change& change, const Moment& now) {
  count(now.t(), change.slides ? 1 : 0);
  if (!change.shown || !tells_events()) return;
  change.event.t = now.t();
  copy_numbers(now.x, change.event.state);
  copy_numbers(now.counters, change.after.counters);
  if (options_->on_event) options_->on_event(change.event, change.after);
  if (options_->keep_events) keep(Event(change.event));
}

void Recorder::describe_hit(int contact, const Moment& now, Change& change) const {
  change.shown = true;
  Event& event = change.event;
  event.kind = EventKind::impact;
  event.on = {model_.constraints[at(contact)].name};
  write_visible(now.mode, model_.form.visible, event.after);
  event.before = event.after;
  event.jumped.emplace();
  change.after = {now.mode, now.counters, {}, now.guess};
}

void Recorder::hit_alone(Change& change, int contact, std::span<const double> before, const Moment& now) {
  copy_numbers(before, *change.event.jumped);
  happened_alone(change, now);
  if (!has_item_sections_) return;
  for (size_t s = 0; s < model_.sections.size(); ++s) {
    const Section& section = model_.sections[s];
    if (section.kind != Section::Kind::constraint || section.index != contact || ended_) continue;
    if (point(static_cast<int>(s), now.t(), now.x, now.mode, now.counters)) end_at(static_cast<int>(s), now);
  }
}

void Recorder::count(double t, long slides) {
  ++result_->cost.events;
  at_once_ = t == last_event_ ? at_once_ + 1 : 0;
  last_event_ = t;
  slides_ += slides;
}

void Recorder::say(const std::string& message) {
  if (result_->messages.size() >= 100) return;
  if (std::find(result_->messages.begin(), result_->messages.end(), message) == result_->messages.end())
    result_->messages.push_back(message);
}

void Recorder::finish(Why why, std::string_view message, const Moment& now) {
  if (ended_) return;
  ended_ = true;
  result_->end.why = why;
  result_->end.message = message;
  result_->end.t = why == Why::time ? options_->until : now.t();
  result_->end.state = now.x;
  write_visible(now.mode, model_.form.visible, result_->end.mode);
  result_->last.mode = now.mode;
  result_->last.counters = now.counters;
}

void Recorder::stall(double length, double first_scale, const Moment& now) {
  const double last_digit = eps * std::abs(now.t());
  if (length < shortest_step_bits * last_digit && length > same_time_share * first_scale)
    return stall(fmt::format("a step of {:.3g} does not move time: its last digit is {:.2g}", length, last_digit), now);
  stall(fmt::format("steps have shrunk to {:.3g}: the rates have a singularity here", length), now);
}

void Recorder::stall(std::string cause, const Moment& now) {
  const auto largest = [](const std::vector<double>& x, double at_least) {
    for (const double v : x) at_least = std::max(at_least, std::abs(v));
    return at_least;
  };
  if (end_where_singular(now)) return;
  const double size = largest(now.x, 0);
  if (size > blow_up * largest(options_->initial, 1))
    return finish(Why::diverged, fmt::format("the state grows without bound: |x| = {:.3g}", size), now);
  finish(Why::stalled, std::move(cause), now);
}

void Recorder::end_sliding(std::span<const int> active, bool slope_varies, const Moment& now) {
  std::string names;
  for (const int u : active) {
    if (u < program_.switches()) names += (names.empty() ? "'" : ", '") + model_.form.switches[at(u)].name + "'";
  }
  if (names.empty() && program_.any_joint()) return end_at_joints(active, now);
  if (names.empty() || !slope_varies)
    return finish(Why::inconsistent, "the sliding equations have no solution any more", now);
  finish(Why::nonunique,
         fmt::format("sliding on {} stops being attractive at t = {}: the solution is not unique; `leave` chooses",
                     names, now.t()),
         now);
}

/// No forces keep the joints here: they contradict each other, or stand where they cannot move on.
void Recorder::end_at_joints(std::span<const int> active, const Moment& now) {
  std::string names;
  for (const int u : active) {
    const int j = u - program_.switches();
    if (j >= 0 && program_.joint(j)) names += (names.empty() ? "'" : ", '") + model_.constraints[at(j)].name + "'";
  }
  finish(Why::inconsistent,
         fmt::format("no forces keep the joint{} {} at t = {}: a singular position (dead centre), or joints that "
                     "contradict each other",
                     active.size() > 1 ? "s" : "", names, now.t()),
         now);
}

void Recorder::end_where_rest_is_open(std::span<const int> states, const Moment& now) {
  std::string names;
  for (const int i : states) names += (names.empty() ? "'" : ", '") + model_.states[at(i)].name + "'";
  finish(Why::undefined,
         fmt::format(
             "{} {} zero here, where the rate of '{}' has no value (0/0); a divisor that stays above zero says that "
             "it rests, as in u/max(hypot(u, v), 1e-6) for friction in a plane",
             names, states.size() > 1 ? "reach" : "reaches", model_.states[at(states[0])].name),
         now);
}

/// True if the balances do not determine their rates here.
bool Recorder::end_where_singular(const Moment& now) {
  if (model_.balances.empty()) return false;
  std::vector<std::string> names = undetermined_rates(model_, *options_, now);
  if (names.empty()) return false;
  const size_t most = 6, count = names.size();
  if (count > most) names.resize(most);
  finish(Why::undefined,
         fmt::format("the equations do not determine {}{} here: their matrix is singular", fmt::join(names, ", "),
                     count > most ? ", ..." : ""),
         now);
  return true;
}

void Recorder::end_without_value(const Guard& guard, const Moment& now) {
  finish(Why::undefined,
         guard.kind == GuardKind::surface
             ? fmt::format("the surface '{}' has no value here", model_.form.switches[at(guard.item)].name)
             : fmt::format("the gap of '{}' has no value here", model_.constraints[at(guard.item)].name),
         now);
}

void Recorder::end_undefined(std::span<const double> rates, const Moment& now) {
  if (end_where_singular(now)) return;
  for (size_t i = 0; i < rates.size(); ++i) {
    if (!std::isfinite(rates[i]))
      return finish(Why::undefined, fmt::format("the rate of '{}' is not a finite number here", model_.states[i].name),
                    now);
  }
  finish(Why::undefined, "the equations have no finite value here", now);
}

bool Recorder::has_grown(const Moment& now) {
  for (const double v : now.x) {
    if (!(std::abs(v) < largest_state)) finish(Why::diverged, "the state grows without bound", now);
  }
  return ended_;
}

// ---- events --------------------------------------------------------------------------------------------------------

/// The events of the list, with what is constant after them.
void Recorder::tell(const Mode& mode, const std::vector<double>& counters, const std::vector<double>& guess) {
  if (options_->on_event) {
    after_.mode = mode;
    copy_numbers(counters, after_.counters);
    copy_numbers(guess, after_.guess);
    for (const Event& event : told_.events()) options_->on_event(event, after_);
  }
  if (!options_->keep_events) return;
  for (Event& event : told_.events()) keep(std::move(event));
}

void Recorder::keep(Event event) {
  if (static_cast<long>(result_->events.size()) < options_->max_kept_events) {
    result_->events.push_back(std::move(event));
    return;
  }
  if (!events_full_)
    say(fmt::format("only the first {} events are kept; later ones are counted", options_->max_kept_events));
  events_full_ = true;
}

// ---- pieces --------------------------------------------------------------------------------------------------------

void Recorder::keep(Piece& piece, const Moment& now, std::vector<std::pair<int, double>> held) {
  if (!wants_pieces()) return;
  const bool same = !result_->arcs.empty() && result_->arcs.back().mode == now.mode &&
                    result_->arcs.back().counters == now.counters && result_->arcs.back().held == held &&
                    result_->arcs.back().guess == now.guess;
  if (!same) {
    if (!options_->keep_pieces) result_->arcs.clear();
    result_->arcs.push_back({now.mode, now.counters, std::move(held), now.guess});
  }
  piece.arc = static_cast<int>(result_->arcs.size()) - 1;
  if (options_->on_piece) options_->on_piece(piece, result_->arcs.back());
  if (options_->keep_pieces) result_->pieces.push_back(piece);
}

void Recorder::slid(const Mode& mode, double length) {
  for (size_t i = 0; i < result_->sliding.size(); ++i) {
    if (mode.switches[i] == '0') result_->sliding[i].time += length;
  }
}

void Recorder::slid(int i, double length) {
  if (at(i) < result_->sliding.size()) result_->sliding[at(i)].time += length;
}

void Recorder::drifted(int i, double error) {
  if (at(i) >= result_->sliding.size()) return;
  result_->sliding[at(i)].largest_error = std::max(result_->sliding[at(i)].largest_error, error);
}

void Recorder::drifted(const Mode& mode, double error) {
  for (size_t i = 0; i < result_->sliding.size(); ++i) {
    if (mode.switches[i] == '0') result_->sliding[i].largest_error = std::max(result_->sliding[i].largest_error, error);
  }
}

// ---- sections ------------------------------------------------------------------------------------------------------

double Recorder::shortest_interval() const {
  double shortest = HUGE_VAL;
  for (const Every& e : every_) shortest = std::min(shortest, e.interval);
  return shortest;
}

double Recorder::time_of(const Every& e, long k) const {
  return options_->from + direction_ * e.interval * static_cast<double>(k);
}

/// The time of the point that is due; the next one follows.
double Recorder::take_due(Every& e) {
  const double t = e.due;
  e.due = time_of(e, ++e.next);
  return t;
}

void Recorder::pass(Piece& piece, std::vector<Crossing>& crossings, Moment& now, double resolution, bool happens) {
  if (crossings.empty() && !is_due(now, std::abs(piece.length) + 4 * resolution)) return;
  if (const Every* fast = too_fast(resolution)) return end_too_fast(*fast, now);
  std::stable_sort(crossings.begin(), crossings.end(),
                   [](const Crossing& a, const Crossing& b) { return std::abs(a.tau) < std::abs(b.tau); });
  const double length = std::abs(piece.length), late = 4 * resolution;
  std::vector<double>& x = x_;
  x.resize(now.x.size());
  constexpr size_t points_between_looks = 1024;
  for (size_t passed = 0, looks = 1;; ++looks) {  // crossings and clocks in the order of time
    Point p{.section = -1, .tau = HUGE_VAL};
    if (passed < crossings.size()) p = {crossings[passed].section, crossings[passed].tau, crossings[passed].sign};
    for (size_t i = 0; i < every_.size(); ++i) {
      const double due = direction_ * now.clock.until(every_[i].due);
      if (due > length + late || (happens && due >= length - late)) continue;
      if (const double tau = std::clamp(due, 0.0, length); tau < std::abs(p.tau))
        p = {every_[i].section, direction_ * tau, 0, static_cast<int>(i)};
    }
    if (p.section < 0) return;
    double t = piece.start + p.tau;
    if (p.every >= 0) {
      t = take_due(every_[at(p.every)]);
    } else {
      ++passed;
      if (!counts(p.section, t, p.sign, resolution)) continue;
    }
    Trajectory::evaluate(piece, program_.states(), p.tau, x.data());
    const bool ends = point(p.section, t, x, now.mode, now.counters);
    const bool stops = looks % points_between_looks == 0 && options_->stop && options_->stop();
    if (!ends && !stops) continue;
    piece.length = p.tau;
    keep(piece, now);
    now.x = x;
    now.clock.set(t);
    return ends ? end_at(p.section, now) : finish(Why::cancelled, "interrupted", now);
  }
}

/// A clock of a section whose points time cannot tell apart; or null.
const Recorder::Every* Recorder::too_fast(double resolution) const {
  for (const Every& e : every_) {
    if (!(e.interval > resolution)) return &e;
  }
  return nullptr;
}

void Recorder::end_too_fast(const Every& e, const Moment& now) {
  finish(Why::stalled,
         fmt::format("the section '{}' is every {:.3g}: time cannot tell its points apart",
                     model_.sections[at(e.section)].name, e.interval),
         now);
}

void Recorder::wait_for_event(std::vector<Crossing>& crossings, double tau, double resolution) {
  waiting_.clear();
  std::erase_if(crossings, [&](const Crossing& c) {
    if (std::abs(tau - c.tau) > 4 * resolution) return false;
    waiting_.push_back(c);
    return true;
  });
}

void Recorder::touch(int s, const Moment& now) {
  section_sign_[at(s)] = 0;
  section_seen_[at(s)] = now.t();
}

void Recorder::pass_those_due(const Moment& now, double resolution) {
  if (const Every* fast = too_fast(resolution)) return end_too_fast(*fast, now);
  for (Every& e : every_) {
    while (!ended_ && direction_ * now.clock.until(e.due) <= 4 * resolution) {
      const double t = take_due(e);
      if (point(e.section, t, now.x, now.mode, now.counters)) end_at(e.section, now);
    }
  }
}

/// True if a zero at t, with this sign after it along the run, is a new one in the direction of the section.
bool Recorder::counts(int s, double t, int sign, double resolution) {
  if (has_told(s, t, resolution)) return false;
  section_seen_[at(s)] = t;
  return is_wanted(s, sign);
}

/// True if the section has been met at this time, or the run starts here.
bool Recorder::has_told(int s, double t, double resolution) const {
  return std::abs(t - section_seen_[at(s)]) <= 4 * resolution || std::abs(t - options_->from) <= 4 * resolution;
}

bool Recorder::is_wanted(int s, int sign) const {
  const Direction wanted = model_.sections[at(s)].direction;
  // Backward in time a rising crossing is met from above.
  return wanted == Direction::any || (wanted == Direction::rising) == (direction_ * sign > 0);
}

void Recorder::pass_here(int s, int sign, const Moment& now, double resolution) {
  if (ended_ || !counts(s, now.t(), sign, resolution)) return;
  if (point(s, now.t(), now.x, now.mode, now.counters)) end_at(s, now);
}

void Recorder::leap(int s, int sign, const std::vector<double>& x, const Moment& now, double resolution) {
  const bool crosses = std::exchange(section_sign_[at(s)], sign) * sign < 0;
  if (!crosses || ended_ || has_told(s, now.t(), resolution) || !is_wanted(s, sign)) return;
  if (point(s, now.t(), x, now.mode, now.counters)) end_at(s, now);
}

void Recorder::end_at(int s, const Moment& now) {
  finish(counted_out_ ? Why::count : Why::stop, section_ends_[at(s)], now);
}

bool Recorder::point(int s, double t, const std::vector<double>& x, const Mode& mode,
                     const std::vector<double>& counters) {
  const bool wants_more = !options_->on_section || options_->on_section({s, t, x, result_->cost.events, slides_});
  if (tells_events()) {
    told_.clear();
    Event& event = told_.add();
    event.t = t;
    event.kind = EventKind::section;
    event.on.push_back(model_.sections[at(s)].name);
    write_visible(mode, model_.form.visible, event.after);
    event.before = event.after;
    event.state = x;
    tell(mode, counters, {});
  }
  if (s == options_->section && ++section_points_ >= options_->section_count && options_->section_count > 0)
    counted_out_ = true;
  return counted_out_ || !wants_more || model_.sections[at(s)].stop;
}

}  // namespace saltus
