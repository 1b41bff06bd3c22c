// How a person wants to see a figure: which axes, how far, how long a unit is. Applied to what a command draws.
#pragma once

#include <string>
#include <vector>

#include "app/options.hpp"
#include "base/figure.hpp"
#include "model/model.hpp"
#include "report/run_figure.hpp"

namespace saltus {

/// The quantities of `--show`: commas outside brackets separate, spaces do not count, x[1..5] stands for five names. A
/// name that is no column is an Error(usage) that names the nearest.
std::vector<Shown> find_shown(const std::vector<std::string>& asked, const std::vector<std::string>& known);

/// The columns of `--show` where only names are possible: x:y counts as x and y.
std::vector<std::string> find_columns(const std::vector<std::string>& asked, const std::vector<std::string>& known);

/// Complains (usage) about ranges of axes that cannot be; to be asked before anything is computed.
void check_view(const OutputOptions& output, const Model& model);

/// Sets ranges, log axes and equal units as asked, and writes the model's labels at the axes. Until then an axis is
/// labelled by the names of what it shows, separated by ", ". Returns what could not be done, a line each: by then
/// there are results, which a wrong wish must not cost.
std::string set_view(Figure& figure, const OutputOptions& output, const Model& model);

}  // namespace saltus
