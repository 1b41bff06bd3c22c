// The slope d residual / d unknown of many unknowns of which each sees few others (a column of beads that touch): a
// band in the right order, factored instead of inverted.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/linear.hpp"
#include "solve/band_factor.hpp"

namespace saltus {

class BandSlope {
 public:
  /// `entries`: (row, column) of every number that will be given, several of them may be one place. None if no order
  /// found makes it a narrow band.
  static std::optional<BandSlope> make(int size, std::span<const std::pair<int, int>> entries);

  /// `values` in the order of the entries. False if the slope is singular, or nearly.
  bool factor(std::span<const double> values);
  /// slope x = b.
  void solve(const Vec& b, Vec& x);
  /// sum_j |slope_ij| weight_j, per row.
  void absolute_product(const Vec& weight, Vec& out) const;
  /// The sign of the determinant.
  int sign() const { return factor_.sign(); }
  Mat inverse();

 private:
  bool is_regular(const SparseMat& scaled);

  std::vector<int> position_;                 // where a row or column stands
  std::vector<std::pair<int, int>> entries_;  // as they stand
  SparseMat slope_;                           // in that order
  Vec scale_;                                 // of its rows: surfaces have units of their own
  BandFactor factor_;
  Vec ordered_;
};

}  // namespace saltus
