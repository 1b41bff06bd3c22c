// Basins as words, JSON, tables and a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ask/many.hpp"
#include "report/run_figure.hpp"

namespace saltus {

std::string words_of(const BasinsAnswer& answer);
std::string json_of(const BasinsAnswer& answer);

/// How a fate is written in columns of numbers: attractors from 1, the sink 0, what goes nowhere below.
std::int32_t group_number(const CellFate& fate);

/// "data", a row per cell; "groups"; of cell mapping "cycles"; "attractors".
std::vector<Table> tables_of(const BasinsAnswer& answer);

/// The plane that is shown: two axes, and the cells of the others.
struct BasinsPlane {
  std::size_t across = 0, up = 1;
  std::vector<std::size_t> place;  ///< along every axis
  std::string note;                ///< "z = 0.5"
};

Picturing picture_of(const BasinsAnswer& answer, const BasinsPlane& plane);

}  // namespace saltus
