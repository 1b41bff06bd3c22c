// Formulas as a flat list of elementary operations, common subexpressions shared: Expr -> Tape.
//
// Every value lives in a slot. Operations stand in five stages, each ordered so that arguments come first:
//
//   bind    depends on numbers and parameters only: done once when parameters are given
//   linear  constant + constant*t: all coefficients but the first two are zero
//   timed   depends on time and wrap counters only: its series is known before any state's
//   free    depends on states, but on no sigma or lambda
//   bound   depends on sigma or lambda, which may be unknown until the rates are
//
// The tape is plain data: an interpreter runs it (code/jet), and machine code can be made from it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expr/expr.hpp"

namespace saltus {

/// Elementary operations on series. `c` is a slot that holds a constant. An operation owns the slots from `out` on:
/// its result first, then what its recurrence needs besides.
enum class Instr : uint8_t {
  add,               ///< out = a + b
  sub,               ///< out = a - b
  neg,               ///< out = -a
  add_c,             ///< out = a + c               c in b
  rsub_c,            ///< out = c - a               c in b
  scale,             ///< out = c*a                 c in b
  mul,               ///< out = a*b
  square,            ///< out = a^2
  one_minus_square,  ///< out = 1 - a^2, accurate also where a is near 1
  div,               ///< out = a/b
  div_c,             ///< out = a/c                 c in b
  recip,             ///< out = c/a                 c in b
  power,             ///< out = a^c                 c in b
  pow,               ///< out = a^b
  sqrt,              ///< out = sqrt(a)
  cbrt,              ///< out = cbrt(a)
  exp,               ///< out = exp(a)
  logistic,          ///< out = 1/(1 + exp(a))
  sin_cos,           ///< out = sin(a), out+1 = cos(a)
  sinh_cosh,         ///< out = sinh(a), out+1 = cosh(a)
  sin_cos_t,         ///< as sin_cos for an argument that is linear in time
  tan,               ///< out = tan(a)
  tanh,              ///< out = tanh(a)
  log,               ///< out = log(a)
  atan,              ///< out = atan(a), b = 1 + a^2
  asin,              ///< out = asin(a), b = sqrt(1 - a^2)
  acos,              ///< out = acos(a), b = sqrt(1 - a^2)
  atan2,             ///< out = atan2(a, b)
  expm1,             ///< out = exp(a) - 1, out+1 = exp(a)
  log1p,             ///< out = log(b), b = 1 + a
  integral,          ///< out' = a; in arrangements of schedules only (code/arrange)
};

/// Largest whole c for which a^c is a chain of products: it must work through a = 0.
constexpr int largest_whole_power = 63;

/// True if linear arguments give a linear result: sums, and multiples by constants.
bool keeps_linear(Instr instr);

/// True if the function, constant to all digits far from where it changes (Tape::peaks), changes where its argument is
/// highest; false if it changes where the argument comes nearest to zero.
bool peaks_at_top(Instr instr);
/// True if a series may look constant where the function is not (Tape::may_hide).
bool may_hide(Instr instr);

/// How many slots an operation owns.
int slots_of(Instr instr);

struct Operation {
  Instr instr = Instr::add;
  int out = 0;
  int a = 0;
  int b = 0;
};

/// One operation on constants, done when parameters are given.
struct BindOperation {
  Op op = Op::add;
  int out = 0;
  int a = 0, b = 0, c = 0;
};

/// A high power: flat to more orders than a series has where its base is zero, or small beside what it becomes.
struct HighPower {
  int out = 0, base = 0;
  double power = 0;  ///< 0: in the slot `exponent`
  int exponent = -1;
};

struct Tape {
  int slots = 0;
  std::vector<std::pair<int, double>> numbers;  ///< slots that hold a literal number
  std::vector<std::pair<int, int>> parameters;  ///< (slot, parameter index)
  int time = -1;                                ///< slot of t, -1 if unused; the same for the others
  std::vector<int> states, sigmas, lambdas, counters;
  std::vector<BindOperation> bind;
  std::vector<Operation> linear, timed, free, bound;
  std::vector<int> outputs;    ///< slot of each formula
  std::vector<bool> constant;  ///< whether each output is a constant
  std::vector<Operation>
      peaks;  ///< exp, logistic, tanh, cosh: away from where they change their series see nothing of it
  std::vector<HighPower> powers;  ///< by whole powers from 8 on, and all others
  std::vector<bool>
      straight;           ///< whether each output adds up states, t and constants: it is no surprise if they are none
  bool may_hide = false;  ///< contains functions of states whose series can look constant (tanh, 1/x, ...)
  bool hides_by_reach = false;  ///< all of those are `peaks`: nothing hides where their arguments move little
};

/// How many symbols of each kind the tape must provide slots for.
struct TapeInputs {
  int states = 0, sigmas = 0, lambdas = 0, counters = 0;
};

/// Finds out the peaks of a tape that is complete otherwise, and which outputs are straight.
void describe(Tape& tape);

/// The formulas must be lowered: no nonsmooth functions, no definitions.
Tape build_tape(std::span<const Expr> outputs, const TapeInputs& inputs);

}  // namespace saltus
