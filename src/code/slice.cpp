#include "code/slice.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/index.hpp"
#include "code/jet.hpp"

namespace saltus {
namespace {

/// Whether a series may look constant where the function is not (see Tape::may_hide).
bool may_hide(Instr instr) {
  switch (instr) {
    case Instr::add:
    case Instr::sub:
    case Instr::neg:
    case Instr::add_c:
    case Instr::rsub_c:
    case Instr::scale:
    case Instr::mul:
    case Instr::square:
    case Instr::one_minus_square:
    case Instr::div_c:
    case Instr::sin_cos:
    case Instr::sin_cos_t: return false;
    default: return true;
  }
}

std::array<const std::vector<Operation>*, 4> stages(const Tape& tape) {
  return {&tape.linear, &tape.timed, &tape.free, &tape.bound};
}

bool same_operations(const std::vector<Operation>& a, const std::vector<Operation>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Operation& x, const Operation& y) {
    return x.instr == y.instr && x.out == y.out && x.a == y.a && x.b == y.b;
  });
}

uint64_t mix(uint64_t key, int word) {
  return (key ^ static_cast<uint64_t>(word + 1)) * 0x9e3779b97f4a7c15 + (key >> 29);
}

}  // namespace

void TapeSupport::clear() {
  states.clear();
  sigmas.clear();
  lambdas.clear();
  time = false;
}

Slicer::Slicer(const Tape& tape, std::span<const double> parameters)
    : tape_(&tape),
      source_(at(tape.slots)),
      value_(at(tape.slots), 0.0),
      seen_(at(tape.slots), 0),
      placed_(at(tape.slots), 0),
      place_(at(tape.slots), 0) {
  Jet<double> jet(tape, 0);
  jet.bind(parameters);
  for (int s = 0; s < tape.slots; ++s) value_[at(s)] = jet[s][0];
  const auto input = [&](const std::vector<int>& slots, Kind kind) {
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] >= 0) source_[at(slots[i])] = {kind, static_cast<int>(i)};
    }
  };
  input(tape.states, Kind::state);
  input(tape.sigmas, Kind::sigma);
  input(tape.lambdas, Kind::lambda);
  if (tape.time >= 0) source_[at(tape.time)] = {Kind::time, 0};
  for (const std::vector<Operation>* stage : stages(tape)) {
    starts_.push_back(static_cast<int>(all_.size()));
    for (const Operation& o : *stage) {
      for (int i = 0; i < slots_of(o.instr); ++i)
        source_[at(o.out + i)] = {Kind::result, static_cast<int>(all_.size())};
      all_.push_back(o);
    }
  }
}

bool has_second_argument(Instr instr) {
  switch (instr) {
    case Instr::add:
    case Instr::sub:
    case Instr::add_c:
    case Instr::rsub_c:
    case Instr::scale:
    case Instr::mul:
    case Instr::div:
    case Instr::div_c:
    case Instr::recip:
    case Instr::power:
    case Instr::pow:
    case Instr::atan:
    case Instr::asin:
    case Instr::acos:
    case Instr::atan2:
    case Instr::log1p: return true;
    default: return false;
  }
}

void Slicer::gather(size_t output, TapeSupport& support) {
  stack_.push_back(tape_->outputs[output]);
  while (!stack_.empty()) {
    const int slot = stack_.back();
    stack_.pop_back();
    const Source& source = source_[at(slot)];
    const int mark = source.kind == Kind::result ? all_[at(source.index)].out : slot;
    if (seen_[at(mark)] == now_) continue;
    seen_[at(mark)] = now_;
    switch (source.kind) {
      case Kind::constant: break;
      case Kind::time: support.time = true; break;
      case Kind::state: support.states.push_back(source.index); break;
      case Kind::sigma: support.sigmas.push_back(source.index); break;
      case Kind::lambda: support.lambdas.push_back(source.index); break;
      case Kind::result: {
        operations_.push_back(source.index);
        const Operation& o = all_[at(source.index)];
        stack_.push_back(o.a);
        if (has_second_argument(o.instr)) stack_.push_back(o.b);
        break;
      }
    }
  }
}

void Slicer::forget() {
  operations_.clear();
  ++now_;
}

int Slicer::put(int slot, int place) {
  placed_[at(slot)] = now_;
  place_[at(slot)] = place;
  return place;
}

int Slicer::place(int slot, Tape& out, std::vector<double>& parameters) {
  if (placed_[at(slot)] == now_) return place_[at(slot)];
  assert(source_[at(slot)].kind == Kind::constant);
  out.parameters.emplace_back(out.slots, static_cast<int>(parameters.size()));
  parameters.push_back(value_[at(slot)]);
  return put(slot, out.slots++);
}

void Slicer::write(std::span<const int> outputs, const SliceInputs& inputs, Tape& out,
                   std::vector<double>& parameters) {
  out.slots = 0;
  for (auto* list : {&out.states, &out.sigmas, &out.lambdas, &out.outputs}) list->clear();
  for (auto* list : {&out.linear, &out.timed, &out.free, &out.bound}) list->clear();
  out.numbers.clear();
  out.parameters.clear();
  out.constant.clear();
  out.may_hide = false;
  out.time = tape_->time >= 0 ? put(tape_->time, out.slots++) : -1;
  const auto input = [&](std::span<const int> whole, const std::vector<int>& slots, std::vector<int>& to) {
    for (const int i : whole) {
      if (slots[at(i)] >= 0) put(slots[at(i)], out.slots);
      to.push_back(out.slots++);
    }
  };
  input(inputs.states, tape_->states, out.states);
  input(inputs.fixed_sigmas, tape_->sigmas, out.states);
  input(inputs.fixed_lambdas, tape_->lambdas, out.states);
  input(inputs.sigmas, tape_->sigmas, out.sigmas);
  input(inputs.lambdas, tape_->lambdas, out.lambdas);
  const std::array<std::vector<Operation>*, 4> to{&out.linear, &out.timed, &out.free, &out.bound};
  std::sort(operations_.begin(), operations_.end());
  size_t stage = 0;
  for (const int index : operations_) {
    while (stage < 3 && index >= starts_[stage + 1]) ++stage;
    const Operation& o = all_[at(index)];
    const int a = place(o.a, out, parameters);
    const int b = has_second_argument(o.instr) ? place(o.b, out, parameters) : 0;
    to[stage]->push_back({o.instr, out.slots, a, b});
    out.may_hide = out.may_hide || (stage >= 2 && may_hide(o.instr));
    for (int i = 0; i < slots_of(o.instr); ++i) put(o.out + i, out.slots++);
  }
  for (const int output : outputs) {
    if (output < 0) out.numbers.emplace_back(out.slots, 0.0);
    const int slot = output < 0 ? -1 : tape_->outputs[at(output)];
    out.outputs.push_back(slot < 0 ? out.slots++ : place(slot, out, parameters));
    out.constant.push_back(slot < 0 || source_[at(slot)].kind == Kind::constant);
  }
  forget();
}

bool same_tape(const Tape& a, const Tape& b) {
  return a.slots == b.slots && a.time == b.time && a.parameters == b.parameters && a.numbers == b.numbers &&
         a.states == b.states && a.sigmas == b.sigmas && a.lambdas == b.lambdas && a.outputs == b.outputs &&
         same_operations(a.linear, b.linear) && same_operations(a.timed, b.timed) && same_operations(a.free, b.free) &&
         same_operations(a.bound, b.bound);
}

uint64_t tape_key(const Tape& tape, uint64_t key) {
  key = mix(key, tape.slots);
  for (const int slot : tape.outputs) key = mix(key, slot);
  for (const std::vector<Operation>* stage : stages(tape)) {
    key = mix(key, static_cast<int>(stage->size()));
    for (const Operation& o : *stage) key = mix(mix(mix(key, static_cast<int>(o.instr)), o.a), o.b);
  }
  return key;
}

}  // namespace saltus
