#include "flow/step/length.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/index.hpp"
#include "flow/present_share.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

constexpr double least_share = 1e-3;  // of the others, or of what it will soon be: what a state is measured by at least

/// Through values at 0, 1/4, .. 1.
class Quartic {
 public:
  explicit Quartic(std::array<double, 5> values) : c_(values) {
    for (size_t order = 1; order < c_.size(); ++order) {
      for (size_t k = c_.size() - 1; k >= order; --k) c_[k] = (c_[k] - c_[k - 1]) / static_cast<double>(order);
    }
  }
  double operator()(double s) const {
    double value = c_[4];
    for (int k = 3; k >= 0; --k) value = value * (4 * s - k) + c_[static_cast<size_t>(k)];
    return value;
  }

 private:
  std::array<double, 5> c_;
};

}  // namespace

StepLength::StepLength(const Program& program, const RunOptions& options, StepSolver& solver)
    : program_(program),
      options_(options),
      solver_(solver),
      adaptive_(options.step->dt == 0),
      dt_(adaptive_ ? (options.until - options.from) / 100 : options.step->dt) {
  for (int i = 0; i < program.switches(); ++i) any_timed_ = any_timed_ || (program.timed(i) && program.moves(i));
}

bool StepLength::start(const Here& here) {
  if (!adaptive_) return true;
  Vec f;
  solver_.rates(here.t(), here.x, here.u, f);
  const double all = std::max(here.x.max_abs(), 1e-12);
  for (Index i = 0; i < f.size(); ++i) {
    if (f[i] != 0) dt_ = std::min(dt_, 1e-2 * (std::abs(here.x[i]) + 1e-2 * all) / std::abs(f[i]));
  }
  dt_ = std::max(dt_, 1e-12 * (options_.until - options_.from));
  return f.allFinite();
}

bool StepLength::misses_sizes(const Here& here) const {
  if (!adaptive_) return false;
  for (Index i = 0; i < here.x.size(); ++i) {
    const bool nothing = here.x[i] == 0 && (largest_.size() == 0 || largest_[i] == 0);
    if (nothing && program_.vanishing(static_cast<int>(i)).size() > 1) return true;
  }
  return false;
}

void StepLength::take_sizes(const std::vector<double>& sizes) {
  if (largest_.size() == 0) largest_ = Vec::Zero(static_cast<Index>(sizes.size()));
  for (Index i = 0; i < largest_.size(); ++i) {
    if (largest_[i] == 0 && !program_.vanishing(static_cast<int>(i)).empty()) largest_[i] = least_share * sizes[at(i)];
  }
}

/// p and its slope over the step at the share s of it.
void StepLength::cubic_at(const Here& here, const Step& step, double s, Vec& p, Vec& rate) {
  p.resize(step.x.size());
  rate.resize(step.x.size());
  for (Index i = 0; i < p.size(); ++i) {
    const double slope = (step.x[i] - here.x[i]) / step.h;
    const double second = 3 * slope - 2 * step.f0[i] - step.f1[i], third = step.f0[i] + step.f1[i] - 2 * slope;
    p[i] = here.x[i] + step.h * s * (step.f0[i] + s * (second + s * third));
    rate[i] = step.f0[i] + s * (2 * second + 3 * s * third);
  }
}

/// |p' - f(p)| of the cubic at the share s of the step; else the change of the rates.
Vec StepLength::defect(const Here& here, const Step& step, double s) {
  const double h = step.h, t = here.t();
  Vec f0, f1;
  if (!step.cubic) {
    solver_.rates(t, here.x, step.u1, f0);
    solver_.rates(t + h, step.x, step.u1, f1);
    return h / 2 * (f1 - f0);
  }
  Vec p, rate;
  cubic_at(here, step, s, p, rate);
  Vec u = step.u0 + s * (step.u1 - step.u0);
  if (step.algebraic) u += 2 * s * (1 - s) * (2 * step.um - step.u0 - step.u1);  // the parabola through all three
  // Between its points a raised condition is off by what forces undo, and the surface would seem to move by that.
  if (solver_.raised() && solver_.size() <= split_often_up_to) solver_.meet_conditions(t + s * h, u, p);
  solver_.rates(t + s * h, p, u, f0);
  return h * (rate - f0);
}

/// Takes out what active items would undo: with C e = h C G du, the part h G du is an error of forces, not of the
/// motion. Gives that error, in units of the root of the tolerance: forces decide when something moves, and are of
/// lower order.
double StepLength::leave_to_forces(const StepSlopes& slopes, const Step& step, Vec& error) const {
  if (solver_.size() > split_often_up_to) return 0;
  const Mat D = slopes.D;
  std::vector<int> forces;
  for (const int item : solver_.active()) {
    if (D.row(item).isZero(0)) forces.push_back(item);
  }
  if (forces.empty()) return 0;
  const Mat C = Mat(slopes.C).rows_at(forces), G = Mat(slopes.G).columns_at(forces);
  const Orthogonal forces_by_rates(C * G);
  const Vec du = forces_by_rates.solve(C * error);
  error -= G * du;
  const double size = std::max(1.0, step.u1.max_abs());
  // The last digits of states over a step that is very short are large forces: no shorter one has better ones.
  const double rounding = forces_by_rates.solve(C.cwiseAbs() * (16 * eps * step.x.cwiseAbs())).max_abs();
  return std::max(du.max_abs() - rounding, 0.0) / (step.h * size * std::sqrt(options_.tolerance));
}

/// The defect in units of what the tolerance allows.
double StepLength::ratio(const Here& here, const Step& step, double s) {
  Vec error = defect(here, step, s);
  if (!error.allFinite()) return 1e6;
  Vec least = Vec::Zero(error.size());
  double ratio = 0;
  if (!solver_.active().empty()) {
    const StepSlopes& slopes = solver_.slopes(here.t() + step.h, step.x, step.u1);
    ratio = std::pow(leave_to_forces(slopes, step, error), 2);
    // A stack that rests has no other size to measure errors by than that of its forces.
    least = resting_share * (options_.until - options_.from) * (slopes.G.cwiseAbs() * step.u1.cwiseAbs());
  }
  largest_ = largest_.size() == 0 ? Vec(here.x.cwiseAbs()) : Vec(largest_.cwiseMax(here.x.cwiseAbs()));
  const double all = std::max({largest_.maxCoeff(), step.x.max_abs(), least.maxCoeff(), 1e-12});
  for (Index i = 0; i < error.size(); ++i) {
    const double own = std::max(std::abs(step.x[i]), std::abs(here.x[i]));
    const int state = static_cast<int>(i);
    const double share = present_share(
        program_, state, [&](int j) { return step.x[j]; }, [&](int j) { return largest_[j]; });
    const double scale = program_.vanishing(state).empty()
                             ? std::max({own, largest_[i], least_share * all, least[i]})
                             : std::max(own, std::max(share, vanished_floor) * largest_[i]);
    if (scale == 0) continue;
    ratio = std::max(ratio, std::abs(error[i]) / (options_.tolerance * scale));
  }
  return ratio;
}

/// Where on the step arguments of exp have their tops, and those of tanh, cosh and logistic functions are nearest to
/// zero, and points beside them where the function has changed by a fair share.
std::vector<double> StepLength::find_peaks(const Here& here, const Step& step) {
  const std::vector<Operation>& peaks = solver_.peaks();
  if (!step.cubic || peaks.empty()) return {};
  constexpr int parts = 4, looks = 64;
  std::vector<std::array<double, parts + 1>> arguments(peaks.size());
  Vec p, rate;
  for (size_t k = 0; k <= parts; ++k) {
    const double s = static_cast<double>(k) / parts;
    cubic_at(here, step, s, p, rate);
    solver_.rates(here.t() + s * step.h, p, step.u0 + s * (step.u1 - step.u0), rate);
    for (size_t i = 0; i < peaks.size(); ++i) arguments[i][k] = solver_.argument(peaks[i]);
  }
  std::vector<double> out;
  for (size_t i = 0; i < peaks.size() && out.size() < 3 * most_peaks; ++i) {
    const bool top = peaks_at_top(peaks[i].instr);
    const auto [low, high] = std::minmax_element(arguments[i].begin(), arguments[i].end());
    if (!(*high - *low > 0.5 * (top ? blind_rise : blind_distance)) || !std::isfinite(*high - *low)) continue;
    const Quartic a(arguments[i]);
    const auto slope = [&](double s) { return a(s + 0.5 / looks) - a(s - 0.5 / looks); };
    const auto look_for = [&](const auto& function, const auto& is_peak) {
      for (int look = 0; look < looks; ++look) {
        double from = static_cast<double>(look) / looks, to = static_cast<double>(look + 1) / looks;
        const double before = function(from);
        if (before == 0 || before * function(to) > 0 || !is_peak(from, before)) continue;
        for (int halving = 0; halving < 40; ++halving) {
          const double middle = (from + to) / 2;
          (function(middle) * before > 0 ? from : to) = middle;
        }
        out.push_back(from);
        for (const double side : {-1.0, 1.0}) {
          double d = side * beside_peak;
          for (int halving = 0; halving < 60 && std::abs(a(from + d) - a(from)) > 2; ++halving) d /= 2;
          if (from + d > 0 && from + d < 1) out.push_back(from + d);
        }
      }
    };
    look_for(slope, [&](double s, double rise) { return rise * (top ? 1 : -a(s)) > 0; });
    if (!top) look_for(a, [](double, double) { return true; });
  }
  return out;
}

/// No step leaps over a peak: it ends short of one that it does not see.
bool StepLength::sees_peaks(const Here& here, const Step& step, double shortest) {
  if (!(step.h > 1.1 * shortest)) return true;
  for (const double s : find_peaks(here, step)) {
    if (!(ratio(here, step, s) > 1)) continue;
    dt_ = std::max(shortest, step.h * std::clamp(short_of_peak * s, 0.2, 0.9));
    return false;
  }
  return true;
}

double StepLength::shortest(double t) const {
  return 64 * eps * std::max(std::abs(t), 1e-3 * (options_.until - options_.from));
}

bool StepLength::allows(const Here& here, const Step& step) {
  if (!adaptive_) return true;
  const double ratio = this->ratio(here, step, 0.75), h = step.h, span = options_.until - options_.from;
  const double factor = std::clamp(0.9 * std::pow(std::max(ratio, 1e-10), -1 / (step.cubic ? 4.0 : 2.0)), 0.2, 3.0);
  const double shortest = this->shortest(here.t());
  if (ratio > 1 && h > 1.1 * shortest) {
    dt_ = std::max(shortest, h * std::min(factor, 0.9));
    return false;
  }
  if (!sees_peaks(here, step, shortest)) return false;
  forced_ = ratio > 1 ? forced_ + 1 : 0;
  // A step cut short by the end or an event says little about the next.
  if (h >= 0.5 * dt_) dt_ = std::max(h * factor, shortest);
  dt_ = std::min(dt_, span);
  return true;
}

double StepLength::until_timed(const Here& here, double h) {
  if (!adaptive_ || !any_timed_) return h;
  constexpr int looks = 16;
  Vec tests;
  for (int k = 1; k < looks; ++k) {
    const double tau = h * k / looks;
    solver_.tests(here.t() + tau, here.x, here.u, tests);
    for (int i = 0; i < program_.switches(); ++i) {
      const char c = here.mode().switches[at(i)];
      if (program_.timed(i) && ((c == '+' && tests[i] < 0) || (c == '-' && tests[i] > 0))) return tau;
    }
  }
  return h;
}

}  // namespace saltus
