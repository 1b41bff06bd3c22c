// What reads what in a model all of whose modes share one tape: rates, watched functions and mode choices by states and
// unknowns, and the other way round. Linear in the size of a sparse model.
#pragma once

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
    end_.push_back(items_.size());
  }
  std::span<const int> operator[](int i) const {
    const size_t k = static_cast<size_t>(i), from = k == 0 ? 0 : end_[k - 1];
    return std::span(items_).subspan(from, end_[k] - from);
  }
  int size() const { return static_cast<int>(end_.size()); }
  size_t items() const { return items_.size(); }

 private:
  std::vector<int> items_;
  std::vector<size_t> end_;
};

/// Readers are numbered: state i (its rate) is i, unknown u is (number of states) + u.
struct Dependence {
  Lists rate_states, rate_unknowns;      ///< per state: what its rate reads
  std::vector<char> rate_time;           ///< per state: whether it reads time
  Lists watch_states;                    ///< per unknown: what its surface or gap reads
  Lists choice_states, choice_unknowns;  ///< per unknown: what the choice of its letter reads
  Lists moves;                           ///< per unknown: states whose rates vanish if it is kept and all but one rest
  Lists hits;                            ///< per unknown: states that its impulse moves
  Lists state_readers, unknown_readers;
  Lists kept_by;  ///< per state: unknowns with it in their `moves`
};

/// Nothing if the model is not sparse: where everything reads everything there are no clusters.
std::optional<Dependence> find_dependence(const Program& program, const ModeTape& mode, Subsystems& parts);

}  // namespace saltus
