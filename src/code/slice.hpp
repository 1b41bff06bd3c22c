// A part of a tape: the operations behind some of its outputs, with slots of their own. What is constant under given
// parameters comes in as numbers, so that equal parts of one tape (the blocks of a chain) have equal slices.
//
//   gather   walk back from the outputs; note operations and inputs
//   write    inputs first, then each constant and each result where it is met: the numbering depends on structure alone
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "code/tape.hpp"

namespace saltus {

/// Whether an operation reads its b; the others have a slot there that means nothing.
bool has_second_argument(Instr instr);

/// What some outputs of a tape depend on, each once and in no order.
struct TapeSupport {
  std::vector<int> states, sigmas, lambdas;
  bool time = false;

  void clear();
};

/// The inputs of a slice: whole numbers by place. Sigma and lambda that count as constant come in as states behind the
/// others.
struct SliceInputs {
  std::span<const int> states, sigmas, lambdas;
  std::span<const int> fixed_sigmas, fixed_lambdas;
};

class Slicer {
 public:
  /// The tape must outlive this and have no counters.
  Slicer(const Tape& tape, std::span<const double> parameters);

  /// Notes the operations behind an output besides those gathered already; what is met is added to `support`.
  void gather(size_t output, TapeSupport& support);
  /// How many operations have been gathered.
  size_t gathered() const { return operations_.size(); }
  /// The slice of what has been gathered, with these outputs (-1: zero, a slot of its own); begins anew. The values of
  /// its parameters are appended to `parameters`.
  void write(std::span<const int> outputs, const SliceInputs& inputs, Tape& out, std::vector<double>& parameters);
  /// Begins anew without writing.
  void forget();

 private:
  enum class Kind : uint8_t { constant, time, state, sigma, lambda, result };
  struct Source {
    Kind kind = Kind::constant;
    int index = 0;  // of the input, or of the operation
  };

  int place(int slot, Tape& out, std::vector<double>& parameters);
  int put(int slot, int place);

  const Tape* tape_;
  std::vector<Source> source_;  // per slot
  std::vector<double> value_;   // per slot: of constants
  std::vector<Operation> all_;  // operations of all stages
  std::vector<int> starts_;     // of the stages among them
  std::vector<unsigned> seen_;  // per slot: when it was gathered
  std::vector<unsigned> placed_;
  std::vector<int> place_;
  unsigned now_ = 1;
  std::vector<int> operations_, stack_;
};

/// Whether two tapes do the same with the same inputs, parameters by number; and a key under which to look for such.
bool same_tape(const Tape& a, const Tape& b);
uint64_t tape_key(const Tape& tape, uint64_t key = 0);

}  // namespace saltus
