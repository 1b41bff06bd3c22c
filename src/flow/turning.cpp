#include "flow/turning.hpp"

#include <algorithm>
#include <cstdlib>

#include "flow/thresholds.hpp"

namespace saltus {

void Turning::begin_run(bool always, bool may) {
  *this = {};
  always_ = always;
  may_ = may;
}

bool Turning::note_taylor(bool idle, double length) {
  const double ratio = last_ > 0 ? length / last_ : 1;
  last_ = length;
  trend_ = ratio > trend_ratio ? std::max(trend_, 0) + 1 : ratio < 1 / trend_ratio ? std::min(trend_, 0) - 1 : 0;
  if (!idle) idle_row_ = 0;
  if (idle && std::abs(trend_) < clear_trend) ++idle_row_;
  if (!may_ || idle_row_ < (was_ ? few_idle_steps : many_idle_steps)) return false;
  now_ = was_ = true;
  implicit_row_ = 0;
  return true;
}

bool Turning::turn() {
  if (!may_) return false;
  now_ = was_ = true;
  implicit_row_ = 0;
  return true;
}

void Turning::note_implicit() {
  if (++implicit_row_ <= most_implicit_steps || always_) return;
  now_ = false;
  idle_row_ = few_idle_steps - 2;
}

void Turning::note_event() {
  now_ = false;
  idle_row_ = trend_ = 0;
  last_ = 0;
}

void Turning::note_failure() {
  now_ = false;
  idle_row_ = -most_implicit_steps;
}

}  // namespace saltus
