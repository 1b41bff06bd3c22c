// The jumps of a model along a run: which are armed, which are due, what they do.
//
//   armed    `on` has had a strict sign since it was last zero: side +1 or -1
//   crossing from one strict sign to the other in the wanted direction, or arriving at zero and staying there
//   a jump that has happened is armed again when `on` has left zero; it need not move its own condition
//   clocks   tick at phase + k*every in absolute time, not at the start
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "code/plain.hpp"
#include "flow/shared_zero.hpp"
#include "model/program.hpp"

namespace saltus {

/// The condition of a jump as far as it is known.
struct Arm {
  int side = 0;  ///< last strict sign; 0 since the jump has happened or before there was one
  int lead = 0;  ///< at zero: the sign that follows
  bool at_zero = false;
};

class Jumps {
 public:
  Jumps(const Program& program, const std::vector<double>& parameters, double from);
  /// A further run, from this time: nothing is armed, clocks tick by these parameters.
  void begin_run(const std::vector<double>& parameters, double from);

  size_t size() const { return jumps_.size(); }
  bool has_clock(size_t k) const { return jumps_[k].every > 0; }
  /// The sign from which `on` starts along the flow: the last strict one, or, at zero, the one it is about to have.
  int side(size_t k) const { return jumps_[k].arm.at_zero ? jumps_[k].arm.lead : jumps_[k].arm.side; }
  /// True if `on` is zero here, so that the zero at the start of a step is none of its own.
  bool at_zero(size_t k) const { return jumps_[k].arm.at_zero; }
  const Arm& arm(size_t k) const { return jumps_[k].arm; }
  void set_arm(size_t k, const Arm& arm) { jumps_[k].arm = arm; }
  /// The surface or gap that `on` is.
  const SharedZero& shared(size_t k) const { return jumps_[k].shared; }
  /// True if a crossing to this sign triggers the jump.
  bool wanted(size_t k, int sign_after) const;

  /// True if `on` is strictly beyond zero in its one direction, where nothing but a further crossing triggers the jump.
  bool beyond(size_t k) const {
    const Formulas& f = jumps_[k];
    return f.every <= 0 && f.direction != Direction::any && !f.arm.at_zero && f.arm.side != 0 && wanted(k, f.arm.side);
  }

  /// True if it is, or will be as it leaves zero.
  bool may_be_beyond(size_t k) const {
    const Formulas& f = jumps_[k];
    return f.every <= 0 && f.direction != Direction::any && side(k) != 0 && wanted(k, side(k));
  }

  /// The next tick of any clock after what has ticked; infinite without clocks.
  double next_tick() const;
  /// Clocks that tick at this time, up to rounding.
  std::vector<int> ticking(double t, double resolution) const;

  /// `on` is now so; says whether that is a crossing that triggers the jump. `lead`: where `sign` is 0, the sign it
  /// will have (0: it stays zero).
  bool note(size_t k, int sign, int lead);
  /// The jump happens, or would if its condition held: what follows is a new approach.
  void fire(size_t k, double t);

  /// True if its condition holds.
  bool holds(size_t k, const PlainInputs& inputs);
  /// The state after the jump, written to x.
  void apply(size_t k, const PlainInputs& inputs, std::span<double> x);

  /// The jumps of a part are these of the whole: their formulas see all states.
  struct Whole {
    Jumps* jumps = nullptr;
    std::span<const double> parameters;
    std::span<const int> numbers, states;  ///< per jump and state of the part
    std::span<double> x;                   ///< all states; those of the part are written to it
  };
  void stand_for(const Whole& whole) { whole_ = whole; }

 private:
  struct Formulas {
    Direction direction = Direction::any;
    std::optional<Plain> when;
    std::vector<std::pair<int, Plain>> set;
    const LoweredJump* lowered = nullptr;
    SharedZero shared{};
    double every = 0, phase = 0;
    double next = 0;  // number of the next tick
    Arm arm{};

    double tick() const { return phase + next * every; }
  };
  PlainInputs spread(const PlainInputs& inputs) const;
  void set(size_t k, const PlainInputs& inputs, std::span<double> x);

  std::vector<Formulas> jumps_;
  Whole whole_{};
  std::vector<double> values_;
};

}  // namespace saltus
