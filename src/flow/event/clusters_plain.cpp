// Models of which all clusters are rows and all unknowns switches that keep one state each: blocks on a rough floor,
// in a chain, a lattice or a net. What an event does to them is told by rows, and the clusters that follow by what
// reads what alone.
//
//   switch u    surface x_p - a, felt by the rate of x_p and nothing else, and feeling no other sigma
//   event       by the rates of x_p on both sides of its surface
//   clusters    states that move, tied by what their rates read; a switch belongs to the one that it reads, or is its
//   own
//
// What drifts, and whatever rates do not tell, is left to the general case.
#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "flow/event/clusters.hpp"

namespace saltus {

void Clusters::find_plain() {
  if (!affine_ || jumps_.size() > 0 || m_ == 0 || unknowns_ != m_) return;
  for (int i = 0; i < n_; ++i) {
    if (!rate_row(i).affine) return;
  }
  std::vector<PlainSwitch> found;
  for (int u = 0; u < m_; ++u) {
    const AffineRows::Row watch = watch_row(u);
    if (!program_.moves(u) || program_.carried(u) || program_.point_degree(u) != 1) return;
    if (!program_.dependents(u).empty() || mode_tape_->degree[at(u)] != 1) return;
    if (!watch.affine || watch.time != 0 || watch.terms.size() != 1 || watch.terms[0].weight != 1) return;
    const int p = watch.terms[0].from;
    if (p >= n_ || !std::ranges::equal(reads_->moves(u), std::span(&p, 1))) return;
    if (!std::ranges::equal(reads_->kept_by(p), std::span(&u, 1))) return;
    if (!choice_row(u).affine || affine_->slope[at(u)] == 0 || reads_->own_states(u).empty()) return;
    for (const int v : reads_->choice_unknowns(u)) {
      if (v != u) return;
    }
    for (const int reader : reads_->unknown_readers(u)) {
      if (reader != p && reader != n_ + u) return;
    }
    const std::span<const int> choice = reads_->choice_states(u);
    for (const int j : reads_->rate_states(p)) {
      if (std::find(choice.begin(), choice.end(), j) == choice.end()) return;
    }
    found.push_back({p, -watch.constant});
  }
  plain_ = std::move(found);
}

// ---- events --------------------------------------------------------------------------------------------------------

/// The rate of a state at the time of the event, without an unknown.
double Clusters::rate_at(int i, int without, double& slope) const {
  const AffineRows::Row row = rate_row(i);
  double sum = row.constant + row.time * clock_.now();
  slope = 0;
  for (const AffineRows::Term& term : row.terms) {
    if (term.from < n_) {
      sum += term.weight * state_at(term.from);
    } else if (term.from - n_ == without) {
      slope += term.weight;
    } else {
      sum += term.weight * value_of(term.from - n_);
    }
  }
  return sum;
}

/// What the switch of a guard does next; nothing where more must be looked at.
std::optional<SimpleChoice> Clusters::choose_plainly(int u, const Guard& guard) const {
  double slope = 0;
  const double rate = rate_at(plain_[at(u)].state, u, slope), hold = affine_->hold[at(u)];
  if (guard.kind == GuardKind::surface) return by_sides(rate + slope, rate - slope, hold);
  if (guard.kind != GuardKind::sigma || guard.side == 0 || !(hold > 1)) return std::nullopt;
  return by_release(guard.side * rate + slope, std::abs(slope) * (1 + hold), guard.side);
}

/// The event of one switch. Nothing, with nothing changed, where more must be looked at.
std::optional<Clusters::Acted> Clusters::act_plainly(const Cluster& first, Moment& now) {
  if (plain_.empty() || first.guards.size() > 1) return std::nullopt;
  const int u = whole_item(first, first.guards[0]), p = plain_[at(u)].state;
  const std::span<const int> own = reads_->own_states(u);
  for (const int i : own) {
    if (drifting_[at(i)]) return std::nullopt;
  }
  const std::optional<SimpleChoice> choice = choose_plainly(u, first.guards[0]);
  if (!choice) return std::nullopt;
  tell_plainly(first, *choice, now);
  ++events_;
  if (recorder_.ended()) return Acted::done;
  absorb(first.place);
  remember_plainly(first);
  x_[at(p)] = plain_[at(u)].value;
  Change& change = change_;
  change.letters.clear();
  if (letter(u) != choice->letter) change.letters.push_back(u);
  set_letter(u, choice->letter);
  known_[at(u)] = choice->leading;
  change.states.assign(own.begin(), own.end());
  change.unknowns.assign(1, u);
  change.jumps.clear();
  change.moved.assign(own.size(), 0);
  change.rates.clear();
  double slope = 0;
  for (const int i : own) change.rates.push_back(i == p ? 1 : rate_at(i, -1, slope));
  return apply(change) ? Acted::done : Acted::too_large;
}

/// As `tell`.
void Clusters::tell_plainly(const Cluster& first, const SimpleChoice& choice, Moment& now) {
  const double t = clock_.now();
  const int u = whole_item(first, first.guards[0]);
  if (!recorder_.tells(t)) return recorder_.count(t, choice.letter == '0' && letter(u) != '0');
  assemble(clock_, now);
  Transition whole{.t = t, .before = mode_, .after = mode_};
  whole.guards = whole_guards(first);
  whole.after.switches[at(u)] = choice.letter;
  whole.x_minus = whole.x_plus = now.x;
  whole.x_plus[at(plain_[at(u)].state)] = plain_[at(u)].value;
  now.x = whole.x_plus;
  now.mode = whole.after;
  recorder_.happened(whole, now);
}

/// As `remember`, of a cluster that has ended there.
void Clusters::remember_plainly(const Cluster& first) {
  const int u = whole_item(first, first.guards[0]);
  Past& past = next_past();
  past.guards = first.guards;
  past.guards[0].item = u;
  past.unknowns.assign(1, u);
  past.letters.assign(1, letter(u));
  past.hit.clear();
  const std::span<const int> own = reads_->own_states(u);
  past.states.assign(own.begin(), own.end());
  for (const int i : first.moving) {
    if (past.states.size() >= largest_past) break;
    if (!std::binary_search(own.begin(), own.end(), i)) past.states.push_back(i);
  }
  past.x.clear();
  for (const int i : past.states) past.x.push_back(x_[at(i)]);
  past.x[static_cast<size_t>(std::find(own.begin(), own.end(), plain_[at(u)].state) - own.begin())] =
      plain_[at(u)].value;
}

// ---- clusters ------------------------------------------------------------------------------------------------------

/// Ties what moves in the pool. False where something drifts.
bool Clusters::tie_plainly() {
  for (size_t k = 0; k < pool_.size(); ++k) {
    const int i = pool_[k];
    if (i >= n_ || !moving_[at(i)]) continue;
    bool tied = false;
    const std::span<const int> read = reads_->rate_states(i);
    for (const int j : read) {
      if (!moving_[at(j)]) continue;
      if (place_[at(j)] < 0) {
        if (drifting_[at(j)]) return false;
        absorb(cluster_of_state_[at(j)]);
      }
      const int other = place_[at(j)];
      if (groups_[k] != groups_[at(other)]) groups_[at(group_of(static_cast<int>(k)))] = group_of(other);
      tied = true;
    }
    if (!tied && !read.empty() && !reads_->rate_time(i)) return false;
    drifting_[at(i)] = 0;
  }
  return true;
}

/// The group that a switch reads; none: no or several ones, or a cluster that is not in the pool.
int Clusters::group_read_by(int u) {
  const auto group_at = [&](int j) { return place_[at(j)] < 0 ? -1 : group_of(place_[at(j)]); };
  if (!active(u)) return moving_[at(plain_[at(u)].state)] ? group_at(plain_[at(u)].state) : -1;
  int found = -1;
  for (const int j : reads_->choice_states(u)) {
    if (!moving_[at(j)]) continue;
    const int group = group_at(j);
    if (group < 0 || (found >= 0 && found != group)) return -1;
    found = group;
  }
  return found;
}

bool Clusters::regroup_plainly() {
  if (!tie_plainly()) return regroup();
  draft_count_ = 0;
  draft_of_.assign(pool_.size(), -1);
  const auto draft_for = [&](int group) -> Draft& {
    int fresh = -1, &number = group < 0 ? fresh : draft_of_[at(group)];
    if (number < 0) {
      number = static_cast<int>(draft_count_++);
      if (draft_count_ > drafts_.size()) drafts_.emplace_back();
      Draft& draft = drafts_[at(number)];
      draft.moving.clear();
      draft.part.unknowns.clear();
      draft.part.jumps.clear();
      draft.room = nullptr;
    }
    return drafts_[at(number)];
  };
  for (size_t k = 0; k < pool_.size(); ++k) {
    const int i = pool_[k];
    if (i < n_ && moving_[at(i)]) draft_for(group_of(static_cast<int>(k))).moving.push_back(i);
  }
  for (const int element : pool_) {
    if (element >= n_) draft_for(group_read_by(element - n_)).part.unknowns.push_back(element - n_);
  }
  clear_pool();
  for (const bool moves : {true, false}) {  // what drives others comes before them
    for (Draft& draft : std::span(drafts_).first(draft_count_)) {
      if (draft.moving.empty() == moves) continue;
      for (std::vector<int>* list : {&draft.moving, &draft.part.unknowns}) {
        if (!std::is_sorted(list->begin(), list->end())) std::sort(list->begin(), list->end());
      }
      make_cluster(draft);
    }
  }
  return true;
}

}  // namespace saltus
