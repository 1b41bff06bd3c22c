#include "out/thin.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

namespace saltus {
namespace {

double fraction(double v, double from, double to, bool log) {
  if (!drawable(v, log)) return std::numeric_limits<double>::quiet_NaN();
  return log ? std::log(v / from) / std::log(to / from) : (v - from) / (to - from);
}

struct Pixels {
  std::vector<float> x, y;  // NaN: gap

  bool gap(size_t i) const { return std::isnan(x[i]) || std::isnan(y[i]); }
};

Pixels to_pixels(std::span<const double> x, std::span<const double> y, const PixelMap& map) {
  Pixels p;
  p.x.resize(x.size());
  p.y.resize(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    p.x[i] = static_cast<float>(map.px(x[i]));
    p.y[i] = static_cast<float>(map.py(y[i]));
  }
  return p;
}

void push_gap(std::vector<size_t>& rows) {
  if (!rows.empty() && rows.back() != kGap) rows.push_back(kGap);
}

/// Runs along x in one direction, over gaps too.
bool runs_along_x(const Pixels& p) {
  bool up = true, down = true;
  float last = std::numeric_limits<float>::quiet_NaN();
  for (size_t i = 0; i < p.x.size() && (up || down); ++i) {
    if (p.gap(i)) continue;
    if (p.x[i] < last) up = false;
    if (p.x[i] > last) down = false;
    last = p.x[i];
  }
  return up || down;
}

/// First, lowest, highest and last row of a piece of a curve within one pixel column.
struct Piece {
  size_t first, low, high, last;

  void add(size_t i, const Pixels& p) {
    if (p.y[i] < p.y[low]) low = i;
    if (p.y[i] > p.y[high]) high = i;
    last = i;
  }
  void emit(std::vector<size_t>& rows) const {
    size_t kept[] = {first, std::min(low, high), std::max(low, high), last};
    for (const size_t i : kept) {
      if (rows.empty() || rows.back() == kGap || rows.back() < i) rows.push_back(i);
    }
  }
};

std::vector<size_t> thin_along_x(const Pixels& p) {
  const int most_pieces = 8;  // in one half pixel column; more gaps than that cannot be seen
  std::vector<size_t> rows;
  bool open = false, gap = false;
  Piece piece{};
  double column = 0;
  int pieces = 0;
  for (size_t i = 0; i < p.x.size(); ++i) {
    if (p.gap(i)) {
      gap = true;
      continue;
    }
    const double here = std::floor(2.0 * p.x[i]);
    const bool same = open && here == column;
    if (same && (!gap || pieces >= most_pieces)) {
      piece.add(i, p);
    } else {
      if (open) piece.emit(rows);
      if (gap) push_gap(rows);
      pieces = same ? pieces + 1 : 1;
      piece = {i, i, i, i};
      column = here;
      open = true;
    }
    gap = false;
  }
  if (open) piece.emit(rows);
  return rows;
}

/// The directions from a kept row in which all rows since are met within `tolerance` pixels.
struct Cone {
  double middle = 0, half = -1, farthest = 0;  // half < 0: open to all sides

  /// Narrows the cone by a further row at (dx, dy); false if the row lies outside or the curve has turned back.
  bool admit(double dx, double dy, double tolerance) {
    const double d = std::hypot(dx, dy);
    if (d < farthest - tolerance) return false;
    farthest = std::max(farthest, d);
    if (d <= tolerance) return true;
    const double angle = std::atan2(dy, dx), width = std::asin(tolerance / d);
    if (half < 0) {
      middle = angle;
      half = width;
      return true;
    }
    const double off = std::remainder(angle - middle, 2 * std::numbers::pi);
    if (std::abs(off) > half) return false;
    const double lo = std::max(-half, off - width), hi = std::min(half, off + width);
    middle += 0.5 * (lo + hi);
    half = 0.5 * (hi - lo);
    return true;
  }
};

/// Keeps the ends of each uninterrupted run and its rows where a cone from the last kept row ends.
std::vector<size_t> thin_bends(const Pixels& p, double tolerance) {
  std::vector<size_t> rows;
  size_t anchor = kGap;
  Cone cone;
  const auto admit = [&](size_t i) { return cone.admit(p.x[i] - p.x[anchor], p.y[i] - p.y[anchor], tolerance); };
  const auto keep = [&](size_t i) {
    if (rows.empty() || rows.back() != i) rows.push_back(i);
    anchor = i;
    cone = {};
  };
  const auto end_run = [&](size_t last) {
    if (anchor == kGap) return;
    const bool only_its_start = rows.size() == 1 || rows[rows.size() - 2] == kGap;
    if (only_its_start && cone.farthest < 0.5 * tolerance) {
      rows.pop_back();  // shorter than can be seen
    } else if (rows.back() != last) {
      rows.push_back(last);
    }
    push_gap(rows);
    anchor = kGap;
  };
  for (size_t i = 0; i < p.x.size(); ++i) {
    if (p.gap(i)) {
      if (i > 0) end_run(i - 1);
    } else if (anchor == kGap) {
      keep(i);
    } else if (!admit(i)) {
      keep(i - 1);
      admit(i);
    }
  }
  if (!p.x.empty()) end_run(p.x.size() - 1);
  if (!rows.empty() && rows.back() == kGap) rows.pop_back();
  return rows;
}

/// A panel full of ink, or a curve torn to shreds: short stretches of it, evenly spread, show no less.
std::vector<size_t> sample_of(const std::vector<size_t>& rows, size_t most) {
  const size_t stretch = 16, every = (stretch + 1) * (rows.size() / most + 1);
  std::vector<size_t> kept;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % every >= stretch || rows[i] == kGap) {
      push_gap(kept);
    } else {
      kept.push_back(rows[i]);
    }
  }
  return kept;
}

/// The drawable stretches from left to right, whichever way they were run through.
std::vector<size_t> in_order(std::span<const double> from, std::span<const double> to) {
  std::vector<size_t> rows;
  for (size_t i = 0; i < from.size(); ++i) {
    if (drawable(from[i], false) && drawable(to[i], false)) rows.push_back(i);
  }
  const auto left = [&](size_t i) { return std::min(from[i], to[i]); };
  std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) { return left(a) < left(b); });
  return rows;
}

/// The index of the cell of `size` cells, or -1 outside.
long cell_of(double pixel, double cell, long size) {
  const double edge = cell * static_cast<double>(size);
  if (!(pixel >= 0 && pixel <= edge * (1 + 1e-12))) return -1;
  return std::min(static_cast<long>(pixel / cell), size - 1);  // the far edge belongs to the last cell
}

}  // namespace

bool drawable(double value, bool log) { return std::abs(value) <= 1e150 && (!log || value > 1e-300); }

double PixelMap::px(double x) const { return width * fraction(x, x_from, x_to, log_x); }
double PixelMap::py(double y) const { return height * fraction(y, y_from, y_to, log_y); }

std::vector<size_t> thin_line(std::span<const double> x, std::span<const double> y, const PixelMap& map, size_t most) {
  const Pixels p = to_pixels(x, y, map);
  std::vector<size_t> rows;
  if (x.size() <= std::min<size_t>(most, 2000)) {
    for (size_t i = 0; i < x.size(); ++i) {
      if (p.gap(i)) {
        push_gap(rows);
      } else {
        rows.push_back(i);
      }
    }
    return rows;
  }
  if (runs_along_x(p)) {
    rows = thin_along_x(p);
    if (rows.size() <= 4 * most) return rows;
  }
  for (double tolerance = 0.2; tolerance < 20; tolerance *= 2) {
    rows = thin_bends(p, tolerance);
    if (rows.size() <= most) return rows;
  }
  return sample_of(rows, most);
}

std::vector<size_t> thin_points(std::span<const double> x, std::span<const double> y, const PixelMap& map, double cell,
                                size_t most) {
  std::vector<size_t> rows;
  for (;; cell *= 1.5) {
    rows.clear();
    const long columns = std::max(1L, std::lround(map.width / cell)),
               lines = std::max(1L, std::lround(map.height / cell));
    std::vector<bool> taken(static_cast<size_t>(columns * lines));
    for (size_t i = 0; i < x.size() && rows.size() <= most; ++i) {
      const long a = cell_of(map.px(x[i]), map.width / static_cast<double>(columns), columns);
      const long b = cell_of(map.py(y[i]), map.height / static_cast<double>(lines), lines);
      if (a < 0 || b < 0) continue;
      const size_t at = static_cast<size_t>(b * columns + a);
      if (!taken[at]) rows.push_back(i);
      taken[at] = true;
    }
    if (rows.size() <= most) return rows;
  }
}

std::vector<unsigned> count_points(std::span<const double> x, std::span<const double> y, const PixelMap& map,
                                   size_t columns, size_t rows) {
  std::vector<unsigned> counts(columns * rows);
  for (size_t i = 0; i < x.size(); ++i) {
    const long a = cell_of(map.px(x[i]), map.width / static_cast<double>(columns), static_cast<long>(columns));
    const long b = cell_of(map.py(y[i]), map.height / static_cast<double>(rows), static_cast<long>(rows));
    if (a >= 0 && b >= 0) ++counts[static_cast<size_t>(b) * columns + static_cast<size_t>(a)];
  }
  return counts;
}

std::vector<Stretch> thin_ribbon(std::span<const double> from, std::span<const double> to,
                                 std::span<const std::string> category, double pixels_per_unit) {
  const double narrow = 0.5 / std::max(pixels_per_unit, 1e-300);
  std::vector<Stretch> out;
  const auto emit = [&](double a, double b, size_t row) {
    if (!out.empty() && category[out.back().row] == category[row] && out.back().to >= a) {
      out.back().to = b;
    } else {
      out.push_back({a, b, row});
    }
  };
  std::map<std::string, std::pair<double, size_t>> crowd;  // narrow stretches not yet emitted: total width, a row
  double crowd_from = 0, crowd_to = 0;
  const auto emit_crowd = [&] {
    if (crowd.empty()) return;
    const auto wider = [](const auto& a, const auto& b) { return a.second.first < b.second.first; };
    emit(crowd_from, crowd_to, std::max_element(crowd.begin(), crowd.end(), wider)->second.second);
    crowd.clear();
  };
  for (const size_t i : in_order(from, to)) {
    const double a = std::min(from[i], to[i]), b = std::max(from[i], to[i]);
    if (!crowd.empty() && (a > crowd_to + narrow || b - a >= narrow)) emit_crowd();
    if (b - a >= narrow) {
      emit(a, b, i);
      continue;
    }
    if (crowd.empty()) crowd_from = a;
    crowd_to = b;
    auto& entry = crowd.try_emplace(category[i], 0.0, i).first->second;
    entry.first += b - a;
    if (crowd_to - crowd_from >= narrow) emit_crowd();
  }
  emit_crowd();
  return out;
}

}  // namespace saltus
