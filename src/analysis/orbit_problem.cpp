#include "analysis/orbit_problem.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "expr/diff.hpp"
#include "model/period.hpp"

namespace saltus {
namespace {

size_t at(int i) { return static_cast<size_t>(i); }
size_t ux(Eigen::Index i) { return static_cast<size_t>(i); }
Eigen::Index ix(size_t i) { return static_cast<Eigen::Index>(i); }

Model without_stops(Model model) {
  for (Section& s : model.sections) s.stop = false;
  return model;
}

/// How a formula of parameters moves with each parameter followed.
Vec slopes_of(const Expr& e, const std::vector<double>& parameters, const Mat& directions) {
  Vec out = Vec::Zero(directions.cols());
  for (const Partial& d : gradient(e, SymbolKind::parameter))
    out += constant_value(d.value, parameters) * directions.row(d.symbol.symbol().index).transpose();
  return out;
}

/// Times of what happens, with both ends.
std::vector<double> marks_of(const Trajectory& run) {
  std::vector<double> out{run.start_time};
  for (const Transition& e : run.transitions) {
    if (!e.silent) out.push_back(e.t);
  }
  out.push_back(run.end.t);
  return out;
}

/// The middle of the longest stretch between events.
double quiet_time(const Trajectory& run) {
  const std::vector<double> marks = marks_of(run);
  size_t best = 0;
  for (size_t i = 0; i + 1 < marks.size(); ++i) {
    if (std::abs(marks[i + 1] - marks[i]) > std::abs(marks[best + 1] - marks[best])) best = i;
  }
  return 0.5 * (marks[best] + marks[best + 1]);
}

}  // namespace

OrbitProblem::OrbitProblem(const Model& model, const OrbitOptions& options, std::vector<int> parameters)
    : bare_(without_stops(model)),
      program_(bare_),
      model_(program_.model()),
      options_(options),
      followed_(std::move(parameters)),
      direction_(options.backward ? -1.0 : 1.0) {
  simulator_.emplace(program_);
  ranges_.assign(followed_.size(), 1.0);
}

// ---- parameters and unknowns ---------------------------------------------------------------------------------------

void OrbitProblem::bind(const std::vector<double>& values) {
  std::vector<GivenParameter> given;
  for (size_t k = 0; k < followed_.size(); ++k) given.push_back({followed_[k], values[k]});
  const std::vector<double> all = parameter_values(model_, given);
  if (all != values_) {
    values_ = all;
    directions_ = parameter_directions(model_, all, followed_).p;
    shooting_->bind(all, directions_);
  }
  if (forced_) {
    period_ = constant_value(clock_, values_);
    t0_ = options_.run.from + anchor_.share * period_;
    start_by_ = anchor_.share * slopes_of(clock_, values_, directions_);
  } else {
    t0_ = anchor_.time;
    start_by_ = Vec::Zero(directions_.cols());
  }
  const double part = symmetry_ ? 0.5 : 1.0;
  for (Leg& leg : legs_) {
    if (leg.end != Leg::End::clock) continue;
    if (!leg.happens) {
      leg.until = t0_ + direction_ * part * period_;
      leg.until_by = start_by_ + direction_ * part * slopes_of(clock_, values_, directions_);
    } else {
      const LoweredJump& jump = model_.form.jumps[at(leg.guard.item)];
      const double every = constant_value(*jump.every, values_);
      const double phase = jump.phase ? constant_value(*jump.phase, values_) : 0.0;
      leg.until = phase + leg.ticks * every;
      leg.until_by = leg.ticks * slopes_of(*jump.every, values_, directions_);
      if (jump.phase) leg.until_by += slopes_of(*jump.phase, values_, directions_);
    }
  }
}

void OrbitProblem::put(const Vec& z) {
  const Eigen::Index n = program_.states();
  for (size_t i = 0; i < legs_.size(); ++i) {
    legs_[i].x = z.segment((n + 1) * ix(i), n);
    legs_[i].length = z[(n + 1) * ix(i) + n];
  }
  bind(values_of(z));
}

std::vector<double> OrbitProblem::values_of(const Vec& z) const {
  return {z.end() - ix(followed_.size()), z.end()};
}

double OrbitProblem::period_of(const Vec& z) const {
  if (forced_) {
    std::vector<GivenParameter> given;
    const std::vector<double> values = values_of(z);
    for (size_t k = 0; k < followed_.size(); ++k) given.push_back({followed_[k], values[k]});
    return constant_value(clock_, parameter_values(model_, given));
  }
  const Eigen::Index n = program_.states();
  double sum = 0;
  for (Eigen::Index i = n; i + ix(followed_.size()) < z.size(); i += n + 1) sum += std::abs(z[i]);
  return symmetry_ ? 2 * sum : sum;
}

Vec OrbitProblem::pack(const std::vector<double>& values) const {
  const Eigen::Index n = program_.states(), d = ix(values.size());
  Vec z((n + 1) * ix(legs_.size()) + d);
  for (size_t i = 0; i < legs_.size(); ++i) {
    z.segment((n + 1) * ix(i), n) = legs_[i].x;
    z[(n + 1) * ix(i) + n] = legs_[i].length;
  }
  for (Eigen::Index k = 0; k < d; ++k) z[z.size() - d + k] = values[ux(k)];
  return z;
}

void OrbitProblem::set_scale() {
  if (legs_.empty()) return;
  const Eigen::Index n = program_.states(), d = ix(followed_.size());
  scale_.resize((n + 1) * ix(legs_.size()) + d);
  for (size_t i = 0; i < legs_.size(); ++i) {
    scale_.segment((n + 1) * ix(i), n) = size_;
    scale_[(n + 1) * ix(i) + n] = period_;
  }
  for (Eigen::Index k = 0; k < d; ++k) scale_[scale_.size() - d + k] = ranges_[ux(k)];
  shooting_->set_size(size_, period_);
}

/// What follows from the signature: known zeros, ticks of clocks, the last leg's end.
void OrbitProblem::prepare_legs() {
  const Series& series = shooting_->variation().series();
  for (size_t i = 0; i < legs_.size(); ++i) {
    Leg& leg = legs_[i];
    leg.known = 0;
    if (i > 0 && legs_[i - 1].happens && leg.end == Leg::End::guard)
      leg.known = known_zeros(model_, series, legs_[i - 1].event, leg.guard);
    if (leg.happens && leg.end == Leg::End::clock) {
      const LoweredJump& jump = model_.form.jumps[at(leg.guard.item)];
      const double phase = jump.phase ? constant_value(*jump.phase, values_) : 0.0;
      leg.ticks = std::round((leg.event.t - phase) / constant_value(*jump.every, values_));
    }
  }
  legs_.back().end = forced_ ? Leg::End::clock : Leg::End::phase;
}

bool OrbitProblem::equations(const Vec& z, Vec& r, Mat& J) {
  put(z);
  return shooting_->equations(legs_, closing_, t0_, start_by_, -1, r, J);
}

// ---- signatures ----------------------------------------------------------------------------------------------------

std::optional<Vec> OrbitProblem::take(const Orbit& orbit) {
  const Eigen::Index n = program_.states();
  forced_ = !orbit.autonomous;
  values_ = options_.run.parameters;
  directions_ = parameter_directions(model_, values_, followed_).p;
  shooting_.emplace(program_, options_.run, forced_, direction_);
  shooting_->bind(values_, directions_);
  size_ = Vec::Constant(n, 0.0);
  for (const Piece& p : orbit.trajectory.pieces) {
    const size_t stride = p.coefficients.size() / ux(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      size_[i] = std::max({size_[i], std::abs(p.coefficients[ux(i) * stride]),
                           stride > 1 ? std::abs(p.coefficients[ux(i) * stride + 1] * p.length) : 0.0});
    }
  }
  const double largest = std::max(size_.maxCoeff(), 1e-300);
  for (Eigen::Index i = 0; i < n; ++i) {
    if (size_[i] == 0) size_[i] = largest;
  }
  period_ = orbit.period;
  if (forced_) {
    const std::optional<Period> period = period_in_time(model_, values_);
    if (period) {
      clock_ = Expr(std::round(orbit.period / period->value)) * period->formula;
    } else {
      for (const Section& s : model_.sections) {
        if (s.kind != Section::Kind::every) continue;
        const double every = constant_value(s.value, values_), count = std::round(orbit.period / every);
        if (std::abs(count * every - orbit.period) < 1e-9 * orbit.period) clock_ = Expr(count) * s.value;
      }
    }
  }
  closing_ = {.free = orbit.free, .sign = Vec::Ones(n), .shift = Eigen::Map<const Vec>(orbit.shift.data(), n)};
  told_ = orbit.state;
  symmetry_.reset();
  if (orbit.symmetric) symmetry_ = find_symmetry(orbit);
  if (symmetry_) closing_.sign = symmetry_->sign;
  const double t = quiet_time(orbit.trajectory);
  legs_.assign(1, Leg{.arc = orbit.trajectory.arcs[at(orbit.trajectory.pieces[orbit.trajectory.piece_at(t)].arc)]});
  std::vector<double> values;
  for (const int p : followed_) values.push_back(values_[at(p)]);
  return cut_run(orbit.trajectory(t), t, orbit.period * (symmetry_ ? 0.5 : 1.0), values);
}

/// One run with all that happens on it; nothing if it does not get through.
std::optional<Trajectory> OrbitProblem::run_for(RunOptions o, double t, double duration) {
  o.from = t;
  o.until = t + direction_ * duration;
  o.keep_pieces = o.keep_transitions = true;
  o.keep_events = false;
  o.section = -1;
  o.section_count = 0;
  o.max_events = 100'000;
  o.progress = {};
  o.on_section = {};
  try {
    Trajectory run = simulator_->run(o);
    if (run.end.why == Why::time) return run;
  } catch (const Error&) {  // the start is not possible: a gap violated
  }
  return std::nullopt;
}

/// The signature of a run that starts at the cut.
std::optional<Vec> OrbitProblem::cut_run(const std::vector<double>& x, double t, double duration,
                                         const std::vector<double>& values) {
  anchor_ = {};
  if (forced_)
    anchor_.share = (t - options_.run.from) / constant_value(clock_, values_);
  else
    anchor_.time = t;
  return take_run(x, t, duration, values);
}

std::optional<Vec> OrbitProblem::take_run(std::vector<double> x, double t, double duration,
                                          const std::vector<double>& values) {
  RunOptions o = options_.run;
  std::vector<GivenParameter> given;
  for (size_t k = 0; k < followed_.size(); ++k) given.push_back({followed_[k], values[k]});
  o.parameters = parameter_values(model_, given);
  // Contacts at rest may be violated by rounding.
  shooting_->bind(o.parameters, directions_);
  shooting_->variation().begin(Mat());
  shooting_->variation().land(legs_.front().arc, x, t);
  o.initial = x;
  const std::optional<Trajectory> ran = run_for(o, t, duration);
  if (!ran) return std::nullopt;
  const Trajectory& run = *ran;
  legs_ = legs_of(run, x, t, direction_, true);
  if (!forced_) {
    const Arc arc = run.arcs.empty() ? run.last : run.arcs.front();
    shooting_->bind(o.parameters, directions_);
    const Vec f = shooting_->variation().rates(arc, x, t);
    anchor_.through = Eigen::Map<const Vec>(x.data(), f.size());
    anchor_.normal = f.cwiseQuotient(size_.cwiseProduct(size_));
    for (Eigen::Index i = 0; i < f.size(); ++i) {
      if (closing_.free[ux(i)]) anchor_.normal[i] = 0;
    }
    closing_.normal = anchor_.normal;
    closing_.through = anchor_.through;
  }
  values_ = o.parameters;
  prepare_legs();
  values_.clear();
  bind(values);
  set_scale();
  return pack(values);
}

Vec OrbitProblem::unfold(const Mat& matrix) {
  const Eigen::Index n = program_.states();
  // Inverse iteration for the eigenvalue -1.
  const Lu lu(matrix + (1 + 1e-9) * Mat::Identity(matrix.rows(), matrix.cols()));
  Vec v = Vec::LinSpaced(matrix.rows(), 1.0, 1.7);
  for (int k = 0; k < 4; ++k) v = lu.solve(v).normalized();
  std::vector<Eigen::Index> kept;
  for (Eigen::Index i = 0; i < n; ++i) {
    if (!closing_.free[ux(i)]) kept.push_back(i);
  }
  if (!forced_) {
    const std::vector<double> x(legs_[0].x.begin(), legs_[0].x.end());
    const Vec rates = shooting_->variation().rates(legs_[0].arc, x, t0_);
    Vec f(ix(kept.size()));
    for (size_t i = 0; i < kept.size(); ++i) f[ix(i)] = rates[kept[i]] / size_[kept[i]];
    f.normalize();
    v = Vec(null_space(f.transpose()) * v);
  }
  Vec out = Vec::Zero(n);
  for (size_t i = 0; i < kept.size(); ++i) out[kept[i]] = v[ix(i)] * size_[kept[i]];
  return out;
}

std::optional<Vec> OrbitProblem::take_other(const Vec& move, bool twice) {
  std::vector<double> values, x;
  for (const int p : followed_) values.push_back(values_[at(p)]);
  for (Eigen::Index i = 0; i < move.size(); ++i) x.push_back(legs_[0].x[i] + move[i]);
  double duration = 0;
  for (const Leg& leg : legs_) duration += std::abs(leg.length);
  if (symmetry_) {
    symmetry_.reset();
    closing_.sign.setOnes();
    duration *= 2;
  }
  if (twice) {
    duration *= 2;
    closing_.shift *= 2;
    period_ *= 2;
    // The cut stays where it is: its share of a clock that is twice as long is half.
    clock_ = Expr(2.0) * clock_;
    anchor_.share /= 2;
  }
  return take_run(std::move(x), t0_, duration, values);
}

Vec OrbitProblem::follow_also(const Vec& z, int parameter, double range) {
  put(z);
  std::vector<double> values = values_of(z);
  values.push_back(values_[at(parameter)]);
  followed_.push_back(parameter);
  ranges_.push_back(range);
  values_.clear();
  bind(values);
  set_scale();
  return pack(values);
}

std::optional<Vec> OrbitProblem::take_legs(std::vector<Leg> legs) {
  std::vector<double> values;
  for (const int p : followed_) values.push_back(values_[at(p)]);
  legs_ = std::move(legs);
  prepare_legs();
  bind(values);
  set_scale();
  return pack(values);
}

bool OrbitProblem::needs_cut(const Vec& z) const {
  const Eigen::Index n = program_.states();
  double longest = 0;
  for (size_t i = 1; i + 1 < legs_.size(); ++i) longest = std::max(longest, std::abs(z[(n + 1) * ix(i) + n]));
  const double first = std::abs(z[n]), last = std::abs(z[(n + 1) * ix(legs_.size() - 1) + n]);
  return legs_.size() > 1 && std::min(first, last) < 0.1 * std::max(longest, first + last);
}

std::optional<Vec> OrbitProblem::cut_anew(const Vec& z) {
  put(z);
  const std::vector<double> values = values_of(z);
  RunOptions o = options_.run;
  o.parameters = values_;
  const double duration = period_of(z) * (symmetry_ ? 0.5 : 1.0);
  o.initial.assign(legs_[0].x.begin(), legs_[0].x.end());
  shooting_->variation().begin(Mat());
  shooting_->variation().land(legs_.front().arc, o.initial, t0_);
  const std::optional<Trajectory> ran = run_for(o, t0_, duration);
  if (!ran) return std::nullopt;
  const Trajectory& run = *ran;
  const double t = quiet_time(run);
  const Frozen keep = frozen_signature();
  legs_.assign(1, Leg{.arc = run.arcs[at(run.pieces[run.piece_at(t)].arc)]});
  std::optional<Vec> out = cut_run(run(t), t, duration, values);
  if (!out) restore(keep);
  return out;
}

OrbitProblem::Frozen OrbitProblem::frozen_signature() const {
  return {legs_, anchor_, closing_, symmetry_, scale_, size_, clock_, period_};
}

void OrbitProblem::restore(const Frozen& frozen) {
  legs_ = frozen.legs;
  anchor_ = frozen.anchor;
  closing_ = frozen.closing;
  symmetry_ = frozen.symmetry;
  scale_ = frozen.scale;
  size_ = frozen.size;
  clock_ = frozen.clock;
  period_ = frozen.period;
  shooting_->set_size(size_, period_);
}

// ---- what a solution is like ---------------------------------------------------------------------------------------

bool OrbitProblem::view(const Vec& z, OrbitView& out, bool monitors) {
  const Eigen::Index n = program_.states();
  Vec r;
  Mat J;
  put(z);
  if (!shooting_->equations(legs_, closing_, t0_, start_by_, -1, r, J, &out.shot)) return false;
  out.legs = legs_;
  out.t0 = t0_;
  out.period = period_of(z);
  const std::vector<Mat> factors = shooting_->factors(legs_, out.shot);
  Mat M = Mat::Identity(n, n);
  for (const Mat& factor : factors) M = factor * M;
  M = closing_.sign.asDiagonal() * M;  // S is its own inverse
  std::vector<Eigen::Index> kept;
  for (Eigen::Index i = 0; i < n; ++i) {
    if (!closing_.free[ux(i)]) kept.push_back(i);
  }
  Vec size(ix(kept.size()));
  for (size_t i = 0; i < kept.size(); ++i) size[ix(i)] = size_[kept[i]];
  M = Mat(size.cwiseInverse().asDiagonal() * Mat(M(kept, kept)) * size.asDiagonal());
  if (!forced_) {
    const std::vector<double> x(legs_[0].x.begin(), legs_[0].x.end());
    const Vec rates = shooting_->variation().rates(legs_[0].arc, x, t0_);
    Vec f(ix(kept.size()));
    for (size_t i = 0; i < kept.size(); ++i) f[ix(i)] = rates[kept[i]] / size[ix(i)];
    f.normalize();
    out.trivial = f.dot(M * f);
    const Mat across = null_space(f.transpose());
    M = Mat(across.transpose() * M * across);
  }
  out.matrix = M;
  out.roots = M.allFinite() ? spectrum_of(M) : Spectrum(ux(M.rows()), std::complex<double>(HUGE_VAL, 0));
  out.multipliers = out.roots;
  if (symmetry_) {
    for (std::complex<double>& mu : out.multipliers) mu *= mu;
  }
  if (direction_ < 0) {
    for (std::complex<double>& mu : out.multipliers)
      mu = std::abs(mu) < 1e-13 ? std::complex<double>(HUGE_VAL, 0) : 1.0 / mu;
  }
  sort_multipliers(out.multipliers);
  out.stable = std::all_of(out.multipliers.begin(), out.multipliers.end(),
                           [](const std::complex<double>& mu) { return std::abs(mu) < 1; });
  out.monitors.clear();
  out.traces.clear();
  if (!monitors) return true;
  double t = t0_;
  for (size_t i = 0; i < legs_.size(); ++i) {
    const Leg& leg = legs_[i];
    Series& series = shooting_->variation().series();
    std::vector<LegGuard> guards = leg_guards(program_, series, leg, i > 0 && legs_[i - 1].happens ? &legs_[i - 1].event : nullptr);
    std::vector<Guard> plain;
    for (const LegGuard& g : guards) plain.push_back(g.guard);
    std::vector<double> x(leg.x.begin(), leg.x.end());
    LegTrace trace;
    shooting_->flow(leg, t, x, nullptr, &trace, plain);
    for (size_t g = 0; g < guards.size() && !trace.stretches.empty() && leg.length * direction_ > 0; ++g) {
      Monitor m{.leg = i, .guard = guards[g], .lowest = lowest(trace, g, guards[g], leg.length)};
      m.name = fmt::format("leg {} {} {} {}", i, static_cast<int>(guards[g].guard.kind), guards[g].guard.item,
                           guards[g].guard.side);
      out.monitors.push_back(std::move(m));
    }
    out.traces.push_back(std::move(trace));
    t += leg.length;
  }
  return true;
}

// ---- what is told --------------------------------------------------------------------------------------------------

std::vector<double> OrbitProblem::told_state(const OrbitView& view, double& t) {
  const size_t n = at(program_.states());
  const auto nearest = [&](const std::vector<std::vector<double>>& candidates) {
    size_t best = 0;
    double least = HUGE_VAL;
    for (size_t k = 0; k < candidates.size(); ++k) {
      double d = 0;
      for (size_t i = 0; i < n; ++i) d += std::pow((candidates[k][i] - told_[i]) / size_[ix(i)], 2);
      if (d < least) least = d, best = k;
    }
    return best;
  };
  const auto mirrored = [&](std::vector<double> x) {
    for (size_t i = 0; i < n; ++i) x[i] *= symmetry_->sign[ix(i)];
    return x;
  };
  std::vector<std::vector<double>> candidates;
  std::vector<double> times;
  const int section = options_.section;
  const bool by_clock = section < 0 || model_.sections[at(section)].kind == Section::Kind::every;
  std::vector<double> x(n);
  if (forced_ && by_clock) {
    // The phase of the start, in the period that is covered.
    const double every = section >= 0 ? constant_value(model_.sections[at(section)].value, values_) : period_;
    const double half = symmetry_ ? view.period / 2 : view.period;
    const double from = options_.run.from;
    const long first = std::lround(std::floor((view.t0 - from) / every)) - 1;
    for (long k = first; k < first + 3 + std::lround(view.period / every) * 2; ++k) {
      const double when = from + static_cast<double>(k) * every;
      const double since = direction_ * (when - view.t0);
      if (since < 0 || since >= view.period) continue;
      const bool second = symmetry_ && since >= half;
      const double look = view.t0 + direction_ * (second ? since - half : since);
      for (const LegTrace& trace : view.traces) {
        for (const LegTrace::Stretch& s : trace.stretches) {
          const double tau = look - s.piece.start;
          if (direction_ * tau < 0 || direction_ * (tau - s.piece.length) > 0) continue;
          Trajectory::evaluate(s.piece, static_cast<int>(n), tau, x.data());
          candidates.push_back(second ? mirrored(x) : x);
          times.push_back(when);
        }
      }
    }
  } else if (section >= 0) {
    const Section& wanted = model_.sections[at(section)];
    for (size_t i = 0; i < view.legs.size(); ++i) {
      const Leg& leg = view.legs[i];
      if (wanted.kind == Section::Kind::constraint && leg.happens) {
        for (const Hit& hit : leg.event.hits) {
          for (const int c : hit.contacts) {
            if (c != wanted.index) continue;
            candidates.push_back(view.shot.ends[i].x_plus);
            times.push_back(view.shot.ends[i].t);
          }
        }
      }
      if (wanted.kind == Section::Kind::jump && leg.happens) {
        for (const JumpDone& jump : leg.event.jumps) {
          if (jump.jump != wanted.index) continue;
          candidates.push_back(view.shot.ends[i].x_plus);
          times.push_back(view.shot.ends[i].t);
        }
      }
      if (wanted.kind != Section::Kind::on) continue;
      for (const LegTrace::Stretch& s : view.traces[i].stretches) {
        const std::vector<double>& c = s.sections[at(section)];
        const auto value = [&](double tau) {
          double sum = 0;
          for (size_t k = c.size(); k-- > 0;) sum = sum * tau + c[k];
          return sum;
        };
        constexpr int parts = 8;
        for (int k = 0; k < parts; ++k) {
          double a = s.piece.length * k / parts, b = s.piece.length * (k + 1) / parts;
          const double fa = value(a), fb = value(b);
          if (fa == 0 || (fa > 0) == (fb > 0)) continue;
          const bool rising = (fb > fa) == (direction_ > 0);
          if (wanted.direction == Direction::rising && !rising) continue;
          if (wanted.direction == Direction::falling && rising) continue;
          for (int halving = 0; halving < 60; ++halving) {
            const double middle = 0.5 * (a + b);
            ((value(middle) > 0) == (fa > 0) ? a : b) = middle;
          }
          Trajectory::evaluate(s.piece, static_cast<int>(n), b, x.data());
          candidates.push_back(x);
          times.push_back(s.piece.start + b);
        }
      }
    }
    if (symmetry_) {  // the other half, where the section looks alike
      const size_t count = candidates.size();
      for (size_t k = 0; k < count && wanted.kind != Section::Kind::on; ++k) {
        candidates.push_back(mirrored(candidates[k]));
        times.push_back(times[k] + direction_ * view.period / 2);
      }
    }
  }
  if (candidates.empty()) {
    t = view.t0;
    return {view.legs[0].x.begin(), view.legs[0].x.end()};
  }
  const size_t best = nearest(candidates);
  t = times[best];
  told_ = candidates[best];
  return told_;
}

void OrbitProblem::extremes(const OrbitView& view, std::vector<double>& low, std::vector<double>& high) const {
  const size_t n = at(program_.states());
  low.assign(n, HUGE_VAL);
  high.assign(n, -HUGE_VAL);
  std::vector<double> x(n);
  for (const LegTrace& trace : view.traces) {
    for (const LegTrace::Stretch& s : trace.stretches) {
      for (int k = 0; k <= 8; ++k) {
        Trajectory::evaluate(s.piece, static_cast<int>(n), s.piece.length * k / 8, x.data());
        for (size_t i = 0; i < n; ++i) low[i] = std::min(low[i], x[i]), high[i] = std::max(high[i], x[i]);
      }
    }
  }
  if (!symmetry_) return;
  for (size_t i = 0; i < n; ++i) {
    if (symmetry_->sign[ix(i)] > 0) continue;
    const double most = std::max(high[i], -low[i]);
    low[i] = -most, high[i] = most;
  }
}

void OrbitProblem::widen(const std::vector<double>& low, const std::vector<double>& high) {
  const Vec before = size_;
  for (Eigen::Index i = 0; i < size_.size(); ++i) {
    const double most = std::max(std::abs(low[ux(i)]), std::abs(high[ux(i)]));
    if (std::isfinite(most)) size_[i] = std::max(size_[i], most);
  }
  if (size_ != before) set_scale();
}

std::vector<std::string> OrbitProblem::signature() const {
  std::vector<std::string> out;
  const int visible = model_.form.visible;
  const auto add = [&](const Mode& mode) {
    std::string text = visible_mode(mode, visible).text();
    if (out.empty() || out.back() != text) out.push_back(std::move(text));
  };
  for (const Leg& leg : legs_) add(leg.arc.mode);
  if (symmetry_) {
    for (const Leg& leg : legs_) {
      Mode mirrored = leg.arc.mode;
      for (size_t i = 0; i < symmetry_->switches.size(); ++i) {
        const auto& [to, sign] = symmetry_->switches[i];
        const char c = leg.arc.mode.switches[i];
        mirrored.switches[at(to)] = sign > 0 || (c != '+' && c != '-') ? c : c == '+' ? '-' : '+';
      }
      add(mirrored);
    }
  }
  if (out.size() > 1 && out.front() == out.back()) out.pop_back();
  return out;
}

bool OrbitProblem::acts(const Arc& arc, const std::vector<double>& x, double t, int item) {
  // Modes in which the switch, and whatever else is zero here, have other letters.
  Variation& v = shooting_->variation();
  std::vector<int> zero;
  for (int i = 0; i < program_.switches(); ++i) {
    if (!program_.moves(i) || i == item || zero.size() > 3) continue;
    const Variation::GuardSlope s = v.guard({GuardKind::surface, i, 0}, arc, x, t);
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
  for (int sample = 0; sample < 4; ++sample) {
    std::vector<double> y = x;
    for (size_t i = 0; i < y.size(); ++i) y[i] += sample * 1e-3 * size_[ix(i)] * std::sin(1.0 + 2.3 * static_cast<double>(i) + sample);
    for (const Arc& base : modes) {
      Arc a = base, b = base;
      a.mode.switches[at(item)] = '+';
      b.mode.switches[at(item)] = '-';
      const Vec f = v.rates(a, y, t), g = v.rates(b, y, t);
      if (!f.allFinite() || !g.allFinite()) continue;
      if ((f - g).cwiseAbs().maxCoeff() > 1e-13 * (f.cwiseAbs().maxCoeff() + g.cwiseAbs().maxCoeff())) return true;
    }
  }
  return false;
}

// ---- symmetry ------------------------------------------------------------------------------------------------------

std::optional<Symmetry> OrbitProblem::find_symmetry(const Orbit& orbit) {
  const size_t n = at(program_.states());
  const Trajectory& run = orbit.trajectory;
  Symmetry out{.sign = Vec::Ones(ix(n)), .switches = {}};
  constexpr int samples = 12;
  const double half = direction_ * orbit.period / 2;
  for (size_t i = 0; i < n; ++i) {
    double with = 0, against = 0;
    for (int k = 0; k < samples; ++k) {
      const double t = run.start_time + half * (k + 0.37) / samples;
      const double a = run(t)[i], b = run(t + half)[i];
      with += std::abs(a - b), against += std::abs(a + b);
    }
    if (against < with) out.sign[ix(i)] = -1;
    if (closing_.free[i]) out.sign[ix(i)] = 1;
    if (!closing_.free[i] && std::min(with, against) > 1e-6 * samples * size_[ix(i)]) return std::nullopt;
    if (closing_.shift[ix(i)] != 0) return std::nullopt;
  }
  // The model itself must have it: its surfaces, gaps and rates at points on and off the orbit.
  Variation& v = shooting_->variation();
  const int m = program_.switches(), q = program_.constraints();
  if (!model_.form.jumps.empty()) return std::nullopt;
  struct Look {
    std::vector<double> surfaces, gaps;
    Vec f;
  };
  const auto look = [&](const Arc& arc, const std::vector<double>& x, double t) {
    Look l;
    l.f = v.rates(arc, x, t);
    const Series& series = v.series();
    for (int i = 0; i < m; ++i) l.surfaces.push_back(series.surface(i)[0]);
    for (int j = 0; j < q; ++j) l.gaps.push_back(series.gap(j)[0]);
    return l;
  };
  std::vector<std::vector<int>> possible(at(m));  // signed and counted from 1: what each switch may become
  for (int i = 0; i < m; ++i) {
    for (int j = 1; j <= m; ++j) possible[at(i)].push_back(j), possible[at(i)].push_back(-j);
  }
  std::vector<std::vector<int>> gap_to(at(q));
  for (int i = 0; i < q; ++i) {
    for (int j = 0; j < q; ++j) gap_to[at(i)].push_back(j);
  }
  std::vector<std::pair<Arc, Arc>> arcs;
  std::vector<std::pair<std::vector<double>, double>> points;
  for (int k = 0; k < samples; ++k) {
    const double t = run.start_time + half * (k + 0.37) / samples;
    const Arc& a = run.arcs[at(run.pieces[run.piece_at(t)].arc)];
    const Arc& b = run.arcs[at(run.pieces[run.piece_at(t + half)].arc)];
    for (int shift = 0; shift < 2; ++shift) {
      std::vector<double> x = run(t), y(n);
      for (size_t i = 0; i < n; ++i) {
        x[i] += shift * 0.3 * size_[ix(i)] * std::sin(1.7 + 3.1 * static_cast<double>(i) + k);
        y[i] = out.sign[ix(i)] * x[i];
      }
      const bool slides = a.mode.switches.find('0') != std::string::npos ||
                          a.mode.constraints.find('c') != std::string::npos;
      if (shift == 1 && slides) continue;
      const Look here = look(a, x, t), there = look(b, y, t + half);
      for (int i = 0; i < m; ++i) {
        if (!program_.moves(i)) continue;
        std::erase_if(possible[at(i)], [&](int j) {
          const double want = (j > 0 ? 1 : -1) * here.surfaces[at(i)], got = there.surfaces[at(std::abs(j) - 1)];
          return std::abs(want - got) > 1e-6 * (std::abs(want) + std::abs(got) + 1e-9);
        });
      }
      for (int i = 0; i < q; ++i) {
        std::erase_if(gap_to[at(i)], [&](int j) {
          return std::abs(here.gaps[at(i)] - there.gaps[at(j)]) > 1e-6 * (std::abs(here.gaps[at(i)]) + 1e-9);
        });
      }
      for (size_t i = 0; i < n; ++i) {
        if (closing_.free[i]) continue;
        const double want = out.sign[ix(i)] * here.f[ix(i)], got = there.f[ix(i)];
        if (!(std::abs(want - got) <= 1e-6 * (here.f.cwiseAbs().maxCoeff() + 1e-12))) return std::nullopt;
      }
    }
  }
  for (int i = 0; i < m; ++i) {
    if (!program_.moves(i)) {
      out.switches.emplace_back(i, 1);
      continue;
    }
    if (possible[at(i)].empty()) return std::nullopt;
    const int j = possible[at(i)].front();
    out.switches.emplace_back(std::abs(j) - 1, j > 0 ? 1 : -1);
  }
  for (const std::vector<int>& to : gap_to) {
    if (to.empty()) return std::nullopt;
  }
  return out;
}

}  // namespace saltus
