// How much a run stretches tangents: they are made orthonormal again and again, and the logarithms of their lengths
// summed.
//
//   tangents Q (orthonormal) over a piece or through an event:  X = Q' R,   logs += log |R_kk|,   Q = Q'
//   a direction whose R_kk vanishes is forgotten: its logarithm is -inf from then on, and one column fewer is carried
#pragma once

#include <vector>

#include "flow/simulate.hpp"
#include "flow/variation.hpp"

namespace saltus {

class Stretching {
 public:
  /// So many directions of the run that `options` describe: all of them, or the most stretched ones.
  Stretching(const Program& program, const RunOptions& options, int directions);

  /// Over a piece of the run. Tangents may shrink against each other by more digits than a number has within a few
  /// pieces while none of them becomes short, so none is left as it is.
  void along(const Piece& piece, const Arc& arc);
  void through(const Transition& event);

  /// One per direction.
  const std::vector<double>& logs() const { return logs_; }
  /// The logarithm of the first direction at a place on a piece, before along() has passed it.
  double first_within(const Piece& piece, const Arc& arc, double tau);

  const std::vector<std::string>& notes() const { return variation_.notes(); }

 private:
  void orthonormalise(bool event);

  Variation variation_;
  std::vector<double> logs_;
  std::vector<size_t> carried_;  // the directions that are not forgotten, one per column
};

}  // namespace saltus
