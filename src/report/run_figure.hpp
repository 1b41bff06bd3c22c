// The picture of a run: states over time, one panel per group of kin, the mode below, the phase plane beside.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ask/rows.hpp"
#include "base/figure.hpp"

namespace saltus {

/// One thing to draw: a quantity over time, two against each other (x:y), or three in space (x:y:z).
using Shown = std::vector<std::string>;

/// A figure and the tables it draws besides "data".
struct Picturing {
  Figure figure;
  std::vector<Table> tables;
};

/// "F = 0.4, omega = 1/3", unbreakable around each "="; `without`: parameters left out, by number.
std::string caption_of(const Model& model, std::span<const int> without = {});

/// `shown` may be empty: then the states, as many as fit; of two, also their plane.
Picturing picture_run(const Model& model, const Rows& rows, const Table& data, const std::vector<Shown>& shown);

}  // namespace saltus
