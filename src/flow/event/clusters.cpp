#include "flow/event/clusters.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

/// Below this many states the whole is as fast as its parts; and where each piece of the whole is wanted.
constexpr int fewest_states = 24, fewest_observed = 200;

}  // namespace

Clusters::Clusters(EngineMemory& memory, const RunOptions& options, Recorder& recorder, Jumps& jumps)
    : memory_(memory),
      program_(memory.program),
      options_(options),
      recorder_(recorder),
      jumps_(jumps),
      direction_(options.until < options.from ? -1.0 : 1.0),
      n_(program_.states()),
      m_(program_.switches()),
      unknowns_(program_.unknowns()),
      observed_(recorder.wants_pieces() || std::isfinite(recorder.shortest_interval())) {
  if (!possible()) return;
  mode_tape_ = &program_.tape(std::string(at(m_), '+'));
  if (!mode_tape_->slope_affine || !mode_tape_->slope_constant) return;
  parts_ = std::make_unique<Subsystems>(program_, *mode_tape_, options.parameters);
  reads_ = find_dependence(program_, *mode_tape_, *parts_);
  if (!reads_) return;
  find_rows();
  if (find_blocks()) return;
  const size_t n = at(n_), unknowns = at(unknowns_);
  moving_.assign(n, 1);
  drifting_.assign(n, 0);
  pin_.assign(n, -1);
  cluster_of_state_.assign(n, -1);
  cluster_of_unknown_.assign(unknowns, -1);
  cluster_of_jump_.assign(jumps_.size(), -1);
  noted_.assign(jumps_.size(), NAN);
  if (jumps_.size() > 0) jump_x_.assign(n, 0.0);
  for (size_t k = 0; k < jumps_.size(); ++k) clocked_ = clocked_ || jumps_.has_clock(k);
  store_.begin(at(ClusterRoom::order_for(local_tolerance(options.tolerance))) + 1);
  column_.assign(n, 0);
  judged_.assign(n, 0);
  listed_.assign(n, 0);
  place_.assign(n + unknowns + jumps_.size(), -1);
  last_events_.assign(unknowns + jumps_.size(), {NAN, NAN, NAN});
}

/// True if the model is one of blocks: they need nothing that is here.
bool Clusters::find_blocks() {
  if (observed_ || !affine_) return false;
  std::optional<BlockPlan> plan = saltus::find_blocks(program_, *mode_tape_, *reads_, affine_->rows, affine_->hold);
  if (!plan) return false;
  blocks_.emplace(std::move(*plan), memory_, options_, recorder_);
  affine_.reset();
  reads_.reset();
  parts_.reset();
  return true;
}

bool Clusters::may_serve(const Program& program) { return program.states() >= fewest_states; }

/// True if one tape serves all modes and events are what clusters can do.
bool Clusters::possible() const {
  const Form& form = program_.model().form;
  if (!options_.clusters || !may_serve(program_) || options_.stiff || program_.attract() > 0) return false;
  if (program_.any_nested() || program_.any_joint()) return false;
  if (!memory_.ties.empty() || form.counter_values > 0) return false;
  const auto only_states = [](const Expr& formula) {
    const std::vector<Expr> symbols = symbols_in(std::span(&formula, 1));
    return std::none_of(symbols.begin(), symbols.end(), [](const Expr& s) {
      return s.is_symbol(SymbolKind::sigma) || s.is_symbol(SymbolKind::lambda);
    });
  };
  for (size_t k = 0; k < form.jumps.size(); ++k) {
    const LoweredJump& jump = form.jumps[k];
    if (jumps_.shared(k).unknown >= 0 || !only_states(jump.on) || (jump.when && !only_states(*jump.when))) return false;
    if (!std::all_of(jump.set.begin(), jump.set.end(), [&](const Assignment& a) { return only_states(a.value); }))
      return false;
  }
  if (recorder_.has_surface_sections() || (observed_ && n_ < fewest_observed)) return false;
  for (int i = 0; i < m_; ++i) {
    if (!program_.open(i)) return false;
  }
  if (program_.any_bends()) return false;
  if (std::any_of(program_.model().jumps.begin(), program_.model().jumps.end(), [](const Jump& j) { return j.level; }))
    return false;
  return std::all_of(form.gaps.begin(), form.gaps.end(), [](const Gap& g) { return g.degree == 2; });
}

/// True if the tape of all modes has the formulas of these letters, of some switches or of all: surfaces that stay zero
/// by themselves, or are kept by the sigma of others, have their own.
bool Clusters::may_be_here(const std::string& letters, std::span<const int> switches) const {
  for (size_t k = 0; k < letters.size(); ++k) {
    if (letters[k] == '=') return false;
    if (letters[k] == '0' && program_.carried(switches.empty() ? static_cast<int>(k) : switches[k])) return false;
  }
  return true;
}

// ---- the run -------------------------------------------------------------------------------------------------------

Clusters::Outcome Clusters::run(Moment& now, std::vector<Guard>& guards, double time_scale) {
  if (blocks_) return blocks_->run(now, guards, time_scale);
  if (!reads_) return Outcome::step;
  if (holiday_ > 0) {
    --holiday_;
    return Outcome::step;
  }
  first_scale_ = time_scale;
  told_ = now.clock;
  memory_.chatter.clear();  // it does not see the events of clusters
  if (!(built_ ? resume(now) : build(now))) return give_up(now.clock, now, not_worth_while);
  for (;;) {
    Cluster* c = next();
    Clock end = end_of(c);
    const double due = next_tick();
    const bool ticks = std::isfinite(due) && due <= end.now() + time_resolution(due, first_scale_);
    if (ticks) end.set(due);
    if (observed_) tell_piece(end, ticks, now);
    if (recorder_.ended()) return Outcome::end;
    if (ticks) return tick(end, now, guards);
    if (!c || c->last) {
      end_all(now);
      return Outcome::end;
    }
    if (c->whole) return leave_to_whole(c->clock, now);
    if (c->guards.empty()) {
      go_on(*c);
    } else {
      find_due_with(*c);
      bool shrinking = false;
      close_ = false;
      for (const int place : due_) close_ = accumulates(*clusters_[at(place)], shrinking) || close_;
      follows_ = shrinking && due_.size() == 1 && may_follow(*c);
      if (close_ && !follows_) holiday_ = accumulation_steps;
      clock_ = end;
      if (due_.size() > 1 || holiday_ > 0) return hand_over(now, guards);
      switch (act(*c, now)) {
        case Acted::done: break;
        case Acted::not_alone:
          if (close_) holiday_ = accumulation_steps;
          return hand_over(now, guards);
        case Acted::accumulates: return give_up(clock_, now, accumulation_steps);
        case Acted::too_large: return give_up(clock_, now, not_worth_while);
      }
      if (recorder_.ended()) return Outcome::end;
    }
    recorder_.count_step();
    if (limits(now)) return Outcome::end;
  }
}

/// The cluster that is due next.
Cluster* Clusters::next() const { return queue_.empty() ? nullptr : clusters_[at(queue_.top().cluster)].get(); }

/// The cluster and those whose events are at the same time as its own, as far as time can tell.
void Clusters::find_due_with(const Cluster& first) {
  due_.assign(1, first.place);
  queue_.until(direction_ * first.due + time_resolution(first.due, first.scale), [&](int place) {
    const Cluster& c = *clusters_[at(place)];
    if (&c != &first && (!c.guards.empty() || c.whole)) due_.push_back(place);
  });
}

/// The series of a cluster have ended without an event.
void Clusters::go_on(Cluster& c) {
  for (const int u : c.part.unknowns) {
    if (u < m_ && letter(u) == '0') recorder_.slid(u, std::abs(c.length));
    known_[at(u)] = 0;
  }
  if (c.room) {
    c.x = c.end;
  } else {
    move_to(c, c.length);
  }
  c.clock.advance(c.length);
  clock_ = c.clock;
  start(c);
  for (const auto& [place, birth] : std::vector(c.driven)) {
    Cluster& other = *clusters_[at(place)];
    if (!other.alive || other.birth != birth) continue;
    const double tau = other.clock.until(clock_);
    for (const int u : other.part.unknowns) {
      if (u < m_ && letter(u) == '0') recorder_.slid(u, std::abs(tau));
      if (tau != 0) known_[at(u)] = 0;
    }
    if (tau != 0) move_to(other, tau);
    for (size_t k = 0; other.room && k < other.moving.size(); ++k) other.x[at(other.movers[k])] = other.series.first[k];
    other.clock = c.clock;
    start(other);
  }
}

/// The states that move in a cluster, so long after its clock, are those that its series begin with.
void Clusters::move_to(Cluster& c, double tau) {
  if (c.moving.empty()) return;
  values_.resize(Columns::padded(c.moving.size()));
  evaluate(c.series, tau, values_.data());
  std::copy_n(values_.data(), c.moving.size(), c.series.first);
}

/// A cluster begins where it is.
void Clusters::start(Cluster& c) {
  if (!c.room) {
    expand_affine(c);
  } else {
    expand_in_room(c);
  }
  if (c.waits) {
    queue_.remove(c.place);
  } else {
    queue_.set({direction_ * c.due, c.last, c.place});
  }
}

void Clusters::expand_in_room(Cluster& c) {
  ClusterRoom& room = *c.room;
  room.enter(c);
  Moment& moment = room.moment;
  moment.mode.switches.clear();
  moment.mode.constraints.clear();
  moment.known.clear();
  if (!c.drives.empty()) drive(c);
  bool solves = false;
  for (const int u : c.part.unknowns) {
    (u < m_ ? moment.mode.switches : moment.mode.constraints) += letter(u);
    moment.known.push_back(known_[at(u)]);
    solves = solves || active(u);
  }
  if (solves && !c.moving.empty()) {
    room.series->set_mode(moment.mode);
    const double error = room.series->project(moment.x, moment.t(), {});
    for (const int k : c.movers) c.x[at(k)] = moment.x[at(k)];
    moment.x = c.x;  // what rests stays where it is
    for (const int u : c.part.unknowns) {
      if (u < m_ && letter(u) == '0') recorder_.drifted(u, error);
    }
  }
  bool crossed = false;
  if (!c.part.jumps.empty()) crossed = note_in_room(c);
  room.expand(c, options_.until, first_scale_);
  if (crossed) happen_at_once(c);
}

/// The series of what a cluster reads, from where it begins, and how far they are known.
void Clusters::drive(Cluster& c) {
  c.horizon = direction_ * HUGE_VAL;
  for (const Drive& d : c.drives) {
    const Cluster& source = *clusters_[at(d.source)];
    if (direction_ * source.due < direction_ * c.horizon) c.horizon = source.due;
    read_series(d.from, source.clock.until(c.clock));
    c.x[at(d.state)] = c.room->moment.x[at(d.state)] = values_[0];
    values_.resize(std::max<size_t>(values_.size(), 2), 0.0);
    c.room->drive(d.state, values_);
  }
}

/// Events of one surface that come ever faster, and whether they are so close that they may accumulate.
bool Clusters::accumulates(const Cluster& c, bool& shrinking) {
  bool found = false;
  for (const Guard& g : c.guards) {
    std::array<double, 3>& last = last_events_[at(whole_item(c, g))];
    const double d0 = std::abs(c.due - last[0]), d1 = std::abs(last[0] - last[1]), d2 = std::abs(last[1] - last[2]);
    const bool faster = d0 < d1 && d1 < d2;
    shrinking = shrinking || faster;
    found = found || (faster && d0 < close_events * c.scale);
    last = {c.due, last[0], last[1]};
    if (!faster && !sequences_.empty()) sequences_.erase(whole_item(c, g));
  }
  return found;
}

/// Hits of one contact in a cluster that nothing drives: their limit can be told there.
bool Clusters::may_follow(const Cluster& c) const {
  return c.guards.size() == 1 && c.guards[0].kind == GuardKind::gap && c.room && !c.moving.empty() && c.drives.empty();
}

/// After such a hit: whether the sequence goes on, or has been completed by its limit here, before anything else
/// happens. The whole takes over where it has another end.
bool Clusters::go_to_limit(const Cluster& c, Moment& now) {
  ClusterRoom& room = *c.room;
  Moment& moment = room.moment;
  const int u = whole_item(c, c.guards[0]);
  Sequence& sequence = sequences_[u];
  if (sequence.states != c.part.states) {
    sequence.chatter.clear();
    sequence.states = c.part.states;
  }
  sequence.chatter.note(event_);
  const Moment before = moment;
  const int touched = static_cast<int>(c.switches) + c.guards[0].item;
  const Limit::Reached reached = room.limit->look(sequence.chatter, {&touched, 1}, moment, event_, c.scale,
                                                  time_resolution(moment.t(), c.scale), queue_.second());
  const bool told = !room.act->take_messages().empty();
  room.series->set_mode(moment.mode);
  const bool done = !reached.fate && !told && may_be_here(moment.mode.switches, c.part.unknowns) &&
                    room.series->evaluate(moment.x, moment.t(), {}) == SeriesStatus::ok;
  if (!done) {
    moment = before;
    room.series->set_mode(moment.mode);
    room.series->evaluate(moment.x, moment.t(), {});
  } else if (reached.event) {
    clock_ = moment.clock;
    tell(c, now);
    ++events_;
  }
  if (!done || reached.event) sequences_.erase(u);
  return done;
}

bool Clusters::limits(Moment& now) {
  return limits_reached(recorder_, options_, clock_.now(), [&]() -> Moment& {
    assemble(clock_, now);
    return now;
  });
}

// ---- events --------------------------------------------------------------------------------------------------------

/// The clusters that the choice of a mode at the event of a cluster looks at.
void Clusters::find_acting(const Cluster& first) {
  acting_.assign(1, first.place);
  const auto state = [&](int j) {
    if (moving_[at(j)]) add_acting(cluster_of_state_[at(j)]);
  };
  for (const Guard& g : first.guards) {
    if (g.kind == GuardKind::jump) continue;
    const int u = whole_item(first, g);
    for (const int j : reads_->watch_states(u)) state(j);
    for (const int j : reads_->choice_states(u)) state(j);
    for (const int v : reads_->choice_unknowns(u)) {
      if (active(v)) add_acting(cluster_of_unknown_[at(v)]);
    }
    for (const int reader : reads_->unknown_readers(u)) {
      if (reader >= n_ && active(reader - n_)) add_acting(cluster_of_unknown_[at(reader - n_)]);
    }
    for (const int d : reads_->hits(u)) {
      state(d);
      if (!moving_[at(d)] && pin_[at(d)] >= 0) add_acting(cluster_of_unknown_[at(pin_[at(d)])]);
      for (const int reader : reads_->state_readers(d)) {
        if (reader >= n_ + unknowns_) add_acting(cluster_of(reader));
      }
    }
  }
  for (const int k : core_) {
    for (const int i : reads_->jump_states(k)) {
      state(i);
      if (!moving_[at(i)] && pin_[at(i)] >= 0) add_acting(cluster_of_unknown_[at(pin_[at(i)])]);
    }
    for (const int u : reads_->felt_unknowns(k)) add_acting(cluster_of_unknown_[at(u)]);
    for (const int other : reads_->felt_jumps(k)) add_acting(cluster_of_jump_[at(other)]);
  }
}

void Clusters::add_acting(int place) {
  if (place >= 0 && std::find(acting_.begin(), acting_.end(), place) == acting_.end()) acting_.push_back(place);
}

/// Several clusters as one, at the time of the event, with the states that the jumps of the event are about.
Cluster& Clusters::merge_acting(const Cluster& first) {
  Subsystem& part = merged_.part;
  const auto append = [](std::vector<int>& list, std::span<const int> further) {
    list.insert(list.end(), further.begin(), further.end());
  };
  for (size_t count = 0; count != acting_.size();) {
    count = acting_.size();
    part.states.clear();
    part.unknowns.clear();
    part.jumps.clear();
    for (const int place : acting_) {
      const Subsystem& own = clusters_[at(place)]->part;
      append(part.states, states_of(*clusters_[at(place)]));
      append(part.unknowns, own.unknowns);
      append(part.jumps, own.jumps);
    }
    for (const int k : core_) append(part.states, reads_->jump_states(k));
    for (std::vector<int>* list : {&part.states, &part.unknowns, &part.jumps}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    merged_.room = find_room(part);
    for (const int i : part.outside) {
      if (moving_[at(i)]) add_acting(cluster_of_state_[at(i)]);
    }
    for (const int u : part.fixed) {
      if (active(u)) add_acting(cluster_of_unknown_[at(u)]);
    }
  }
  for (const int place : acting_) read_states(*clusters_[at(place)], clusters_[at(place)]->clock.until(clock_), x_);
  merged_.x.clear();
  for (const int i : part.states) merged_.x.push_back(x_[at(i)]);
  for (const int i : part.outside) merged_.x.push_back(x_[at(i)]);
  for (const int u : part.fixed) merged_.x.push_back(value_of(u));
  merged_.scale = first.scale;
  merged_.switches = at(merged_.room->program->switches());
  merged_.guards = guards_in(merged_, whole_guards(first));
  return merged_;
}

/// Guards of the whole with the numbers of a part.
std::vector<Guard> Clusters::guards_in(const Cluster& c, std::vector<Guard> guards) const {
  const auto place = [](const std::vector<int>& list, int item) {
    return static_cast<int>(std::lower_bound(list.begin(), list.end(), item) - list.begin());
  };
  for (Guard& g : guards) {
    if (g.kind == GuardKind::jump) {
      g.item = place(c.part.jumps, g.item);
    } else if (g.kind == GuardKind::gap || g.kind == GuardKind::lambda) {
      g.item = place(c.part.unknowns, m_ + g.item) - static_cast<int>(c.switches);
    } else {
      g.item = place(c.part.unknowns, g.item);
    }
  }
  return guards;
}

/// The event of a cluster, in it and what it looks at alone.
Clusters::Acted Clusters::act(const Cluster& first, Moment& now) {
  core_.clear();
  const auto is_jump = [](const Guard& g) { return g.kind == GuardKind::jump; };
  if (std::any_of(first.guards.begin(), first.guards.end(), is_jump)) return act_on_jumps(first, now);
  if (act_alone(first, now)) return finish_event(alone_);
  acting_.assign(1, first.place);
  if (first.room && first.moving.empty() &&
      !first.drives.empty()) {  // what drives it feels it later than such a decision looks
    if (act_in(first, true, now)) return finish_event(first);
  }
  find_acting(first);
  const bool alone = acting_.size() == 1 && first.drives.empty() && first.room;
  if (close_ && !alone) return Acted::not_alone;
  follows_ = follows_ && alone;
  const Cluster& c = alone ? first : merge_acting(first);
  if (!act_in(c, false, now)) return Acted::not_alone;
  const bool goes_on = !follows_ || go_to_limit(c, now);
  const Acted acted = finish_event(c);
  return acted == Acted::done && !goes_on ? Acted::accumulates : acted;
}

/// True if what happens is decided in these clusters; it has then been told. `simply`: as Act::simply.
bool Clusters::act_in(const Cluster& c, bool simply, Moment& now) {
  ClusterRoom& room = *c.room;
  room.enter(c);
  Moment& moment = room.moment;
  moment.clock = clock_;
  if (&c == &alone_) {
    drive_alone();
  } else if (&c != &merged_) {
    moment.x = c.end;
  }
  moment.mode.switches.clear();
  moment.mode.constraints.clear();
  for (const int u : c.part.unknowns) (u < m_ ? moment.mode.switches : moment.mode.constraints) += letter(u);
  moment.known.assign(c.part.unknowns.size(), 0);
  event_.reset();
  event_.guards = c.guards;
  room.act->time_scale = c.scale;
  room.act->simply = simply;
  if (!c.part.jumps.empty()) load_jumps(c);
  const std::optional<Fate> fate = room.act->happen(moment, event_);
  const bool told = !room.act->take_messages().empty();
  if (!c.part.jumps.empty() && !has_all_jumps(c)) return false;
  if (fate || told || !may_be_here(moment.mode.switches, c.part.unknowns)) return false;
  room.series->set_mode(moment.mode);
  if (room.series->evaluate(moment.x, moment.t(), {}) != SeriesStatus::ok) return false;
  if (!c.part.jumps.empty()) store_jumps(c);
  if (!event_.silent) {
    remember(c);
    tell(c, now);
  }
  ++events_;
  return true;
}

/// The clusters that follow, from what has just happened in one.
Clusters::Acted Clusters::finish_event(const Cluster& c) {
  if (recorder_.ended()) return Acted::done;
  const ClusterRoom& room = *c.room;
  const Moment& moment = room.moment;
  clock_ = moment.clock;
  Change& change = change_;
  for (std::vector<int>* list : {&change.states, &change.letters}) list->clear();
  change.rates.clear();
  change.moved.clear();
  const bool alone = &c == &alone_;
  for (size_t k = 0; alone && k < acting_.size(); ++k) {
    if (clusters_[at(acting_[k])]->alive) absorb(acting_[k]);
  }
  for (size_t k = 0; k < c.part.states.size(); ++k) {
    const int i = c.part.states[k];
    if (!alone && !acts_on(i)) continue;
    change.states.push_back(i);
    change.rates.push_back(room.series->rate(static_cast<int>(k))[0]);
    change.moved.push_back(!moving_[at(i)] && moment.x[k] != x_[at(i)]);
    x_[at(i)] = moment.x[k];
  }
  change.unknowns = c.part.unknowns;
  change.jumps = c.part.jumps;
  if (!alone) dissolve(acting_);
  const size_t own_switches = moment.mode.switches.size();
  for (size_t k = 0; k < change.unknowns.size(); ++k) {
    const int u = change.unknowns[k];
    const char after = k < own_switches ? moment.mode.switches[k] : moment.mode.constraints[k - own_switches];
    if (after != letter(u)) change.letters.push_back(u);
    set_letter(u, after);
    known_[at(u)] = moment.known[k];
  }
  return apply(change) ? Acted::done : Acted::too_large;
}

/// True if a state rests or moves in one of the clusters of the event.
bool Clusters::acts_on(int i) const {
  const int owner = cluster_of_state_[at(i)];
  return owner < 0 || std::find(acting_.begin(), acting_.end(), owner) != acting_.end();
}

/// Applies the changes of an event: which states rest now, which rows that wakes, and the clusters that follow.
bool Clusters::apply(const Change& change) {
  before_.clear();
  for (const int i : change.states) before_.push_back(moving_[at(i)]);
  settle(change.states, change.rates, change.unknowns);
  for (const int u : change.unknowns) add_to_pool(n_ + u);
  for (const int k : change.jumps) add_to_pool(n_ + unknowns_ + k);
  for (const int i : change.states) {
    if (moving_[at(i)]) add_to_pool(i);
  }
  for (size_t k = 0; k < change.states.size(); ++k) {
    const int i = change.states[k];
    if (change.moved[k] || (!before_[k] && moving_[at(i)])) wake_readers_of_state(i);
  }
  for (const int u : change.letters) wake_readers_of_unknown(u);
  return regroup();
}

/// Where the series of a cluster end (without one: the run).
Clock Clusters::end_of(const Cluster* c) const {
  Clock end{options_.until};
  if (c && !c->last) {
    end = c->clock;
    end.advance(c->length);
  }
  return end;
}

/// Reports the piece on which all states move until then.
void Clusters::tell_piece(const Clock& end, bool ticks, Moment& now) {
  Piece& piece = observed_piece_;
  piece.start = told_.now();
  piece.length = told_.until(end.now());
  if (direction_ * piece.length <= 0) return;
  const size_t stride = store_.terms();
  piece.coefficients.assign(at(n_) * stride, 0.0);
  for (size_t i = 0; i < at(n_); ++i) piece.coefficients[i * stride] = x_[i];
  for (const std::unique_ptr<Cluster>& own : clusters_) {
    if (!own->alive) continue;
    const double by = own->clock.until(piece.start);
    for (const int i : own->moving) {
      read_series(i, by);
      std::copy(values_.begin(), values_.end(), &piece.coefficients[at(i) * stride]);
    }
  }
  now.clock = told_;
  now.mode = mode_;
  now.x = x_;
  std::vector<Crossing> crossings;
  recorder_.pass(piece, crossings, now, time_resolution(piece.start, first_scale_), ticks);
  if (!recorder_.ended()) recorder_.keep(piece, now);
  told_ = end;
}

/// Tells the recorder; the state of the whole is made only if somebody wants it.
void Clusters::tell(const Cluster& c, Moment& now) {
  const Moment& local = c.room->moment;
  long slides = 0;
  for (size_t k = 0; k < local.mode.switches.size(); ++k)
    slides += local.mode.switches[k] == '0' && letter(c.part.unknowns[k]) != '0';
  if (!recorder_.tells(local.t())) return recorder_.count(local.t(), slides);
  assemble(clock_, now);
  now.clock = local.clock;
  Transition whole{.t = local.t(), .before = mode_, .after = mode_};
  whole.silent = false;
  const auto spread_mode = [&](const Mode& part, Mode& to) {
    for (size_t k = 0; k < part.switches.size(); ++k) to.switches[at(c.part.unknowns[k])] = part.switches[k];
    for (size_t k = 0; k < part.constraints.size(); ++k)
      to.constraints[at(c.part.unknowns[part.switches.size() + k] - m_)] = part.constraints[k];
  };
  const auto spread = [&](const std::vector<double>& part) {
    std::vector<double> out = now.x;
    for (size_t k = 0; k < c.part.states.size(); ++k) {
      if (acts_on(c.part.states[k])) out[at(c.part.states[k])] = part[k];
    }
    return out;
  };
  const auto constraint = [&](int j) { return c.part.unknowns[local.mode.switches.size() + at(j)] - m_; };
  spread_mode(event_.after, whole.after);
  if (!event_.guards.empty()) whole.guards = whole_guards(c);  // none where events have accumulated
  whole.count = event_.count;
  for (const int u : event_.resting) whole.resting.push_back(c.part.unknowns[at(u)]);
  whole.x_minus = spread(event_.x_minus);
  whole.x_plus = spread(event_.x_plus);
  for (const auto& [j, impulse] : event_.impulse) whole.impulse.emplace_back(constraint(j), impulse);
  for (const JumpDone& done : event_.jumps)
    whole.jumps.push_back({c.part.jumps[at(done.jump)], spread(done.before), spread(done.after)});
  for (const Hit& h : event_.hits) {
    Hit& hit = whole.hits.emplace_back(h);
    hit.mode = mode_;
    spread_mode(h.mode, hit.mode);
    for (int& j : hit.contacts) j = constraint(j);
    for (auto& [i, character] : hit.switches) i = c.part.unknowns[at(i)];
    hit.before = spread(h.before);
    hit.after = spread(h.after);
  }
  now.x = whole.x_plus;
  now.mode = whole.after;
  recorder_.happened(whole, now);
}

std::vector<Guard> Clusters::whole_guards(const Cluster& c) const {
  std::vector<Guard> out = c.guards;
  for (Guard& g : out) {
    const int item = whole_item(c, g);
    g.item = item < m_ ? item : item < unknowns_ ? item - m_ : item - unknowns_;
  }
  return out;
}

/// The unknown of a guard, or number of unknowns + jump.
int Clusters::whole_item(const Cluster& c, const Guard& g) const {
  if (g.kind == GuardKind::jump) return unknowns_ + c.part.jumps[at(g.item)];
  const bool is_switch = g.kind != GuardKind::gap && g.kind != GuardKind::lambda;
  return c.part.unknowns[is_switch ? at(g.item) : at(g.item) + c.switches];
}

// ---- what has happened
// -----------------------------------------------------------------------------------------------

/// Notes the event that has just been decided: where such events accumulate, the whole wants to know those before.
void Clusters::remember(const Cluster& c) {
  constexpr size_t many = 512, largest = 64;
  const Subsystem& part = c.part;
  if (past_.size() < many) past_.emplace_back();
  next_past_ = next_past_ % many;
  Past& past = past_[next_past_++];
  past.t = clock_.now();
  past.guards = whole_guards(c);
  past.unknowns = part.unknowns;
  past.letters = event_.before.switches + event_.before.constraints;
  past.hit.clear();
  for (const auto& [j, impulse] : event_.impulse) past.hit.push_back(part.unknowns[c.switches + at(j)] - m_);
  past.states.clear();
  past.x.clear();
  for (size_t k = 0; k < part.states.size(); ++k) {
    past.states.push_back(part.states[k]);
    past.x.push_back(c.room->moment.x[k]);
  }
  for (const int place : acting_) {
    for (const int i : clusters_[at(place)]->moving) {
      if (past.states.size() >= largest || std::binary_search(part.states.begin(), part.states.end(), i)) continue;
      past.states.push_back(i);
      past.x.push_back(state_at(i));
    }
  }
}

/// Tells the whole of the last events in what the clusters that are due consist of. `now`: of the whole.
void Clusters::recall(const Moment& now) {
  constexpr size_t most = 32;
  ++listing_;
  for (const int place : due_) {
    for (const int i : states_with(*clusters_[at(place)])) listed_[at(i)] = listing_;
  }
  std::vector<const Past*> events;  // the last one first
  std::vector<Mode> before;
  Mode mode = mode_;
  for (size_t back = 0; back < past_.size() && events.size() < most; ++back) {
    const Past& past = past_[(next_past_ + past_.size() - 1 - back) % past_.size()];
    const auto here = [&](int i) { return listed_[at(i)] == listing_; };
    if (std::none_of(past.states.begin(), past.states.end(), here)) continue;
    for (size_t k = 0; k < past.unknowns.size(); ++k) {
      const int u = past.unknowns[k];
      (u < m_ ? mode.switches[at(u)] : mode.constraints[at(u - m_)]) = past.letters[k];
    }
    events.push_back(&past);
    before.push_back(mode);
  }
  memory_.chatter.clear();
  std::vector<double> x = now.x;
  for (size_t k = events.size(); k-- > 0;) {
    const Past& past = *events[k];
    Transition event{.t = past.t, .before = before[k], .guards = past.guards};
    for (const int j : past.hit) event.impulse.emplace_back(j, 1.0);
    for (size_t i = 0; i < past.states.size(); ++i) x[at(past.states[i])] = past.x[i];
    std::vector<int> touched;
    for (const Guard& g : past.guards) {
      const bool contact = g.kind == GuardKind::gap || g.kind == GuardKind::lambda;
      touched.push_back(g.item + (g.kind == GuardKind::jump ? unknowns_ : contact ? m_ : 0));
    }
    memory_.chatter.note(event);
    memory_.chatter.add(past.t, touched, x);
  }
}

/// The states that move in a cluster and those that its unknowns and jumps read.
std::vector<int> Clusters::states_with(const Cluster& c) const {
  std::vector<int> out = c.moving;
  for (const int u : c.part.unknowns) {
    for (const int i : reads_->watch_states(u)) out.push_back(i);
  }
  for (const int k : c.part.jumps) {
    for (const int i : reads_->on_states(k)) out.push_back(i);
  }
  return out;
}

// ---- the whole -----------------------------------------------------------------------------------------------------

/// The moment of the whole at a time that no cluster has passed and none ends before.
void Clusters::assemble(const Clock& clock, Moment& now) {
  now.clock = clock;
  now.mode = mode_;
  now.x = x_;
  now.known = known_;
  for (const std::unique_ptr<Cluster>& cluster : clusters_) {
    const Cluster& c = *cluster;
    if (!c.alive) continue;
    const double tau = c.clock.until(clock);
    read_states(c, tau, now.x);
    if (tau == 0) continue;
    for (const int u : c.part.unknowns) now.known[at(u)] = 0;
  }
}

/// The states that move in a cluster, so long after its clock, in their places among all states.
void Clusters::read_states(const Cluster& c, double tau, std::vector<double>& x) {
  if (c.moving.empty()) return;
  const double* values = c.series.first;
  if (tau != 0) {
    values_.resize(Columns::padded(c.moving.size()));
    evaluate(c.series, tau, values_.data());
    values = values_.data();
  }
  for (size_t k = 0; k < c.moving.size(); ++k) x[at(c.moving[k])] = values[k];
}

/// The series of a state that moves from so long after the clock of its cluster, in `values_`.
void Clusters::read_series(int i, double tau) {
  const ColumnSeries own = column(i);
  values_.resize(store_.terms());
  for (size_t k = 0; k < values_.size(); ++k) values_[k] = own[k];
  shift_polynomial(values_, tau);
}

/// The whole acts on the events of the clusters that are due, at the time of the clock.
Clusters::Outcome Clusters::hand_over(Moment& now, std::vector<Guard>& guards) {
  assemble(clock_, now);
  std::fill(now.known.begin(), now.known.end(), 0);
  guards.clear();
  for (const int place : due_) {
    const std::vector<Guard> own = whole_guards(*clusters_[at(place)]);
    guards.insert(guards.end(), own.begin(), own.end());
  }
  state_before_ = now.x;
  if (close_) recall(now);
  if (holiday_ > 0) forget(clock_);
  return Outcome::event;
}

/// Clusters cannot go on for now: the whole makes some steps.
Clusters::Outcome Clusters::give_up(const Clock& clock, Moment& now, long steps) {
  if (built_) assemble(clock, now);
  forget(clock);
  holiday_ = steps;
  return Outcome::step;
}

/// Something that only the whole can do; the more often, the longer clusters rest.
Clusters::Outcome Clusters::leave_to_whole(const Clock& clock, Moment& now) {
  penalty_ = events_ > 16 * penalty_ ? 8 : std::min(2 * penalty_, 4096L);
  events_ = 0;
  return give_up(clock, now, penalty_);
}

void Clusters::forget(const Clock& clock) {
  clock_ = clock;
  for (const std::unique_ptr<Cluster>& c : clusters_) {
    if (c->alive) remove(*c);
  }
  clear_pool();
  queue_.clear();
  built_ = false;
}

void Clusters::end_all(Moment& now) {
  Clock end{options_.until};
  assemble(end, now);
  forget(end);
}

/// All anew, from a moment of the whole.
bool Clusters::build(const Moment& now) {
  forget(now.clock);
  x_ = now.x;
  mode_ = now.mode;
  known_ = now.known;
  built_ = true;
  if (!may_be_here(mode_.switches)) return false;
  memory_.series->set_mode(mode_);
  if (memory_.series->evaluate(x_, now.t(), now.counters) != SeriesStatus::ok) return false;
  Change change;
  for (int i = 0; i < n_; ++i) {
    change.states.push_back(i);
    change.rates.push_back(memory_.series->rate(i)[0]);
    change.moved.push_back(false);
    moving_[at(i)] = 1;
  }
  for (int u = 0; u < program_.unknowns(); ++u) {
    if (u >= m_ || program_.moves(u)) change.unknowns.push_back(u);
  }
  for (size_t k = 0; k < jumps_.size(); ++k) {
    if (!jumps_.has_clock(k)) change.jumps.push_back(static_cast<int>(k));
  }
  std::fill(noted_.begin(), noted_.end(), now.t());
  return apply(change);
}

/// The whole has acted on the event of some clusters: only what it changed is made anew.
bool Clusters::resume(const Moment& now) {
  if (now.clock.now() != clock_.now()) return build(now);
  if (!may_be_here(now.mode.switches)) return false;
  memory_.series->set_mode(now.mode);
  if (memory_.series->evaluate(now.x, now.t(), now.counters) != SeriesStatus::ok) return false;
  Change change;
  std::vector<int> touched = due_, states;
  for (int u = 0; u < program_.unknowns(); ++u) {
    const char after = u < m_ ? now.mode.switches[at(u)] : now.mode.constraints[at(u - m_)];
    if (after == letter(u)) continue;
    change.letters.push_back(u);
    touched.push_back(cluster_of_unknown_[at(u)]);
  }
  for (int i = 0; i < n_; ++i) {
    // A state that projection moved by its last bits stays where its own cluster has it.
    const double moved = std::abs(now.x[at(i)] - state_before_[at(i)]);
    if (!(moved > 64 * eps * std::abs(now.x[at(i)]))) continue;
    if (moving_[at(i)]) {
      touched.push_back(cluster_of_state_[at(i)]);
    } else if (pin_[at(i)] >= 0) {
      touched.push_back(cluster_of_unknown_[at(pin_[at(i)])]);
    } else {
      states.push_back(i);
    }
  }
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  std::erase(touched, -1);
  for (const int place : touched) {
    const Cluster& c = *clusters_[at(place)];
    const std::vector<int> own = states_of(c);
    states.insert(states.end(), own.begin(), own.end());
    change.unknowns.insert(change.unknowns.end(), c.part.unknowns.begin(), c.part.unknowns.end());
    change.jumps.insert(change.jumps.end(), c.part.jumps.begin(), c.part.jumps.end());
  }
  std::fill(noted_.begin(), noted_.end(), now.t());
  std::sort(states.begin(), states.end());
  states.erase(std::unique(states.begin(), states.end()), states.end());
  for (const int i : states) {
    const int owner = cluster_of_state_[at(i)];
    if (owner >= 0 && !std::binary_search(touched.begin(), touched.end(), owner)) continue;
    change.states.push_back(i);
    change.rates.push_back(memory_.series->rate(i)[0]);
    change.moved.push_back(owner < 0 && now.x[at(i)] != x_[at(i)]);
  }
  dissolve(touched);
  for (const int i : change.states) x_[at(i)] = now.x[at(i)];
  for (const int u : change.letters)
    set_letter(u, u < m_ ? now.mode.switches[at(u)] : now.mode.constraints[at(u - m_)]);
  for (const int u : change.unknowns) known_[at(u)] = now.known[at(u)];
  return apply(change);
}

}  // namespace saltus
