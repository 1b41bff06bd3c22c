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
constexpr double short_step = 1e-4;  ///< steps below it leave the matrix nearly as it was
constexpr double last_step = 1e-9;   ///< steps below it lead to what has converged

}  // namespace

/// Contacts at rest may be violated by rounding where the phase is counted anew, and what is slid on left by it: lands
/// on them.
void OrbitSearch::land(Begin& begin, const Arc& arc) {
  if (program_->constraints() == 0 && arc.mode.switches.find('0') == std::string::npos) return;
  variation().begin(Mat());
  variation().land(arc, begin.x, begin.t);
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
  const size_t n = model().states.size();
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
    variation().forget_events();
    variation().begin(Mat::Identity(ix(n), ix(n)));
    o.on_piece = [&](const Piece& piece, const Arc& arc) { variation().along(piece, arc); };
    o.on_transition = [&](const Transition& e) {
      const Mat before = variation().tangents();
      variation().through(e);
      const double size = before.norm();
      out.stretch.push_back(size > 0 ? variation().tangents().norm() / size : 0);
    };
  }
  long reports = 0;
  o.progress = [&](double) { return ++reports < 4000; };
  o.max_events = 200'000;
  out.run = simulator_->run(o);
  out.whole = section_ >= 0 ? out.run.end.why == Why::count : out.run.end.why == Why::time;
  meet_event(out, tangents);
  if (tangents) {
    out.monodromy = variation().tangents();
    out.notes = variation().notes();
  }
  return out;
}

/// The lap of a run with its tangents, from the point to which Newton's method has led.
OrbitSearch::Lap OrbitSearch::lap_of_solved(const Begin& begin) {
  Lap out = solved_lap_ ? *std::exchange(solved_lap_, std::nullopt) : lap(begin, false);
  if (!tangents_of_legs(out)) out = lap(begin, true);
  return out;
}

/// The tangents of a run are those of the legs, which are known, where switches change one at a time.
bool OrbitSearch::tangents_of_legs(Lap& lap) {
  if (section_ >= 0 || !lap.whole) return false;
  size_t k = 0;
  for (const Leg& leg : solved_) {
    if (!leg.happens) continue;
    const bool same = k < lap.run.transitions.size() && lap.run.transitions[k].before == leg.event.before &&
                      lap.run.transitions[k].after == leg.event.after;
    if (!same || !changes_one_switch(leg)) return false;
    ++k;
  }
  if (k != lap.run.transitions.size()) return false;
  variation().forget_events();
  lap.factors = shooting_->factors(solved_, solved_shot_);
  const Index n = ix(model().states.size());
  lap.monodromy = Mat::Identity(n, n);
  for (size_t i = 0; i < solved_.size(); ++i) {
    const double before = (solved_shot_.ends[i].tangents * lap.monodromy).norm();
    lap.monodromy = lap.factors[i] * lap.monodromy;
    if (solved_[i].happens) lap.stretch.push_back(before > 0 ? lap.monodromy.norm() / before : 0);
  }
  lap.notes = variation().notes();
  return lap.monodromy.allFinite();
}

std::optional<Transition> event_at_end(const Trajectory& run) {
  if (run.arcs.empty() || run.last.mode == run.arcs.front().mode) return std::nullopt;
  const Arc &last = run.last, &first = run.arcs.front();
  Transition e{.t = run.end.t, .before = last.mode, .after = first.mode};
  e.x_minus = e.x_plus = run.end.state;
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
  if (e.guards.empty()) return std::nullopt;
  return e;
}

/// Where the section lies on a surface of the model, the run ends just before the event with which it began.
void OrbitSearch::meet_event(Lap& out, bool tangents) {
  if (!out.whole || section_ < 0 || out.run.arcs.empty()) return;
  if (model().sections[at(section_)].kind != Section::Kind::on) return;
  const std::optional<Transition> met = event_at_end(out.run);
  if (!met) return;
  const Transition& e = *met;
  if (tangents) {
    const double before = variation().tangents().norm();
    variation().through(e);
    out.stretch.push_back(before > 0 ? variation().tangents().norm() / before : 0);
  }
  for (Event& event : events_of(e, model())) out.run.events.push_back(std::move(event));
}

std::vector<Leg> OrbitSearch::legs_of(const Begin& begin, const Lap& lap) const {
  const bool by_event = section_ >= 0 && model().sections[at(section_)].kind != Section::Kind::on;
  std::vector<Leg> legs = saltus::legs_of(lap.run, begin.x, begin.t, direction_, !by_event);
  if (!by_event && section_ >= 0) legs.back().end = Leg::End::section;
  return legs;
}

Closing OrbitSearch::closing() const {
  const Index n = ix(model().states.size());
  return {.free = left_out_, .sign = Vec::Ones(n), .shift = column_at(shift_.data(), n)};
}

bool OrbitSearch::equations(Descent& of, double t0) {
  return shooting_->equations(of.legs, closing(), t0, section_, of.r, of.slopes, &of.shot);
}

/// Legs as they stand in the equations. A leg ends where the next one begins, the last one where the first does.
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
  Units out{.state = Vec::Constant(ix(model().states.size()), 1e-300)};
  for (const Leg& leg : legs) {
    out.state = out.state.cwiseMax(leg.x.cwiseAbs());
    out.length += std::abs(leg.length);
  }
  for (size_t i = 0; i < size_.size(); ++i) out.state[ix(i)] = std::max(out.state[ix(i)], size_[i]);
  return out;
}

/// Newton's method on the frozen signature, of which `lap` is the run. Says whether it has converged; `begin` is moved.
bool OrbitSearch::newton(std::vector<Leg>& legs, Begin& begin, const Lap& lap, Orbit& orbit) {
  Units units = units_of(legs);
  shooting_->set_size(units.state, units.length);
  const bool plain = may_be_run(legs);
  // Where the first step is the last but one it starts from legs as the others do: steps of runs end elsewhere.
  if (plain && open_by(begin, lap) > short_step) shooting_->take_flights(legs, begin.t, lap.run);
  Descent now{.legs = with_nodes(std::move(legs), *shooting_, begin.t, units.state)};
  units.set(now.legs, *shooting_);
  now.may_be_run = plain && may_be_run(now.legs);
  solved_lap_.reset();
  bool solved = descend_to_orbit(now, units, begin.t, orbit);
  if (solved && !now.formed && !run_instead(now, units, begin, orbit)) {
    now.may_be_run = false;
    solved = descend_to_orbit(now, units, begin.t, orbit);
  }
  if (solved) {
    begin.x.assign(now.legs.front().x.begin(), now.legs.front().x.end());
    solved_ = now.legs;
    solved_shot_ = std::move(now.shot);
  }
  legs = std::move(now.legs);
  return solved;
}

/// True if a run could take the place of the legs: switches change one at a time, and nothing grows much.
bool OrbitSearch::may_be_run(const std::vector<Leg>& legs) const {
  const auto plain = [](const Leg& leg) {
    return leg.happens ? changes_one_switch(leg) : leg.end != Leg::End::part && leg.end != Leg::End::section;
  };
  for (Index i = 0; i < ix(model().states.size()); ++i) {
    if (!shooting_->vanishing(i).empty()) return false;
  }
  return section_ < 0 && std::all_of(legs.begin(), legs.end(), plain);
}

/// The run that judges the orbit flies its legs once more: where it closes as they do, it takes their place, and their
/// tangents are found along it.
bool OrbitSearch::run_instead(Descent& now, const Units& units, const Begin& begin, Orbit& orbit) {
  Begin there = begin;
  there.x.assign(now.legs.front().x.begin(), now.legs.front().x.end());
  land(there, now.legs.front().arc);
  Lap run = lap(there, false);
  if (!run.whole || !(open_by(there, run) < converged)) return false;
  Descent on_run{.legs = legs_of(there, run)};
  if (on_run.legs.size() != now.legs.size() || !same_signature(on_run.legs, now.legs)) return false;
  shooting_->take_flights(on_run.legs, there.t, run.run);
  if (!equations(on_run, there.t)) return false;
  on_run.size = units.size_of(on_run.r);
  if (!(on_run.size < converged)) return false;
  orbit.residual = on_run.size;
  run.judged = true;
  now = std::move(on_run);
  solved_lap_ = std::move(run);
  return true;
}

bool OrbitSearch::descend_to_orbit(Descent& now, const Units& units, double t0, Orbit& orbit) {
  orbit.residual = std::nan("");
  now.formed = true;
  if (!equations(now, t0)) return false;
  Descent next{.legs = now.legs};
  now.size = units.size_of(now.r);
  double best = now.size;
  int still = 0;
  bool family = false;
  const double of_flow =
      std::max(nearly_converged, 100 * options_.run.tolerance);  // no orbit of a family closes better
  for (int iteration = 0; iteration < 40 && now.size >= 1e-15; ++iteration) {
    orbit.residual = now.size;
    const ShootingStep matrix(*shooting_, now.legs, closing(), now.slopes, units.of_unknowns, units.of_rows);
    family = matrix.family();
    const Vec step = -units.of_unknowns.cwiseProduct(matrix.solve(now.r));
    if (!step.allFinite()) return false;
    const bool nearer = descend(now, next, step, {matrix, units, t0}, !family);
    orbit.iterations += nearer ? now.steps : 1;
    if (!nearer) break;
    still = now.size >= 0.5 * best ? still + 1 : 0;
    best = std::min(best, now.size);
    if ((now.size < converged && now.moved < last_step) || (still >= 2 && best < (family ? of_flow : nearly_converged)))
      break;
  }
  orbit.residual = now.size;
  if (!(now.size < (family ? of_flow : nearly_converged))) return false;
  if (put_out(now, units, t0)) orbit.residual = now.size;
  return true;
}

/// States that vanish together and are so small that they close only in units of what they once were are zero on the
/// orbit: an infection that dies out.
bool OrbitSearch::put_out(Descent& now, const Units& units, double t0) {
  constexpr double closes = 1e-3;  // share of itself to which what is on an orbit comes back
  const Index n = units.state.size();
  const auto vanishes = [&](Index i) { return !shooting_->vanishing(i).empty(); };
  bool any = false;
  for (Index i = 0; i < n; ++i) any = any || vanishes(i);
  if (!any) return false;
  const auto of_state = [n](const Vec& rows, Index i) {
    double largest = 0;
    for (Index k = i; k < rows.size(); k += n + 1) largest = std::max(largest, std::abs(rows[k]));
    return largest;
  };
  Vec x = Vec::Zero(now.r.size());
  for (size_t k = 0; k < now.legs.size(); ++k) x.segment((n + 1) * ix(k), n) = now.legs[k].x;
  Descent next = now;
  any = false;
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
  if (!any || !equations(next, t0)) return false;
  next.size = units.size_of(next.r);
  if (!(next.size < nearly_converged)) return false;
  now = std::move(next);
  return true;
}

/// The legs as they stand in `from` and moved by a share of a step; whether that is sane. What a step would move by
/// less than rounding stays as it is: a valve that is shut is shut.
bool OrbitSearch::move_legs(std::vector<Leg>& legs, const std::vector<Leg>& from, const Vec& step, double share,
                            const Units& units) {
  const Index n = units.state.size();
  bool sane = true;
  for (size_t i = 0; i < legs.size(); ++i) {
    for (Index k = 0; k < n; ++k) {
      const double moved = share * step[(n + 1) * ix(i) + k];
      const bool moves = std::abs(moved) > eps * units.of_unknowns[(n + 1) * ix(i) + k];
      legs[i].x[k] = from[i].x[k] + (moves ? moved : 0.0);
    }
    legs[i].length = from[i].length + share * step[(n + 1) * ix(i) + n];
    sane = sane && std::abs(legs[i].length) < 4 * units.length;
  }
  return sane;
}

/// The largest part of a step that reduces the residual; false where no part does. `next` is work space. Where the
/// orbit is near and `regular`, a second step follows with the matrix of the first.
bool OrbitSearch::descend(Descent& now, Descent& next, const Vec& step, const Linear& at, bool regular) {
  const Units& units = at.units;
  const double moves = units.size_of_step(step);
  double share = 1;
  for (int halving = 0; halving < 12; ++halving, share /= 2) {
    if (!move_legs(next.legs, now.legs, step, share, units)) continue;
    next.tries = now.tries;
    next.may_be_run = now.may_be_run;
    next.steps = 1;
    next.moved = moves;
    if (share == 1 && regular && moves < short_step && moves >= last_step) {
      if (finish(next, at)) {
        std::swap(now, next);
        return true;
      }
      next.steps = 1;
      next.moved = moves;
      move_legs(next.legs, now.legs, step, share, units);
    }
    if (!equations(next, at.t0)) continue;
    next.size = units.size_of(next.r);
    // The next step, with the matrix as it is, tells whether this one leads nearer also where residuals do not.
    const bool falls = next.size < 0.9 * now.size || next.size < 1e-9;
    const bool nearer = falls || (now.tries > 0 && at.matrix.solve_regular(next.r).max_abs() < (1 - share / 2) * moves);
    if (!nearer && share >= 1e-3) continue;
    if (!falls) --next.tries;
    std::swap(now, next);
    return true;
  }
  return false;
}

/// From legs that one short step has moved near the orbit, one more with the matrix of that step. Residuals fall like
/// C moved^2 with new matrices, like 2 C moved * size with the last one: where that is rounding, a new one is not worth
/// forming. False where it does not close.
bool OrbitSearch::finish(Descent& next, const Linear& at) {
  constexpr double closes = 1e-9, rounding = 4e-15;
  if (!shooting_->residual(next.legs, closing(), at.t0, section_, next.r)) return false;
  const double size = at.units.size_of(next.r);
  const double left = 2 * size * size / next.moved;
  if (!(size < closes && left < rounding)) return false;
  if (size >= 1e-15) {
    const Vec step = -at.units.of_unknowns.cwiseProduct(at.matrix.solve_regular(next.r));
    if (!step.allFinite() || !move_legs(next.legs, next.legs, step, 1, at.units)) return false;
    next.moved = at.units.size_of_step(step);
    ++next.steps;
  }
  if (next.may_be_run) {
    next.formed = false;
    next.size = std::min(size, left);
    return true;
  }
  if (!equations(next, at.t0)) return false;
  next.size = at.units.size_of(next.r);
  return next.size < converged;
}

}  // namespace saltus
