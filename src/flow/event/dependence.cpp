#include "flow/event/dependence.hpp"

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

}  // namespace

std::optional<Dependence> find_dependence(const Program& program, const ModeTape& mode, Subsystems& parts) {
  constexpr size_t densest = 64;  // entries per state and unknown
  const int n = program.states(), m = program.switches(), unknowns = program.unknowns();
  const size_t most = densest * at(n + unknowns);
  Dependence out;
  TapeSupport support;
  for (int i = 0; i < n; ++i) {
    support.clear();
    parts.rate(i, support);
    out.rate_states.add(support.states);
    out.rate_unknowns.add(unknowns_in(support, m));
    out.rate_time.push_back(support.time);
    if (out.rate_states.items() + out.rate_unknowns.items() > most) return std::nullopt;
  }
  for (int u = 0; u < unknowns; ++u) {
    support.clear();
    parts.watch(u, support);
    out.watch_states.add(support.states);
    support.clear();
    parts.choice(u, support);
    out.choice_states.add(support.states);
    out.choice_unknowns.add(unknowns_in(support, m));
    if (out.choice_states.items() + out.choice_unknowns.items() > most) return std::nullopt;
    out.moves.add(mode.moves[at(u)]);
    std::vector<int> hit;
    if (u >= m) {
      for (const Assignment& a : program.model().form.gaps[at(u - m)].direction) hit.push_back(a.state);
    }
    out.hits.add(hit);
  }
  out.state_readers =
      turned({{&out.rate_states, 0}, {&out.watch_states, n}, {&out.choice_states, n}, {&out.hits, n}}, n);
  out.unknown_readers = turned({{&out.rate_unknowns, 0}, {&out.choice_unknowns, n}}, unknowns);
  out.kept_by = turned({{&out.moves, 0}}, n);
  return out;
}

}  // namespace saltus
