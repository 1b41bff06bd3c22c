// Phase responses as words, JSON, tables and pictures.
#pragma once

#include <string>
#include <vector>

#include "ask/phase.hpp"
#include "report/run_figure.hpp"

namespace saltus {

/// `of`: the states that are shown, by number.
std::string words_of(const PhaseAnswer& answer);
std::string json_of(const PhaseAnswer& answer, const std::vector<int>& of);

/// "data": t, states and Z along the orbit, a gap at each jump; "periods": dT/dp; "events"; with a coupling
/// "interaction".
std::vector<Table> tables_of(const PhaseAnswer& answer, const std::vector<int>& of);
Picturing picture_of(const PhaseAnswer& answer, const std::vector<int>& of);

}  // namespace saltus
