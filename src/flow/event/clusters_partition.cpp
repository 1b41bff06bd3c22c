// Which states rest, and which clusters the others fall into.
#include <algorithm>
#include <numeric>

#include "base/index.hpp"

#include "flow/event/clusters.hpp"

namespace saltus {

// ---- rest ----------------------------------------------------------------------------------------------------------

void Clusters::settle(std::span<const int> candidates, std::span<const double> rates, std::span<const int> unknowns) {
  ++judging_;
  for (const int i : candidates) {
    judged_[at(i)] = judging_;
    moving_[at(i)] = 1;
    pin_[at(i)] = -1;
  }
  // A surface that is kept pins the only one of its states that does not rest otherwise.
  const auto only_moving = [&](int u) {
    int found = -1;
    for (const int i : reads_->moves[u]) {
      if (moving_[at(i)]) found = found == -1 ? i : -2;
    }
    return found;
  };
  std::vector<int>& ready = woken_;
  ready.clear();
  for (const int u : unknowns) {
    if (active(u)) ready.push_back(u);
  }
  while (!ready.empty()) {
    const int u = ready.back();
    ready.pop_back();
    const int i = only_moving(u);
    if (i < 0 || judged_[at(i)] != judging_) continue;
    moving_[at(i)] = 0;
    pin_[at(i)] = u;
    for (const int v : reads_->kept_by[i]) {
      if (active(v)) ready.push_back(v);
    }
  }
  // What has no rate and reads nothing that moves has none later.
  for (size_t k = 0; k < candidates.size(); ++k) {
    const int i = candidates[k];
    if (!moving_[at(i)] || rates[k] != 0 || reads_->rate_time[at(i)]) continue;
    const std::span<const int> unknown = reads_->rate_unknowns[i];
    if (std::none_of(unknown.begin(), unknown.end(), [&](int u) { return active(u); })) moving_[at(i)] = 0;
  }
  for (bool again = true; again;) {
    again = false;
    for (const int i : candidates) {
      if (moving_[at(i)] || pin_[at(i)] >= 0) continue;
      const std::span<const int> read = reads_->rate_states[i];
      if (std::none_of(read.begin(), read.end(), [&](int j) { return moving_[at(j)] != 0; })) continue;
      moving_[at(i)] = again = true;
    }
  }
}

void Clusters::wake_readers_of_state(int j) {
  woken_.assign(1, j);
  while (!woken_.empty()) {
    const int i = woken_.back();
    woken_.pop_back();
    for (const int reader : reads_->state_readers[i]) wake(reader);
    if (!moving_[at(i)]) continue;
    for (const int u : reads_->kept_by[i]) {  // what was kept by resting on it follows it now
      for (const int other : reads_->moves[u]) {
        if (pin_[at(other)] == u && judged_[at(other)] != judging_) set_moving(other);
      }
    }
  }
}

void Clusters::wake_readers_of_unknown(int u) {
  woken_.clear();
  for (const int reader : reads_->unknown_readers[u]) wake(reader);
  if (woken_.empty()) return;
  for (const int i : std::vector<int>(woken_)) wake_readers_of_state(i);
}

void Clusters::wake(int reader) {
  if (reader >= n_) return absorb(cluster_of_unknown_[at(reader - n_)]);
  if (judged_[at(reader)] == judging_) return;
  if (moving_[at(reader)]) return absorb(cluster_of_state_[at(reader)]);
  if (pin_[at(reader)] >= 0) return absorb(cluster_of_unknown_[at(pin_[at(reader)])]);
  set_moving(reader);
}

void Clusters::set_moving(int i) {
  moving_[at(i)] = 1;
  pin_[at(i)] = -1;
  pool_states_.push_back(i);
  woken_.push_back(i);
}

/// The cluster ends here; what it consists of is in the pool, at the time of the event.
void Clusters::absorb(int cluster) {
  if (cluster < 0) return;
  Cluster& c = *clusters_[at(cluster)];
  const double tau = c.clock.until(clock_);
  read_states(c, tau, x_);
  for (const int k : c.moving) pool_states_.push_back(c.part.states[at(k)]);
  for (const int u : c.part.unknowns) {
    pool_unknowns_.push_back(u);
    if (tau != 0) known_[at(u)] = 0;
  }
  remove(c);
}

/// Clusters end here; what they drive is in the pool, they are not.
void Clusters::dissolve(std::span<const int> places) {
  for (const int place : places) clusters_[at(place)]->alive = false;
  for (const int place : places) remove(*clusters_[at(place)]);
}

void Clusters::absorb_driven(const Cluster& c) {
  for (const auto& [place, birth] : c.driven) {
    const Cluster& other = *clusters_[at(place)];
    if (other.alive && other.birth == birth) absorb(place);
  }
}

void Clusters::remove(Cluster& c) {
  const double length = std::abs(c.clock.until(clock_));
  for (const int k : c.moving) cluster_of_state_[at(c.part.states[at(k)])] = -1;
  for (const int u : c.part.unknowns) {
    if (u < m_ && letter(u) == '0') recorder_.slid(u, length);
  }
  for (const int u : c.part.unknowns) cluster_of_unknown_[at(u)] = -1;
  c.alive = false;
  absorb_driven(c);
  c.driven.clear();
  free_.push_back(c.place);
}

// ---- clusters ------------------------------------------------------------------------------------------------------

/// Whether an unknown is solved for and something that moves feels it.
bool Clusters::moves_something(int u) const {
  const std::span<const int> readers = reads_->unknown_readers[u];
  return active(u) && std::any_of(readers.begin(), readers.end(), [&](int r) { return r < n_ && moving_[at(r)]; });
}

/// What is solved together with an unknown; and where it moves something, all that its equation reads.
template <class Visit>
void Clusters::bonds_of_unknown(int u, const Visit& visit) const {
  if (!active(u)) return;
  for (const int v : reads_->choice_unknowns[u]) {
    if (v != u && active(v)) visit(n_ + v);
  }
  if (!moves_something(u)) return;
  for (const int j : reads_->choice_states[u]) {
    if (moving_[at(j)]) visit(j);
  }
  for (const int reader : reads_->unknown_readers[u]) {
    if (reader < n_ ? moving_[at(reader)] != 0 : active(reader - n_)) visit(reader);
  }
}

/// What moves and is read by an unknown that moves nothing itself: its surface, or the equation that keeps it.
template <class Visit>
void Clusters::watched_by(int u, const Visit& visit) const {
  const auto state = [&](int j) {
    if (moving_[at(j)]) visit(j);
  };
  for (const int j : reads_->watch_states[u]) state(j);
  if (!active(u)) return;
  for (const int j : reads_->choice_states[u]) state(j);
  for (const int p : reads_->moves[u]) {
    if (pin_[at(p)] != u) continue;
    for (const int j : reads_->rate_states[p]) state(j);
  }
}

template <class Visit>
void Clusters::bonds_of_state(int i, const Visit& visit) const {
  for (const int j : reads_->rate_states[i]) {
    if (moving_[at(j)]) visit(j);
  }
  for (const int u : reads_->rate_unknowns[i]) {
    if (active(u)) visit(n_ + u);
  }
}

/// Clusters that something in the pool belongs to join it.
void Clusters::complete_pool() {
  const auto join = [&](int element) {
    if (const int cluster = cluster_of(element); cluster >= 0) absorb(cluster);
  };
  for (const auto& [a, b] : bonds_) {
    join(a);
    join(b);
  }
  for (size_t s = 0, u = 0; s < pool_states_.size() || u < pool_unknowns_.size();) {
    if (s < pool_states_.size()) bonds_of_state(pool_states_[s++], join);
    if (u < pool_unknowns_.size()) bonds_of_unknown(pool_unknowns_[u++], join);
  }
}

/// Groups of the pool: what moves each other is one; surfaces that read one group alone are added to it.
void Clusters::group_pool() {
  const size_t states = pool_states_.size(), count = states + pool_unknowns_.size();
  parent_.resize(count);
  std::iota(parent_.begin(), parent_.end(), size_t{0});
  for (size_t k = 0; k < states; ++k) place_[at(pool_states_[k])] = static_cast<int>(k);
  for (size_t k = states; k < count; ++k) place_[at(n_ + pool_unknowns_[k - states])] = static_cast<int>(k);
  const auto tie = [&](size_t k, int element) {
    if (place_[at(element)] >= 0) parent_[root(k)] = root(at(place_[at(element)]));
  };
  for (size_t k = 0; k < states; ++k) bonds_of_state(pool_states_[k], [&](int e) { tie(k, e); });
  for (size_t k = states; k < count; ++k) bonds_of_unknown(pool_unknowns_[k - states], [&](int e) { tie(k, e); });
  for (const auto& [a, b] : bonds_) {
    if (place_[at(a)] >= 0) tie(at(place_[at(a)]), b);
  }
  // What each group of surfaces reads: nothing yet, one group of the pool, or more.
  constexpr int nothing = -1, several = -2;
  std::vector<int>& read = reads_group_;
  read.assign(count, nothing);
  const auto has_states = [&](size_t group) { return moves_[group] != 0; };
  moves_.assign(count, 0);
  for (size_t k = 0; k < states; ++k) moves_[root(k)] = 1;
  for (size_t k = states; k < count; ++k) {
    const size_t group = root(k);
    if (has_states(group)) continue;
    watched_by(pool_unknowns_[k - states], [&](int j) {
      const int place = place_[at(j)], other = place < 0 ? several : static_cast<int>(root(at(place)));
      read[group] = read[group] == nothing || read[group] == other ? other : several;
    });
  }
  for (size_t k = states; k < count; ++k) {
    const size_t group = root(k);
    if (group == k && read[k] >= 0) parent_[k] = at(read[k]);
  }
  for (const int i : pool_states_) place_[at(i)] = -1;
  for (const int u : pool_unknowns_) place_[at(n_ + u)] = -1;
  for (size_t k = 0; k < count; ++k) parent_[k] = root(k);
}

bool Clusters::regroup() {
  bonds_.clear();
  for (size_t bonds = 1; bonds_.size() != bonds;) {
    bonds = bonds_.size();
    complete_pool();
    group_pool();
    // Members of each group one behind the other.
    const size_t states = pool_states_.size(), count = parent_.size();
    order_.resize(count);
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::sort(order_.begin(), order_.end(),
              [&](size_t a, size_t b) { return parent_[a] != parent_[b] ? parent_[a] < parent_[b] : a < b; });
    draft_count_ = 0;
    for (size_t first = 0; first < count;) {
      if (draft_count_ == drafts_.size()) drafts_.emplace_back();
      Draft& draft = drafts_[draft_count_++];
      std::vector<int>& unknowns = draft.part.unknowns;
      draft.moving.clear();
      unknowns.clear();
      size_t last = first;
      for (; last < count && parent_[order_[last]] == parent_[order_[first]]; ++last) {
        const size_t k = order_[last];
        (k < states ? draft.moving : unknowns).push_back(k < states ? pool_states_[k] : pool_unknowns_[k - states]);
      }
      first = last;
      std::sort(draft.moving.begin(), draft.moving.end());
      std::sort(unknowns.begin(), unknowns.end());
      if (!complete(draft)) return false;
    }
  }
  pool_states_.clear();
  pool_unknowns_.clear();
  for (Draft& draft : std::span(drafts_).first(draft_count_)) {
    if (!draft.moving.empty()) make_cluster(draft);
  }
  for (Draft& draft : std::span(drafts_).first(draft_count_)) {  // what they drive
    if (draft.moving.empty()) make_cluster(draft);
  }
  return true;
}

/// The states of a part, with those that follow if what is kept is let go.
void Clusters::add_followers(Subsystem& part) {
  std::vector<int>& states = part.states;
  ++listing_;
  for (const int i : states) listed_[at(i)] = listing_;
  const auto add = [&](int i) {
    if (listed_[at(i)] == listing_) return;
    listed_[at(i)] = listing_;
    states.push_back(i);
  };
  const auto follow = [&](int reader) {
    if (reader < n_ && !moving_[at(reader)] && pin_[at(reader)] < 0) add(reader);
  };
  for (const int u : part.unknowns) {
    for (const int p : reads_->moves[u]) {
      if (pin_[at(p)] == u) add(p);
    }
    for (const int d : reads_->hits[u]) add(d);
    for (const int reader : reads_->unknown_readers[u]) follow(reader);
  }
  for (size_t k = 0; k < states.size(); ++k) {
    for (const int reader : reads_->state_readers[states[k]]) follow(reader);
  }
  std::sort(states.begin(), states.end());
}

/// All states of a cluster: those it would have a program for.
std::vector<int> Clusters::states_of(const Cluster& c) {
  if (c.room) return c.part.states;
  Subsystem part{.states = c.part.states, .unknowns = c.part.unknowns};
  add_followers(part);
  return part.states;
}

/// The room of a cluster that needs one, with what would follow in it; and whether what is read besides rests:
/// otherwise it is bonded. False where that cluster is too large: the whole is as fast.
bool Clusters::complete(Draft& draft) {
  draft.part.states = draft.moving;
  draft.room = nullptr;
  if (is_affine(draft)) return true;
  if (2 * draft.moving.size() > at(n_)) return false;
  add_followers(draft.part);
  if (2 * draft.part.states.size() > at(n_)) return false;
  draft.room = find_room(draft.part);
  const int own = draft.moving.empty() ? n_ + draft.part.unknowns.front() : draft.moving.front();
  for (const int i : draft.part.outside) {
    if (moving_[at(i)] && !draft.moving.empty()) bonds_.emplace_back(own, i);
  }
  for (const int u : draft.part.fixed) {
    if (active(u)) bonds_.emplace_back(own, n_ + u);
  }
  return true;
}

void Clusters::make_cluster(Draft& draft) {
  int place = static_cast<int>(clusters_.size());
  if (free_.empty()) {
    clusters_.push_back(std::make_unique<Cluster>());
  } else {
    place = free_.back();
    free_.pop_back();
  }
  Cluster& c = *clusters_[at(place)];
  c.place = place;
  c.birth = ++births_;
  c.alive = true;
  std::swap(c.part, draft.part);
  c.room = draft.room;
  c.switches = static_cast<size_t>(std::lower_bound(c.part.unknowns.begin(), c.part.unknowns.end(), m_) -
                                   c.part.unknowns.begin());
  c.clock = clock_;
  c.x.clear();
  c.moving.clear();
  for (size_t k = 0; k < c.part.states.size(); ++k) {
    const int i = c.part.states[k];
    c.x.push_back(x_[at(i)]);
    if (!moving_[at(i)] || !std::binary_search(draft.moving.begin(), draft.moving.end(), i)) continue;
    row_of_state_[at(i)] = static_cast<int>(c.moving.size());
    c.moving.push_back(static_cast<int>(k));
    cluster_of_state_[at(i)] = place;
  }
  c.drives.clear();
  if (c.room) {
    for (const int i : c.part.outside) {
      if (moving_[at(i)]) add_drive(c, i);
      c.x.push_back(x_[at(i)]);
    }
    for (const int u : c.part.fixed) c.x.push_back(value_of(u));
  } else if (c.moving.empty()) {
    for (const int u : c.part.unknowns) {
      watched_by(u, [&](int j) {
        const auto same = [&](const Drive& d) { return d.source == cluster_of_state_[at(j)]; };
        if (std::none_of(c.drives.begin(), c.drives.end(), same)) add_drive(c, j);
      });
    }
  }
  for (const int u : c.part.unknowns) cluster_of_unknown_[at(u)] = place;
  start(c);
}

/// The next of the cluster's states moves in another cluster.
void Clusters::add_drive(Cluster& c, int i) {
  const int place = cluster_of_state_[at(i)];
  Cluster& source = *clusters_[at(place)];
  c.drives.push_back({static_cast<int>(c.x.size()), place, row_of_state_[at(i)]});
  if (source.driven.empty() || source.driven.back().first != c.place || source.driven.back().second != c.birth)
    source.driven.emplace_back(c.place, c.birth);
}

ClusterRoom* Clusters::find_room(Subsystem& part) {
  const PartShapes& shape = parts_->look(part);
  std::vector<std::unique_ptr<ClusterRoom>>& alike = rooms_[shape.hash()];
  const auto known = std::find_if(alike.begin(), alike.end(),
                                  [&](const auto& room) { return std::ranges::equal(room->key, shape.key()); });
  if (known != alike.end()) {
    parts_->bind(part, (*known)->made);
    return known->get();
  }
  SubsystemProgram made = parts_->make(part);
  parts_->bind(part, made);
  return alike.emplace_back(std::make_unique<ClusterRoom>(std::move(made), shape.key(), part.parameters, options_))
      .get();
}

}  // namespace saltus
