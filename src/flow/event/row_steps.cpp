#include "flow/event/row_steps.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "base/numbers.hpp"
#include "flow/event/cluster.hpp"
#include "flow/taylor.hpp"

namespace saltus {

RowSteps::RowSteps(const RunOptions& run) {
  constexpr double smaller = 1.0 / 64;  // hardly shorter at such orders, and what steps leave out is near rounding
  const double local = local_tolerance(run.tolerance);
  order = ClusterRoom::order_for(local);
  tolerance = smaller * local;
  ratio = std::pow(local, 1.0 / taylor_order(local)) / std::pow(tolerance, 1.0 / order);
  horizon = std::abs(run.until - run.from);
}

void RowSteps::begin(size_t count) {
  band.begin(count);
  least.resize(band.padded);
  std::fill(least.data() + count, least.data() + band.padded, 0.0);
}

double RowSteps::length_by(const LastTerms& terms) const {
  double shortest = HUGE_VAL;
  if (terms.last > 0) shortest = std::pow(tolerance / terms.last, 1.0 / order);
  // The other one rules only if it is smaller: its logarithm by that of the first.
  if (terms.previous > 0 && !(terms.previous * std::pow(shortest, order - 1) <= tolerance))
    shortest = std::min(shortest, std::pow(tolerance / terms.previous, 1.0 / (order - 1)));
  return 0.92 * shortest;
}

double RowSteps::natural_step(const Columns& columns, double first_scale, double& time_scale) {
  scale.resize(Columns::padded(columns.count));
  double natural = 0, so_far = reach > 0 ? reach : first_scale;
  for (int round = 0; round < 8; ++round) {
    const LastTerms terms = judge_last(columns, so_far, least.data(), scale.data());
    if (!std::isfinite(terms.last) || !std::isfinite(terms.previous)) return 0;
    natural = length_by(terms);
    if (!(natural > 0 && natural < 0.7 * so_far)) break;  // the reach was that of others
    so_far = natural;
  }
  time_scale = std::min(natural * ratio, horizon);
  if (natural > 0 && std::isfinite(natural)) reach = std::min(natural, horizon);
  return natural;
}

bool RowSteps::last_terms_small(const Columns& columns, double length) const {
  const double allowed = 8.0 * order * tolerance, power = std::pow(length, order + 1);
  for (size_t k = 0; k < columns.count; ++k) {
    const double rounding = 64 * eps * std::abs(columns.first[k]);
    if (!(std::abs(next[k]) * power <= allowed * scale[k] + rounding)) return false;
  }
  return true;
}

}  // namespace saltus
