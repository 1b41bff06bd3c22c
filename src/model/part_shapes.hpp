// Which parts of a program are alike, told without cutting them out. A part is a set of elements: states, unknowns,
// jumps. What belongs to an element is given once as pieces: a structure in words, and the leaves it reads. The key of
// a part is the structures of its elements, with leaves numbered as they are met: parts of one chain or lattice have
// the same key wherever they stand.
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

  /// The next element: states, then unknowns, then jumps.
  void add_element();
  /// Adds words and leaves that belong to the part if the leaf `gate` is one of its elements; always where `gate` is
  /// -1.
  void add_piece(int gate, std::span<const int> words, std::span<const int> leaves);

  /// Finds what the part reads besides its own, and its key.
  void look(Subsystem& part);
  std::span<const int> key() const { return std::span(key_).first(length_); }
  uint64_t hash() const { return hash_; }
  /// The constants the part reads, as they are met: leaves.
  std::span<const int> constants() const { return constants_; }

  /// The place of an element in the part, -1 if it is outside.
  int place(int leaf) const {
    const Meeting& known = met_[static_cast<size_t>(leaf)];
    return known.part == now_ && known.number < own_[leaf >= states_] ? known.number : -1;
  }
  int state_place(int i) const { return place(i); }
  int unknown_place(int u) const { return place(states_ + u); }
  /// The place of a leaf that has been met among its own kind.
  int number(int leaf) const { return met_[static_cast<size_t>(leaf)].number; }

 private:
  struct Piece {
    int gate = -1;
    int structure = 0;
    size_t end = 0;  // of its leaves
  };

  struct Meeting {
    unsigned part = 0;
    int number = 0;
  };

  size_t first_piece(int element) const { return element == 0 ? 0 : ends_[static_cast<size_t>(element) - 1]; }
  size_t first_leaf(size_t piece) const { return piece == 0 ? 0 : pieces_[piece - 1].end; }
  int* write_element(int element, int* word, Subsystem& part);
  /// The number of a leaf that has not been met.
  int meet(int leaf, Subsystem& part);

  int states_, switches_, unknowns_;
  std::vector<size_t> ends_;  // per element: of its pieces
  std::vector<Piece> pieces_;
  std::vector<int> leaves_;
  std::unordered_multimap<uint64_t, int> structures_;
  std::vector<std::vector<int>> words_;  // per structure
  // Key and constants of the last part.
  std::vector<int> key_, constants_;
  size_t length_ = 0;  // of the key
  uint64_t hash_ = 0;
  int own_[2] = {0, 0};       // states, unknowns
  std::vector<Meeting> met_;  // per leaf
  unsigned now_ = 0;
};

}  // namespace saltus
