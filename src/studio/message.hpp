// Requests of the page: JSON text in, a PageRequest out. The only file that knows nlohmann/json.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ask/solve.hpp"

namespace saltus {

/// Every request in one struct: what a request does not use is empty.
struct PageRequest {
  std::string verb;  ///< "do": open, check, run, window, plane, section, sweep, basins, orbit, branch, stop, export,
                     ///< save
  long id = 0;

  std::optional<std::string> name;  ///< open: of a gallery model
  std::optional<std::string> text;  ///< open, check, save: of a model file
  bool force = false;               ///< save: whatever the file holds now

  // How to compute: all that compute.
  std::vector<Setting> parameters, initial;
  std::vector<Setting> solve;  ///< options as text, under their names

  bool drag = false;           ///< run: something is being dragged, be quick
  std::vector<double> window;  ///< window: a stretch of time, to be seen closely
  // plane
  std::vector<std::string> axes;             ///< plane: two states; basins: NAME=a:b
  std::optional<std::array<double, 4>> box;  ///< x from, to, y from, to
  double t = 0;
  std::vector<double> state;  ///< the others
  bool field = false;         ///< where states go from the points of a grid, too
  // section, sweep, basins
  std::string section;
  std::optional<long> points, skip, settle;
  std::optional<std::string> level;  ///< section, plane: where the function of the section is met
  std::vector<double> through;       ///< section: a state that its level is to go through, instead
  std::vector<std::string> vary;     ///< sweep: NAME=a:b:n; branch: NAME=a:b; one or two
  std::string colour;
  std::vector<long> levels;  ///< basins: cells along each axis, coarse to fine
  std::string method;        ///< basins: "cells" or "direct"; orbit, branch: "settle", "guess", "equilibrium"
  bool backward = false;
  std::string label;  ///< branch: of a special point of the branch before, to begin at

  long of = 0;       ///< stop: the request that is meant
  std::string what;  ///< export: "toml", "data", "events", "latex"
};

/// Throws Error(usage) for what is no request.
PageRequest read_message(std::string_view text);

}  // namespace saltus
