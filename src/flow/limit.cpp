#include "flow/limit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/index.hpp"
#include "flow/thresholds.hpp"

namespace saltus {

Limit::Limit(Series& series, Act& act)
    : series_(series),
      program_(series.program()),
      act_(act),
      blur_([this](double t, auto touched, auto x) { return blur(t, touched, x); }),
      lowest_([this](double t, auto touched, auto x) { return lowest(t, touched, x); }) {}

void Limit::begin_run(const RunOptions& options) {
  options_ = &options;
  direction_ = options.until < options.from ? -1.0 : 1.0;
}

Limit::Reached Limit::look(Chatter& chatter, std::span<const int> touched, Moment& now, Transition& event,
                           double time_scale, double resolution, double latest) {
  chatter.add(now.t(), touched, now.x);
  return look(chatter, now, event, time_scale, resolution, latest);
}

Limit::Reached Limit::look(Chatter& chatter, Moment& now, Transition& event, double time_scale, double resolution,
                           double latest) {
  now_ = &now;
  const std::optional<Accumulation> found = chatter.find(resolution, time_scale, options_->tolerance, blur_, lowest_);
  if (!found || direction_ * now.t() + found->rest > latest) return {};
  return go_to(*found, chatter, now, event);
}

/// Rounding of what was touched at x over its rate there.
double Limit::blur(double t, std::span<const int> touched, std::span<const double> x) {
  const int m = program_.switches(), unknowns = program_.unknowns();
  series_.set_mode(now_->mode);
  if (series_.expand(x, t, now_->counters, 1) != SeriesStatus::ok) return 0;
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
double Limit::lowest(double t, std::span<const int> touched, std::span<const double> x) {
  const int m = program_.switches();
  series_.set_mode(now_->mode);
  if (touched.empty() || series_.expand(x, t, now_->counters, 1) != SeriesStatus::ok) return 0;
  double shortest = HUGE_VAL;
  for (const int u : touched) {
    if (u < m || u >= program_.unknowns() || program_.model().form.gaps[at(u - m)].degree != 2) return 0;
    if (now_->mode.constraints[at(u - m)] == 'c') continue;
    const double rate = std::abs(series_.gap(u - m)[1]);
    shortest = std::min(shortest, 4 * low_flight_bounds * series_.noise(program_.gap(u - m)) / rate);
  }
  return shortest < HUGE_VAL ? shortest : 0;
}

/// True if each state is where its sequence will still take it, to a small part of the tolerance: hits of several
/// contacts approach their common ratio by and by.
bool Limit::is_seen(const Accumulation& found, const Chatter& chatter, const Moment& now) {
  series_.set_mode(now.mode);
  if (series_.evaluate(now.x, now.t(), now.counters) != SeriesStatus::ok) return true;
  for (size_t i = 0; i < now.x.size(); ++i) {
    const double moved = std::abs(series_.rate(static_cast<int>(i))[0]) * act_.scale();
    const double size = std::max({std::abs(now.x[i]), moved, std::abs(options_->initial[i])});
    if (chatter.limit_moved(found, i) > limit_error * options_->tolerance * size) return false;
  }
  return true;
}

/// Chattering items have come to rest; everything else went on as in the mode in which they rest.
Limit::Reached Limit::go_to(const Accumulation& found, Chatter& chatter, Moment& now, Transition& event) {
  for (size_t i = 0; i < now.x.size(); ++i) {
    if (!chatter.grows(found, i)) continue;
    if (!found.exhausted) return {};
    return {.fate = Fate{Why::diverged,
                         fmt::format("events accumulate at t = {} and '{}' grows without bound from one to the next",
                                     now.t(), program_.model().states[i].name)}};
  }
  if (!found.exhausted && !found.blurred && !is_seen(found, chatter, now)) return {};
  const std::vector<int> resting = chatter.members(found);
  const Moment last = now;
  Reached here;
  if (found.exhausted || found.blurred || found.rest == 0) {
    here = hit_in_turn(resting, found.rest, chatter, now, event);
    // Hits that have no answer where they are (a cusp, whose walls are all but parallel) may have one at their limit.
    if (here.event && !here.fate) return here;
  }
  const Transition failed = here.event ? event : Transition{};
  const std::vector<std::string> messages = here.event ? act_.take_messages() : std::vector<std::string>{};
  for (const char letter : {'0', '='}) {  // held by sigma, or, where roots leave no series, by itself
    now = last;
    if (!extrapolate(found, chatter, resting, letter, now)) continue;
    if (options_->zeno_stop) return {.fate = Fate{Why::zeno, "events accumulate here"}};
    event = {.x_minus = last.x};
    bool rests = false;
    std::optional<Fate> fate = act_.rest_at(now, resting, event, rests);
    if (fate && here.event) continue;
    if (fate) return {.fate = std::move(fate)};
    if (!rests) continue;
    chatter.clear();
    event.before = last.mode;
    const double smallest = 16 * eps * std::max(std::abs(now.t()), found.rest);
    const double left = found.rest > smallest ? std::log(smallest / found.rest) / std::log(found.ratio) : 1;
    event.count = static_cast<long>(found.period) * std::max(1L, static_cast<long>(left));
    return {.event = true};
  }
  // No rest at the limit: go on event by event, as long as time can tell them apart.
  now = last;
  series_.set_mode(now.mode);
  if (here.event) {
    event = failed;
    act_.take_messages();
    act_.say_again(messages);
    return here;
  }
  if (!found.exhausted) return {};
  return {.fate = Fate{
              Why::zeno,
              fmt::format("events accumulate at t = {} and none of the model's modes goes on from there", now.t())}};
}

/// Several contacts that time no longer tells apart are hit in turn, at once.
Limit::Reached Limit::hit_in_turn(const std::vector<int>& contacts, double rest, Chatter& chatter, Moment& now,
                                  Transition& event) {
  const int m = program_.switches();
  const auto flies = [&](int u) {
    const auto j = static_cast<size_t>(u - m);
    return u >= m && u < program_.unknowns() && program_.model().form.gaps[j].degree == 2 &&
           now.mode.constraints[j] == 'o';
  };
  if (contacts.size() < 2 || options_->zeno_stop || !std::all_of(contacts.begin(), contacts.end(), flies)) return {};
  // No force brings them back within what is left of the sequence, but the other contacts.
  series_.set_mode(now.mode);
  if (series_.expand(now.x, now.t(), now.counters, 2) != SeriesStatus::ok) return {};
  const auto goes_straight = [&](int u) {
    const double* gap = series_.gap(u - m);
    return std::abs(gap[1]) > straight_flight * std::abs(2 * gap[2] * rest);
  };
  if (std::none_of(contacts.begin(), contacts.end(), goes_straight)) return {};
  event.reset();
  for (const int u : contacts) event.guards.push_back({GuardKind::gap, u - m, 1});
  Reached out{.event = true, .fate = act_.happen(now, event)};
  if (!out.fate) chatter.clear();
  return out;
}

/// True if impulses of these contacts, or these jumps, change a state.
bool Limit::is_pushed(const std::vector<int>& members, int state) const {
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
bool Limit::extrapolate(const Accumulation& found, const Chatter& chatter, const std::vector<int>& resting, char letter,
                        Moment& now) {
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
  const bool solved = expanded || series_.evaluate(x, now.t(), now.counters) == SeriesStatus::ok;
  // Walls that face each other (in a cusp) leave their forces open; what they do not move goes on as it did.
  const bool walls = std::all_of(resting.begin(), resting.end(), [&](int u) { return u >= m && u < unknowns; });
  if (!solved && !(walls && resting.size() > 1)) return false;
  const double rest = direction_ * found.rest;
  for (size_t i = 0; i < n; ++i) {
    const double* c = series_.state(static_cast<int>(i));
    const double rate = solved ? series_.rate(static_cast<int>(i))[0] : flying[i][0];
    // Motion that is alike with and without the chatter is no part of it: its own sequence would be off by its bend.
    const auto alike = [&](double a, double b) { return std::abs(a - b) <= clear_rate * (std::abs(a) + std::abs(b)); };
    const bool apart =
        expanded && !is_pushed(resting, static_cast<int>(i)) && alike(flying[i][0], c[1]) && alike(flying[i][1], c[2]);
    now.x[i] =
        apart ? now.x[i] + rest * (rate + rest * c[2]) : chatter.limit(found, i).value_or(now.x[i] + rest * rate);
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

}  // namespace saltus
