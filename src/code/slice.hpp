// A part of a tape: the operations behind some of its outputs, with slots of their own. What is constant under given
// parameters comes in as numbers, so that equal parts of one tape (the blocks of a chain) have equal slices.
//
//   gather   walk back from the outputs; note operations and inputs
//   spell    the structure of what has been gathered, as words
//   write    inputs first, then each constant and each result where it is met: the numbering depends on structure alone
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "code/tape.hpp"

namespace saltus {

/// True if an operation reads its b; the others have a slot there that means nothing.
bool has_second_argument(Instr instr);

/// The inputs that some outputs of a tape depend on, each once and in no order.
struct TapeSupport {
  std::vector<int> states, sigmas, lambdas;
  bool time = false;

  void clear();
};

/// Something that the operations of a slice read and none of them makes.
struct TapeLeaf {
  enum class Kind : uint8_t { constant, time, state, sigma, lambda };
  Kind kind = Kind::constant;
  int index = 0;  ///< of the input; of a constant: its slot
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
  /// Appends to `words` what has been gathered for these outputs, with leaves for numbers; begins anew. Equal words
  /// mean the same functions of their leaves, which are in the order in which they are met.
  void spell(std::span<const size_t> outputs, std::vector<int>& words, std::vector<TapeLeaf>& leaves);
  /// The slice of what has been gathered, with these outputs (-1: zero, a slot of its own); begins anew. The slots of
  /// the constants that are its parameters are appended to `constants`.
  void write(std::span<const int> outputs, const SliceInputs& inputs, Tape& out, std::vector<int>& constants);
  /// Value of a constant.
  double value(int slot) const { return value_[static_cast<size_t>(slot)]; }
  std::span<const double> values() const { return value_; }
  int slots() const { return tape_->slots; }
  /// Begins anew without writing.
  void forget();

 private:
  struct Source {
    TapeLeaf leaf{};
    int operation = -1;  // whose result it is
  };

  int place(int slot, Tape& out, std::vector<int>& constants);
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

}  // namespace saltus
