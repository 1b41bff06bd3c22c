// Ranges of axes: ranges of data in, ranges to draw out.
#pragma once

#include <algorithm>
#include <limits>

#include "base/figure.hpp"
#include "base/table.hpp"

namespace saltus {

struct Range {
  double lo = std::numeric_limits<double>::infinity();
  double hi = -std::numeric_limits<double>::infinity();

  void add(double v) {
    lo = std::min(lo, v);
    hi = std::max(hi, v);
  }
  void add(const Range& other) {
    lo = std::min(lo, other.lo);
    hi = std::max(hi, other.hi);
  }
  bool empty() const { return !(lo <= hi); }
};

/// The range of an axis for data in `range`: never empty, never of zero width; `margin` is a fraction of the width.
Range shown(Range range, const Axis& axis, double margin);

/// Digits that tell neighbouring numbers on an axis apart.
int digits(const Range& range);

/// About how wide the widest number on an axis is, in pixels.
double number_width(const Range& range, bool log);

/// One axis of a uniform grid: how many cells, and its outer edges.
struct GridAxis {
  size_t cells = 0;
  Range edges = {};
};
/// The grid whose cells have these centres, in any order and repeated; some may be missing.
GridAxis grid_axis(Numbers centres);

}  // namespace saltus
