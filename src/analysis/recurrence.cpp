#include "analysis/recurrence.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace saltus {
namespace {

constexpr double near = 0.25;  // of the tolerance: from both sides, twice that way must not look like another period
constexpr double standing = 0.01;  // of the tolerance: a way below it is rounding, not approach

/// Largest distance of two points in units of the tolerance; NaN is infinitely far.
double distance(const double* a, const double* b, std::span<const double> tolerance) {
  double largest = 0;
  for (size_t c = 0; c < tolerance.size(); ++c) {
    if (std::isinf(tolerance[c])) continue;
    const double d = std::abs(a[c] - b[c]) / tolerance[c];
    if (!(d <= largest)) largest = std::isnan(d) ? HUGE_VAL : d;
  }
  return largest;
}

bool repeats(std::span<const double> points, std::span<const double> tolerance, size_t period) {
  const size_t width = tolerance.size(), shift = period * width;
  for (size_t i = points.size(); i >= shift + width; i -= width) {  // the latest first: they differ if any do
    const double* later = points.data() + i - width;
    if (!(distance(later, later - shift, tolerance) <= 1)) return false;
  }
  return true;
}

/// Averages over thirds of the record, phase by phase: what merely swings within the tolerance does not move them.
bool stands_still(std::span<const double> points, std::span<const double> tolerance, size_t period) {
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
    d1 = std::max(d1, distance(&mean[0][i], &mean[1][i], tolerance));
    d2 = std::max(d2, distance(&mean[1][i], &mean[2][i], tolerance));
  }
  if (d2 <= standing) return true;
  const double g = d2 / d1;
  return g < 1 && d2 * g <= near * (1 - g);
}

}  // namespace

Recurrence find_period(std::span<const double> points, std::span<const double> tolerance, long longest) {
  const size_t count = tolerance.empty() ? 0 : points.size() / tolerance.size();
  for (size_t p = 1; p <= count / 3 && static_cast<long>(p) <= longest; ++p) {
    if (!repeats(points, tolerance, p)) continue;
    if (!stands_still(points, tolerance, p)) return {.slow = true};
    // Points that came close while they were recorded may have begun too far apart for the shorter period they have
    // now.
    const auto latest = points.last(2 * p * tolerance.size());
    size_t least = 1;
    while (p % least != 0 || !repeats(latest, tolerance, least)) ++least;
    return {.period = static_cast<long>(least)};
  }
  return {};
}

}  // namespace saltus
