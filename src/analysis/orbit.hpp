// Periodic orbits: a program and a place to begin in, a closed orbit with its multipliers out.
//
//   settle     a run from the initial values until its returns to the section repeat; or none (a guess)
//   signature  one run over the period: legs (mode, what ends it), with their states and times
//   Newton     on the states and times of all legs, modes frozen:
//                x_{i+1} = R_i(flow(mode_i, x_i, T_i)),   h_i = 0 at the end of leg i,   closed
//   judge      a run from the solution: does it have that signature; if not, again with the new one
//   multipliers of the variation along that run; the trivial one of an autonomous system split off
//
// docs/method/orbits.md
#pragma once

#include <complex>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "flow/simulate.hpp"

namespace saltus {

struct OrbitOptions {
  RunOptions run;         ///< parameters, initial values, start time, tolerance; `until`: length of the first run
  int section = -1;       ///< of the model; -1: the clock, or a plane normal to the flow
  bool guess = false;     ///< no run first: the initial values are near the orbit
  int returns = 0;        ///< to the section until it closes; 0: what the run shows, 1 with a guess
  double time = 0;        ///< or the time after which it closes, about
  bool backward = false;  ///< settle and close backward in time
  std::vector<std::pair<int, double>> modulo{};  ///< states that may grow by multiples of a number
  long most_returns = 3000;                      ///< of the run that settles
  bool driven = false;                           ///< time counts, though nothing depends on it at these parameters
  std::optional<double> clock_from{};            ///< sections by the clock count from here; none: from the start
};

/// A stretch of an orbit in one mode.
struct OrbitLeg {
  Mode mode;
  double length = 0;
  std::string ended_by;  ///< "cross v", "section"
  double stretch = 0;    ///< largest factor by which what ends it stretches a tangent
};

struct Orbit {
  bool found = false;
  std::string why, message;  ///< if not found
  bool autonomous = false;
  bool backward = false;
  double t = 0, period = 0;
  int returns = 0;
  std::vector<double> state;
  Mode mode;
  bool stable = false, symmetric = false;
  std::vector<std::complex<double>> multipliers;  ///< largest first, without the trivial one; may be infinite
  std::complex<double> trivial{1, 0};             ///< of an autonomous orbit
  std::vector<std::vector<double>> monodromy;     ///< row after row
  std::vector<OrbitLeg> legs;
  double residual = 0;    ///< how far it is from closing, relative to the size of each state
  int iterations = 0;     ///< of Newton's method
  Trajectory trajectory;  ///< one period, dense
  std::vector<std::string> notes;
  std::vector<bool> free;     ///< states that need not come back: nothing depends on them
  std::vector<double> shift;  ///< how much states that may grow do so in a period
};

/// The event at the end of one period where its section lies on a surface of the model: with it the run began. None
/// where the mode at the end is that of the start.
std::optional<Transition> event_at_end(const Trajectory& run);

/// Throws Error where no run can start from the initial values. What the program has made for one search, the next one
/// need not make again.
Orbit find_orbit(const Program& program, const OrbitOptions& options);
Orbit find_orbit(const Model& model, const OrbitOptions& options);
/// The orbit from starting values that the user did not give: not found where no run can start from them.
Orbit try_orbit(const Program& program, const OrbitOptions& options);
Orbit try_orbit(const Model& model, const OrbitOptions& options);

}  // namespace saltus
