#include "analysis/shooting.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/index.hpp"
#include "flow/smooth.hpp"
#include "flow/thresholds.hpp"
#include "model/vanishing.hpp"

namespace saltus {
namespace {

/// Legs up to this share of the period use the series of their guard from the start.
constexpr double short_leg = 0.02;
/// A frozen leg that takes a state so much farther than any is on the orbit leads nowhere.
constexpr double blown_up = 1e8;
/// Most steps of one leg: a stiff leg has short ones.
constexpr long most_steps = 5'000'000;

/// A polynomial, its rate and the rate of that.
struct Curve {
  double value = 0, rate = 0, bend = 0;
};
Curve curve(std::span<const double> c, double tau) {
  Curve out;
  for (size_t k = c.size(); k-- > 0;) {
    out.bend = out.bend * tau + 2 * out.rate;
    out.rate = out.rate * tau + out.value;
    out.value = out.value * tau + c[k];
  }
  return out;
}

std::vector<double> coefficients(const double* c, int order, double offset = 0) {
  std::vector<double> out(c, c + order + 1);
  out[0] -= offset;
  return out;
}

/// The series of what a guard is zero of, less `offset`; none where it is no function of the step.
struct GuardFunction {
  const double* c = nullptr;
  double offset = 0;
  int output = -1;  ///< of the tape, if it is a formula of the state
};
GuardFunction guard_function(const Program& program, const Series& series, const Guard& g) {
  switch (g.kind) {
    case GuardKind::surface: return {series.surface(g.item), 0, static_cast<int>(program.surface(g.item))};
    case GuardKind::gap: return {series.gap(g.item), 0, static_cast<int>(program.gap(g.item))};
    case GuardKind::jump: return {series.jump(g.item), 0, static_cast<int>(program.jump(g.item))};
    case GuardKind::sigma: return {series.unknown(g.item), g.side * series.hold(g.item)};
    case GuardKind::slip: return {series.unknown(g.item), 1.0 * g.side};
    case GuardKind::lambda: return {series.unknown(program.switches() + g.item)};
    case GuardKind::slope:
    case GuardKind::clock: break;
  }
  return {};
}

/// Functions that a step must resolve besides the states when watched: a distance has a shorter reach than coordinates.
std::vector<WatchedSeries> series_seen(const Program& program, const Smooth& smooth, std::span<const Guard> watched) {
  const Series& series = smooth.series();
  std::vector<WatchedSeries> out;
  const auto add = [&](const GuardFunction& f) {
    const auto finite = [](double c) { return std::isfinite(c); };
    if (f.c && std::all_of(f.c, f.c + smooth.order() + 1, finite)) out.push_back({f.c, std::abs(f.offset), f.output});
  };
  for (const Guard& g : watched) add(guard_function(program, series, g));
  const std::vector<Section>& sections = program.model().sections;
  for (size_t s = 0; s < sections.size(); ++s) {
    const int number = static_cast<int>(s);
    if (sections[s].kind == Section::Kind::on)
      add({series.section(number), 0, static_cast<int>(program.section(number))});
  }
  return out;
}

/// Neither the state nor how tangents move with it.
bool changes_nothing(const Transition& e) { return e.jumps.empty() && e.hits.empty() && e.resting.empty(); }

}  // namespace

bool changes_one_switch(const Leg& leg) {
  const Transition& e = leg.event;
  return leg.end == Leg::End::guard && e.guards.size() == 1 && e.guards[0].kind != GuardKind::jump &&
         changes_nothing(e) && e.counters_before == e.counters;
}

Shooting::Shooting(const Program& program, const RunOptions& run, bool forced, double direction)
    : program_(program), run_(run), forced_(forced), direction_(direction), variation_(program, options()) {
  flight_ = options();
  size_ = Vec::Ones(program.states());
  const Form& form = program.model().form;
  std::vector<Expr> rates = form.f;
  for (const LoweredJump& jump : form.jumps) {
    for (const Assignment& a : jump.set)
      rates[static_cast<size_t>(a.state)] = rates[static_cast<size_t>(a.state)] + a.value;
  }
  vanishing_ = form.jumps.empty() ? program.vanishing() : vanishing_sets(rates);
  for (size_t i = 0; i < form.f.size(); ++i) {
    if (form.f[i].is_number()) vanishing_[i].clear();  // a discrete variable
  }
}

RunOptions Shooting::options() const {
  RunOptions o;
  o.parameters = run_.parameters;
  o.tolerance = run_.tolerance;
  o.stiff = run_.stiff;
  o.leave = run_.leave;
  o.native = run_.native;
  o.from = 0;
  o.until = direction_;
  return o;
}

void Shooting::bind(const std::vector<double>& parameters, const Mat& directions) {
  flights_.clear();
  directions_ = directions;
  dt_ = {};
  if (run_.parameters == parameters) return;
  run_.parameters = parameters;
  flight_.parameters = parameters;
  variation_.bind(parameters);
}

void Shooting::set_size(const Vec& size, double period) {
  size_ = size.cwiseMax(1e-300);
  period_ = period;
}

Vec Shooting::sizes_at(const Vec& x, const Vec& most) const {
  constexpr double rounding = 1e-13;  // what is no larger anywhere is noise about zero
  constexpr double small = 1e-3;      // shares above it are those of any oscillation
  Vec out = size_;
  for (Index i = 0; i < out.size(); ++i) {
    const std::vector<int>& together = vanishing(i);
    const auto seen = [&](int j) { return most[j] > rounding * size_[j]; };
    if (!std::any_of(together.begin(), together.end(), seen)) continue;
    double share = vanished_floor;
    for (const int j : together) {
      if (seen(j)) share = std::max(share, std::abs(x[j]) / most[j]);
    }
    out[i] *= std::min(share / small, 1.0);
  }
  return out.cwiseMax(1e-300);
}

void Shooting::begin_tangents(bool wanted) {
  const Index n = program_.states(), d = directions_.cols();
  if (!wanted) return variation_.begin(Mat());
  Mat X = Mat::Zero(n, n + d), P = Mat::Zero(ix(run_.parameters.size()), n + d);
  X.leftCols(n).setIdentity();
  if (d > 0) P.rightCols(d) = directions_;
  variation_.begin(std::move(X), std::move(P));
}

/// The stepper for a leg of this length.
Smooth& Shooting::smooth_for(double t, double length) {
  flight_.from = t;
  flight_.until = t + (length > 0 ? 1 : -1) * std::max(std::abs(length), 1e-12);
  EngineMemory& memory = variation_.memory();
  if (smooth_) {
    smooth_->begin_run(memory.order, memory.orders, flight_);
  } else {
    smooth_.emplace(*memory.series, memory.order, memory.orders, flight_);
  }
  return *smooth_;
}

/// The series of a leg at a moment.
bool Shooting::expand(const Leg& leg, const Moment& now, bool first) {
  Series& series = *variation_.memory().series;
  series.set_mode(now.mode);
  if (!leg.arc.held.empty()) series.hold_at(leg.arc.held);
  if (smooth_->begin(now) != SeriesStatus::ok) return false;
  if (!first) return true;
  first_rates_.resize(program_.states());
  for (int i = 0; i < program_.states(); ++i) first_rates_[i] = series.rate(i)[0];
  return true;
}

/// Values of guards and sections on the step that begins here.
LegTrace::Stretch Shooting::watch(std::span<const Guard> watched) const {
  LegTrace::Stretch stretch;
  const Series& series = smooth_->series();
  const int order = smooth_->order();
  for (const Guard& g : watched) {
    const GuardFunction function = guard_function(program_, series, g);
    stretch.guards.push_back(function.c ? coefficients(function.c, order, function.offset)
                                        : std::vector<double>(at(order) + 1, 0.0));
    // An unknown that is fixed has one value only; where a root begins there are no further ones.
    for (double& c : stretch.guards.back()) {
      if (!std::isfinite(c)) c = 0;
    }
  }
  for (size_t s = 0; s < program_.model().sections.size(); ++s)
    stretch.sections.push_back(coefficients(series.section(static_cast<int>(s)), order));
  return stretch;
}

/// A step of at most `left` from where the series are. Where it is looked at, it resolves what is watched too.
bool Shooting::cut_step(const Moment& now, double left, int& rough_steps, bool looked_at,
                        std::span<const Guard> watched) {
  Smooth& smooth = *smooth_;
  const auto seen = [&] { return looked_at ? series_seen(program_, smooth, watched) : std::vector<WatchedSeries>{}; };
  const double natural = smooth.natural(seen());
  double length = std::min(natural, std::abs(left));
  if (!(length > 0)) {  // where a root begins: along the tangent
    if (smooth.analytic_order() < 1 || ++rough_steps > most_rough_steps) return false;
    const double rough = smooth.tangent_length(now, std::abs(left), left > 0 ? 1 : -1);
    if (!(rough > 0)) return false;
    smooth.begin(now);
    smooth.cut_rough(now, rough >= std::abs(left) ? left : std::copysign(rough, left));
    return true;
  }
  rough_steps = 0;
  for (int halving = 0;; ++halving) {
    const double tau = length >= std::abs(left) ? left : std::copysign(length, left);
    smooth.cut(now, tau);
    if (smooth.trusts(now, tau, seen())) return true;
    if (halving > 60) return false;
    length = std::min(length, std::abs(left)) / 2;
    smooth.begin(now);
  }
}

/// To the end of the piece that was cut; false where that leads nowhere.
bool Shooting::follow_piece(const Leg& leg, Moment& now, bool tangents, LegTrace* trace) {
  const Piece& piece = smooth_->piece();
  const double bound = blown_up * size_.maxCoeff();
  now.x = smooth_->end();
  if (tangents) variation_.along(piece, leg.arc);
  if (trace) trace->stretches.back().piece = piece;
  return std::all_of(now.x.begin(), now.x.end(), [bound](double value) { return std::abs(value) < bound; });
}

bool Shooting::flow(const Leg& leg, double t, std::vector<double>& x, Mat* tangents, LegTrace* trace,
                    std::span<const Guard> watched) {
  begin_tangents(tangents);
  land(leg, t, x);
  if (t + leg.length == t) {  // no length at all, or none beside the time
    first_rates_ = variation_.rates(leg.arc, x, t);
  } else {
    smooth_for(t, leg.length);
    const double begin = t + wait_for_root(leg, t, x);
    Moment now{.x = x, .counters = leg.arc.counters, .mode = leg.arc.mode};
    now.clock.set(begin);
    const double end = t + leg.length;
    int rough_steps = 0;
    for (long steps = 0; now.clock.until(end) != 0; ++steps) {
      if (steps > most_steps || (run_.stop && run_.stop())) return false;
      const double left = now.clock.until(end);
      if (!expand(leg, now, steps == 0)) return false;
      if (trace) trace->stretches.push_back(watch(watched));
      if (!cut_step(now, left, rough_steps, trace, watched)) return false;
      if (trace) trace->stretches.back().rough = rough_steps > 0;
      if (!follow_piece(leg, now, tangents, trace)) return false;
      if (smooth_->piece().length == left)
        now.clock.set(end);
      else
        now.clock.advance(smooth_->piece().length);
    }
    x = now.x;
  }
  if (!tangents) return true;
  *tangents = variation_.tangents();
  return tangents->allFinite();
}

/// Where a leg begins: on what it slides on and what is closed, and on the surfaces where roots have ended, beyond
/// which the field has no values.
void Shooting::land(const Leg& leg, double t, std::vector<double>& x) {
  variation_.land(leg.arc, x, t);
  for (const Guard& g : at_rest_) variation_.land_on_root(g, leg.arc, x, t);
}

/// A root begins when its rate leads away from the surface. Rounding, or Newton's method on its way, may put the start
/// of the leg a little before (an inflow that sets in): until then it rests and the others go on. How long that is.
double Shooting::wait_for_root(const Leg& leg, double t, std::vector<double>& x) {
  constexpr double longest = 1e-3;  // of the leg
  double waited = 0;
  for (const Guard& g : at_rest_) {
    if (leg.arc.mode.switches[at(g.item)] == '=') continue;
    double step = same_time_bits * eps * std::max(std::abs(t), std::abs(leg.length));
    for (; std::abs(waited) + step < longest * std::abs(leg.length); step *= 2) {
      const Vec f = variation_.rates(leg.arc, x, t + waited), n = variation_.guard(g, leg.arc, x, t + waited).by_state;
      if (!f.allFinite() || n.dot(f) * g.side * direction_ > 0) break;
      for (size_t i = 0; i < x.size(); ++i) x[i] += direction_ * step * f[ix(i)];
      waited += direction_ * step;
      variation_.land_on_root(g, leg.arc, x, t + waited);
    }
  }
  return waited;
}

void Shooting::land_at_start(const std::vector<Leg>& legs, double t, std::vector<double>& x) {
  variation_.begin(Mat());
  at_rest_ = roots_at_rest(legs).front();
  land(legs.front(), t, x);
  at_rest_.clear();
}

std::vector<Vec> Shooting::flow_at(const std::vector<Leg>& legs, double t0) {
  const std::vector<std::vector<Guard>> rests = roots_at_rest(legs);
  std::vector<Vec> out;
  double t = t0;
  variation_.begin(Mat());
  for (size_t i = 0; i < legs.size(); ++i) {
    std::vector<double> x(legs[i].x.begin(), legs[i].x.end());
    for (const Guard& g : rests[i]) variation_.land_on_root(g, legs[i].arc, x, t);
    out.push_back(variation_.rates(legs[i].arc, x, t));
    t += legs[i].length;
  }
  return out;
}

std::vector<std::vector<Guard>> Shooting::roots_at_rest(const std::vector<Leg>& legs) {
  std::vector<std::vector<Guard>> out(legs.size());
  std::vector<Guard> resting;
  for (int round = 0; round < 2; ++round) {  // the first leg follows the last
    for (size_t i = 0; i < legs.size(); ++i) {
      const Leg& leg = legs[i];
      out[i] = resting;
      std::erase_if(resting, [&](const Guard& g) { return leg.arc.mode.switches[at(g.item)] != '='; });
      if (!ends_root(leg)) continue;
      const int u = leg.guard.item;
      resting.push_back({GuardKind::surface, u, leg.arc.mode.switches[at(u)] == '+' ? 1 : -1});
    }
    if (resting.empty()) break;
  }
  return out;
}

bool Shooting::ends_root(const Leg& leg) {
  if (leg.end != Leg::End::guard || !leg.happens || leg.event.x_minus.empty()) return false;
  begin_tangents(false);
  return variation_.root_end(leg.event, leg.arc, leg.event.x_minus, leg.event.t).has_value();
}

/// Where the surface of a root is touched on the step that begins here, as its series have it: h and h' vanish; 0 where
/// that is not to be seen. `ahead`: about how far it is.
double Shooting::touch(std::span<const double> h, double& ahead) const {
  constexpr double near = 4, zero = 1e-9;
  const double p = h[0] * 2 * h[2] / (h[1] * h[1]);  // h h''/h'^2: 1/2 for a square root
  ahead = p < 1 ? -h[0] / h[1] / (1 - p) : 0.0;
  if (!std::isfinite(ahead) || ahead * direction_ <= 0) return ahead = 0;
  double tau = ahead;
  for (int round = 0; round < 20; ++round) {
    const Curve at_tau = curve(h, tau);
    const double step = at_tau.rate / at_tau.bend;
    if (!(std::abs(tau - step) < near * std::abs(ahead)) || (tau - step) * direction_ <= 0) return 0;
    tau -= step;
    if (std::abs(step) <= 4e-16 * std::abs(tau)) break;
  }
  return std::abs(curve(h, tau).value) <= zero * std::abs(h[0]) ? tau : 0;
}

/// The flow as far as the root goes, and from there along the rates of its rest (see flow()).
bool Shooting::flow_to_root(const Leg& leg, double t, std::vector<double>& x, Mat* tangents, Arrival& arrival,
                            LegTrace* trace, std::span<const Guard> watched) {
  constexpr double longest = 8;     // times the leg, until its end must be seen
  constexpr double trusted = 0.75;  // of the last step: at its end the field has no series
  constexpr double beside = 1e-3;   // of the last step
  constexpr int most = 10'000;
  begin_tangents(tangents);
  land(leg, t, x);
  smooth_for(t, longest * leg.length);
  const double begin = t + wait_for_root(leg, t, x);
  Moment now{.x = x, .counters = leg.arc.counters, .mode = leg.arc.mode};
  now.clock.set(begin);
  const double end = t + longest * leg.length;
  int rough_steps = 0;
  double tau = 0;
  Mat near, nearer;
  std::vector<double> h;
  for (int steps = 0; tau == 0; ++steps) {
    const double left = now.clock.until(end);
    if (steps > most || left * direction_ <= 0 || (run_.stop && run_.stop())) return false;
    if (!expand(leg, now, steps == 0)) return false;
    if (trace) trace->stretches.push_back(watch(watched));
    h = coefficients(smooth_->series().surface(leg.guard.item), smooth_->order());
    double ahead = 0;
    tau = touch(h, ahead);
    if (tau != 0) {
      smooth_->cut(now, tau);
      if (!smooth_->trusts(now, trusted * tau, {})) tau = 0, smooth_->begin(now);
    }
    if (tau == 0) {
      const double most_of_it = ahead == 0 || std::abs(ahead) > std::abs(left) ? left : ahead / 2;
      if (!cut_step(now, most_of_it, rough_steps, trace, watched)) return false;
      if (trace) trace->stretches.back().rough = rough_steps > 0;
    } else {
      smooth_->piece().length = tau;
      if (tangents) {
        const Piece piece = smooth_->piece();
        near = variation_.within(piece, leg.arc, (1 - 2 * beside) * tau);
        nearer = variation_.within(piece, leg.arc, (1 - beside) * tau);
      }
    }
    if (!follow_piece(leg, now, tangents, trace)) return false;
    now.clock.advance(smooth_->piece().length);
  }
  x = now.x;
  arrival.length = -now.clock.until(t);
  const double there = t + arrival.length;
  const std::optional<Variation::RootEnd> root = variation_.root_end(leg.event, leg.arc, x, there);
  if (!root) return false;
  for (size_t i = 0; i < x.size(); ++i) x[i] -= root->normal[ix(i)] * root->value / root->normal.squaredNorm();
  if (tangents) {
    // h_x X + h_p P falls to zero like the time that is left; its slope over h'' is how that time moves.
    const Mat normal = root->normal.transpose(), moved = root->off - normal * variation_.tangents();
    const double left = beside * tau;
    arrival.shift =
        ((normal * nearer + moved) * (2 / left) - (normal * near + moved) / (2 * left)) / curve(h, tau).bend;
    variation_.end_root(*root);
    *tangents = variation_.tangents();
    if (!tangents->allFinite() || !arrival.shift.allFinite()) return false;
  }
  arrival.rates = variation_.rates({leg.event.after, leg.event.counters}, x, there);
  for (size_t i = 0; i < x.size(); ++i) x[i] += arrival.rates[ix(i)] * (leg.length - arrival.length);
  return arrival.rates.allFinite();
}

/// The row of what ends a short leg whose guard is zero at its start, by x_i, by T_i, by the start time, by parameters.
void Shooting::start_row(const Leg& leg, double t, const Vec& f0, double& value, Mat& row) {
  // sum of c_j T^(j - known): zero with the guard, and regular where the leg vanishes.
  const Index n = program_.states(), d = directions_.cols();
  Mat X = Mat::Zero(n, n + 1 + d), P = Mat::Zero(ix(run_.parameters.size()), n + 1 + d);
  X.leftCols(n).setIdentity();
  X.col(n) = f0;
  if (d > 0) P.rightCols(d) = directions_;
  const std::vector<double> start(leg.x.begin(), leg.x.end());
  const int order = variation_.memory().order - 1;
  const Variation::GuardSeries s =
      variation_.guard_series(leg.guard, leg.arc, start, t, order, std::move(X), std::move(P));
  const int last = static_cast<int>(s.value.size()) - 1;
  value = 0;
  row.setZero(1, n + 2 + d);
  double power = 1, rate = 0;
  double before = 0;  // T^(j - known - 1)
  for (int j = leg.known; j <= last; ++j) {
    value += s.value[j] * power;
    rate += (j - leg.known) * s.value[j] * before;
    row.leftCols(n) += s.tangent.row(j).leftCols(n) * power;
    const double along = j < last ? (j + 1) * s.value[j + 1] : 0.0;
    row(0, n + 1) += (along - s.tangent(j, n)) * power;
    if (d > 0) row.rightCols(d) += s.tangent.row(j).rightCols(d) * power;
    before = power;
    power *= leg.length;
  }
  row(0, n) = rate;
}

Variation::GuardSlope Shooting::guard_of(const Leg& leg, std::span<const double> x, double end, int section) {
  return leg.end == Leg::End::section ? variation_.section(section, leg.arc, x, end)
                                      : variation_.guard(leg.guard, leg.arc, x, end, directions_);
}

/// The row of the condition that ends a leg, with its slopes along the columns of z: by x_i, by T_i, by the start time,
/// by parameters.
void Shooting::end_row(const Leg& leg, const Variation::GuardSlope& slope, const Mat& z, const Mat& dt, double& value,
                       Mat& row) const {
  const Index n = program_.states(), d = directions_.cols();
  value = slope.value;
  row = slope.by_state.transpose() * z + slope.by_time * dt;
  if (d > 0 && slope.by_parameter.size() == d) row.rightCols(d) += slope.by_parameter.transpose();
  if (leg.end == Leg::End::guard && leg.known > 0) {
    const double power = std::pow(leg.length, leg.known);
    row(0, n) -= leg.known * value / leg.length;
    value /= power;
    row /= power;
  }
}

/// Its value alone.
double Shooting::end_value(const Leg& leg, std::span<const double> x, double end, int section) {
  if (leg.end == Leg::End::section) return variation_.section_value(section, leg.arc, x, end);
  const double value = variation_.guard_value(leg.guard, leg.arc, x, end);
  return leg.known > 0 ? value / std::pow(leg.length, leg.known) : value;
}

/// The row of a leg that the end of a root ends, by the columns of end_row: its length is that of the root.
void Shooting::arrival_row(const Leg& leg, const Flight& flight, bool slopes, double& value, Mat& row) const {
  const Index n = program_.states(), d = directions_.cols();
  value = leg.length - flight.arrival.length;
  if (!slopes) return;
  const Mat& shift = flight.arrival.shift;
  row.leftCols(n) = -shift.leftCols(n);
  row(0, n) = 1;
  row(0, n + 1) = 1 + (shift.leftCols(n) * flight.f0)[0];
  if (d > 0) row.rightCols(d) = -shift.rightCols(d);
}

bool Shooting::fly(const Leg& leg, double t, const std::vector<Guard>& rests, Flight& out, bool tangents,
                   LegTrace* trace, std::span<const Guard> watched) {
  out.to.assign(leg.x.begin(), leg.x.end());
  out.f.resize(0);
  at_rest_ = rests;
  out.root = ends_root(leg);
  Mat* const X = tangents ? &out.tangents : nullptr;
  const bool led =
      out.root ? flow_to_root(leg, t, out.to, X, out.arrival, trace, watched) : flow(leg, t, out.to, X, trace, watched);
  at_rest_.clear();
  if (!led) return false;
  if (out.root) out.f = out.arrival.rates;
  out.f0 = first_rates_;
  return out.f0.allFinite();
}

/// Where a flight from there would be kept.
size_t Shooting::place_of(const Leg& leg, double t) {
  size_t out = 0;
  const auto add = [&out](double value) { out = (out ^ std::bit_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15u; };
  add(t);
  add(leg.length);
  for (const double x : leg.x) add(x);
  return out ^ (out >> 32);
}

Shooting::Flight* Shooting::known_flight(const Leg& leg, double t) {
  const auto found = flights_.find(place_of(leg, t));
  if (found == flights_.end()) return nullptr;
  Flight& known = found->second;
  const bool same = known.t == t && known.length == leg.length && known.from == leg.x && known.arc == leg.arc;
  return same ? &known : nullptr;
}

Shooting::Flight& Shooting::keep(const Leg& leg, double t, Flight flight) {
  flight.arc = leg.arc;
  flight.t = t;
  flight.length = leg.length;
  flight.from = leg.x;
  return flights_.insert_or_assign(place_of(leg, t), std::move(flight)).first->second;
}

Shooting::Flight* Shooting::flown(const Leg& leg, double t, const std::vector<Guard>& rests) {
  if (Flight* const known = known_flight(leg, t)) return known;
  Flight now;
  if (!fly(leg, t, rests, now, true)) return nullptr;
  return &keep(leg, t, std::move(now));
}

void Shooting::take_flights(const std::vector<Leg>& legs, double t0, const Trajectory& run) {
  if (run_.stiff) return;
  const std::vector<std::vector<Guard>> rests = roots_at_rest(legs);
  const Index n = program_.states();
  size_t piece = 0;
  double t = t0;
  for (size_t i = 0; i < legs.size(); t += legs[i++].length) {
    const Leg& leg = legs[i];
    const double end = leg.happens ? leg.event.t : run.end.t;
    const size_t first = piece;
    double length = 0;
    while (piece < run.pieces.size() && direction_ * (run.pieces[piece].start - end) < 0)
      length += run.pieces[piece++].length;
    const std::span<const Piece> pieces = std::span(run.pieces).subspan(first, piece - first);
    const auto in_its_mode = [&](const Piece& p) { return run.arcs[at(p.arc)] == leg.arc; };
    // Pieces that do not make the whole leg, as where legs were joined or a root ends, are flown when they are needed.
    const bool whole = leg.end != Leg::End::time && !pieces.empty() &&
                       std::all_of(pieces.begin(), pieces.end(), in_its_mode) &&
                       std::abs(length - leg.length) <= 1e-13 * std::abs(end - t0);
    if (!whole || !rests[i].empty() || ends_root(leg)) continue;
    const size_t stride = pieces[0].coefficients.size() / ux(n);
    Flight flight{.to = leg.happens ? leg.event.x_minus : run.end.state, .f0 = Vec(n)};
    bool begins = stride > 1;
    for (Index k = 0; k < n && begins; ++k) {
      flight.f0[k] = pieces[0].coefficients[ux(k) * stride + 1];
      begins = pieces[0].coefficients[ux(k) * stride] == leg.x[k] && std::isfinite(flight.f0[k]);
    }
    if (!begins) continue;
    begin_tangents(true);
    variation_.rest(leg.arc, std::span(leg.x.data(), ux(n)), t);
    for (const Piece& p : pieces) variation_.along(p, leg.arc);
    flight.tangents = variation_.tangents();
    if (flight.tangents.allFinite()) keep(leg, t, std::move(flight));
  }
}

bool Shooting::equations(const std::vector<Leg>& legs, const Closing& closing, double t0, const Vec& start_by,
                         int section, Vec& r, Mat& J, Shot* shot) {
  if (!form(legs, closing, t0, section, r, &slopes_, shot)) return false;
  J = matrix_of(legs, closing, slopes_, start_by);
  return J.allFinite();
}

bool Shooting::equations(const std::vector<Leg>& legs, const Closing& closing, double t0, int section, Vec& r,
                         std::vector<LegSlopes>& slopes, Shot* shot) {
  if (!form(legs, closing, t0, section, r, &slopes, shot)) return false;
  return std::all_of(slopes.begin(), slopes.end(),
                     [](const LegSlopes& of_leg) { return of_leg.z.allFinite() && of_leg.h.allFinite(); });
}

bool Shooting::residual(const std::vector<Leg>& legs, const Closing& closing, double t0, int section, Vec& r) {
  return unit_.size() == legs.size() && form(legs, closing, t0, section, r, nullptr, nullptr);
}

/// The condition that ends a leg, and `x`, the state it leads to; with slopes if they are wanted.
bool Shooting::form_leg(const std::vector<Leg>& legs, size_t i, double t, Flight& flight, int section,
                        LegSlopes* slopes, double& value, std::vector<double>& x) {
  const Leg& leg = legs[i];
  const Index n = program_.states(), d = directions_.cols();
  const double end = t + leg.length;
  Variation& v = variation_;
  LegSlopes& out = slopes ? *slopes : no_slopes_;
  Mat &z = out.z, &h = out.h;
  const bool by_guard = (leg.end == Leg::End::guard || leg.end == Leg::End::section) && !flight.root;
  const bool by_series = by_guard && leg.known > 0 && std::abs(leg.length) < short_leg * period_;
  std::optional<Variation::GuardSlope> guard;
  if (slopes) {
    if (by_guard && !by_series) guard = guard_of(leg, x, end, section);
    if (flight.f.size() == 0) flight.f = guard ? v.last_rates() : v.rates(leg.arc, x, end);
    if (!flight.f.allFinite()) return false;
    z.resize(n, n + 2 + d);
    z.leftCols(n) = flight.tangents.leftCols(n);
    z.col(n) = flight.f;
    z.col(n + 1) = flight.f - flight.tangents.leftCols(n) * flight.f0;
    if (d > 0) z.rightCols(d) = flight.tangents.rightCols(d);
  } else if (leg.happens && !changes_nothing(leg.event)) {
    z.setZero(n, n + 2 + d);
  }
  Mat& dt = dt_;
  if (dt.cols() != n + 2 + d) {
    dt.setZero(1, n + 2 + d);
    dt(0, n) = dt(0, n + 1) = 1;
  }
  h.setZero(1, n + 2 + d);
  switch (leg.end) {
    case Leg::End::time:
      value = leg.length - (leg.share > 0 ? 0 : leg.until);
      h(0, n) = 1;
      for (size_t k = i; leg.share > 0 && k > 0 && (k == i || legs[k - 1].end == Leg::End::part); --k)
        value -= leg.share * legs[k - 1].length;
      break;
    case Leg::End::clock:
      value = end - leg.until;
      h = dt;
      if (d > 0 && leg.until_by.size() == d) h.rightCols(d) -= leg.until_by.transpose();
      break;
    case Leg::End::part:
      value = leg.length - legs[i + 1].length;
      h(0, n) = 1;
      break;
    case Leg::End::phase: break;
    case Leg::End::section:
    case Leg::End::guard: {
      if (flight.root) {
        arrival_row(leg, flight, slopes, value, h);
        break;
      }
      if (by_series)
        start_row(leg, t, flight.f0, value, h);
      else if (slopes)
        end_row(leg, *guard, z, dt, value, h);
      else
        value = end_value(leg, x, end, section);
      if (slopes) {
        // In units of time, so that all rows are alike; not by the guard's own speed, which may vanish.
        double unit = std::abs(h(0, n)) * period_;
        for (Index k = 0; k < n; ++k) unit += std::abs(h(0, k)) * size_[k];
        unit /= period_;
        if (unit > 0 && std::isfinite(unit)) unit_[i] = unit;
      }
      value /= unit_[i];
      if (slopes) h /= unit_[i];
      break;
    }
  }
  if (!leg.happens || changes_nothing(leg.event)) return true;
  Mat P = Mat::Zero(ix(run_.parameters.size()), n + 2 + d);
  if (d > 0) P.rightCols(d) = directions_;
  if (!leg.event.resting.empty()) {
    const Arc after{leg.event.after, leg.event.counters};
    const Vec f1 = v.rates(after, x, end);
    v.begin(z - f1 * dt, P);  // at fixed time
    v.land(after, x, end);
    z = v.tangents() + f1 * dt;
    return true;
  }
  v.begin(z, P);
  return v.reset(leg.event, leg.arc, x, end, z, dt);
}

bool Shooting::form(const std::vector<Leg>& legs, const Closing& closing, double t0, int section, Vec& r,
                    std::vector<LegSlopes>* slopes, Shot* shot) {
  constexpr size_t least_kept = 64;
  const Index n = program_.states();
  r.setZero((n + 1) * ix(legs.size()));
  if (shot) shot->ends.assign(legs.size(), {});
  if (shot) shot->traces.assign(shot->watched.size(), {});
  if (slopes) unit_.assign(legs.size(), 1.0);
  if (slopes) slopes->resize(legs.size());
  if (flights_.size() > std::max(least_kept, 4 * legs.size())) flights_.clear();
  double t = t0;
  const std::vector<std::vector<Guard>> rests = roots_at_rest(legs);
  std::vector<double> x;
  for (size_t i = 0; i < legs.size(); ++i) {
    const Leg& leg = legs[i];
    failed_leg_ = static_cast<int>(i);
    const Index row = (n + 1) * ix(i);
    const bool traced = shot && i < shot->watched.size();
    Flight* flight = slopes && !traced ? flown(leg, t, rests[i]) : &here_;
    if (flight == &here_ && !(traced ? fly(leg, t, rests[i], here_, true, &shot->traces[i], shot->watched[i])
                                     : fly(leg, t, rests[i], here_, false)))
      flight = nullptr;
    if (!flight) return false;
    x = flight->to;
    double value = 0;
    if (!form_leg(legs, i, t, *flight, section, slopes ? &(*slopes)[i] : nullptr, value, x)) return false;
    if (shot) {
      shot->ends[i].x_minus = flight->to;
      shot->ends[i].x_plus = x;
      shot->ends[i].t = t + leg.length;
      shot->ends[i].tangents = flight->tangents.leftCols(n);
      shot->ends[i].first_rates = flight->f0;
      shot->ends[i].rates = flight->f;
      shot->ends[i].root = flight->root;
      if (slopes) shot->ends[i].row = (*slopes)[i].h;
    }
    const bool last = i + 1 == legs.size();
    const ConstView reached = column_at(x.data(), n);
    for (Index k = 0; k < n; ++k) {
      const double begin = last ? closing.sign[k] * legs[0].x[k] + closing.shift[k] : legs[i + 1].x[k];
      r[row + k] = last && closing.free[static_cast<size_t>(k)] ? 0.0 : begin - reached[k];
    }
    r[row + n] =
        leg.end == Leg::End::phase ? closing.normal.dot(legs[0].x - closing.through) / phase_unit(closing) : value;
    t += leg.length;
  }
  return r.allFinite();
}

double Shooting::phase_unit(const Closing& closing) const { return closing.normal.cwiseAbs().dot(size_) / period_; }

Mat Shooting::matrix_of(const std::vector<Leg>& legs, const Closing& closing, const std::vector<LegSlopes>& slopes,
                        const Vec& start_by) const {
  const Index n = program_.states(), d = directions_.cols(), size = (n + 1) * ix(legs.size());
  Mat J = Mat::Zero(size, size + d);
  for (size_t i = 0; i < legs.size(); ++i) {
    const Leg& leg = legs[i];
    const Mat &z = slopes[i].z, &h = slopes[i].h;
    const bool last = i + 1 == legs.size();
    const Index row = (n + 1) * ix(i), next = last ? 0 : row + n + 1;
    for (Index k = 0; k < n; ++k) J(row + k, next + k) = last ? closing.sign[k] : 1.0;
    J.block(row, row, n, n + 1) -= z.leftCols(n + 1);
    J.block(row + n, row, 1, n + 1) += h.leftCols(n + 1);
    if (leg.end == Leg::End::part) J(row + n, next + n) -= 1;
    for (size_t k = i; leg.share > 0 && k > 0 && (k == i || legs[k - 1].end == Leg::End::part); --k) {
      if (leg.end == Leg::End::time) J(row + n, (n + 1) * ix(k - 1) + n) -= leg.share;
    }
    if (d > 0) {
      J.block(row, size, n, d) -= z.rightCols(d);
      J.block(row + n, size, 1, d) += h.rightCols(d);
    }
    if (forced_) {
      for (size_t j = 0; j < i; ++j) {
        const Index column = (n + 1) * ix(j) + n;
        for (Index k = 0; k < n; ++k) J(row + k, column) -= z(k, n + 1);
        J(row + n, column) += h(0, n + 1);
      }
      if (d > 0 && start_by.size() == d) {
        J.block(row, size, n, d) -= z.col(n + 1) * start_by.transpose();
        J.block(row + n, size, 1, d) += h(0, n + 1) * start_by.transpose();
      }
    }
    if (leg.end == Leg::End::phase) {
      J.row(row + n).setZero();
      J.block(row + n, 0, 1, n) = phase_row(closing);
    }
    for (Index s = 0; last && s < n; ++s) {
      if (!closing.free[static_cast<size_t>(s)]) continue;
      J.row(row + s).setZero();
      J(row + s, s) = 1;
    }
  }
  return J;
}

double Shooting::growth(const Leg& leg, double t, const std::vector<Guard>& rests, const Vec& most) {
  const Flight* const flight = flown(leg, t, rests);
  if (!flight) return HUGE_VAL;
  const Mat& X = flight->tangents;
  const Vec before = sizes_at(leg.x, most), after = sizes_at(column_at(flight->to.data(), size_.size()), most);
  const Mat scaled = after.cwiseInverse().asDiagonal() * X.leftCols(size_.size()) * before.asDiagonal();
  return scaled.norm();
}

std::vector<Mat> Shooting::factors(const std::vector<Leg>& legs, const Shot& shot) {
  constexpr double slow = 1e-6;  // of the rows of guards, whose entries add up to 1
  const Index n = program_.states();
  std::vector<Mat> out;
  for (size_t i = 0; i < legs.size(); ++i) {
    const Leg& leg = legs[i];
    const Shot::End& end = shot.ends[i];
    if (!leg.happens) {
      out.push_back(end.tangents);
      continue;
    }
    // Where one switch changes, with the slopes of what ends the leg: X + (f- - f+) dt.
    const bool plain = i + 1 < legs.size() && changes_one_switch(leg) && leg.known == 0 && !end.root;
    if (plain && std::abs(end.row(0, n)) > slow) {
      const Vec turn = (end.rates - shot.ends[i + 1].first_rates) / -end.row(0, n);
      out.push_back(end.tangents + turn * end.row.leftCols(n));
      continue;
    }
    Transition event = leg.event;
    event.t = end.t;
    event.x_minus = end.x_minus;
    event.x_plus = end.x_plus;
    variation_.begin(end.tangents);
    variation_.through(event);
    out.push_back(variation_.tangents());
  }
  return out;
}

}  // namespace saltus
