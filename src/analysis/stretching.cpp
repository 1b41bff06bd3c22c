#include "analysis/stretching.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace saltus {
namespace {

/// A direction shorter than this after an event, of those that were of length one before, is forgotten.
constexpr double forgotten = 1e-10;

/// Directions of no particular kind: what a model's symmetry forgets must not be all there is of one.
Mat general_directions(Index states, Index directions) {
  Mat x(states, directions);
  for (Index i = 0; i < states; ++i) {
    for (Index k = 0; k < directions; ++k)
      x(i, k) = (i == k ? 1.0 : 0.0) + 0.5 * std::cos(static_cast<double>(1 + i + 3 * k * k));
  }
  return qr(x).Q;
}

}  // namespace

Stretching::Stretching(const Program& program, const RunOptions& options, int directions)
    : variation_(program, options),
      logs_(static_cast<size_t>(directions), 0.0),
      carried_(static_cast<size_t>(directions)) {
  std::iota(carried_.begin(), carried_.end(), size_t{0});
  variation_.begin(general_directions(program.states(), directions));
}

void Stretching::along(const Piece& piece, const Arc& arc) {
  if (carried_.empty()) return;
  if (variation_.forget(piece, arc)) orthonormalise(true);
  if (carried_.empty()) return;
  // On implicit pieces directions shrink by more than numbers can tell.
  variation_.along(piece, arc, [this] { orthonormalise(false); });
  orthonormalise(false);
}

void Stretching::through(const Transition& event) {
  if (carried_.empty()) return;
  const Mat before = variation_.tangents();
  variation_.through(event);
  if (!variation_.tangents().allFinite()) variation_.set_tangents(before);  // a graze, which the notes tell
  orthonormalise(true);
}

double Stretching::first_within(const Piece& piece, const Arc& arc, double tau) {
  if (!std::isfinite(logs_.front())) return logs_.front();
  return logs_.front() + std::log(variation_.within(piece, arc, tau).col(0).norm());
}

void Stretching::orthonormalise(bool event) {
  auto [Q, R] = qr(variation_.tangents());
  const Vec length = R.diagonal().cwiseAbs();
  const double least = event ? forgotten * std::max(length.maxCoeff(), 1.0) : 0;
  std::vector<size_t> kept;
  for (Index k = 0; k < length.size(); ++k) {
    const size_t direction = carried_[static_cast<size_t>(k)];
    logs_[direction] += length[k] > least ? std::log(length[k]) : -HUGE_VAL;
    if (!std::isfinite(logs_[direction])) continue;
    Q.col(static_cast<Index>(kept.size())) = Q.col(k);
    kept.push_back(direction);
  }
  if (kept.size() < carried_.size()) {
    Q = Mat(Q.leftCols(static_cast<Index>(kept.size())));
    variation_.shrink(Q.cols());
    carried_ = std::move(kept);
  }
  variation_.set_tangents(std::move(Q));
}

}  // namespace saltus
