// Which of many clusters is due next: a heap of those that have a time, each found again by its number.
#pragma once

#include <cstddef>
#include <vector>

namespace saltus {

class DueQueue {
 public:
  struct Due {
    double key = 0;     ///< time in the direction of the run
    bool last = false;  ///< at the end of the run: behind all others of that time
    int cluster = 0;
    bool operator<(const Due& o) const {
      return key != o.key ? key < o.key : last != o.last ? o.last : cluster < o.cluster;
    }
  };

  bool empty() const { return heap_.empty(); }
  const Due& top() const { return heap_.front(); }
  /// The time of the one behind the first; infinite if there is none.
  double second() const;
  void clear();
  /// The time of a cluster, whether it had one or not.
  void set(const Due& due);
  /// A cluster has no due time any more.
  void remove(int cluster);
  /// Calls visit(cluster) for all that are due until `latest`.
  template <class Visit>
  void until(double latest, const Visit& visit, size_t from = 0) const {
    if (from >= heap_.size() || heap_[from].key > latest) return;
    visit(heap_[from].cluster);
    until(latest, visit, 2 * from + 1);
    until(latest, visit, 2 * from + 2);
  }

 private:
  void put(size_t place, const Due& due);
  void settle(size_t place, const Due& due);

  std::vector<Due> heap_;
  std::vector<int> place_;  // per cluster: in the heap, or -1
};

}  // namespace saltus
