// Makes the rows of a run (ask/rows) while it goes on, and keeps its dense output.
//
// Rows stand at the ends of steps, at events, and inside steps as densely as the curves bend. Where the mode changes,
// the time appears twice, before and after; where the state jumps, a row of NaN stands between the two. Memory is
// bounded: when there are too many rows, every other one is dropped, and later ones are taken half as often.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ask/rows.hpp"
#include "base/table.hpp"
#include "flow/simulate.hpp"

namespace saltus {

class RunTables {
 public:
  /// `begin`: rows stand from this time on.
  RunTables(const Program& program, const RunOptions& options, const Sampling& sampling,
            std::optional<double> begin = {});

  /// Names of the columns: t, states, named quantities, sigma(SURFACE) of each switch, each multiplier.
  const std::vector<std::string>& columns() const { return columns_; }

  void piece(const Piece& piece, const Arc& arc);
  void event(const Event& event, const Arc& after);
  void finish(const Trajectory& trajectory);

  /// Moves the rows recorded so far out of the record.
  Rows take_rows();

 private:
  using Row = std::vector<double>;

  Row row_at(double t, const std::vector<double>& x);
  void begin_piece(const Row& first, bool changed);
  void refine(const Piece& piece, const Row& from, const Row& to, int depth);
  void sample(const Piece& piece);
  bool samples() const { return sampling_.kind == Sampling::Kind::every || sampling_.kind == Sampling::Kind::times; }
  /// The next time that is asked for, or NaN.
  double next_time() const;
  size_t rows() const { return cells_.size() / width_; }
  void add(const Row& row);
  void add_unit(const std::vector<const Row*>& rows);
  void thin();
  void widen(const Row& row);
  void stay(double from, double to, const Mode& mode);
  int index_of(const Mode& mode);

  const Program& program_;
  double from_, direction_;
  Sampling sampling_;
  Quantities quantities_;
  std::vector<std::string> columns_;
  size_t width_;
  size_t most_rows_;

  std::vector<double> cells_;  // row by row
  std::vector<size_t> units_;  // first row of what is kept or dropped together
  size_t stride_ = 1, offered_ = 0;
  bool thinned_ = false;

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

}  // namespace saltus
