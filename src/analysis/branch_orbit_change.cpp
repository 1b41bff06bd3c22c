#include "analysis/orbit_curve.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/index.hpp"

namespace saltus {

Mat OrbitCurve::limit(const std::vector<double>& u, std::vector<Mat> m) {
  for (size_t k = 1; k < m.size(); ++k) {
    for (size_t i = 0; i + k < m.size(); ++i) m[i] = (u[i] * m[i + 1] - u[i + k] * m[i]) / (u[i] - u[i + k]);
  }
  return m[0];
}

Spectrum OrbitCurve::multipliers_of(const Mat& M) const {
  Spectrum s = spectrum_of(M);
  const double rounding = 1e-15 * M.norm();
  for (std::complex<double>& mu : s) mu = std::abs(mu) < rounding ? 0 : mu;
  if (problem_.symmetry()) {
    for (std::complex<double>& mu : s) mu *= mu;
  }
  if (problem_.direction() < 0) turn_back(s);
  sort_multipliers(s);
  return s;
}

OrbitCurve::OneSided OrbitCurve::one_sided(const std::vector<double>& u, const std::vector<Mat>& m) {
  OneSided out;
  const double first = m.front().norm(), last = m.back().norm();
  out.infinite = !m.back().allFinite() || last > 1.25 * first * std::pow(u.front() / u.back(), 0.25);
  out.matrix = limit(u, m);
  if (out.infinite) {
    out.multipliers.assign(static_cast<size_t>(out.matrix.rows()), {0, 0});
    out.multipliers[0] = {HUGE_VAL, 0};
  } else {
    out.multipliers = multipliers_of(out.matrix);
  }
  return out;
}

OrbitCurve::OneSided OrbitCurve::matrix_before(const Located& l) {
  const OrbitView& v = view(l.point);
  const Mat direct = v.matrix;
  std::vector<double> u;
  std::vector<Mat> m;
  const double reach = std::min(3e-4, 0.5 * l.distance);
  for (const double share : {1.0, 0.5, 0.25, 0.125}) {
    const double s = l.distance - share * reach;
    const double w = s / l.distance;
    const std::optional<CurvePoint> p = curve_->correct(l.before, s, (1 - w) * l.before.z + w * l.point.z);
    if (!p) continue;
    OrbitView there;
    if (!problem_.view(p->z, there, false) || !there.matrix.allFinite()) continue;
    u.push_back(share * reach);
    m.push_back(there.matrix);
  }
  if (u.size() < 3) return {direct, !direct.allFinite(), v.multipliers};
  OneSided out = one_sided(u, m);
  if (!out.infinite && direct.allFinite() && (direct - out.matrix).norm() < 1e-7 * (1 + direct.norm()))
    return {direct, false, multipliers_of(direct)};
  return out;
}

std::optional<OrbitCurve::Side> OrbitCurve::try_side(const OrbitProblem::Frozen& legs, Vec z, double value, double side,
                                                     const Located& l) {
  problem_.restore(legs);
  z[z.size() - 1] = value;
  const std::optional<CurvePoint> p = curve_->start(z);
  if (!p) return std::nullopt;
  OrbitView v;
  if (!problem_.view(p->z, v, true) || !admissible(v)) return std::nullopt;
  // No length at all closes as well.
  if (problem_.period_of(p->z) < 0.1 * problem_.period_of(l.point.z)) return std::nullopt;
  // Near the special point, not some other orbit.
  if (distance_from(p->z, l) > 0.2) return std::nullopt;
  return Side{p->z, problem_.frozen_signature(), side};
}

std::optional<Vec> OrbitCurve::without(const Vanishing& gone, const Located& l) {
  problem_.put(l.point.z);
  std::vector<Leg> legs = problem_.legs();
  Leg& before = legs[gone.first - 1];
  const Leg& after = legs[gone.last + 1];
  if (before.arc.mode == after.arc.mode && before.arc.counters == after.arc.counters) {
    Leg joined = after;
    joined.x = before.x;
    joined.arc = before.arc;
    joined.starts = before.starts;
    for (size_t k = gone.first - 1; k <= gone.last; ++k) joined.length += legs[k].length;
    before = joined;
    legs.erase(legs.begin() + static_cast<long>(gone.first), legs.begin() + static_cast<long>(gone.last) + 2);
  } else {
    // One event remains: that of the switch whose state differs.
    const auto differs = [&](const Guard& g) {
      if (g.kind == GuardKind::surface || g.kind == GuardKind::sigma)
        return before.arc.mode.switches[at(g.item)] != after.arc.mode.switches[at(g.item)];
      return g.kind != GuardKind::slope;
    };
    for (size_t k = gone.first - 1; k <= gone.last; ++k) {
      if (!differs(legs[k].guard)) continue;
      Transition event = legs[k].event;
      event.before = before.arc.mode;
      event.counters_before = before.arc.counters;
      before.guard = legs[k].guard;
      if (before.guard.kind == GuardKind::sigma && before.arc.mode.switches[at(before.guard.item)] != '0')
        before.guard = {GuardKind::surface, before.guard.item,
                        before.arc.mode.switches[at(before.guard.item)] == '+' ? 1 : -1};
      event.guards = {before.guard};
      before.event = event;
      before.end = legs[k].end;
      break;
    }
    before.event.after = after.arc.mode;
    before.event.counters = after.arc.counters;
    legs.erase(legs.begin() + static_cast<long>(gone.first), legs.begin() + static_cast<long>(gone.last) + 1);
  }
  return problem_.take_legs(std::move(legs));
}

/// True if a jump leaves the state unchanged: an impact, written as a jump, that is met without speed.
bool OrbitCurve::moves_nothing(const Shot::End& end) {
  constexpr double nothing = 1e-3;
  const Vec& size = problem_.shooting().size();
  for (Index i = 0; i < size.size(); ++i) {
    if (std::abs(end.x_plus[ux(i)] - end.x_minus[ux(i)]) > nothing * size[i]) return false;
  }
  return true;
}

std::optional<size_t> OrbitCurve::vanishing_impact(const OrbitView& v) {
  constexpr double none = 1e-4;  // of the speeds on the orbit; it goes with the square root of the distance
  Variation& variation = problem_.shooting().variation();
  for (size_t i = 0; i + 1 < v.legs.size(); ++i) {
    const Leg& leg = v.legs[i];
    const Shot::End& end = v.shot.ends[i];
    const bool hits = leg.guard.kind == GuardKind::gap && !leg.event.hits.empty();
    const bool jumps = leg.guard.kind == GuardKind::jump && !leg.event.jumps.empty() && moves_nothing(end);
    if (!leg.happens || !(hits || jumps) || !(leg.event.before == leg.event.after)) continue;
    const Variation::GuardSlope slope = variation.guard(leg.guard, leg.arc, end.x_minus, end.t);
    const double speed = slope.by_state.dot(variation.rates(leg.arc, end.x_minus, end.t)) + slope.by_time;
    const double size = slope.by_state.cwiseAbs().dot(problem_.shooting().size()) / std::max(v.period, 1e-300);
    if (std::abs(speed) < none * size) return i;
  }
  return std::nullopt;
}

std::optional<Vec> OrbitCurve::without_impact(size_t leg, const Located& l) {
  problem_.put(l.point.z);
  std::vector<Leg> legs = problem_.legs();
  Leg joined = legs[leg + 1];
  joined.x = legs[leg].x;
  joined.arc = legs[leg].arc;
  joined.starts = legs[leg].starts;
  joined.length += legs[leg].length;
  legs[leg] = std::move(joined);
  legs.erase(legs.begin() + static_cast<long>(leg) + 1);
  return problem_.take_legs(std::move(legs));
}

int OrbitCurve::times_of(const Side& side) {
  constexpr int most = 16;
  constexpr double same = 1e-8;  // it has been solved for, away from where orbits meet
  problem_.restore(side.frozen);
  OrbitView v;
  if (!problem_.view(side.z, v, true)) return 1;
  for (int times = most; times > 1; --times) {
    if (problem_.repeats(v, times, same)) return times;
  }
  return 1;
}

std::optional<OrbitOptions> OrbitCurve::orbit_without_impact(const Located& l) {
  problem_.restore(sought_signature_);
  seen_.resize(0);
  const std::optional<size_t> impact = vanishing_impact(view(l.point));
  if (!impact) return std::nullopt;
  const std::optional<Vec> z = without_impact(*impact, l);
  if (!z) return std::nullopt;
  const double incoming = l.point.last() > l.before.last() ? -1 : 1;
  const std::optional<Side> side = both_sides(*z, l.point.last(), 1e-4 * (options_.high - options_.low), incoming, l);
  const int times = side ? times_of(*side) : 1;
  if (times == 1) return std::nullopt;
  problem_.put(side->z);
  OrbitOptions there = start_;
  there.run.parameters = problem_.parameters();
  there.run.initial.assign(problem_.legs()[0].x.begin(), problem_.legs()[0].x.end());
  there.run.from = problem_.start_time();
  there.clock_from = start_.clock_from.value_or(start_.run.from);
  there.guess = true;
  there.returns = 0;
  there.time = problem_.period_of(side->z) / times;
  return there;
}

std::optional<OrbitCurve::Side> OrbitCurve::on_side(const Vec& z, double value, double eps, double side,
                                                    const Located& l) {
  std::optional<Side> s = try_side(problem_.frozen_signature(), z, value + side * eps, side, l);
  return s && begins_at(*s, value, eps, l) ? s : std::nullopt;
}

std::optional<OrbitCurve::Side> OrbitCurve::both_sides(const Vec& z, double value, double eps, double incoming,
                                                       const Located& l) {
  const OrbitProblem::Frozen fresh = problem_.frozen_signature();
  if (std::optional<Side> s = on_side(z, value, eps, -incoming, l)) return s;
  problem_.restore(fresh);
  return on_side(z, value, eps, incoming, l);
}

bool OrbitCurve::begins_at(const Side& side, double value, double eps, const Located& l) {
  constexpr double nearer = 1.0 / 16, share = 0.6, there = 1e-6;
  const std::optional<Side> closer = try_side(side.frozen, side.z, value + side.side * nearer * eps, side.side, l);
  const double before = distance_from(side.z, l), after = closer ? distance_from(closer->z, l) : 0;
  problem_.restore(side.frozen);
  return !closer || after < there || after < share * before;
}

double OrbitCurve::distance_from(const Vec& z, const Located& l) {
  const Index n = problem_.program().states();
  return (z.head(n) - l.point.z.head(n)).cwiseQuotient(problem_.shooting().size()).norm();
}

std::optional<OrbitCurve::Side> OrbitCurve::other_side(const Located& l, double incoming) {
  const OrbitProblem::Frozen old = problem_.frozen_signature();
  const double value = l.point.last();
  const Vanishing gone = vanishing(view(l.point), l.test.name);
  const std::optional<size_t> impact = vanishing_impact(view(l.point));
  bool accumulates = false;  // what vanishes ends in a limit of impacts
  for (size_t k = gone.first; gone.any() && k <= gone.last; ++k)
    accumulates = accumulates || !old.legs[k].event.resting.empty();
  const auto other = [&] {  // not only in how many impacts are told before their limit
    return !accumulates || !same_signature(without_accumulation(problem_.legs()), without_accumulation(old.legs));
  };
  for (const double reach : {1e-5, 1e-4, 1e-6, 1e-3}) {
    // A fold may lie just behind the change: nearer to it there is an orbit on the far side all the same.
    for (const double nearer : {1.0, 0.1, 0.01}) {
      const Beyond run = run_beyond(l, nearer * reach, old);
      if (!run.z || !other()) continue;
      if (std::optional<Side> s = on_side(*run.z, value, run.eps, -incoming, l)) return s;
    }
    const Beyond run = run_beyond(l, reach, old);
    if (run.z && other()) {
      if (std::optional<Side> s = on_side(*run.z, value, run.eps, incoming, l)) return s;
    }
    if (impact) {
      problem_.restore(old);
      if (const std::optional<Vec> z = without_impact(*impact, l); z && other()) {
        if (std::optional<Side> s = both_sides(*z, value, run.eps, incoming, l)) return s;
      }
    }
    if (!gone.any()) continue;
    problem_.restore(old);
    if (const std::optional<Vec> z = without(gone, l)) {
      if (std::optional<Side> s = both_sides(*z, value, run.eps, incoming, l)) return s;
    }
  }
  problem_.restore(old);
  if (std::optional<Side> s = settled_side(l, incoming)) return s;
  problem_.restore(old);
  return std::nullopt;
}

OrbitCurve::Beyond OrbitCurve::run_beyond(const Located& l, double reach, const OrbitProblem::Frozen& old) {
  problem_.restore(old);
  curve_->refresh_scale();  // other signatures have other unknowns
  const Vec scale = problem_.scale();
  const std::optional<CurvePoint> beyond =
      curve_->correct(l.point, reach, l.point.z + reach * l.point.tangent.cwiseProduct(scale));
  const double least = 1e-2 * reach * (options_.high - options_.low);
  if (!beyond) return {.eps = least};
  Beyond out{.eps = std::max(std::abs(beyond->last() - l.point.last()), least)};
  problem_.put(beyond->z);
  const std::vector<double> x(problem_.legs()[0].x.begin(), problem_.legs()[0].x.end());
  const double duration = problem_.period_of(beyond->z) * (problem_.symmetry() ? 0.5 : 1.0);
  const std::optional<Vec> z = problem_.take_run(x, problem_.start_time(), duration, {beyond->last()});
  if (z && !same_signature(problem_.legs(), old.legs)) out.z = z;
  return out;
}

std::optional<OrbitCurve::Side> OrbitCurve::settled_side(const Located& l, double incoming) {
  const double value = l.point.last(), eps = 1e-4 * (options_.high - options_.low);
  const OrbitProblem::Frozen old = problem_.frozen_signature();
  const auto modes = [this] {  // wherever the orbit is cut
    std::vector<std::string> out = problem_.signature();
    std::sort(out.begin(), out.end());
    return out;
  };
  const std::vector<std::string> old_modes = modes();
  for (const double side : {-incoming, incoming}) {
    problem_.restore(old);
    const OrbitOptions there = settling_from(l, value + side * eps);
    const double period = problem_.period_of(l.point.z), t = problem_.start_time();
    const Orbit orbit = try_orbit(model_, there);
    if (!orbit.found || std::abs(orbit.period - period) > 1e-2 * period) continue;
    const std::optional<Vec> z = problem_.take_near(orbit, there.run.parameters, t);
    if (!z || modes() == old_modes) continue;
    if (std::optional<Side> s = try_side(problem_.frozen_signature(), *z, value + side * eps, side, l)) return s;
  }
  return std::nullopt;
}

OrbitCurve::OneSided OrbitCurve::matrix_after(const Side& side, double value) {
  std::vector<double> u;
  std::vector<Mat> m;
  Vec z = side.z;
  const double eps = z[z.size() - 1] - value;
  constexpr int count = 7;
  constexpr size_t kept = 4;  // the nearest of them
  for (int k = 0; k < count; ++k) {
    Vec guess = z;
    guess[guess.size() - 1] = value + eps * std::pow(0.25, k);
    const std::optional<CurvePoint> p = curve_->start(guess);
    if (!p) break;
    z = p->z;
    OrbitView v;
    if (!problem_.view(z, v, false) || !v.matrix.allFinite()) break;
    // Smooth in the shortest leg, where that is one that has just appeared.
    double shortest = HUGE_VAL;
    for (size_t i = 1; i + 1 < v.legs.size(); ++i) shortest = std::min(shortest, std::abs(v.legs[i].length));
    u.push_back(shortest);
    m.push_back(v.matrix);
  }
  if (u.size() > kept) {
    u.erase(u.begin(), u.end() - kept);
    m.erase(m.begin(), m.end() - kept);
  }
  if (u.size() < 2) {
    OrbitView v;
    problem_.view(side.z, v, false);
    return {v.matrix, !v.matrix.allFinite(), v.multipliers};
  }
  if (!(u.back() < 0.8 * u.front())) {
    for (size_t k = 0; k < u.size(); ++k) u[k] = std::pow(0.25, static_cast<double>(k));
  }
  return one_sided(u, m);
}

bool OrbitCurve::meets_backward(const BranchPoint& p, double value) {
  if (start_.backward || !model_.form.jumps.empty()) return false;
  OrbitOptions there = start_;
  there.backward = true;
  there.guess = false;
  there.returns = 0;
  there.most_returns = 300;
  there.run.parameters = parameter_values(model_, std::vector<GivenParameter>{{options_.parameter, value}});
  there.run.from = p.t;
  for (const double share : {0.9, 0.5, 1.1}) {  // inside the orbit, and outside
    for (size_t i = 0; i < p.state.size(); ++i) {
      const double centre = 0.5 * (p.lowest[i] + p.highest[i]);
      there.run.initial[i] = centre + share * (p.state[i] - centre);
    }
    const Orbit orbit = try_orbit(model_, there);
    if (orbit.found && std::abs(orbit.period - p.period) < 0.1 * p.period &&
        std::any_of(orbit.multipliers.begin(), orbit.multipliers.end(),
                    [](const auto& mu) { return std::isinf(std::abs(mu)); }))
      return true;
  }
  return false;
}

bool OrbitCurve::meets_cut(const Located& l) {
  const size_t last = problem_.legs().size() - 1;
  const std::vector<Monitor>& monitors = view(l.point).monitors;
  return l.test.name == "time 0" || l.test.name == fmt::format("time {}", last) ||
         std::any_of(monitors.begin(), monitors.end(),
                     [&](const Monitor& m) { return m.name == l.test.name && at_cut(m, last + 1); });
}

std::optional<Passage> OrbitCurve::past_the_cut(const Located& l) {
  if (!meets_cut(l)) return std::nullopt;
  const OrbitProblem::Frozen old = problem_.frozen_signature();
  const auto events = [](const std::vector<Leg>& legs) {
    return std::count_if(legs.begin(), legs.end(), [](const Leg& leg) { return leg.happens; });
  };
  const std::optional<Vec> z = problem_.cut_anew(l.before.z);
  if (z && events(problem_.legs()) == events(old.legs)) {
    seen_.resize(0);
    last_.reset();
    slope_sign_ = 0;
    return Passage{.goes_on = true, .z = *z, .along = l.before.last_slope() > 0 ? 1.0 : -1.0};
  }
  problem_.restore(old);
  return std::nullopt;
}

Passage OrbitCurve::pass(const Located& l) {
  if (looking_ == 0 && last_ && last_->point.z.size() == l.point.z.size() && comes_round(l.point, told(l.point)))
    return {.why = stop_->why};
  last_.reset();
  slope_sign_ = 0;
  const double value = l.point.z[l.point.z.size() - 1];
  // Where a leg vanishes with a square root the parameter turns there: its slope is rounding.
  const double slope = l.point.last_slope(), moved = value - l.before.last();
  const double incoming = (std::abs(slope) > 1e-4 || moved == 0 ? slope : moved) > 0 ? -1 : 1;
  const std::string type = type_of(l);
  if (looking_ > 0 && is_sought(l, type)) {
    sought_signature_ = problem_.frozen_signature();
    return {.why = "stopped"};
  }
  const std::vector<Monitor> monitors = view(l.point).monitors;
  const std::vector<Leg> legs = problem_.legs();
  SpecialPoint s = place(type, l);
  const BranchPoint here = told(l.point);
  const OneSided before = matrix_before(l);
  const std::optional<Side> on = other_side(l, incoming);
  const auto by_choice = [&](const Monitor& m) {
    return m.name == l.test.name && m.jump && m.jump->what == JumpWatch::What::choice;
  };
  const bool nothing = type.empty() || (on && std::any_of(monitors.begin(), monitors.end(), by_choice) &&
                                        jumps_alike(problem_.program(), legs, on->frozen.legs));
  if (nothing && on && on->side == incoming)  // where nothing happens no branch turns
    return {.why = "failed", .detail = "the orbit comes too near to rest where it is cut"};
  if (nothing && on) return {.goes_on = true, .z = on->z, .along = on->side};
  s.spectrum = before.multipliers;
  if (looking_ == 0 && passes_again(s, here)) return {.why = stop_->why, .detail = stop_->detail};
  const bool squared = problem_.symmetry().has_value();
  if (const int times = on ? times_of(*on) : 1; times > 1) {
    s.after = matrix_after(*on, value).multipliers;
    s.detail = fmt::format("the branch ends on an orbit of {} the period{}{}",
                           times == 2 ? "half" : fmt::format("1/{}", times),
                           s.type == "impact-grazing" ? ", which has one impact fewer"
                           : s.type == "grazing"      ? ", which has one jump fewer"
                                                      : "",
                           before.infinite ? "; the multiplier is infinite (square root)" : "");
    const std::string detail = s.detail;
    if (looking_ == 0) book_.special(std::move(s), here);
    return {.why = "signature", .detail = detail};
  }
  if (on) {
    problem_.restore(on->frozen);
    const OneSided after = matrix_after(*on, value);
    problem_.restore(on->frozen);
    s.after = after.multipliers;
    s.persists = on->side != incoming;
    s.detail = *s.persists ? "persistence" : "nonsmooth fold";
    if (before.infinite || after.infinite) {
      s.detail += ", the multiplier is infinite on one side (square root)";
    } else if (before.matrix.rows() == after.matrix.rows()) {
      const std::vector<SetPassage> passages = circle_passages(before.matrix, after.matrix, squared);
      s.set_crosses(passages);
      for (const auto& [q, c] : squared ? circle_passages(before.matrix, after.matrix, false) : passages) {
        if (c == "+1") s.detail += ", discontinuous fold";
        if (c == "-1") s.detail += squared ? ", discontinuous symmetry breaking" : ", discontinuous flip";
        if (c == "complex") s.detail += ", discontinuous torus";
      }
    }
  } else if (meets_backward(here, value + incoming * 1e-4 * (options_.high - options_.low))) {
    s.persists = false;
    s.after = Spectrum{{HUGE_VAL, 0}};
    s.detail = "nonsmooth fold with an infinitely unstable orbit, which is followed backward in time";
  } else {
    s.detail = "no admissible orbit goes on from here";
    if (s.type.empty()) s.type = "degenerate";
  }
  const std::string detail = s.detail;
  if (looking_ == 0) book_.special(std::move(s), here);
  if (!on) return {.why = "signature", .detail = detail};
  problem_.restore(on->frozen);
  seen_.resize(0);
  return {.goes_on = true, .z = on->z, .along = on->side};
}

}  // namespace saltus
