// `run --sensitivity`: the derivatives of the end of a run by its initial values and by parameters.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ask/run.hpp"
#include "base/linear.hpp"
#include "base/table.hpp"
#include "flow/step/tangent.hpp"
#include "flow/variation.hpp"

namespace saltus {

/// Carries the tangents while a run goes on.
class SensitivityRun {
 public:
  /// `names`: of parameters, or none for all. Throws Error(usage) for unknown ones.
  SensitivityRun(const Program& program, const RunOptions& options, const std::vector<std::string>& names);
  /// Listens to the run; what listened before goes on listening.
  void attach(RunOptions& options);
  Sensitivity result() const;
  std::vector<std::string> notes() const;

 private:
  Variation variation_;
  std::optional<StepTangent> steps_;  ///< of the time-stepping engine
  Mat p_;
  bool lost_ = false;  ///< a step whose derivative its equations do not give
  std::vector<std::string> parameters_;
  Index states_;
};

Table sensitivity_table(const Model& model, const Sensitivity& sensitivity);

}  // namespace saltus
