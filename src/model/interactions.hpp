// Which switches meet in a rate in other ways than by adding up.
#pragma once

#include <set>
#include <utility>

#include "model/model.hpp"
#include "model/probe.hpp"

namespace saltus {

using SwitchPairs = std::set<std::pair<int, int>>;

/// Fills `acts_on` and `interacts` of the switches; `disjoint` pairs never meet.
void find_interactions(Form& form, const Probe& probe, const SwitchPairs& disjoint);

}  // namespace saltus
