// Phase response of an oscillation of its own: `ask(PhaseQuestion) -> PhaseAnswer`.
//
//     const PhaseAnswer answer = ask(PhaseQuestion{.orbit = {.system = System::example("van_der_pol")}});
//     answer.points[0].z;          // how a kick of each state moves the phase there
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/phase.hpp"
#include "ask/orbit.hpp"

namespace saltus {

struct PhaseQuestion {
  OrbitQuestion orbit;                   ///< which orbit
  std::vector<std::string> couple = {};  ///< "v += g*(other.v - v)": what two equal copies add to each other's rates
  bool per_cycle = false;                ///< phases from 0 to 2 pi instead of times
};

/// The term that one copy adds to the rate of a state: a formula in its own states, then those of the other, as 2 n
/// states.
struct CouplingTerm {
  int state = 0;
  Expr formula;
};

struct PhasePlan {
  OrbitPlan orbit;
  std::vector<CouplingTerm> coupling;
  bool per_cycle = false;
};

/// Phases are times since the orbit's start, or angles with `per_cycle`.
struct PhasePoint {
  double t = 0;
  std::vector<double> state, z;
};

struct PhaseJump {
  PhasePoint before, after;
};

/// An event on the orbit and how its time after the first event moves with each parameter.
struct PhaseEvent {
  Event event;
  std::vector<double> by_parameter;
};

struct PhaseAnswer {
  OrbitAnswer orbit;
  bool found = false;
  std::string why, message;  ///< if not found: of the orbit, or why it has no phase response
  double period = 0;
  double cycle = 0;  ///< the period, or 2 pi
  std::vector<PhasePoint> points;
  std::vector<PhaseJump> jumps;  ///< where Z or the state jumps
  std::vector<std::string> parameters;
  std::vector<double> period_by_parameter;  ///< in units of time, always
  std::vector<PhaseEvent> events;
  std::optional<Interaction> interaction;  ///< per unit of phase, its phases as shares of the period
  double error = 0;                        ///< by which Z fails to close, relative
  std::vector<std::string> notes;
};

/// Throws Error for what cannot be asked.
PhasePlan plan(const PhaseQuestion& question);
PhaseAnswer ask(const PhasePlan& plan, const Observer& observer = {});

}  // namespace saltus
