#include "model/part_shapes.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "model/subsystem.hpp"

namespace saltus {
namespace {

/// Four sums that do not wait for each other.
uint64_t hash_of(std::span<const int> words) {
  constexpr uint64_t factor = 0x9e3779b97f4a7c15;
  uint64_t sums[4] = {words.size(), 1, 2, 3};
  size_t k = 0;
  for (; k + 4 <= words.size(); k += 4) {
    for (size_t lane = 0; lane < 4; ++lane) sums[lane] = (sums[lane] ^ static_cast<uint64_t>(words[k + lane])) * factor;
  }
  for (; k < words.size(); ++k) sums[0] = (sums[0] ^ static_cast<uint64_t>(words[k])) * factor;
  uint64_t hash = 0;
  for (const uint64_t sum : sums) hash = (hash ^ sum ^ (sum >> 32)) * factor;
  return hash;
}

}  // namespace

PartShapes::PartShapes(int states, int switches, int unknowns, int constants)
    : states_(states), switches_(switches), unknowns_(unknowns), met_(at(states + unknowns + constants)) {}

void PartShapes::add_element() { ends_.push_back(pieces_.size()); }

void PartShapes::add_piece(int gate, std::span<const int> words, std::span<const int> leaves) {
  const uint64_t hash = hash_of(words);
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
    for (size_t k = 0; k < elements.size(); ++k) met_[at(elements[k] + shift)] = {now_, static_cast<int>(k)};
    return static_cast<int>(elements.size());
  };
  own_[0] = own(part.states, 0);
  own_[1] = own(part.unknowns, states_);
  const auto first_constraint = std::lower_bound(part.unknowns.begin(), part.unknowns.end(), switches_);
  part.outside.clear();
  part.fixed.clear();
  constants_.clear();
  constexpr size_t head = 4;
  size_t longest = head;
  const auto count = [&](int element) {
    const size_t first = first_piece(element), last = ends_[at(element)];
    longest += 2 * (last - first) + (pieces_[last - 1].end - first_leaf(first));
  };
  for (const int i : part.states) count(i);
  for (const int u : part.unknowns) count(states_ + u);
  for (const int k : part.jumps) count(states_ + unknowns_ + k);
  if (key_.size() < longest) key_.resize(longest);
  int* word = key_.data();
  *word++ = own_[0];
  *word++ = static_cast<int>(first_constraint - part.unknowns.begin());
  *word++ = own_[1];
  *word++ = static_cast<int>(part.jumps.size());
  for (const int i : part.states) word = write_element(i, word, part);
  for (const int u : part.unknowns) word = write_element(states_ + u, word, part);
  for (const int k : part.jumps) word = write_element(states_ + unknowns_ + k, word, part);
  length_ = static_cast<size_t>(word - key_.data());
  hash_ = hash_of(key());
  // Where switches and constraints stand among the fixed is told by the structures.
  std::stable_partition(part.fixed.begin(), part.fixed.end(), [&](int u) { return u < switches_; });
}

int* PartShapes::write_element(int element, int* word, Subsystem& part) {
  const size_t first = first_piece(element), last = ends_[at(element)];
  size_t leaf = first_leaf(first);
  for (const Piece& piece : std::span(pieces_).subspan(first, last - first)) {
    const int gate = piece.gate < 0 ? 0 : place(piece.gate);
    if (piece.gate >= 0) *word++ = gate;
    if (gate < 0) {
      leaf = piece.end;
      continue;
    }
    *word++ = piece.structure;
    for (; leaf < piece.end; ++leaf) {
      const Meeting& known = met_[at(leaves_[leaf])];
      *word++ = known.part == now_ ? known.number : meet(leaves_[leaf], part);
    }
  }
  return word;
}

int PartShapes::meet(int leaf, Subsystem& part) {
  Meeting& known = met_[at(leaf)];
  if (leaf < states_) {
    known = {now_, own_[0] + static_cast<int>(part.outside.size())};
    part.outside.push_back(leaf);
  } else if (leaf < states_ + unknowns_) {
    known = {now_, own_[1] + static_cast<int>(part.fixed.size())};
    part.fixed.push_back(leaf - states_);
  } else {
    known = {now_, static_cast<int>(constants_.size())};
    constants_.push_back(leaf);
  }
  return known.number;
}

}  // namespace saltus
