// A part of a program as a program of its own: some states and unknowns, and whatever they read besides as constants.
//
//   look     the states and unknowns outside that the part reads
//   write    its tapes, cut from those of the whole; equal parts (of a chain, of a lattice) have equal tapes
//   make     the program; constants of the whole are its parameters, so that equal parts share it
//
// For programs all of whose switches are plain, without counters and jumps: one tape serves all modes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "code/slice.hpp"
#include "model/program.hpp"

namespace saltus {

/// Unknowns are numbered as in Program. The states of its program are `states`, `outside`, then a state per fixed
/// unknown: what lies outside has the rate zero.
struct Subsystem {
  std::vector<int> states;    ///< ascending
  std::vector<int> unknowns;  ///< ascending
  std::vector<int> outside;   ///< states that are read, ascending
  std::vector<int> fixed;     ///< unknowns that are read, ascending
  std::vector<double> parameters;

  size_t program_states() const { return states.size() + outside.size() + fixed.size(); }
};

/// All that a program is made of; two equal codes make the same program.
struct SubsystemCode {
  ModeTape mode;
  Tape points;
  std::vector<int> shape;  ///< everything else, as numbers

  bool same(const SubsystemCode& other) const;
  uint64_t key() const;
};

class Subsystems {
 public:
  /// `mode`: the tape of all modes of the program, which must outlive this with it.
  Subsystems(const Program& whole, const ModeTape& mode, std::span<const double> parameters);

  // What a rate, a surface or gap, and the choice of an unknown's letter depend on.
  void rate(int i, TapeSupport& out);
  void watch(int unknown, TapeSupport& out);
  void choice(int unknown, TapeSupport& out);

  void look(Subsystem& part);
  /// After `look`, with the same part.
  const SubsystemCode& write(Subsystem& part);
  std::unique_ptr<Program> make(const Subsystem& part, const SubsystemCode& code) const;

 private:
  void gather(const Subsystem& part);
  void write_mode(const Subsystem& part, const SliceInputs& inputs, std::vector<double>& parameters);
  void note_shape(const Subsystem& part);
  int local_state(int i) const {
    return state_mark_[static_cast<size_t>(i)] == mark_ ? state_place_[static_cast<size_t>(i)] : -1;
  }
  int local_unknown(int u) const {
    return unknown_mark_[static_cast<size_t>(u)] == mark_ ? unknown_place_[static_cast<size_t>(u)] : -1;
  }
  int raised_row(int u) const { return whole_.unknowns() + u - whole_.switches(); }

  const Program& whole_;
  const ModeTape& mode_;
  Slicer flow_, slope_, manifold_, actions_, points_;
  std::vector<double> hold_;                      // per switch
  std::vector<std::vector<int>> entries_of_row_;  // slope entries
  std::vector<unsigned> state_mark_, unknown_mark_;
  std::vector<int> state_place_, unknown_place_;
  unsigned mark_ = 0;
  TapeSupport support_;
  std::vector<int> own_switches_, own_constraints_, fixed_switches_, fixed_constraints_, all_states_, outputs_;
  SubsystemCode code_;
};

}  // namespace saltus
