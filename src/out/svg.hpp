// Figure -> SVG, without gnuplot: the same layout, colours and marks as out/plot, text that stays text.
#pragma once

#include <span>
#include <string>

#include "base/figure.hpp"
#include "base/table.hpp"

namespace saltus {

/// One <svg> document. Columns that do not exist are Errors. Each event mark has a <title>: what a pointer over it
/// shows.
std::string draw_svg(const Figure& figure, std::span<const Table> tables);

}  // namespace saltus
