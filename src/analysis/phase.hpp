// Phase response of an autonomous orbit: the orbit with its tangents in; out Z(t), by which a small kick k at time t
// moves all later times, dphase = Z.k, with its jumps at events, and how period and events move with parameters.
//
//   Z_k = X_k^T Z_{k+1}              link by link backward along the orbit and through saltation, so that Z.f = 1
//   everywhere Z(T) = Z(0):  M^T Z = Z,  f.Z = 1 dT/dp = -Z.x_p(T)                x_p: by the parameter at fixed start
//   and time
//
// docs/method/phase.md
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "analysis/orbit_tangents.hpp"

namespace saltus {

struct PhaseResponse {
  bool found = false;
  std::string why, message;                   ///< if not found
  std::vector<Vec> z;                         ///< at each node of the tangents
  std::vector<double> period_by;              ///< each direction of the parameters
  std::vector<std::vector<double>> event_by;  ///< of each link: its time after that of the first event; empty: none
  double error = 0;                           ///< by which Z fails to close, relative
};

/// `free`: states that nothing depends on, for which Z is 0; `size`: of the states, by which errors are measured.
PhaseResponse phase_response(const OrbitTangents& orbit, const Orbit& found, std::span<const double> size);

/// A rate that one of two equal systems adds to the other: of the own state and that of the other into rates.
using Coupling =
    std::function<void(std::span<const double> own, std::span<const double> other, std::span<double> rates)>;

struct LockedPhase {
  double phase = 0;  ///< a share of the period
  bool stable = false;
};

struct Interaction {
  std::vector<double> value;        ///< H at the phases j/N of the period
  std::vector<LockedPhase> locked;  ///< zeros of H(-phi) - H(phi), by phase
};

/// H(phi) = 1/T integral of Z(t).G(x(t), x(t + phi)) over the period: how fast the phase drifts for each other's sake.
/// Each of two copies is coupled to the other.
Interaction interaction_of(const OrbitTangents& orbit, const Orbit& found, const PhaseResponse& phase,
                           const Coupling& coupling, int count);

}  // namespace saltus
