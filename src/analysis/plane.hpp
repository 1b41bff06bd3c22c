// The picture of a model in a plane of two states at one time, the other states fixed: each surface, divided by the
// kind of flow at it, and the regions where gaps are negative.
//
//   on a grid: signs of all h and g
//   in every cell that a surface passes: its line from edge to edge
//   at a point of it: h' on both sides -> attracting, repelling, crossing; where that changes along the line, halving
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/program.hpp"

namespace saltus {

struct PlaneView {
  int across = 0, up = 1;  ///< states
  double x_from = -1, x_to = 1, y_from = -1, y_to = 1;
  double t = 0;
  std::vector<double> state;  ///< all of them; those of the plane do not matter
  int cells = 64;             ///< along each axis
};

enum class PlaneKind {
  attracting,  ///< the flow slides: both sides push to the surface, or it is held there
  repelling,   ///< it could slide, but both sides push away
  crossing,
  kink,     ///< no rate jumps
  gap,      ///< of a constraint
  section,  ///< of a Poincaré map
};
std::string_view plane_kind_name(PlaneKind kind);

/// Straight pieces of one surface with one kind of flow.
struct PlaneLines {
  std::string of;  ///< name of the switch, constraint or section
  PlaneKind kind = PlaneKind::crossing;
  std::vector<double> ends;  ///< x y of one end, x y of the other, and so on
};

struct PlanePicture {
  std::vector<PlaneLines> lines;
  /// 1 where a gap is negative, for each of (cells + 1)^2 corners, row by row from below; empty without constraints.
  std::vector<std::int32_t> forbidden;
};

PlanePicture picture_plane(const Program& program, std::span<const double> parameters, const PlaneView& view);

}  // namespace saltus
