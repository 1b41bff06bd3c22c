// Jumps in clusters: which clusters they are about, and what is known of their conditions.
//
//   core   the jumps that are due, and those that they cause
//   part   what the core sets, the unknowns and jumps that feel it, and what the conditions of those read
//
// What is known of the conditions is kept by the jumps of the whole; parts borrow it.
#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "flow/event/clusters.hpp"
#include "flow/leading.hpp"
#include "flow/thresholds.hpp"

namespace saltus {

// ---- events --------------------------------------------------------------------------------------------------------

/// Jumps, with what they read and set alone; and where that is not enough, with the clusters around.
Clusters::Acted Clusters::act_on_jumps(const Cluster& first, Moment& now) {
  constexpr size_t most = 16;  // that are worth a part
  if (close_) return Acted::not_alone;
  for (const Guard& g : first.guards) {
    if (g.kind != GuardKind::jump) return Acted::not_alone;
    core_.push_back(whole_item(first, g) - unknowns_);
  }
  for (size_t count = 0; count != core_.size() && core_.size() <= most;) {  // again, with those that it causes
    count = core_.size();
    if (prepare_jumps(first) && act_in(alone_, true, now)) return finish_event(alone_);
    if (count != core_.size()) continue;
    find_acting(first);
    if (2 * merge_acting(first).part.states.size() > at(n_)) return Acted::not_alone;
    if (act_in(merged_, false, now)) return finish_event(merged_);
  }
  return Acted::not_alone;
}

/// Prepares the jumps of a subsystem. False where something that is solved for feels them.
bool Clusters::prepare_jumps(const Cluster& first) {
  Subsystem& part = alone_.part;
  const auto gather = [&](std::vector<int>& list, auto of) {
    list.clear();
    for (const int k : core_) {
      const std::span<const int> own = of(k);
      list.insert(list.end(), own.begin(), own.end());
    }
    if (core_.size() == 1) return;
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  gather(part.states, [&](int k) { return reads_->jump_states(k); });
  gather(part.unknowns, [&](int k) { return reads_->felt_unknowns(k); });
  gather(part.jumps, [&](int k) { return reads_->felt_jumps(k); });
  std::erase_if(part.jumps, [&](int k) { return jumps_.has_clock(at(k)); });
  acting_.assign(1, first.place);
  for (const int i : part.states) {
    if (!moving_[at(i)] && pin_[at(i)] >= 0) return false;
    add_acting(cluster_of_state_[at(i)]);
  }
  for (const int u : part.unknowns) {
    if (active(u)) return false;
    add_acting(cluster_of_unknown_[at(u)]);
  }
  for (const int k : part.jumps) add_acting(cluster_of_jump_[at(k)]);
  alone_.room = find_room(part);
  for (const int u : part.fixed) {
    if (active(u)) return false;
  }
  alone_.switches = at(alone_.room->program->switches());
  alone_.scale = first.scale;
  alone_.guards = guards_in(alone_, whole_guards(first));
  alone_.x.clear();
  for (const int i : part.states) alone_.x.push_back(state_at(i));
  for (const int i : part.outside) alone_.x.push_back(state_at(i));
  for (const int u : part.fixed) alone_.x.push_back(value_of(u));
  return true;
}

/// True if the jumps that have happened are those that the part is made for; others join them. Those that the end of
/// the event causes are left to the whole.
bool Clusters::has_all_jumps(const Cluster& c) {
  const size_t count = core_.size();
  for (const JumpDone& done : event_.jumps) {
    const int k = c.part.jumps[at(done.jump)];
    if (std::find(core_.begin(), core_.end(), k) == core_.end()) core_.push_back(k);
  }
  return core_.size() == count && c.room->act->caused().empty();
}

/// Clocks tick: the whole acts on that, and on events at the same time.
Clusters::Outcome Clusters::tick(const Clock& at_tick, Moment& now, std::vector<Guard>& guards) {
  clock_ = at_tick;
  const double resolution = time_resolution(clock_.now(), first_scale_);
  due_.clear();
  queue_.until(clock_.now() + resolution, [&](int place) {
    if (!clusters_[at(place)]->guards.empty()) due_.push_back(place);
  });
  const Outcome outcome = hand_over(now, guards);
  for (const int k : jumps_.ticking(clock_.now(), resolution)) guards.push_back({GuardKind::clock, k, 0});
  return outcome;
}

// ---- conditions ----------------------------------------------------------------------------------------------------

/// The jumps of a room become those of a cluster.
void Clusters::load_jumps(const Cluster& c) {
  Jumps& local = c.room->act->jumps();
  for (size_t k = 0; k < c.part.jumps.size(); ++k) local.set_arm(k, jumps_.arm(at(c.part.jumps[k])));
  for (const int k : core_) {
    for (const int i : reads_->value_states(k)) jump_x_[at(i)] = state_at(i);
  }
  local.stand_for({&jumps_, options_.parameters, c.part.jumps, c.part.states, jump_x_});
}

void Clusters::store_jumps(const Cluster& c) {
  const Jumps& local = c.room->act->jumps();
  for (size_t k = 0; k < c.part.jumps.size(); ++k) {
    jumps_.set_arm(at(c.part.jumps[k]), local.arm(k));
    noted_[at(c.part.jumps[k])] = clock_.now();
  }
}

/// The signs of conditions where a cluster begins, unless an event has just told them. Whether some have been crossed
/// since they were last looked at: they are its guards then.
bool Clusters::note_in_room(Cluster& c) {
  Jumps& local = c.room->act->jumps();
  for (size_t k = 0; k < c.part.jumps.size(); ++k) local.set_arm(k, jumps_.arm(at(c.part.jumps[k])));
  const auto told = [&](size_t k) { return noted_[at(c.part.jumps[k])] == clock_.now(); };
  size_t known = 0;
  while (known < c.part.jumps.size() && told(known)) ++known;
  crossed_.clear();
  if (known == c.part.jumps.size()) return false;
  c.room->act->simply = false;
  c.room->act->time_scale = c.scale > 0 ? c.scale : first_scale_;
  const std::vector<int> crossed = c.room->act->note_signs(c.room->moment);
  for (size_t k = 0; k < c.part.jumps.size(); ++k) {
    const size_t of_whole = at(c.part.jumps[k]);
    if (told(k)) {
      local.set_arm(k, jumps_.arm(of_whole));
    } else {
      jumps_.set_arm(of_whole, local.arm(k));
      noted_[of_whole] = clock_.now();
      if (std::find(crossed.begin(), crossed.end(), static_cast<int>(k)) != crossed.end())
        crossed_.push_back({GuardKind::jump, static_cast<int>(k), 0});
    }
  }
  return !crossed_.empty();
}

/// Crossed zeros are events of the cluster, where it begins.
void Clusters::happen_at_once(Cluster& c) {
  c.guards = crossed_;
  c.length = 0;
  c.due = c.clock.now();
  c.last = c.waits = c.whole = false;
  c.end = c.x;
}

/// Notes the zero of a row whose series are known.
void Clusters::note_row(AffineWatch& w, const AffineRows::Row& row, double t, double scale) {
  if (noted_[at(w.jump)] != clock_.now()) {
    noted_[at(w.jump)] = clock_.now();
    double size = std::abs(row.constant) + std::abs(row.time * t);
    for (const AffineRows::Term& term : row.terms) size += std::abs(term.weight * state_at(term.from));
    const double bound = zero_bounds * eps * static_cast<double>(row.terms.size() + 2) * size;
    const int sign = w.c[0] > bound ? 1 : w.c[0] < -bound ? -1 : 0;
    const int lead = sign != 0 ? 0
                               : leading_coefficient(w.c, 1, std::min(decision_order, affine_->steps.order),
                                                     scale > 0 ? scale : first_scale_, direction_)
                                     .sign;
    w.crossed = jumps_.note(at(w.jump), sign, lead);
  }
  w.guard.side = w.crossed ? 0 : jumps_.side(at(w.jump));
  w.known = jumps_.at_zero(at(w.jump)) ? 1 : 0;
}

}  // namespace saltus
