#include "analysis/shooting.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "flow/smooth.hpp"
#include "flow/thresholds.hpp"
#include "model/vanishing.hpp"

namespace saltus {
namespace {

/// Legs up to this share of the period use the series of their guard from the start.
constexpr double short_leg = 0.02;
/// A frozen leg that takes a state so much farther than any is on the orbit leads nowhere.
constexpr double blown_up = 1e8;
/// Of a leg: a stiff one has short ones.
constexpr long most_steps = 5'000'000;

std::vector<double> coefficients(const double* c, int order, double offset = 0) {
  std::vector<double> out(c, c + order + 1);
  out[0] -= offset;
  return out;
}

/// The series of what a guard is zero of, less `offset`; none where it is no function of the step.
struct GuardFunction {
  const double* c = nullptr;
  double offset = 0;
  int output = -1;  ///< of the tape, if it is a formula of the state
};
GuardFunction guard_function(const Program& program, const Series& series, const Guard& g) {
  switch (g.kind) {
    case GuardKind::surface: return {series.surface(g.item), 0, static_cast<int>(program.surface(g.item))};
    case GuardKind::gap: return {series.gap(g.item), 0, static_cast<int>(program.gap(g.item))};
    case GuardKind::jump: return {series.jump(g.item), 0, static_cast<int>(program.jump(g.item))};
    case GuardKind::sigma: return {series.unknown(g.item), g.side * series.hold(g.item)};
    case GuardKind::slip: return {series.unknown(g.item), 1.0 * g.side};
    case GuardKind::lambda: return {series.unknown(program.switches() + g.item)};
    case GuardKind::slope:
    case GuardKind::clock: break;
  }
  return {};
}

/// What a step must resolve besides the states where it is looked at: a distance has a shorter reach than coordinates.
std::vector<WatchedSeries> series_seen(const Program& program, const Smooth& smooth, std::span<const Guard> watched) {
  const Series& series = smooth.series();
  std::vector<WatchedSeries> out;
  const auto add = [&](const GuardFunction& f) {
    const auto finite = [](double c) { return std::isfinite(c); };
    if (f.c && std::all_of(f.c, f.c + smooth.order() + 1, finite)) out.push_back({f.c, std::abs(f.offset), f.output});
  };
  for (const Guard& g : watched) add(guard_function(program, series, g));
  const std::vector<Section>& sections = program.model().sections;
  for (size_t s = 0; s < sections.size(); ++s) {
    const int number = static_cast<int>(s);
    if (sections[s].kind == Section::Kind::on)
      add({series.section(number), 0, static_cast<int>(program.section(number))});
  }
  return out;
}

}  // namespace

Shooting::Shooting(const Program& program, const RunOptions& run, bool forced, double direction)
    : program_(program), run_(run), forced_(forced), direction_(direction), variation_(program, options(0, 1)) {
  size_ = Vec::Ones(program.states());
  const Form& form = program.model().form;
  std::vector<Expr> rates = form.f;
  for (const LoweredJump& jump : form.jumps) {
    for (const Assignment& a : jump.set)
      rates[static_cast<size_t>(a.state)] = rates[static_cast<size_t>(a.state)] + a.value;
  }
  vanishing_ = vanishing_sets(rates);
  for (size_t i = 0; i < form.f.size(); ++i) {
    if (form.f[i].is_number()) vanishing_[i].clear();  // a discrete variable
  }
}

RunOptions Shooting::options(double from, double length) const {
  RunOptions o;
  o.parameters = run_.parameters;
  o.tolerance = run_.tolerance;
  o.stiff = run_.stiff;
  o.leave = run_.leave;
  o.from = from;
  o.until = from + direction_ * length;
  return o;
}

void Shooting::bind(const std::vector<double>& parameters, const Mat& directions) {
  flights_.clear();
  directions_ = directions;
  if (run_.parameters == parameters) return;
  run_.parameters = parameters;
  variation_.bind(parameters);
}

void Shooting::set_size(const Vec& size, double period) {
  size_ = size.cwiseMax(1e-300);
  period_ = period;
}

Vec Shooting::sizes_at(const Vec& x, const Vec& most) const {
  constexpr double rounding = 1e-13;  // what is no larger anywhere is noise about zero
  constexpr double small = 1e-3;      // shares above it are those of any oscillation
  Vec out = size_;
  for (Index i = 0; i < out.size(); ++i) {
    const std::vector<int>& together = vanishing(i);
    const auto seen = [&](int j) { return most[j] > rounding * size_[j]; };
    if (!std::any_of(together.begin(), together.end(), seen)) continue;
    double share = vanished_floor;
    for (const int j : together) {
      if (seen(j)) share = std::max(share, std::abs(x[j]) / most[j]);
    }
    out[i] *= std::min(share / small, 1.0);
  }
  return out.cwiseMax(1e-300);
}

bool Shooting::flow(const Leg& leg, double t, std::vector<double>& x, Mat* tangents, LegTrace* trace,
                    std::span<const Guard> watched) {
  Variation& v = variation_;
  const Index n = ix(x.size()), d = directions_.cols();
  if (tangents) {
    Mat X = Mat::Zero(n, n + d), P = Mat::Zero(ix(run_.parameters.size()), n + d);
    X.leftCols(n).setIdentity();
    if (d > 0) P.rightCols(d) = directions_;
    v.begin(std::move(X), std::move(P));
  } else {
    v.begin(Mat());
  }
  v.land(leg.arc, x, t);
  if (leg.length != 0) {
    RunOptions o = options(t, 1);
    o.until = t + (leg.length > 0 ? 1 : -1) * std::max(std::abs(leg.length), 1e-12);
    EngineMemory& memory = v.memory();
    Smooth smooth(*memory.series, memory.order, memory.orders, o);
    Moment now{.x = x, .counters = leg.arc.counters, .mode = leg.arc.mode};
    now.clock.set(t);
    const double end = t + leg.length, bound = blown_up * size_.maxCoeff();
    for (long steps = 0; now.clock.until(end) != 0; ++steps) {
      if (steps > most_steps || (run_.stop && run_.stop())) return false;
      const double left = now.clock.until(end);
      memory.series->set_mode(now.mode);
      if (!leg.arc.held.empty()) memory.series->hold_at(leg.arc.held);
      if (smooth.begin(now) != SeriesStatus::ok) return false;
      const auto seen = [&] { return trace ? series_seen(program_, smooth, watched) : std::vector<WatchedSeries>{}; };
      const double natural = smooth.natural(seen());
      double length = std::min(natural, std::abs(left));
      if (!(length > 0)) return false;
      if (trace) {
        LegTrace::Stretch stretch;
        const Series& series = *memory.series;
        const int order = smooth.order();
        for (const Guard& g : watched) {
          const GuardFunction function = guard_function(program_, series, g);
          stretch.guards.push_back(function.c ? coefficients(function.c, order, function.offset)
                                              : std::vector<double>(at(order) + 1, 0.0));
          // An unknown that is fixed has one value only.
          for (double& c : stretch.guards.back()) {
            if (!std::isfinite(c)) c = 0;
          }
        }
        for (size_t s = 0; s < program_.model().sections.size(); ++s)
          stretch.sections.push_back(coefficients(series.section(static_cast<int>(s)), order));
        trace->stretches.push_back(std::move(stretch));
      }
      for (int halving = 0;; ++halving) {
        const double tau = length >= std::abs(left) ? left : std::copysign(length, left);
        smooth.cut(now, tau);
        if (smooth.trusts(now, tau, seen())) break;
        if (halving > 60) return false;
        length = std::min(length, std::abs(left)) / 2;
        smooth.begin(now);
      }
      const Piece piece = smooth.piece();
      const std::vector<double> next = smooth.end();
      if (tangents) v.along(piece, leg.arc);
      if (trace) trace->stretches.back().piece = piece;
      now.x = next;
      if (piece.length == left)
        now.clock.set(end);
      else
        now.clock.advance(piece.length);
      for (const double value : now.x) {
        if (!(std::abs(value) < bound)) return false;
      }
    }
    x = now.x;
  }
  if (!tangents) return true;
  *tangents = v.tangents();
  return tangents->allFinite();
}

/// What ends a leg, with its slopes along the columns of z: by x_i, by T_i, by the start time, by parameters.
bool Shooting::end_row(const Leg& leg, double t, std::span<const double> x, const Vec& f0, const Mat& z, const Mat& dt,
                       int section, double& value, Mat& row) {
  const Index n = program_.states(), d = directions_.cols();
  const double end = t + leg.length;
  if (leg.end == Leg::End::guard && leg.known > 0 && std::abs(leg.length) < short_leg * period_) {
    // sum of c_j T^(j - known): zero with the guard, and regular where the leg vanishes.
    Mat X = Mat::Zero(n, n + 1 + d), P = Mat::Zero(ix(run_.parameters.size()), n + 1 + d);
    X.leftCols(n).setIdentity();
    X.col(n) = f0;
    if (d > 0) P.rightCols(d) = directions_;
    const std::vector<double> start(leg.x.begin(), leg.x.end());
    const int order = variation_.memory().order - 1;
    const Variation::GuardSeries s =
        variation_.guard_series(leg.guard, leg.arc, start, t, order, std::move(X), std::move(P));
    const int last = static_cast<int>(s.value.size()) - 1;
    value = 0;
    row.setZero(1, n + 2 + d);
    double power = 1, rate = 0;
    double before = 0;  // T^(j - known - 1)
    for (int j = leg.known; j <= last; ++j) {
      value += s.value[j] * power;
      rate += (j - leg.known) * s.value[j] * before;
      row.leftCols(n) += s.tangent.row(j).leftCols(n) * power;
      const double along = j < last ? (j + 1) * s.value[j + 1] : 0.0;
      row(0, n + 1) += (along - s.tangent(j, n)) * power;
      if (d > 0) row.rightCols(d) += s.tangent.row(j).rightCols(d) * power;
      before = power;
      power *= leg.length;
    }
    row(0, n) = rate;
    return true;
  }
  const Variation::GuardSlope slope = leg.end == Leg::End::section
                                          ? variation_.section(section, leg.arc, x, end)
                                          : variation_.guard(leg.guard, leg.arc, x, end, directions_);
  value = slope.value;
  row = slope.by_state.transpose() * z + slope.by_time * dt;
  if (d > 0 && slope.by_parameter.size() == d) row.rightCols(d) += slope.by_parameter.transpose();
  if (leg.end == Leg::End::guard && leg.known > 0) {
    const double power = std::pow(leg.length, leg.known);
    row(0, n) -= leg.known * value / leg.length;
    value /= power;
    row /= power;
  }
  return true;
}

bool Shooting::flown(const Leg& leg, double t, std::vector<double>& x, Mat& tangents) {
  for (const Flight& f : flights_) {
    if (f.t != t || f.length != leg.length || f.from != leg.x || !(f.arc == leg.arc)) continue;
    x = f.to;
    tangents = f.tangents;
    return true;
  }
  if (!flow(leg, t, x, &tangents)) return false;
  constexpr size_t most = 64;
  Flight now{leg.arc, t, leg.length, leg.x, x, tangents};
  if (flights_.size() < most) {
    flights_.push_back(std::move(now));
  } else {
    flights_[next_flight_++ % most] = std::move(now);
  }
  return true;
}

bool Shooting::equations(const std::vector<Leg>& legs, const Closing& closing, double t0, const Vec& start_by,
                         int section, Vec& r, Mat& J, Shot* shot) {
  return form(legs, closing, t0, start_by, section, r, J, shot, true);
}

bool Shooting::residual(const std::vector<Leg>& legs, const Closing& closing, double t0, int section, Vec& r) {
  return unit_.size() == legs.size() && form(legs, closing, t0, {}, section, r, no_slopes_, nullptr, false);
}

/// Without `slopes` J is left in disorder.
bool Shooting::form(const std::vector<Leg>& legs, const Closing& closing, double t0, const Vec& start_by, int section,
                    Vec& r, Mat& J, Shot* shot, bool slopes) {
  const Index n = program_.states(), d = directions_.cols(), size = (n + 1) * ix(legs.size());
  r.setZero(size);
  J.setZero(size, size + d);
  if (shot) shot->ends.assign(legs.size(), {});
  if (shot) shot->traces.assign(shot->watched.size(), {});
  if (slopes) unit_.assign(legs.size(), 1.0);
  double t = t0;
  Variation& v = variation_;
  for (size_t i = 0; i < legs.size(); ++i) {
    const Leg& leg = legs[i];
    failed_leg_ = static_cast<int>(i);
    const Index row = (n + 1) * ix(i), next = (n + 1) * ix((i + 1) % legs.size());
    std::vector<double> x(leg.x.begin(), leg.x.end());
    Mat X = Mat::Zero(n, n + d);
    const Vec f0 = v.rates(leg.arc, x, t);
    const bool traced = shot && i < shot->watched.size();
    if (traced   ? !flow(leg, t, x, &X, &shot->traces[i], shot->watched[i])
        : slopes ? !flown(leg, t, x, X)
                 : !flow(leg, t, x, nullptr))
      return false;
    const double end = t + leg.length;
    const Vec f = v.rates(leg.arc, x, end);
    if (!f.allFinite() || !f0.allFinite()) return false;
    // Directions: by x_i, by T_i, by the time at which the leg starts, by the parameters followed.
    Mat z(n, n + 2 + d), dt = Mat::Zero(1, n + 2 + d);
    z.leftCols(n) = X.leftCols(n);
    z.col(n) = f;
    z.col(n + 1) = f - X.leftCols(n) * f0;
    if (d > 0) z.rightCols(d) = X.rightCols(d);
    dt(0, n) = dt(0, n + 1) = 1;
    Mat h = Mat::Zero(1, n + 2 + d);
    double value = 0;
    switch (leg.end) {
      case Leg::End::time:
        value = leg.length - leg.until;
        h(0, n) = 1;
        break;
      case Leg::End::clock:
        value = end - leg.until;
        h = dt;
        if (d > 0 && leg.until_by.size() == d) h.rightCols(d) -= leg.until_by.transpose();
        break;
      case Leg::End::part:
        value = leg.length - legs[i + 1].length;
        h(0, n) = 1;
        J(row + n, next + n) -= 1;
        break;
      case Leg::End::phase: break;
      case Leg::End::section:
      case Leg::End::guard: {
        if (!end_row(leg, t, x, f0, z, dt, section, value, h)) return false;
        // In units of time, so that all rows are alike; not by the guard's own speed, which may vanish.
        double unit = std::abs(h(0, n)) * period_;
        for (Index k = 0; k < n; ++k) unit += std::abs(h(0, k)) * size_[k];
        unit /= period_;
        if (slopes && unit > 0 && std::isfinite(unit)) unit_[i] = unit;
        value /= unit_[i];
        h /= unit_[i];
        break;
      }
    }
    if (shot) {
      shot->ends[i].x_minus = x;
      shot->ends[i].t = end;
      shot->ends[i].tangents = X.leftCols(n);
    }
    if (leg.happens) {
      Mat P = Mat::Zero(ix(run_.parameters.size()), n + 2 + d);
      if (d > 0) P.rightCols(d) = directions_;
      if (!leg.event.resting.empty()) {
        const Arc after{leg.event.after, leg.event.counters};
        const Vec f1 = v.rates(after, x, end);
        v.begin(z - f1 * dt, P);  // at fixed time
        v.land(after, x, end);
        z = v.tangents() + f1 * dt;
      } else {
        v.begin(z, P);
        if (!v.reset(leg.event, leg.arc, x, end, z, dt)) return false;
      }
    }
    if (shot) shot->ends[i].x_plus = x;
    const bool last = i + 1 == legs.size();
    const ConstView reached = column_at(x.data(), n);
    r.segment(row, n) = legs[(i + 1) % legs.size()].x - reached;
    J.block(row, next, n, n).setIdentity();
    if (last) {
      r.segment(row, n) = closing.sign.cwiseProduct(legs[0].x) + closing.shift - reached;
      J.block(row, next, n, n) = closing.sign.asDiagonal();
    }
    r[row + n] = value;
    J.block(row, (n + 1) * ix(i), n, n) -= z.leftCols(n);
    J.block(row, (n + 1) * ix(i) + n, n, 1) -= z.col(n);
    J.block(row + n, (n + 1) * ix(i), 1, n) += h.leftCols(n);
    J(row + n, (n + 1) * ix(i) + n) += h(0, n);
    if (d > 0) {
      J.block(row, size, n, d) -= z.rightCols(d);
      J.block(row + n, size, 1, d) += h.rightCols(d);
    }
    if (forced_) {
      for (size_t j = 0; j < i; ++j) {
        J.block(row, (n + 1) * ix(j) + n, n, 1) -= z.col(n + 1);
        J(row + n, (n + 1) * ix(j) + n) += h(0, n + 1);
      }
      if (d > 0 && start_by.size() == d) {
        J.block(row, size, n, d) -= z.col(n + 1) * start_by.transpose();
        J.block(row + n, size, 1, d) += h(0, n + 1) * start_by.transpose();
      }
    }
    if (leg.end == Leg::End::phase) {
      const double unit = closing.normal.cwiseAbs().dot(size_) / period_;
      r[row + n] = closing.normal.dot(legs[0].x - closing.through) / unit;
      J.row(row + n).setZero();
      J.block(row + n, 0, 1, n) = closing.normal.transpose() / unit;
    }
    if (last) {
      for (Index s = 0; s < n; ++s) {
        if (!closing.free[static_cast<size_t>(s)]) continue;
        r[row + s] = 0;
        J.row(row + s).setZero();
        J(row + s, s) = 1;
      }
    }
    t = end;
  }
  return r.allFinite() && (!slopes || J.allFinite());
}

double Shooting::growth(const Leg& leg, double t, const Vec& most) {
  std::vector<double> x(leg.x.begin(), leg.x.end());
  Mat X;
  if (!flown(leg, t, x, X)) return HUGE_VAL;
  const Vec before = sizes_at(leg.x, most), after = sizes_at(column_at(x.data(), size_.size()), most);
  const Mat scaled = after.cwiseInverse().asDiagonal() * X.leftCols(size_.size()) * before.asDiagonal();
  return scaled.norm();
}

std::vector<Mat> Shooting::factors(const std::vector<Leg>& legs, const Shot& shot) {
  std::vector<Mat> out;
  for (size_t i = 0; i < legs.size(); ++i) {
    const Shot::End& end = shot.ends[i];
    if (!legs[i].happens) {
      out.push_back(end.tangents);
      continue;
    }
    Transition event = legs[i].event;
    event.t = end.t;
    event.x_minus = end.x_minus;
    event.x_plus = end.x_plus;
    variation_.begin(end.tangents);
    variation_.through(event);
    out.push_back(variation_.tangents());
  }
  return out;
}

}  // namespace saltus
