// Everything that has a name along a run: time, states, named quantities, switches, multipliers, at any of its points.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "flow/series.hpp"
#include "flow/simulate.hpp"

namespace saltus {

/// The names: t, states, named quantities, sigma(SURFACE) of each switch, each multiplier.
std::vector<std::string> quantity_names(const Model& model);

/// Their values at points of a run, arc by arc in its order: switches and multipliers are those of the arc's mode.
class Quantities {
 public:
  Quantities(const Program& program, const RunOptions& options);

  std::size_t width() const { return width_; }
  /// The arc on which the points after this lie.
  void enter(const Arc& arc);
  const Arc& arc() const { return arc_; }
  /// Values at a point; NaN where the formulas have none.
  void read(double t, std::span<const double> x, std::vector<double>& row);

  /// The unknowns of the last point, from which implicit ones are followed.
  const std::vector<double>& guess() const { return guess_; }
  void set_guess(std::vector<double> guess) { guess_ = std::move(guess); }

 private:
  const Program& program_;
  Series series_;
  std::size_t width_;
  Arc arc_ = {};
  std::vector<double> guess_ = {};
};

}  // namespace saltus
