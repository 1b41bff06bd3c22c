#include "flow/turning.hpp"

#include "flow/thresholds.hpp"

namespace saltus {

void Turning::begin_run(bool always, bool may) {
  *this = {};
  always_ = always;
  may_ = may;
}

bool Turning::note_taylor(bool idle) {
  idle_row_ = idle ? idle_row_ + 1 : 0;
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
  idle_row_ = 0;
}

void Turning::note_failure() {
  now_ = false;
  idle_row_ = -most_implicit_steps;
}

}  // namespace saltus
