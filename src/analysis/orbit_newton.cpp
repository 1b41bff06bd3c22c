// One period of an orbit: as a run with its tangents, and by Newton's method on its signature.
#include <algorithm>
#include <cmath>

#include "analysis/orbit_search.hpp"
#include "base/index.hpp"
#include "flow/recorder.hpp"

namespace saltus {
namespace {

constexpr double converged = 1e-12;  ///< relative residual of Newton's method
constexpr double nearly_converged = 1e3 * converged;
constexpr double singular = 1e-6;     ///< reciprocal condition of a matrix that may be singular but for errors
constexpr double of_a_family = 1e-8;  ///< pivots that count as zero then
constexpr double small_row = 1e-3;    ///< in units of the states and times: rows below it keep their length

}  // namespace

/// Contacts at rest may be violated by rounding where the phase is counted anew, and what is slid on left by it: lands
/// on them.
void OrbitSearch::land(Begin& begin, const Arc& arc) {
  if (program_->constraints() == 0 && arc.mode.switches.find('0') == std::string::npos) return;
  variation_->begin(Mat());
  variation_->land(arc, begin.x, begin.t);
}

/// A state that lies on the section but for rounding may meet it at once: that is no return.
OrbitSearch::Lap OrbitSearch::lap(const Begin& begin, bool tangents) {
  Lap out = lap(begin, tangents, begin.returns);
  if (out.times.empty() || std::abs(out.times[0] - begin.t) > soonest_) return out;
  out = lap(begin, tangents, begin.returns + 1);
  out.times.erase(out.times.begin());
  return out;
}

OrbitSearch::Lap OrbitSearch::lap(const Begin& begin, bool tangents, int passings) {
  Lap out;
  const size_t n = model_.states.size();
  RunOptions o = base(begin.t, forced_ || section_ < 0 ? clock_ * begin.returns : 1e9);
  o.initial = begin.x;
  o.keep_pieces = true;
  o.keep_events = true;
  o.keep_transitions = true;
  if (section_ >= 0) {
    o.section = section_;
    o.section_count = passings;
  }
  o.on_section = [&](const Passing& p) {
    if (p.section != section_) return true;
    out.times.push_back(p.t);
    return true;
  };
  if (tangents) {
    variation_.emplace(*program_, o);
    variation_->begin(Mat::Identity(ix(n), ix(n)));
    o.on_piece = [&](const Piece& piece, const Arc& arc) { variation_->along(piece, arc); };
    o.on_transition = [&](const Transition& e) {
      const Mat before = variation_->tangents();
      variation_->through(e);
      const double size = before.norm();
      out.stretch.push_back(size > 0 ? variation_->tangents().norm() / size : 0);
    };
  }
  long reports = 0;
  o.progress = [&](double) { return ++reports < 4000; };
  o.max_events = 200'000;
  out.run = simulator_->run(o);
  out.whole = section_ >= 0 ? out.run.end.why == Why::count : out.run.end.why == Why::time;
  meet_event(out, tangents);
  if (tangents) {
    out.monodromy = variation_->tangents();
    out.notes = variation_->notes();
  }
  return out;
}

/// Where the section lies on a surface of the model, the run ends just before the event with which it began.
void OrbitSearch::meet_event(Lap& out, bool tangents) {
  if (!out.whole || section_ < 0 || out.run.arcs.empty()) return;
  const Arc &last = out.run.last, &first = out.run.arcs.front();
  if (last.mode == first.mode || model_.sections[at(section_)].kind != Section::Kind::on) return;
  Transition e{.t = out.run.end.t, .before = last.mode, .after = first.mode};
  e.x_minus = e.x_plus = out.run.end.state;
  e.counters_before = e.counters = last.counters;
  for (size_t i = 0; i < last.mode.switches.size(); ++i) {
    const char from = last.mode.switches[i], to = first.mode.switches[i];
    if (from == to) continue;
    const int item = static_cast<int>(i);
    if (from == '0')
      e.guards.push_back({GuardKind::sigma, item, to == '+' ? 1 : -1});
    else
      e.guards.push_back({GuardKind::surface, item, from == '+' ? 1 : -1});
  }
  if (e.guards.empty()) return;
  if (tangents) {
    const double before = variation_->tangents().norm();
    variation_->through(e);
    out.stretch.push_back(before > 0 ? variation_->tangents().norm() / before : 0);
  }
  for (Event& event : events_of(e, model_)) out.run.events.push_back(std::move(event));
}

std::vector<Leg> OrbitSearch::legs_of(const Begin& begin, const Lap& lap) const {
  const bool by_event = section_ >= 0 && model_.sections[at(section_)].kind != Section::Kind::on;
  std::vector<Leg> legs = saltus::legs_of(lap.run, begin.x, begin.t, direction_, !by_event);
  if (!by_event && section_ >= 0) legs.back().end = Leg::End::section;
  return legs;
}

bool OrbitSearch::equations(const std::vector<Leg>& legs, double t0, Vec& r, Mat& J) {
  const Index n = ix(model_.states.size());
  Closing closing{.free = left_out_, .sign = Vec::Ones(n), .shift = column_at(shift_.data(), n)};
  return shooting_->equations(legs, closing, t0, {}, section_, r, J);
}

/// As they stand in the equations. A leg ends where the next one begins, the last one where the first does.
void OrbitSearch::Units::set(const std::vector<Leg>& legs, const Shooting& shooting) {
  const Index n = state.size();
  of_unknowns.resize((n + 1) * ix(legs.size()));
  of_rows.resize(of_unknowns.size());
  for (size_t k = 0; k < legs.size(); ++k) {
    const Vec sizes = shooting.sizes_at(legs[k].x, state);
    const Index here = (n + 1) * ix(k), before = (n + 1) * ix((k + legs.size() - 1) % legs.size());
    of_unknowns.segment(here, n) = sizes;
    of_rows.segment(before, n) = sizes;
    of_unknowns[here + n] = of_rows[here + n] = length;
  }
}

double OrbitSearch::Units::size_of(const Vec& r) const { return r.cwiseQuotient(of_rows).max_abs(); }
double OrbitSearch::Units::size_of_step(const Vec& step) const { return step.cwiseQuotient(of_unknowns).max_abs(); }

OrbitSearch::Units OrbitSearch::units_of(const std::vector<Leg>& legs) const {
  Units out{.state = Vec::Constant(ix(model_.states.size()), 1e-300)};
  for (const Leg& leg : legs) {
    out.state = out.state.cwiseMax(leg.x.cwiseAbs());
    out.length += std::abs(leg.length);
  }
  for (size_t i = 0; i < size_.size(); ++i) out.state[ix(i)] = std::max(out.state[ix(i)], size_[i]);
  return out;
}

/// Newton's method on the frozen signature. Says whether it has converged; `begin` is moved.
bool OrbitSearch::newton(std::vector<Leg>& legs, Begin& begin, Orbit& orbit) {
  Units units = units_of(legs);
  shooting_->set_size(units.state, units.length);
  legs = with_nodes(std::move(legs), *shooting_, begin.t, units.state);
  units.set(legs, *shooting_);
  Descent now{.legs = legs};
  orbit.residual = std::nan("");
  if (!equations(now.legs, begin.t, now.r, now.J)) return false;
  now.size = units.size_of(now.r);
  double best = now.size;
  int still = 0;
  bool family = false;
  const double of_flow =
      std::max(nearly_converged, 100 * options_.run.tolerance);  // no orbit of a family closes better
  std::optional<Orthogonal> shortest;
  for (int iteration = 0; iteration < 40 && now.size >= 1e-15; ++iteration) {
    orbit.residual = now.size;
    const Vec& unit = units.of_unknowns;
    // A row that vanishes but for errors stays nothing: a state that turns on its section, on an orbit of a family.
    const Vec rows = (now.J * unit.asDiagonal()).row_norms().cwiseMax(small_row * units.of_rows).cwiseMax(1e-300);
    const Mat scaled = rows.cwiseInverse().asDiagonal() * now.J * unit.asDiagonal();
    const Vec r = now.r.cwiseQuotient(rows);
    const Lu lu(scaled);
    // Where orbits come in families (a centre) no step is the only one: the shortest leads to the nearest of them.
    if (lu.rcond() > singular) {
      family = false;
    } else {
      shortest.emplace(scaled, of_a_family);
      family = shortest->rank() < r.size();
    }
    const Vec step = -unit.cwiseProduct(family ? shortest->solve(r) : lu.solve(r));
    if (!step.allFinite()) return false;
    ++orbit.iterations;
    const bool nearer = descend(now, step, lu, rows, units, begin.t);
    if (!nearer) break;
    legs = now.legs;
    still = now.size >= 0.5 * best ? still + 1 : 0;
    best = std::min(best, now.size);
    if ((now.size < converged && units.size_of_step(step) < 1e-9) ||
        (still >= 2 && best < (family ? of_flow : nearly_converged)))
      break;
  }
  orbit.residual = now.size;
  if (!(now.size < (family ? of_flow : nearly_converged))) return false;
  if (put_out(now, units, begin.t)) {
    orbit.residual = now.size;
    legs = now.legs;
  }
  begin.x.assign(legs.front().x.begin(), legs.front().x.end());
  solved_ = legs;
  return true;
}

/// States that vanish together and are so small that they close only in units of what they once were are zero on the
/// orbit: an infection that dies out.
bool OrbitSearch::put_out(Descent& now, const Units& units, double t0) {
  constexpr double closes = 1e-3;  // share of itself to which what is on an orbit comes back
  const Index n = units.state.size();
  const auto of_state = [n](const Vec& rows, Index i) {
    double largest = 0;
    for (Index k = i; k < rows.size(); k += n + 1) largest = std::max(largest, std::abs(rows[k]));
    return largest;
  };
  Vec x = Vec::Zero(now.r.size());
  for (size_t k = 0; k < now.legs.size(); ++k) x.segment((n + 1) * ix(k), n) = now.legs[k].x;
  Descent next = now;
  bool any = false;
  for (Index i = 0; i < n; ++i) {
    const std::vector<int>& together = shooting_->vanishing(i);
    double size = 0, open = 0;
    for (const int j : together) {
      size = std::max(size, of_state(x, j) / units.state[j]);
      open = std::max(open, of_state(now.r, j) / units.state[j]);
    }
    if (together.empty() || size == 0 || !(open > closes * size)) continue;
    any = true;
    for (Leg& leg : next.legs) leg.x[i] = 0;
  }
  if (!any || !equations(next.legs, t0, next.r, next.J)) return false;
  next.size = units.size_of(next.r);
  if (!(next.size < nearly_converged)) return false;
  now = std::move(next);
  return true;
}

/// As much of a step as leads nearer; false where nothing does. `lu`: of the matrix in units, its rows divided by
/// `rows`.
bool OrbitSearch::descend(Descent& now, const Vec& step, const Lu& lu, const Vec& rows, const Units& units, double t0) {
  const Index n = units.state.size();
  const double moves = units.size_of_step(step);
  double share = 1;
  Vec r;
  Mat J;
  for (int halving = 0; halving < 12; ++halving, share /= 2) {
    std::vector<Leg> next = now.legs;
    bool sane = true;
    for (size_t i = 0; i < next.size(); ++i) {
      next[i].x += share * step.segment((n + 1) * ix(i), n);
      next[i].length += share * step[(n + 1) * ix(i) + n];
      sane = sane && std::abs(next[i].length) < 4 * units.length;
    }
    if (!sane || !equations(next, t0, r, J)) continue;
    const double size = units.size_of(r);
    // The next step, with the matrix as it is, tells whether this one leads nearer also where residuals do not.
    const bool falls = size < 0.9 * now.size || size < 1e-9;
    const bool nearer = falls || (now.tries > 0 && lu.solve(r.cwiseQuotient(rows)).max_abs() < (1 - share / 2) * moves);
    if (!nearer && share >= 1e-3) continue;
    if (!falls) --now.tries;
    now = {.legs = std::move(next), .r = std::move(r), .J = std::move(J), .size = size, .tries = now.tries};
    return true;
  }
  return false;
}

}  // namespace saltus
