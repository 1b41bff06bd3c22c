// Steps of states whose rates are weighted sums: how far their series carry, and whether they did.
#pragma once

#include <vector>

#include "code/columns.hpp"
#include "flow/simulate.hpp"

namespace saltus {

struct RowSteps {
  explicit RowSteps(const RunOptions& run);

  /// Rates of so many states are about to be added to the band.
  void begin(size_t count);
  /// The step at which the last two terms of all series have shrunk to the tolerance (see StepControl); 0 where they
  /// are no numbers. `time_scale`: the time in which they change.
  double natural_step(const Columns& columns, double first_scale, double& time_scale);
  /// Where two last terms, in units of what they belong to, have shrunk to the tolerance.
  double length_by(const LastTerms& terms) const;
  /// True if the last terms are small on a step of this length (StepControl::last_term_small).
  bool last_terms_small(const Columns& columns, double length) const;

  int order = 0;
  double tolerance = 0, ratio = 1, horizon = 0;
  double reach = 0;  ///< the last natural step
  // Fields of the present step, per state, padded:
  Band band{};
  std::vector<double> next{}, least{}, scale{}, clearance{};
};

}  // namespace saltus
