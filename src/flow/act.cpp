#include "flow/act.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/index.hpp"
#include "flow/thresholds.hpp"

namespace saltus {

Act::Act(Series& series, Rounding& point, const RunOptions& options)
    : series_(series),
      point_(point),
      program_(series.program()),
      model_(program_.model()),
      jumps_(program_, options.parameters, options.from) {
  counter_of_.assign(at(program_.switches()), -1);
  for (size_t c = 0; c < model_.form.counters.size(); ++c)
    counter_of_[at(model_.form.counters[c].below)] = static_cast<int>(c);
  for (size_t k = 0; k < jumps_.size(); ++k) {
    const std::vector<Expr> symbols = symbols_in(std::span(&model_.form.jumps[k].on, 1));
    plain_jumps_ =
        plain_jumps_ && jumps_.shared(k).unknown < 0 && std::all_of(symbols.begin(), symbols.end(), [](const Expr& s) {
          const SymbolKind kind = s.symbol().kind;
          return kind == SymbolKind::state || kind == SymbolKind::time || kind == SymbolKind::parameter;
        });
  }
  for (int i = 0; i < program_.switches(); ++i) {
    if (force_of(i) >= 0) joint_forces_.push_back(i);
  }
  is_step_.assign(at(program_.switches()), 0);
  for (const Counter& counter : model_.form.counters) is_step_[at(counter.below)] = is_step_[at(counter.above)] = 1;
  begin_run(options);
}

void Act::begin_run(const RunOptions& options) {
  options_ = &options;
  direction_ = options.until < options.from ? -1.0 : 1.0;
  jumps_.begin_run(options.parameters, options.from);
  choice_.leave.clear();
  for (const auto& [name, side] : options.leave) {
    for (int i = 0; i < model_.form.visible; ++i) {
      if (model_.form.switches[at(i)].name == name) choice_.leave[i] = side;
    }
  }
  choice_.direction = direction_;
  lambda_.assign(at(program_.constraints()), 0.0);
  caused_.clear();
  held_.assign(jumps_.size(), 0);
  told_beyond_.assign(jumps_.size(), 0);
  any_level_ = std::any_of(model_.jumps.begin(), model_.jumps.end(), [](const Jump& j) { return j.level; });
  root_error_.assign(jumps_.size(), 0.0);
  messages_.clear();
  last_distribution_ = 0;
  redistributed_ = 0;
  last_hit_.assign(at(program_.constraints()), std::nan(""));
  settled_ = std::nan("");
}

// ---- the doors -----------------------------------------------------------------------------------------------------

std::optional<Fate> Act::happen(Moment& now, Transition& event) {
  event.t = now.t();
  event.before = now.mode;
  event.x_minus = now.x;
  event.counters_before = now.counters;
  std::optional<Fate> fate = happen_here(now, event);
  now.arrival = std::nan("");
  event.after = fate ? event.before : now.mode;
  event.x_plus = now.x;
  event.counters = fate ? event.counters_before : now.counters;
  return fate;
}

/// In its mode, as long as nothing else is known to be zero.
bool Act::is_alone(const Moment& now, const Guard& guard) {
  if (!plain_jumps_ || guard.side == 0 || !series_.ties().empty()) return false;
  if (guard.kind != GuardKind::surface && guard.kind != GuardKind::sigma) return false;
  for (int j = 0; j < program_.constraints(); ++j) {
    if (now.mode.constraints[at(j)] != 'o' || model_.form.gaps[at(j)].degree == 0) return false;
  }
  for (int i = 0; i < program_.switches(); ++i) {
    const char c = now.mode.switches[at(i)];
    if (i != guard.item && (c == '0' || c == '=')) return false;
  }
  if (guard.kind == GuardKind::surface) return true;
  series_.set_mode(now.mode);
  return series_.blocks().empty();  // otherwise forces may be redundant
}

/// True if a surface is a step in time that needs no more than its dependents to be looked at.
bool Act::steps_in_time(const Guard& guard, bool line) const {
  constexpr size_t most_dependents = 4;  // each side of each of them has a change of its own
  const std::vector<int>& dependents = program_.dependents(guard.item);
  const auto is_step = [this](int d) { return is_step_[at(d)] != 0; };
  return guard.kind == GuardKind::surface && line && program_.timed(guard.item) && !program_.nested(guard.item) &&
         dependents.size() <= most_dependents && std::none_of(dependents.begin(), dependents.end(), is_step);
}

bool Act::decides_alone(const Moment& now, const Guard& guard, bool line, LoneGuard& lone) {
  lone.guard = guard;
  if (program_.vectors() > 0) return false;
  const bool only = program_.unknowns() == 1 && jumps_.size() == 0 && model_.form.counters.empty();
  if (guard.kind == GuardKind::gap && only && is_contact(program_.switches() + guard.item))
    return lone.decides = lone.hits = true;
  if (!is_alone(now, guard)) return false;
  lone.before = now.mode.switches[at(guard.item)];
  lone.dependents = program_.dependents(guard.item);
  if (is_step_[at(guard.item)] || !lone.dependents.empty()) {
    if (!steps_in_time(guard, line)) return false;
    for (const Counter& c : model_.form.counters) {
      if (c.below == guard.item || c.above == guard.item) lone.counter = &c;
    }
  }
  if (!lone.dependents.empty()) {
    std::vector<size_t> outputs;
    for (const int d : lone.dependents) outputs.push_back(program_.point(d, 0));
    lone.point.emplace(program_.points(), options_->parameters, outputs);
    return lone.decides = true;
  }
  series_.set_mode(now.mode);
  const std::optional<double> slope = series_.side_slope(guard.item);
  if (!slope || (guard.kind == GuardKind::sigma && rest_of(guard.item) != 1)) return false;
  lone.slope = *slope;
  lone.hold = series_.hold(guard.item);
  return lone.decides = true;
}

std::optional<size_t> Act::sides_behind(const Moment& now, LoneGuard& lone) {
  read_sigma(now);
  sigma_[at(lone.guard.item)] = lone.before == '+' ? -1 : 1;
  size_t sides = 0;
  for (size_t i = 0; i < lone.dependents.size(); ++i) {
    const int d = lone.dependents[i];
    lone.point->evaluate(now.x, now.t(), sigma_, now.counters, lambda_);
    const int sign = lone.point->sign(program_.point(d, 0), near_bounds);
    if (sign == 0) return std::nullopt;
    sigma_[at(d)] = sign;
    sides |= size_t{sign > 0} << i;
  }
  return sides;
}

bool Act::is_near(const Moment& now, std::span<const double> x, double t, int surface) {
  read_sigma(now);
  point_.evaluate(x, t, sigma_, now.counters, lambda_);
  return point_.sign(program_.point(surface, 0), rested_bounds) == 0;
}

bool Act::may_fly_low(double t) const {
  return std::any_of(last_hit_.begin(), last_hit_.end(),
                     [&](double hit) { return std::abs(t - hit) <= low_flight_share * time_scale; });
}

/// The switch of a surface as an item at zero, as its guard describes it.
AtZero Act::at_zero(const Guard& g) const {
  const char beyond = g.side > 0 ? '+' : g.side < 0 ? '-' : '\0';
  switch (g.kind) {
    case GuardKind::sigma:
      return {.unknown = g.item, .known = rest_of(g.item), .leaving = beyond, .released = series_.hold(g.item) > 1};
    case GuardKind::slip: return {.unknown = g.item, .known = rest_of(g.item), .leaving = g.side > 0 ? '+' : '-'};
    default: return {.unknown = g.item, .known = 1};
  }
}

std::optional<Fate> Act::happen_here(Moment& now, Transition& event) {
  caused_.clear();
  unclear_ = false;
  if (root_time_ != now.t()) root_error_.assign(jumps_.size(), 0.0);
  root_time_ = now.t();
  if (jumps_.size() > 0) note_before(now, event);
  const int m = program_.switches();
  std::vector<int> due;
  bool only_forces = true;
  int lost = -1;  // a surface whose sigma has lost its grip
  zeros_.clear();
  released_.clear();
  for (const Guard& g : event.guards) {
    const bool of_force = g.kind == GuardKind::surface && force_of(g.item) >= 0;
    if (of_force) {
      char& letter = now.mode.switches[at(g.item)];
      letter = letter == '+' ? '-' : '+';
    }
    if (of_force || meets_vector(now, g)) {
      only_forces = false;
      continue;
    }
    only_forces = only_forces && (g.kind == GuardKind::sigma || g.kind == GuardKind::lambda);
    switch (g.kind) {
      case GuardKind::surface:
      case GuardKind::sigma:
      case GuardKind::slip: zeros_.push_back(at_zero(g)); break;
      case GuardKind::gap:
        if (model_.form.gaps[at(g.item)].degree == 0)
          zeros_.push_back({.unknown = m + g.item, .known = 0, .leaving = g.side == 0 ? '\0' : 'c'});
        else
          zeros_.push_back({.unknown = m + g.item, .known = 1});
        break;
      case GuardKind::lambda:
        zeros_.push_back({.unknown = m + g.item, .known = rest_of(m + g.item), .leaving = g.side == 0 ? '\0' : 'o'});
        break;
      case GuardKind::slope:
        lost = g.item;
        if (!lists(zeros_, g.item)) zeros_.push_back({.unknown = g.item, .known = rest_of(g.item)});
        break;
      case GuardKind::jump:
        if (!turns_with(g.item, event.guards)) due.push_back(g.item);
        break;
      case GuardKind::clock: due.push_back(g.item); break;
    }
  }
  if (!due.empty()) leave_out_touches(now, event.guards, due);
  if (lost >= 0 && event.guards.size() == 1 && leaves_as_wished(now, lost)) {
    note_jumps(now);
    return std::nullopt;
  }
  std::vector<AtZero> touched;  // a field that ends at its surface must be looked at on it
  for (const Guard& g : event.guards) {
    if (g.kind == GuardKind::surface && g.side == 0) touched.push_back({.unknown = g.item, .known = 1});
  }
  if (!touched.empty()) land_on(now, touched, 1);
  if (only_forces && due.empty() && redistributes(now)) {
    event.silent = true;
    return std::nullopt;
  }
  add_neighbours(now, zeros_);
  if (!series_.ties().empty()) add_ties(zeros_);
  const bool jumps = !due.empty(), anew = std::exchange(leapt, false) || jumps;
  if (anew) zeros_.clear();
  if (jumps) {
    // Sliding surfaces are met exactly after this projection: jumps can then be told apart from them.
    series_.set_mode(now.mode);
    series_.project(now.x, now.t(), now.counters);
    if (auto fate = do_jumps(now, event, std::move(due))) return fate;
    if (event.jumps.empty() && event.guards.size() == 1) {  // its condition did not hold
      event.silent = true;
      note_jumps(now);
      if (unclear_) return Fate{Why::inconsistent, ""};
      return std::nullopt;
    }
  }
  if (!anew) add_low_flights(now, zeros_);
  const bool redistributed = !released_.empty() && released_.size() == event.guards.size();
  std::optional<Fate> fate = arrive(now, event, zeros_, anew, false);
  if (redistributed && !fate && now.mode == event.before) event.silent = true;
  // Sliding may come to rest where its sigma has no influence any more. Anything else is a branching: both fields are
  // tangent there, and sliding may go on, repelled, beside what leaves; unless another surface changes them.
  const auto leaves = [&](int u) { return now.mode.switches[at(u)] == '+' || now.mode.switches[at(u)] == '-'; };
  if (lost >= 0 && (fate || now.mode == event.before || (event.guards.size() == 1 && leaves(lost))))
    return Fate{Why::nonunique, fmt::format("sliding on '{}' stops being attractive at t = {}: the solution is not "
                                            "unique; `leave` chooses",
                                            model_.form.switches[at(lost)].name, now.t())};
  if (fate) return fate;
  note_jumps(now);
  if (unclear_) return Fate{Why::inconsistent, ""};
  return std::nullopt;
}

/// Where the fields on both sides of a surface are tangent to it, to the side that the user chooses: if its field bends
/// that way.
bool Act::leaves_as_wished(Moment& now, int u) {
  const auto wish = choice_.leave.find(u);
  if (wish == choice_.leave.end() || wish->second == '0') return false;
  Mode mode = now.mode;
  mode.switches[at(u)] = wish->second;
  series_.set_mode(mode);
  if (series_.expand(now.x, now.t(), now.counters, 2) != SeriesStatus::ok) return false;
  if (!(series_.surface(u)[2] * (wish->second == '+' ? 1 : -1) > 0)) return false;
  now.mode = mode;
  now.known[at(u)] = 2;
  follow(now);
  return true;
}

/// True if a switch inside the condition of a jump is at zero with it: only the mode that follows tells a crossing from
/// the touch of a kink.
bool Act::turns_with(int jump, const std::vector<Guard>& guards) const {
  return std::any_of(guards.begin(), guards.end(), [&](const Guard& g) {
    return g.kind == GuardKind::surface &&
           depends_on(model_.form.jumps[at(jump)].on, sigma_symbol(model_.form, g.item));
  });
}

std::optional<Fate> Act::rest_at(Moment& now, const std::vector<int>& resting, Transition& event, bool& rests) {
  const int m = program_.switches(), unknowns = program_.unknowns();
  rests = false;
  event.before = now.mode;
  zeros_.clear();
  bool any_jump = false;
  for (const int u : resting) {
    if (u < unknowns)
      zeros_.push_back({.unknown = u, .known = rest_of(u)});
    else
      any_jump = true;
  }
  if (any_jump) {
    // Conditions count as armed: if the flow goes on in the wanted direction, the jumps have no end.
    if (auto fate = arrive(now, event, zeros_, true, false)) return fate;
    series_.set_mode(now.mode);
    const int order = std::min(decision_order, series_.order());
    if (series_.expand(now.x, now.t(), now.counters, order) != SeriesStatus::ok) return std::nullopt;
    for (const int u : resting) {
      if (u < unknowns) continue;
      const size_t k = at(u - unknowns);
      const int lead = leading_coefficient(series_.jump(u - unknowns), 1, order, time_scale, direction_).sign;
      if (lead != 0 && jumps_.wanted(k, lead))
        return Fate{Why::zeno, fmt::format("the jumps '{}' accumulate at t = {} and would go on without end",
                                           model_.jumps[k].name, now.t())};
    }
    rests = true;
  } else {
    add_neighbours(now, zeros_);
    choice_.time_scale = time_scale;
    choice_.at_start = false;
    choice_.before = {};
    const Choice choice = choose_mode(series_, point_, now.x, now.t(), now.counters, now.mode, zeros_, choice_);
    rests = choice.outcome != Choice::Outcome::none && std::any_of(resting.begin(), resting.end(), [&](int u) {
              if (u >= unknowns) return false;
              const char c = u < m ? choice.mode.switches[at(u)] : choice.mode.constraints[at(u - m)];
              return c == '0' || c == 'c' || c == '=';
            });
    if (!rests) return std::nullopt;
    if (auto fate = settle(now, event, zeros_, false)) return fate;
  }
  event.t = now.t();
  event.after = now.mode;
  event.x_plus = now.x;
  event.counters = now.counters;
  event.resting = resting;
  note_jumps(now);
  return std::nullopt;
}

std::optional<Fate> Act::check_state(const Moment& now) const {
  for (size_t i = 0; i < now.x.size(); ++i) {
    if (std::isnan(now.x[i]))
      return Fate{Why::undefined, fmt::format("a jump gives '{}' no value", model_.states[i].name)};
    if (!(std::abs(now.x[i]) < largest_state))
      return Fate{Why::diverged, fmt::format("a jump makes '{}' infinite", model_.states[i].name)};
  }
  return std::nullopt;
}

}  // namespace saltus
