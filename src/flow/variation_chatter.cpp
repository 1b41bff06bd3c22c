// Tangents at the end of a chatter: the limit of those at its events.
#include <cmath>

#include "base/index.hpp"
#include "base/numbers.hpp"
#include "flow/variation.hpp"

namespace saltus {
namespace {

/// The limit of a geometric sequence, given its last values; the last one where it is not to be seen.
Mat limit_of(const Mat& last, const Mat& former, const Mat& before) {
  Mat limit = last;
  for (Index i = 0; i < limit.size(); ++i) {
    const double d = last(i) - former(i), d1 = former(i) - before(i);
    if (std::abs(d1) > 64 * eps * std::abs(last(i)) && std::abs(d) < 0.99995 * std::abs(d1))
      limit(i) += d * d / (d1 - d);
  }
  return limit;
}

}  // namespace

void Variation::remember(const Transition& event) {
  if (event.guards.empty()) return;
  constexpr size_t most_passages = 64;
  if (passages_.size() == most_passages) passages_.erase(passages_.begin(), passages_.begin() + most_passages / 2);
  passages_.push_back({event.guards.front(), event.before, last_shift_, x_});
}

/// The limit of a chatter. All that chattered comes to rest there (mode s), whatever follows:
///   X+ = P X + (f_s - f+) dt,   P onto what rests along its forces,
/// X and dt the limits of the tangents and of the shifts at its events.
void Variation::accumulate(const Transition& event) {
  const int m = program_.switches(), unknowns = program_.unknowns();
  const Arc after{event.after, event.counters, {}, event.guess};
  Arc resting = after;
  for (const int u : event.resting) {
    if (u >= unknowns) continue;
    char& letter = u < m ? resting.mode.switches[at(u)] : resting.mode.constraints[at(u - m)];
    if (letter != '=') letter = u < m ? '0' : 'c';
  }
  const auto [last, former, before] = last_in_step();
  if (before) x_ = limit_of(last->after, former->after, before->after);
  rest(resting, event.x_plus, event.t);
  first_ = false;
  if (last) last_shift_ = before ? limit_of(last->shift, former->shift, before->shift) : last->shift;
  if (resting.mode != after.mode && last) {
    const Vec leap = rates(resting, event.x_plus, event.t) - rates(after, event.x_plus, event.t);
    if (leap.allFinite()) x_ += leap * last_shift_;
  }
  passages_.clear();
}

/// The last event, and the two before it that repeat it with the smallest period; empty where nothing repeats.
std::array<const Variation::Passage*, 3> Variation::last_in_step() const {
  const auto from_end = [this](size_t i) { return &passages_[passages_.size() - 1 - i]; };
  if (passages_.empty() || passages_.back().after.cols() != x_.cols()) return {};
  for (size_t period = 1; 3 * period <= passages_.size(); ++period) {
    bool repeats = true;
    for (size_t i = 0; i < 2 * period && repeats; ++i) {
      const Passage &one = *from_end(i), &former = *from_end(i + period);
      repeats = one.guard == former.guard && one.before == former.before && former.after.cols() == x_.cols();
    }
    if (repeats) return {from_end(0), from_end(period), from_end(2 * period)};
  }
  return {from_end(0), nullptr, nullptr};
}

}  // namespace saltus
