// Sweeps as words, JSON, tables and a picture.
#pragma once

#include <string>
#include <vector>

#include "ask/many.hpp"
#include "report/run_figure.hpp"

namespace saltus {

/// How a person wants to see a sweep.
struct SweepLook {
  std::string colour = {};  ///< "none", "start", "sliding", "period", "exponent"; empty: start where there are several
  bool log = false;         ///< logarithmic in what is varied
  bool uniform = true;      ///< values are equally far apart: a map is made of cells
};

/// True if a run did not reach what it was asked for.
bool ended_badly(const SweepRun& run);

std::string words_of(const SweepAnswer& answer);
std::string json_of(const SweepAnswer& answer);

/// "data", a row per run; and, where they are kept, "points".
std::vector<Table> tables_of(const SweepAnswer& answer);

/// The diagram of the states shown, or the map over two parameters; `tables` are those of the answer.
Picturing picture_of(const SweepAnswer& answer, const std::vector<Table>& tables, const std::vector<std::string>& shown,
                     const SweepLook& look);

}  // namespace saltus
