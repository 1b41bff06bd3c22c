#include "model/part_shapes.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "model/subsystem.hpp"

namespace saltus {

PartShapes::PartShapes(int states, int switches, int unknowns, int constants)
    : states_(states),
      switches_(switches),
      unknowns_(unknowns),
      met_(at(states + unknowns + constants), 0),
      number_(met_.size(), 0) {}

void PartShapes::add_element() { ends_.push_back(pieces_.size()); }

void PartShapes::add_piece(int gate, std::span<const int> words, std::span<const int> leaves) {
  uint64_t hash = words.size();
  for (const int word : words) hash = (hash ^ static_cast<uint64_t>(word)) * 0x9e3779b97f4a7c15 + (hash >> 29);
  int structure = -1;
  const auto [first, last] = structures_.equal_range(hash);
  for (auto it = first; it != last && structure < 0; ++it) {
    if (std::ranges::equal(words_[at(it->second)], words)) structure = it->second;
  }
  if (structure < 0) {
    structure = static_cast<int>(words_.size());
    words_.emplace_back(words.begin(), words.end());
    structures_.emplace(hash, structure);
  }
  leaves_.insert(leaves_.end(), leaves.begin(), leaves.end());
  pieces_.push_back({gate, structure, leaves_.size()});
  ends_.back() = pieces_.size();
}

void PartShapes::look(Subsystem& part) {
  ++now_;
  const auto own = [&](const std::vector<int>& elements, int shift) {
    for (size_t k = 0; k < elements.size(); ++k) {
      met_[at(elements[k] + shift)] = now_;
      number_[at(elements[k] + shift)] = static_cast<int>(k);
    }
    return static_cast<int>(elements.size());
  };
  own_[0] = own(part.states, 0);
  own_[1] = own(part.unknowns, states_);
  const auto first_constraint = std::lower_bound(part.unknowns.begin(), part.unknowns.end(), switches_);
  part.outside.clear();
  part.fixed.clear();
  constants_.clear();
  key_.clear();
  hash_ = 0;
  add_word(own_[0]);
  add_word(static_cast<int>(first_constraint - part.unknowns.begin()));
  add_word(own_[1]);
  for (const int i : part.states) add_to_key(i, part);
  for (const int u : part.unknowns) add_to_key(states_ + u, part);
  // Where switches and constraints stand among the fixed is told by the structures.
  std::stable_partition(part.fixed.begin(), part.fixed.end(), [&](int u) { return u < switches_; });
}

void PartShapes::add_to_key(int element, Subsystem& part) {
  const size_t first = element == 0 ? 0 : ends_[at(element) - 1];
  for (size_t p = first; p < ends_[at(element)]; ++p) {
    const Piece& piece = pieces_[p];
    if (piece.gate >= 0) {
      const int gate = place(piece.gate);
      add_word(gate);
      if (gate < 0) continue;
    }
    add_word(piece.structure);
    for (size_t k = p == 0 ? 0 : pieces_[p - 1].end; k < piece.end; ++k) add_word(meet(leaves_[k], part));
  }
}

int PartShapes::meet(int leaf, Subsystem& part) {
  int& number = number_[at(leaf)];
  if (met_[at(leaf)] == now_) return number;
  met_[at(leaf)] = now_;
  const auto append = [&](std::vector<int>& list, int item, int own) {
    number = own + static_cast<int>(list.size());
    list.push_back(item);
    return number;
  };
  if (leaf < states_) return append(part.outside, leaf, own_[0]);
  if (leaf < states_ + unknowns_) return append(part.fixed, leaf - states_, own_[1]);
  return append(constants_, leaf, 0);
}

}  // namespace saltus
