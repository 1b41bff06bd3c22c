#include "solve/narrow_order.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "base/index.hpp"

namespace saltus {
namespace {

/// Nodes of a graph, each part of it from a node at its end, the nearest first (Cuthill and McKee).
std::vector<int> by_breadth(const std::vector<std::vector<int>>& near) {
  std::vector<int> order;
  std::vector<char> seen(near.size(), 0);
  const auto spread = [&](int first) {
    size_t next = order.size();
    order.push_back(first);
    for (seen[at(first)] = 1; next < order.size(); ++next) {
      for (const int other : near[at(order[next])]) {
        if (!std::exchange(seen[at(other)], char{1})) order.push_back(other);
      }
    }
  };
  for (size_t i = 0; i < near.size(); ++i) {
    if (seen[i]) continue;
    const size_t begin = order.size();
    spread(static_cast<int>(i));
    const int end = order.back();  // far from where it began
    for (size_t k = begin; k < order.size(); ++k) seen[at(order[k])] = 0;
    order.resize(begin);
    spread(end);
  }
  return order;
}

int band_of(const std::vector<std::vector<int>>& near, const std::vector<int>& position) {
  int widest = 0;
  for (size_t i = 0; i < near.size(); ++i) {
    for (const int j : near[i]) widest = std::max(widest, std::abs(position[i] - position[at(j)]));
  }
  return widest;
}

}  // namespace

NarrowOrder narrow_order(const std::vector<std::vector<int>>& near) {
  NarrowOrder given, broad;
  given.order.resize(near.size());
  std::iota(given.order.begin(), given.order.end(), 0);
  given.position = given.order;
  given.band = band_of(near, given.position);
  broad.order = by_breadth(near);
  broad.position.resize(near.size());
  for (size_t k = 0; k < near.size(); ++k) broad.position[at(broad.order[k])] = static_cast<int>(k);
  broad.band = band_of(near, broad.position);
  return given.band <= broad.band ? given : broad;
}

}  // namespace saltus
