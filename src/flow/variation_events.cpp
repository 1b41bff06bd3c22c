// Tangents through what happens at an event: saltation.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/index.hpp"
#include "flow/thresholds.hpp"
#include "flow/variation.hpp"

namespace saltus {

void Variation::through(const Transition& event) {
  if (event.silent) return;
  if (!event.resting.empty()) return accumulate(event);
  pass(event);
  remember(event);
}

void Variation::pass(const Transition& event) {
  const bool resets = !event.jumps.empty() || !event.hits.empty();
  const bool counts = event.counters_before != event.counters;
  if (!resets && !counts && event.before == event.after) return;  // touched
  const Arc before = arc_before(event), after{event.after, event.counters, {}, event.guess};
  if (!resets && !counts && event.guess.empty() && only_starts_to_slide(event)) return start_to_slide(event, after);
  if (event.guards.empty()) return pass_at_start(event, before);
  if (const std::optional<RootEnd> root = root_end(event, before, event.x_minus, event.t)) {
    end_root(*root);
    last_time_ = event.t;
    last_shift_.setZero(1, x_.cols());
    return;
  }

  const Vec f1 = rates(after, event.x_plus, event.t);
  event_point(before, event.x_minus, event.t);
  expand_tangents(0);
  const Vec f0 = last_rates();
  // Where nothing jumps, neither state nor rate, the time of the event does not matter (a tangential exit).
  const auto stays = [&](Index i) { return std::abs(f1[i] - f0[i]) <= 1e-12 * (std::abs(f1[i]) + std::abs(f0[i])); };
  bool moves = resets;
  for (Index i = 0; i < f1.size(); ++i) moves = moves || !stays(i);
  const Mat shifts = shifts_of(event);
  if (!moves) {
    last_time_ = event.t;
    last_shift_ = shifts.row(0);
    return;
  }
  if (shifts.rows() > 1 && event.guards.size() == ux(shifts.rows()) && through_several(event, before, shifts)) return;
  const Mat dt = shifts.row(0);
  if (!dt.allFinite()) {
    note(fmt::format("an event at t = {} is met without speed: the derivative is infinite", event.t));
    return rest(after, event.x_plus, event.t);
  }
  Mat z = x_ + f0 * dt;
  if (event.jumps.empty() && event.hits.size() == 1) {
    turn_through(event.hits[0], event.x_minus, event.x_plus, event.t, z, dt);
  } else if (resets) {
    std::vector<double> x = event.x_minus;
    reset(event, before, x, event.t, z, dt);
  }
  x_ = z - f1 * dt;
  last_time_ = event.t;
  last_shift_ = dt;
}

Mat Variation::shift(const Transition& event) {
  if (event.silent || event.guards.empty()) return Mat::Zero(1, x_.cols());
  const Arc before = arc_before(event);
  event_point(before, event.x_minus, event.t);
  expand_tangents(0);
  return shifts_of(event).row(0);
}

/// Jumps and impacts at the start, whose time is given.
void Variation::pass_at_start(const Transition& event, const Arc& before) {
  std::vector<double> x = event.x_minus;
  last_time_ = event.t;
  last_shift_.setZero(1, x_.cols());
  Mat z = x_;
  reset(event, before, x, event.t, z, last_shift_);
  x_ = z;
}

/// (f+ - f-)/h' is -D/(h_x D) with D = df/dsigma, if switches only add up: a projection, also where h' is zero.
void Variation::start_to_slide(const Transition& event, const Arc& after) {
  rest(after, event.x_plus, event.t);
  first_ = false;
  last_time_ = event.t;
  last_shift_.setZero(1, x_.cols());
}

/// True if all that happens is that one surface is met and stayed on, whatever its letter.
bool Variation::only_meets_rest(const Transition& event) const {
  if (event.guards.size() != 1 || event.guards[0].kind != GuardKind::surface) return false;
  const size_t u = at(event.guards[0].item);
  const char from = event.before.switches[u], to = event.after.switches[u];
  return (from == '+' || from == '-') && to == '=' && event.jumps.empty() && event.hits.empty() &&
         event.resting.empty() && event.counters_before == event.counters;
}

/// Slopes grow without bound towards the surface there, and nowhere else.
std::optional<Variation::RootEnd> Variation::root_end(const Transition& event, const Arc& before,
                                                      std::span<const double> x, double t) {
  constexpr double above = 1e-24;  // of the states: slopes of roots are seen as far as numbers reach
  constexpr double farther = 16, grown = 1.1;
  if (!only_meets_rest(event)) return std::nullopt;
  const Guard& g = event.guards[0];
  const GuardSlope h = guard(g, before, x, t, p_);
  const double square = h.by_state.squaredNorm(), side = event.before.switches[at(g.item)] == '+' ? 1 : -1;
  if (!(square > 0) || !std::isfinite(square)) return std::nullopt;
  double size = 0, terms = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    size = std::max(size, std::abs(x[i]));
    terms = std::max(terms, std::abs(h.by_state[ix(i)] * x[i]));
  }
  const double near = std::max(same_time_bits * eps * terms, above * (size > 0 ? size : 1.0));
  const auto slope_at = [&](double distance) {
    std::vector<double> point(x.begin(), x.end());
    for (size_t i = 0; i < point.size(); ++i) point[i] += h.by_state[ix(i)] * (side * distance - h.value) / square;
    return Vec(rate_slopes(before, point, t, {}) * h.by_state / square);
  };
  const Vec slope = slope_at(near);
  const double here = h.by_state.dot(slope), there = h.by_state.dot(slope_at(farther * near));
  if (!slope.allFinite() || !(direction_ * here < 0) || !(here / there > grown)) return std::nullopt;
  RootEnd out{h.value, h.by_state, slope / here, Mat::Zero(1, x_.cols())};
  if (x_.cols() > 0) out.off = h.by_state.transpose() * x_;
  if (h.by_parameter.size() == out.off.cols()) out.off += h.by_parameter.transpose();
  return out;
}

/// True if all that changes at an event is one switch, which begins to slide.
bool Variation::only_starts_to_slide(const Transition& event) const {
  int changed = -1;
  for (size_t i = 0; i < event.before.switches.size(); ++i) {
    if (event.before.switches[i] == event.after.switches[i]) continue;
    if (changed >= 0 || event.after.switches[i] != '0') return false;
    changed = static_cast<int>(i);
  }
  return changed >= 0 && event.before.constraints == event.after.constraints && event.guards.size() == 1 &&
         event.guards[0] == Guard{GuardKind::surface, changed, event.guards[0].side};
}

/// Constants before an event: those of the last piece, if there was one.
Arc Variation::arc_before(const Transition& event) const {
  if (last_arc_.mode == event.before && last_arc_.counters == event.counters_before) return last_arc_;
  return {event.before, event.counters_before};
}

/// When each guard of an event is met: a row each.
Mat Variation::shifts_of(const Transition& event) {
  std::vector<Mat> rows;
  for (const Guard& g : event.guards) {
    if (g.kind != GuardKind::slope) rows.push_back(shift_of(g, event.t));
  }
  Mat out = Mat::Zero(std::max<Index>(1, ix(rows.size())), x_.cols());
  for (size_t k = 0; k < rows.size(); ++k) out.row(ix(k)) = rows[k];
  return out;
}

/// Tangents through guards that are met at one instant, as if one after the other. Nothing where that leads elsewhere.
std::optional<Mat> Variation::one_by_one(const Transition& event, const Arc& before, std::span<const size_t> order) {
  const int n = program_.states();
  const Mat keep = x_;
  std::vector<double> x = event.x_minus;
  Arc arc = before;
  bool arrives = event.jumps.empty();
  for (size_t k = 0; k < order.size() && arrives; ++k) {
    const Guard& g = event.guards[order[k]];
    event_point(arc, x, event.t);
    expand_tangents(0);
    const Mat dt = shift_of(g, event.t);
    Mat z = x_ + last_rates() * dt;
    for (const Hit& hit : event.hits) {
      const auto found = std::find(hit.contacts.begin(), hit.contacts.end(), g.item);
      if (g.kind != GuardKind::gap || found == hit.contacts.end()) continue;
      Hit alone = hit;
      alone.contacts = {g.item};
      alone.impulse = {hit.impulse[static_cast<size_t>(found - hit.contacts.begin())]};
      arrives = arrives && hit.switches.empty() && pass_hit(alone, x, event.t, z, dt);
    }
    if (k + 1 == order.size()) {
      arc = {event.after, event.counters, {}, event.guess};
    } else if (g.kind == GuardKind::surface || g.kind == GuardKind::sigma || g.kind == GuardKind::slip) {
      arc.mode.switches[at(g.item)] = event.after.switches[at(g.item)];
    } else if (g.kind == GuardKind::gap || g.kind == GuardKind::lambda) {
      arc.mode.constraints[at(g.item)] = event.after.constraints[at(g.item)];
    }
    x_ = z - rates(arc, x, event.t) * dt;
  }
  Mat out = std::exchange(x_, keep);
  for (int i = 0; i < n; ++i)
    arrives = arrives && std::abs(x[at(i)] - event.x_plus[at(i)]) <= 1e-9 * (1 + std::abs(event.x_plus[at(i)]));
  if (!arrives || !out.allFinite()) return std::nullopt;
  return out;
}

/// Several guards at one instant, which do not move together: each tangent meets them in its own order. False where
/// one after the other leads elsewhere than all at once.
bool Variation::through_several(const Transition& event, const Arc& before, const Mat& shifts) {
  const Index count = shifts.rows();
  const double apart = 1e-7 * shifts.max_abs();
  bool together = true;
  for (Index i = 1; i < count; ++i) together = together && (shifts.row(i) - shifts.row(0)).isZero(apart);
  if (count < 2 || together || !shifts.allFinite()) return false;
  std::map<std::vector<size_t>, Mat> passed;
  const auto pass = [&](const std::vector<size_t>& order) {
    if (passed.contains(order)) return true;
    const std::optional<Mat> x = one_by_one(event, before, order);
    if (x) passed.emplace(order, *x);
    return x.has_value();
  };
  Mat out(x_.rows(), x_.cols());
  bool one_sided = false;
  for (Index c = 0; c < x_.cols(); ++c) {
    std::vector<size_t> order(ux(count));
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return direction_ * shifts(ix(a), c) < direction_ * shifts(ix(b), c); });
    std::vector<size_t> reverse(order.rbegin(), order.rend());
    if (!pass(order)) {
      note(fmt::format(
          "contacts hit together at t = {} where one by one they end elsewhere: no derivative exists there; "
          "it goes on as that of hitting together",
          event.t));
      return false;
    }
    out.col(c) = passed.at(order).col(c);
    one_sided =
        one_sided || !pass(reverse) || (passed.at(reverse).col(c) - out.col(c)).norm() > 1e-7 * (1 + out.col(c).norm());
  }
  if (one_sided) note(fmt::format("two events meet at t = {}: the derivative there is one-sided", event.t));
  x_ = out;
  last_time_ = event.t;
  last_shift_ = shifts.row(0);
  return true;
}

}  // namespace saltus
