#include "flow/step/locate.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "flow/step/dense.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

constexpr double close_enough = 1e-14;  // of a located zero, in units of the change over the step
constexpr int most_trials = 100;
constexpr int bisect_after = 40;   // trials: what regula falsi has not found by then is no simple zero
constexpr int most_quarters = 18;  // of a step, on the way back to a surface just left

/// The search on one step: [lo, hi] are lengths without and with disagreements.
class Search {
 public:
  Search(StepSolver& solver, const StepRule& rule, const Judge& judge, const Here& here, Step& step,
         const RestsBeside& rests)
      : solver_(solver),
        rule_(rule),
        judge_(judge),
        here_(here),
        rests_(rests),
        step_(step),
        last_(step),
        hi_(step.h) {}

  OnStep run(std::vector<Disagreement>& found) {
    at_hi_ = found;
    measure();
    const bool from_zero = std::any_of(at_hi_.begin(), at_hi_.end(),
                                       [](const Disagreement& d) { return !(d.start > located_share * -d.value); });
    if (from_zero) {
      if (const OnStep where = leave_start(found); where != OnStep::ahead) return where;
    }
    if (!close_in()) return OnStep::nowhere;
    // Items that are zero here take part; a disagreement that is still ahead of the point does not.
    step_ = last_;
    found.clear();
    for (const Disagreement& d : at_hi_) {
      if (d.value <= located_share * least_range_) found.push_back(d);
    }
    return found.empty() ? OnStep::nowhere : OnStep::ahead;
  }

 private:
  bool attempt(double tau) {
    if (step_in_mode(solver_, rule_, here_, tau, step_) != StepFate::ok) return false;
    judge_.look(here_, step_, !rule_.simpson(), at_try_);
    std::erase_if(at_try_, [&](const Disagreement& d) { return rests_(d.guard, step_); });
    return true;
  }

  /// From a surface just left, the first part of the step may be free of what is found at its end.
  OnStep leave_start(std::vector<Disagreement>& found) {
    const std::vector<Disagreement> at_whole = at_hi_;
    double tau = hi_;
    for (int k = 0; k < most_quarters; ++k) {
      tau /= 4;
      if (!attempt(tau)) return OnStep::nowhere;
      if (at_try_.empty()) {
        move_lo(tau);
        measure();
        return OnStep::ahead;
      }
      at_hi_ = at_try_;
      last_ = step_;
      hi_ = tau;
    }
    found = at_try_;
    std::erase_if(found, [&](const Disagreement& d) {
      const auto whole = std::find_if(at_whole.begin(), at_whole.end(), [&](const auto& w) { return w.same(d); });
      return d.start > located_share * (whole == at_whole.end() ? at_whole.front() : *whole).range();
    });
    return found.empty() ? OnStep::nowhere : OnStep::here;
  }

  /// Measures the size that counts as zero between lo and hi: after a hop, far less than over the whole step.
  void measure() {
    least_range_ = HUGE_VAL;
    for (const Disagreement& d : at_hi_) least_range_ = std::min(least_range_, d.range());
  }

  void move_lo(double tau) {
    lo_ = tau;
    for (Disagreement& d : at_hi_) d.start = judge_.value(d, step_);
  }

  /// Illinois on the disagreement that comes first, with a secant where the last two trials were for the same one.
  bool close_in() {
    for (int k = 0; k < most_trials; ++k) {
      const auto [target, estimate] = first();
      const double least = 2 * eps * std::max(std::abs(here_.t() + hi_), hi_);
      if (hi_ - lo_ <= least || -target.value <= close_enough * least_range_) break;
      const double tau = k > bisect_after ? (lo_ + hi_) / 2 : guess(target, estimate, k);
      if (tau <= lo_ || tau >= hi_) break;
      if (!attempt(tau)) return false;
      keep_crossed();
      remember(target, tau);
      if (at_try_.empty() ? below(target, tau) : above(tau)) break;
    }
    return true;
  }

  /// A jump that began on the wrong side by rounding and has been on the right one since is on its way no more, however
  /// close to zero it is again.
  void keep_crossed() {
    for (const Disagreement& d : at_hi_) {
      const bool listed = std::any_of(at_try_.begin(), at_try_.end(), [&](const auto& o) { return o.same(d); });
      if (d.guard.kind != GuardKind::jump || listed || !(d.start > 0 && judge_.value(d, step_) < 0)) continue;
      at_try_.push_back({d.guard, d.start, judge_.value(d, step_)});
    }
  }

  std::pair<Disagreement, double> first() const {
    const Disagreement* first = nullptr;
    double tau = hi_;
    for (const Disagreement& d : at_hi_) {
      const double a = std::max(d.start, 0.0) * weight_lo_, b = -d.value * weight_hi_;
      const double estimate = a + b > 0 ? lo_ + (hi_ - lo_) * a / (a + b) : hi_;
      if (!first || estimate < tau) {
        first = &d;
        tau = estimate;
      }
    }
    return {*first, tau};
  }

  double guess(const Disagreement& target, double tau, int trial) {
    if (trial == 0 && last_.cubic) tau = root_on_cubic(target, tau);
    if (trial > 0 && target.same(tried_) && tried_.value != tried_.start) {
      const double secant = tau_tried_ - tried_.value * (tau_tried_ - tau_before_) / (tried_.value - tried_.start);
      if (secant > lo_ && secant < hi_) tau = secant;
    }
    const double inside = 1e-9 * (hi_ - lo_);
    return std::clamp(tau, lo_ + inside, hi_ - inside);
  }

  /// The last two trials of one target: their lengths, and its values in `start` and `value`.
  void remember(const Disagreement& target, double tau) {
    if (!target.same(tried_)) {
      tried_ = target;  // the trial before: the end of the step
      tau_tried_ = hi_;
    }
    tried_.start = tried_.value;
    tried_.value = judge_.value(target, step_);
    tau_before_ = tau_tried_;
    tau_tried_ = tau;
  }

  /// No disagreement up to tau. Whether the zero is close enough from this side.
  bool below(const Disagreement& target, double tau) {
    move_lo(tau);
    if (judge_.value(target, step_) <= close_enough * least_range_) {
      last_ = step_;
      hi_ = tau;
      for (Disagreement& d : at_hi_) d.value = judge_.value(d, step_);
      return true;
    }
    weight_hi_ = side_ == -1 ? weight_hi_ / 2 : 1;
    weight_lo_ = 1;
    side_ = -1;
    return false;
  }

  bool above(double tau) {
    for (Disagreement& d : at_try_) {
      const auto before = std::find_if(at_hi_.begin(), at_hi_.end(), [&](const auto& o) { return o.same(d); });
      if (before != at_hi_.end()) d.start = before->start;
    }
    at_hi_ = at_try_;
    hi_ = tau;
    last_ = step_;
    weight_lo_ = side_ == 1 ? weight_lo_ / 2 : 1;
    weight_hi_ = 1;
    side_ = 1;
    return false;
  }

  /// Where the dense output of the step makes a disagreement vanish; `guess` where that is not to be seen.
  double root_on_cubic(const Disagreement& d, double guess) {
    if (d.guard.kind == GuardKind::sigma || d.guard.kind == GuardKind::lambda) return guess;
    const Step& s = last_;
    Vec f0, f1;
    solver_.rates(here_.t(), here_.x, s.u0, f0);
    solver_.rates(here_.t() + s.h, s.x, s.u1, f1);
    const Vec slope = (s.x - here_.x) / s.h;
    const Vec c2 = (3 * slope - 2 * f0 - f1) / s.h, c3 = (f0 + f1 - 2 * slope) / (s.h * s.h);
    Step point;
    double lo = lo_, hi = hi_, a = std::max(d.start, 0.0), b = -d.value;
    for (int k = 0, side = 0; k < 12 && a + b > 0; ++k) {
      const double tau = lo + (hi - lo) * a / (a + b);
      if (!(tau > lo && tau < hi)) break;
      guess = tau;
      point.x = here_.x + tau * (f0 + tau * (c2 + tau * c3));
      point.u1 = s.u0 + tau / s.h * (s.u1 - s.u0);
      solver_.tests(here_.t() + tau, point.x, point.u1, point.tests);
      const double value = judge_.value(d, point);
      if (!std::isfinite(value) || std::abs(value) <= 1e-12 * (d.start - d.value)) break;
      (value > 0 ? lo : hi) = tau;
      (value > 0 ? a : b) = std::abs(value);
      if (value > 0 && side > 0) b /= 2;
      if (value < 0 && side < 0) a /= 2;
      side = value > 0 ? 1 : -1;
    }
    return guess;
  }

  StepSolver& solver_;
  const StepRule& rule_;
  const Judge& judge_;
  const Here& here_;
  const RestsBeside& rests_;
  Step& step_;  // the last trial
  Step last_;   // over hi
  double lo_ = 0, hi_;
  std::vector<Disagreement> at_hi_, at_try_;
  double least_range_ = HUGE_VAL;
  int side_ = 0;  // on which the last trial fell
  double weight_lo_ = 1, weight_hi_ = 1;
  Disagreement tried_{.guard = {GuardKind::surface, -1, 0}};
  double tau_tried_ = 0, tau_before_ = 0;
};

}  // namespace

StepFate step_in_mode(StepSolver& solver, const StepRule& rule, const Here& here, double h, Step& out) {
  solver.set_mode(here.mode(), here.held, rule.simpson());
  if (rule.simpson()) return solver.simpson(here.x, here.t(), h, here.u, rule.rates, out);
  return solver.theta_step(here.x, here.t(), h, rule.theta, out);
}

OnStep locate(StepSolver& solver, const StepRule& rule, const Judge& judge, const Here& here, Step& step,
              const RestsBeside& rests, std::vector<Disagreement>& found) {
  return Search(solver, rule, judge, here, step, rests).run(found);
}

namespace {

constexpr int parts = 4;  // of a step along which what is watched is looked at
using Values = std::array<double, parts + 1>;

/// The polynomial through values at 0, 1, .. as a function of its differences.
double interpolate(const Values& differences, double at) {
  double value = differences[parts];
  for (int k = parts - 1; k >= 0; --k) value = value * (at - k) + differences[static_cast<size_t>(k)];
  return value;
}

Values differences_of(Values values) {
  for (size_t order = 1; order <= parts; ++order) {
    for (size_t k = parts; k >= order; --k) values[k] = (values[k] - values[k - 1]) / static_cast<double>(order);
  }
  return values;
}

/// True if the polynomial through these values tells what the function is between them, as far as its sign goes.
bool tells(const Values& values, double promised, double is) {
  constexpr double share = 0.01;  // of how much it changes
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double off = std::abs(promised - is);
  if (!(off > share * (*high - *low)) || !std::isfinite(off)) return true;
  return (*low > 0 || *high < 0) && std::min(std::abs(*low), std::abs(*high)) > 4 * off;
}

/// Where between its ends the polynomial through these values is lowest, if that is below zero; else 0.
double lowest_below_zero(const Values& all) {
  constexpr int looks = 8 * parts;
  const double size = std::max(all.front(), all.back());
  const Values values = differences_of(all);
  double where = 0, lowest = HUGE_VAL;
  for (int look = 1; look < looks; ++look) {
    const double at = static_cast<double>(look) * parts / looks, value = interpolate(values, at);
    if (value < lowest) lowest = value, where = at;
  }
  // The vertex of the parabola through the lowest value and its neighbours, twice.
  for (double d = static_cast<double>(parts) / looks; d > 1e-3; d /= 16) {
    const double a = interpolate(values, where - d), b = interpolate(values, where), c = interpolate(values, where + d);
    if (const double bend = a - 2 * b + c; bend > 0) where += std::clamp((a - c) / (2 * bend), -1.0, 1.0) * d;
  }
  return where > 0 && where < parts && interpolate(values, where) < -located_share * size ? where / parts : 0;
}

}  // namespace

Along look_along(StepSolver& solver, const Judge& judge, const Here& here, const Step& step, const Recorder& recorder,
                 const RestsBeside& rests) {
  Along out;
  const std::vector<Guard> watched = judge.watched(here);
  if ((watched.empty() && !recorder.has_surface_sections()) || !step.cubic) return out;
  const auto look_at = [&](double s, Step& point) {
    point.x = states_along(here, step, s);
    point.u1 = step.u0 + s * (step.u1 - step.u0);
    solver.tests(here.t() + s * step.h, point.x, point.u1, point.tests);
  };
  std::array<Step, parts + 1> points;
  std::array<Step, 2> between;
  constexpr std::array<double, 2> there{1.37, 3.48};
  for (size_t k = 0; k <= parts; ++k) look_at(static_cast<double>(k) / parts, points[k]);
  for (size_t k = 0; k < there.size(); ++k) look_at(there[k] / parts, between[k]);
  for (const Guard& guard : watched) {
    Values values;
    for (size_t k = 0; k <= parts; ++k) values[k] = judge.value({guard}, points[k]);
    const Values differences = differences_of(values);
    bool told = true;
    for (size_t k = 0; k < there.size(); ++k)
      told = told && tells(values, interpolate(differences, there[k]), judge.value({guard}, between[k]));
    const double where = step.h * lowest_below_zero(values);
    if ((!told || where > 0) && rests(guard, step)) continue;
    out.told = out.told && told;
    if (!judge.may_happen(guard)) continue;
    if (where > 0 && (out.dip == 0 || where < out.dip)) {
      out.dip = where;
      out.timed = judge.sees_time(guard);
    }
  }
  const TestLayout& layout = judge.layout();
  for (int s = 0; s < layout.sections && recorder.has_surface_sections(); ++s) {
    const Index output = layout.section(s);
    const int known = recorder.section_sign(static_cast<size_t>(s));
    const double side = known != 0 ? known : points[1].tests[output] < 0 ? -1 : 1;
    if (recorder.section_shared(static_cast<size_t>(s)).rests(here.mode())) continue;
    Values values;
    for (size_t k = 0; k <= parts; ++k) values[k] = side * points[k].tests[output];
    if (!(values.back() > 0)) continue;  // it is seen at the end
    const Values differences = differences_of(values);
    for (size_t k = 0; k < there.size(); ++k)
      out.told = out.told && tells(values, interpolate(differences, there[k]), side * between[k].tests[output]);
    const double where = step.h * lowest_below_zero(values);
    if (where > 0 && (out.passes == 0 || where < out.passes)) out.passes = where;
  }
  return out;
}

}  // namespace saltus
