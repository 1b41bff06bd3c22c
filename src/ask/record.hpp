// A run as tables, made while it runs: rows of states, named quantities, sigma and multipliers; events; modes over
// time.
//
// Rows stand at the ends of steps, at events, and inside steps as densely as the curves bend. Where the mode changes,
// the time appears twice, before and after; where the state jumps, a row of NaN stands between the two. Memory is
// bounded: when there are too many rows, every other one is dropped, and later ones are taken half as often.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/table.hpp"
#include "flow/series.hpp"
#include "flow/simulate.hpp"

namespace saltus {

/// Which times get a row.
struct Sampling {
  enum class Kind {
    smooth,  ///< steps, events, and enough in between for a smooth curve
    steps,   ///< steps and events
    every,   ///< multiples of `interval` after the start, and nothing else; the state after, where it jumps
  };
  Kind kind = Kind::smooth;
  double interval = 0;
};

/// A stretch of time in one mode.
struct Stay {
  double from = 0, to = 0;
  int mode = 0;  ///< index into RunTables::modes()
};

class RunTables {
 public:
  RunTables(const Program& program, const RunOptions& options, const Sampling& sampling);

  /// Names of the columns: t, states, named quantities, sigma(SURFACE) of each switch, each multiplier.
  const std::vector<std::string>& columns() const { return columns_; }

  void piece(const Piece& piece, const Arc& arc);
  void event(const Event& event, const Arc& after);
  void finish(const Trajectory& trajectory);

  /// The rows as a table "data" (once: it takes them out).
  Table take_data();
  /// The columns at the events, with a text column "kind", as a table "marks"; empty if there were too many.
  Table marks() const;
  size_t rows() const { return width_ == 0 ? 0 : cells_.size() / width_; }
  const std::vector<Stay>& stays() const { return stays_; }
  const std::vector<Mode>& modes() const { return modes_; }
  /// How many events of each kind there were, in the order of EventKind.
  const std::map<EventKind, long>& counts() const { return counts_; }
  /// What a person must know about the rows; empty if nothing.
  std::string note() const;

 private:
  using Row = std::vector<double>;

  Row row_at(double t, const std::vector<double>& x);
  void enter(const Arc& arc);
  void begin_piece(const Row& first, bool changed);
  void refine(const Piece& piece, const Row& from, const Row& to, int depth);
  void sample_every(const Piece& piece);
  void add(const Row& row);
  void add_unit(const std::vector<const Row*>& rows);
  void thin();
  void widen(const Row& row);
  void stay(double from, double to, const Mode& mode);
  int index_of(const Mode& mode);

  const Program& program_;
  const RunOptions& options_;
  Sampling sampling_;
  Series series_;
  std::vector<std::string> columns_;
  size_t width_;
  size_t most_rows_;

  std::vector<double> cells_;  // row by row
  std::vector<size_t> units_;  // first row of what is kept or dropped together
  size_t stride_ = 1, offered_ = 0;
  bool thinned_ = false;

  Arc arc_;
  std::vector<double> guess_;
  std::vector<double> lowest_, highest_;  // of each column so far: bends are judged against the range
  bool begun_ = false;
  bool jumped_ = false;
  std::optional<Row> end_;  // of the last piece, whose time is known exactly when the next one starts
  long next_sample_ = 0;

  std::vector<Stay> stays_;
  std::vector<Mode> modes_;
  std::map<std::string, int> mode_index_;
  std::vector<double> mark_cells_;
  std::vector<std::string> mark_kinds_;
  bool too_many_marks_ = false;
  std::map<EventKind, long> counts_;
};

/// The events as a table: t, kind, on, modes before and after, states after, states before where they jump, count.
Table events_table(const Model& model, const std::vector<Event>& events, const std::string& name = "events");

/// The dense output of a run, as far as it fits into memory.
class PieceStore {
 public:
  explicit PieceStore(size_t states) : states_(states) {}

  void add(const Piece& piece, const Mode& mode);
  /// What a person must know about it; empty if nothing.
  std::string note() const;
  /// start, length, mode, and the coefficients of every state, `y[2]` for the second power of the time since start
  /// (once: it takes them out).
  Table take_table(const Model& model);

 private:
  size_t states_;
  std::vector<Piece> pieces_;
  Texts modes_;
  size_t widest_ = 1;  // coefficients of a state: the table has as many columns for each
  long left_out_ = 0;
};

}  // namespace saltus
