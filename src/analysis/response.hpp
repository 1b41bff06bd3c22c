// Small signals about a periodic orbit or an equilibrium: how outputs answer inputs that are moved by exp(j w t).
//
//     x(t + T) = e^{jwT} x(t),   x0 = (e^{jwT} - M)^{-1} b(jw)          b: one period from 0, inputs moved
//     Y_k = 1/T integral over a period of e^{-j(w + k 2 pi/T) t} y(t)    harmonic k of the output; impulses included
//
// Exact through events: inputs act along panels, at events through h_p and R_p, and by their speed (model/ports).
// docs/method/response.md
#pragma once

#include <complex>
#include <vector>

#include "analysis/equilibrium.hpp"
#include "analysis/orbit_tangents.hpp"
#include "model/ports.hpp"

namespace saltus {

/// Where inputs and outputs are found among the states and directions of tangents.
struct ResponsePorts {
  std::vector<Index> kept;          ///< the model's own states that have to come back
  std::vector<Index> input_state;   ///< per input: its z; -1: none
  std::vector<Index> by_input;      ///< per input: the direction of its parameter; -1: none
  std::vector<Index> by_speed;      ///< per input: the direction of the speed of z; -1: none
  std::vector<Index> output_state;  ///< per output: its integral
};

/// The parts of an orbit's tangents that do not depend on the frequency.
class OrbitResponse {
 public:
  using Complex = std::complex<double>;

  /// `period` with its sign; `origin`: the time from which the phases of inputs count. Keeps both references.
  OrbitResponse(const OrbitTangents& orbit, const ResponsePorts& ports, double period, double origin);

  /// Harmonic `sideband` of each output, to one input that is moved with the angular frequency w.
  std::vector<Complex> operator()(double w, size_t input, int sideband) const;

 private:
  struct Panel {
    std::vector<double> by_input, by_speed;  ///< per input, node and state: X^-1 onto P
  };
  /// One frequency and one input.
  struct Drive {
    double w = 0, out = 0;  ///< of the input, and of the harmonic of the output
    size_t input = 0;
    std::vector<Complex>* integrals = nullptr;  ///< of exp(-j out t) q(t) over the period, per output; null: not wanted
  };
  Complex turn(double w, size_t node) const { return std::polar(1.0, w * (orbit_.nodes[node].t - origin_)); }
  Complex drive_of(const Drive& drive, const Mat& P, Index row) const;
  void hold_input(const Drive& drive, size_t node, std::vector<Complex>& u) const;
  void over_period(const Drive& drive, std::vector<Complex>& u) const;
  void over_link(const Drive& drive, const OrbitTangents::Link& link, std::vector<Complex>& u) const;
  void move_impulses(const Drive& drive, const OrbitTangents::Link& link, const std::vector<Complex>& before) const;
  void over_panel(const Drive& drive, const OrbitTangents::Link& link, std::vector<Complex>& u) const;

  const OrbitTangents& orbit_;
  const ResponsePorts& ports_;
  double period_, origin_;
  Mat kept_monodromy_;
  std::vector<Panel> panels_;
};

/// Means of the outputs and their derivatives by each direction.
struct OutputMeans {
  std::vector<double> mean;
  std::vector<std::vector<double>> by;  ///< [output][direction]
};
/// Over one period; `start_by`: how the start of the orbit moves with each of so many directions, a column each;
/// `period_by`: how its period does.
OutputMeans means_of(const OrbitTangents& orbit, const ResponsePorts& ports, double period, const Mat& start_by,
                     const std::vector<double>& period_by);

/// About an equilibrium, in its mode: rates and what stays zero there, by states, then by each direction.
struct EquilibriumSlopes {
  Mat rates, manifold;
  Vec values;  ///< of the rates
};
std::vector<std::complex<double>> equilibrium_response(const EquilibriumSlopes& slopes, const ResponsePorts& ports,
                                                       double w, size_t input);
/// Means of the outputs, with their slopes along the first so many directions.
OutputMeans means_of(const EquilibriumSlopes& slopes, const ResponsePorts& ports, Index directions);

}  // namespace saltus
