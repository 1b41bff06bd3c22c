#include "out/plot_range.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "out/plot_style.hpp"
#include "out/thin.hpp"

namespace saltus {

Range shown(Range range, const Axis& axis, double margin) {
  if (range.empty()) range = axis.log ? Range{1, 10} : Range{0, 1};
  if (axis.log) {
    const double grow = std::max(std::pow(range.hi / range.lo, margin), range.hi / range.lo < 1.001 ? 2.0 : 1.0);
    range = {range.lo / grow, range.hi * grow};
  } else {
    const double size = std::max(std::abs(range.lo), std::abs(range.hi)), width = range.hi - range.lo;
    const bool flat = width <= 1e-12 * size || size < 1e-290;
    const double grow = flat ? (size < 1e-290 ? 1.0 : 0.1 * size) : margin * width;
    range = {range.lo - grow, range.hi + grow};
  }
  if (drawable(axis.from, axis.log)) range.lo = axis.from;
  if (drawable(axis.to, axis.log)) range.hi = axis.to;
  if (range.lo > range.hi) std::swap(range.lo, range.hi);
  if (range.lo == range.hi) range.hi = range.lo + std::max(1.0, std::abs(range.lo));
  return range;
}

int digits(const Range& r) {
  const double ratio = std::max(std::abs(r.lo), std::abs(r.hi)) / (r.hi - r.lo);
  return std::clamp(static_cast<int>(std::ceil(std::log10(ratio))) + 2, 6, 15);
}

double number_width(const Range& r, bool log) {
  if (log) return 6 * kCharacter;
  const double rough = (r.hi - r.lo) / 5, ten = std::pow(10, std::floor(std::log10(rough)));
  const double step = ten * (rough / ten >= 5 ? 5 : rough / ten >= 2 ? 2 : 1);
  size_t longest = 1;
  if (!std::isfinite(r.lo / step) || !(step > 0)) return 9 * kCharacter;
  for (double v = std::ceil(r.lo / step) * step; v <= r.hi; v += step) {
    const double rounded = std::abs(v) < step * 1e-9 ? 0 : v;
    const std::string text = fmt::format("{:.{}g}", rounded, digits(r));
    const bool power = text.find('e') != std::string::npos;  // drawn as x 10 to a small raised number
    longest = std::max(longest, text.size() + (power ? 2 : 0));
    if (v + step <= v) break;
  }
  return kCharacter * static_cast<double>(longest);
}

GridAxis grid_axis(Numbers centres) {
  std::erase_if(centres, [](double v) { return !drawable(v, false); });
  std::sort(centres.begin(), centres.end());
  centres.erase(std::unique(centres.begin(), centres.end()), centres.end());
  if (centres.empty()) return {0, {}};
  const double lo = centres.front(), hi = centres.back();
  // The smallest distance is the size of a cell, also where some cells are missing.
  double cell = hi - lo;
  for (size_t i = 1; i < centres.size(); ++i) {
    const double d = centres[i] - centres[i - 1];
    if (d > 1e-9 * (hi - lo)) cell = std::min(cell, d);
  }
  if (cell <= 0) cell = std::max(1.0, std::abs(lo)) * 0.1;
  const size_t most = 4096;
  const size_t n = std::clamp<size_t>(static_cast<size_t>(std::min((hi - lo) / cell + 1.5, 1e6)), 1, most);
  const double half = n > 1 ? 0.5 * (hi - lo) / static_cast<double>(n - 1) : 0.5 * cell;
  return {n, {lo - half, hi + half}};
}

}  // namespace saltus
