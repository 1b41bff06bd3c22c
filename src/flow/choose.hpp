// Which mode follows at a point where surfaces or gaps are zero: the assignment under which the flow stays.
//
//   Z = what is at zero: the surfaces hit, those slid on, the gaps closed or touched;
//       and every surface that depends on a switch in Z: its own zeroth coefficient depends on the assignment
//   split Z into groups that influence each other (through d residual / d unknown, or by nesting)
//   for each group:
//     for each assignment of + - 0 (switches) and o c (constraints):
//       series in that mode; keep the assignment if
//         + -  the first nonvanishing coefficient of h has that sign         o  the same for g > 0
//         0    h and its lower derivatives vanish and sigma stays in [-s, s]  c  lambda stays >= 0
//         =    h vanishes by itself, whatever sigma is (written 0 here, and to users)
//     one left: that mode.  Several: a holding surface sticks, else the answer is not unique.  None: inconsistent.
//
// Groups too large for all assignments: those that a box complementarity problem for the first coefficients gives, and
// an active-set walk; what they propose is judged like the others. Redundant forces stay if any distribution of them
// does (Series::distribute). "First nonvanishing" compares times: a coefficient counts if it rules h later than the
// resolution of time.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "code/rounding.hpp"
#include "flow/leading.hpp"
#include "flow/series.hpp"

namespace saltus {

/// A switch or constraint whose surface or gap is zero here.
struct AtZero {
  int unknown = 0;
  int known = 1;  ///< h (or g) and its derivatives that no unknown enters: so many of them are known to be zero
  /// The switch state left for by a surface that slid (or was closed) and has reached the bound of its sigma (or
  /// lambda), or by an open algebraic gap that has come to zero. As long as nothing else changes the item is zero,
  /// whatever rounding gives.
  char leaving = 0;
  bool released = false;  ///< leaving, it had been held: its rate jumps
  bool fresh = true;      ///< it takes part in the event; otherwise it has been slid on before and goes on
  bool depends = false;   ///< not known to be zero: it depends on a switch that is
};

inline bool lists(std::span<const AtZero> zeros, int unknown) {
  return std::any_of(zeros.begin(), zeros.end(), [unknown](const AtZero& z) { return z.unknown == unknown; });
}

struct ChoiceOptions {
  double direction = 1;   ///< -1 backward in time
  double time_scale = 1;  ///< time in which the flow changes
  bool at_start = false;
  double arrival = std::numeric_limits<double>::quiet_NaN();  ///< h' of the only surface at zero, if known
  std::span<const double> before{};  ///< states before the event, if known: rounding of them is left in those after it
  std::map<int, char> leave;         ///< the user's choice for switches where the answer is not unique
};

struct Choice {
  enum class Outcome { unique, several, none };
  Outcome outcome = Outcome::unique;
  Mode mode;
  std::vector<int> leading;   ///< per unknown: leading zero coefficients of what is watched in the new mode
  std::vector<double> sigma;  ///< per unknown: starting values for the new mode's sigma and lambda
  std::string message;        ///< what is not unique, or why nothing fits
  bool contact = false;       ///< the message is about the force of a contact (Painlevé)
};

/// `point`: the signs of surfaces at a point (Program::points).
Choice choose_mode(Series& series, Rounding& point, std::span<const double> x, double t,
                   std::span<const double> counters, const Mode& current, const std::vector<AtZero>& zeros,
                   const ChoiceOptions& options);

struct SimpleChoice {
  char letter = '+';
  int leading = 0;  ///< leading zero coefficients of what is watched
};
/// The choice that the rates of h on both sides of a single surface imply, if they are clear: through it, or along it.
/// The sigma that would keep it is (above + below)/(below - above); one that holds stays up to |sigma| = hold.
std::optional<SimpleChoice> by_sides(double above, double below, double hold);
/// The release of a surface that slid: its rate towards the side it leaves for, if that is clear beside the jump
/// of it.
std::optional<SimpleChoice> by_release(double rate, double jump, int side);
/// True if rates that are known to a share of `clear_arrival` decide.
bool far_from_a_change(double above, double below, double hold);
/// The ordinary cases of one surface alone, by the signs of h' on both sides, and of a contact that moves apart;
/// nothing if more must be looked at.
std::optional<SimpleChoice> choose_simply(Series& series, std::span<const double> x, double t,
                                          std::span<const double> counters, const Mode& current, const AtZero& zero,
                                          const ChoiceOptions& options);

}  // namespace saltus
