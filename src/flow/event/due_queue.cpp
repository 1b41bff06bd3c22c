#include "flow/event/due_queue.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"

namespace saltus {

double DueQueue::second() const {
  double key = HUGE_VAL;
  for (size_t k = 1; k < std::min<size_t>(heap_.size(), 3); ++k) key = std::min(key, heap_[k].key);
  return key;
}

void DueQueue::clear() {
  heap_.clear();
  place_.clear();
}

void DueQueue::set(const Due& due) {
  if (at(due.cluster) >= place_.size()) place_.resize(at(due.cluster) + 1, -1);
  int& place = place_[at(due.cluster)];
  if (place < 0) {
    place = static_cast<int>(heap_.size());
    heap_.push_back(due);
  }
  settle(at(place), due);
}

void DueQueue::remove(int cluster) {
  if (at(cluster) >= place_.size() || place_[at(cluster)] < 0) return;
  const size_t hole = at(place_[at(cluster)]);
  place_[at(cluster)] = -1;
  const Due moved = heap_.back();
  heap_.pop_back();
  if (hole < heap_.size()) settle(hole, moved);
}

void DueQueue::put(size_t place, const Due& due) {
  heap_[place] = due;
  place_[at(due.cluster)] = static_cast<int>(place);
}

/// Finds the way of what stands at a place up or down.
void DueQueue::settle(size_t place, const Due& due) {
  while (place > 0 && due < heap_[(place - 1) / 2]) {
    put(place, heap_[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  for (size_t child = 2 * place + 1; child < heap_.size(); child = 2 * place + 1) {
    if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
    if (!(heap_[child] < due)) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, due);
}

}  // namespace saltus
