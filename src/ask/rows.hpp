// A run as rows of numbers: time, states, named quantities, sigma and multipliers; and its modes over time.
//
// Rows stand at the ends of steps, at events, and inside steps as densely as the curves bend. Where the mode changes,
// the time appears twice, before and after; where the state jumps, a row of NaN stands between the two. Memory is
// bounded: when there are too many rows, every other one is dropped, and later ones are taken half as often.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/quantities.hpp"
#include "base/table.hpp"
#include "flow/trajectory.hpp"
#include "model/model.hpp"

namespace saltus {

/// Which times get a row.
struct Sampling {
  enum class Kind {
    smooth,  ///< steps, events, and enough in between for a smooth curve
    steps,   ///< steps and events
    every,   ///< multiples of `interval` after the start, and nothing else; the state after, where it jumps
    times,   ///< these, in the order of the run
  };
  Kind kind = Kind::smooth;
  double interval = 0;
  std::vector<double> times = {};
};

/// "smooth", "steps", or an interval: a number or a formula in parameters.
Sampling read_sampling(const std::string& text, const Model& model);

/// A stretch of time in one mode.
struct Stay {
  double from = 0, to = 0;
  int mode = 0;  ///< index into Rows::modes
};

struct Rows {
  std::vector<std::string> columns;  ///< t, states, named quantities, sigma(SURFACE) of each switch, each multiplier
  std::vector<double> cells;         ///< row after row
  std::vector<Stay> stays;
  std::vector<Mode> modes;
  std::vector<double> mark_cells;       ///< the columns at the events; empty if there were too many
  std::vector<std::string> mark_kinds;  ///< of those events
  std::map<EventKind, long> counts;     ///< how many events of each kind there were
  std::string note;                     ///< what a person must know about the rows; empty if nothing

  size_t count() const { return columns.empty() ? 0 : cells.size() / columns.size(); }
};

/// The rows as a table "data".
Table data_table(const Model& model, const Rows& rows);

/// The columns at the events, with a text column of their kinds, as a table "marks".
Table marks_table(const Rows& rows);
inline constexpr const char* kind_of_mark = "kind of event";  // no name of a model

/// The events as a table: t, kind, on, modes before and after, states after, states before where they jump, count.
Table events_table(const Model& model, const std::vector<Event>& events, const std::string& name = "events");

/// The dense output: start, length, mode, and the coefficients of every state, `y[2]` for the second power of the time
/// since start.
Table pieces_table(const Model& model, const Trajectory& trajectory);

}  // namespace saltus
