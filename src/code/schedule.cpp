#include "code/schedule.hpp"

namespace saltus {

Schedule make_schedule(const Tape& tape, std::span<const size_t> outputs, std::span<const int> varying) {
  const size_t slots = static_cast<size_t>(tape.slots);
  std::vector<bool> varies(slots, false), needed(slots, false);
  const auto vary = [&](int slot) {
    if (slot >= 0) varies[static_cast<size_t>(slot)] = true;
  };
  vary(tape.time);
  for (const int s : tape.states) vary(s);
  for (const int s : varying) vary(s);
  const auto owned = [&](const Operation& o, auto&& visit) {
    for (int i = 0; i < slots_of(o.instr); ++i) visit(static_cast<size_t>(o.out + i));
  };
  const auto spread = [&](const std::vector<Operation>& operations) {
    for (const Operation& o : operations) {
      if (varies[static_cast<size_t>(o.a)] || varies[static_cast<size_t>(o.b)])
        owned(o, [&](size_t slot) { varies[slot] = true; });
    }
  };
  for (const auto* list : {&tape.linear, &tape.timed, &tape.free, &tape.bound}) spread(*list);

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
