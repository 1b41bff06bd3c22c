#include "flow/event/cluster.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "flow/taylor.hpp"
#include "flow/thresholds.hpp"

namespace saltus {

void shift_polynomial(std::span<double> c, double by) {
  if (by == 0) return;
  for (size_t from = c.size() - 1; from-- > 0;) {
    for (size_t k = from; k + 1 < c.size(); ++k) c[k] += by * c[k + 1];
  }
}

double first_zero(std::span<const double> series, double h, double resolution, int known_zeros, double noise) {
  double from = 0;
  for (int attempt = 0; attempt < 16; ++attempt) {
    const Root root =
        leftmost_root(series, {.h = h + resolution, .from = from, .known_zeros = known_zeros, .noise = noise});
    if (root.kind == RootKind::none) break;
    if (root.kind == RootKind::crossing) return std::min(root.at, h);
    from = root.at;
  }
  return HUGE_VAL;
}

double time_resolution(double t, double scale) {
  return same_time_bits * eps * std::max(std::abs(t), scale * same_time_share);
}

void Cluster::leave_to_whole() {
  for (size_t k = 0; k < moving.size(); ++k) {
    const double stays = room ? x[at(movers[k])] : series.first[k];
    series.set(k, std::span(&stays, 1));
  }
  length = 0;
  guards.clear();
  due = clock.now();
  whole = true;
}

int ClusterRoom::order_for(double local_tolerance) {
  constexpr int higher_order = 4;
  return taylor_order(local_tolerance) + higher_order;
}

ClusterRoom::ClusterRoom(SubsystemProgram of, std::span<const int> shape, const std::vector<double>& parameters,
                         const RunOptions& run)
    : made(std::move(of)),
      key(shape.begin(), shape.end()),
      program(made.program.get()),
      direction(run.until < run.from ? -1.0 : 1.0) {
  options.from = run.from;
  options.until = run.until;
  options.tolerance = run.tolerance;
  options.keep_transitions = run.keep_transitions || run.on_transition;
  options.parameters = parameters;
  options.initial.assign(at(program->states()), 0.0);
  const double local = local_tolerance(run.tolerance);
  order =
      std::min(cheapest_order(local, program->tape(std::string(at(program->switches()), '+')).flow), order_for(local));
  orders = order_table(local, order);
  series.emplace(*program, options.parameters, order);
  series->use_native(Native::off);  // no mode of a part comes back often enough
  series->share_sides();
  point.emplace(program->points(), options.parameters);
  smooth.emplace(*series, order, orders, options);
  watches.emplace(*program, direction);
  act.emplace(*series, *point, options);
  limit.emplace(*series, *act).begin_run(options);
  moment.mode = {std::string(at(program->switches()), '+'), program->open_constraints()};
  series->set_mode(moment.mode);
  driven.assign(at(program->states()), 0);
}

void ClusterRoom::enter(const Cluster& c) {
  if (c.part.parameters != options.parameters) {
    options.parameters = c.part.parameters;
    series->bind(options.parameters);
    point.emplace(program->points(), options.parameters);
  }
  moment.clock = c.clock;
  moment.x = c.x;
  for (size_t k = c.part.states.size(); k < driven.size(); ++k) {
    if (driven[k]) drive(static_cast<int>(k), {});
  }
}

void ClusterRoom::drive(int state, std::span<const double> of) {
  driven[at(state)] = !of.empty();
  series->drive(state, of);
}

void ClusterRoom::expand(Cluster& c, double until, double first_scale) {
  c.guards.clear();
  c.last = c.waits = c.whole = false;
  if (!make_step(c, until)) c.leave_to_whole();
  c.scale = smooth->time_scale() > 0 ? smooth->time_scale() : first_scale;
}

/// A step of a cluster, made like a step of the engine; unusual situations are left to the engine.
bool ClusterRoom::make_step(Cluster& c, double until) {
  Moment& now = moment;
  if (smooth->begin(now) != SeriesStatus::ok || series->redundant_mode()) return false;
  watches->list(now, *smooth, act->jumps(), true);
  const double natural = smooth->natural(watches->series(*smooth));
  const double whole = std::abs(now.clock.until(until));
  const double longest = c.drives.empty() ? whole : std::min(whole, std::abs(now.clock.until(c.horizon)));
  double length = std::min(natural, longest);
  if (!(length > 0) || !std::isfinite(length)) length = longest;
  const double shortest = std::max(shortest_step_bits * eps * std::abs(now.t()), 1e-300);
  const double resolution = time_resolution(now.t(), smooth->time_scale());
  if (natural < shortest) return false;
  const Watch* first = nullptr;
  for (;;) {
    first = watches->find_first(*smooth, act->jumps(), direction * length, resolution, false);
    const double tau = first ? first->root : direction * length;
    smooth->cut(now, tau);
    if (c.moving.empty() || smooth->trusts(now, tau, watches->series(*smooth))) break;
    length = std::abs(tau) / 2;
    if (length < shortest) return false;
    smooth->begin(now);
    if (watches->find_touch(*smooth, tau, resolution) != 0) return false;
    watches->list(now, *smooth, act->jumps(), true);
  }
  const Piece& piece = smooth->piece();
  const double tau = piece.length;
  const size_t terms = piece.coefficients.size() / now.x.size();
  c.length = tau;
  for (size_t k = 0; k < c.moving.size(); ++k)
    c.series.set(k, std::span(piece.coefficients).subspan(at(c.movers[k]) * terms, terms));
  c.end = smooth->end();
  if (first) watches->found_at(tau, resolution, c.guards);
  c.last = !first && std::abs(tau) >= whole;
  c.waits = !first && !c.last && std::abs(tau) >= longest;
  Clock end = c.clock;
  end.advance(tau);
  c.due = c.last ? until : end.now();
  return std::all_of(c.end.begin(), c.end.end(), [](double v) { return std::abs(v) < largest_state; });
}

}  // namespace saltus
