#include "analysis/settle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace saltus {
namespace {

constexpr double near = 10;          ///< tolerances between points of one attractor reached from different starts
constexpr double may_shrink = 100;   ///< tolerances between cycles of which a limit may be told
constexpr int slow_cycles = 8;       ///< over which a slow convergence is measured
constexpr double still_apart = 0.6;  ///< of how far phases are apart now: what limits of different points keep at least
constexpr double come_near = 0.1;    ///< likewise: what those of one point have left at most

/// The largest distance from a point of a to the set b; stops counting beyond `most`.
double farthest_from(const Attractor& a, const Attractor& b, std::span<const double> tolerance, double most) {
  const std::size_t n = tolerance.size();
  double farthest = 0;
  for (std::size_t i = 0; i < a.count(n) && farthest <= most; ++i) {
    double nearest = std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < b.count(n); ++j)
      nearest = std::min(nearest, distance_in(tolerance, a.point(i, n), b.point(j, n)));
    farthest = std::max(farthest, nearest);
  }
  return farthest;
}

/// The mean distance from a point of a to the set b.
double mean_from(const Attractor& a, const Attractor& b, std::span<const double> scale) {
  const std::size_t n = scale.size();
  double sum = 0;
  for (std::size_t i = 0; i < a.count(n); ++i) {
    double nearest = std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < b.count(n); ++j)
      nearest = std::min(nearest, distance_in(scale, a.point(i, n), b.point(j, n)));
    sum += nearest;
  }
  return sum / static_cast<double>(std::max<std::size_t>(1, a.count(n)));
}

/// The common extent of two samples along each state that counts.
std::vector<double> extent(const Attractor& a, const Attractor& b, std::span<const double> tolerance) {
  const std::size_t n = tolerance.size();
  std::vector<double> result(n, std::numeric_limits<double>::infinity());
  for (std::size_t s = 0; s < n; ++s) {
    if (std::isinf(tolerance[s])) continue;
    double lo = HUGE_VAL, hi = -HUGE_VAL;
    for (const Attractor* which : {&a, &b}) {
      for (std::size_t i = s; i < which->points.size(); i += n) {
        lo = std::min(lo, which->points[i]);
        hi = std::max(hi, which->points[i]);
      }
    }
    result[s] = std::max(hi - lo, tolerance[s]);
  }
  return result;
}

/// Turns a cycle so that it begins with its lowest point.
void begin_lowest(std::vector<double>& points, std::size_t width) {
  std::size_t first = 0;
  for (std::size_t i = width; i < points.size(); i += width) {
    if (std::lexicographical_compare(&points[i], &points[i] + width, &points[first], &points[first] + width)) first = i;
  }
  std::rotate(points.begin(), points.begin() + static_cast<std::ptrdiff_t>(first), points.end());
}

}  // namespace

double distance_in(std::span<const double> tolerance, std::span<const double> a, std::span<const double> b) {
  double largest = 0;
  for (std::size_t i = 0; i < tolerance.size(); ++i) {
    const double d = std::abs(a[i] - b[i]) / tolerance[i];
    if (!(d <= largest) && !std::isinf(tolerance[i])) largest = std::isnan(d) ? HUGE_VAL : d;
  }
  return largest;
}

bool same_attractor(const Attractor& a, const Attractor& b, std::span<const double> tolerance) {
  if ((a.period == 0) != (b.period == 0)) return false;
  if (a.period > 0) return farthest_from(a, b, tolerance, near) <= near && farthest_from(b, a, tolerance, near) <= near;
  const std::vector<double> scale = extent(a, b, tolerance);
  return mean_from(a, b, scale) <= 0.1 && mean_from(b, a, scale) <= 0.1;
}

Settling::Settling(std::vector<double> tolerance, int most_period)
    : tolerance_(std::move(tolerance)),
      most_period_(most_period),
      kept_((3L * slow_cycles + 1) * most_period + 1),
      points_(static_cast<std::size_t>(kept_) * tolerance_.size()) {}

std::span<const double> Settling::latest(long back) const {
  const std::size_t n = tolerance_.size();
  return {points_.data() + static_cast<std::size_t>((count_ - 1 - back) % kept_) * n, n};
}

bool Settling::add(std::span<const double> x) {
  const std::size_t n = tolerance_.size();
  std::copy(x.begin(), x.end(), points_.begin() + static_cast<std::ptrdiff_t>(count_ % kept_) * static_cast<long>(n));
  ++count_;
  double nearest = 2 * may_shrink;
  for (int p = 1; p <= most_period_ && count_ > 5L * p; ++p) {
    // A multiple of the period comes back no nearer than the period itself, unless the points alternate.
    const double d = between(0, p);
    if (d > 0.5 * nearest) continue;
    nearest = d;
    cycle_.points.clear();
    const bool arrived = stands_still(p) || shrinks_quickly(p);
    if (!arrived && !shrinks_slowly(p)) continue;
    if (keep_cycle(p, arrived ? 1 : 4)) return true;  // of those on their way two may each have a tolerance before them
  }
  return false;
}

/// How far the latest cycle but `cycle` is from the one before it.
double Settling::between_cycles(int period, int cycle) const {
  double largest = 0;
  for (int i = 0; i < period; ++i) largest = std::max(largest, between(i + static_cast<long>(cycle) * period, period));
  return largest;
}

/// True if the points move by rounding only: with a multiplier up to 0.9999 the remaining distance is below the
/// tolerance.
bool Settling::stands_still(int period) const {
  for (int cycle = 0; cycle < 3; ++cycle) {
    if (between_cycles(period, cycle) > 1e-4) return false;
  }
  return true;
}

/// Four cycles in a geometric sequence, its rest so far below the tolerance that no slower one can hide beside it. That
/// the ratios agree rules out a quick and a slow one that happen to cancel.
bool Settling::shrinks_quickly(int period) const {
  const double e0 = between_cycles(period, 0);
  if (e0 > 1e-3) return false;
  const double e1 = between_cycles(period, 1), e2 = between_cycles(period, 2), e3 = between_cycles(period, 3);
  const double highest = std::max({e0 / e1, e1 / e2, e2 / e3}), lowest = std::min({e0 / e1, e1 / e2, e2 / e3});
  return highest <= 0.9 && lowest >= highest / 3 && e0 * std::max(1.0, highest / (1 - highest)) <= 1e-3;
}

/// Over many cycles: little is left, or the limit can be told.
bool Settling::shrinks_slowly(int period) {
  const long base = static_cast<long>(slow_cycles) * period;
  if (count_ <= 3 * base + period || count_ % period != 0) return false;  // once in a cycle is enough
  return little_is_left(period) || limits_agree(period);
}

/// The largest differences of neighbouring cycles, four at a time, since in a spiral single ones mean nothing. The
/// slowest decrease counts: one that has just become slow must not be taken for what it was.
bool Settling::little_is_left(int period) const {
  constexpr int together = 4;
  double later = 0, latest_difference = 0, q = 0;
  for (int block = 0; block < 3 * slow_cycles / together; ++block) {
    double largest = 0;
    for (int i = 0; i < together; ++i) largest = std::max(largest, between_cycles(period, block * together + i));
    if (block == 0) latest_difference = largest;
    if (block > 0) q = std::max(q, later / largest);
    later = largest;
  }
  return q < 1 && together * latest_difference * q / (1 - q) <= 1;
}

/// Two estimates of the limit are the same; the cycle is then made of the limits.
bool Settling::limits_agree(int period) {
  const std::size_t n = tolerance_.size();
  const long base = static_cast<long>(slow_cycles) * period;
  limits_.resize(static_cast<std::size_t>(period) * n);
  earlier_limit_.resize(n);
  Ratios ratios;
  for (int i = 0; i < period; ++i) {
    const std::span<double> x(limits_.data() + static_cast<std::size_t>(period - 1 - i) * n, n);
    limit(i, base, x, ratios);
    limit(i + base, base, earlier_limit_, ratios);
    if (!ratios.agree() || distance_in(tolerance_, x, earlier_limit_) > 0.5) return false;
  }
  cycle_.points = limits_;
  return true;
}

/// The limit of a geometric sequence from three of its members (Aitken), each state by itself.
void Settling::limit(long back, long base, std::span<double> x, Ratios& ratios) const {
  const auto x0 = latest(back), x1 = latest(back + base), x2 = latest(back + 2 * base);
  for (std::size_t s = 0; s < x.size(); ++s) {
    const double a = x0[s] - x1[s], q = a / (x1[s] - x2[s]);
    x[s] = x0[s];
    if (std::abs(a) <= 1e-3 * tolerance_[s]) continue;
    ratios.lowest = std::min(ratios.lowest, q);
    ratios.highest = std::max(ratios.highest, q);
    x[s] += a * q / (1 - q);
  }
}

/// How far points of a cycle are from those `shift` places on, in tolerances.
double Settling::apart_by(const Attractor& cycle, int shift) const {
  const std::size_t n = tolerance_.size();
  double largest = 0;
  for (std::size_t i = static_cast<std::size_t>(shift); i < cycle.count(n); ++i)
    largest = std::max(largest,
                       distance_in(tolerance_, cycle.point(i, n), cycle.point(i - static_cast<std::size_t>(shift), n)));
  return largest;
}

/// The latest points or their limits as the cycle. One that still shrinks onto a shorter one, its phases no farther
/// apart than `joined` tolerances, has the shorter period; it begins with its lowest point, wherever the sequence
/// happened to be. Says whether that can be told already.
bool Settling::keep_cycle(int period, double joined) {
  const std::size_t n = tolerance_.size();
  std::vector<double>& points = cycle_.points;
  const bool extrapolated = !points.empty();
  const Attractor latest_points = sample(period);
  if (!extrapolated) points = latest_points.points;
  cycle_.period = period;
  for (int shorter = 1; shorter < period; ++shorter) {
    if (period % shorter != 0) continue;
    const double apart = apart_by(cycle_, shorter);
    // Limits are a little off where the approach is not quite geometric: next to a period doubling phases that have
    // come together tenfold, and to within what counts as one attractor, are on their way to one point.
    const bool coming = extrapolated && apart <= near && 10 * apart <= apart_by(latest_points, shorter);
    if (apart > joined && !coming) {
      if (extrapolated && apart < still_apart * apart_by(latest_points, shorter)) return false;
      continue;
    }
    points.erase(points.begin(), points.end() - static_cast<std::ptrdiff_t>(static_cast<std::size_t>(shorter) * n));
    cycle_.period = shorter;
    break;
  }
  begin_lowest(points, n);
  return true;
}

/// The period of what the sequence goes to, though the way there is still long. The limits of 2p points in a row are
/// told twice each, to within a share of that way. After p points they are the same but for a tenth of how far the
/// points are apart: a linear approach; one that slows down, as at a period doubling, leaves a third. After fewer they
/// are not.
int Settling::heading() const {
  const std::size_t n = tolerance_.size();
  std::vector<double> limits, again(n);
  for (int p = 1; p <= most_period_; ++p) {
    const long base = static_cast<long>(slow_cycles) * p;
    if (count_ <= 3 * base + 2L * p || 3 * base + 2L * p >= kept_) return 0;
    limits.resize(2 * static_cast<std::size_t>(p) * n);
    const auto of = [&](int i) { return std::span<double>(limits).subspan(static_cast<std::size_t>(i) * n, n); };
    Ratios ratios;
    bool told = true;
    for (int i = 0; i < 2 * p && told; ++i) {
      limit(i, base, of(i), ratios);
      limit(i + base, base, again, ratios);
      const double way = distance_in(tolerance_, of(i), latest(i));
      told = ratios.agree() && std::isfinite(way) && distance_in(tolerance_, of(i), again) <= 0.5 + 0.02 * way;
    }
    /// True if limits `shift` places apart differ by more than a share of how far their points move.
    const auto differ = [&](int shift, double share) {
      for (int i = shift; i < 2 * p; ++i) {
        if (distance_in(tolerance_, of(i), of(i - shift)) >
            1 + share * distance_in(tolerance_, latest(i), latest(i - shift)))
          return true;
      }
      return false;
    };
    for (int q = 1; q <= p && told; ++q) {
      if (p % q != 0) continue;
      if (!differ(q, come_near)) return q;
      told = differ(q, still_apart);
    }
  }
  return 0;
}

std::optional<Attractor> Settling::verdict(int most) const {
  const std::size_t n = tolerance_.size();
  const Attractor record = sample(static_cast<int>(kept_));
  const Recurrence found = find_period(record.points, tolerance_, most_period_);
  if (found.slow || found.on_its_way) return std::nullopt;
  const long period = found.period;
  Attractor result = sample(period > 0 ? static_cast<int>(period) : most);
  result.period = static_cast<int>(period);
  if (period > 0) begin_lowest(result.points, n);
  return result;
}

Attractor Settling::sample(int most) const {
  Attractor result;
  for (long i = std::min({count_, kept_, static_cast<long>(most)}); i-- > 0;) {
    const auto x = latest(i);
    result.points.insert(result.points.end(), x.begin(), x.end());
  }
  return result;
}

// ---- a record as a whole -------------------------------------------------------------------------------------------

namespace {

bool repeats(std::span<const double> points, std::span<const double> tolerance, size_t period) {
  const size_t width = tolerance.size(), shift = period * width;
  for (size_t i = points.size() - width; i >= shift; i -= width) {  // the latest first: they differ if any do
    if (!(distance_in(tolerance, points.subspan(i, width), points.subspan(i - shift, width)) <= 1)) return false;
    if (i < width) break;
  }
  return true;
}

/// Averages over thirds of the record, phase by phase: what merely swings within the tolerance does not move them.
bool phases_stand(std::span<const double> points, std::span<const double> tolerance, size_t period) {
  const size_t width = tolerance.size(), block = period * width;
  const size_t periods = points.size() / block / 3;  // in each third
  std::vector<double> mean[3];
  const double* at = points.data() + points.size() - 3 * periods * block;
  for (std::vector<double>& m : mean) {
    m.assign(block, 0.0);
    for (size_t k = 0; k < periods; ++k, at += block) {
      for (size_t i = 0; i < block; ++i) m[i] += at[i] / static_cast<double>(periods);
    }
  }
  double d1 = 0, d2 = 0;
  for (size_t i = 0; i < block; i += width) {
    const auto phase = [&](int third) { return std::span<const double>(mean[third]).subspan(i, width); };
    d1 = std::max(d1, distance_in(tolerance, phase(0), phase(1)));
    d2 = std::max(d2, distance_in(tolerance, phase(1), phase(2)));
  }
  constexpr double standing = 0.01;  // of the tolerance: a way below it is rounding, not approach
  constexpr double left = 0.25;      // from both sides: twice that way must not look like another period
  if (d2 <= standing) return true;
  const double g = d2 / d1;
  return g < 1 && d2 * g <= left * (1 - g);
}

/// True if points of one phase go on and on in one direction, by less and less: every component that moves at all, at
/// every phase. What merely grows, at a constant rate, does not converge; what turns back may be anything.
bool creeps(std::span<const double> points, std::span<const double> tolerance, size_t period) {
  constexpr size_t enough = 8;      // differences of one phase
  constexpr double uneven = 1.05;   // of one difference and the next: rounding, and what dies out more quickly
  constexpr double shrinks = 1e-6;  // more than rounding does
  const size_t width = tolerance.size(), shift = period * width, third = (points.size() - shift) / width / 3;
  if (points.size() < (enough + 1) * shift) return false;
  bool moves = false;
  for (size_t c = 0; c < width; ++c) {
    if (std::isinf(tolerance[c])) continue;
    const auto difference = [&](size_t i) { return points[i + shift] - points[i]; };
    double largest = 0, first = 0, last = 0;
    bool steady = true;
    size_t k = 0;
    const size_t count = (points.size() - shift) / width;
    for (size_t i = c; i + shift < points.size(); i += width, ++k) {
      const double d = difference(i);
      largest = std::max(largest, std::abs(d));
      if (k < third) first += std::abs(d);
      if (k >= count - third) last += std::abs(d);
      if (i + 2 * shift >= points.size()) continue;
      const double next = difference(i + shift);
      steady = steady && d * next > 0 && std::abs(next) <= uneven * std::abs(d);
    }
    if (largest <= tolerance[c]) continue;
    if (!steady || !(last < (1 - shrinks) * first)) return false;
    moves = true;
  }
  return moves;
}

struct Settled {
  long period = 0;  // 0: none
  bool on_its_way = false;
};

/// The period of the cycle on which the record has settled and still is at its end, or to which it goes.
Settled settled_period(std::span<const double> points, std::span<const double> tolerance, long longest) {
  const size_t width = tolerance.size(), count = points.size() / width;
  Settling settling({tolerance.begin(), tolerance.end()}, static_cast<int>(longest));
  long period = 0;
  size_t last = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!settling.add(points.subspan(i * width, width))) continue;
    period = settling.cycle().period;
    last = i;
  }
  // Some tests are made once in a cycle.
  if (period > 0 && count - 1 - last < static_cast<size_t>(longest)) return {period, false};
  return {settling.heading(), true};
}

}  // namespace

Recurrence find_period(std::span<const double> points, std::span<const double> tolerance, long longest) {
  const size_t count = tolerance.empty() ? 0 : points.size() / tolerance.size();
  longest = std::min(longest, static_cast<long>(count / 3));
  if (longest < 1) return {};
  if (const auto [period, on_its_way] = settled_period(points, tolerance, longest); period > 0)
    return {
        .period = period, .on_its_way = on_its_way, .arrived = repeats(points, tolerance, static_cast<size_t>(period))};
  for (size_t p = 1; p <= static_cast<size_t>(longest); ++p) {
    if (!repeats(points, tolerance, p)) continue;
    if (!phases_stand(points, tolerance, p)) return {.slow = true};
    // Points that came close while they were recorded may have begun too far apart for the shorter period they have
    // now.
    const auto latest = points.last(2 * p * tolerance.size());
    size_t least = 1;
    while (p % least != 0 || !repeats(latest, tolerance, least)) ++least;
    return {.period = static_cast<long>(least), .arrived = true};
  }
  for (size_t p = 1; p <= static_cast<size_t>(longest); ++p) {
    if (creeps(points, tolerance, p)) return {.slow = true};
  }
  return {};
}

}  // namespace saltus
