#include "flow/event/dependence.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace saltus {
namespace {

/// The lists in which each of `count` numbers occurs.
Lists turned(const std::vector<std::pair<const Lists*, int>>& lists, int count) {
  std::vector<std::vector<int>> readers(at(count));
  for (const auto& [list, shift] : lists) {
    for (int i = 0; i < list->size(); ++i) {
      for (const int item : (*list)[i]) {
        std::vector<int>& to = readers[at(item)];
        if (to.empty() || to.back() != i + shift) to.push_back(i + shift);
      }
    }
  }
  Lists out;
  for (const std::vector<int>& list : readers) out.add(list);
  return out;
}

std::vector<int> unknowns_in(const TapeSupport& support, int switches) {
  std::vector<int> out = support.sigmas;
  for (const int j : support.lambdas) out.push_back(switches + j);
  return out;
}

/// The relations found, list by list.
struct Found {
  Lists rate_states, rate_unknowns, state_readers, kept_by;
  Lists watch_states, choice_states, choice_unknowns, unknown_readers, moves, hits, own_states;
  Lists on_states, value_states, set_states, felt_unknowns, felt_jumps, jump_states;
  std::vector<char> rate_time;
};

/// States of the event of unknown u (Dependence::own_states).
std::vector<int> own_states_of(int u, const Found& reads) {
  constexpr size_t most = 16;
  std::vector<int> own(reads.watch_states[u].begin(), reads.watch_states[u].end());
  const auto has = [&](int i) { return std::find(own.begin(), own.end(), i) != own.end(); };
  for (const int i : reads.moves[u]) {
    if (!has(i)) own.push_back(i);
  }
  for (size_t k = 0; k < own.size() && own.size() < most; ++k) {
    for (const int j : reads.state_readers[own[k]]) {
      if (j >= reads.rate_states.size() || has(j) || reads.rate_time[at(j)]) continue;
      const std::span<const int> read = reads.rate_states[j], unknowns = reads.rate_unknowns[j];
      if (std::all_of(read.begin(), read.end(), has) &&
          std::all_of(unknowns.begin(), unknowns.end(), [&](int v) { return v == u; }))
        own.push_back(j);
    }
  }
  std::sort(own.begin(), own.end());
  const std::span<const int> read = reads.choice_states[u];
  const bool alone = std::all_of(read.begin(), read.end(), [&](int j) {
    const std::span<const int> felt = reads.rate_unknowns[j];
    return has(j) || std::find(felt.begin(), felt.end(), u) == felt.end();
  });
  if (!alone) own.clear();
  return own;
}

void put_in_order(std::vector<int>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

/// Lists the states that the formulas of a jump read and set.
void list_formulas(const LoweredJump& jump, Found& found) {
  std::vector<int> reads, sets;
  const auto add = [&](const Expr& formula) {
    for (const Expr& s : symbols_in(std::span(&formula, 1))) {
      if (s.is_symbol(SymbolKind::state)) reads.push_back(s.symbol().index);
    }
  };
  if (jump.when) add(*jump.when);
  for (const Assignment& a : jump.set) {
    add(a.value);
    sets.push_back(a.state);
  }
  put_in_order(reads);
  put_in_order(sets);
  found.value_states.add(reads);
  found.set_states.add(sets);
}

/// Who feels a jump, and the states that its event is about.
void list_felt(int k, int n, int unknowns, Found& found) {
  std::vector<int> felt, jumps{k}, states;
  for (const int i : found.set_states[k]) {
    states.push_back(i);
    for (const int reader : found.state_readers[i]) {
      if (reader >= n + unknowns)
        jumps.push_back(reader - n - unknowns);
      else if (reader >= n)
        felt.push_back(reader - n);
    }
  }
  put_in_order(felt);
  put_in_order(jumps);
  for (const int other : jumps) {
    const std::span<const int> read = found.on_states[other];
    states.insert(states.end(), read.begin(), read.end());
  }
  for (const int u : felt) {
    const std::span<const int> hit = found.hits[u];
    states.insert(states.end(), hit.begin(), hit.end());
  }
  put_in_order(states);
  found.felt_unknowns.add(felt);
  found.felt_jumps.add(jumps);
  found.jump_states.add(states);
}

}  // namespace

ListsPerItem::ListsPerItem(std::initializer_list<const Lists*> kinds, int items) {
  for (int i = 0; i < items; ++i) {
    first_.push_back(static_cast<uint32_t>(words_.size()));
    int end = static_cast<int>(kinds.size()) + 1;
    words_.push_back(end);
    for (const Lists* kind : kinds) words_.push_back(end += static_cast<int>((*kind)[i].size()));
    for (const Lists* kind : kinds) words_.insert(words_.end(), (*kind)[i].begin(), (*kind)[i].end());
  }
  words_.shrink_to_fit();
}

std::optional<Dependence> find_dependence(const Program& program, const ModeTape& mode, Subsystems& parts) {
  constexpr size_t densest = 64;  // entries per state, unknown and jump
  const int n = program.states(), m = program.switches(), unknowns = program.unknowns();
  const std::vector<LoweredJump>& jumps = program.model().form.jumps;
  const size_t most = densest * (at(n + unknowns) + jumps.size());
  Found found;
  TapeSupport support;
  for (int i = 0; i < n; ++i) {
    support.clear();
    parts.rate(i, support);
    found.rate_states.add(support.states);
    found.rate_unknowns.add(unknowns_in(support, m));
    found.rate_time.push_back(support.time);
    if (found.rate_states.items() + found.rate_unknowns.items() > most) return std::nullopt;
  }
  for (int u = 0; u < unknowns; ++u) {
    support.clear();
    parts.watch(u, support);
    found.watch_states.add(support.states);
    support.clear();
    parts.choice(u, support);
    found.choice_states.add(support.states);
    found.choice_unknowns.add(unknowns_in(support, m));
    if (found.choice_states.items() + found.choice_unknowns.items() > most) return std::nullopt;
    found.moves.add(mode.moves[at(u)]);
    std::vector<int> hit;
    if (u >= m) {
      for (const Assignment& a : program.model().form.gaps[at(u - m)].direction) hit.push_back(a.state);
    }
    found.hits.add(hit);
  }
  for (const LoweredJump& jump : jumps) {
    support.clear();
    parts.jump(found.on_states.size(), support);
    found.on_states.add(support.states);
    list_formulas(jump, found);
    if (found.on_states.items() + found.value_states.items() + found.set_states.items() > most) return std::nullopt;
  }
  found.state_readers = turned({{&found.rate_states, 0},
                                {&found.watch_states, n},
                                {&found.choice_states, n},
                                {&found.hits, n},
                                {&found.on_states, n + unknowns}},
                               n);
  found.unknown_readers = turned({{&found.rate_unknowns, 0}, {&found.choice_unknowns, n}}, unknowns);
  found.kept_by = turned({{&found.moves, 0}}, n);
  for (int u = 0; u < unknowns; ++u) found.own_states.add(own_states_of(u, found));
  for (int k = 0; k < std::ssize(jumps); ++k) {
    list_felt(k, n, unknowns, found);
    if (found.felt_unknowns.items() + found.felt_jumps.items() + found.jump_states.items() > most) return std::nullopt;
  }
  Dependence out;
  out.states_ = ListsPerItem({&found.rate_states, &found.rate_unknowns, &found.state_readers, &found.kept_by}, n);
  out.unknowns_ = ListsPerItem({&found.watch_states, &found.choice_states, &found.choice_unknowns,
                                &found.unknown_readers, &found.moves, &found.hits, &found.own_states},
                               unknowns);
  out.jumps_ =
      ListsPerItem({&found.on_states, &found.value_states, &found.felt_unknowns, &found.felt_jumps, &found.jump_states},
                   static_cast<int>(jumps.size()));
  out.rate_time_ = std::move(found.rate_time);
  return out;
}

}  // namespace saltus
