// Cells of a box of states and the simple cell mapping they define: images in, cycles, basins and transients out.
//
//     every cell stands for its centre; the image of a cell is the cell that holds the image of the centre
//     all that lies outside the box is one more cell, the sink, which is its own image
//     every cell then ends on a cycle of cells or in the sink        (docs/method/cell_mapping.md)
//
// Cells are numbered from 0, the first axis fastest. Everything is linear in the number of cells, in time and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace saltus {

/// The number of a cell; negative: the sink.
using CellIndex = std::int32_t;
constexpr CellIndex sink_cell = -1;
constexpr std::size_t most_cells = 100'000'000;

/// The cells along one axis.
struct CellAxis {
  int state = 0;              ///< the state that varies
  std::vector<double> edges;  ///< ascending; cell k lies from edges[k] to edges[k+1], the upper edge excluded

  std::size_t cells() const { return edges.size() - 1; }
  double from() const { return edges.front(); }
  double to() const { return edges.back(); }
  double centre(std::size_t k) const { return 0.5 * (edges[k] + edges[k + 1]); }
  /// The cell that holds v, or -1. The ends belong to the outer cells, and what rounding put beyond them (1e-9 of a
  /// cell) too: a mass that rests on a wall at the end of the box is in the box.
  std::int64_t locate(double v) const;
};

/// n cells of equal width.
CellAxis uniform_axis(int state, double from, double to, std::size_t n);

/// A box divided into cells: the products of the cells of its axes, or the surroundings of random points.
class Mesh {
 public:
  explicit Mesh(std::vector<CellAxis> axes);
  /// `points` random points, evenly distributed in the box; the cell of a point is all that lies nearest to it, lengths
  /// measured in widths of the box. The same seed gives the same points.
  Mesh(std::vector<CellAxis> axes, std::size_t points, std::uint64_t seed);

  std::size_t cells() const { return cells_; }
  const std::vector<CellAxis>& axes() const { return axes_; }
  bool scattered() const { return !points_.empty(); }

  /// The point that stands for a cell: one value per axis.
  void centre(std::size_t cell, std::span<double> values) const;
  /// The cell that holds a point given by its value on each axis; sink_cell outside the box.
  CellIndex locate(std::span<const double> values) const;
  /// How far a point lies outside the box, in cells along the axis where it is farthest; 0 inside.
  double outside(std::span<const double> values) const;
  /// How far two cells are apart, in cells along the axis where they are farthest apart (in mean distances between
  /// points where the cells are random): neighbours are 1 apart.
  double distance(CellIndex a, CellIndex b) const;
  /// The place of a cell of a grid along every axis.
  void place(std::size_t cell, std::span<std::size_t> indices) const;

 private:
  struct Found {
    double distance2;
    std::int32_t point;
  };
  void build(std::size_t from, std::size_t to, std::size_t axis);
  void nearest(std::size_t from, std::size_t to, std::size_t axis, std::span<const double> unit, Found& best) const;

  std::vector<CellAxis> axes_;
  std::size_t cells_ = 0;
  std::vector<double> points_;      // of random cells, in units of the box: [point * axes + axis]
  std::vector<std::int32_t> tree_;  // of random cells: points, each half split at its middle
};

/// A cycle of the cell mapping and the cells that end on it.
struct CellCycle {
  std::vector<CellIndex> cells;  ///< in the order in which they are visited, the lowest first
  std::size_t basin = 0;         ///< how many cells end on it, its own included
  std::size_t period() const { return cells.size(); }
};

/// Where every cell ends.
struct CellMapping {
  std::vector<std::int32_t> cycle;      ///< per cell: the place of its cycle in `cycles`, or -1 for the sink
  std::vector<std::int32_t> transient;  ///< per cell: steps until it is on the cycle or in the sink
  std::vector<CellCycle> cycles;        ///< in the order of their lowest cells
  std::size_t sink = 0;                 ///< cells that end in the sink
};

/// Follows every cell to its end; a negative image is the sink.
CellMapping follow_cells(std::span<const CellIndex> images);

/// Joins cycles that come within `distance` cells of each other. Gives for every cycle the lowest one it is joined
/// with; two cycles far apart may be joined through others between them.
std::vector<std::int32_t> join_near(const Mesh& mesh, std::span<const CellCycle> cycles, double distance);

}  // namespace saltus
