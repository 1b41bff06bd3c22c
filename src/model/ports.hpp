// A model with inputs and outputs: numbers in its formulas that may be moved in time, quantities that are integrated.
//
//     p becomes b + z,  z' = w        b = p, z a state that is 0, w a parameter that is 0: moving w moves p smoothly,
//     so that what
//                                     rests on a moving wall gets the speed and the acceleration of the wall as well
//     q' = output                     q a state: its tangents hold the derivative of the output, the leaps it makes at
//                                     events that move and the forces of impacts included
#pragma once

#include <span>
#include <vector>

#include "model/model.hpp"

namespace saltus {

/// A number that is moved: a parameter, or what is added to a named quantity wherever that is used.
struct InputPort {
  bool named = false;  ///< a named quantity
  int index = 0;       ///< of the parameter or the definition
};

struct PortedModel {
  Model model;
  std::vector<int> input_state, input_rate;  ///< per input: its z and its w; -1: the parameter itself is all there is
  std::vector<int> input_base;               ///< per input: its b; -1: none
  std::vector<int> output_state;             ///< per output: its q
};

/// Where a formula must stay a constant (the period of mod, the ratio of a holding switch, a clock) the parameter stays
/// as it is. An output that is an injected name itself is what stands before the place of injection.
PortedModel with_ports(const Model& model, std::span<const InputPort> inputs, std::span<const Expr> outputs);

}  // namespace saltus
