#include "flow/jumps.hpp"

#include <algorithm>
#include <cmath>

#include "flow/thresholds.hpp"

namespace saltus {

Jumps::Jumps(const Program& program, const std::vector<double>& parameters, double from) {
  const Form& form = program.model().form;
  const std::vector<SharedZero> shared = form.jumps.empty() ? std::vector<SharedZero>{} : zeros_of_jumps(form);
  for (size_t k = 0; k < form.jumps.size(); ++k) {
    const LoweredJump& j = form.jumps[k];
    Formulas f{.direction = j.direction, .lowered = &j, .shared = shared[k]};
    if (j.when) f.when.emplace(*j.when);
    for (const Assignment& a : j.set) f.set.emplace_back(a.state, Plain(a.value));
    jumps_.push_back(std::move(f));
  }
  begin_run(parameters, from);
}

void Jumps::begin_run(const std::vector<double>& parameters, double from) {
  for (Formulas& f : jumps_) {
    f.arm = {};
    if (!f.lowered->every) continue;
    f.every = constant_value(*f.lowered->every, parameters);
    f.phase = f.lowered->phase ? constant_value(*f.lowered->phase, parameters) : 0.0;
    f.next = std::floor((from - f.phase) / f.every);
    for (int round = 0; round < 2 && f.tick() <= from + same_time_bits * eps * std::abs(from); ++round) f.next += 1;
  }
}

bool Jumps::wanted(size_t k, int sign_after) const {
  const Direction d = jumps_[k].direction;
  return d == Direction::any || (d == Direction::rising) == (sign_after > 0);
}

double Jumps::next_tick() const {
  double first = HUGE_VAL;
  for (const Formulas& f : jumps_) {
    if (f.every > 0) first = std::min(first, f.tick());
  }
  return first;
}

std::vector<int> Jumps::ticking(double t, double resolution) const {
  std::vector<int> out;
  for (size_t k = 0; k < jumps_.size(); ++k) {
    if (has_clock(k) && jumps_[k].tick() <= t + resolution) out.push_back(static_cast<int>(k));
  }
  return out;
}

bool Jumps::note(size_t k, int sign, int lead) {
  Formulas& f = jumps_[k];
  if (f.every > 0) return false;
  f.arm.at_zero = sign == 0;
  f.arm.lead = lead;
  const int before = f.arm.side;
  if (sign != 0) {
    f.arm.side = sign;
    return before * sign < 0 && wanted(k, sign);
  }
  if (before == 0 || lead == before) return false;  // its crossing is done, it began here, or it turns back
  f.arm.side = 0;
  return wanted(k, -before);
}

void Jumps::fire(size_t k, double t) {
  Formulas& f = jumps_[k];
  f.arm.side = 0;
  if (f.every > 0) {
    f.next += 1;
    if (f.tick() <= t) f.next = std::floor((t - f.phase) / f.every) + 1;  // clocks too fast for time
  }
}

bool Jumps::holds(size_t k, const PlainInputs& inputs) {
  if (whole_.jumps) return whole_.jumps->holds(static_cast<size_t>(whole_.numbers[k]), spread(inputs));
  return !jumps_[k].when || (*jumps_[k].when)(inputs) != 0;
}

void Jumps::apply(size_t k, const PlainInputs& inputs, std::span<double> x) {
  if (whole_.jumps) {
    whole_.jumps->set(static_cast<size_t>(whole_.numbers[k]), spread(inputs), whole_.x);
    for (size_t i = 0; i < whole_.states.size(); ++i) x[i] = whole_.x[static_cast<size_t>(whole_.states[i])];
  } else {
    set(k, inputs, x);
  }
  jumps_[k].arm.side = 0;
}

/// Inputs as the formulas of the full system read them.
PlainInputs Jumps::spread(const PlainInputs& inputs) const {
  for (size_t i = 0; i < whole_.states.size(); ++i) whole_.x[static_cast<size_t>(whole_.states[i])] = inputs.states[i];
  return {.parameters = whole_.parameters, .states = whole_.x, .t = inputs.t};
}

void Jumps::set(size_t k, const PlainInputs& inputs, std::span<double> x) {
  values_.clear();
  for (auto& [state, formula] : jumps_[k].set) values_.push_back(formula(inputs));
  for (size_t s = 0; s < values_.size(); ++s) x[static_cast<size_t>(jumps_[k].set[s].first)] = values_[s];
}

}  // namespace saltus
