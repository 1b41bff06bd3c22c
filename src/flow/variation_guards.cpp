// Functions that events evaluate, and how they move with the tangents.
#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "expr/diff.hpp"
#include "flow/thresholds.hpp"
#include "flow/variation.hpp"

namespace saltus {
namespace {

/// Coefficient k of the product of a series with a row of tangents, in direction c.
double product(const double* a, const TangentRows& rows, size_t row, Index c, int k) {
  double sum = 0;
  for (int j = 0; j <= k; ++j) sum += a[j] * rows(row, at(k - j), ux(c));
  return sum;
}

}  // namespace

/// Values and derivatives of what events look at, at a point; the tangents of the unknowns there.
const Jet<double>& Variation::event_point(const Arc& arc, std::span<const double> x, double t) {
  expand(x, t, arc, 1);
  load_tangents(t, arc, 0);
  return load_events(t, arc, 0);
}

/// d row = row_x z + row_p P + row_t dt, unknowns held.
Mat Variation::row_tangent(int row, const Jet<double>& jet, const TangentTape& tape, const Mat& z,
                           const Mat* dt) const {
  Mat out = Mat::Zero(1, z.cols());
  for (const SlopeEntry& e : tape.event.by_state) {
    if (e.row == row) out += value_of(jet, e.output) * z.row(e.column);
  }
  for (const SlopeEntry& e : tape.event.by_parameter) {
    if (e.row == row && p_.cols() == z.cols()) out += value_of(jet, e.output) * p_.row(e.column);
  }
  if (dt) {
    for (const SlopeEntry& e : tape.event.by_time) {
      if (e.row == row) out += value_of(jet, e.output) * *dt;
    }
  }
  return out;
}

/// U of an unknown at the point of the last expand_tangents of order 0; 0 for what is fixed.
Mat Variation::unknown_tangent(int u) const {
  const Index d = x_.cols();
  Mat out = Mat::Zero(1, d);
  if (plan_->stand[at(u)] < 0) return out;
  const size_t row = at(program_.states() + plan_->stand[at(u)]);
  for (Index c = 0; c < d; ++c) out(0, c) = plan_->stand_sign[at(u)] * tangents_(row, 0, ux(c));
  return out;
}

/// Likewise with unknowns that move: d row along the tangents, at the point of the last event_point.
Mat Variation::event_tangent(int row) {
  const TangentTape& tape = *plan_->tape;
  const Jet<double>& jet = lent_->jets.at(&tape.event.tape)->jet;
  Mat out = row_tangent(row, jet, tape, x_, nullptr);
  for (const SlopeEntry& e : tape.event.by_unknown) {
    if (e.row == row) out += value_of(jet, e.output) * unknown_tangent(e.column);
  }
  return out;
}

/// h_x by state, unknowns held.
Mat Variation::row_slope(int row, const Jet<double>& jet, const TangentTape& tape) const {
  Mat out = Mat::Zero(1, program_.states());
  for (const SlopeEntry& e : tape.event.by_state) {
    if (e.row == row) out(0, e.column) = value_of(jet, e.output);
  }
  return out;
}

Variation::Watched Variation::watched(const Guard& g) const {
  const Series& series = *memory_.series;
  const int m = program_.switches();
  switch (g.kind) {
    case GuardKind::surface: return {series.surface(g.item), program_.event_surface(g.item)};
    case GuardKind::gap: return {series.gap(g.item), program_.event_gap(g.item)};
    case GuardKind::jump: return {series.jump(g.item), program_.event_jump(g.item)};
    case GuardKind::sigma: return {series.unknown(g.item), -1, g.item, g.side * series.hold(g.item)};
    case GuardKind::slip: return {series.unknown(g.item), -1, g.item, 1.0 * g.side};
    case GuardKind::lambda: return {series.unknown(m + g.item), -1, m + g.item};
    case GuardKind::slope:
    case GuardKind::clock: break;
  }
  return {};
}

/// How the bound of a guard moves: that of sigma is a formula of parameters.
Mat Variation::bound_tangent(const Guard& g) const {
  if (g.kind != GuardKind::sigma) return Mat::Zero(1, x_.cols());
  return g.side * formula_shift(model_.form.switches[at(g.item)].hold);
}

/// How a guard moves, at the point of the last event_point.
Mat Variation::guard_tangent(const Guard& g) {
  const Watched w = watched(g);
  if (w.row >= 0) return event_tangent(w.row);
  if (w.unknown >= 0) return unknown_tangent(w.unknown) - bound_tangent(g);
  return Mat::Zero(1, x_.cols());
}

/// A function along all directions: by state, then by parameter; what is left of its rate is its slope by time.
Variation::GuardSlope Variation::slopes(double value, double rate, const Mat& tangent) const {
  const int n = program_.states();
  GuardSlope out;
  out.value = value;
  out.by_state = tangent.leftCols(n).transpose();
  out.by_parameter = tangent.rightCols(tangent.cols() - n).transpose();
  out.by_time = rate - out.by_state.dot(last_rates());
  return out;
}

Variation::GuardSlope Variation::guard(const Guard& g, const Arc& arc, std::span<const double> x, double t,
                                       const Mat& P) {
  const OtherTangents all = all_directions(P);
  event_point(arc, x, t);
  expand_tangents(0);
  const Watched w = watched(g);
  if (!w.series) return slopes(0, 0, guard_tangent(g));
  return slopes(w.series[0] - w.bound, w.series[1], guard_tangent(g));
}

Variation::GuardSlope Variation::section(int s, const Arc& arc, std::span<const double> x, double t) {
  const OtherTangents all = all_directions({});
  event_point(arc, x, t);
  expand_tangents(0);
  const double* series = memory_.series->section(s);
  return slopes(series[0], series[1], event_tangent(program_.event_section(s)));
}

double Variation::guard_value(const Guard& g, const Arc& arc, std::span<const double> x, double t) {
  enter(arc);
  if (memory_.series->evaluate(x, t, arc.counters) == SeriesStatus::undefined) return std::nan("");
  const Watched w = watched(g);
  return w.series ? w.series[0] - w.bound : 0.0;
}

double Variation::section_value(int s, const Arc& arc, std::span<const double> x, double t) {
  enter(arc);
  if (memory_.series->evaluate(x, t, arc.counters) == SeriesStatus::undefined) return std::nan("");
  return memory_.series->section(s)[0];
}

Variation::GuardSeries Variation::guard_series(const Guard& g, const Arc& arc, std::span<const double> x, double t,
                                               int order, Mat X, Mat P) {
  order = std::min(order, order_ - 1);
  const OtherTangents other(*this, std::move(X), std::move(P));
  expand(x, t, arc, order + 1);
  load_tangents(t, arc, order + 1);
  expand_tangents(order + 1);  // gives those of the unknowns up to `order`
  GuardSeries out{Vec::Zero(order + 1), Mat::Zero(order + 1, x_.cols())};
  const Watched w = watched(g);
  if (!w.series) return out;
  for (int k = 0; k <= order; ++k) out.value[k] = w.series[k];
  out.value[0] -= w.bound;
  if (w.row >= 0) add_event_series(w.row, arc, t, out.tangent);
  if (w.unknown >= 0) {
    add_unknown_series(w.unknown, out.tangent);
    out.tangent.row(0) -= bound_tangent(g);
  }
  return out;
}

/// The series of the tangents of an unknown.
void Variation::add_unknown_series(int u, Mat& tangent) const {
  if (plan_->stand[at(u)] < 0) return;
  const size_t row = at(program_.states() + plan_->stand[at(u)]);
  for (Index k = 0; k < tangent.rows(); ++k) {
    for (Index c = 0; c < tangent.cols(); ++c) tangent(k, c) += plan_->stand_sign[at(u)] * tangents_(row, ux(k), ux(c));
  }
}

/// The series of d row = row_x X + row_u U + row_p P.
void Variation::add_event_series(int row, const Arc& arc, double t, Mat& tangent) {
  const TangentTape& tape = *plan_->tape;
  const int order = static_cast<int>(tangent.rows()) - 1;
  const Jet<double>& jet = load_events(t, arc, order);
  const auto add = [&](int output, int column, double sign) {
    for (Index c = 0; c < tangent.cols(); ++c) {
      for (int k = 0; k <= order; ++k)
        tangent(k, c) += sign * product(jet.output(at(output)), tangents_, at(column), c, k);
    }
  };
  for (const SlopeEntry& e : tape.event.by_state) {
    if (e.row == row) add(e.output, e.column, 1);
  }
  for (const SlopeEntry& e : tape.event.by_unknown) {
    const int stand = plan_->stand[at(e.column)];
    if (e.row == row && stand >= 0) add(e.output, program_.states() + stand, plan_->stand_sign[at(e.column)]);
  }
  for (const SlopeEntry& e : tape.event.by_parameter) {
    if (e.row != row) continue;
    for (int k = 0; k <= order; ++k) tangent.row(k) += jet.output(at(e.output))[k] * p_.row(e.column);
  }
}

/// How a formula of parameters moves.
Mat Variation::formula_shift(const Expr& e) const {
  Mat out = Mat::Zero(1, x_.cols());
  if (e.is_number()) return out;
  for (const Partial& q : gradient(e, SymbolKind::parameter))
    out += constant_value(q.value, options_.parameters) * p_.row(q.symbol.symbol().index);
  return out;
}

/// How the time at which a guard is met moves. The series of the mode are at the event (event_point).
Mat Variation::shift_of(const Guard& g, double t) {
  if (g.kind == GuardKind::slope) return Mat::Zero(1, x_.cols());
  if (g.kind == GuardKind::clock) return tick_shift(model_.form.jumps[at(g.item)], t);
  // A condition that another event has carried over zero triggers its jump with that event.
  if (g.kind == GuardKind::jump && g.side == 0 && t == last_time_) return last_shift_;
  // So does a surface that lay on one that was slid on, and is left with it without speed.
  const double rate = watched(g).series[1];
  const bool with_last = std::abs(t - last_time_) <= same_time_bits * eps * std::abs(t) && last_shift_.allFinite();
  if (g.kind == GuardKind::surface && with_last && std::abs(rate) <= without_speed * last_rates().max_abs())
    return last_shift_;
  return -guard_tangent(g) / rate;
}

/// The shift of a tick: t = phase + k every.
Mat Variation::tick_shift(const LoweredJump& jump, double t) const {
  const double every = constant_value(*jump.every, options_.parameters);
  const double phase = jump.phase ? constant_value(*jump.phase, options_.parameters) : 0.0;
  const Mat ticks = std::round((t - phase) / every) * formula_shift(*jump.every);
  return jump.phase ? Mat(ticks + formula_shift(*jump.phase)) : ticks;
}

}  // namespace saltus
