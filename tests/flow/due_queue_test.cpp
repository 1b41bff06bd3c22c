// The queue of clusters against an ordered set, and lists of items side by side against the lists.
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "draw.hpp"
#include "flow/event/dependence.hpp"
#include "flow/event/due_queue.hpp"

namespace saltus {
namespace {

TEST(DueQueue, GivesWhatAnOrderedSetGives) {
  constexpr int clusters = 60;
  Draw draw(7);
  DueQueue queue;
  std::set<std::tuple<double, bool, int>> expected;
  const auto forget = [&](int cluster) {
    std::erase_if(expected, [&](const auto& due) { return std::get<2>(due) == cluster; });
  };
  for (int round = 0; round < 3000; ++round) {
    const int cluster = draw.whole(0, clusters - 1);
    forget(cluster);
    if (draw.whole(0, 2) == 0) {
      queue.remove(cluster);
    } else {
      const double key = draw.whole(0, 20);  // ties are frequent
      const bool last = draw.whole(0, 9) == 0;
      queue.set({key, last, cluster});
      expected.emplace(key, last, cluster);
    }
    ASSERT_EQ(queue.empty(), expected.empty());
    if (expected.empty()) continue;
    ASSERT_EQ(queue.top().cluster, std::get<2>(*expected.begin()));
    const double latest = draw.whole(0, 20);
    std::set<int> due, wanted;
    queue.until(latest, [&](int c) { EXPECT_TRUE(due.insert(c).second); });
    for (const auto& [key, last, c] : expected) {
      if (key <= latest) wanted.insert(c);
    }
    ASSERT_EQ(due, wanted);
  }
  queue.clear();
  EXPECT_TRUE(queue.empty());
}

TEST(ListsPerItem, HoldWhatTheListsHold) {
  Draw draw(3);
  Lists kinds[3];
  constexpr int items = 50;
  for (int i = 0; i < items; ++i) {
    for (Lists& lists : kinds) {
      std::vector<int> list(static_cast<size_t>(draw.whole(0, 4)));
      for (int& number : list) number = draw.whole(0, 1000);
      lists.add(list);
    }
  }
  const ListsPerItem together({&kinds[0], &kinds[1], &kinds[2]}, items);
  for (int i = 0; i < items; ++i) {
    for (size_t kind = 0; kind < 3; ++kind) {
      const std::span<const int> a = together.get(i, kind), b = kinds[kind][i];
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << i << ' ' << kind;
    }
  }
}

}  // namespace
}  // namespace saltus
