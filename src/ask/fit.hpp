// Parameters from data, through events: `ask(FitQuestion) -> FitAnswer`.
//
//     FitQuestion question{.system = System::from_file("friction.toml"), .free = {{"F"}, {"omega", 0.1, 3}}};
//     ask(question).values[0].value;
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ask/ask.hpp"
#include "ask/solve.hpp"
#include "ask/system.hpp"
#include "model/data.hpp"

namespace saltus {

/// A parameter, or the initial value of a state: "y(0)".
struct FreeValue {
  std::string name;
  std::optional<double> low = {}, high = {};
  bool log = false;                  ///< its logarithm is what is varied
  std::optional<double> start = {};  ///< nothing: the model's value
};

struct FitQuestion {
  System system;
  Solve solve = {};
  std::vector<FreeValue> free;
  std::vector<DataTable> data = {};  ///< empty: those of the model's file
  int starts = 1;                    ///< the given one, and random ones within the bounds
  std::uint64_t seed = 1;
  bool profile = false, robust = false;
};

struct FitPlan {
  FitQuestion question;  ///< with data, starts and bounds of every free value
  RunOptions options;
};

struct FittedValue {
  std::string name;
  double value = 0;
  double error = 0;  ///< standard; infinite: the data do not say, NaN: it is at a bound
  bool at_bound = false;
  std::optional<double> low = {}, high = {};
};

/// A datum, the model there, and its residual.
struct FittedDatum {
  double t = 0, datum = 0, model = 0;
  double sigma = 0;  ///< 0: not known
};

struct FittedSeries {
  std::string experiment, name;  ///< a quantity, or "cross v"
  bool events = false;
  std::vector<FittedDatum> data;
  double rms = 0;
};

struct FitMinimum {
  std::vector<double> values;
  double cost = 0;
};

struct FitProfile {
  std::vector<double> value, cost;
  std::optional<double> low, high;  ///< where the cost passes the 95 % level
};

struct FitAnswer {
  System system;  ///< with the fitted values
  FitPlan plan;
  std::vector<FittedValue> values;
  std::vector<std::vector<double>> correlation;
  double cost = 0;   ///< sum of squares of residuals over their sigma (1 where it is not known)
  double sigma = 0;  ///< the common one, estimated where none is given
  int iterations = 0;
  long runs = 0;
  std::string why;  ///< "converged", "iterations" or "cancelled"
  std::vector<FittedSeries> series;
  std::vector<FitMinimum> minima;    ///< with several starts, the best first
  std::vector<FitProfile> profiles;  ///< with `profile`, per free value
  std::vector<std::string> notes;
};

/// Throws Error for what cannot be asked, and for data that cannot be used.
FitPlan plan(const FitQuestion& question);
FitAnswer ask(const FitPlan& plan, const Observer& observer = {});

}  // namespace saltus
