#include "analysis/cells.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "analysis/random.hpp"

namespace saltus {
namespace {

/// Sets that are merged; each is known by its lowest member.
struct Joined {
  std::vector<std::int32_t> parent;

  explicit Joined(std::size_t n) : parent(n) { std::iota(parent.begin(), parent.end(), 0); }
  std::int32_t lowest(std::int32_t i) {
    while (parent[static_cast<std::size_t>(i)] != i) {
      std::int32_t& up = parent[static_cast<std::size_t>(i)];
      up = parent[static_cast<std::size_t>(up)];
      i = up;
    }
    return i;
  }
  void join(std::int32_t a, std::int32_t b) {
    a = lowest(a);
    b = lowest(b);
    parent[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
  }
};

}  // namespace

// ---- axes and meshes -----------------------------------------------------------------------------------------------

std::int64_t CellAxis::locate(double v) const {
  const std::size_t n = cells();
  const double slack = 1e-9 * (to() - from()) / static_cast<double>(n);
  if (!(v >= from() - slack && v <= to() + slack)) return -1;
  v = std::clamp(v, from(), std::nextafter(to(), from()));
  const double share = (v - from()) / (to() - from());
  std::size_t k = std::min(n - 1, static_cast<std::size_t>(share * static_cast<double>(n)));
  if (!(edges[k] <= v && v < edges[k + 1]))  // edges of unequal distance, or rounding
    k = static_cast<std::size_t>(std::upper_bound(edges.begin(), edges.end(), v) - edges.begin()) - 1;
  return static_cast<std::int64_t>(k);
}

CellAxis uniform_axis(int state, double from, double to, std::size_t n) {
  CellAxis axis{.state = state, .edges = std::vector<double>(n + 1)};
  for (std::size_t k = 0; k < n; ++k)
    axis.edges[k] = from + (to - from) * (static_cast<double>(k) / static_cast<double>(n));
  axis.edges[n] = to;
  return axis;
}

Mesh::Mesh(std::vector<CellAxis> axes) : axes_(std::move(axes)), cells_(1) {
  for (const CellAxis& axis : axes_) cells_ *= axis.cells();
  assert(cells_ <= most_cells);
}

Mesh::Mesh(std::vector<CellAxis> axes, std::size_t points, std::uint64_t seed)
    : axes_(std::move(axes)), cells_(points), points_(points * axes_.size()), tree_(points) {
  assert(cells_ <= most_cells);
  for (std::size_t i = 0; i < points_.size(); ++i) points_[i] = random_number(seed, i / axes_.size(), i % axes_.size());
  std::iota(tree_.begin(), tree_.end(), 0);
  build(0, points, 0);
}

void Mesh::centre(std::size_t cell, std::span<double> values) const {
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const CellAxis& axis = axes_[a];
    if (scattered()) {
      values[a] = axis.from() + (axis.to() - axis.from()) * points_[cell * axes_.size() + a];
    } else {
      values[a] = axis.centre(cell % axis.cells());
      cell /= axis.cells();
    }
  }
}

void Mesh::place(std::size_t cell, std::span<std::size_t> indices) const {
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    indices[a] = cell % axes_[a].cells();
    cell /= axes_[a].cells();
  }
}

CellIndex Mesh::locate(std::span<const double> values) const {
  std::size_t cell = 0, stride = 1;
  std::vector<double> unit;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const CellAxis& axis = axes_[a];
    const std::int64_t k = axis.locate(values[a]);
    if (k < 0) return sink_cell;
    if (scattered()) unit.push_back((values[a] - axis.from()) / (axis.to() - axis.from()));
    cell += static_cast<std::size_t>(k) * stride;
    stride *= axis.cells();
  }
  if (!scattered()) return static_cast<CellIndex>(cell);
  Found best{std::numeric_limits<double>::infinity(), sink_cell};
  nearest(0, cells_, 0, unit, best);
  return best.point;
}

double Mesh::outside(std::span<const double> values) const {
  double farthest = 0;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const CellAxis& axis = axes_[a];
    const double beyond = std::max(axis.from() - values[a], values[a] - axis.to());
    const double cells = scattered() ? std::pow(static_cast<double>(cells_), 1.0 / static_cast<double>(axes_.size()))
                                     : static_cast<double>(axis.cells());
    farthest = std::max(farthest, beyond / (axis.to() - axis.from()) * cells);
    if (std::isnan(values[a])) return std::numeric_limits<double>::infinity();
  }
  return farthest;
}

double Mesh::distance(CellIndex a, CellIndex b) const {
  std::size_t i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
  double farthest = 0;
  for (std::size_t k = 0; k < axes_.size(); ++k) {
    if (scattered()) {
      const double mean = std::pow(static_cast<double>(cells_), -1.0 / static_cast<double>(axes_.size()));
      farthest = std::max(farthest, std::abs(points_[i * axes_.size() + k] - points_[j * axes_.size() + k]) / mean);
    } else {
      const std::size_t n = axes_[k].cells();
      const std::size_t p = i % n, q = j % n;
      farthest = std::max(farthest, static_cast<double>(p > q ? p - q : q - p));
      i /= n;
      j /= n;
    }
  }
  return farthest;
}

/// Puts the middle point along the axis into the middle of the range, the lower ones before it, and so on in halves.
void Mesh::build(std::size_t from, std::size_t to, std::size_t axis) {
  if (to - from < 2) return;
  const std::size_t d = axes_.size(), middle = (from + to) / 2;
  const auto at = [&](std::size_t i) { return tree_.begin() + static_cast<std::ptrdiff_t>(i); };
  std::nth_element(at(from), at(middle), at(to), [&](std::int32_t p, std::int32_t q) {
    return points_[static_cast<std::size_t>(p) * d + axis] < points_[static_cast<std::size_t>(q) * d + axis];
  });
  build(from, middle, (axis + 1) % d);
  build(middle + 1, to, (axis + 1) % d);
}

void Mesh::nearest(std::size_t from, std::size_t to, std::size_t axis, std::span<const double> unit,
                   Found& best) const {
  if (from == to) return;
  const std::size_t d = axes_.size(), middle = (from + to) / 2;
  const std::int32_t point = tree_[middle];
  const double* p = &points_[static_cast<std::size_t>(point) * d];
  double distance2 = 0;
  for (std::size_t a = 0; a < d; ++a) distance2 += (unit[a] - p[a]) * (unit[a] - p[a]);
  if (distance2 < best.distance2 || (distance2 == best.distance2 && point < best.point)) best = {distance2, point};
  const double beyond = unit[axis] - p[axis];
  const std::size_t next = (axis + 1) % d;
  if (beyond < 0) {
    nearest(from, middle, next, unit, best);
    if (beyond * beyond <= best.distance2) nearest(middle + 1, to, next, unit, best);
  } else {
    nearest(middle + 1, to, next, unit, best);
    if (beyond * beyond <= best.distance2) nearest(from, middle, next, unit, best);
  }
}

// ---- the mapping ---------------------------------------------------------------------------------------------------

CellMapping follow_cells(std::span<const CellIndex> images) {
  constexpr std::int32_t untouched = -2, on_the_way = -3;
  CellMapping result;
  result.cycle.assign(images.size(), untouched);
  result.transient.assign(images.size(), 0);
  std::vector<CellIndex> path;
  const auto cycle_of = [&](CellIndex cell) -> std::int32_t& { return result.cycle[static_cast<std::size_t>(cell)]; };
  const auto transient_of = [&](CellIndex cell) -> std::int32_t& {
    return result.transient[static_cast<std::size_t>(cell)];
  };

  for (std::size_t first = 0; first < images.size(); ++first) {
    if (result.cycle[first] != untouched) continue;
    path.clear();
    CellIndex cell = static_cast<CellIndex>(first);
    while (cell >= 0 && cycle_of(cell) == untouched) {
      cycle_of(cell) = on_the_way;
      path.push_back(cell);
      cell = images[static_cast<std::size_t>(cell)];
    }
    std::int32_t end = -1, steps = 0;  // of what the path runs into
    if (cell >= 0 && cycle_of(cell) == on_the_way) {
      const auto entry = std::find(path.begin(), path.end(), cell);
      end = static_cast<std::int32_t>(result.cycles.size());
      CellCycle cycle{.cells = {entry, path.end()}};
      path.erase(entry, path.end());
      for (const CellIndex c : cycle.cells) cycle_of(c) = end;
      cycle.basin = cycle.cells.size();
      std::rotate(cycle.cells.begin(), std::min_element(cycle.cells.begin(), cycle.cells.end()), cycle.cells.end());
      result.cycles.push_back(std::move(cycle));
    } else if (cell >= 0) {
      end = cycle_of(cell);
      steps = transient_of(cell);
    }
    for (auto c = path.rbegin(); c != path.rend(); ++c) {
      cycle_of(*c) = end;
      transient_of(*c) = ++steps;
    }
    (end >= 0 ? result.cycles[static_cast<std::size_t>(end)].basin : result.sink) += path.size();
  }

  // Numbered as they were met; wanted: by their lowest cells.
  std::vector<std::int32_t> order(result.cycles.size()), number(result.cycles.size());
  std::iota(order.begin(), order.end(), 0);
  const auto lowest = [&](std::int32_t c) { return result.cycles[static_cast<std::size_t>(c)].cells.front(); };
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return lowest(a) < lowest(b); });
  std::vector<CellCycle> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    number[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
    sorted.push_back(std::move(result.cycles[static_cast<std::size_t>(order[i])]));
  }
  result.cycles = std::move(sorted);
  for (std::int32_t& c : result.cycle) {
    if (c >= 0) c = number[static_cast<std::size_t>(c)];
  }
  return result;
}

std::vector<std::int32_t> join_near(const Mesh& mesh, std::span<const CellCycle> cycles, double distance) {
  // Cells of cycles in buckets as wide as the distance: what is near lies in the same bucket or one beside it.
  const std::size_t d = mesh.axes().size();
  const double width = std::max(1.0, distance);
  std::vector<double> values(d);
  using Bucket = std::vector<std::int64_t>;
  const auto bucket_of = [&](CellIndex cell) {
    Bucket bucket(d);
    std::vector<std::size_t> place(d);
    if (mesh.scattered()) {
      mesh.centre(static_cast<std::size_t>(cell), values);
      const double n = std::pow(static_cast<double>(mesh.cells()), 1.0 / static_cast<double>(d));
      for (std::size_t a = 0; a < d; ++a) {
        const CellAxis& axis = mesh.axes()[a];
        bucket[a] = static_cast<std::int64_t>((values[a] - axis.from()) / (axis.to() - axis.from()) * n / width);
      }
    } else {
      mesh.place(static_cast<std::size_t>(cell), place);
      for (std::size_t a = 0; a < d; ++a) bucket[a] = static_cast<std::int64_t>(static_cast<double>(place[a]) / width);
    }
    return bucket;
  };
  const auto hash = [](const Bucket& bucket) {
    std::uint64_t h = 0;
    for (const std::int64_t k : bucket) h = (h ^ static_cast<std::uint64_t>(k)) * 0x9e3779b97f4a7c15ULL;
    return static_cast<std::size_t>(h ^ (h >> 32));
  };
  struct Member {
    CellIndex cell;
    std::int32_t cycle;
  };
  std::unordered_map<Bucket, std::vector<Member>, decltype(hash)> buckets(64, hash);
  for (std::size_t c = 0; c < cycles.size(); ++c) {
    for (const CellIndex cell : cycles[c].cells)
      buckets[bucket_of(cell)].push_back({cell, static_cast<std::int32_t>(c)});
  }

  Joined joined(cycles.size());
  for (const auto& [bucket, members] : buckets) {
    Bucket beside(d);
    std::size_t combinations = 1;
    for (std::size_t a = 0; a < d; ++a) combinations *= 3;
    for (std::size_t code = 0; code < combinations; ++code) {
      std::size_t rest = code;
      for (std::size_t a = 0; a < d; ++a, rest /= 3) beside[a] = bucket[a] + static_cast<std::int64_t>(rest % 3) - 1;
      const auto found = buckets.find(beside);
      if (found == buckets.end()) continue;
      for (const Member& m : members) {
        for (const Member& o : found->second) {
          if (joined.lowest(m.cycle) == joined.lowest(o.cycle)) continue;
          if (mesh.distance(m.cell, o.cell) <= distance) joined.join(m.cycle, o.cycle);
        }
      }
    }
  }
  std::vector<std::int32_t> lowest(cycles.size());
  for (std::size_t c = 0; c < cycles.size(); ++c) lowest[c] = joined.lowest(static_cast<std::int32_t>(c));
  return lowest;
}

}  // namespace saltus
