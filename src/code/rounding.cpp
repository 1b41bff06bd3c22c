#include "code/rounding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/index.hpp"
#include "code/jet.hpp"

namespace saltus {
namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();

}  // namespace

Rounding::Rounding(const Tape& tape, std::span<const double> parameters)
    : tape_(&tape), value_(at(tape.slots), 0.0), error_(at(tape.slots), 0.0) {
  Jet<double> jet(tape, 0);
  jet.bind(parameters);
  for (int s = 0; s < tape.slots; ++s) {
    value_[at(s)] = jet[s][0];
    error_[at(s)] = eps * std::abs(jet[s][0]);
  }
}

Rounding::Rounding(const Tape& tape, std::span<const double> parameters, std::span<const size_t> outputs)
    : Rounding(tape, parameters) {
  std::vector<char> needed(at(tape.slots), 0);
  for (const size_t output : outputs) needed[at(tape.outputs[output])] = 1;
  const auto pick = [&](const std::vector<Operation>& all) {
    std::vector<Operation> picked;
    for (auto o = all.rbegin(); o != all.rend(); ++o) {
      const auto own = needed.begin() + o->out;
      if (std::none_of(own, own + slots_of(o->instr), [](char c) { return c != 0; })) continue;
      needed[at(o->a)] = needed[at(o->b)] = 1;
      picked.push_back(*o);
    }
    std::reverse(picked.begin(), picked.end());
    return picked;
  };
  Stages& own = own_.emplace();
  own.bound = pick(tape.bound);
  own.free = pick(tape.free);
  own.timed = pick(tape.timed);
  own.linear = pick(tape.linear);
}

const std::vector<Operation>& Rounding::dependent() {
  if (dependent_) return *dependent_;
  std::vector<Operation>& found = dependent_.emplace();
  std::vector<char> depends(at(tape_->slots), 0);
  for (const auto* inputs : {&tape_->sigmas, &tape_->lambdas, &tape_->counters}) {
    for (const int slot : *inputs) {
      if (slot >= 0) depends[at(slot)] = 1;
    }
  }
  for (const auto* operations : {&stage(&Tape::linear, &Stages::linear), &stage(&Tape::timed, &Stages::timed),
                                 &stage(&Tape::free, &Stages::free), &stage(&Tape::bound, &Stages::bound)}) {
    for (const Operation& o : *operations) {
      if (!depends[at(o.a)] && !depends[at(o.b)]) continue;
      std::fill_n(depends.begin() + o.out, slots_of(o.instr), 1);
      found.push_back(o);
    }
  }
  return found;
}

template <class Error>
bool Rounding::set(int slot, double v, const Error& error) {
  if (slot < 0 || std::bit_cast<uint64_t>(value_[at(slot)]) == std::bit_cast<uint64_t>(v)) return false;
  value_[at(slot)] = v;
  error_[at(slot)] = error(v);
  return true;
}

void Rounding::evaluate(std::span<const double> x, double t, std::span<const double> sigma,
                        std::span<const double> counters, std::span<const double> lambda) {
  const auto rounded = [](double v) { return eps * std::abs(v); };
  // Plus and minus one are exact; a sigma that was solved for is not.
  const auto solved = [](double u) { return std::abs(u) == 1 ? 0 : eps * std::abs(u); };
  const auto exact = [](double) { return 0.0; };
  bool later = !evaluated_, moved = false, counted = false, changed = false;
  later |= set(tape_->time, t, rounded);
  for (size_t i = 0; i < x.size(); ++i) moved |= set(tape_->states[i], x[i], rounded);
  for (size_t i = 0; i < counters.size(); ++i) counted |= set(tape_->counters[i], counters[i], exact);
  for (size_t i = 0; i < sigma.size(); ++i) changed |= set(tape_->sigmas[i], sigma[i], solved);
  for (size_t i = 0; i < lambda.size(); ++i) changed |= set(tape_->lambdas[i], lambda[i], solved);
  evaluated_ = true;
  if (!later && !moved) {
    if (counted || changed) run(dependent());
    return;
  }
  if (later || counted) {  // counters are steps in time
    run(stage(&Tape::linear, &Stages::linear));
    run(stage(&Tape::timed, &Stages::timed));
  }
  run(stage(&Tape::free, &Stages::free));
  run(stage(&Tape::bound, &Stages::bound));
}

/// Each operation: its value, the errors of its arguments times its slopes, and its own rounding.
void Rounding::run(const std::vector<Operation>& operations) {
  for (const Operation& o : operations) {
    const double a = value_[at(o.a)], b = value_[at(o.b)], ea = error_[at(o.a)], eb = error_[at(o.b)];
    double v = 0, e = 0;
    switch (o.instr) {
      case Instr::add: v = a + b, e = ea + eb; break;
      case Instr::sub: v = a - b, e = ea + eb; break;
      case Instr::neg: v = -a, e = ea; break;
      case Instr::add_c: v = a + b, e = ea + eb; break;
      case Instr::rsub_c: v = b - a, e = ea + eb; break;
      case Instr::scale:
      case Instr::mul: v = a * b, e = std::abs(a) * eb + std::abs(b) * ea; break;
      case Instr::square: v = a * a, e = 2 * std::abs(a) * ea; break;
      case Instr::one_minus_square: v = (1 - a) * (1 + a), e = 2 * std::abs(a) * ea; break;
      case Instr::pow:
        v = std::pow(a, b);
        e = std::abs(v) * (std::abs(b / a) * ea + std::abs(std::log(std::abs(a))) * eb);
        break;
      case Instr::div:
      case Instr::div_c: v = a / b, e = (ea + std::abs(v) * eb) / std::abs(b); break;
      case Instr::recip: v = b / a, e = (eb + std::abs(v) * ea) / std::abs(a); break;
      case Instr::power:
        v = std::pow(a, b);
        e = a != 0 ? std::abs(b * v / a) * ea : HUGE_VAL;
        if (b > 0)
          e = std::min(e, std::max(1.0, b) * std::pow(std::abs(a) + ea, b));  // next to zero the slope is no bound
        break;
      case Instr::sqrt: v = std::sqrt(a), e = std::min(v > 0 ? ea / (2 * v) : HUGE_VAL, std::sqrt(ea)); break;
      case Instr::cbrt: v = std::cbrt(a), e = std::min(v != 0 ? ea / (3 * v * v) : HUGE_VAL, 2 * std::cbrt(ea)); break;
      case Instr::exp: v = std::exp(a), e = v * ea; break;
      case Instr::logistic: {
        v = 1 / (1 + std::exp(a));
        const double slope = v / (1 + std::exp(-a));
        e = slope * ea;
        value_[at(o.out + 1)] = slope;
        error_[at(o.out + 1)] = e + 2 * eps * slope;
        break;
      }
      case Instr::sin_cos:
      case Instr::sin_cos_t:
        v = std::sin(a), e = ea;
        value_[at(o.out + 1)] = std::cos(a);
        error_[at(o.out + 1)] = ea + eps;
        break;
      case Instr::sinh_cosh:
        v = std::sinh(a), e = std::cosh(a) * ea;
        value_[at(o.out + 1)] = std::cosh(a);
        error_[at(o.out + 1)] = std::abs(v) * ea + eps * std::cosh(a);
        break;
      case Instr::tan:
      case Instr::tanh: {
        const double sign = o.instr == Instr::tan ? 1 : -1;
        v = o.instr == Instr::tan ? std::tan(a) : std::tanh(a);
        value_[at(o.out + 1)] = 1 + sign * v * v;
        e = std::abs(value_[at(o.out + 1)]) * ea;
        error_[at(o.out + 1)] = 2 * std::abs(v) * e + eps;
        break;
      }
      case Instr::log: v = std::log(a), e = ea / std::abs(a); break;
      case Instr::expm1:
        v = std::expm1(a), e = std::exp(a) * ea;
        value_[at(o.out + 1)] = std::exp(a);
        error_[at(o.out + 1)] = e + eps * std::exp(a);
        break;
      case Instr::log1p: v = std::log1p(a), e = ea / std::abs(b); break;
      case Instr::integral: __builtin_unreachable();  // no tape has it
      case Instr::atan: {
        const double nearest = std::max(std::abs(a) - ea, 0.0);
        v = std::atan(a), e = ea / (1 + nearest * nearest);
        break;
      }
      case Instr::asin: v = std::asin(a), e = ea / std::abs(b); break;
      case Instr::acos: v = std::acos(a), e = ea / std::abs(b); break;
      case Instr::atan2: {
        const double r = a * a + b * b;
        v = std::atan2(a, b), e = (std::abs(b) * ea + std::abs(a) * eb) / r;
        value_[at(o.out + 1)] = r;
        error_[at(o.out + 1)] = 2 * (std::abs(a) * ea + std::abs(b) * eb) + eps * r;
        break;
      }
    }
    value_[at(o.out)] = v;
    error_[at(o.out)] = e + eps * std::abs(v);
  }
}

int Rounding::sign(size_t output, double bounds) const {
  const double v = value(output);
  if (!(std::abs(v) > bounds * error(output))) return 0;
  return v > 0 ? 1 : -1;
}

}  // namespace saltus
