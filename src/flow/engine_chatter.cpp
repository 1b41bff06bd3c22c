#include <algorithm>

#include <fmt/format.h>

#include "flow/engine.hpp"

namespace saltus {

bool Engine::finish_chatter() {
  chatter_.add(clock_.now(), touched_, !rebounded_.empty(), x_);
  const std::optional<Accumulation> found = chatter_.find(resolution(), time_scale());
  if (!found) return true;
  if (!options_.zeno_stop) return go_to_limit(*found);
  series_.set_mode(mode_);
  if (series_.evaluate(x_, clock_.now(), counters_) == SeriesStatus::ok) x_ = extrapolate(*found);
  clock_.advance(direction_ * found->rest);
  finish(Why::zeno, "events accumulate here");
  return false;
}

bool Engine::go_to_limit(const Accumulation& found) {
  const int m = program_.switches();
  const double rest = found.rest;
  const std::vector<int> resting = chatter_.members(found);
  const Mode last = mode_;
  const std::vector<double> x_last = x_;
  const Clock clock_last = clock_;
  Mode limit = mode_;
  for (const int u : resting) (u < m ? limit.switches[at(u)] : limit.constraints[at(u - m)]) = u < m ? '0' : 'c';
  series_.set_mode(limit);
  series_.project(x_, clock_.now(), counters_);
  const bool exists = series_.evaluate(x_, clock_.now(), counters_) == SeriesStatus::ok;
  if (exists) {
    x_ = extrapolate(found);
    clock_.advance(direction_ * rest);
    series_.project(x_, clock_.now(), counters_);
    std::vector<AtZero> zeros;
    for (const int u : resting) zeros.push_back({.unknown = u, .known = rest_of(u)});
    mode_ = last;
    add_neighbours(zeros);
    const Choice choice = choose_mode(series_, x_, clock_.now(), counters_, mode_, zeros, choice_options(false));
    const bool rests =
        choice.outcome != Choice::Outcome::none && std::any_of(resting.begin(), resting.end(), [&](int u) {
          return (u < m ? choice.mode.switches[at(u)] : choice.mode.constraints[at(u - m)]) == (u < m ? '0' : 'c');
        });
    if (rests) {
      chatter_.clear();
      rebounded_.clear();
      ++result_.cost.events;
      if (!settle(zeros, false)) return false;
      note_signs();
      count_slides(last);
      Event event{.t = clock_.now(), .kind = EventKind::chatter, .before = last, .after = mode_};
      for (const int u : resting)
        event.on.push_back(u < m ? model_.form.switches[at(u)].name : model_.constraints[at(u - m)].name);
      event.jumped = x_last;
      const double smallest = 16 * eps * std::max(std::abs(clock_.now()), rest);
      event.count = static_cast<long>(found.period) *
                    std::max(1L, static_cast<long>(std::log(smallest / rest) / std::log(found.ratio)));
      emit(std::move(event));
      return !ended_;
    }
  }
  // No rest at the limit: go on event by event, as long as time can tell them apart.
  mode_ = last;
  x_ = x_last;
  clock_ = clock_last;
  series_.set_mode(mode_);
  if (found.exhausted)
    finish(Why::zeno,
           fmt::format("events accumulate at t = {} and none of the model's modes goes on from there", clock_.now()));
  return !ended_;
}

std::vector<double> Engine::extrapolate(const Accumulation& found) const {
  std::vector<double> out = x_;
  for (size_t i = 0; i < x_.size(); ++i) {
    const double moved = direction_ * found.rest * series_.rate(static_cast<int>(i))[0];
    out[i] = chatter_.limit(found, i).value_or(x_[i] + moved);
  }
  return out;
}

}  // namespace saltus
