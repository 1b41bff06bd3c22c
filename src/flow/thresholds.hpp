// Every tolerance that decides something, with its reason. None of them measures the size of a surface: what is zero is
// decided by rounding bounds (code/rounding) or by times.
#pragma once

#include <cstddef>

#include "base/numbers.hpp"

namespace saltus {

// ---- states --------------------------------------------------------------------------------------------------------

/// States that vanish together (model/vanishing) are followed down to this share of their largest values by steps of
/// low order, which would not end before they are zero: they may come back from anywhere above it.
inline constexpr double vanished_floor = 1e-290;

/// The square of anything below this has lost digits, or all of them.
inline constexpr double underflowing_square = 1e-150;

// ---- balances ------------------------------------------------------------------------------------------------------

/// A divisor of the rates below this share of its value at the start, where a run cannot go on, has vanished: steps
/// shrink before they reach its zero.
inline constexpr double vanished_divisor = 1e-6;

// ---- time ----------------------------------------------------------------------------------------------------------

/// Share of the flow's time scale within which a coefficient must rule a series to count: far below what a step
/// resolves, far above the rounding of a coefficient.
inline constexpr double negligible_time = 1e-11;
/// Events closer than this many last bits of time are one event: root polishing is good to two or three of them.
inline constexpr double same_time_bits = 8;
/// Time near zero has no last bits; it is then measured by this share of the flow's time scale.
inline constexpr double same_time_share = 1e-3;
/// Events at one instant before a run ends as zeno: far more than any cascade of a model that means something.
inline constexpr long most_events_at_once = 10'000;
/// Hits one after the other at one instant (a corner) before all contacts are hit at once: an acute corner of angle a
/// takes pi/a of them, balls that collapse between others shrink by some factor with each.
inline constexpr int most_hits_in_turn = 500;
/// Gaps whose rates are larger than this many times what acceleration makes in the time that is left of a sequence
/// close by hits of other contacts: those of balls that fall are half of it.
inline constexpr double straight_flight = 100;
/// A step shorter than this many last bits of time cannot be told from none.
inline constexpr double shortest_step_bits = 4;

/// Where a field has no series, its tangent is followed while no rate changes by more than this share of itself.
inline constexpr double tangent_share = 1e-4;
/// Such steps in a row before a run ends as stalled: the first leaves the singular point in time, the second in the
/// states that begin to move there.
inline constexpr int most_rough_steps = 4;
/// exp(a) is seen by its series as long as a rises by no more than this on the step, tanh(a) if a comes from no
/// further.
inline constexpr double blind_rise = 20, blind_distance = 10;
/// Where the terms of an argument add up to no more than this on the step, what exp, tanh, cosh and logistic functions
/// of it become inside, and are no more at its end, is less than exp(near_reach/2) of what they are at its start.
inline constexpr double near_reach = 10;
/// Adaptive time steps are not shortened below this part of the run for functions of time that seem to swing inside.
inline constexpr double shortest_told_share = 1e-7;
/// Share of a piece left out of the tangents where slopes are infinite at its beginning.
inline constexpr double infinite_slope_share = 1e-12;
/// Powers up to this have their leading coefficients in every series.
inline constexpr double least_high_power = 7;
/// Points of a step that tell how far an argument goes, within a factor of two.
inline constexpr int range_looks = 8;
/// Such peaks that are looked at on one step, and how far beside them, as a share of the step.
inline constexpr size_t most_peaks = 8;
inline constexpr double beside_peak = 1.0 / 64;
/// A tangent ends after this share of the way to a peak.
inline constexpr double short_of_peak = 0.9;
/// Steps in a row over a singularity of what is watched; one is enough for a pole.
inline constexpr int most_singular_watches = 100, few_singular_watches = 2;
/// A step along the tangent is long enough for time to see the series that follows.
inline constexpr double tangent_bits = 512;
/// A state that has been no more than that makes of it begins, if it is no more than this share of the others then.
inline constexpr double begun_share = 1e-3;

/// A watched function that differs from its series by more than this share of the series' terms is another function
/// there. Errors of a step are far smaller; what is met within such a share of its end is left to the next one.
inline constexpr double broken_promise = 1e-3;
/// A surface is reached at a rate that its series tells if that is more than this share of what its terms would make
/// it: errors of a step are a hundredth of it at the loosest tolerance.
inline constexpr double clear_arrival = 1e-2;
/// A surface whose rate is less than this share of the states' is met without speed, if it is met together with
/// another.
inline constexpr double without_speed = 1e-9;
/// A zero within so many steps of the present length is located to its last digit, where these are shorter
/// than this share of the longest of the run: steps shrink with the distance from where a root ends.
inline constexpr double few_steps = 4, shrunk_share = 1e-2;
/// The highest p of h' = -h^p that is told from 1, with which h never ends, and the lowest that is told from 0, with
/// which it passes.
inline constexpr double steepest_power = 0.9, flattest_power = 0.1;
/// A quantity that changes by this many times its rounding over a step moves.
inline constexpr double clear_motion = 1e4;
/// A step is blind where the defect allows less than this share of the length its series promises.
inline constexpr double blind_share = 1e-3;

/// Steps in a row that stability alone keeps short before a run turns to implicit ones, for the first time and later;
/// and how many of those before Taylor series are asked again.
inline constexpr int many_idle_steps = 100, few_idle_steps = 12, most_implicit_steps = 200;
/// Steps in a row that are each longer, or each shorter, than the last one by this ratio: a singular place is near.
inline constexpr double trend_ratio = 1.1;
inline constexpr int clear_trend = 8;
/// Implicit steps have dense matrices: models with more states turn to them only if they are told to.
inline constexpr int most_implicit_states = 64;

/// Blind steps in a row before a run ends as stalled: around a singularity that series do not see they never end, on
/// the flank of a saturating function there are a few.
inline constexpr int most_blind_steps = 1000;
/// After so many it is looked whether something comes to rest at the edge of a root.
inline constexpr int few_blind_steps = 16;
/// A stall is also reported after so many steps that are shorter than this share of the run, or of its longest step.
inline constexpr double short_of_run = 1e-8, short_of_longest = 1e-6;
/// A state has all but vanished at this share of its largest size, and is soon at rest if at its rate it takes less
/// than this share of the time scale of the start.
inline constexpr double vanished_share = 1e-12, soon_at_rest = 1e-5;
/// Forces that come into balance within this share of the run are in balance at once.
inline constexpr double balanced_at_once = 1e-15;
/// Steps over which the pace of a run is measured.
inline constexpr long pace_steps = 32768;
/// Steps that no run makes: one that would need as many at its present pace has stalled.
inline constexpr double hopeless_steps = 1e11;
/// Each time the steps have doubled, a steady run has gained twice as much time as by the doubling before; one that has
/// gained no more than so many times as much, so often in a row, slows down for good.
inline constexpr double slowing_gain = 1.25;
inline constexpr int slowing_doublings = 4;

/// Coefficients that are looked at before something is said to stay zero.
inline constexpr int decision_order = 8;

// ---- sigma and lambda ----------------------------------------------------------------------------------------------

/// Sigma this close to its bound is at it: sigma is solved to about 1e-13, bounds are of size one.
inline constexpr double bound_margin = 1e-11;
/// Rounding of sigma itself, a quotient of sums of size one: within it a sigma touches its bound and does not cross it.
inline constexpr double sigma_noise = 16 * eps;
/// Rounding of the rate of a sigma, in units of one over the time scale.
inline constexpr double sigma_rate_noise = 1e-13;
/// A matrix of sliding equations whose rows are scaled to one counts as singular below this: 1/cond of a matrix that is
/// singular up to rounding of its entries is 1e-15 at most, real ones stay far above.
inline constexpr double singular_rcond = 1e-12;
/// A column is independent of others if what is left of it is larger than this.
inline constexpr double independent_column = 1e-11;
/// The allowed residual of an equation of sliding, in units of what the unknowns can change: otherwise it has no
/// solution.
inline constexpr double unsolved_residual = 1e-9;
/// An eigenvalue of the scaled slope with a real part above this repels: rounding of a product of well-scaled matrices.
inline constexpr double repelling_eigenvalue = 1e-9;
/// Two solutions of the sliding equations closer than this are one.
inline constexpr double same_solution = 1e-8;
/// Energy that an impact gains beyond rounding, relative to speed times impulse.
inline constexpr double clear_gain = 1e-9;
/// Error of an impulse along a path that bends, per step, relative to the speeds: far below what a run asks for.
inline constexpr double impulse_path_error = 1e-12;
/// Directions that differ by less than this share across a surface are continuous there: rounding of a point of it.
inline constexpr double continuous_direction = 1e-9;

/// Pivots of redundant forces at one instant before the mode is chosen anew.
inline constexpr int most_distributions = 100;

// ---- signs at a point ----------------------------------------------------------------------------------------------

/// A value within this many of its rounding bounds is zero.
inline constexpr double zero_bounds = 4;
/// The bound for a surface that slid until now: it has drifted by the rounding of many steps.
inline constexpr double rested_bounds = 1e6;
/// The bound for a surface that depends on switches at an event: it is off by the error of the event's root.
inline constexpr double near_bounds = 1e3;
/// A surface that has been left along a tangent by so many of its rounding bounds is moved by the next step.
inline constexpr double clear_bounds = 4;
/// A surface has been reached for good if what is left of its rate would move states by less than this share of the
/// tolerance: second-order sliding, the end of a spiral.
inline constexpr double arrived_share = 1e-2;
/// Rates on both sides of a surface that differ by less than this share of the larger are looked at more closely.
inline constexpr double clear_rate = 1e-6;
/// Rounding of h' in units of the steepest h' among the candidates.
inline constexpr double rate_rounding = 256 * eps;

// ---- accumulation --------------------------------------------------------------------------------------------------

/// Share of the flow's time scale after a hit within which a flight may be too low for its height to be seen: from
/// heights of a few last bits a fall takes some 1e-8 of it.
inline constexpr double low_flight_share = 1e-6;
/// Flights that repeat themselves and are no higher than so many roundings of their gap are at rest: contacts hit in
/// turn until one of them rests by rounding leave the others so much, and without losses that goes on for ever.
inline constexpr double low_flight_bounds = 1e4;
/// Geometric sequences whose ratio is closer to one than this are no sequences.
inline constexpr double slowest_ratio = 0.9999;
/// How much the ratio may drift over three periods, in units of one minus the ratio.
inline constexpr double steady_ratio = 0.02;
/// A state whose steps from period to period grow by a factor that is steady to this share has no limit: rounding would
/// not be so regular.
inline constexpr double steady_growth = 1e-3;
/// A sequence is completed when what is left of it is this share of its length or of the flow's time scale.
inline constexpr double short_rest = 1e-7;
/// The remainder of a sequence is checked for rounding of its members below this share: heights of a last digit take
/// some 1e-8.
inline constexpr double blurred_rest = 1e-4;
/// Share of the tolerance that the place of a limit may be off.
inline constexpr double limit_error = 0.01;
/// Events closer than this many times what time can tell apart are not worth following one by one.
inline constexpr double exhausted_bits = 1e3;
/// Events that repeat themselves within so many times what rounding makes of their times are at rest.
inline constexpr double lost_bits = 16;
/// And are shorter than this share of the time in which the flow changes: an ordinary cycle is not.
inline constexpr double lost_share = 0.01;

// ---- time stepping -------------------------------------------------------------------------------------------------

/// Splits of one step; what changes more often is left to its complementarity problem. A split costs several
/// factorisations: where they are cheap, there are enough for a sequence that accumulates to be recognised.
inline constexpr int most_splits_of_few = 100, most_splits_of_many = 8;
/// Unknowns of a system that may be split that often, and at all.
inline constexpr int split_often_up_to = 48, split_up_to = 2000;
/// Share of a change over a step that is zero: what is located shares its place with it, what starts there is there.
inline constexpr double located_share = 1e-9;
/// How often a step is shortened, by a quarter at a time, before its equations count as unsolvable.
inline constexpr int most_halvings = 100;
/// Shorter and shorter steps for a complementarity problem with products of unknowns before it counts as having no
/// solution.
inline constexpr int most_unsolved_tries = 6;
/// Up to a surface at which a field ends, what is shorter than this share of a step is gone along a straight line.
inline constexpr double tangent_share_of_step = 1e-7;
/// Share of its states beyond which |h| of a vector switch that leaves rest is no rounding any more.
inline constexpr double departed = 1e-13;
/// A departure slower than this share of the friction that holds is tangential: |h| grows as a square of time.
inline constexpr double tangential_departure = 1e-9;
/// A vector switch leaves rest where its rate is more than this share of the forces on it.
inline constexpr double clear_leave = 1e-10;
/// Share of the flow's time scale before rest within which forces count as frozen: what they change by is its square.
inline constexpr double frozen_share = 1e-8;
/// Largest violation of a joint after a jump or a projection, relative to the largest state, that needs no message.
inline constexpr double joint_left = 1e-9;
/// Points of a grid that differ by less than this share of a step are one.
inline constexpr double same_grid_point = 1e-9;
/// Share of a run in which forces that cancel would move states by the size that is given to these.
inline constexpr double resting_share = 1e-6;
/// Steps in a row that are as short as steps can be and not accurate, before a run ends as stalled.
inline constexpr int most_forced_steps = 100;

// ---- states --------------------------------------------------------------------------------------------------------

/// A state beyond this has grown without bound: squares still fit a double.
inline constexpr double largest_state = 1e150;
/// Steps that shrink to nothing at a state this much larger than the start are a blow-up, not a stall.
inline constexpr double blow_up = 1e6;

}  // namespace saltus
