#include "analysis/equilibrium_curve.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/index.hpp"

namespace saltus {
namespace {

constexpr double at_zero = 1e-7;  ///< a guard below this share of its slope counts as zero at a special point

}  // namespace

std::optional<std::vector<double>> EquilibriumCurve::rest_in(const Arc& arc, const std::vector<double>& x,
                                                             double value) {
  const Arc keep = std::exchange(arc_, arc);
  const Mat basis = std::exchange(basis_, Mat());
  Vec z(n() + 1);
  z << column_at(x.data(), n()), value;
  std::optional<std::vector<double>> out;
  if (std::optional<CurvePoint> p = curve_->start(z)) out = state_of(p->z);
  arc_ = keep;
  basis_ = basis;
  return out;
}

std::vector<Arc> EquilibriumCurve::neighbours(const std::vector<Guard>& zero) const {
  std::vector<Arc> out{arc_};
  for (const Guard& g : zero) {
    const std::vector<Arc> so_far = std::exchange(out, {});
    const bool is_switch = g.kind == GuardKind::surface || g.kind == GuardKind::sigma;
    for (const Arc& arc : so_far) {
      for (const char c : is_switch ? std::string("+-0") : std::string("oc")) {
        Arc next = arc;
        next.held.clear();
        (is_switch ? next.mode.switches[at(g.item)] : next.mode.constraints[at(g.item)]) = c;
        if (std::find(out.begin(), out.end(), next) == out.end()) out.push_back(std::move(next));
      }
    }
  }
  return out;
}

bool EquilibriumCurve::admissible(const Arc& arc, const std::vector<double>& x) {
  for (int i = 0; i < program_.switches(); ++i) {
    if (arc.mode.switches[at(i)] != '0') continue;
    // A surface that its sigma cannot keep is not slid on.
    const Variation::GuardSlope slope = variation_.guard({GuardKind::surface, i, 0}, arc, x, time());
    const double size = slope.by_state.cwiseAbs().dot(scale_.head(program_.states()));
    if (variation_.series().idle(i) || !(std::abs(slope.value) <= 1e-9 * size)) return false;
  }
  variation_.rates(arc, x, time());
  for (const Series::Single& single : variation_.series().singles()) {
    // Nor one on whose rate it has no effect: a kink.
    const int u = variation_.series().active()[at(single.member)];
    if (u < program_.switches() && std::abs(single.slope) < 1e-9) return false;
  }
  for (const GuardValue& g : guards(arc, x)) {
    if (!(g.value > 0)) return false;
  }
  return true;
}

Passage EquilibriumCurve::pass(const Located& l) {
  const Index count = n();
  const double value = l.point.last(), range = scale_[count];
  if (looking_ > 0 && is_sought(l, "boundary-equilibrium")) return {.why = "stopped"};
  bind(l.point.z);
  const std::vector<double> x = state_of(l.point.z);
  std::vector<Guard> zero;
  for (const GuardValue& g : guards(arc_, x)) {
    const Variation::GuardSlope slope = variation_.guard(g.guard, arc_, x, time());
    const double size = std::abs(slope.by_state.cwiseProduct(scale_.head(count)).cwiseAbs().sum()) + 1e-300;
    if (std::abs(g.value) < at_zero * size || name_of(g.guard) == l.test.name) zero.push_back(g.guard);
  }
  const double incoming = l.point.last_slope() > 0 ? -1 : 1;  // the side from which it came
  SpecialPoint s = place("boundary-equilibrium", l.point, l.before);
  const Mat before = matrix(arc_, x);
  struct Candidate {
    Arc arc;
    double side, turn;
    std::vector<double> x;
    double value;
  };
  std::vector<Candidate> found;
  const double eps = 1e-5 * range;
  const Vec slope = l.point.tangent.head(count).cwiseProduct(scale_.head(count)) / (l.point.last_slope() * range);
  for (const Arc& arc : neighbours(zero)) {
    for (const double side : {-incoming, incoming}) {
      if (arc == arc_ && side == incoming) continue;
      const double there = value + side * eps;
      const std::optional<std::vector<double>> y = rest_in(arc, x, there);
      if (!y) continue;
      const Vec moved = column_at(y->data(), count) - column_at(x.data(), count);
      if (moved.cwiseQuotient(scale_.head(count)).norm() > 1e-2) continue;
      Vec moved_to = l.point.z;
      moved_to[count] = there;
      bind(moved_to);
      if (!admissible(arc, *y)) continue;
      const double turn = (moved / (side * eps) - slope).cwiseQuotient(scale_.head(count)).norm() * range;
      found.push_back({arc, side, turn, *y, there});
    }
  }
  bind(l.point.z);
  std::stable_sort(found.begin(), found.end(), [&](const Candidate& a, const Candidate& b) {
    if ((a.side == incoming) != (b.side == incoming)) return b.side == incoming;
    return a.turn < b.turn;
  });
  if (found.empty()) {
    s.detail = "no equilibrium goes on from here";
    if (looking_ == 0) add(std::move(s));
    return {.why = "signature", .detail = "no equilibrium goes on behind the boundary"};
  }
  const Candidate& on = found.front();
  const Mat after = matrix(on.arc, x);
  const bool silent = found.size() == 1 && on.side != incoming && before.rows() == after.rows() &&
                      (before - after).norm() <= 1e-12 * (before.norm() + after.norm()) && on.turn < 1e-6;
  if (!silent) {
    s.persists = on.side != incoming;
    Spectrum other = spectrum_of(after);
    sort_eigenvalues(other);
    s.after = other;
    s.detail = *s.persists ? "persistence" : "nonsmooth fold";
    if (before.rows() == after.rows()) {
      s.crosses = axis_passages(before, after);
      for (const std::string& c : *s.crosses)
        s.detail += c == "complex"     ? ", discontinuous Hopf"
                    : found.size() > 2 ? ", discontinuous pitchfork"
                    : *s.persists      ? ", discontinuous transcritical"
                                       : ", discontinuous fold";
    }
    for (size_t k = 1; k < found.size(); ++k)
      s.others.push_back({.value = found[k].value, .state = found[k].x, .arc = found[k].arc});
    if (looking_ == 0) {
      const bool turns = !s.crosses || std::count(s.crosses->begin(), s.crosses->end(), "complex") > 0;
      if (const std::optional<OrbitOptions> cycle = turns ? cycle_beside(l) : std::nullopt)
        s.detail += fmt::format(", {} cycle is born", cycle->backward ? "an unstable" : "a stable");
      add(std::move(s));
    }
  }
  arc_ = on.arc;
  basis_.resize(0, 0);
  Passage p{.goes_on = true, .z = Vec(count + 1), .along = on.side};
  p.z << column_at(on.x.data(), count), on.value;
  return p;
}

}  // namespace saltus
