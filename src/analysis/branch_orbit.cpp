#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analysis/branch.hpp"
#include "analysis/orbit_problem.hpp"

namespace saltus {
namespace {

size_t at(int i) { return static_cast<size_t>(i); }

constexpr double vanished = 1e-5;  ///< a leg shorter than this share of the period has gone at a special point

class OrbitCurve {
 public:
  OrbitCurve(const Model& model, const OrbitOptions& start, const BranchOptions& options)
      : model_(model), start_(start), options_(options), problem_(model, start, {options.parameter}) {}

  Branch follow() {
    Branch out;
    const Orbit orbit = find_orbit(model_, start_);
    if (!orbit.found) {
      out.why = orbit.why;
      out.message = orbit.message;
      return out;
    }
    out.autonomous = orbit.autonomous;
    branch_ = &out;
    problem_.set_ranges({options_.high - options_.low});
    const std::optional<Vec> z = problem_.take(orbit);
    const Followed followed = functions();
    curve_.emplace(followed, CurveOptions{.low = options_.low,
                                          .high = options_.high,
                                          .first_step = std::min(0.005, options_.largest_step),
                                          .largest_step = options_.largest_step,
                                          .most_points = options_.most_points});
    std::optional<CurvePoint> first;
    if (z) first = curve_->start(*z);
    if (!first) {
      out.why = "newton";
      out.message = "Newton's method does not converge at the start";
      return out;
    }
    out.found = true;
    longest_ = options_.longest_time > 0 ? options_.longest_time : 100 * orbit.period;
    const OrbitProblem::Frozen frozen = problem_.frozen_signature();
    const BranchEnd low = walk(first->reversed(), -1);
    std::reverse(out.points.begin(), out.points.end());
    std::reverse(out.special.begin(), out.special.end());
    problem_.restore(frozen);
    point(*first);
    const BranchEnd high = walk(*first, 1);
    out.ends = {low, high};
    return out;
  }

 private:
  Followed functions() {
    return {.equations = [this](const Vec& z, Vec& r, Mat& J) { return problem_.equations(z, r, J); },
            .scale = [this] { return problem_.scale(); },
            .tests = [this](const CurvePoint& p) { return tests(p); },
            .point = [this](const CurvePoint& p) { return point(p); },
            .special = [this](const Located& l) { return special(l); },
            .pass = [this](const Located& l) { return pass(l); },
            .renew =
                [this](const CurvePoint& p) {
                  if (std::abs(p.tangent[p.tangent.size() - 1]) < 0.02 || !problem_.needs_cut(p.z))
                    return std::optional<Vec>();
                  return problem_.cut_anew(p.z);
                }};
  }

  BranchEnd walk(const CurvePoint& from, int direction) {
    homoclinic_ = false;
    const CurveEnd end = curve_->walk(from);
    return {direction, homoclinic_ ? "homoclinic" : end.why, end.detail, end.value};
  }

  // ---- tests --------------------------------------------------------------------------------------------------------

  const OrbitView& view(const CurvePoint& p) {
    if (seen_.size() != p.z.size() || seen_ != p.z || seen_legs_ != problem_.legs().size()) {
      view_ = {};
      fine_ = problem_.view(p.z, view_, true);
      seen_ = p.z;
      seen_legs_ = problem_.legs().size();
    }
    return view_;
  }

  std::vector<Test> tests(const CurvePoint& p) {
    const OrbitView& v = view(p);
    std::vector<Test> out{{"fold", p.tangent[p.tangent.size() - 1]}, {"branch", p.orientation}};
    if (!fine_) return out;
    out.push_back({problem_.symmetry() ? "symmetry" : "flip", flip_test(v.roots)});
    out.push_back({"torus", torus_test(v.roots)});
    for (size_t i = 0; i < v.legs.size(); ++i)
      out.push_back({fmt::format("time {}", i), v.legs[i].length * problem_.direction(), true});
    for (const Monitor& m : v.monitors) out.push_back({m.name, m.lowest.value, true});
    return out;
  }

  // ---- what is told -------------------------------------------------------------------------------------------------

  BranchPoint told(const CurvePoint& p) {
    const OrbitView& v = view(p);
    BranchPoint out{.values = problem_.values_of(p.z), .period = v.period, .stable = v.stable,
                    .spectrum = v.multipliers};
    out.state = problem_.told_state(v, out.t);
    problem_.extremes(v, out.lowest, out.highest);
    out.signature = problem_.signature();
    return out;
  }

  bool point(const CurvePoint& p) {
    branch_->points.push_back(told(p));
    homoclinic_ = branch_->points.back().period > longest_;
    if (homoclinic_) return false;
    return !options_.on_point || options_.on_point(branch_->points.back());
  }

  SpecialPoint place(const std::string& type, const Located& l) {
    const BranchPoint b = told(l.before);
    const BranchPoint p = told(l.point);
    SpecialPoint s{.type = type, .values = p.values, .state = p.state, .t = p.t, .period = p.period,
                   .spectrum = p.spectrum, .signature = p.signature};
    s.near_values = b.values;
    s.near_state = b.state;
    s.near_t = b.t;
    s.near_period = b.period;
    return s;
  }

  bool add(SpecialPoint s, const CurvePoint& at_point) {
    const std::string letters = label_letters(s.type);
    int number = 1;
    for (const SpecialPoint& other : branch_->special) number += label_letters(other.type) == letters;
    s.label = fmt::format("{}{}", letters, number);
    BranchPoint p = told(at_point);
    p.label = s.label;
    branch_->points.push_back(std::move(p));
    branch_->special.push_back(std::move(s));
    if (options_.on_special) options_.on_special(branch_->special.back());
    return !options_.stops_at_special;
  }

  bool special(const Located& l) {
    const OrbitView& v = view(l.point);
    if (l.test.name == "torus" && !on_circle(v.roots)) return true;  // a neutral saddle
    SpecialPoint s = place(l.test.name, l);
    // A fold and a branch point at one place: a branch that ends on a symmetric one.
    if (!branch_->special.empty() && (s.type == "fold" || s.type == "branch")) {
      SpecialPoint& last = branch_->special.back();
      const double range = options_.high - options_.low;
      if (std::abs(last.values[0] - s.values[0]) < 1e-6 * range && last.type != s.type &&
          (last.type == "fold" || last.type == "branch")) {
        s.type = "branch";
        s.detail = "pitchfork";
        branch_->points.pop_back();
        branch_->special.pop_back();
      }
    }
    return add(std::move(s), l.point);
  }

  // ---- changes of the signature -------------------------------------------------------------------------------------

  static char letter(const Mode& mode, int item) { return mode.switches[at(item)]; }

  /// Legs next to each other that have no length at a special point: [first, last], none if first > last.
  struct Vanishing {
    size_t first = 1, last = 0;
    bool any() const { return first <= last; }
  };

  Vanishing vanishing(const OrbitView& v, const std::string& test) const {
    Vanishing out;
    const bool by_time = test.starts_with("time ");
    const size_t named = by_time ? std::stoul(test.substr(5)) : 0;
    if (by_time && (named == 0 || named + 1 == v.legs.size())) return out;  // the cut
    for (size_t i = 1; i + 1 < v.legs.size(); ++i) {
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

  static bool met(const Transition& event, int item) {
    return std::any_of(event.guards.begin(), event.guards.end(), [&](const Guard& g) {
      return g.item == item && (g.kind == GuardKind::surface || g.kind == GuardKind::sigma);
    });
  }

  /// What legs that vanish mean, from the letters before, on and after them.
  std::string type_of_vanishing(const OrbitView& v, const Vanishing& gone) {
    const Leg &a = v.legs[gone.first - 1], &b = v.legs[gone.last];
    if (!a.happens || !b.happens) return "";
    const Mode &before = a.arc.mode, &after = v.legs[gone.last + 1].arc.mode;
    for (size_t j = 0; j < before.constraints.size(); ++j) {
      for (size_t k = gone.first; k <= gone.last; ++k) {
        const char q = v.legs[k].arc.mode.constraints[j];
        if (q != before.constraints[j] && q != after.constraints[j]) return q == 'c' ? "impact-grazing" : "release";
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
        if (q == '0') return p == r ? "grazing-sliding" : "crossing-sliding";
        if (p == '0' && r == '0') return model_.form.switches[i].holds ? "release" : "adding-sliding";
        if (p == '0' || r == '0') return "switching-sliding";
        if (problem_.acts(v.legs[k].arc, x, t, item)) return "grazing";
      }
      if (p != r && problem_.acts(a.arc, x, t, static_cast<int>(i))) silent = false;
    }
    // Two events that change places matter only where each of them does something.
    return silent ? "" : "corner";
  }

  /// Whether the field behind a surface pushes back where the orbit touches it.
  bool pushes_back(const OrbitView& v, const Monitor& m, const std::vector<double>& x, double t) {
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

  /// Whether a surface is met without speed, in a mode.
  bool without_speed(const Arc& arc, int item, const std::vector<double>& x, double t, double period) {
    Variation& variation = problem_.shooting().variation();
    const Variation::GuardSlope slope = variation.guard({GuardKind::surface, item, 0}, arc, x, t);
    const double rate = slope.by_state.dot(variation.rates(arc, x, t)) + slope.by_time;
    const double size = slope.by_state.cwiseAbs().dot(problem_.shooting().size()) / std::max(period, 1e-300);
    return std::abs(rate) < 1e-5 * size;
  }

  std::string type_of_monitor(const OrbitView& v, const Monitor& m, const std::vector<double>& x, double t) {
    const Leg& leg = v.legs[m.leg];
    const bool cut = (m.lowest.where == Lowest::Where::start && m.leg == 0) ||
                     (m.lowest.where == Lowest::Where::end && m.leg + 1 == v.legs.size());
    if (cut) return "";
    const bool holds = (m.guard.guard.kind == GuardKind::sigma || m.guard.guard.kind == GuardKind::surface) &&
                       model_.form.switches[at(m.guard.guard.item)].holds;
    switch (m.guard.guard.kind) {
      case GuardKind::gap: return "impact-grazing";
      case GuardKind::lambda: return "release";
      case GuardKind::jump: return "grazing";
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
          if (m.guard.known == 0) return without_speed(leg.arc, m.guard.guard.item, x, t, v.period) ? "grazing" : "corner";
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

  /// What the zero of a breaking test means; empty: nothing that matters.
  std::string type_of(const Located& l) {
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

  struct OneSided {
    Mat matrix;
    bool infinite = false;
    Spectrum multipliers;
  };

  /// The limit of matrices at u -> 0 by the polynomial through them.
  static Mat limit(const std::vector<double>& u, std::vector<Mat> m) {
    for (size_t k = 1; k < m.size(); ++k) {
      for (size_t i = 0; i + k < m.size(); ++i) m[i] = (u[i] * m[i + 1] - u[i + k] * m[i]) / (u[i] - u[i + k]);
    }
    return m[0];
  }

  Spectrum multipliers_of(const Mat& M) const {
    Spectrum s = spectrum_of(M);
    if (problem_.symmetry()) {
      for (std::complex<double>& mu : s) mu *= mu;
    }
    if (problem_.direction() < 0) {
      for (std::complex<double>& mu : s) mu = std::abs(mu) < 1e-13 ? std::complex<double>(HUGE_VAL, 0) : 1.0 / mu;
    }
    sort_multipliers(s);
    return s;
  }

  OneSided one_sided(const std::vector<double>& u, const std::vector<Mat>& m) {
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

  /// The matrix on the side from which the branch comes.
  OneSided matrix_before(const Located& l) {
    const OrbitView& v = view(l.point);
    const Mat direct = v.matrix;
    std::vector<double> u;
    std::vector<Mat> m;
    const double reach = std::min(2e-3, 0.5 * l.distance);
    for (const double share : {1.0, 0.5, 0.25, 0.125}) {
      const double s = l.distance - share * reach;
      const Vec scale = problem_.scale();
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
    if (!out.infinite && direct.allFinite() && (direct - out.matrix).norm() < 1e-4 * (1 + direct.norm()))
      return {direct, false, multipliers_of(direct)};
    return out;
  }

  /// A point of another signature: legs from a run near the change, then Newton with the parameter kept.
  struct Side {
    Vec z;
    OrbitProblem::Frozen frozen;
    double side = 0;
  };

  bool admissible(const OrbitView& v) const {
    for (const Leg& leg : v.legs) {
      if (leg.length * problem_.direction() < 0) return false;
    }
    return std::all_of(v.monitors.begin(), v.monitors.end(), [](const Monitor& m) { return m.lowest.value > 0; });
  }

  std::optional<Side> try_side(const OrbitProblem::Frozen& legs, Vec z, double value, double side,
                               const Located& l) {
    problem_.restore(legs);
    z[z.size() - 1] = value;
    const std::optional<CurvePoint> p = curve_->start(z);
    if (!p) return std::nullopt;
    OrbitView v;
    if (!problem_.view(p->z, v, true) || !admissible(v)) return std::nullopt;
    // Near the special point, not some other orbit.
    const Eigen::Index n = problem_.program().states();
    const Vec moved = (p->z.head(n) - l.point.z.head(n)).cwiseQuotient(problem_.shooting().size());
    if (moved.norm() > 0.2) return std::nullopt;
    return Side{p->z, problem_.frozen_signature(), side};
  }

  /// The signature without the legs that vanish, at the special point.
  std::optional<Vec> without(const Vanishing& gone, const Located& l) {
    problem_.put(l.point.z);
    std::vector<Leg> legs = problem_.legs();
    Leg& before = legs[gone.first - 1];
    const Leg& after = legs[gone.last + 1];
    if (before.arc.mode == after.arc.mode && before.arc.counters == after.arc.counters) {
      Leg joined = after;
      joined.x = before.x;
      joined.arc = before.arc;
      for (size_t k = gone.first - 1; k <= gone.last; ++k) joined.length += legs[k].length;
      before = joined;
      legs.erase(legs.begin() + static_cast<long>(gone.first), legs.begin() + static_cast<long>(gone.last) + 2);
    } else {
      before.event.after = after.arc.mode;
      before.event.counters = after.arc.counters;
      legs.erase(legs.begin() + static_cast<long>(gone.first), legs.begin() + static_cast<long>(gone.last) + 1);
    }
    return problem_.take_legs(std::move(legs));
  }

  std::optional<Side> both_sides(const Vec& z, double value, double eps, double incoming, const Located& l) {
    const OrbitProblem::Frozen fresh = problem_.frozen_signature();
    for (const double side : {-incoming, incoming}) {
      if (std::optional<Side> s = try_side(fresh, z, value + side * eps, side, l)) return s;
    }
    return std::nullopt;
  }

  /// The signature that takes over behind a change, and on which side of the parameter it is admissible: what a run
  /// from just beyond does, or the same without the legs that have gone.
  std::optional<Side> other_side(const Located& l, double incoming) {
    const OrbitProblem::Frozen old = problem_.frozen_signature();
    const double value = l.point.last(), range = options_.high - options_.low;
    const Vanishing gone = vanishing(view(l.point), l.test.name);
    for (const double reach : {1e-5, 1e-4, 1e-6, 1e-3}) {
      problem_.restore(old);
      const Vec scale = problem_.scale();
      const std::optional<CurvePoint> beyond =
          curve_->correct(l.point, reach, l.point.z + reach * l.point.tangent.cwiseProduct(scale));
      const double eps = std::max(beyond ? std::abs(beyond->last() - value) : 0.0, 1e-2 * reach * range);
      if (beyond) {
        problem_.put(beyond->z);
        const std::vector<double> x(problem_.legs()[0].x.begin(), problem_.legs()[0].x.end());
        const double duration = problem_.period_of(beyond->z) * (problem_.symmetry() ? 0.5 : 1.0);
        const std::optional<Vec> z = problem_.take_run(x, problem_.start_time(), duration, {beyond->last()});
        if (z && !same_signature(problem_.legs(), old.legs)) {
          if (std::optional<Side> s = both_sides(*z, value, eps, incoming, l)) return s;
        }
      }
      if (!gone.any()) continue;
      problem_.restore(old);
      if (const std::optional<Vec> z = without(gone, l)) {
        if (std::optional<Side> s = both_sides(*z, value, eps, incoming, l)) return s;
      }
    }
    problem_.restore(old);
    return std::nullopt;
  }

  OneSided matrix_after(const Side& side, double value) {
    std::vector<double> u;
    std::vector<Mat> m;
    Vec z = side.z;
    const double eps = z[z.size() - 1] - value;
    for (int k = 0; k < 4; ++k) {
      Vec guess = z;
      guess[guess.size() - 1] = value + eps * std::pow(0.5, k);
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
    if (u.size() < 2) {
      OrbitView v;
      problem_.view(side.z, v, false);
      return {v.matrix, !v.matrix.allFinite(), v.multipliers};
    }
    if (!(u.back() < 0.8 * u.front())) {
      for (size_t k = 0; k < u.size(); ++k) u[k] = std::pow(0.5, static_cast<double>(k));
    }
    return one_sided(u, m);
  }

  Passage pass(const Located& l) {
    const double value = l.point.z[l.point.z.size() - 1];
    const double incoming = l.point.tangent[l.point.tangent.size() - 1] > 0 ? -1 : 1;
    const std::string type = type_of(l);
    SpecialPoint s = place(type, l);
    const BranchPoint here = told(l.point);
    const OneSided before = matrix_before(l);
    const std::optional<Side> on = other_side(l, incoming);
    if (type.empty() && on) {
      return {.goes_on = true, .z = on->z, .along = on->side};
    }
    s.spectrum = before.multipliers;
    const bool squared = problem_.symmetry().has_value();
    if (on) {
      const OneSided after = matrix_after(*on, value);
      problem_.restore(on->frozen);
      s.after = after.multipliers;
      s.persists = on->side != incoming;
      s.detail = *s.persists ? "persistence" : "nonsmooth fold";
      if (before.infinite || after.infinite) {
        s.detail += ", the multiplier is infinite on one side (square root)";
      } else if (before.matrix.rows() == after.matrix.rows()) {
        s.crosses = circle_passages(before.matrix, after.matrix, squared);
        std::vector<std::string> roots = squared ? circle_passages(before.matrix, after.matrix, false) : *s.crosses;
        for (const std::string& c : roots) {
          if (c == "+1") s.detail += ", discontinuous fold";
          if (c == "-1") s.detail += squared ? ", discontinuous symmetry breaking" : ", discontinuous flip";
          if (c == "complex") s.detail += ", discontinuous torus";
        }
      }
    } else {
      s.detail = "no admissible orbit goes on from here";
      if (s.type.empty()) s.type = "degenerate";
    }
    const std::string letters = label_letters(s.type);
    int number = 1;
    for (const SpecialPoint& other : branch_->special) number += label_letters(other.type) == letters;
    s.label = fmt::format("{}{}", letters, number);
    BranchPoint marked = here;
    marked.label = s.label;
    branch_->points.push_back(std::move(marked));
    branch_->special.push_back(s);
    if (options_.on_special) options_.on_special(branch_->special.back());
    if (options_.stops_at_special) return {.why = "stopped"};
    if (!on) return {.why = "signature", .detail = s.detail};
    problem_.restore(on->frozen);
    seen_.resize(0);
    return {.goes_on = true, .z = on->z, .along = on->side};
  }

  const Model& model_;
  OrbitOptions start_;
  BranchOptions options_;
  OrbitProblem problem_;
  std::optional<Continuation> curve_;
  Branch* branch_ = nullptr;
  double longest_ = 0;
  bool homoclinic_ = false;
  OrbitView view_;
  Vec seen_;
  size_t seen_legs_ = 0;
  bool fine_ = false;
};

}  // namespace

Branch follow_orbit(const Model& model, const OrbitOptions& start, const BranchOptions& options) {
  return OrbitCurve(model, start, options).follow();
}

}  // namespace saltus
