#include "analysis/shooting_step.hpp"

namespace saltus {
namespace {

constexpr double singular = 1e-6;     ///< reciprocal condition of a matrix that may be singular but for errors
constexpr double of_a_family = 1e-8;  ///< pivots that count as zero then

}  // namespace

ShootingStep::ShootingStep(const Shooting& shooting, const std::vector<Leg>& legs, const Closing& closing,
                           const std::vector<LegSlopes>& slopes, const Vec& unknowns, const Vec& rows) {
  if (LegChain::fits(legs)) {
    chain_.emplace(shooting, legs, closing, slopes, unknowns, rows);
    decompose(chain_->ends());
    return;
  }
  // A row that vanishes but for errors stays nothing: a state that turns on its section, on an orbit of a family.
  Mat scaled = shooting.matrix_of(legs, closing, slopes) * unknowns.asDiagonal();
  row_size_ = scaled.row_norms().cwiseMax(LegChain::small_row * rows).cwiseMax(1e-300);
  decompose(row_size_.cwiseInverse().asDiagonal() * scaled);
}

/// Where orbits come in families (a centre) no step is the only one: the shortest leads to the nearest of them.
void ShootingStep::decompose(const Mat& A) {
  lu_.factor(A);
  if (lu_.rcond() > singular) return;
  shortest_.emplace(A, of_a_family);
  family_ = shortest_->rank() < A.rows();
}

Vec ShootingStep::solve(const Vec& r) const { return solve_decomposed(r, family_); }

Vec ShootingStep::solve_regular(const Vec& r) const { return solve_decomposed(r, false); }

Vec ShootingStep::solve_decomposed(const Vec& r, bool shortest) const {
  const auto solve = [&](const Vec& right) { return shortest ? shortest_->solve(right) : lu_.solve(right); };
  if (!chain_) return solve(r.cwiseQuotient(row_size_));
  const LegChain::RightSide right = chain_->reduce(r);
  return chain_->expand(right, solve(right.ends));
}

}  // namespace saltus
