// Jumps: which are due, in which order they happen, which others they cause.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/index.hpp"
#include "flow/act.hpp"
#include "flow/leading.hpp"
#include "flow/thresholds.hpp"

namespace saltus {

PlainInputs Act::inputs(const Moment& now) const { return {options_->parameters, now.x, lambda_, now.t()}; }

/// Signs at the point with the sigma that the mode solves for. False where it has no solution.
bool Act::look_solved(const Moment& now) {
  series_.set_mode(now.mode);
  const bool solved = series_.evaluate(now.x, now.t(), now.counters) == SeriesStatus::ok;
  sigma_.resize(at(program_.switches()));
  for (int i = 0; i < program_.switches(); ++i) sigma_[at(i)] = series_.unknown(i)[0];
  evaluate_point(now);
  return solved;
}

/// Conditions that have passed zero in a direction that does not count since they were last looked at.
void Act::note_before(const Moment& now, const Transition& event) {
  if (!look_solved(now)) return;
  for (size_t k = 0; k < jumps_.size(); ++k) {
    const int shared = jumps_.shared(k).unknown, m = program_.switches();
    const bool at_zero = std::any_of(event.guards.begin(), event.guards.end(), [&](const Guard& g) {
      return (g.kind == GuardKind::jump && g.item == static_cast<int>(k)) ||
             (g.kind == GuardKind::surface && g.item == shared) || (g.kind == GuardKind::gap && m + g.item == shared);
    });
    const int sign = at_zero || shares_zero(k, now) ? 0 : sign_of_jump(k);
    if (sign != 0) jumps_.note(k, sign, 0);
  }
}

/// The sign of `on` at the point last looked at. What has happened at a root is zero there up to the error of the root.
int Act::sign_of_jump(size_t k) const {
  const size_t output = program_.point_jump(static_cast<int>(k));
  if (std::abs(point_.value(output)) <= root_error_[k]) return 0;
  return point_.sign(output, zero_bounds);
}

/// True if the surface or gap that `on` is is at zero in the mode of `now`.
bool Act::shares_zero(size_t k, const Moment& now) const {
  return jumps_.shared(k).rests(now.mode) || jumps_.shared(k).known(now) > 0;
}

/// Conditions that come to zero together with surfaces, where the mode that follows turns them back: a touch is no
/// crossing. That mode is the one without the jumps and impacts of this instant: the set of jumps is fixed before them.
void Act::leave_out_touches(const Moment& now, const std::vector<Guard>& guards, std::vector<int>& due) {
  const int m = program_.switches();
  std::vector<AtZero> zeros;
  for (const AtZero& z : zeros_) {
    if (z.unknown < m) zeros.push_back(z);
  }
  std::vector<int> open;
  for (const Guard& g : guards) {
    if (g.kind != GuardKind::jump || g.side == 0) continue;
    const int shared = jumps_.shared(at(g.item)).unknown;  // by itself it is crossed, or stays
    if (std::any_of(zeros.begin(), zeros.end(), [&](const AtZero& z) { return z.unknown != shared; }))
      open.push_back(g.item);
  }
  if (open.empty()) return;
  const std::optional<Moment> followed = settle_surfaces(now, std::move(zeros));
  if (!followed || !look_solved(*followed)) return;
  const Moment& after = *followed;
  std::vector<double> off;
  for (const int k : open) off.push_back(std::abs(point_.value(program_.point_jump(k))));
  const int order = std::min(decision_order, series_.order());
  if (series_.expand(after.x, after.t(), after.counters, order) != SeriesStatus::ok) return;
  for (size_t i = 0; i < open.size(); ++i) {
    const int k = open[i];
    const SharedZero& shared = jumps_.shared(at(k));
    const int lead = shared.rests(after.mode) ? 0
                     : shares_zero(at(k), after)
                         ? shared.sign(after.mode)
                         : leading_coefficient(series_.jump(k), 1, order, scale(), direction_).sign;
    if (lead != jumps_.side(at(k))) continue;
    root_error_[at(k)] = off[i];
    std::erase(due, k);
  }
}

std::optional<Moment> Act::settle_surfaces(const Moment& now, std::vector<AtZero> zeros) {
  std::optional<Moment> after = now;
  Transition scratch{.x_minus = now.x};
  const std::vector<std::string> messages = messages_;
  add_neighbours(*after, zeros);
  if (!series_.ties().empty()) add_ties(zeros);
  if (settle(*after, scratch, zeros, false)) after.reset();
  messages_ = messages;
  return after;
}

std::optional<Moment> Act::follow_surfaces(const Moment& now, std::span<const Guard> guards, int except) {
  std::vector<AtZero> zeros;
  for (const Guard& g : guards) {
    if (g.kind == GuardKind::surface || g.kind == GuardKind::sigma || g.kind == GuardKind::slip)
      zeros.push_back(at_zero(g));
  }
  if (std::none_of(zeros.begin(), zeros.end(), [&](const AtZero& z) { return z.unknown != except; }))
    return std::nullopt;
  return settle_surfaces(now, std::move(zeros));
}

std::optional<Fate> Act::do_jumps(Moment& now, Transition& event, std::vector<int> due) {
  look_solved(now);
  for (const Guard& g : event.guards) {
    if (g.kind == GuardKind::jump && g.side != 0)
      root_error_[at(g.item)] = std::abs(point_.value(program_.point_jump(g.item)));
  }
  for (size_t k = 0; k < jumps_.size(); ++k) {
    if (shares_zero(k, now))
      root_error_[k] = std::max(root_error_[k], std::abs(point_.value(program_.point_jump(static_cast<int>(k)))));
  }
  lambda_.clear();
  for (int j = 0; j < program_.constraints(); ++j) lambda_.push_back(series_.unknown(program_.switches() + j)[0]);
  std::vector<AtZero> zeros;
  while (!due.empty()) {
    std::sort(due.begin(), due.end());
    due.erase(std::unique(due.begin(), due.end()), due.end());
    for (const int k : due) jumps_.fire(at(k), now.t());
    std::vector<int> next;
    for (const int k : due) {
      if (!jumps_.holds(at(k), inputs(now))) continue;
      JumpDone done{k, now.x, {}};
      jumps_.apply(at(k), inputs(now), now.x);  // which is no crossing of its own condition
      done.after = now.x;
      event.jumps.push_back(std::move(done));
      if (auto fate = check_state(now)) return fate;
      if (static_cast<long>(event.jumps.size()) > most_events_at_once)
        return Fate{Why::zeno, fmt::format("more than {} jumps at t = {} ('{}')", most_events_at_once, now.t(),
                                           model_.jumps[at(k)].name)};
      if (program_.switches() > 0) {
        zeros.clear();
        look(now, zeros, false);
      } else {
        evaluate_point(now);
      }
      note_sections(event.jumps.back());
      for (size_t j = 0; j < jumps_.size(); ++j) {
        const int sign = sign_of_jump(j);
        // Conditions that a jump has carried to zero are judged when the mode is known.
        if (sign != 0 && jumps_.note(j, sign, 0)) next.push_back(static_cast<int>(j));
      }
    }
    due = std::move(next);
  }
  return std::nullopt;
}

/// Signs of the functions of `on` sections at the point last looked at.
void Act::note_sections(JumpDone& done) const {
  const std::vector<Section>& sections = model_.sections;
  const auto on = [](const Section& s) { return s.kind == Section::Kind::on; };
  if (std::none_of(sections.begin(), sections.end(), on)) return;
  for (size_t s = 0; s < sections.size(); ++s)
    done.section_signs.push_back(on(sections[s]) ? point_.sign(program_.point_section(static_cast<int>(s)), zero_bounds)
                                                 : 0);
}

void Act::note_jumps(const Moment& now) {
  if (jumps_.size() == 0) return;
  if (!look_solved(now)) return;
  std::vector<int> sign(jumps_.size(), 0), lead(jumps_.size(), 0);
  bool any_zero = false;
  for (size_t k = 0; k < sign.size(); ++k) {
    if (shares_zero(k, now)) {
      if (!jumps_.shared(k).rests(now.mode)) lead[k] = jumps_.shared(k).sign(now.mode);
      continue;
    }
    sign[k] = sign_of_jump(k);
    any_zero = any_zero || (sign[k] == 0 && !jumps_.has_clock(k));
  }
  if (any_zero) {
    scale();
    const int order = simply ? 1 : std::min(decision_order, series_.order());
    if (series_.expand(now.x, now.t(), now.counters, order) != SeriesStatus::ok) return;
    for (size_t k = 0; k < sign.size(); ++k) {
      if (sign[k] == 0 && !shares_zero(k, now))
        lead[k] = leading_coefficient(series_.jump(static_cast<int>(k)), 1, order, time_scale, direction_).sign;
      unclear_ = unclear_ || (simply && sign[k] == 0 && lead[k] == 0);
    }
  }
  for (size_t k = 0; k < sign.size(); ++k) {
    if (jumps_.note(k, sign[k], lead[k])) caused_.push_back(static_cast<int>(k));
  }
}

std::vector<int> Act::found_beyond(const Moment& now, const Transition* event) {
  std::vector<int> out;
  for (size_t k = 0; k < jumps_.size(); ++k) {
    const bool conditional = model_.form.jumps[k].when.has_value();
    if (told_beyond_[k] && !model_.jumps[k].level) continue;
    if (!jumps_.beyond(k) && !conditional) continue;
    const bool held = jumps_.holds(k, inputs(now)), before = std::exchange(held_[k], held) != 0;
    if (!held || !jumps_.beyond(k)) continue;
    bool other = false, own = false;
    if (event) {
      const auto is_own = [&](const JumpDone& done) { return done.jump == static_cast<int>(k); };
      own = std::any_of(event->jumps.begin(), event->jumps.end(), is_own);
      other = !event->jumps.empty() && !is_own(event->jumps.back());
    }
    const bool became = event && conditional && !before && !own;
    if (event && !became && !other) continue;
    if (model_.jumps[k].level) {
      out.push_back(static_cast<int>(k));
    } else if (!event) {
      tell_beyond(k, now, "at the start");
    } else if (became) {
      tell_beyond(k, now, fmt::format("at t = {} as its condition becomes true", now.t()));
    } else if (latches(k, now)) {
      const std::string& name = model_.jumps[at(event->jumps.back().jump)].name;
      tell_beyond(k, now, fmt::format("at t = {} after the jump '{}'", now.t(), name));
    }
  }
  return out;
}

/// True if the jump would change something, once: what a comparator does to a latch.
bool Act::latches(size_t k, const Moment& now) {
  Moment once = now;
  jumps_.apply(k, inputs(now), once.x);
  Moment twice = once;
  jumps_.apply(k, inputs(once), twice.x);
  return once.x != now.x && twice.x == once.x;
}

void Act::tell_beyond(size_t k, const Moment&, std::string_view since) {
  told_beyond_[k] = 1;
  say(fmt::format("the jump '{}' is beyond its level {}: it waits for a crossing; `level = true` lets it happen there",
                  model_.jumps[k].name, since));
}

/// True if all conditions but one are clearly on the side on which they were.
bool Act::are_armed(const Moment& now, size_t except) {
  if (conditions_for_ != series_.binding()) {
    conditions_for_ = series_.binding();
    std::vector<size_t> outputs;
    for (size_t k = 0; k < jumps_.size(); ++k) outputs.push_back(program_.point_jump(static_cast<int>(k)));
    conditions_.emplace(program_.points(), options_->parameters, outputs);
  }
  conditions_->evaluate(now.x, now.t(), {}, {});
  for (size_t k = 0; k < jumps_.size(); ++k) {
    if (k == except || jumps_.has_clock(k)) continue;
    const int side = conditions_->sign(program_.point_jump(static_cast<int>(k)), zero_bounds);
    if (side == 0 || side != jumps_.side(k)) return false;
  }
  return true;
}

bool Act::note_clear_signs(const Moment& now) {
  if (!are_armed(now, jumps_.size())) return false;
  for (size_t k = 0; k < jumps_.size(); ++k) jumps_.note(k, jumps_.side(k), 0);
  return true;
}

bool Act::jump_alone(Moment& now, const Guard& guard, Transition& event) {
  const size_t k = at(guard.item), output = program_.point_jump(guard.item);
  lambda_.assign(at(program_.constraints()), 0.0);
  for (size_t j = 0; j < jumps_.size(); ++j) {  // what a level is found beyond is told, or happens
    const bool heard = model_.jumps[j].level || !told_beyond_[j];
    if (j != k && heard && jumps_.may_be_beyond(j)) return false;
    if (any_level_ && model_.form.jumps[j].when) return false;
  }
  if (!are_armed(now, k) || !jumps_.holds(k, inputs(now))) return false;
  const bool clock = guard.kind == GuardKind::clock;
  const double off = clock ? 0 : std::abs(conditions_->value(output));  // zero up to the error of the root
  const Arm armed = jumps_.arm(k);
  event.x_minus = now.x;
  jumps_.apply(k, inputs(now), now.x);
  const int order = std::min(decision_order, series_.order());
  const auto stays = [&] {
    if (check_state(now) || !are_armed(now, k)) return false;
    if (program_.unknowns() > 0) {
      read_sigma(now);
      evaluate_point(now);
      if (!on_their_sides(now.mode, -1, {})) return false;
    }
    const int most = std::max(order, series_.usual_order());  // the next step has its series already
    return series_.expand(now.x, now.t(), now.counters, most) == SeriesStatus::ok;
  };
  if (!stays()) {
    now.x = event.x_minus;
    jumps_.set_arm(k, armed);
    return false;
  }
  jumps_.fire(k, now.t());
  for (size_t j = 0; j < jumps_.size(); ++j) {
    if (j != k) jumps_.note(j, jumps_.side(j), 0);
  }
  const bool zero = std::abs(conditions_->value(output)) <= off || conditions_->sign(output, zero_bounds) == 0;
  const int lead =
      zero && !clock ? leading_coefficient(series_.jump(guard.item), 1, order, time_scale, direction_).sign : 0;
  jumps_.note(k, zero ? 0 : conditions_->sign(output, zero_bounds), lead);
  root_error_.assign(jumps_.size(), 0.0);
  root_error_[k] = off;
  root_time_ = event.t = now.t();
  event.before = event.after = now.mode;
  event.x_plus = now.x;
  event.counters_before = event.counters = now.counters;
  event.guess.clear();
  event.jumps.push_back({guard.item, event.x_minus, event.x_plus});
  std::fill(now.known.begin(), now.known.end(), 0);
  caused_.clear();
  return true;
}

std::vector<int> Act::note_signs(const Moment& now) {
  caused_.clear();
  root_error_.assign(jumps_.size(), 0.0);
  note_jumps(now);
  return caused_;
}

}  // namespace saltus
