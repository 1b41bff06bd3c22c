// Basins of attraction: a box of initial states and the map of a section in; which cell goes to which attractor out.
//
// Two methods. `cells`: each cell is mapped once and the cell mapping followed (analysis/cells):
//
//     images  = the cell that holds the section point of each cell's centre
//     mapping = follow_cells(images)
//     join the cycles that are one attractor
//
// `direct`: each cell is run until it has settled (analysis/settle):
//
//     known = attractors met from a few cells spread over the box
//     for every cell: run until it follows a known attractor, or has settled on one of its own
//     merge what was found, in the order of the cells
//
// and with `refine` only where the answer is not that of all cells around:
//
//     compute every 16th cell along each axis; halve the distance, computing cells between unlike ones only
//     until every cell that was not computed has only neighbours like itself
//     compute some of the others; if one of them is wrong, follow the boundary around it and check again
//
// Results do not depend on the number of threads or ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "analysis/cells.hpp"
#include "analysis/settle.hpp"
#include "analysis/work.hpp"
#include "flow/simulate.hpp"

namespace saltus {

/// A state that follows from the varied ones.
struct DependentState {
  int state = 0;
  Expr value;  ///< in parameters and the states of the axes
};

/// From a point of the box to points of a section.
struct SectionMap {
  const Program& program;
  RunOptions run;  ///< how to run; `initial` holds the states that do not vary, `until` is an upper limit
  std::vector<DependentState> dependent = {};
  int section = 0;
  int repeat = 1;  ///< points of the section in one application of the map
  /// Steps of the engine without a point of the section after which a run is given up.
  long patience = 200'000;
};

/// The fate of a cell: where runs from it go.
struct CellFate {
  enum class Kind : std::int8_t {
    sink,          ///< it leaves the box (cell mapping)
    attractor,     ///< it goes to one
    no_start,      ///< a gap is violated there, or the state is not finite
    no_return,     ///< it does not come back to the section
    unsettled,     ///< on no attractor that is listed: still on its way, or there are too many
    not_computed,  ///< the computation was interrupted
    ended,         ///< the run ended before it could settle
  };
  Kind kind = Kind::not_computed;
  Why why = Why::time;     ///< of one that ended: how
  std::int32_t basin = 0;  ///< of an attractor: the place of its basin in Basins::basins

  static CellFate to(std::size_t basin) { return {Kind::attractor, Why::time, static_cast<std::int32_t>(basin)}; }
  bool settles() const { return kind == Kind::attractor; }
  bool computed() const { return kind != Kind::not_computed; }
  std::size_t place() const { return static_cast<std::size_t>(basin); }
  friend bool operator==(const CellFate&, const CellFate&) = default;
  friend auto operator<=>(const CellFate&, const CellFate&) = default;
};
/// "leaves the box", "diverged", ...; "attractor" for one that settles.
std::string_view fate_name(const CellFate& fate);

struct BasinsOptions {
  enum class Method { cells, direct };
  enum class Join {
    nearest,  ///< direct runs from all cycles find the attractors; a cycle belongs to the one that lies nearest
    run,      ///< a cycle belongs to the attractor on which most direct runs from its cells settle
    touch,    ///< cycles that come within `join_distance` cells of each other are one
    none,
  };
  Method method = Method::cells;
  Join join = Join::nearest;
  double join_distance = 1;
  bool refine = false;                    ///< direct only, on a grid
  long points = 5000;                     ///< most applications of the map in a direct run
  int most_period = 64;                   ///< longest period looked for
  std::vector<double> tolerance;          ///< per state, in its units: when points are the same; NaN: chosen
  int threads = 0;                        ///< 0: all cores
  std::filesystem::path checkpoint = {};  ///< an existing folder for the files of the stages; empty: none
  std::string identity = {};              ///< everything the result depends on
  /// Called now and then with the stage, how many of its cells came from the checkpoint, how many are done, and how
  /// many there are; false asks to stop.
  std::function<bool(std::string_view stage, double resumed, double done, double count)> progress = {};
};

/// An attractor and its basin.
struct Basin {
  Attractor attractor;
  std::size_t cells = 0;             ///< in its basin
  std::vector<std::int32_t> cycles;  ///< of the cell mapping that were joined
};

struct Basins {
  std::vector<CellFate> fate;          ///< per cell
  std::vector<Basin> basins;           ///< shortest periods first, none last; then by first cell
  std::vector<double> tolerance;       ///< used, per state
  std::size_t computed = 0;            ///< cells run or mapped, not filled in by refinement
  std::vector<char> was_run;           ///< per cell, where it was refined: 1, or 0 if filled in
  std::size_t checked = 0, wrong = 0;  ///< cells filled in that were run in the last check, and how many were not so
  bool interrupted = false;
  /// Cell mapping only.
  std::vector<CellIndex> images;  ///< a cell, or negative: the sink
  CellMapping mapping;
  std::vector<CellFate> fate_of_cycle;  ///< per cycle: that of its cells

  double fraction(std::size_t cells) const { return static_cast<double>(cells) / static_cast<double>(fate.size()); }
};

Basins find_basins(const SectionMap& map, const Mesh& mesh, const BasinsOptions& options);

/// The full state that a point of the box stands for; false if it is not finite.
bool start_state(const SectionMap& map, const Mesh& mesh, std::span<const double> values, std::span<double> state);

}  // namespace saltus
