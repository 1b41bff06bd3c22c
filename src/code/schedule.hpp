// A pass over a tape: the operations behind some of its outputs, and which of them are done once only.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "code/arrange.hpp"
#include "code/linear_flow.hpp"
#include "code/linear_rows.hpp"
#include "code/native_code.hpp"
#include "code/tape.hpp"

namespace saltus {

/// The operations behind some of a tape's outputs. Those whose arguments do not vary are done at order 0 only.
struct Schedule {
  std::vector<Operation> free_start, free_next;    ///< order 0; the orders above
  std::vector<Operation> bound_start, bound_next;  ///< the same for what depends on unknowns
  std::vector<int> wanted;                         ///< slots of the outputs
  std::vector<int> still;                          ///< slots whose series end at order 0
  Arrangement arranged;                            ///< of free_next, made by Jet::arrange
  LinearRows rows;                                 ///< of free_next, made by Jet::fold
  LinearFlow flow;                                 ///< of free_next, made by Jet::find_flow
  NativeCode expand_code, free_code, bound_code;   ///< made by Jet::compile
};

/// The operations that `outputs` need if the given sigma and lambda slots vary and the others do not. With no unknown
/// varying, all of it is free.
Schedule make_schedule(const Tape& tape, std::span<const size_t> outputs, std::span<const int> varying);

/// A tape that only adds what varies, and multiplies it by what does not, but for sines and cosines of time: the slots
/// of their arguments, which are linear in time. Nothing for other tapes. `varying` as above.
std::optional<std::vector<int>> linear_drive(const Tape& tape, std::span<const int> varying);

}  // namespace saltus
