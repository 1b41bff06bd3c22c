// `run --sensitivity`: the derivatives of the end of a run by its initial values and by parameters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/linear.hpp"
#include "base/table.hpp"
#include "flow/simulate.hpp"
#include "flow/variation.hpp"

namespace saltus {

/// At fixed end time; rows are states.
struct Sensitivity {
  Mat by_state;
  std::vector<std::string> parameters;
  Mat by_parameter;  ///< a column per parameter, total: through derived parameters and [initial]
  std::vector<std::string> notes;
};

/// Carries the tangents while a run goes on.
class SensitivityRun {
 public:
  /// `names`: NAME,NAME of parameters, or nothing for all. Throws Error(usage) for unknown ones.
  SensitivityRun(const Program& program, const RunOptions& options, const std::string& names);
  /// Listens to the run; what listened before goes on listening.
  void attach(RunOptions& options);
  Sensitivity result() const;

 private:
  Variation variation_;
  std::vector<std::string> parameters_;
  Eigen::Index states_;
};

Table sensitivity_table(const Model& model, const Sensitivity& sensitivity);

}  // namespace saltus
