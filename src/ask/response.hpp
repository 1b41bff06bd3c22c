// Small signals about an orbit or an equilibrium: `ask(ResponseQuestion) -> ResponseAnswer`.
//
//     ResponseQuestion question{.orbit = {.system = System::from_file("buck.toml")},
//                               .inputs = {"D"}, .outputs = {"v"}, .from = 10, .to = 1e5};
//     ask(question).curves[0].points[0].value;      // a complex number: output per input
#pragma once

#include <complex>
#include <optional>
#include <string>
#include <vector>

#include "analysis/response.hpp"
#include "ask/orbit.hpp"

namespace saltus {

struct ResponseQuestion {
  OrbitQuestion orbit;               ///< which orbit
  bool equilibrium = false;          ///< a point where the model rests instead
  std::vector<std::string> inputs;   ///< parameters; named quantities get a signal added
  std::vector<std::string> outputs;  ///< states, named quantities, multipliers, or formulas of them
  std::string loop = {};             ///< a named quantity at which a loop is opened: its loop gain is the answer
  std::optional<Formula> from = {};  ///< lowest frequency, in cycles per unit of time
  std::optional<Formula> to = {};    ///< highest
  int points = 200;                  ///< spaced logarithmically, both ends included
  int sideband = 0;                  ///< harmonic of the orbit about which the output is looked at
};

struct ResponsePlan {
  std::optional<OrbitPlan> orbit;  ///< none: an equilibrium is insisted on
  EquilibriumPlan equilibrium;
  std::vector<std::string> inputs, outputs;
  std::vector<InputPort> ports;
  std::vector<Expr> quantities;
  bool loop = false;
  std::optional<double> from, to;
  int points = 200, sideband = 0;
};

struct ResponsePoint {
  double frequency = 0;
  std::complex<double> value;
};

/// Where a loop gain passes 1, or the phase -180 degrees.
struct Margin {
  double frequency = 0, value = 0;  ///< degrees, or a factor
};

struct ResponseCurve {
  std::string input, output;
  std::vector<ResponsePoint> points;
  std::optional<Margin> phase_margin, gain_margin;  ///< of a loop gain
};

struct ResponseAnswer {
  System system;
  RunOptions options;
  bool found = false, rests = false, cancelled = false;
  std::string why, message;  ///< if neither orbit nor equilibrium was found
  Orbit orbit;
  Equilibrium equilibrium;
  std::vector<ResponseCurve> curves;  ///< inputs in order, all outputs of each
  bool loop = false;
  int sideband = 0;
  std::vector<std::string> outputs, parameters;
  OutputMeans means;  ///< of the outputs over the orbit, and their derivatives by each parameter
  std::vector<std::string> notes;
};

/// Throws Error for what cannot be asked.
ResponsePlan plan(const ResponseQuestion& question);
ResponseAnswer ask(const ResponsePlan& plan, const Observer& observer = {});

}  // namespace saltus
