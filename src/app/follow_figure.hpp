// A branch as tables and a picture.
#pragma once

#include <string>
#include <vector>

#include "analysis/branch.hpp"
#include "base/table.hpp"
#include "report/run_figure.hpp"

namespace saltus {

/// What a branch is drawn against, and what values stand for.
struct BranchAxes {
  std::vector<std::string> names;  ///< of the one or two quantities followed
  std::function<double(size_t, double)> value;  ///< of quantity k where its parameter has a value
  std::string measure;  ///< NAME, max(NAME), min(NAME), period; empty: the first state
};

/// Complains (usage) about a measure that is none.
void check_measure(const std::string& measure, const Model& model, bool equilibria);

/// All points in order: values, states, extremes over a period, period, largest multiplier, label, signature.
Table branch_table(const Model& model, const Branch& branch, const BranchAxes& axes,
                    const std::string& name);
Table special_table(const Model& model, const Branch& branch, const BranchAxes& axes,
                    const std::string& name);

/// Stable solid, unstable dashed, special points marked and labelled; several branches in one picture. `over`: the
/// folder of a sweep whose points lie below.
Picturing picture_branches(const Model& model, const std::vector<Branch>& branches, const BranchAxes& axes,
                           const std::string& over);

}  // namespace saltus
