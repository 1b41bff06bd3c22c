// A part of a program as a program of its own: some states, unknowns and jumps, and whatever they read besides as
// constants.
//
//   look     the states and unknowns outside that the part reads, and the key of its shape
//   make     the program of a shape, cut from the tapes of the whole; constants are its parameters, so that all parts
//   of
//            one shape (in a chain, in a lattice) share it
//   bind     the parameters of a part of a known shape
//
// For programs all of whose switches are plain, without counters: one tape serves all modes. Of a jump the part has the
// condition alone; what it does is told by the whole (Jumps::stand_for).
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "code/affine.hpp"
#include "code/slice.hpp"
#include "model/part_shapes.hpp"
#include "model/program.hpp"

namespace saltus {

/// Unknowns are numbered as in Program. The states of its program are `states`, `outside`, then a state per fixed
/// unknown: what lies outside has the rate zero.
struct Subsystem {
  std::vector<int> states;    ///< ascending
  std::vector<int> unknowns;  ///< ascending
  std::vector<int> jumps{};   ///< ascending; none with a clock
  std::vector<int> outside;   ///< states that are read
  std::vector<int> fixed;     ///< unknowns that are read, switches first
  std::vector<double> parameters;

  size_t program_states() const { return states.size() + outside.size() + fixed.size(); }
};

/// The program of all parts of one shape.
struct SubsystemProgram {
  std::unique_ptr<Program> program;
  std::vector<int> constants;  ///< per parameter but the last, which are the ratios of its switches: the place among
                               ///< PartShapes::constants
};

class Subsystems {
 public:
  /// `mode`: the tape of all modes of the program, which must outlive this with it.
  Subsystems(const Program& whole, const ModeTape& mode, std::span<const double> parameters);

  // Inputs of a rate, of a surface or gap, and of the choice of an unknown's switch state.
  void rate(int i, TapeSupport& out);
  void watch(int unknown, TapeSupport& out);
  void choice(int unknown, TapeSupport& out);
  /// Inputs of the condition of a jump.
  void jump(int k, TapeSupport& out);

  /// Outputs of the flow tape as sums of states and unknowns, where they are.
  AffineRows affine_rows(std::span<const size_t> outputs) const {
    return AffineRows(mode_.flow, slicers_[flow].values(), outputs);
  }

  const PartShapes& look(Subsystem& part) {
    shapes_.look(part);
    return shapes_;
  }
  // After `look`, with the same part.
  SubsystemProgram make(Subsystem& part);
  void bind(Subsystem& part, const SubsystemProgram& program) const;

 private:
  enum TapeName { flow, slope, manifold, actions, points };
  /// An output of a tape that belongs to a state or an unknown; `gate`: a state or unknown (behind the states) without
  /// which it is not wanted, or -1.
  struct Wanted {
    TapeName tape = flow;
    size_t output = 0;
    int gate = -1;
  };

  void list_state(int i);
  void list_unknown(int u);
  void list_jump(int k);
  void list_row(int row);
  void describe();
  void describe_element(std::span<const int> attributes, std::span<const int> partners);
  void describe_piece(std::span<const Wanted> wanted, int gate);
  void gather(const Subsystem& part);
  void write_mode(const Subsystem& part, const SliceInputs& inputs, ModeTape& mode, Tape& at_points,
                  std::vector<int>& constants);
  void write_tape(TapeName tape, std::span<const int> outputs, const SliceInputs& inputs, Tape& out,
                  std::vector<int>& constants);
  int raised_row(int u) const { return whole_.unknowns() + u - whole_.switches(); }
  /// Among the leaves of PartShapes.
  int leaf_number(TapeName tape, const TapeLeaf& leaf) const;
  int constant(TapeName tape, int slot) const { return first_constant_[tape] + slot; }

  const Program& whole_;
  const ModeTape& mode_;
  std::array<Slicer, 5> slicers_;
  std::array<int, 6> first_constant_{};
  PartShapes shapes_;
  std::vector<double> value_;                     // per leaf of the constants
  std::vector<double> hold_;                      // per switch
  std::vector<std::vector<int>> entries_of_row_;  // slope entries
  // Scratch.
  TapeSupport support_;
  std::vector<Wanted> wanted_;
  std::vector<int> words_, leaves_;
  std::vector<TapeLeaf> tape_leaves_;
  std::vector<size_t> outputs_;
};

}  // namespace saltus
