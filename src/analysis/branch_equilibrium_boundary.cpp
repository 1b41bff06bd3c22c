#include "analysis/equilibrium_curve.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "analysis/thresholds.hpp"
#include "base/index.hpp"

namespace saltus {

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
      // A surface of parameters alone has a sign on either side of the place and is not slid on.
      const std::string states = !is_switch ? "oc" : program_.moves(g.item) ? "+-0" : "+-";
      for (const char c : states) {
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

std::vector<Guard> EquilibriumCurve::zero_guards(const Located& l) {
  const std::vector<double> x = state_of(l.point.z);
  std::vector<Guard> zero;
  for (const GuardValue& g : guards(arc_, x)) {
    const Variation::GuardSlope slope = variation_.guard(g.guard, arc_, x, time());
    const double size = std::abs(slope.by_state.cwiseProduct(scale_.head(n())).cwiseAbs().sum()) + 1e-300;
    if (std::abs(g.value) < guard_at_zero * size || name_of(g.guard) == l.test.name) zero.push_back(g.guard);
  }
  return zero;
}

EquilibriumCurve::Boundary EquilibriumCurve::boundary_at(const Located& l) {
  const Index count = n();
  const double value = l.point.last(), range = scale_[count];
  bind(l.point.z);
  const std::vector<double> x = state_of(l.point.z);
  Boundary out{.incoming = l.point.last_slope() > 0 ? -1.0 : 1.0, .zero = zero_guards(l)};
  const double eps = beside_boundary * range;
  const Vec slope = l.point.tangent.head(count).cwiseProduct(scale_.head(count)) / (l.point.last_slope() * range);
  for (const Arc& arc : neighbours(out.zero)) {
    for (const double side : {-out.incoming, out.incoming}) {
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
      if (side == out.incoming && (arc == arc_ || turn < same_half_branch)) continue;
      const bool known = std::any_of(out.half_branches.begin(), out.half_branches.end(), [&](const HalfBranch& h) {
        const Vec apart = column_at(y->data(), count) - column_at(h.state.data(), count);
        return h.side == side && apart.cwiseQuotient(scale_.head(count)).norm() < same_half_branch * beside_boundary;
      });
      if (!known) out.half_branches.push_back({arc, side, turn, *y, there});
    }
  }
  bind(l.point.z);
  // The one that goes on comes first: on the far side, turned least.
  std::stable_sort(out.half_branches.begin(), out.half_branches.end(), [&](const HalfBranch& a, const HalfBranch& b) {
    if ((a.side == out.incoming) != (b.side == out.incoming)) return b.side == out.incoming;
    return a.turn < b.turn;
  });
  return out;
}

Passage EquilibriumCurve::pass(const Located& l) {
  if (looking_ > 0 && is_sought(l, "boundary-equilibrium")) return {.why = "stopped"};
  const Boundary boundary = boundary_at(l);
  if (boundary.half_branches.empty()) {
    SpecialPoint s = place("boundary-equilibrium", l.point, l.before);
    s.detail = "no equilibrium goes on from here";
    if (looking_ == 0) add(std::move(s));
    return {.why = "signature", .detail = "no equilibrium goes on behind the boundary"};
  }
  const HalfBranch& on = boundary.half_branches.front();
  if (looking_ == 0 && !passes_unnoticed(l, boundary)) add(boundary_point(l, boundary));
  arc_ = on.arc;
  basis_.resize(0, 0);
  Passage p{.goes_on = true, .z = Vec(n() + 1), .along = on.side};
  p.z << column_at(on.state.data(), n()), on.value;
  return p;
}

bool EquilibriumCurve::passes_unnoticed(const Located& l, const Boundary& boundary) {
  const HalfBranch& on = boundary.half_branches.front();
  if (boundary.half_branches.size() > 1 || on.side == boundary.incoming || on.turn >= same_half_branch) return false;
  const std::vector<double> x = state_of(l.point.z);
  const Mat before = matrix(arc_, x), after = matrix(on.arc, x);
  return before.rows() == after.rows() && (before - after).norm() <= 1e-12 * (before.norm() + after.norm());
}

SpecialPoint EquilibriumCurve::boundary_point(const Located& l, const Boundary& boundary) {
  const HalfBranch& on = boundary.half_branches.front();
  SpecialPoint s = place("boundary-equilibrium", l.point, l.before);
  const std::vector<double> x = state_of(l.point.z);
  const Mat before = matrix(arc_, x), after = matrix(on.arc, x);
  Spectrum beyond = spectrum_of(after);
  sort_eigenvalues(beyond);
  s.after = beyond;
  s.persists = on.side != boundary.incoming;
  std::vector<SetPassage> passages;
  if (before.rows() == after.rows()) {
    passages = axis_passages(before, after);
    s.set_crosses(passages);
  }
  const auto on_incoming_side = std::count_if(boundary.half_branches.begin(), boundary.half_branches.end(),
                                              [&](const HalfBranch& h) { return h.side == boundary.incoming; });
  const int here = 1 + static_cast<int>(on_incoming_side);
  const int there = static_cast<int>(boundary.half_branches.size()) + 1 - here;
  s.detail = boundary_name(here, there, passages);
  for (size_t k = 1; k < boundary.half_branches.size(); ++k) {
    const HalfBranch& h = boundary.half_branches[k];
    s.others.push_back({.value = h.value, .state = h.state, .arc = h.arc});
  }
  const auto turns = [](const SetPassage& p) { return p.how == "complex"; };
  if (!s.crosses || std::any_of(passages.begin(), passages.end(), turns)) {
    if (const std::optional<OrbitOptions> cycle = cycle_beside(l, boundary))
      s.detail += fmt::format(", {} cycle is born", cycle->backward ? "an unstable" : "a stable");
  }
  return s;
}

std::string boundary_name(int here, int beyond, const std::vector<SetPassage>& passages) {
  std::string name = beyond > 0 ? "persistence" : "nonsmooth fold";
  bool zero = false, complex = false;
  for (const SetPassage& p : passages) (p.how == "complex" ? complex : zero) = true;
  const bool pitchfork = std::minmax(here, beyond) == std::minmax(1, 3);
  if (pitchfork && complex) return name + ", discontinuous Hopf-pitchfork";
  if (complex) name += ", discontinuous Hopf";
  if (pitchfork) return name + ", discontinuous pitchfork";
  if (here == 2 && beyond == 2) return name + ", discontinuous transcritical";
  if (here == 2 && beyond == 0) return zero ? name + ", discontinuous fold" : name;
  if (here == 1 && beyond == 1) return name;
  return name + fmt::format(", {} half-branches on this side and {} beyond", here, beyond);
}

}  // namespace saltus
