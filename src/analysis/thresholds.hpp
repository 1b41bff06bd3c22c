// Tolerances that decide something about orbits, equilibria and branches. Numbers are shares: of sizes of states, of
// the range of the parameter, of a period.
#pragma once

namespace saltus {

// ---- equilibria ----------------------------------------------------------------------------------------------------

/// Directions with a smaller share of the largest singular value of the equations' matrix are free: a set of
/// equilibria.
inline constexpr double free_share = 1e-9;
/// Directions with a smaller share are free by rounding.
inline constexpr double singular_share = 1e-15;
/// An equilibrium in the mode of the start counts before one of a neighbouring mode that is not nearer by this factor.
inline constexpr double much_nearer = 0.1;
/// A divisor smaller than this share of its value at the start of Newton's method may be zero where that leads.
inline constexpr double vanishing_divisor = 1e-3;
/// A divisor is moving if one more step changes it by more than this share of itself: iterates never arrive at 0/0.
inline constexpr double moving_divisor = 1e-3;

// ---- orbits --------------------------------------------------------------------------------------------------------

/// A state that decays to zero on the way to an orbit is measured by this share of what it was: less is rounding of the
/// others.
inline constexpr double beside_transient = 1e-4;

/// On a leg shorter than this share of the period, before impacts have accumulated, gaps are rounding.
inline constexpr double time_of_rounding = 1e-6;
/// Special points whose parameters differ by less than this share of the range, and
inline constexpr double same_value = 1e-9;
/// whose orbits by less than this share of what states move by, are one: the branch has come round.
inline constexpr double same_orbit = 1e-6;
/// Multipliers of special points on two branches, whose states may be mirror images, are equal if they differ by less.
inline constexpr double same_multipliers = 1e-5;

/// A saddle is near an orbit if the orbit's slowest place is nearer than this share of its extent.
inline constexpr double beside_saddle = 0.05;
/// Where no equilibrium is there yet, one this share of the range farther on is a saddle-node about to be.
inline constexpr double beside_saddle_node = 1e-3;
/// An eigenvalue below this share of the largest is that of a saddle-node.
inline constexpr double flat_rate = 1e-3;
/// Nearer to where it tends than this share of the range, an orbit that keeps its shape and slows is homoclinic, if a
/// multiplier is this large: steps become as small as rounding before the period is long.
inline constexpr double beside_homoclinic = 2e-5;
inline constexpr double unstable_beside_saddle = 1e3;
/// An orbit that is lost where it is slower than this share of its mean speed lingers at an equilibrium.
inline constexpr double lingering = 0.1;

// ---- boundary equilibria -------------------------------------------------------------------------------------------

/// A guard below this share of its slope counts as zero at a special point.
inline constexpr double guard_at_zero = 1e-7;
/// Distance from the boundary, of the range, at which half-branches are found.
inline constexpr double beside_boundary = 1e-5;
/// Directions of half-branches that differ by less, in units of the sizes, are one.
inline constexpr double same_half_branch = 1e-6;

// ---- phase response ------------------------------------------------------------------------------------------------

/// A second multiplier as near to 1 makes the left vector of the first one not unique.
inline constexpr double same_multiplier = 1e-6;
/// Pivots of M - 1 below this share count as the one that vanishes.
inline constexpr double left_vector_share = 1e-7;
/// A state that stays below this share of the largest one is measured by that.
inline constexpr double still_share = 1e-14;
/// Share of the period to which locked phases are found; phases in phase and in antiphase are judged so far beside
/// them.
inline constexpr double phase_resolution = 1e-12;
inline constexpr double beside_locked = 1e-5;
/// An error of Z after a period that is told, relative to Z.
inline constexpr double open_response = 1e-6;
/// Share of a stretch between two events: values at its ends are taken so far inside.
inline constexpr double inside_part = 1e-13;

// Measures along a run.
/// Kronrod's 15-point and Gauss's 7-point rule agree to this share of the integral of |q|: then the finer one, whose
/// error goes with a much higher power of the length, is right to rounding.
inline constexpr double rules_agree = 1e-9;
inline constexpr int rule_halvings = 12;

}  // namespace saltus
