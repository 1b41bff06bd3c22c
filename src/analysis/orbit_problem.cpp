#include "analysis/orbit_problem.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/index.hpp"
#include "expr/diff.hpp"
#include "flow/parameter_directions.hpp"
#include "model/period.hpp"

namespace saltus {
namespace {

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

std::vector<double> OrbitProblem::values_of(const Vec& z) const { return {z.end() - ix(followed_.size()), z.end()}; }

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
  // However many legs there are, they count together as one orbit.
  const double share = std::sqrt(static_cast<double>(legs_.size()));
  for (size_t i = 0; i < legs_.size(); ++i) {
    scale_.segment((n + 1) * ix(i), n) = share * size_;
    scale_[(n + 1) * ix(i) + n] = share * period_;
  }
  for (Eigen::Index k = 0; k < d; ++k) scale_[scale_.size() - d + k] = ranges_[ux(k)];
  shooting_->set_size(size_, period_);
}

/// What follows from the signature: known zeros, ticks of clocks, the last leg's end.
void OrbitProblem::prepare_legs() {
  shooting_->set_size(size_, period_);
  legs_ = with_nodes(std::move(legs_), *shooting_, t0_);
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
  RunOptions run = options_.run;
  run.stop = {};  // between points, not within them
  shooting_.emplace(program_, run, forced_, direction_);
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
  if (orbit.symmetric && model_.form.jumps.empty())
    symmetry_ = find_symmetry(program_, shooting_->variation(),
                              {&orbit.trajectory, direction_ * orbit.period, orbit.free, orbit.shift, size_});
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
    put_phase(Eigen::Map<const Vec>(x.data(), ix(x.size())), shooting_->variation().rates(arc, x, t));
  }
  values_ = o.parameters;
  t0_ = t;
  shooting_->bind(values_, directions_);
  prepare_legs();
  values_.clear();
  bind(values);
  set_scale();
  return pack(values);
}

std::optional<Vec> OrbitProblem::take_near(const Orbit& orbit, const std::vector<double>& parameters, double t) {
  std::vector<double> values;
  for (const int p : followed_) values.push_back(parameters[at(p)]);
  const Trajectory& run = orbit.trajectory;
  if (!forced_) t = quiet_time(run);
  const double since = std::fmod(direction_ * (t - run.start_time), orbit.period);
  const double here = run.start_time + direction_ * (since < 0 ? since + orbit.period : since);
  legs_.assign(1, Leg{.arc = run.arcs[at(run.pieces[run.piece_at(here)].arc)]});
  return take_run(run(here), forced_ ? t : here, orbit.period * (symmetry_ ? 0.5 : 1.0), values);
}

void OrbitProblem::put_phase(const Vec& x, const Vec& f) {
  anchor_.through = x;
  anchor_.normal = f.cwiseQuotient(size_.cwiseProduct(size_));
  for (Eigen::Index i = 0; i < f.size(); ++i) {
    if (closing_.free[ux(i)]) anchor_.normal[i] = 0;
  }
  closing_.normal = anchor_.normal;
  closing_.through = anchor_.through;
}

double OrbitProblem::straightness(const Vec& z) {
  if (forced_) return 1;
  put(z);
  const Vec along = in_units(flow_at_cut()), normal = in_units(anchor_.normal.cwiseProduct(size_).cwiseProduct(size_));
  return normal.dot(along) / (normal.norm() * along.norm());
}

Vec OrbitProblem::flow_at_cut() {
  const std::vector<double> x(legs_[0].x.begin(), legs_[0].x.end());
  return shooting_->variation().rates(legs_[0].arc, x, t0_);
}

bool OrbitProblem::renew_phase(const Vec& z) {
  constexpr double straight = 0.9;
  if (straightness(z) > straight) return false;
  put_phase(legs_[0].x, flow_at_cut());
  return true;
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
    v = Vec(null_space(in_units(flow_at_cut()).normalized().transpose()) * v);
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
  std::vector<double> lengths{0.0};  // of stretches, in however many parts
  for (size_t i = 0; i < legs_.size(); ++i) {
    lengths.back() += std::abs(z[(n + 1) * ix(i) + n]);
    if (legs_[i].end != Leg::End::part && i + 1 < legs_.size()) lengths.push_back(0.0);
  }
  const double first = lengths.front(), last = lengths.back();
  double longest = 0;
  for (size_t i = 1; i + 1 < lengths.size(); ++i) longest = std::max(longest, lengths[i]);
  return lengths.size() > 1 && std::min(first, last) < 0.1 * std::max(longest, first + last);
}

bool OrbitProblem::needs_nodes(const OrbitView& view) const {
  constexpr double unbearable = 1e6;
  for (size_t i = 0; i < view.shot.ends.size(); ++i) {
    if (view.legs[i].end == Leg::End::time) continue;
    const Mat scaled = size_.cwiseInverse().asDiagonal() * view.shot.ends[i].tangents * size_.asDiagonal();
    if (scaled.norm() > unbearable) return true;
  }
  return false;
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
  return {legs_, anchor_, closing_, symmetry_, scale_, size_, clock_, period_, widest_, told_};
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
  widest_ = frozen.widest;
  told_ = frozen.told;
  shooting_->set_size(size_, period_);
}

// ---- what a solution is like ---------------------------------------------------------------------------------------

/// States that come back, each in units of its size.
Vec OrbitProblem::in_units(const Vec& x) const {
  std::vector<double> out;
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    if (!closing_.free[ux(i)]) out.push_back(x[i] / size_[i]);
  }
  return Eigen::Map<const Vec>(out.data(), ix(out.size()));
}

/// The maps of the legs in those units; S with the last one.
std::vector<Mat> OrbitProblem::factors_of(const Shot& shot) {
  std::vector<Mat> factors = shooting_->factors(legs_, shot);
  factors.back() = closing_.sign.asDiagonal() * factors.back();  // S is its own inverse
  std::vector<Eigen::Index> kept;
  for (Eigen::Index i = 0; i < size_.size(); ++i) {
    if (!closing_.free[ux(i)]) kept.push_back(i);
  }
  const Vec size = size_(kept);
  for (Mat& M : factors) M = Mat(size.cwiseInverse().asDiagonal() * Mat(M(kept, kept)) * size.asDiagonal());
  return factors;
}

bool OrbitProblem::view(const Vec& z, OrbitView& out, bool monitors) {
  Vec r;
  Mat J;
  put(z);
  if (!shooting_->equations(legs_, closing_, t0_, start_by_, -1, r, J, &out.shot)) return false;
  out.legs = legs_;
  out.t0 = t0_;
  out.period = period_of(z);
  std::vector<Mat> factors = factors_of(out.shot);
  if (!forced_) {
    std::vector<Vec> flow;
    double t = t0_;
    for (const Leg& leg : legs_) {
      flow.push_back(
          in_units(shooting_->variation().rates(leg.arc, std::vector<double>(leg.x.begin(), leg.x.end()), t)));
      t += leg.length;
    }
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
    std::vector<LegGuard> guards =
        leg_guards(program_, series, leg, i > 0 && legs_[i - 1].happens ? &legs_[i - 1].event : nullptr);
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

bool OrbitProblem::repeats(const OrbitView& view, int times) const {
  if (symmetry_) return false;
  constexpr double same = 1e-4;  // at a place where two orbits meet they do so with a square root
  const double middle = view.t0 + direction_ * view.period / times;
  std::vector<double> x(at(program_.states()));
  for (const LegTrace& trace : view.traces) {
    for (const LegTrace::Stretch& s : trace.stretches) {
      const double tau = middle - s.piece.start;
      if (direction_ * tau < 0 || direction_ * (tau - s.piece.length) > 0) continue;
      Trajectory::evaluate(s.piece, program_.states(), tau, x.data());
      for (Eigen::Index i = 0; i < size_.size(); ++i) {
        const double shifted = view.legs[0].x[i] + closing_.shift[i] / times;
        if (!closing_.free[ux(i)] && std::abs(x[ux(i)] - shifted) > same * size_[i]) return false;
      }
      return true;
    }
  }
  return false;
}

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

void OrbitProblem::resize(const std::vector<double>& low, const std::vector<double>& high) {
  const Vec before = size_;
  const auto most = [&](size_t i) { return std::max(std::abs(low[i]), std::abs(high[i])); };
  if (widest_.size() != size_.size()) widest_ = Vec::Zero(size_.size());
  double share = 0;  // how far states move, of the farthest they have moved
  for (size_t i = 0; i < low.size(); ++i) {
    double& widest = widest_[ix(i)];
    widest = std::max(widest, high[i] - low[i]);
    if (!closing_.free[i] && widest > 0) share = std::max(share, (high[i] - low[i]) / widest);
  }
  for (size_t i = 0; i < low.size(); ++i) {
    if (!std::isfinite(most(i)) || most(i) == 0) continue;
    double& size = size_[ix(i)];
    size = forced_ || closing_.free[i] ? std::max(size, most(i)) : std::max(high[i] - low[i], share * most(i));
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
    for (size_t i = 0; i < y.size(); ++i)
      y[i] += sample * 1e-3 * size_[ix(i)] * std::sin(1.0 + 2.3 * static_cast<double>(i) + sample);
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

}  // namespace saltus
