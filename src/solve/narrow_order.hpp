// An order of the nodes of a graph in which neighbours stand near each other: chains become band matrices.
#pragma once

#include <vector>

namespace saltus {

/// `near`: per node, its neighbours; symmetric, each list sorted.
struct NarrowOrder {
  std::vector<int> order;     ///< node by place
  std::vector<int> position;  ///< place by node
  int band = 0;               ///< the longest distance between neighbours
};

/// The order of the nodes with the narrower band: as they are numbered, or by breadth from an end (Cuthill and McKee).
NarrowOrder narrow_order(const std::vector<std::vector<int>>& near);

}  // namespace saltus
