// Sliding surfaces and closed contacts: tangents and states projected onto them, and their conditions on orbits.
#include <cmath>

#include "base/index.hpp"
#include "flow/variation.hpp"

namespace saltus {
namespace {

/// The shortest y with the least |A y - b|, column by column.
Mat least_squares(const Mat& A, const Mat& b) {
  if (A.size() == 1 && A(0, 0) != 0) return b / A(0, 0);
  return Orthogonal(A).pseudo_inverse() * b;
}

}  // namespace

/// The functions of sliding surfaces and closed contacts at a point, and the directions in which forces bring a state
/// back to them.
Variation::Ground Variation::ground(const Arc& arc, std::span<const double> x, double t) {
  const int n = program_.states();
  Ground out;
  enter(arc);
  Series& series = *memory_.series;
  if (series.active().empty()) return out;
  const Jet<double>& event = event_point(arc, x, t);
  const TangentTape& tape = *plan_->tape;
  const Jet<double>& jet = lent_->jets.at(&tape.arc.tape)->jet;
  Mat J = Mat::Zero(n, n), D = Mat::Zero(n, ix(series.active().size()));
  for (const SlopeEntry& e : tape.arc.by_state) {
    if (e.row < n) J(e.row, e.column) = value_of(jet, e.output);
  }
  for (const SlopeEntry& e : tape.arc.by_unknown) {
    if (const int stand = plan_->stand[at(e.column)]; e.row < n && stand >= 0)
      D(e.row, stand) += plan_->stand_sign[at(e.column)] * value_of(jet, e.output);
  }
  std::vector<Vec> directions;
  std::vector<int> rows;
  for (size_t a = 0; a < series.active().size(); ++a) {
    const int u = series.active()[a];
    if (series.held(u)) continue;
    Vec direction = D.col(ix(a));
    for (const int row : tape.rungs[at(series.raised(u) ? program_.unknowns() + u - program_.switches() : u)]) {
      rows.push_back(row);
      directions.push_back(direction);
      direction = J * direction;
    }
  }
  const Index count = ix(rows.size());
  out.directions.resize(n, count);
  out.functions.resize(count, n);
  out.values.resize(count);
  out.by_parameter.setZero(count, ix(model_.parameters.size()));
  for (Index r = 0; r < count; ++r) {
    out.directions.col(r) = directions[ux(r)];
    out.values[r] = value_of(event, rows[ux(r)]);
    out.functions.row(r) = row_slope(rows[ux(r)], event, tape);
    for (const SlopeEntry& e : tape.event.by_parameter) {
      if (e.row == rows[ux(r)]) out.by_parameter(r, e.column) = value_of(event, e.output);
    }
  }
  return out;
}

void Variation::manifold(const Arc& arc, std::span<const double> x, double t, Vec& values, Mat& slopes, const Mat& P) {
  Ground g = ground(arc, x, t);
  values = std::move(g.values);
  slopes.resize(values.size(), program_.states() + P.cols());
  if (values.size() == 0) return;
  slopes.leftCols(program_.states()) = g.functions;
  if (P.cols() > 0) slopes.rightCols(P.cols()) = g.by_parameter * P;
}

void Variation::rest(const Arc& arc, std::span<const double> x, double t) { rest(ground(arc, x, t)); }

void Variation::rest(const Ground& g) {
  if (g.values.size() == 0 || x_.size() == 0) return;
  const Mat off = g.functions * x_ + g.by_parameter * p_;
  x_ -= g.directions * least_squares(g.functions * g.directions, off);
  first_ = false;
}

/// The shortest way to where a function is zero.
void Variation::keep_at_zero(const Vec& slope, double value, bool tangents, std::span<double> x) {
  const double square = slope.squaredNorm();
  if (!(square > 0) || !std::isfinite(square) || !std::isfinite(value)) return;
  for (size_t i = 0; i < x.size(); ++i) x[i] -= slope[ix(i)] * value / square;
  if (tangents && x_.cols() > 0) x_ -= slope * (slope.transpose() * x_) / square;
}

void Variation::land_on_root(const Guard& g, const Arc& arc, std::span<double> x, double t) {
  constexpr double beside = 1e-12;  // of the states: where slopes are finite
  const bool rests = arc.mode.switches[at(g.item)] == '=';
  const Vec n = guard(g, arc, x, t).by_state;
  keep_at_zero(n, guard(g, arc, x, t).value, rests, x);
  double rate = rests ? n.dot(rates(arc, x, t)) : 0.0;
  if (rate == 0 || !std::isfinite(rate)) return;
  std::vector<double> point(x.begin(), x.end());
  for (size_t i = 0; i < point.size(); ++i)
    point[i] += g.side * beside * column_of(x).max_abs() * n[ix(i)] / n.squaredNorm();
  Vec slope = rate_slopes(arc, point, t, {}).transpose() * n;
  slope -= n * (slope.dot(n) / n.squaredNorm());  // across the surface it is infinite
  // To the last digit, and beyond: what is left would flow out in no time, again and again.
  for (int round = 0; round < 40 && rate != 0; ++round) {
    keep_at_zero(slope, rate, round == 0, x);
    rate = n.dot(rates(arc, x, t));
  }
}

void Variation::land(const Arc& arc, std::span<double> x, double t) {
  constexpr double rounding = 4e-16;
  Ground g = ground(arc, x, t);
  for (int round = 0; round < 3; ++round) {
    if (g.values.size() == 0) return;
    if (g.values.isZero(0)) {  // it is there
      if (round == 0) rest(g);
      return;
    }
    const Vec step = g.directions * Orthogonal(g.functions * g.directions).solve(g.values);
    if (!step.allFinite()) return;
    bool moved = false;
    for (Index i = 0; i < step.size(); ++i) {
      moved = moved || std::abs(step[i]) > rounding * std::abs(x[ux(i)]);
      x[ux(i)] -= step[i];
    }
    if (moved && round < 2) g = ground(arc, x, t);
    if (round == 0) rest(g);
    if (!moved) return;
  }
}

}  // namespace saltus
