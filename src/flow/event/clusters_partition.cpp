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
    for (const int i : reads_->moves(u)) {
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
    for (const int v : reads_->kept_by(i)) {
      if (active(v)) ready.push_back(v);
    }
  }
  // A state without a rate that reads nothing that moves stays constant.
  for (size_t k = 0; k < candidates.size(); ++k) {
    const int i = candidates[k];
    if (!moving_[at(i)] || rates[k] != 0 || reads_->rate_time(i)) continue;
    const std::span<const int> unknown = reads_->rate_unknowns(i);
    if (std::none_of(unknown.begin(), unknown.end(), [&](int u) { return active(u); })) moving_[at(i)] = 0;
  }
  for (bool again = true; again;) {
    again = false;
    for (const int i : candidates) {
      if (moving_[at(i)] || pin_[at(i)] >= 0) continue;
      const std::span<const int> read = reads_->rate_states(i);
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
    for (const int reader : reads_->state_readers(i)) wake(reader);
    if (!moving_[at(i)]) continue;
    for (const int u : reads_->kept_by(i)) {  // what was kept by resting on it follows it now
      for (const int other : reads_->moves(u)) {
        if (pin_[at(other)] == u && judged_[at(other)] != judging_) set_moving(other);
      }
    }
  }
}

void Clusters::wake_readers_of_unknown(int u) {
  woken_.clear();
  for (const int reader : reads_->unknown_readers(u)) wake(reader);
  if (woken_.empty()) return;
  for (const int i : std::vector<int>(woken_)) wake_readers_of_state(i);
}

void Clusters::wake(int reader) {
  if (reader >= n_) return absorb(cluster_of(reader));
  if (judged_[at(reader)] == judging_) return;
  if (moving_[at(reader)]) return absorb(cluster_of_state_[at(reader)]);
  if (pin_[at(reader)] >= 0) return absorb(cluster_of_unknown_[at(pin_[at(reader)])]);
  set_moving(reader);
}

void Clusters::set_moving(int i) {
  moving_[at(i)] = 1;
  pin_[at(i)] = -1;
  add_to_pool(i);
  woken_.push_back(i);
}

void Clusters::add_to_pool(int element) {
  if (place_[at(element)] >= 0) return;
  place_[at(element)] = static_cast<int>(pool_.size());
  groups_.push_back(place_[at(element)]);
  pool_.push_back(element);
}

void Clusters::clear_pool() {
  for (const int element : pool_) place_[at(element)] = -1;
  pool_.clear();
  groups_.clear();
}

/// The cluster ends here; what it consists of is in the pool, at the time of the event.
void Clusters::absorb(int cluster) {
  if (cluster < 0) return;
  Cluster& c = *clusters_[at(cluster)];
  const double tau = c.clock.until(clock_);
  read_states(c, tau, x_);
  for (const int i : c.moving) add_to_pool(i);
  for (const int u : c.part.unknowns) {
    add_to_pool(n_ + u);
    if (tau != 0) known_[at(u)] = 0;
  }
  for (const int k : c.part.jumps) add_to_pool(n_ + unknowns_ + k);
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
  for (const int i : c.moving) cluster_of_state_[at(i)] = -1;
  for (const int u : c.part.unknowns) {
    if (u < m_ && letter(u) == '0') recorder_.slid(u, length);
  }
  for (const int u : c.part.unknowns) cluster_of_unknown_[at(u)] = -1;
  for (const int k : c.part.jumps) cluster_of_jump_[at(k)] = -1;
  c.alive = false;
  queue_.remove(c.place);
  absorb_driven(c);
  c.driven.clear();
  store_.give_back(c.series);
  free_.push_back(c.place);
}

// ---- clusters ------------------------------------------------------------------------------------------------------

/// True if an unknown is solved for and something that moves feels it.
bool Clusters::moves_something(int u) const {
  const std::span<const int> readers = reads_->unknown_readers(u);
  return active(u) && std::any_of(readers.begin(), readers.end(), [&](int r) { return r < n_ && moving_[at(r)]; });
}

/// Visits the unknowns solved together with one; and where it moves something, all that its equation reads.
template <class Visit>
void Clusters::bonds_of_unknown(int u, const Visit& visit) const {
  if (!active(u)) return;
  for (const int v : reads_->choice_unknowns(u)) {
    if (v != u && active(v)) visit(n_ + v);
  }
  if (!moves_something(u)) return;
  for (const int j : reads_->choice_states(u)) {
    if (moving_[at(j)] && !drifting_[at(j)]) visit(j);
  }
  for (const int reader : reads_->unknown_readers(u)) {
    if (reader < n_ ? moving_[at(reader)] != 0 : active(reader - n_)) visit(reader);
  }
}

/// Visits moving states read by an unknown that moves nothing itself, its surface or the equation that keeps it, or by
/// the condition of a jump.
template <class Visit>
void Clusters::watched_by(int element, const Visit& visit) const {
  const auto state = [&](int j) {
    if (moving_[at(j)]) visit(j);
  };
  if (element >= n_ + unknowns_) {
    for (const int j : reads_->on_states(element - n_ - unknowns_)) state(j);
    return;
  }
  const int u = element - n_;
  for (const int j : reads_->watch_states(u)) state(j);
  if (!active(u)) return;
  for (const int j : reads_->choice_states(u)) state(j);
  for (const int p : reads_->moves(u)) {
    if (pin_[at(p)] != u) continue;
    for (const int j : reads_->rate_states(p)) state(j);
  }
}

template <class Visit>
void Clusters::bonds_of_state(int i, const Visit& visit) const {
  for (const int j : reads_->rate_states(i)) {
    if (moving_[at(j)] && !drifting_[at(j)]) visit(j);
  }
  for (const int u : reads_->rate_unknowns(i)) {
    if (active(u)) visit(n_ + u);
  }
}

/// Items in the pool that move each other are one group; clusters with an item in the pool join it.
void Clusters::tie_pool() {
  std::iota(groups_.begin(), groups_.end(), 0);
  const auto in_pool = [&](int element) {
    if (place_[at(element)] < 0 && cluster_of(element) >= 0) absorb(cluster_of(element));
    return place_[at(element)];
  };
  const auto tie = [&](int place, int other) {
    const int partner = in_pool(other);
    if (partner >= 0) groups_[at(group_of(place))] = group_of(partner);
  };
  for (const auto& [a, b] : bonds_) {
    if (const int place = in_pool(a); place >= 0) tie(place, b);
  }
  for (size_t k = 0; k < pool_.size(); ++k) {
    const int element = pool_[k];
    const auto visit = [&](int other) { tie(static_cast<int>(k), other); };
    if (element >= n_ + unknowns_) continue;  // it only watches
    if (element >= n_) {
      bonds_of_unknown(element - n_, visit);
    } else if (moving_[at(element)]) {
      bonds_of_state(element, visit);
    }
  }
  for (size_t k = 0; k < pool_.size(); ++k) groups_[k] = group_of(static_cast<int>(k));
}

/// Surfaces and conditions that move nothing and read one group alone, besides what drifts, are added to it.
void Clusters::add_watchers() {
  constexpr int nothing = -1, several = -2, moves = -3;
  std::vector<int>& read = reads_group_;  // per group: what it reads, if it is one of surfaces alone
  read.assign(pool_.size(), nothing);
  for (size_t k = 0; k < pool_.size(); ++k) {
    if (pool_[k] < n_) read[at(groups_[k])] = moves;
  }
  for (const bool drifting : {false, true}) {
    for (size_t k = 0; k < pool_.size(); ++k) {
      if (pool_[k] < n_ || read[at(groups_[k])] == moves) continue;
      int& reads = read[at(groups_[k])];
      if (drifting && reads != nothing) continue;
      int found = nothing;
      watched_by(pool_[k], [&](int j) {
        if ((drifting_[at(j)] != 0) != drifting) return;
        const int place = place_[at(j)], other = place < 0 ? several : groups_[at(place)];
        found = found == nothing || found == other ? other : several;
      });
      if (found != nothing) reads = reads == nothing || reads == found ? found : several;
    }
  }
  for (int& group : groups_) {
    if (read[at(group)] >= 0) group = read[at(group)];
  }
}

/// A draft of a cluster per group of the pool. False where one of them is too large.
bool Clusters::draft_clusters() {
  draft_count_ = 0;
  draft_of_.assign(pool_.size(), -1);
  for (size_t k = 0; k < pool_.size(); ++k) {
    const int element = pool_[k];
    if (element < n_ && !moving_[at(element)]) continue;
    int& number = draft_of_[at(groups_[k])];
    if (number < 0) {
      number = static_cast<int>(draft_count_++);
      if (draft_count_ > drafts_.size()) drafts_.emplace_back();
      drafts_[at(number)].moving.clear();
      drafts_[at(number)].part.unknowns.clear();
      drafts_[at(number)].part.jumps.clear();
    }
    Draft& draft = drafts_[at(number)];
    if (element < n_) {
      draft.moving.push_back(element);
    } else if (element < n_ + unknowns_) {
      draft.part.unknowns.push_back(element - n_);
    } else {
      draft.part.jumps.push_back(element - n_ - unknowns_);
    }
  }
  for (Draft& draft : std::span(drafts_).first(draft_count_)) {
    std::sort(draft.moving.begin(), draft.moving.end());
    std::sort(draft.part.unknowns.begin(), draft.part.unknowns.end());
    std::sort(draft.part.jumps.begin(), draft.part.jumps.end());
    if (!complete(draft)) return false;
  }
  return true;
}

/// A state in the pool moves evenly where all that its rate reads rests: x' = v of a block that sticks to a belt. It is
/// a cluster of its own, and what reads it is driven by it.
void Clusters::find_drifting() {
  for (const int i : pool_) {
    if (i >= n_) continue;
    const std::span<const int> read = reads_->rate_states(i), felt = reads_->rate_unknowns(i);
    drifting_[at(i)] = moving_[at(i)] && !read.empty() && !reads_->rate_time(i) &&
                       std::none_of(read.begin(), read.end(), [&](int j) { return moving_[at(j)] != 0; }) &&
                       std::none_of(felt.begin(), felt.end(), [&](int u) { return active(u); });
  }
}

bool Clusters::regroup() {
  bonds_.clear();
  find_drifting();
  for (size_t bonds = 1; bonds_.size() != bonds;) {
    bonds = bonds_.size();
    tie_pool();
    add_watchers();
    if (!draft_clusters()) return false;
  }
  clear_pool();
  const auto rank = [this](const Draft& draft) {  // what drives others comes before them
    return draft.moving.empty() ? 2 : draft.moving.size() == 1 && drifting_[at(draft.moving[0])] ? 0 : 1;
  };
  for (int now = 0; now <= 2; ++now) {
    for (Draft& draft : std::span(drafts_).first(draft_count_)) {
      if (rank(draft) == now) make_cluster(draft);
    }
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
    for (const int p : reads_->moves(u)) {
      if (pin_[at(p)] == u) add(p);
    }
    for (const int d : reads_->hits(u)) add(d);
    for (const int reader : reads_->unknown_readers(u)) follow(reader);
  }
  for (size_t k = 0; k < states.size(); ++k) {
    for (const int reader : reads_->state_readers(states[k])) follow(reader);
  }
  std::sort(states.begin(), states.end());
}

/// All states of a cluster: those it would have a program for.
std::vector<int> Clusters::states_of(const Cluster& c) {
  if (c.room) return c.part.states;
  Subsystem part{.states = c.moving, .unknowns = c.part.unknowns};
  add_followers(part);
  return part.states;
}

/// The room of a cluster that needs one, with what would follow in it; and whether what is read besides rests:
/// otherwise it is bonded. False where that cluster is too large: the whole is as fast.
bool Clusters::complete(Draft& draft) {
  draft.room = nullptr;
  if (is_affine(draft)) return true;
  if (2 * draft.moving.size() > at(n_)) return false;
  draft.part.states = draft.moving;
  add_followers(draft.part);
  if (2 * draft.part.states.size() > at(n_)) return false;
  draft.room = find_room(draft.part);
  const int own = !draft.moving.empty()          ? draft.moving.front()
                  : !draft.part.unknowns.empty() ? n_ + draft.part.unknowns.front()
                                                 : n_ + unknowns_ + draft.part.jumps.front();
  for (const int i : draft.part.outside) {
    if (moving_[at(i)] && !draft.moving.empty() && !drifting_[at(i)]) bonds_.emplace_back(own, i);
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
  c.moving = draft.moving;
  c.room = draft.room;
  c.switches = static_cast<size_t>(std::lower_bound(c.part.unknowns.begin(), c.part.unknowns.end(), m_) -
                                   c.part.unknowns.begin());
  c.clock = clock_;
  c.series = store_.take(c.moving.size());
  for (size_t k = 0; k < c.moving.size(); ++k) {
    cluster_of_state_[at(c.moving[k])] = place;
    column_[at(c.moving[k])] = static_cast<int>(k);
    c.series.first[k] = x_[at(c.moving[k])];
  }
  c.drives.clear();
  if (c.room) {
    c.x.clear();
    for (const int i : c.part.states) c.x.push_back(x_[at(i)]);
    c.movers.clear();
    for (const int i : c.moving) {
      const auto own = std::lower_bound(c.part.states.begin(), c.part.states.end(), i);
      c.movers.push_back(static_cast<int>(own - c.part.states.begin()));
    }
    for (const int i : c.part.outside) {
      if (moving_[at(i)]) add_drive(c, i);
      c.x.push_back(x_[at(i)]);
    }
    for (const int u : c.part.fixed) c.x.push_back(value_of(u));
  } else {
    const auto read = [&](int j) {
      const int source = cluster_of_state_[at(j)];
      const auto same = [&](const Drive& d) { return d.source == source; };
      if (moving_[at(j)] && source != place && std::none_of(c.drives.begin(), c.drives.end(), same)) add_drive(c, j);
    };
    for (const int i : c.moving) {
      for (const int j : reads_->rate_states(i)) read(j);
    }
    for (const int u : c.part.unknowns) watched_by(n_ + u, read);
    for (const int k : c.part.jumps) watched_by(n_ + unknowns_ + k, read);
  }
  for (const int u : c.part.unknowns) cluster_of_unknown_[at(u)] = place;
  for (const int k : c.part.jumps) cluster_of_jump_[at(k)] = place;
  start(c);
}

/// The next of the cluster's states moves in another cluster.
void Clusters::add_drive(Cluster& c, int i) {
  const int place = cluster_of_state_[at(i)];
  Cluster& source = *clusters_[at(place)];
  c.drives.push_back({static_cast<int>(c.x.size()), place, i});
  auto& driven = source.driven;
  if (!driven.empty() && driven.back() == std::pair(c.place, c.birth)) return;
  constexpr size_t many = 16;  // what drifts for long sees those it drives come and go
  if (driven.size() >= many && driven.size() == driven.capacity()) {
    std::erase_if(driven, [this](const auto& of) {
      const Cluster& other = *clusters_[at(of.first)];
      return !other.alive || other.birth != of.second;
    });
  }
  driven.emplace_back(c.place, c.birth);
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
  auto room = std::make_unique<ClusterRoom>(std::move(made), shape.key(), part.parameters, options_);
  room_slots_ += room->slots();
  constexpr size_t most = 500'000;  // some 200 MB
  const uint64_t hash = shape.hash();
  if (room_slots_ > most) close_rooms();
  return rooms_[hash].emplace_back(std::move(room)).get();
}

/// Rooms that nobody is in are given up, once they are many.
void Clusters::close_rooms() {
  std::unordered_set<const ClusterRoom*> used{alone_.room, merged_.room};
  for (const std::unique_ptr<Cluster>& c : clusters_) used.insert(c->room);
  for (const Draft& draft : drafts_) used.insert(draft.room);
  room_slots_ = 0;
  for (auto& [hash, alike] : rooms_) {
    std::erase_if(alike, [&](const auto& room) { return !used.contains(room.get()); });
    for (const auto& room : alike) room_slots_ += room->slots();
  }
}

}  // namespace saltus
