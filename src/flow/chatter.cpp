#include "flow/chatter.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/copy.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

uint64_t mix(uint64_t key, uint64_t more) { return (key ^ (more + 1)) * 0x9e3779b97f4a7c15; }

uint64_t mix(uint64_t key, std::string_view letters) {
  for (; letters.size() > 8; letters.remove_prefix(8)) {
    uint64_t eight = 0;
    std::memcpy(&eight, letters.data(), 8);
    key = mix(key ^ (key >> 32), eight);
  }
  for (const char c : letters) key = mix(key, static_cast<uint64_t>(c));
  return key;
}

}  // namespace

void Chatter::note(const Guard& guard) {
  key_ = mix(key_, static_cast<uint64_t>(guard.kind) * 1'000'003 + static_cast<uint64_t>(guard.item) * 3 +
                       static_cast<uint64_t>(guard.side + 1));
}

void Chatter::note(const Mode& before) { key_ = mix(mix(key_, before.switches), before.constraints); }

void Chatter::note(const Guard& guard, const Mode& before) {
  note(guard);
  note(before);
}

uint64_t Chatter::key_of(const Guard& guard, const Mode& before, std::optional<int> hit) {
  Chatter alone;
  alone.note(guard, before);
  if (hit) alone.note_hit(*hit);
  return alone.key_;
}

void Chatter::note_hit(int contact) { key_ = mix(key_, static_cast<uint64_t>(contact) + 7); }

bool Chatter::is_steady(double resolution) {
  if (next_ == 0 && count_ == memory) return false;
  const double* const times = &times_[last_];
  const uint64_t* const keys = &keys_[last_];
  const double still = exhausted_bits * resolution;
  for (size_t period = 1; period <= 8 && 2 * period < count_; ++period) {
    if (keys[0] != keys[period]) continue;
    const double d0 = std::abs(times[0] - times[period]), d1 = std::abs(times[period] - times[2 * period]);
    if (d0 < slowest_ratio * d1 || d0 < still) return false;
  }
  longest_ = 0, limit_error_ = HUGE_VAL;
  return true;
}

void Chatter::note(const Transition& part) {
  for (const Guard& g : part.guards) note(g);
  note(part.before);
  for (const auto& [contact, impulse] : part.impulse) note_hit(contact);
}

void Chatter::add(double t, std::span<const int> touched, std::span<const double> x) {
  Mark& m = marks_[next_];
  if (last_ == 0) {
    last_ = room - (memory - 1);
    std::copy_n(times_.begin(), memory - 1, times_.begin() + last_);
    std::copy_n(keys_.begin(), memory - 1, keys_.begin() + last_);
  }
  times_[--last_] = t;
  keys_[last_] = std::exchange(key_, 0);
  m.touched.assign(touched.begin(), touched.end());
  copy_numbers(x, m.x);
  next_ = next_ + 1 == memory ? 0 : next_ + 1;
  count_ = std::min(count_ + 1, memory);
}

void Chatter::clear() {
  next_ = count_ = 0;
  last_ = room;
  key_ = 0;
  longest_ = 0;
  limit_error_ = HUGE_VAL;
}

/// True if the last `times` periods were like the one before each of them.
bool Chatter::repeats(size_t period, size_t times) const {
  for (size_t i = 0; i < times * period; ++i) {
    if (key(i) != key(i + period) || mark(i).touched.empty()) return false;
  }
  return true;
}

/// The blur of a period of events, `back` periods ago.
double Chatter::blur_of(size_t period, size_t back, const Blur& blur) const {
  double widest = 0;
  for (size_t i = back * period; i < (back + 1) * period; ++i)
    widest = std::max(widest, blur(time(i), mark(i).touched, mark(i).x));
  return widest;
}

/// True if what is left, or the last period, is too short for what is touched to tell its events apart. Their speeds,
/// by which rounding is divided, shrink like their intervals: two hits that follow each other soon are no sequence.
bool Chatter::is_blurred(size_t period, double interval, double ratio, const Blur& blur) const {
  const double last = blur_of(period, 0, blur);
  const double shortest = std::min(interval, interval * ratio / (1 - ratio));
  return shortest < exhausted_bits * last && blur_of(period, 1, blur) < 4 * ratio * last;
}

/// Time left: as it was foretold best, unless the last intervals contradict it.
double Chatter::foretold(double rest, double toward) const {
  const double left = toward * (limit_ - time(0));
  return limit_error_ < HUGE_VAL && left > 0 && left < 8 * rest ? left : rest;
}

std::optional<Accumulation> Chatter::find(double resolution, double time_scale, double tolerance, const Blur& blur,
                                          const Blur& lowest) {
  bool shrinks = false, still = false;
  for (size_t period = 1; period <= 8 && 2 * period < count_; ++period) {
    if (key(0) != key(period)) continue;
    const double t0 = time(0), t1 = time(period), t2 = time(2 * period);
    const double d0 = std::abs(t0 - t1), d1 = std::abs(t1 - t2);
    if (!(d0 < slowest_ratio * d1)) {  // what repeats itself is told at once
      still = still || d0 < exhausted_bits * resolution;
      continue;
    }
    const bool twice = 3 * period < count_, thrice = 4 * period < count_;
    const double d2 = twice ? std::abs(t2 - time(3 * period)) : HUGE_VAL;
    const double d3 = thrice ? std::abs(time(3 * period) - time(4 * period)) : HUGE_VAL;
    if (!(d1 < d2 && d2 <= d3) || !repeats(period, thrice ? 3 : twice ? 2 : 1)) continue;
    const double ratio = d0 / d1, rest = d0 * ratio / (1 - ratio);
    const double rounding = 64 * resolution / d0;
    const double drift = twice ? std::abs(d1 / d2 - ratio) + (thrice ? std::abs(d2 / d3 - ratio) : 0) : 1;
    const double toward = t0 > t1 ? 1 : -1, left = foretold(rest, toward);
    shrinks = true;
    longest_ = std::max(longest_, std::abs(time(count_ - 1) - t0));
    if (thrice) {
      const bool steady = drift < steady_ratio * (1 - ratio) + rounding;
      const double span = std::min(longest_, time_scale);
      const bool short_enough = rest < short_rest * span;
      // A ratio that still drifts puts the limit in the wrong place by its share of what is left.
      const bool accurate = rest * std::max(drift - rounding, 0.0) < limit_error * tolerance * (1 - ratio) * span;
      const bool exhausted = d0 < exhausted_bits * resolution;
      if (steady && short_enough && accurate) return Accumulation{rest, ratio, period, exhausted};
      if (exhausted) return Accumulation{left, ratio, period, exhausted};
    }
    if (rest < blurred_rest * longest_ && is_blurred(period, d0, ratio, blur))
      return Accumulation{left, ratio, period, false, true};
    if (const double error = rest * (drift + rounding) / (1 - ratio); error < limit_error_) {
      limit_ = t0 + toward * rest;
      limit_error_ = error;
    }
    if (thrice) return std::nullopt;
  }
  if (!shrinks) longest_ = 0, limit_error_ = HUGE_VAL;
  // Once in a while, and where time stands still: what shrinks a thousandfold has no four periods that it can tell.
  return still || (next_ == 0 && count_ == memory) ? find_lost(resolution, time_scale, blur, lowest) : std::nullopt;
}

/// Events that go on for ever within the last digits of time, or of what they touch.
std::optional<Accumulation> Chatter::find_lost(double resolution, double time_scale, const Blur& blur,
                                               const Blur& lowest) const {
  // Which side one surface alone is left to need not repeat itself: that is noise too.
  const auto again = [&](size_t back) { return !mark(0).touched.empty() && mark(back).touched == mark(0).touched; };
  size_t alike = 1;
  while (alike < count_ && again(alike)) ++alike;
  for (size_t period = 1; period <= 8 && 4 * period < count_; ++period) {
    if (!repeats(period, 3) && !(alike == memory && period == 2)) continue;
    const double interval = std::abs(time(0) - time(period));
    const bool short_lived = interval < lost_share * time_scale;  // rounding need not be looked at otherwise
    const auto lost = [&] {
      if (interval < lost_bits * blur_of(period, 0, blur)) return true;
      for (size_t i = 0; i < period; ++i) {  // flights too low to be told from rest, each of them
        if (!(interval < lowest(time(i), mark(i).touched, mark(i).x))) return false;
      }
      return true;
    };
    if (interval < exhausted_bits * resolution || (short_lived && lost()))
      return Accumulation{interval, 0.5, period, false, true};
    break;
  }
  return std::nullopt;
}

std::vector<int> Chatter::members(const Accumulation& a) const {
  std::vector<int> out;
  for (size_t i = 0; i < a.period; ++i) out.insert(out.end(), mark(i).touched.begin(), mark(i).touched.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

double Chatter::limit_moved(const Accumulation& a, size_t i) const {
  if (!(3 * a.period < count_)) return 0;
  const std::optional<double> last = limit_seen(a, i, 0), before = limit_seen(a, i, 1);
  return last && before ? std::abs(*last - *before) * a.ratio : 0;
}

std::optional<double> Chatter::limit_seen(const Accumulation& a, size_t i, size_t back) const {
  const auto at_end = [&](size_t periods) { return mark((back + periods) * a.period).x[i]; };
  const double x = at_end(0), x1 = at_end(1), x2 = at_end(2);
  const double last = x - x1, before = x1 - x2, ratio = last / before;
  if (a.blurred) {  // its own ratio is noise, its mean rate is not
    const double interval = std::abs(time(0) - time(a.period));
    return interval > 0 ? x + last * (a.rest / interval) : x;
  }
  const bool seen = std::abs(before) > 64 * eps * std::abs(x);
  if (!seen || !(std::abs(ratio) < 0.99995)) return std::nullopt;
  return x + last * ratio / (1 - ratio);
}

bool Chatter::grows(const Accumulation& a, size_t i) const {
  if (!(3 * a.period < count_)) return false;
  const auto moved = [&](size_t k) { return mark(k * a.period).x[i] - mark((k + 1) * a.period).x[i]; };
  const double factor = moved(0) / moved(1);
  const auto same = [&](double other) { return std::abs(other - factor) < steady_growth * std::abs(factor); };
  return std::isfinite(factor) && std::abs(factor) > 1 + steady_growth && same(moved(1) / moved(2)) &&
         same(moved(2) / moved(3));
}

}  // namespace saltus
