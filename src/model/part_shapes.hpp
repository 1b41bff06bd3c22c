// Which parts of a program are alike, told without cutting them out. A part is a set of elements, states and unknowns.
// What belongs to an element is given once as pieces: a structure in words, and the leaves it reads. The key of a part
// is the structures of its elements, with leaves numbered as they are met: parts of one chain or lattice have the same
// key wherever they stand.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace saltus {

struct Subsystem;

class PartShapes {
 public:
  /// Leaves are numbered: states, unknowns (switches first), constants.
  PartShapes(int states, int switches, int unknowns, int constants);

  /// The next element: states, then unknowns.
  void add_element();
  /// What belongs to it if the leaf `gate` is an element of the part; always where that is -1.
  void add_piece(int gate, std::span<const int> words, std::span<const int> leaves);

  /// Finds what the part reads besides its own, and its key.
  void look(Subsystem& part);
  std::span<const int> key() const { return key_; }
  uint64_t hash() const { return hash_; }
  /// The constants the part reads, as they are met: leaves.
  std::span<const int> constants() const { return constants_; }

  /// The place of an element in the part, -1 if it is outside.
  int place(int leaf) const {
    const size_t i = static_cast<size_t>(leaf);
    return met_[i] == now_ && number_[i] < own_[leaf >= states_] ? number_[i] : -1;
  }
  int state_place(int i) const { return place(i); }
  int unknown_place(int u) const { return place(states_ + u); }
  /// The place of a leaf that has been met among its own kind.
  int number(int leaf) const { return number_[static_cast<size_t>(leaf)]; }

 private:
  struct Piece {
    int gate = -1;
    int structure = 0;
    size_t end = 0;  // of its leaves
  };

  void add_to_key(int element, Subsystem& part);
  void add_word(int word) {
    key_.push_back(word);
    hash_ = (hash_ ^ static_cast<uint64_t>(word + 2)) * 0x9e3779b97f4a7c15;
    hash_ ^= hash_ >> 29;
  }
  int meet(int leaf, Subsystem& part);

  int states_, switches_, unknowns_;
  std::vector<size_t> ends_;  // per element: of its pieces
  std::vector<Piece> pieces_;
  std::vector<int> leaves_;
  std::unordered_multimap<uint64_t, int> structures_;
  std::vector<std::vector<int>> words_;  // per structure
  // Of the last part.
  std::vector<int> key_, constants_;
  uint64_t hash_ = 0;
  int own_[2] = {0, 0};        // states, unknowns
  std::vector<unsigned> met_;  // per leaf: in which part
  std::vector<int> number_;    // per leaf
  unsigned now_ = 0;
};

}  // namespace saltus
