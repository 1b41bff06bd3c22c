// The signature of an orbit: taken from runs, cut in a quiet place, put in phase.
#include <algorithm>
#include <cmath>

#include "analysis/jump_watch.hpp"
#include "analysis/orbit_problem.hpp"
#include "base/index.hpp"
#include "flow/parameter_directions.hpp"
#include "model/period.hpp"

namespace saltus {
namespace {

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

/// A run that starts beside what it slides on, by rounding, gets there at once: that is no leg.
void drop_rounding(std::vector<Leg>& legs, double duration) {
  constexpr double nothing = 1e-12;
  while (legs.size() > 1 && legs[0].happens && legs[0].event.jumps.empty() && legs[0].event.hits.empty() &&
         legs[0].event.resting.empty() && std::abs(legs[0].length) < nothing * duration) {
    legs[1].length += legs[0].length;
    legs.erase(legs.begin());
  }
}

const Arc& arc_at(const Trajectory& run, double t) { return run.arcs[at(run.pieces[run.piece_at(t)].arc)]; }

}  // namespace

std::optional<Vec> OrbitProblem::take(const Orbit& orbit) {
  const Index n = program_.states();
  forced_ = !orbit.autonomous;
  values_ = options_.run.parameters;
  directions_ = parameter_directions(model_, values_, followed_).p;
  RunOptions run = options_.run;
  run.stop = {};  // between points, not within them
  shooting_.emplace(program_, run, forced_, direction_);
  shooting_->bind(values_, directions_);
  measure(orbit.trajectory);
  period_ = orbit.period;
  if (forced_) find_clock(orbit.period);
  closing_ = {.free = orbit.free, .sign = Vec::Ones(n), .shift = column_at(orbit.shift.data(), n)};
  told_ = orbit.state;
  symmetry_.reset();
  if (orbit.symmetric && model_.form.jumps.empty())
    symmetry_ = find_symmetry(program_, shooting_->variation(),
                              {&orbit.trajectory, direction_ * orbit.period, orbit.free, orbit.shift, size_});
  if (symmetry_) closing_.sign = symmetry_->sign;
  const double t = quiet_time(orbit.trajectory);
  legs_.assign(1, Leg{.arc = arc_at(orbit.trajectory, t)});
  return cut_run(orbit.trajectory(t), t, orbit.period * (symmetry_ ? 0.5 : 1.0), followed_of(values_));
}

bool OrbitProblem::is_own_image(const Vec& z) {
  if (symmetry_ || !model_.form.jumps.empty()) return false;
  put(z);
  RunOptions o = options_.run;
  o.parameters = values_;
  o.initial.assign(legs_[0].x.begin(), legs_[0].x.end());
  shooting_->land_at_start(legs_, t0_, o.initial);
  const double period = period_of(z);
  const std::optional<Trajectory> run = run_for(o, t0_, period);
  const std::vector<double> shift(closing_.shift.begin(), closing_.shift.end());
  return run &&
         find_symmetry(program_, shooting_->variation(), {&*run, direction_ * period, closing_.free, shift, size_});
}

/// The sizes of the states on an orbit: as large as they become, or as they would move on a piece.
void OrbitProblem::measure(const Trajectory& orbit) {
  const Index n = program_.states();
  const std::vector<double> sizes = sizes_on(orbit.pieces, ux(n));
  size_ = most_ = column_at(sizes.data(), n);
  // An orbit that rests at zero, but for what is left of its search, has the size of what was begun with.
  constexpr double nothing = 1e-9;
  const Vec begun = column_at(options_.run.initial.data(), n).cwiseAbs();
  const double usual = begun.maxCoeff() > 0 ? begun.maxCoeff() : 1.0, largest = size_.maxCoeff();
  for (Index i = 0; i < n; ++i) {
    if (forced_ && largest < nothing * usual) size_[i] = begun[i] > 0 ? begun[i] : usual;
    if (size_[i] == 0) size_[i] = std::max(largest, 1e-300);
    size_[i] = modulus_of(i).value_or(size_[i]);
  }
}

/// The modulus of a state that may grow by multiples of a number, whatever the value of the state.
std::optional<double> OrbitProblem::modulus_of(Index state) const {
  for (const auto& [grows, modulus] : options_.modulo) {
    if (grows == static_cast<int>(state)) return modulus;
  }
  return std::nullopt;
}

/// The period as a formula of parameters: so many periods of time in the model, or of a section by the clock.
void OrbitProblem::find_clock(double orbit_period) {
  const std::optional<Period> period = period_in_time(model_, values_);
  if (period) {
    clock_ = Expr(std::round(orbit_period / period->value)) * period->formula;
    return;
  }
  for (const Section& s : model_.sections) {
    if (s.kind != Section::Kind::every) continue;
    const double every = constant_value(s.value, values_), count = std::round(orbit_period / every);
    if (std::abs(count * every - orbit_period) < 1e-9 * orbit_period) clock_ = Expr(count) * s.value;
  }
}

std::optional<Vec> OrbitProblem::take_run(std::vector<double> x, double t, double duration,
                                          const std::vector<double>& values) {
  RunOptions o = options_.run;
  o.parameters = parameters_with(values);
  // Contacts at rest may be violated by rounding.
  shooting_->bind(o.parameters, directions_);
  shooting_->land_at_start(legs_, t, x);
  o.initial = x;
  const std::optional<Trajectory> ran = run_for(o, t, duration);
  if (!ran) return std::nullopt;
  const Trajectory& run = *ran;
  legs_ = legs_of(run, x, t, direction_, true);
  drop_rounding(legs_, duration);
  if (!forced_) {
    const Arc arc = run.arcs.empty() ? run.last : run.arcs.front();
    shooting_->bind(o.parameters, directions_);
    put_phase(column_at(x.data(), ix(x.size())), shooting_->variation().rates(arc, x, t));
  }
  values_ = o.parameters;
  t0_ = t;
  shooting_->bind(values_, directions_);
  freeze_jumps(program_, shooting_->variation(), legs_, t0_);
  prepare_legs();
  values_.clear();
  bind(values);
  set_scale();
  return pack(values);
}

std::optional<Vec> OrbitProblem::take_near(const Orbit& orbit, const std::vector<double>& parameters, double t) {
  const Trajectory& run = orbit.trajectory;
  if (!forced_) t = quiet_time(run);
  const double since = std::fmod(direction_ * (t - run.start_time), orbit.period);
  const double here = run.start_time + direction_ * (since < 0 ? since + orbit.period : since);
  legs_.assign(1, Leg{.arc = arc_at(run, here)});
  return take_run(run(here), forced_ ? t : here, orbit.period * (symmetry_ ? 0.5 : 1.0), followed_of(parameters));
}

std::optional<Vec> OrbitProblem::take_other(const Vec& move, bool twice) {
  std::vector<double> x;
  for (Index i = 0; i < move.size(); ++i) x.push_back(legs_[0].x[i] + move[i]);
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
  return take_run(std::move(x), t0_, duration, followed_of(values_));
}

std::optional<Vec> OrbitProblem::take_legs(std::vector<Leg> legs) {
  const std::vector<double> values = followed_of(values_);
  legs_ = std::move(legs);
  prepare_legs();
  bind(values);
  set_scale();
  return pack(values);
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

std::optional<Vec> OrbitProblem::cut_anew(const Vec& z) {
  put(z);
  const std::vector<double> values = values_of(z);
  RunOptions o = options_.run;
  o.parameters = values_;
  const double duration = period_of(z) * (symmetry_ ? 0.5 : 1.0);
  o.initial.assign(legs_[0].x.begin(), legs_[0].x.end());
  shooting_->land_at_start(legs_, t0_, o.initial);
  const std::optional<Trajectory> ran = run_for(o, t0_, duration);
  if (!ran) return std::nullopt;
  const Trajectory& run = *ran;
  const double t = quiet_time(run);
  const Frozen keep = frozen_signature();
  legs_.assign(1, Leg{.arc = arc_at(run, t)});
  std::optional<Vec> out = cut_run(run(t), t, duration, values);
  if (!out) restore(keep);
  return out;
}

bool OrbitProblem::needs_cut(const Vec& z) const {
  const Index n = program_.states();
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
    const Shot::End& end = view.shot.ends[i];
    const Vec before = shooting_->sizes_at(view.legs[i].x, most_);
    const Vec after = shooting_->sizes_at(column_at(end.x_minus.data(), size_.size()), most_);
    const Mat scaled = after.cwiseInverse().asDiagonal() * end.tangents * before.asDiagonal();
    if (scaled.norm() > unbearable) return true;
  }
  return false;
}

void OrbitProblem::put_phase(const Vec& x, const Vec& f) {
  anchor_.through = x;
  anchor_.normal = f.cwiseQuotient(size_.cwiseProduct(size_));
  for (Index i = 0; i < f.size(); ++i) {
    if (closing_.free[ux(i)]) anchor_.normal[i] = 0;
  }
  closing_.normal = anchor_.normal;
  closing_.through = anchor_.through;
}

Vec OrbitProblem::flow_at_cut() { return shooting_->flow_at(legs_, t0_).front(); }

double OrbitProblem::straightness(const Vec& z) {
  if (forced_) return 1;
  put(z);
  const Vec along = in_units(flow_at_cut()), normal = in_units(anchor_.normal.cwiseProduct(size_).cwiseProduct(size_));
  return normal.dot(along) / (normal.norm() * along.norm());
}

bool OrbitProblem::renew_phase(const Vec& z) {
  constexpr double straight = 0.9;
  if (straightness(z) > straight) return false;
  put_phase(legs_[0].x, flow_at_cut());
  return true;
}

}  // namespace saltus
