#include "analysis/orbit_curve.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/signature.hpp"
#include "base/index.hpp"

namespace saltus {
namespace {

/// The letter of a switch.
char letter(const Mode& mode, int item) { return mode.switches[at(item)]; }

}  // namespace

OrbitCurve::Vanishing OrbitCurve::vanishing(const OrbitView& v, const std::string& test) const {
  Vanishing out;
  const bool by_time = test.starts_with("time ");
  const size_t named = by_time ? std::stoul(test.substr(5)) : 0;
  const size_t judged = by_time ? named : test.starts_with("leg ") ? std::stoul(test.substr(4)) : v.legs.size();
  if (by_time && (named == 0 || named + 1 == v.legs.size())) return out;  // the cut
  // Impacts that accumulate, and the time to their limit, vanish together.
  std::vector<bool> accumulates(v.legs.size(), false);
  for (size_t last = 1; last + 1 < v.legs.size(); ++last) {
    if (v.legs[last].event.resting.empty()) continue;
    size_t first = last;
    while (first > 1 && precedes(v.legs[first - 1], v.legs[last])) --first;
    double length = 0;
    for (size_t k = first; k <= last; ++k) length += std::abs(v.legs[k].length), accumulates[k] = true;
    constexpr double small = 1e-2;
    const bool on_them = judged >= first && judged <= last + (by_time ? 0 : 1);
    if (length < small * v.period && on_them) return {first, last};
  }
  for (size_t i = 1; i + 1 < v.legs.size(); ++i) {
    if (accumulates[i] && !(by_time && i == named)) continue;
    const bool gone = std::abs(v.legs[i].length) < vanished * v.period || (by_time && i == named);
    if (!gone) {
      if (out.any() && out.last + 1 == i && by_time && named < i) break;
      continue;
    }
    if (out.any() && out.last + 1 == i)
      out.last = i;
    else if (!out.any() || (by_time && named >= i))
      out.first = out.last = i;
  }
  return out;
}

bool OrbitCurve::met(const Transition& event, int item) {
  return std::any_of(event.guards.begin(), event.guards.end(), [&](const Guard& g) {
    return g.item == item && (g.kind == GuardKind::surface || g.kind == GuardKind::sigma);
  });
}

std::string OrbitCurve::touch_of(size_t constraint) const {
  return model_.form.gaps[constraint].degree < 2 ? "blocking" : "impact-grazing";
}

std::string OrbitCurve::type_of_vanishing(const OrbitView& v, const Vanishing& gone) {
  const Leg &a = v.legs[gone.first - 1], &b = v.legs[gone.last];
  if (!a.happens || !b.happens) return "";
  const Mode &before = a.arc.mode, &after = v.legs[gone.last + 1].arc.mode;
  for (size_t j = 0; j < before.constraints.size(); ++j) {
    for (size_t k = gone.first; k <= gone.last; ++k) {
      const char q = v.legs[k].arc.mode.constraints[j];
      if (q != before.constraints[j] && q != after.constraints[j]) return q == 'c' ? touch_of(j) : "release";
    }
  }
  double t = v.t0;
  for (size_t i = 0; i < gone.first; ++i) t += v.legs[i].length;
  const std::vector<double> x(v.legs[gone.first].x.begin(), v.legs[gone.first].x.end());
  bool silent = true;
  for (size_t i = 0; i < before.switches.size(); ++i) {
    const char p = before.switches[i], r = after.switches[i];
    for (size_t k = gone.first; k <= gone.last; ++k) {
      const char q = v.legs[k].arc.mode.switches[i];
      if (q == p || q == r) continue;
      const int item = static_cast<int>(i);
      if (!met(a.event, item) && gone.first == gone.last) {  // it changes because something else jumps
        silent = false;
        continue;
      }
      if (q == '0' && p != r && model_.form.switches[i].holds) return "release";
      if (q == '0') return p == r ? "grazing-sliding" : "crossing-sliding";
      if (p == '0' && r == '0') return model_.form.switches[i].holds ? "release" : "adding-sliding";
      if (p == '0' || r == '0') return "switching-sliding";
      // Where a clock or a jump carries the surface back over zero, it is not touched.
      if (problem_.acts(v.legs[k].arc, x, t, item)) return met(b.event, item) ? "grazing" : "corner";
    }
    if (p != r && problem_.acts(a.arc, x, t, static_cast<int>(i))) silent = false;
  }
  // Two events that change places matter only where each of them does something.
  const auto resets = [&](size_t k) { return !v.legs[k].event.jumps.empty() || !v.legs[k].event.hits.empty(); };
  bool reset = false;
  for (size_t k = gone.first; k <= gone.last; ++k) reset = reset || (resets(k - 1) && resets(k));
  return silent && !reset ? "" : "corner";
}

bool OrbitCurve::pushes_back(const OrbitView& v, const Monitor& m, const std::vector<double>& x, double t) {
  const int i = m.guard.guard.item;
  Arc behind = v.legs[m.leg].arc;
  const double sign = m.guard.sign;
  behind.mode.switches[at(i)] = sign > 0 ? '-' : '+';
  Variation& variation = problem_.shooting().variation();
  const Variation::GuardSlope slope = variation.guard({GuardKind::surface, i, 0}, behind, x, t);
  const Vec f = variation.rates(behind, x, t);
  const double rate = (slope.by_state.dot(f) + slope.by_time) * problem_.direction();
  const double size = slope.by_state.cwiseAbs().dot(problem_.shooting().size()) / std::max(v.period, 1e-300);
  return sign * rate > 1e-6 * size;
}

bool OrbitCurve::without_speed(const Arc& arc, int item, const std::vector<double>& x, double t, double period) {
  Variation& variation = problem_.shooting().variation();
  const Variation::GuardSlope slope = variation.guard({GuardKind::surface, item, 0}, arc, x, t);
  const double rate = slope.by_state.dot(variation.rates(arc, x, t)) + slope.by_time;
  const double size = slope.by_state.cwiseAbs().dot(problem_.shooting().size()) / std::max(period, 1e-300);
  return std::abs(rate) < 1e-5 * size;
}

bool OrbitCurve::at_cut(const Monitor& m, size_t legs) {
  return (m.lowest.where == Lowest::Where::start && m.leg == 0) ||
         (m.lowest.where == Lowest::Where::end && m.leg + 1 == legs);
}

std::string OrbitCurve::type_of_monitor(const OrbitView& v, const Monitor& m, const std::vector<double>& x, double t) {
  const Leg& leg = v.legs[m.leg];
  if (at_cut(m, v.legs.size())) return "";
  const bool holds = (m.guard.guard.kind == GuardKind::sigma || m.guard.guard.kind == GuardKind::surface) &&
                     model_.form.switches[at(m.guard.guard.item)].holds;
  switch (m.guard.guard.kind) {
    case GuardKind::gap: return touch_of(at(m.guard.guard.item));
    case GuardKind::lambda: return "release";
    case GuardKind::jump: return m.jump && m.jump->what == JumpWatch::What::touch ? "grazing" : "corner";
    case GuardKind::sigma:
      if (m.lowest.where == Lowest::Where::start && m.leg > 0) {
        const Leg& before = v.legs[m.leg - 1];
        const char from = letter(before.arc.mode, m.guard.guard.item);
        if (from == '0') return "corner";
        const bool same_side = (from == '+') == (m.guard.guard.side > 0);
        return same_side ? "grazing-sliding" : "switching-sliding";
      }
      if (m.lowest.where == Lowest::Where::end && !m.guard.own) return "corner";
      return holds ? "release" : "adding-sliding";
    case GuardKind::surface:
      if (m.lowest.where == Lowest::Where::start) {
        const Arc& earlier = v.legs[m.leg - 1].arc;
        if (m.guard.known == 0)
          return without_speed(leg.arc, m.guard.guard.item, x, t, v.period) ? "grazing" : "corner";
        if (letter(earlier.mode, m.guard.guard.item) == '0') return "adding-sliding";
        return without_speed(earlier, m.guard.guard.item, x, t, v.period) ? "grazing" : "crossing-sliding";
      }
      if (m.lowest.where == Lowest::Where::end) {
        if (!m.guard.own) return without_speed(leg.arc, m.guard.guard.item, x, t, v.period) ? "grazing" : "corner";
        return letter(leg.event.after, m.guard.guard.item) == '0' ? "grazing-sliding" : "grazing";
      }
      return pushes_back(v, m, x, t) ? "grazing-sliding" : "grazing";
    default: return "degenerate";
  }
}

std::string OrbitCurve::type_of(const Located& l) {
  const OrbitView v = view(l.point);
  const Vanishing gone = vanishing(v, l.test.name);
  if (gone.any()) return type_of_vanishing(v, gone);
  if (l.test.name.starts_with("time ")) return "";
  for (const Monitor& m : v.monitors) {
    if (m.name != l.test.name) continue;
    double t = v.t0;
    for (size_t i = 0; i < m.leg; ++i) t += v.legs[i].length;
    t += problem_.direction() * m.lowest.time;
    std::vector<double> x(at(problem_.program().states()));
    for (const LegTrace::Stretch& s : v.traces[m.leg].stretches) {
      const double tau = t - s.piece.start;
      if (problem_.direction() * tau < 0) break;
      Trajectory::evaluate(s.piece, problem_.program().states(), tau, x.data());
    }
    std::string type = type_of_monitor(v, m, x, t);
    if (m.guard.guard.kind == GuardKind::surface && !problem_.acts(v.legs[m.leg].arc, x, t, m.guard.guard.item))
      type.clear();
    return type;
  }
  return "degenerate";
}

bool OrbitCurve::admissible(const OrbitView& v) const {
  for (const Leg& leg : v.legs) {
    if (leg.length * problem_.direction() < 0) return false;
  }
  return std::all_of(v.monitors.begin(), v.monitors.end(), [](const Monitor& m) { return m.lowest.value > 0; });
}

}  // namespace saltus
