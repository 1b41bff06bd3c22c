#include "model/order.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace saltus {

UseOrder order_by_use(const std::vector<std::vector<int>>& uses) {
  enum class Visit : char { none, open, done };
  std::vector<Visit> visit(uses.size(), Visit::none);
  UseOrder order;
  std::vector<std::pair<int, size_t>> path;  // a name, and how many of its uses have been followed
  for (size_t root = 0; root < uses.size(); ++root) {
    if (visit[root] == Visit::none) path.emplace_back(static_cast<int>(root), 0);
    while (!path.empty()) {
      auto& [i, next] = path.back();
      const size_t k = static_cast<size_t>(i);
      visit[k] = Visit::open;
      if (next == uses[k].size()) {
        visit[k] = Visit::done;
        order.sequence.push_back(i);
        path.pop_back();
        continue;
      }
      const int used = uses[k][next++];
      if (visit[static_cast<size_t>(used)] == Visit::none) path.emplace_back(used, 0);
      if (visit[static_cast<size_t>(used)] != Visit::open) continue;
      auto start = std::find_if(path.begin(), path.end(), [&](const auto& step) { return step.first == used; });
      for (; start != path.end(); ++start) order.circle.push_back(start->first);
      return order;
    }
  }
  return order;
}

}  // namespace saltus
