// Names that use each other: in which order they can be worked out, or the circle that prevents it.
#pragma once

#include <vector>

namespace saltus {

struct UseOrder {
  std::vector<int> sequence;  ///< what is used comes before what uses it
  std::vector<int> circle;    ///< not empty: each uses the next, the last uses the first
};

/// `uses[i]` lists what i uses. Works without recursion: names may chain deeply.
UseOrder order_by_use(const std::vector<std::vector<int>>& uses);

}  // namespace saltus
