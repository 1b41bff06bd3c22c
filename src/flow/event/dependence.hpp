// Dependences in a model all of whose modes share one tape: rates, watched functions, conditions of jumps and mode
// choices by states and unknowns, and the other way round. Linear in the size of a sparse model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/subsystem.hpp"

namespace saltus {

/// Lists of numbers, one behind the other.
class Lists {
 public:
  void add(std::span<const int> list) {
    items_.insert(items_.end(), list.begin(), list.end());
    first_.push_back(static_cast<uint32_t>(items_.size()));
  }
  std::span<const int> operator[](int i) const {
    const size_t k = static_cast<size_t>(i);
    return {items_.data() + first_[k], items_.data() + first_[k + 1]};
  }
  int size() const { return static_cast<int>(first_.size()) - 1; }
  size_t items() const { return items_.size(); }

 private:
  std::vector<int> items_;
  std::vector<uint32_t> first_{0};  // of each list; where the last one ends
};

/// Several lists per item, all of one item side by side: an event reads most of what belongs to few items, and most of
/// its time would go into fetching them from far apart.
class ListsPerItem {
 public:
  ListsPerItem() = default;
  ListsPerItem(std::initializer_list<const Lists*> kinds, int items);
  std::span<const int> get(int item, size_t kind) const {
    const int* const own = words_.data() + first_[static_cast<size_t>(item)];
    return {own + own[kind], own + own[kind + 1]};
  }

 private:
  std::vector<uint32_t> first_;  // per item: in words_, where its lists begin and end, then what they hold
  std::vector<int> words_;
};

/// Readers are numbered: state i (its rate) is i, unknown u is (number of states) + u, the condition of jump k is
/// (number of states and unknowns) + k.
class Dependence {
 public:
  /// The states that the rate of a state reads.
  std::span<const int> rate_states(int i) const { return states_.get(i, 0); }
  std::span<const int> rate_unknowns(int i) const { return states_.get(i, 1); }
  bool rate_time(int i) const { return rate_time_[static_cast<size_t>(i)] != 0; }
  std::span<const int> state_readers(int i) const { return states_.get(i, 2); }
  /// Unknowns with a state in their `moves`.
  std::span<const int> kept_by(int i) const { return states_.get(i, 3); }

  /// The states that the surface or gap of an unknown reads.
  std::span<const int> watch_states(int u) const { return unknowns_.get(u, 0); }
  /// The states that the choice of its switch state reads.
  std::span<const int> choice_states(int u) const { return unknowns_.get(u, 1); }
  std::span<const int> choice_unknowns(int u) const { return unknowns_.get(u, 2); }
  std::span<const int> unknown_readers(int u) const { return unknowns_.get(u, 3); }
  /// States whose rates vanish if it is kept and all but one rest.
  std::span<const int> moves(int u) const { return unknowns_.get(u, 4); }
  /// States that its impulse moves.
  std::span<const int> hits(int u) const { return unknowns_.get(u, 5); }
  /// The states of its event: those that it reads or pins, with those whose rates read nothing else. None where
  /// the choice of its letter reads others that feel it.
  std::span<const int> own_states(int u) const { return unknowns_.get(u, 6); }

  /// States read by the condition of a jump; below, those read by its other formulas.
  std::span<const int> on_states(int k) const { return jumps_.get(k, 0); }
  std::span<const int> value_states(int k) const { return jumps_.get(k, 1); }
  /// Readers of the states that a jump sets: unknowns, and jumps, itself included.
  std::span<const int> felt_unknowns(int k) const { return jumps_.get(k, 2); }
  std::span<const int> felt_jumps(int k) const { return jumps_.get(k, 3); }
  /// The states of its event: those that it sets, and those that the conditions that feel it read.
  std::span<const int> jump_states(int k) const { return jumps_.get(k, 4); }

 private:
  friend std::optional<Dependence> find_dependence(const Program& program, const ModeTape& mode, Subsystems& parts);
  ListsPerItem states_, unknowns_, jumps_;
  std::vector<char> rate_time_;  // per state
};

/// Empty if the model is not sparse: where everything reads everything there are no clusters.
std::optional<Dependence> find_dependence(const Program& program, const ModeTape& mode, Subsystems& parts);

}  // namespace saltus
