#include "code/slice.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/index.hpp"
#include "code/jet.hpp"

namespace saltus {
namespace {

std::array<const std::vector<Operation>*, 4> stages(const Tape& tape) {
  return {&tape.linear, &tape.timed, &tape.free, &tape.bound};
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
  using Kind = TapeLeaf::Kind;
  for (int s = 0; s < tape.slots; ++s) source_[at(s)].leaf.index = s;
  const auto input = [&](const std::vector<int>& slots, Kind kind) {
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] >= 0) source_[at(slots[i])].leaf = {kind, static_cast<int>(i)};
    }
  };
  input(tape.states, Kind::state);
  input(tape.sigmas, Kind::sigma);
  input(tape.lambdas, Kind::lambda);
  if (tape.time >= 0) source_[at(tape.time)].leaf = {Kind::time, 0};
  for (const std::vector<Operation>* stage : stages(tape)) {
    starts_.push_back(static_cast<int>(all_.size()));
    for (const Operation& o : *stage) {
      for (int i = 0; i < slots_of(o.instr); ++i) source_[at(o.out + i)].operation = static_cast<int>(all_.size());
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
    const int mark = source.operation >= 0 ? all_[at(source.operation)].out : slot;
    if (seen_[at(mark)] == now_) continue;
    seen_[at(mark)] = now_;
    if (source.operation >= 0) {
      operations_.push_back(source.operation);
      const Operation& o = all_[at(source.operation)];
      stack_.push_back(o.a);
      if (has_second_argument(o.instr)) stack_.push_back(o.b);
      continue;
    }
    switch (source.leaf.kind) {
      case TapeLeaf::Kind::constant: break;
      case TapeLeaf::Kind::time: support.time = true; break;
      case TapeLeaf::Kind::state: support.states.push_back(source.leaf.index); break;
      case TapeLeaf::Kind::sigma: support.sigmas.push_back(source.leaf.index); break;
      case TapeLeaf::Kind::lambda: support.lambdas.push_back(source.leaf.index); break;
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

void Slicer::spell(std::span<const size_t> outputs, std::vector<int>& words, std::vector<TapeLeaf>& leaves) {
  int results = 0, count = 0;
  const auto name = [&](int slot) {
    if (placed_[at(slot)] != now_) {  // a leaf that is met for the first time
      leaves.push_back(source_[at(slot)].leaf);
      put(slot, -1 - count++);
      words.push_back(static_cast<int>(leaves.back().kind));
    }
    words.push_back(place_[at(slot)]);
  };
  std::sort(operations_.begin(), operations_.end());
  words.push_back(static_cast<int>(operations_.size()));
  words.push_back(static_cast<int>(outputs.size()));
  for (const int index : operations_) {
    const Operation& o = all_[at(index)];
    const auto stage = std::upper_bound(starts_.begin(), starts_.end(), index) - starts_.begin();
    words.push_back(static_cast<int>(o.instr));
    words.push_back(static_cast<int>(stage));
    name(o.a);
    if (has_second_argument(o.instr)) name(o.b);
    for (int i = 0; i < slots_of(o.instr); ++i) put(o.out + i, results++);
  }
  for (const size_t output : outputs) name(tape_->outputs[output]);
  forget();
}

int Slicer::place(int slot, Tape& out, std::vector<int>& constants) {
  if (placed_[at(slot)] == now_) return place_[at(slot)];
  assert(source_[at(slot)].operation < 0 && source_[at(slot)].leaf.kind == TapeLeaf::Kind::constant);
  out.parameters.emplace_back(out.slots, static_cast<int>(constants.size()));
  constants.push_back(slot);
  return put(slot, out.slots++);
}

void Slicer::write(std::span<const int> outputs, const SliceInputs& inputs, Tape& out, std::vector<int>& constants) {
  out.slots = 0;
  for (auto* list : {&out.states, &out.sigmas, &out.lambdas, &out.outputs}) list->clear();
  for (auto* list : {&out.linear, &out.timed, &out.free, &out.bound}) list->clear();
  out.numbers.clear();
  out.parameters.clear();
  out.constant.clear();
  out.may_hide = false;
  const auto is_constant = [&](int slot) {
    return source_[at(slot)].operation < 0 && source_[at(slot)].leaf.kind == TapeLeaf::Kind::constant;
  };
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
    const int a = place(o.a, out, constants);
    const int b = has_second_argument(o.instr) ? place(o.b, out, constants) : 0;
    to[stage]->push_back({o.instr, out.slots, a, b});
    out.may_hide = out.may_hide || (stage >= 2 && may_hide(o.instr));
    for (int i = 0; i < slots_of(o.instr); ++i) put(o.out + i, out.slots++);
  }
  for (const int output : outputs) {
    if (output < 0) out.numbers.emplace_back(out.slots, 0.0);
    const int slot = output < 0 ? -1 : tape_->outputs[at(output)];
    out.outputs.push_back(slot < 0 ? out.slots++ : place(slot, out, constants));
    out.constant.push_back(slot < 0 || is_constant(slot));
  }
  describe(out);
  forget();
}

}  // namespace saltus
