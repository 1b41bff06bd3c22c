#include "analysis/orbit_problem.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "analysis/special_curve.hpp"
#include "base/index.hpp"
#include "expr/diff.hpp"
#include "flow/parameter_directions.hpp"

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

/// All parameters, where those followed have these values.
std::vector<double> OrbitProblem::parameters_with(const std::vector<double>& values) const {
  std::vector<GivenParameter> given;
  for (size_t k = 0; k < followed_.size(); ++k) given.push_back({followed_[k], values[k]});
  return parameter_values(model_, given);
}

/// The values of those followed.
std::vector<double> OrbitProblem::followed_of(const std::vector<double>& parameters) const {
  std::vector<double> values;
  for (const int p : followed_) values.push_back(parameters[at(p)]);
  return values;
}

void OrbitProblem::bind(const std::vector<double>& values) {
  const std::vector<double> all = parameters_with(values);
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
  set_clocks();
}

/// When legs that end by the clock do so, and how that moves with the parameters.
void OrbitProblem::set_clocks() {
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
  const Index n = program_.states();
  for (size_t i = 0; i < legs_.size(); ++i) {
    legs_[i].x = z.segment((n + 1) * ix(i), n);
    legs_[i].length = z[(n + 1) * ix(i) + n];
  }
  bind(values_of(z));
}

std::vector<double> OrbitProblem::values_of(const Vec& z) const { return {z.end() - ix(followed_.size()), z.end()}; }

double OrbitProblem::period_of(const Vec& z) const {
  if (forced_) return constant_value(clock_, parameters_with(values_of(z)));
  const Index n = program_.states();
  double sum = 0;
  for (Index i = n; i + ix(followed_.size()) < z.size(); i += n + 1) sum += std::abs(z[i]);
  return symmetry_ ? 2 * sum : sum;
}

Vec OrbitProblem::pack(const std::vector<double>& values) const {
  const Index n = program_.states(), d = ix(values.size());
  Vec z((n + 1) * ix(legs_.size()) + d);
  for (size_t i = 0; i < legs_.size(); ++i) {
    z.segment((n + 1) * ix(i), n) = legs_[i].x;
    z[(n + 1) * ix(i) + n] = legs_[i].length;
  }
  for (Index k = 0; k < d; ++k) z[z.size() - d + k] = values[ux(k)];
  return z;
}

void OrbitProblem::set_scale() {
  if (legs_.empty()) return;
  const Index n = program_.states(), d = ix(followed_.size());
  scale_.resize((n + 1) * ix(legs_.size()) + d);
  // However many legs there are, they count together as one orbit.
  const double share = std::sqrt(static_cast<double>(legs_.size()));
  shooting_->set_size(size_, period_);
  for (size_t i = 0; i < legs_.size(); ++i) {
    scale_.segment((n + 1) * ix(i), n) = share * shooting_->sizes_at(legs_[i].x, most_);
    scale_[(n + 1) * ix(i) + n] = share * period_;
  }
  for (Index k = 0; k < d; ++k) scale_[scale_.size() - d + k] = ranges_[ux(k)];
}

/// Derives from the signature: leading zeros, ticks of clocks, the end of the last leg.
void OrbitProblem::prepare_legs() {
  shooting_->set_size(size_, period_);
  legs_ = with_nodes(std::move(legs_), *shooting_, t0_, most_);
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

bool OrbitProblem::large_equations(const Vec& z, Vec& r, LargeSlopes& slopes) {
  put(z);
  std::vector<LegSlopes> of_legs;
  if (!shooting_->equations(legs_, closing_, t0_, -1, r, of_legs)) return false;
  const auto chain =
      std::make_shared<LegChain>(*shooting_, legs_, closing_, of_legs, scale_, Vec::Zero(r.size()), start_by_);
  slopes.solve = [chain](const Vec& border, const Vec& right, double value) {
    chain->set_border(border);
    const LegChain::RightSide reduced = chain->reduce(right, value);
    return chain->expand(reduced, Lu(chain->ends()).solve(reduced.ends));
  };
  slopes.orientation = [chain](const Vec& border) {
    chain->set_border(border);
    return chain->sign() * Lu(unit_rows(chain->ends())).determinant();
  };
  return true;
}

bool OrbitProblem::residual(const Vec& z, Vec& r) {
  put(z);
  return shooting_->residual(legs_, closing_, t0_, -1, r);
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

OrbitProblem::Frozen OrbitProblem::frozen_signature() const {
  return {legs_, anchor_, closing_, symmetry_, scale_, size_, most_, clock_, period_, widest_, told_};
}

void OrbitProblem::restore(const Frozen& frozen) {
  legs_ = frozen.legs;
  anchor_ = frozen.anchor;
  closing_ = frozen.closing;
  symmetry_ = frozen.symmetry;
  scale_ = frozen.scale;
  size_ = frozen.size;
  most_ = frozen.most;
  clock_ = frozen.clock;
  period_ = frozen.period;
  widest_ = frozen.widest;
  told_ = frozen.told;
  shooting_->set_size(size_, period_);
}

}  // namespace saltus
