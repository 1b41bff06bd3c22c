// Thinning: of many rows, those that can be told apart on paper. Rows are named by their index, so that what is drawn
// are the computed values themselves.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace saltus {

/// Takes data to the pixels of a panel. Values that cannot be drawn (NaN, infinite, enormous, not positive on a log
/// axis) give NaN.
struct PixelMap {
  double x_from = 0, x_to = 1, y_from = 0, y_to = 1;
  double width = 1, height = 1;
  bool log_x = false, log_y = false;

  double px(double x) const;
  double py(double y) const;
};

/// True if a picture can show the value: finite, not beyond 1e150, and positive on a log axis.
bool drawable(double value, bool log);

inline constexpr size_t kGap = static_cast<size_t>(-1);

/// Rows of a curve, at most about `most`, with kGap where it is interrupted. Curves that run along x (time series) keep
/// the extremes of every half pixel column, others keep every bend the eye can see. No gap wider than that is closed.
std::vector<size_t> thin_line(std::span<const double> x, std::span<const double> y, const PixelMap& map, size_t most);

/// Rows of points inside the panel, one per square of `cell` pixels; the squares grow until there are at most `most`.
std::vector<size_t> thin_points(std::span<const double> x, std::span<const double> y, const PixelMap& map, double cell,
                                size_t most);

/// How many points fall into each cell of a grid over the panel; row by row from the bottom.
std::vector<unsigned> count_points(std::span<const double> x, std::span<const double> y, const PixelMap& map,
                                   size_t columns, size_t rows);

/// A stretch of a ribbon: its category by the row where it first appears.
struct Stretch {
  double from = 0, to = 0;
  size_t row = 0;
};

/// Joins neighbours of the same category; stretches narrower than half a pixel are replaced by what prevails among
/// them.
std::vector<Stretch> thin_ribbon(std::span<const double> from, std::span<const double> to,
                                 std::span<const std::string> category, double pixels_per_unit);

}  // namespace saltus
