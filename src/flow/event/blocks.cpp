#include "flow/event/blocks.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "flow/event/watches.hpp"
#include "flow/thresholds.hpp"
#include "solve/polynomial.hpp"

namespace saltus {

// ---- which models --------------------------------------------------------------------------------------------------

std::optional<BlockPlan> find_blocks(const Program& program, const ModeTape& tape, const Dependence& reads,
                                     const AffineRows& rows, std::span<const double> hold) {
  const int n = program.states(), m = program.switches();
  if (m == 0 || program.unknowns() != m || !program.model().form.jumps.empty()) return std::nullopt;
  BlockPlan plan{.rows{}, .terms{}, .kept{}, .hold{hold.begin(), hold.end()}, .own{}, .joined{}, .block{}};
  plan.block.assign(at(n), -1);
  for (int u = 0; u < m; ++u) {
    const AffineRows::Row surface = rows[at(n + 2 * u)];
    if (!program.moves(u) || program.carried(u) || program.point_degree(u) != 1 || tape.degree[at(u)] != 1 ||
        !program.dependents(u).empty())
      return std::nullopt;
    const bool is_state = surface.affine && surface.time == 0 && surface.constant == 0 && surface.terms.size() == 1 &&
                          surface.terms[0].weight == 1 && surface.terms[0].from < n;
    if (!is_state) return std::nullopt;
    const int p = surface.terms[0].from;
    if (!std::ranges::equal(reads.moves(u), std::span(&p, 1))) return std::nullopt;
    if (!std::ranges::equal(reads.kept_by(p), std::span(&u, 1))) return std::nullopt;
    for (const int i : reads.own_states(u)) {
      if (std::exchange(plan.block[at(i)], u) >= 0) return std::nullopt;
      const AffineRows::Row rate = rows[at(i)];
      const auto is_kept = [&](const AffineRows::Term& term) { return term.from == p; };
      if (i != p && (rate.constant != 0 || rate.time != 0 || !std::ranges::all_of(rate.terms, is_kept)))
        return std::nullopt;
    }
    plan.kept.push_back(p);
    plan.own.add(reads.own_states(u));
  }
  std::vector<std::vector<int>> joined(at(m));
  for (int i = 0; i < n; ++i) {
    const int u = plan.block[at(i)];
    const AffineRows::Row rate = rows[at(i)];
    if (u < 0 || !rate.affine) return std::nullopt;
    BlockPlan::Row& row = plan.rows.emplace_back(BlockPlan::Row{
        .constant = rate.constant, .time = rate.time, .first = static_cast<uint32_t>(plan.terms.size())});
    for (const AffineRows::Term& term : rate.terms) {
      if (term.from >= n) {
        if (term.from != n + u || i != plan.kept[at(u)]) return std::nullopt;
        row.sigma += term.weight;
        continue;
      }
      plan.terms.push_back({term.from, term.weight});
      const int v = plan.block[at(term.from)];
      if (v < 0) return std::nullopt;
      if (v == u) continue;
      joined[at(u)].push_back(v);
      joined[at(v)].push_back(u);
    }
    row.count = static_cast<uint32_t>(plan.terms.size()) - row.first;
    if (i == plan.kept[at(u)] && row.sigma == 0) return std::nullopt;
  }
  for (std::vector<int>& list : joined) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    plan.joined.add(list);
  }
  return plan;
}

Blocks::Blocks(BlockPlan plan, EngineMemory& memory, const RunOptions& options, Recorder& recorder)
    : plan_(std::move(plan)), memory_(memory), options_(options), recorder_(recorder), steps_(options) {
  store_.begin(at(steps_.order) + 1);
  states_.resize(plan_.rows.size());
  blocks_.resize(plan_.kept.size());
  last_events_.assign(blocks_.size(), {NAN, NAN, NAN});
  sigma_.resize(store_.terms());
  sum_.resize(store_.terms());
}

// ---- the run -------------------------------------------------------------------------------------------------------

ClusterOutcome Blocks::run(Moment& now, std::vector<Guard>& guards, double time_scale) {
  if (holiday_ > 0) {
    --holiday_;
    return ClusterOutcome::step;
  }
  first_scale_ = time_scale;
  memory_.chatter.clear();  // it does not see the events of blocks
  if (!build(now)) {
    holiday_ = not_worth_while;
    return ClusterOutcome::step;
  }
  const int count = static_cast<int>(blocks_.size());
  for (;;) {
    if (failed_) {
      penalty_ = events_ > 16 * penalty_ ? 8 : std::min(2 * penalty_, 4096L);
      events_ = 0;
      return give_up(now, penalty_);
    }
    if (queue_.empty() || queue_.top().last) {
      clock_.set(options_.until);
      assemble(clock_, now);
      forget();
      return ClusterOutcome::end;
    }
    const int first = queue_.top().cluster;
    const Run* const run = first < count ? nullptr : &runs_[at(first - count)];
    clock_ = run ? run->clock : blocks_[at(first)].clock;
    clock_.advance(run ? run->length : blocks_[at(first)].length);
    if (run && run->guards.empty()) {
      go_on(first - count);
    } else {
      find_due(first, run);
      bool close = false;
      for (const Guard& guard : due_)
        close = accumulates(guard.item, clock_.now(), run ? run->scale : scale_of(first)) || close;
      if (close) holiday_ = accumulation_steps;
      if (close || !act(now)) return hand_over(now, guards);
      ++events_;
      if (recorder_.ended()) return ClusterOutcome::end;
    }
    recorder_.count_step();
    if (limits_reached(recorder_, options_, clock_.now(), [&]() -> Moment& {
          assemble(clock_, now);
          return now;
        }))
      return ClusterOutcome::end;
  }
}

/// All anew, from a moment of the whole.
bool Blocks::build(const Moment& now) {
  for (const char letter : now.mode.switches) {
    if (letter == '=') return false;
  }
  clock_ = now.clock;
  failed_ = false;
  for (size_t i = 0; i < states_.size(); ++i) {
    states_[i].x = now.x[i];
    states_[i].column = states_[i].run = -1;
  }
  const int r = make_run();
  for (size_t u = 0; u < blocks_.size(); ++u) {
    Block& b = blocks_[u];
    b.letter = now.mode.switches[u];
    b.known = static_cast<short>(now.known[u]);
    b.since = now.t();
    b.clock = now.clock;
    b.run = b.letter == '0' ? -1 : r;
    if (b.run >= 0) {
      runs_[at(r)].blocks.push_back(static_cast<int>(u));
    } else {
      states_[at(plan_.kept[u])].x = 0;
    }
  }
  fresh_.clear();
  split(r);
  start_fresh();
  for (size_t u = 0; u < blocks_.size(); ++u) {
    if (blocks_[u].run < 0) look_at(static_cast<int>(u));
  }
  return true;
}

/// The series of a run have ended without an event.
void Blocks::go_on(int r) {
  ++event_;
  pull(r);
  runs_[at(r)].clock = clock_;
  start(r);
  ++marks_;
  for (const int u : runs_[at(r)].blocks) look_beside(u);
}

/// Finds the first guard that is due, and those due at the same time, up to the resolution of time.
void Blocks::find_due(int first, const Run* run) {
  due_.clear();
  const int count = static_cast<int>(blocks_.size());
  const auto add = [&](int place) {
    if (place < count) {
      due_.push_back({GuardKind::sigma, place, blocks_[at(place)].side});
    } else {
      const std::vector<Guard>& guards = runs_[at(place - count)].guards;
      due_.insert(due_.end(), guards.begin(), guards.end());
    }
  };
  add(first);
  const double t = clock_.now();
  queue_.until(t + time_resolution(t, run ? run->scale : scale_of(first)), [&](int place) {
    if (place != first) add(place);
  });
}

/// True if surface u accumulates events near t (Clusters::accumulates).
bool Blocks::accumulates(int u, double t, double scale) {
  std::array<double, 3>& last = last_events_[at(u)];
  const double d0 = std::abs(t - last[0]), d1 = std::abs(last[0] - last[1]), d2 = std::abs(last[1] - last[2]);
  last = {t, last[0], last[1]};
  return d0 < d1 && d1 < d2 && d0 < close_events * scale;
}

/// The whole acts on what is due.
ClusterOutcome Blocks::hand_over(Moment& now, std::vector<Guard>& guards) {
  assemble(clock_, now);
  std::fill(now.known.begin(), now.known.end(), 0);
  guards = due_;
  forget();
  return ClusterOutcome::event;
}

/// Runs cannot go on for now: the whole makes some steps.
ClusterOutcome Blocks::give_up(Moment& now, long steps) {
  assemble(clock_, now);
  forget();
  holiday_ = steps;
  return ClusterOutcome::step;
}

/// The moment of the whole at a time that no run has passed and none ends before.
void Blocks::assemble(const Clock& clock, Moment& now) {
  now.clock = clock;
  for (Run& r : runs_) {
    if (r.blocks.empty()) continue;
    const double tau = r.clock.until(clock);
    values_.resize(Columns::padded(r.series.count));
    evaluate(r.series, tau, values_.data());
    for (const int u : r.blocks) {
      for (const int i : plan_.own[u]) now.x[at(i)] = values_[at(states_[at(i)].column)];
    }
  }
  for (size_t u = 0; u < blocks_.size(); ++u) {
    const Block& b = blocks_[u];
    now.mode.switches[u] = b.letter;
    now.known[u] = b.run < 0 || runs_[at(b.run)].clock.until(clock) != 0 ? 0 : b.known;
    if (b.run >= 0) continue;
    for (const int i : plan_.own[static_cast<int>(u)]) now.x[at(i)] = states_[at(i)].x;
  }
}

void Blocks::forget() {
  for (size_t u = 0; u < blocks_.size(); ++u) {
    if (blocks_[u].run < 0) recorder_.slid(static_cast<int>(u), clock_.now() - blocks_[u].since);
  }
  for (Run& r : runs_) store_.give_back(r.series);
  runs_.clear();
  free_.clear();
  queue_.clear();
}

// ---- events --------------------------------------------------------------------------------------------------------

/// The events of the blocks that are due. A block feels the sigma of no other, so that each is decided by itself.
/// False, with nothing changed, where more must be looked at.
bool Blocks::act(Moment& now) {
  ++event_;
  for (const Guard& guard : due_) {
    const int u = guard.item;
    if (blocks_[at(u)].run >= 0) {
      pull(blocks_[at(u)].run);
      continue;
    }
    for (const int v : plan_.joined[u]) {
      if (blocks_[at(v)].run >= 0) pull(blocks_[at(v)].run);
    }
  }
  for (const Guard& guard : due_) states_[at(plan_.kept[at(guard.item)])].x = 0;
  choices_.clear();
  for (const Guard& guard : due_) {
    const std::optional<SimpleChoice> choice = choose(guard);
    if (!choice) return false;
    choices_.push_back(*choice);
  }
  tell(now);
  if (recorder_.ended()) return true;
  fresh_.clear();
  for (size_t k = 0; k < due_.size(); ++k) {
    const int u = due_[k].item;
    Block& b = blocks_[at(u)];
    b.letter = choices_[k].letter;
    b.known = static_cast<short>(choices_[k].leading);
    if (b.run < 0) {
      let_go(u);
    } else if (b.letter == '0') {
      stop(u);
    } else {
      runs_[at(b.run)].clock = clock_;
      fresh_.push_back(b.run);
    }
  }
  start_fresh();
  ++marks_;
  for (const int r : fresh_) {
    for (const int v : runs_[at(r)].blocks) look_beside(v);
  }
  for (const Guard& guard : due_) {
    Block& b = blocks_[at(guard.item)];
    if (b.run >= 0) continue;
    if (std::exchange(b.mark, marks_) != marks_) look_at(guard.item);
    look_beside(guard.item);
  }
  return true;
}

/// The runs that begin, each once, without those that have fallen apart or joined others at the same time.
void Blocks::start_fresh() {
  std::sort(fresh_.begin(), fresh_.end());
  fresh_.erase(std::unique(fresh_.begin(), fresh_.end()), fresh_.end());
  std::erase_if(fresh_, [&](int r) { return runs_[at(r)].blocks.empty(); });
  for (const int r : fresh_) start(r);
}

/// The switch state that follows, by the rates of the surface. The states of all blocks beside it are known.
std::optional<SimpleChoice> Blocks::choose(const Guard& guard) {
  const int u = guard.item;
  const BlockPlan::Row& row = plan_.rows[at(plan_.kept[at(u)])];
  double rate = row.constant + row.time * clock_.now();
  for (const BlockPlan::Term& term : terms_of(row)) rate += term.weight * states_[at(term.state)].x;
  const double hold = plan_.hold[at(u)];
  if (guard.kind == GuardKind::surface) return by_sides(rate + row.sigma, rate - row.sigma, hold);
  if (guard.side == 0) return std::nullopt;
  const double jump = std::abs(row.sigma) * (1 + hold);
  if (hold > 1) return by_release(guard.side * rate + row.sigma, jump, guard.side);
  // The state leaves along its surface, and bends away from it.
  if (!by_release(0.5 * guard.side * bend(u, guard.side) * scale_of(u), jump, guard.side)) return std::nullopt;
  return SimpleChoice{guard.side > 0 ? '+' : '-', 2};
}

/// The second derivative of the surface of a block that is let go with no rate.
double Blocks::bend(int u, int side) const {
  const int p = plan_.kept[at(u)];
  const BlockPlan::Row& row = plan_.rows[at(p)];
  double sum = row.time, rate = row.constant + row.time * clock_.now() + side * row.sigma, own = 0;
  for (const BlockPlan::Term& term : terms_of(row)) {
    const State& s = states_[at(term.state)];
    rate += term.weight * s.x;
    if (term.state == p) own += term.weight;
    if (s.column < 0) continue;
    const double tau = runs_[at(s.run)].clock.until(clock_);
    const ColumnSeries c = column(s);
    double slope = 0;
    for (size_t order = store_.terms() - 1; order > 0; --order)
      slope = slope * tau + static_cast<double>(order) * c[order];
    sum += term.weight * slope;
  }
  return sum + own * rate;
}

/// Tells the recorder; the state of the whole is made only if somebody wants it.
void Blocks::tell(Moment& now) {
  const double t = clock_.now();
  if (!recorder_.tells(t)) {
    long slides = 0;
    for (size_t k = 0; k < due_.size(); ++k)
      slides += choices_[k].letter == '0' && blocks_[at(due_[k].item)].letter != '0';
    return recorder_.count(t, slides);
  }
  assemble(clock_, now);
  Transition event{.t = t, .before = now.mode, .after = now.mode};
  event.guards = due_;
  event.x_minus = event.x_plus = now.x;
  for (size_t k = 0; k < due_.size(); ++k) {
    const size_t u = at(due_[k].item);
    event.after.switches[u] = choices_[k].letter;
    event.x_plus[at(plan_.kept[u])] = 0;
  }
  now.x = event.x_plus;
  now.mode = event.after;
  recorder_.happened(event, now);
}

/// A block stops: its run falls apart.
void Blocks::stop(int u) {
  Block& b = blocks_[at(u)];
  const int r = b.run;
  b.since = clock_.now();
  b.run = -1;
  for (const int i : plan_.own[u]) states_[at(i)].column = states_[at(i)].run = -1;
  std::erase(runs_[at(r)].blocks, u);
  split(r);
}

/// A block is let go: the runs beside it are one with it.
void Blocks::let_go(int u) {
  recorder_.slid(u, clock_.now() - blocks_[at(u)].since);
  queue_.remove(u);
  left_.clear();
  bool added = false;
  for (const int v : plan_.joined[u]) {
    if (v > u && !std::exchange(added, true)) left_.push_back(u);
    const int r = blocks_[at(v)].run;
    if (r < 0 || runs_[at(r)].blocks.empty()) continue;
    left_.insert(left_.end(), runs_[at(r)].blocks.begin(), runs_[at(r)].blocks.end());
    remove_run(r);
  }
  if (!added) left_.push_back(u);
  if (!std::is_sorted(left_.begin(), left_.end())) std::sort(left_.begin(), left_.end());
  const int r = make_run();
  std::swap(runs_[at(r)].blocks, left_);
  for (const int v : runs_[at(r)].blocks) blocks_[at(v)].run = r;
  fresh_.push_back(r);
}

/// The time in which what a block that sticks feels changes.
double Blocks::scale_of(int u) const {
  double scale = 0;
  for (const int v : plan_.joined[u]) {
    const int r = blocks_[at(v)].run;
    if (r >= 0) scale = scale == 0 ? runs_[at(r)].scale : std::min(scale, runs_[at(r)].scale);
  }
  return scale == 0 ? first_scale_ : scale;
}

// ---- runs ----------------------------------------------------------------------------------------------------------

/// A run without blocks, which begins now.
int Blocks::make_run() {
  int r = static_cast<int>(runs_.size());
  if (free_.empty()) {
    runs_.emplace_back();
  } else {
    r = free_.back();
    free_.pop_back();
  }
  runs_[at(r)].clock = clock_;
  return r;
}

void Blocks::remove_run(int r) {
  store_.give_back(runs_[at(r)].series);
  runs_[at(r)].blocks.clear();
  queue_.remove(static_cast<int>(blocks_.size()) + r);
  free_.push_back(r);
}

/// The states of a run as they are now; it ends there.
void Blocks::pull(int r) {
  Run& run = runs_[at(r)];
  if (run.pulled == event_) return;
  run.pulled = event_;
  values_.resize(Columns::padded(run.series.count));
  evaluate(run.series, run.clock.until(clock_), values_.data());
  const double* value = values_.data();
  for (const int u : run.blocks) {
    blocks_[at(u)].known = 0;
    for (const int i : plan_.own[u]) states_[at(i)].x = *value++;
  }
}

/// The blocks of a run, where some have been taken away: those that are joined are runs.
void Blocks::split(int r) {
  std::swap(left_, runs_[at(r)].blocks);
  remove_run(r);
  for (const int u : left_) blocks_[at(u)].run = -2 - r;  // in none yet
  for (const int u : left_) {
    if (blocks_[at(u)].run != -2 - r) continue;
    const int own = make_run();
    fresh_.push_back(own);
    blocks_[at(u)].run = own;
    stack_.assign(1, u);
    while (!stack_.empty()) {
      const int v = stack_.back();
      stack_.pop_back();
      for (const int w : plan_.joined[v]) {
        if (blocks_[at(w)].run != -2 - r) continue;
        blocks_[at(w)].run = own;
        stack_.push_back(w);
      }
    }
  }
  for (const int u : left_) runs_[at(blocks_[at(u)].run)].blocks.push_back(u);
  left_.clear();
}

/// A run begins where its states are.
void Blocks::start(int r) {
  Run& run = runs_[at(r)];
  if (!expand(run)) {
    failed_ = true;
    return;
  }
  find_end(run);
  queue_.set({run.due, run.last, static_cast<int>(blocks_.size()) + r});
}

/// Its series; false where they are no numbers.
bool Blocks::expand(Run& run) {
  size_t count = 0;
  const int r = static_cast<int>(&run - runs_.data());
  for (const int u : run.blocks) {
    for (const int i : plan_.own[u]) {
      states_[at(i)].column = static_cast<int>(count++);
      states_[at(i)].run = r;
      states_[at(i)].speed = -1;
    }
  }
  if (run.series.count != count) {
    store_.give_back(run.series);
    run.series = store_.take(count);
  }
  steps_.begin(count);
  Band& band = steps_.band;
  const double t = run.clock.now();
  bool banded = true, finite = true;
  int k = 0;
  for (const int u : run.blocks) {
    const double sigma = value_of(blocks_[at(u)]);
    for (const int i : plan_.own[u]) {
      State& own = states_[at(i)];
      const BlockPlan::Row& row = plan_.rows[at(i)];
      double value = row.constant + row.time * t + row.sigma * sigma;
      for (const BlockPlan::Term& term : terms_of(row)) {
        const State& s = states_[at(term.state)];
        if (s.column < 0) {
          value += term.weight * s.x;
        } else if (std::abs(s.column - k) <= Band::reach) {
          band.add(at(k), s.column - k, term.weight);
        } else {
          banded = false;
        }
      }
      band.constant[at(k)] = value;
      band.time[at(k)] = row.time;
      run.series.first[k] = own.x;
      const double size = std::abs(own.x);
      own.largest = std::max(own.largest, size);
      steps_.least[at(k)] = 1e-6 * own.largest;
      finite = finite && size < largest_state;
      ++k;
    }
  }
  if (!finite) return false;
  if (banded) {
    saltus::expand(band, run.series, steps_.next);
  } else {
    expand_terms(run);
  }
  return true;
}

/// Expands rates that read states far from them.
void Blocks::expand_terms(const Run& run) {
  const Columns& c = run.series;
  local_.clear();
  size_t k = 0;
  for (const int u : run.blocks) {
    for (const int i : plan_.own[u]) {
      for (const BlockPlan::Term& term : terms_of(plan_.rows[at(i)])) {
        const State& s = states_[at(term.state)];
        if (s.column >= 0) local_.push_back({k, at(s.column), term.weight});
      }
      ++k;
    }
  }
  const size_t padded = Columns::padded(c.count);
  steps_.next.assign(padded, 0.0);
  std::fill(c.first + c.count, c.first + padded, 0.0);
  for (size_t order = 0; order < c.terms; ++order) {
    const double* from = c.row(order);
    double* to = order + 1 < c.terms ? c.row(order + 1) : steps_.next.data();
    if (order < 2) {
      const std::vector<double>& begin = order == 0 ? steps_.band.constant : steps_.band.time;
      std::copy_n(begin.data(), padded, to);
    } else {
      std::fill_n(to, padded, 0.0);
    }
    for (const LocalTerm& term : local_) to[term.row] += term.weight * from[term.column];
    if (order + 1 == c.terms) break;
    for (size_t j = 0; j < c.count; ++j) to[j] *= 1.0 / static_cast<double>(order + 1);
  }
}

/// Where a run ends: the first zero of its surfaces, or as far as its series carry.
void Blocks::find_end(Run& run) {
  run.guards.clear();
  const double t = run.clock.now(), whole = run.clock.until(options_.until);
  const double shortest = std::max(shortest_step_bits * eps * std::abs(t), 1e-300);
  double length = std::min(whole, steps_.natural_step(run.series, first_scale_, run.scale));
  if (length < shortest && length < whole) {
    failed_ = true;
    length = 0;
  }
  const double resolution = time_resolution(t, run.scale);
  steps_.clearance.resize(Columns::padded(run.series.count));
  find_clearance(run.series, length + resolution, steps_.clearance.data());
  candidates_.clear();
  size_t soonest = 0;
  for (const int u : run.blocks) {
    const size_t k = at(states_[at(plan_.kept[at(u)])].column);
    const double x = run.series.first[k], sign = value_of(blocks_[at(u)]);
    if (steps_.clearance[k] > 0 && x * sign > 0) continue;
    const double rate = run.series.row(1)[k];
    candidates_.push_back({u, k, x * rate < 0 ? -x / rate : HUGE_VAL});
    if (candidates_.back().soon < candidates_[soonest].soon) soonest = candidates_.size() - 1;
  }
  if (soonest > 0) std::swap(candidates_[0], candidates_[soonest]);
  for (;;) {
    found_.clear();
    double h = length, first = HUGE_VAL;
    for (const Candidate& candidate : candidates_) {
      const Block& b = blocks_[at(candidate.block)];
      const int sign = b.letter == '-' ? -1 : 1;
      const Guard guard{GuardKind::surface, candidate.block, sign};
      const ColumnSeries own = run.series[candidate.column];
      for (size_t order = 0; order < sum_.size(); ++order) sum_[order] = own[order];
      const double at_zero =
          b.known == 0 && sum_[0] * sign < 0
              ? 0
              : with_known_zeros(sum_, b.known, first_zero(sum_, h, resolution, b.known, 0), resolution);
      if (!(at_zero <= h)) continue;
      found_.push_back({at_zero, guard});
      first = std::min(first, at_zero);
      h = at_zero == 0 ? resolution : std::min(h, at_zero);
    }
    if (first < HUGE_VAL) length = first;
    if (steps_.last_terms_small(run.series, length)) {
      for (const auto& [root, guard] : found_) {
        if (std::abs(root - length) <= resolution) run.guards.push_back(guard);
      }
      break;
    }
    length /= 2;
  }
  run.length = length;
  run.last = run.guards.empty() && length >= whole;
  Clock end = run.clock;
  end.advance(length);
  run.due = run.last ? options_.until : end.now();
}

// ---- what sticks ---------------------------------------------------------------------------------------------------

/// Looks at the blocks that stick beside one, each once.
void Blocks::look_beside(int u) {
  for (const int v : plan_.joined[u]) {
    Block& b = blocks_[at(v)];
    if (b.run >= 0 || b.mark == marks_) continue;
    b.mark = marks_;
    look_at(v);
  }
}

/// When a block that sticks is let go, as far as the runs beside it are known.
void Blocks::look_at(int u) {
  Block& b = blocks_[at(u)];
  b.known = b.clock.until(clock_) == 0 ? b.known : 0;
  b.clock = clock_;
  double h = clock_.until(options_.until);
  for (const int v : plan_.joined[u]) {
    const int r = blocks_[at(v)].run;
    if (r >= 0) h = std::min(h, clock_.until(runs_[at(r)].due));
  }
  h = std::max(h, 0.0);
  const double resolution = time_resolution(clock_.now(), scale_of(u));
  b.side = 0;
  b.length = HUGE_VAL;
  if (b.known != 0 || !(stays_far_inside(u, h + resolution) || stays_inside(u, h + resolution))) {
    expand_sigma(u);
    for (const int side : {1, -1}) {
      bool late = false;
      const int known = sigma_[0] * side > 0 ? b.known : 0;
      const std::optional<double> root = reaches(side * plan_.hold[at(u)], known, h, resolution, late);
      if (!root || *root >= b.length) continue;
      b.length = *root;
      b.side = static_cast<signed char>(late ? 0 : side);
    }
  }
  if (b.length < HUGE_VAL) {
    Clock end = clock_;
    end.advance(b.length);
    queue_.set({end.now(), false, u});
  } else {
    queue_.remove(u);
  }
}

/// True if sigma stays inside its bounds for so long, by where the runs beside it began and their speed: nothing of
/// their series is read again.
bool Blocks::stays_far_inside(int u, double h) {
  const BlockPlan::Row& row = plan_.rows[at(plan_.kept[at(u)])];
  double value = row.constant + row.time * clock_.now(), change = std::abs(row.time) * h;
  for (const BlockPlan::Term& term : terms_of(row)) {
    State& s = states_[at(term.state)];
    value += term.weight * s.x;
    if (s.column < 0) continue;
    const Run& run = runs_[at(s.run)];
    if (s.speed < 0) s.speed = bound_rate(column(s), store_.terms(), run.length);
    change += std::abs(term.weight) * s.speed * (run.clock.until(clock_) + h);
  }
  constexpr double rounding = 1e-9;
  return std::abs(value) + change < (1 - rounding) * plan_.hold[at(u)] * std::abs(row.sigma);
}

/// True if sigma stays inside its bounds for so long, by no more than the rates of what it reads.
bool Blocks::stays_inside(int u, double h) const {
  const BlockPlan::Row& row = plan_.rows[at(plan_.kept[at(u)])];
  double value = row.constant + row.time * clock_.now(), change = std::abs(row.time) * h;
  for (const BlockPlan::Term& term : terms_of(row)) {
    const State& s = states_[at(term.state)];
    if (s.column < 0) {
      value += term.weight * s.x;
      continue;
    }
    const ColumnSeries own = column(s);
    const double since = runs_[at(s.run)].clock.until(clock_);
    value += term.weight * (since == 0 ? own[0] : evaluate(own, store_.terms(), since));
    change += std::abs(term.weight) * h * bound_rate(own, store_.terms(), since + h);
  }
  constexpr double rounding = 1e-9;
  return std::abs(value) + change < (1 - rounding) * plan_.hold[at(u)] * std::abs(row.sigma);
}

/// The series of sigma from now on.
void Blocks::expand_sigma(int u) {
  const BlockPlan::Row& row = plan_.rows[at(plan_.kept[at(u)])];
  const std::span<const BlockPlan::Term> terms = terms_of(row);
  std::fill(sigma_.begin(), sigma_.end(), 0.0);
  sigma_[0] = row.constant + row.time * clock_.now();
  sigma_[1] = row.time;
  for (size_t k = 0; k < terms.size();) {
    const State& s = states_[at(terms[k].state)];
    if (s.column < 0) {
      sigma_[0] += terms[k++].weight * s.x;
      continue;
    }
    std::fill(sum_.begin(), sum_.end(), 0.0);
    for (const int r = s.run; k < terms.size() && states_[at(terms[k].state)].run == r; ++k) {  // of one clock
      const ColumnSeries own = column(states_[at(terms[k].state)]);
      for (size_t order = 0; order < sum_.size(); ++order) sum_[order] += terms[k].weight * own[order];
    }
    shift_polynomial(sum_, runs_[at(s.run)].clock.until(clock_));
    for (size_t order = 0; order < sum_.size(); ++order) sigma_[order] += sum_[order];
  }
  for (double& c : sigma_) c *= -1 / row.sigma;
}

/// Where sigma reaches one of its bounds within h; `late`: it is beyond.
std::optional<double> Blocks::reaches(double bound, int known, double h, double resolution, bool& late) {
  const double value = sigma_[0] - bound;
  late = known == 0 && value * bound > 0;
  if (late) return 0.0;
  double rest = 0;
  for (size_t k = sigma_.size(); k-- > 1;) rest = (rest + std::abs(sigma_[k])) * (h + resolution);
  if (known == 0 && rest < 0.5 * std::abs(value)) return std::nullopt;
  std::copy(sigma_.begin(), sigma_.end(), sum_.begin());
  sum_[0] = value;
  const double root = first_zero(sum_, h, resolution, known, sigma_noise * std::abs(bound));
  return root <= h ? std::optional(root) : std::nullopt;
}

}  // namespace saltus
