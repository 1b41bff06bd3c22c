// Clusters whose formulas are weighted sums: their series come straight from the rows of the whole, without a program
// of their own.
//
//   x_{k+1} = (W x_k + what rests) / (k + 1)           W: rows of the states that move in the cluster
//   sigma   = -(equation without it) / slope           of what only watches: a sum of series, too
//   root    = first zero of surfaces, gaps, |sigma| = s, lambda on the step
//
// An event of one switch is decided where the states that its surface pins are, with the others driven.
#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "flow/event/clusters.hpp"
#include "flow/event/watches.hpp"
#include "flow/thresholds.hpp"
#include "solve/polynomial.hpp"

namespace saltus {
namespace {

void add_multiple(std::span<double> out, double weight, const ColumnSeries& c) {
  for (size_t k = 0; k < out.size(); ++k) out[k] += weight * c[k];
}

}  // namespace

// ---- which clusters ------------------------------------------------------------------------------------------------

void Clusters::find_rows() {
  if (direction_ < 0) return;
  std::vector<size_t> outputs;
  const int unknowns = program_.unknowns();
  for (int i = 0; i < n_; ++i) outputs.push_back(program_.rate(i));
  for (int u = 0; u < unknowns; ++u) {
    outputs.push_back(u < m_ ? program_.surface(u) : program_.gap(u - m_));
    outputs.push_back(program_.residual(u));
  }
  for (size_t k = 0; k < jumps_.size(); ++k) outputs.push_back(program_.jump(static_cast<int>(k)));
  AffineFlow& flow = affine_.emplace(AffineFlow{.rows = parts_->affine_rows(outputs), .steps = RowSteps(options_)});
  flow.largest.assign(at(n_), 0.0);
  for (int u = 0; u < unknowns; ++u) {
    flow.hold.push_back(u < m_ ? memory_.series->hold(u) : 0);
    double slope = 0;
    for (const AffineRows::Term& term : choice_row(u).terms) slope += term.from == n_ + u ? term.weight : 0;
    flow.slope.push_back(choice_row(u).affine ? slope : 0);
  }
}

/// True if an unknown that is solved for, and moves nothing, is a sum without another such unknown.
bool Clusters::is_sum(int u) const {
  if (affine_->slope[at(u)] == 0 || moves_something(u)) return false;
  const std::span<const int> read = reads_->choice_unknowns(u);
  return std::none_of(read.begin(), read.end(), [&](int v) { return v != u && active(v); });
}

/// True if the series of a cluster are those of rows.
bool Clusters::is_affine(const Draft& draft) const {
  if (!affine_) return false;
  return std::all_of(draft.moving.begin(), draft.moving.end(), [&](int i) { return rate_row(i).affine; }) &&
         std::all_of(draft.part.unknowns.begin(), draft.part.unknowns.end(),
                     [&](int u) { return active(u) ? is_sum(u) : watch_row(u).affine; }) &&
         std::all_of(draft.part.jumps.begin(), draft.part.jumps.end(), [&](int k) { return jump_row(k).affine; });
}

// ---- a step --------------------------------------------------------------------------------------------------------

void Clusters::expand_affine(Cluster& c) {
  c.guards.clear();
  c.last = c.waits = c.whole = false;
  c.horizon = direction_ * HUGE_VAL;
  c.scale = 0;
  for (const Drive& d : c.drives) {
    const Cluster& source = *clusters_[at(d.source)];
    if (direction_ * source.due < direction_ * c.horizon) c.horizon = source.due;
    c.scale = c.scale == 0 ? source.scale : std::min(c.scale, source.scale);
  }
  if (!step_affine(c)) c.leave_to_whole();
  if (c.scale == 0) c.scale = first_scale_;
}

bool Clusters::step_affine(Cluster& c) {
  if (!expand_states(c)) return false;
  const double t = c.clock.now(), whole = std::abs(c.clock.until(options_.until));
  const double longest = c.drives.empty() ? whole : std::min(whole, std::abs(c.clock.until(c.horizon)));
  const double shortest = std::max(shortest_step_bits * eps * std::abs(t), 1e-300);
  double length = longest;
  if (!c.moving.empty()) length = std::min(length, affine_->steps.natural_step(c.series, first_scale_, c.scale));
  if (length < shortest && length < longest) return false;
  const double resolution = time_resolution(t, c.scale == 0 ? first_scale_ : c.scale);
  list_watches(c, length + resolution);
  if (!c.moving.empty()) length = std::min(length, natural_step_of_watches(length));
  if (length < shortest && length < longest) return false;
  const AffineWatch* first = nullptr;
  for (;;) {
    first = find_first(length, resolution);
    if (first) length = first->root;
    if (affine_->steps.last_terms_small(c.series, length)) break;
    length /= 2;
  }
  c.length = length;
  if (first) {
    for (const AffineWatch& w : affine_->watches) {
      if (!w.found || std::abs(w.root - length) > resolution) continue;
      Guard& guard = c.guards.emplace_back(w.guard);
      if (w.late && is_solved(guard, program_)) guard.side = 0;
    }
    const auto place = [](const Guard& g) { return std::pair(g.kind == GuardKind::jump, g.item); };
    if (c.guards.size() > 1) std::ranges::stable_sort(c.guards, {}, place);
  }
  c.last = !first && length >= whole;
  c.waits = !first && !c.last && length >= longest;
  Clock end = c.clock;
  end.advance(length);
  c.due = c.last ? options_.until : end.now();
  return true;
}

/// The series of the states that move; false where they are no numbers.
bool Clusters::expand_states(Cluster& c) {
  if (c.moving.empty()) return true;
  AffineFlow& flow = *affine_;
  Band& band = flow.steps.band;
  const double t = c.clock.now();
  const size_t count = c.moving.size();
  flow.steps.begin(count);
  flow.terms.clear();
  bool banded = true;
  for (size_t k = 0; k < count; ++k) {
    const int i = c.moving[k];
    const AffineRows::Row row = rate_row(i);
    double value = row.constant + row.time * t, time = row.time;
    for (const AffineRows::Term& term : row.terms) {
      if (term.from >= n_) {
        value += term.weight * value_of(term.from - n_);
      } else if (!moving_[at(term.from)]) {
        value += term.weight * x_[at(term.from)];
      } else if (const int owner = cluster_of_state_[at(term.from)]; owner == c.place) {
        const int offset = column_[at(term.from)] - static_cast<int>(k);
        if (banded && std::abs(offset) <= Band::reach) {
          band.add(k, offset, term.weight);
        } else {
          banded = false;
        }
      } else {  // it drifts
        const ColumnSeries other = column(term.from);
        value += term.weight * evaluate(other, store_.terms(), clusters_[at(owner)]->clock.until(c.clock));
        time += term.weight * other[1];
      }
    }
    band.constant[k] = value;
    band.time[k] = time;
    const double size = std::abs(c.series.first[k]);
    double& largest = flow.largest[at(i)];
    largest = std::max(largest, size);
    flow.steps.least[k] = 1e-6 * largest;
    if (!(size < largest_state)) return false;
  }
  if (banded) {
    expand(band, c.series, flow.steps.next);
  } else {
    expand_terms(c);
  }
  return true;
}

/// Expands rates that read states far from them.
void Clusters::expand_terms(const Cluster& c) {
  AffineFlow& flow = *affine_;
  for (const int i : c.moving) {
    for (const AffineRows::Term& term : rate_row(i).terms) {
      if (term.from < n_ && moving_[at(term.from)] && cluster_of_state_[at(term.from)] == c.place)
        flow.terms.push_back({c.series.first + column_[at(term.from)], term.weight});
    }
    flow.terms.emplace_back();
  }
  const size_t count = c.moving.size(), terms = c.series.terms;
  flow.steps.next.resize(Columns::padded(count));
  for (size_t k = count; k < Columns::padded(count); ++k) {
    for (size_t order = 0; order < terms; ++order) c.series.row(order)[k] = 0;
  }
  for (size_t order = 0; order < terms; ++order) {
    const size_t shift = order * c.series.stride;
    const double factor = 1.0 / static_cast<double>(order + 1);
    const AffineFlow::LocalTerm* term = flow.terms.data();
    const std::vector<double>* begin = order == 0   ? &flow.steps.band.constant
                                       : order == 1 ? &flow.steps.band.time
                                                    : nullptr;
    for (size_t k = 0; k < count; ++k, ++term) {
      double sum = begin ? (*begin)[k] : 0;
      for (; term->from; ++term) sum += term->weight * term->from[shift];
      if (order + 1 < terms) {
        c.series.row(order + 1)[k] = sum * factor;
      } else {
        flow.steps.next[k] = sum;
      }
    }
  }
}

/// A row as a series from the clock of a cluster. `without`: an unknown that is left out.
void Clusters::expand_row(const Cluster& c, const AffineRows::Row& row, int without, double* to) {
  const size_t stride = store_.terms();
  const std::span<double> out(to, stride);
  std::fill(out.begin(), out.end(), 0.0);
  out[0] = row.constant + row.time * c.clock.now();
  out[1] = row.time;
  const std::span<const AffineRows::Term> terms = row.terms;
  for (size_t k = 0; k < terms.size(); ++k) {
    const int j = terms[k].from;
    if (j >= n_) {
      if (j != n_ + without) out[0] += terms[k].weight * value_of(j - n_);
    } else if (!moving_[at(j)]) {
      out[0] += terms[k].weight * x_[at(j)];
    } else if (const int owner = cluster_of_state_[at(j)]; owner == c.place) {
      add_multiple(out, terms[k].weight, column(j));
    } else {
      // All terms of one source at once, where it is met first: its clock is another one.
      const auto same = [&](const AffineRows::Term& t) {
        return t.from < n_ && moving_[at(t.from)] && cluster_of_state_[at(t.from)] == owner;
      };
      if (std::any_of(terms.begin(), terms.begin() + ix(k), same)) continue;
      const Cluster& source = *clusters_[at(owner)];
      std::vector<double>& sum = affine_->sum;
      sum.assign(stride, 0.0);
      for (const AffineRows::Term& t : terms.subspan(k)) {
        if (same(t)) add_multiple(sum, t.weight, column(t.from));
      }
      shift_polynomial(sum, source.clock.until(c.clock));
      add_multiple(out, 1.0, {sum.data(), 1});
    }
  }
}

/// True if a sigma that moves nothing stays inside its bounds for so long, by no more than the rates of what it reads.
bool Clusters::stays_inside(const Cluster& c, int u, double h) const {
  const AffineRows::Row row = choice_row(u);
  double value = row.constant + row.time * c.clock.now(), change = std::abs(row.time) * h;
  for (const AffineRows::Term& term : row.terms) {
    const int j = term.from;
    if (j >= n_) {
      if (j != n_ + u) value += term.weight * value_of(j - n_);
    } else if (!moving_[at(j)]) {
      value += term.weight * x_[at(j)];
    } else {
      const int owner = cluster_of_state_[at(j)];
      const double since = owner == c.place ? 0 : std::abs(clusters_[at(owner)]->clock.until(c.clock));
      const ColumnSeries own = column(j);
      value += term.weight * (since == 0 ? own[0] : evaluate(own, store_.terms(), since));
      change += std::abs(term.weight) * h * bound_rate(own, store_.terms(), since + h);
    }
  }
  constexpr double rounding = 1e-9;
  return std::abs(value) + change < (1 - rounding) * affine_->hold[at(u)] * std::abs(affine_->slope[at(u)]);
}

/// Everything in the cluster that may vanish within `reach`, as Watches::list.
void Clusters::list_watches(const Cluster& c, double reach) {
  AffineFlow& flow = *affine_;
  const size_t stride = store_.terms();
  flow.watches.clear();
  const size_t watched = c.part.unknowns.size() + c.part.jumps.size();
  if (flow.series.size() < watched * stride) flow.series.resize(watched * stride);
  if (!c.moving.empty()) {
    flow.steps.clearance.resize(Columns::padded(c.moving.size()));
    find_clearance(c.series, reach, flow.steps.clearance.data());
  }
  double* out = flow.series.data();
  for (size_t k = 0; k < c.part.unknowns.size(); ++k) {
    const int u = c.part.unknowns[k];
    const bool is_switch = u < m_;
    const int item = static_cast<int>(is_switch ? k : k - c.switches), known = known_[at(u)];
    const char now = letter(u);
    if (active(u)) {
      if (is_switch && known == 0 && stays_inside(c, u, reach)) continue;
      expand_row(c, choice_row(u), u, out);
      const double factor = -1.0 / flow.slope[at(u)];
      for (size_t order = 0; order < stride; ++order) out[order] *= factor;
      const double s = flow.hold[at(u)];
      if (is_switch) {
        flow.watches.push_back(
            {.guard = {GuardKind::sigma, item, 1}, .c = out, .offset = s, .known = out[0] > 0 ? known : 0, .sign = -1});
        flow.watches.push_back({.guard = {GuardKind::sigma, item, -1},
                                .c = out,
                                .offset = -s,
                                .known = out[0] < 0 ? known : 0,
                                .sign = 1});
      } else {
        flow.watches.push_back({.guard = {GuardKind::lambda, item, 1}, .c = out, .known = known, .sign = 1});
      }
      out += stride;
      continue;
    }
    if (is_switch && (now == '0' || !program_.moves(u))) continue;
    const AffineRows::Row row = watch_row(u);
    const int sign = is_switch && now == '-' ? -1 : 1;
    const bool is_state = row.terms.size() == 1 && row.terms[0].weight == 1 && row.constant == 0 && row.time == 0 &&
                          row.terms[0].from < n_ && moving_[at(row.terms[0].from)] &&
                          cluster_of_state_[at(row.terms[0].from)] == c.place;
    if (is_state) {
      const size_t own = at(column_[at(row.terms[0].from)]);
      if (flow.steps.clearance[own] > 0 && c.series.first[own] * sign > 0) continue;
      for (size_t order = 0; order < stride; ++order) out[order] = c.series.row(order)[own];
    } else {
      expand_row(c, row, -1, out);
    }
    flow.watches.push_back({.guard = {is_switch ? GuardKind::surface : GuardKind::gap, item, sign},
                            .c = out,
                            .known = known,
                            .sign = sign,
                            .is_state = is_state});
    out += stride;
  }
  for (size_t k = 0; k < c.part.jumps.size(); ++k, out += stride) {
    const AffineRows::Row row = jump_row(c.part.jumps[k]);
    expand_row(c, row, -1, out);
    AffineWatch& w = flow.watches.emplace_back(
        AffineWatch{.guard = {GuardKind::jump, static_cast<int>(k), 0}, .c = out, .jump = c.part.jumps[k]});
    note_row(w, row, c.clock.now(), c.scale);
  }
}

/// How far the series of what is watched besides carry, where the states would reach so far.
double Clusters::natural_step_of_watches(double reach) const {
  const AffineFlow& flow = *affine_;
  const size_t order = at(flow.steps.order);
  LastTerms terms;
  for (const AffineWatch& w : flow.watches) {
    if (w.is_state) continue;
    const double* x = w.c;
    const double scale =
        std::max({std::abs(x[0]), std::abs(x[1]) * reach, std::abs(x[2]) * reach * reach, std::abs(w.offset)});
    if (!(scale > 0)) continue;
    terms.last = std::max(terms.last, std::abs(x[order]) / scale);
    terms.previous = std::max(terms.previous, std::abs(x[order - 1]) / scale);
  }
  if (terms.last == 0 && terms.previous == 0) return HUGE_VAL;
  return std::isfinite(terms.last) && std::isfinite(terms.previous) ? flow.steps.length_by(terms) : 0;
}

/// The watched function whose zero comes first (Watches::find_first).
const Clusters::AffineWatch* Clusters::find_first(double h, double resolution) {
  AffineWatch* first = nullptr;
  // Behind the zero that comes first, by its tangent, the others need not be looked for.
  const auto later = [](const AffineWatch& w) {
    const double value = w.c[0] - w.offset, rate = w.c[1];
    return value * rate < 0 ? -value / rate : HUGE_VAL;
  };
  std::vector<AffineWatch>& watches = affine_->watches;
  if (watches.size() > 1) {
    const auto soonest = std::min_element(watches.begin(), watches.end(),
                                          [&](const auto& a, const auto& b) { return later(a) < later(b); });
    if (soonest != watches.begin()) std::iter_swap(soonest, watches.begin());
  }
  for (AffineWatch& w : affine_->watches) {
    w.found = w.late = false;
    locate(w, h, resolution);
    if (!w.found) continue;
    if (!first || w.root < first->root) first = &w;
    if (w.root < h) h = w.root;
    if (h == 0) h = resolution;
  }
  return first;
}

void Clusters::locate(AffineWatch& w, double h, double resolution) {
  const size_t count = at(affine_->steps.order) + 1;
  std::span<const double> series(w.c, count);
  const double value = w.c[0] - w.offset;
  if (w.crossed || (w.known == 0 && value * w.sign < 0)) {
    w.found = w.late = true;
    w.root = 0;
    return;
  }
  if (w.offset != 0) {
    double rest = 0;  // a sigma far from its bound
    for (size_t k = count; k-- > 1;) rest = (rest + std::abs(w.c[k])) * (h + resolution);
    if (w.known == 0 && rest < 0.5 * std::abs(value)) return;
    affine_->shifted.assign(w.c, w.c + count);
    affine_->shifted[0] = value;
    series = affine_->shifted;
  }
  const double noise = w.guard.kind == GuardKind::sigma ? sigma_noise * std::abs(w.offset) : 0;
  double from = 0;
  for (int attempt = 0; attempt < 16; ++attempt) {
    const Root root =
        leftmost_root(series, {.h = h + resolution, .from = from, .known_zeros = w.known, .noise = noise});
    if (root.kind == RootKind::none) return;
    if (root.kind == RootKind::crossing && (w.jump < 0 || jumps_.wanted(at(w.jump), root.sign_after))) {
      const double there =
          is_solved(w.guard, program_) ? root.at : with_known_zeros(series, w.known, root.at, resolution);
      w.found = true;
      w.root = std::min(there, h);
      return;
    }
    from = root.at;
  }
}

// ---- events --------------------------------------------------------------------------------------------------------

/// The event of one switch in a cluster, with its own states alone; what else moves goes on as it did. False, with
/// nothing changed, where more must be looked at.
bool Clusters::act_alone(const Cluster& first, Moment& now) {
  const Guard& guard = first.guards[0];
  if (first.guards.size() > 1 || (guard.kind != GuardKind::surface && guard.kind != GuardKind::sigma)) return false;
  const int u = whole_item(first, guard);
  const std::span<const int> own = reads_->own_states(u);
  if (own.empty()) return false;
  acting_.assign(1, first.place);
  for (const int i : own) {
    if (!moving_[at(i)]) {
      if (pin_[at(i)] >= 0 && pin_[at(i)] != u) return false;
    } else if (cluster_of_state_[at(i)] != first.place) {
      if (!drifting_[at(i)]) return false;
      add_acting(cluster_of_state_[at(i)]);
    }
  }
  for (const int reader : reads_->unknown_readers(u)) {
    if (reader >= n_ && reader != n_ + u && active(reader - n_)) return false;
  }
  for (const int v : reads_->choice_unknowns(u)) {
    if (v != u && active(v)) return false;
  }
  Subsystem& part = alone_.part;
  part.states.assign(own.begin(), own.end());
  part.unknowns.assign(1, u);
  part.jumps.clear();
  alone_.room = find_room(part);
  alone_.switches = 1;
  alone_.scale = first.scale;
  alone_.guards.assign(1, guard);
  alone_.guards[0].item = 0;
  alone_.x.clear();
  for (const int i : part.states) alone_.x.push_back(state_at(i));
  for (const int i : part.outside) alone_.x.push_back(state_at(i));
  for (const int v : part.fixed) {
    if (active(v)) return false;
    alone_.x.push_back(value_of(v));
  }
  return act_in(alone_, true, now);
}

/// The value of a state at the time of the event; of a state in the pool, its known value there.
double Clusters::state_at(int i) const {
  if (!moving_[at(i)] || cluster_of_state_[at(i)] < 0) return x_[at(i)];
  const Cluster& c = *clusters_[at(cluster_of_state_[at(i)])];
  return evaluate(column(i), store_.terms(), c.clock.until(clock_));
}

/// States outside move on as before the event: such a decision reads the first terms alone.
void Clusters::drive_alone() {
  for (size_t k = 0; k < alone_.part.outside.size(); ++k) {
    const int i = alone_.part.outside[k];
    if (!moving_[at(i)]) continue;
    const Cluster& c = *clusters_[at(cluster_of_state_[at(i)])];
    double terms[3] = {alone_.x[alone_.part.states.size() + k], 0, 0};
    const ColumnSeries series = column(i);
    const double tau = c.clock.until(clock_);
    for (size_t n = store_.terms(); n-- > 1;) {
      const double order = static_cast<double>(n);
      terms[1] = terms[1] * tau + order * series[n];
      if (n > 1) terms[2] = terms[2] * tau + 0.5 * order * (order - 1) * series[n];
    }
    alone_.room->drive(static_cast<int>(alone_.part.states.size() + k), terms);
  }
}

}  // namespace saltus
