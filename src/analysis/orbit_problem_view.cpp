// Diagnostics of a solution: multipliers, guards that come near, active constraints.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "analysis/orbit_problem.hpp"
#include "base/index.hpp"

namespace saltus {

bool OrbitProblem::view(const Vec& z, OrbitView& out, bool monitors) {
  Vec r;
  std::vector<LegSlopes> slopes;
  put(z);
  std::vector<std::vector<LegGuard>> guards;
  if (monitors) guards = guards_of_legs();
  out.shot = {};
  for (const std::vector<LegGuard>& of_leg : guards) {
    std::vector<Guard>& plain = out.shot.watched.emplace_back();
    for (const LegGuard& g : of_leg) plain.push_back(g.guard);
    for (size_t k = 0; k < model_.form.jumps.size(); ++k) plain.push_back({GuardKind::jump, static_cast<int>(k), 0});
  }
  if (!shooting_->equations(legs_, closing_, t0_, -1, r, slopes, &out.shot)) return false;
  out.legs = legs_;
  out.t0 = t0_;
  out.period = period_of(z);
  set_multipliers(out);
  out.traces = std::move(out.shot.traces);
  set_monitors(guards, out);
  return true;
}

/// In units of the states' sizes, what is left of the flow's direction split off.
void OrbitProblem::set_multipliers(OrbitView& out) {
  std::vector<Mat> factors = factors_of(out.shot);
  if (!forced_) {
    std::vector<Vec> flow = flow_at_legs();
    out.trivial = carried_along(factors, flow);
    for (Vec& f : flow) f.normalize();
    factors = across(factors, flow);
  }
  out.matrix = factors.front();
  for (size_t i = 1; i < factors.size(); ++i) out.matrix = factors[i] * out.matrix;
  out.roots = out.matrix.allFinite() ? spectrum_of_product(factors)
                                     : Spectrum(ux(out.matrix.rows()), std::complex<double>(HUGE_VAL, 0));
  out.multipliers = out.roots;
  if (symmetry_) {
    for (std::complex<double>& mu : out.multipliers) mu *= mu;
  }
  if (direction_ < 0) turn_back(out.multipliers);
  sort_multipliers(out.multipliers);
  out.stable = inside_circle(out.multipliers);
}

/// The rates where each leg begins.
std::vector<Vec> OrbitProblem::flow_at_legs() {
  std::vector<Vec> out = shooting_->flow_at(legs_, t0_);
  for (Vec& f : out) f = in_units(f);
  return out;
}

std::vector<std::vector<LegGuard>> OrbitProblem::guards_of_legs() {
  std::vector<std::vector<LegGuard>> out;
  for (size_t i = 0; i < legs_.size(); ++i) {
    Series& series = shooting_->variation().series();
    const Transition* before = i > 0 && legs_[i - 1].happens ? &legs_[i - 1].event : nullptr;
    out.push_back(leg_guards(program_, series, legs_[i], before));
    if (!shooting_->ends_root(legs_[i])) continue;
    for (LegGuard& g : out.back()) g.own *= 2;
  }
  return out;
}

/// Each guard of each leg, and how near to zero it comes.
void OrbitProblem::set_monitors(const std::vector<std::vector<LegGuard>>& guards, OrbitView& out) {
  out.monitors.clear();
  double t = t0_;
  for (size_t i = 0; i < guards.size(); ++i) {
    const LegTrace& trace = out.traces[i];
    const double length = legs_[i].length, begin = std::exchange(t, t + length);
    if (trace.stretches.empty() || !(length * direction_ > 0)) continue;
    for (size_t g = 0; g < guards[i].size(); ++g) {
      const LegGuard& guard = guards[i][g];
      Monitor m{.leg = i, .guard = guard, .lowest = lowest(trace, g, guard, length)};
      m.name =
          fmt::format("leg {} {} {} {}", i, static_cast<int>(guard.guard.kind), guard.guard.item, guard.guard.side);
      out.monitors.push_back(std::move(m));
    }
    for (const Monitor& m : passed_holds(i, out.shot.ends[i])) out.monitors.push_back(m);
    if (model_.form.jumps.empty()) continue;
    const Transition* before = i > 0 && legs_[i - 1].happens ? &legs_[i - 1].event : nullptr;
    const FlownLeg flown{legs_[i], begin, trace, guards[i].size(), out.shot.ends[i], before};
    for (const JumpWatch& w : watch_jumps(program_, shooting_->variation(), flown)) {
      Monitor m{.leg = i, .guard = {.guard = {GuardKind::jump, w.jump, 0}}, .lowest = w.lowest, .jump = w};
      m.name = fmt::format("leg {} jump {} {} {}", i, w.jump, static_cast<int>(w.what), w.number);
      out.monitors.push_back(std::move(m));
    }
  }
}

/// A switch that holds is passed at the end of a leg where sigma would have to be beyond its bound to hold it.
std::vector<Monitor> OrbitProblem::passed_holds(size_t leg, const Shot::End& end) {
  std::vector<Monitor> out;
  if (!legs_[leg].happens) return out;
  const Transition& event = legs_[leg].event;
  for (const Guard& g : event.guards) {
    if (g.kind != GuardKind::surface || !model_.form.switches[at(g.item)].holds) continue;
    const char from = event.before.switches[at(g.item)], to = event.after.switches[at(g.item)];
    if (from == to || from == '0' || to == '0') continue;
    Arc held = legs_[leg].arc;
    held.mode.switches[at(g.item)] = '0';
    const int side = to == '+' ? 1 : -1;
    const Guard bound{GuardKind::sigma, g.item, side};
    const double beyond = side * shooting_->variation().guard(bound, held, end.x_minus, end.t).value;
    if (!std::isfinite(beyond)) continue;
    Monitor m{.leg = leg, .guard = {.guard = bound, .sign = static_cast<double>(side), .own = 1}};
    m.lowest = {beyond, std::abs(legs_[leg].length), Lowest::Where::end};
    m.name = fmt::format("leg {} hold {}", leg, g.item);
    out.push_back(std::move(m));
  }
  return out;
}

/// The maps of the legs in those units; S with the last one.
std::vector<Mat> OrbitProblem::factors_of(const Shot& shot) {
  std::vector<Mat> factors = shooting_->factors(legs_, shot);
  factors.back() = closing_.sign.asDiagonal() * factors.back();  // S is its own inverse
  const std::vector<Index> kept = kept_states();
  const Vec size = size_.entries_at(kept);
  for (Mat& M : factors) M = size.cwiseInverse().asDiagonal() * M.part(kept) * size.asDiagonal();
  return factors;
}

std::vector<Index> OrbitProblem::kept_states() const {
  std::vector<Index> out;
  for (Index i = 0; i < size_.size(); ++i) {
    if (!closing_.free[ux(i)]) out.push_back(i);
  }
  return out;
}

/// States that come back, each in units of its size.
Vec OrbitProblem::in_units(const Vec& x) const {
  const std::vector<Index> kept = kept_states();
  return x.entries_at(kept).cwiseQuotient(size_.entries_at(kept));
}

Vec OrbitProblem::unfold(const Mat& matrix) {
  const Index n = program_.states();
  // Inverse iteration for the eigenvalue -1.
  const Lu lu(matrix + (1 + 1e-9) * Mat::Identity(matrix.rows(), matrix.cols()));
  Vec v = Vec::LinSpaced(matrix.rows(), 1.0, 1.7);
  for (int k = 0; k < 4; ++k) v = lu.solve(v).normalized();
  if (!forced_) v = Vec(null_space(in_units(flow_at_cut()).normalized().transpose()) * v);
  const std::vector<Index> kept = kept_states();
  Vec out = Vec::Zero(n);
  for (size_t i = 0; i < kept.size(); ++i) out[kept[i]] = v[ix(i)] * size_[kept[i]];
  return out;
}

/// The modes at a point in which whatever else than `item` is zero there has other letters.
std::vector<Arc> OrbitProblem::modes_near(const Arc& arc, const std::vector<double>& x, double t, int item) {
  std::vector<int> zero;
  for (int i = 0; i < program_.switches(); ++i) {
    if (!program_.moves(i) || i == item || zero.size() > 3) continue;
    const Variation::GuardSlope s = shooting_->variation().guard({GuardKind::surface, i, 0}, arc, x, t);
    if (std::abs(s.value) < 1e-6 * (s.by_state.cwiseAbs().dot(size_) + 1e-300)) zero.push_back(i);
  }
  std::vector<Arc> modes{arc};
  for (const int i : zero) {
    const std::vector<Arc> so_far = modes;
    for (const Arc& a : so_far) {
      for (const char c : {'+', '-'}) {
        Arc next = a;
        next.mode.switches[at(i)] = c;
        modes.push_back(std::move(next));
      }
    }
  }
  return modes;
}

bool OrbitProblem::acts(const Arc& arc, const std::vector<double>& x, double t, int item) {
  Variation& v = shooting_->variation();
  const std::vector<Arc> modes = modes_near(arc, x, t, item);
  for (int sample = 0; sample < 4; ++sample) {
    std::vector<double> y = x;
    for (size_t i = 0; i < y.size(); ++i)
      y[i] += sample * 1e-3 * size_[ix(i)] * std::sin(1.0 + 2.3 * static_cast<double>(i) + sample);
    for (const Arc& base : modes) {
      Arc a = base, b = base;
      a.mode.switches[at(item)] = '+';
      b.mode.switches[at(item)] = '-';
      const Vec f = v.rates(a, y, t), g = v.rates(b, y, t);
      if (!f.allFinite() || !g.allFinite()) continue;
      if ((f - g).max_abs() > 1e-13 * (f.max_abs() + g.max_abs())) return true;
    }
  }
  return false;
}

}  // namespace saltus
