// The signature of an orbit: legs of a run, what is watched on each of them, and how near it is to zero.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/shooting.hpp"

namespace saltus {

/// How large each state becomes on pieces of a run, or would by its rate on one of them.
std::vector<double> sizes_on(std::span<const Piece> pieces, size_t states);

/// The lowest and the highest value of each state so far, with those on another piece.
void widen(const Piece& piece, std::vector<double>& low, std::vector<double>& high);

/// The legs of a run from (x, t). With `open_end` the last one has no event: its end is for the caller to say.
std::vector<Leg> legs_of(const Trajectory& run, std::vector<double> x, double t, double direction, bool open_end);

/// Legs on which tangents grow by more than some powers of ten in several parts, each with a state of its own: Newton's
/// method then sees no part's instability but its own. Parts that were there are joined first. `most`: as in
/// Shooting::sizes_at.
std::vector<Leg> with_nodes(std::vector<Leg> legs, Shooting& shooting, double t0, const Vec& most);

/// Each stretch in one piece.
std::vector<Leg> without_nodes(const std::vector<Leg>& legs);

/// True if modes, guards and events are the same, however the legs are divided.
bool same_signature(const std::vector<Leg>& a, const std::vector<Leg>& b);

/// True if a leg ends in one of the impacts whose limit ends another.
bool precedes(const Leg& leg, const Leg& rest);

/// Without parts, and without the impacts that accumulate before a limit: how many are told means nothing.
std::vector<Leg> without_accumulation(const std::vector<Leg>& legs);

/// How a guard stands on a leg: the sign it must have, and its zeros at both ends.
struct LegGuard {
  Guard guard;
  double sign = 1;
  int known = 0;        ///< zeros at the start
  int own = 0;          ///< at the end: 1 if it ends the leg, 2 if that is where its root ends
  bool rested = false;  ///< it leaves a rest on its surface: how many zeros it has at the start, its series show
};

/// The guards watched on a leg; `before`: the event at its start, if there is one.
std::vector<LegGuard> leg_guards(const Program& program, Series& series, const Leg& leg, const Transition* before);

/// How many zeros a guard has at the start of a leg that follows an event.
int known_zeros(const Model& model, const Series& series, const Transition& before, const Guard& guard);

/// True if the `on` of a jump that was zero when others happened is zero after them: they set nothing it contains,
/// or values that leave it zero, as where the legs of a walker change places (a multiple of `on`, or zero, as it is
/// written).
bool jump_leaves_zero(const std::vector<LoweredJump>& jumps, int jump, const Transition& event);

/// Where on a leg a guard is nearest to zero, known zeros divided out.
struct Lowest {
  enum class Where { start, inside, end };
  double value = 0;  ///< positive: admissible everywhere
  double time = 0;   ///< since the start of the leg
  Where where = Where::inside;
  double first_slope = 0, last_slope = 0;  ///< of the guard in time, over the length of the leg, at both ends
  /// Positive where it lies inside or at the other end, negative at that end; zero where it moves from one to the
  /// other.
  double off_start() const;
  double off_end() const;
};
Lowest lowest(const LegTrace& trace, size_t guard, const LegGuard& how, double length);

}  // namespace saltus
