#include "code/schedule.hpp"

namespace saltus {
namespace {

template <class Visit>
void owned(const Operation& o, Visit&& visit) {
  for (int i = 0; i < slots_of(o.instr); ++i) visit(static_cast<size_t>(o.out + i));
}

/// Slots that have coefficients above order 0.
std::vector<bool> slots_that_vary(const Tape& tape, std::span<const int> varying) {
  std::vector<bool> varies(static_cast<size_t>(tape.slots), false);
  const auto vary = [&](int slot) {
    if (slot >= 0) varies[static_cast<size_t>(slot)] = true;
  };
  vary(tape.time);
  for (const int s : tape.states) vary(s);
  for (const int s : varying) vary(s);
  for (const auto* list : {&tape.linear, &tape.timed, &tape.free, &tape.bound}) {
    for (const Operation& o : *list) {
      if (varies[static_cast<size_t>(o.a)] || varies[static_cast<size_t>(o.b)])
        owned(o, [&](size_t slot) { varies[slot] = true; });
    }
  }
  return varies;
}

}  // namespace

std::optional<std::vector<int>> linear_drive(const Tape& tape, std::span<const int> varying) {
  const std::vector<bool> varies = slots_that_vary(tape, varying);
  std::vector<int> arguments;
  for (const auto* list : {&tape.timed, &tape.free, &tape.bound}) {
    for (const Operation& o : *list) {
      const bool a = varies[static_cast<size_t>(o.a)], b = varies[static_cast<size_t>(o.b)];
      if (keeps_linear(o.instr)) continue;
      switch (o.instr) {
        case Instr::sin_cos_t: arguments.push_back(o.a); break;
        case Instr::mul:
          if (a && b) return std::nullopt;
          break;
        case Instr::div:
          if (b) return std::nullopt;
          break;
        default:
          if (varies[static_cast<size_t>(o.out)]) return std::nullopt;
      }
    }
  }
  return arguments;
}

Schedule make_schedule(const Tape& tape, std::span<const size_t> outputs, std::span<const int> varying) {
  const std::vector<bool> varies = slots_that_vary(tape, varying);
  std::vector<bool> needed(static_cast<size_t>(tape.slots), false);

  for (const size_t i : outputs) needed[static_cast<size_t>(tape.outputs[i])] = true;
  std::vector<bool> keep_free(tape.free.size(), false), keep_bound(tape.bound.size(), false);
  const auto want = [&](const std::vector<Operation>& operations, std::vector<bool>& keep) {
    for (size_t k = operations.size(); k-- > 0;) {
      const Operation& o = operations[k];
      owned(o, [&](size_t slot) { keep[k] = keep[k] || needed[slot]; });
      if (keep[k]) needed[static_cast<size_t>(o.a)] = needed[static_cast<size_t>(o.b)] = true;
    }
  };
  want(tape.bound, keep_bound);
  want(tape.free, keep_free);

  Schedule out;
  for (const size_t i : outputs) out.wanted.push_back(tape.outputs[i]);
  const auto add = [&](const std::vector<Operation>& operations, const std::vector<bool>& keep,
                       std::vector<Operation>& start, std::vector<Operation>& next) {
    for (size_t k = 0; k < operations.size(); ++k) {
      if (!keep[k]) continue;
      const Operation& o = operations[k];
      start.push_back(o);
      if (varies[static_cast<size_t>(o.out)]) {
        next.push_back(o);
      } else {
        owned(o, [&](size_t slot) { out.still.push_back(static_cast<int>(slot)); });
      }
    }
  };
  add(tape.free, keep_free, out.free_start, out.free_next);
  const bool bound = !varying.empty();
  add(tape.bound, keep_bound, bound ? out.bound_start : out.free_start, bound ? out.bound_next : out.free_next);
  return out;
}

}  // namespace saltus
