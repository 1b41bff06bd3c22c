#include "flow/step/time_stepping.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "flow/event/event_driven.hpp"
#include "flow/events.hpp"
#include "flow/recorder.hpp"
#include "flow/smooth.hpp"
#include "flow/step/solve.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

constexpr int most_splits = 8;          // of one step; what changes more often is left to the complementarity problem
constexpr int split_up_to = 2000;       // unknowns; a split costs several factorisations
constexpr double close_enough = 1e-14;  // of a located zero, in units of the change over the step
constexpr double no_distance = 1e-9;    // a disagreement that starts this close to zero is there from the beginning
constexpr int most_halvings = 40;

size_t at(int i) { return static_cast<size_t>(i); }
int sign_of(double v) { return v > 0 ? 1 : v < 0 ? -1 : 0; }
std::vector<double> values(const Vec& x) { return {x.data(), x.data() + x.size()}; }

/// Something that does not agree with the mode at the end of a step; `value` is negative (or a zero that was crossed).
struct Disagreement {
  Guard guard;
  double start = 0, value = 0;

  /// How much it changes over the step: what counts as zero is measured by that.
  double range() const { return std::max(start, 0.0) - value; }
};

class Stepper {
 public:
  Stepper(EngineMemory& memory, StepSolver& solver, const RunOptions& options)
      : program_(memory.program),
        model_(program_.model()),
        options_(options),
        step_(*options.step),
        series_(*memory.series),
        smooth_(series_, memory.order, memory.step_ratio, options),
        solver_(solver),
        recorder_(program_, options),
        events_(series_, *memory.point, memory.chatter, recorder_, options),
        m_(program_.switches()),
        q_(program_.constraints()) {
    moment_.clock.set(options.from);
    moment_.x = options.initial;
    for (const Switch& s : model_.form.switches) hold_.push_back(constant_value(s.hold, options.parameters));
    is_step_.assign(at(m_), 0);
    for (const Counter& c : model_.form.counters) is_step_[at(c.below)] = is_step_[at(c.above)] = 1;
    for (int i = 0; i < m_; ++i) any_timed_ = any_timed_ || (program_.timed(i) && program_.moves(i));
    for (const Gap& g : model_.form.gaps) degree_two_ = degree_two_ || g.degree == 2;
    wants_pieces_ = recorder_.wants_pieces() || !model_.sections.empty();
    dt_ = step_.dt > 0 ? step_.dt : (options.until - options.from) / 100;
  }

  Trajectory run() {
    const auto begin = std::chrono::steady_clock::now();
    moment_.mode.switches.assign(at(m_), '+');
    moment_.mode.constraints.assign(at(q_), 'o');
    moment_.counters.assign(at(model_.form.counter_values), 0.0);
    events_.start(moment_, smooth_.estimate_scale(moment_));
    take_over();
    if (step_.dt == 0 && !recorder_.ended()) first_step();
    for (double k = 1; !recorder_.ended() && t() < options_.until; ++k) {
      if (step_.dt > 0) {
        const double next = options_.from + step_.dt * k;
        advance_to(next > options_.until - 1e-9 * step_.dt ? options_.until : next);
      } else {
        advance_to(std::min(options_.until, t() + dt_));
      }
      moment_.x = values(x_);
      recorder_.step(moment_);
    }
    finish(Why::time, "");
    Trajectory result = recorder_.take();
    result.cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
  }

 private:
  double t() const { return moment_.t(); }
  const Mode& mode() const { return moment_.mode; }
  bool simpson() const { return step_.theta == 0.5; }
  double resolution() const { return same_time_bits * eps * std::max(std::abs(t()), dt_ * same_time_share); }

  void finish(Why why, std::string message) {
    moment_.x = values(x_);
    recorder_.finish(why, std::move(message), moment_);
  }

  /// After an event: state, mode and what is held are those of the moment.
  void take_over() {
    x_ = Eigen::Map<const Vec>(moment_.x.data(), static_cast<Eigen::Index>(moment_.x.size()));
    if (recorder_.ended()) return;
    held_.clear();
    series_.set_mode(mode());
    if (series_.evaluate(moment_.x, t(), moment_.counters) == SeriesStatus::ok) held_ = series_.held_values();
    solver_.set_counters(moment_.counters);
    u_.resize(m_ + q_);
    for (int i = 0; i < m_ + q_; ++i) u_[i] = series_.unknown(i)[0];
    solver_.set_mode(mode(), held_);
    solver_.guess(u_);
    solver_.tests(t(), x_, u_, tests_);
  }

  /// A first guess of the step from the size of states and rates.
  void first_step() {
    Vec f;
    solver_.rates(t(), x_, u_, f);
    const double all = std::max(x_.cwiseAbs().maxCoeff(), 1e-12);
    double shortest = (options_.until - options_.from) / 100;
    for (Eigen::Index i = 0; i < f.size(); ++i) {
      if (f[i] != 0) shortest = std::min(shortest, 1e-2 * (std::abs(x_[i]) + 1e-2 * all) / std::abs(f[i]));
    }
    if (!f.allFinite()) return end_undefined();
    dt_ = std::max(shortest, 1e-12 * (options_.until - options_.from));
  }

  // ---- one step -----------------------------------------------------------------------------------------------------

  void advance_to(double end) {
    int splits = 0, halvings = 0;
    double longest = HUGE_VAL;  // of a part, where Newton's method or the error wants short ones
    while (!recorder_.ended() && t() < end) {
      double h = moment_.clock.until(end);
      // The steps of a grid differ in their last bits; the same h keeps the factors.
      if (step_.dt > 0 && std::abs(h - step_.dt) < 1e-9 * step_.dt) h = step_.dt;
      bool whole = h <= longest;
      h = std::min(h, longest);
      if (step_.dt == 0) h = std::min(h, first_timed(h));
      const double tick = events_.jumps().next_tick();
      if (std::isfinite(tick) && moment_.clock.until(tick) <= h + resolution()) {
        h = std::max(moment_.clock.until(tick), 0.0);
        whole = std::abs(tick - end) <= resolution();
      }
      if (h > 0 && t() + h == t()) return finish(Why::stalled, fmt::format("a step of {:.3g} does not move time", h));
      if (h == 0) {
        tick_clocks();
        continue;
      }
      StepFate fate = in_mode(h);
      if (fate == StepFate::ok && step_.dt == 0 && !error_allows(h)) {
        end = t() + dt_;
        continue;
      }
      if (fate == StepFate::ok) {
        disagreements(now_, found_);
        if (found_.empty()) {
          accept(now_, whole ? end : t() + h);
          tick_clocks();
          longest *= 2;
          continue;
        }
        const bool splittable = simpson() && splits < most_splits && solver_.size() <= split_up_to;
        const bool must = std::any_of(found_.begin(), found_.end(), [&](const Disagreement& d) { return located(d); });
        if (splittable || must) {
          const Located where = locate(h, must);
          if (where == Located::ahead) {
            ++splits;
            const double at_event = std::abs(t() + now_.h - end) <= 4 * eps * std::abs(end) ? end : t() + now_.h;
            accept(now_, at_event);
            if (!recorder_.ended() && happen()) continue;
          } else if (where == Located::here) {
            ++splits;
            if (happen()) continue;
          }
          if (recorder_.ended()) return;
        }
      }
      // A field that ends at its surface may be undefined beyond it.
      if ((fate == StepFate::undefined || fate == StepFate::not_converged) && ++halvings < most_halvings) {
        longest = h / 4;
        continue;
      }
      // Only backward Euler settles on a surface of higher degree.
      h = std::min(h, moment_.clock.until(end));
      if (!(h > 0)) continue;
      fate = unknown_mode(h, fate == StepFate::higher_degree ? 1.0 : step_.theta);
      if (fate == StepFate::ok) {
        tick_clocks();
        longest *= 2;
        continue;
      }
      if (fate == StepFate::undefined) return end_undefined();
      if (fate == StepFate::unsolved) return finish(Why::inconsistent, trouble_);
      if (fate == StepFate::not_converged && ++halvings < most_halvings) {
        longest = h / 4;
        continue;
      }
      if (!recorder_.ended())
        finish(Why::stalled, fmt::format("the equations of a step of {:.3g} could not be solved", h));
    }
  }

  /// An adaptive step must not leap over switches of time alone, which no error of states tells: it ends just after the
  /// first of a few points at which one of them has turned.
  double first_timed(double h) {
    if (!any_timed_) return h;
    constexpr int looks = 16;
    Vec tests;
    for (int k = 1; k < looks; ++k) {
      const double tau = h * k / looks;
      solver_.tests(t() + tau, x_, u_, tests);
      for (int i = 0; i < m_; ++i) {
        const char c = mode().switches[at(i)];
        if (program_.timed(i) && ((c == '+' && tests[i] < 0) || (c == '-' && tests[i] > 0))) return tau;
      }
    }
    return h;
  }

  StepFate in_mode(double h) {
    solver_.set_mode(mode(), held_);
    if (simpson()) return solver_.simpson(x_, t(), h, wants_pieces_ || step_.dt == 0, now_);
    return solver_.theta_step(x_, t(), h, step_.theta, now_);
  }

  void end_undefined() {
    const double largest = x_.cwiseAbs().maxCoeff();
    if (!(largest < 1e100)) return finish(Why::diverged, fmt::format("a state has grown beyond {:.3g}", largest));
    finish(Why::undefined, "a rate is not a finite number here");
  }

  /// Adaptive: compares the step just made with its defect; sets the next step. False: it must be shorter.
  bool error_allows(double h) {
    Vec error;
    if (now_.cubic) {  // |p' - f(p)| at three quarters of the step, where the cubic does not collocate
      const double s = 0.75;
      const Vec slope = (now_.x - x_) / h;
      const Vec p = x_ + h * s * now_.f0 + h * s * s * (3 * slope - 2 * now_.f0 - now_.f1) +
                    h * s * s * s * (now_.f0 + now_.f1 - 2 * slope);
      const Vec rate =
          now_.f0 + 2 * s * (3 * slope - 2 * now_.f0 - now_.f1) + 3 * s * s * (now_.f0 + now_.f1 - 2 * slope);
      Vec f;
      const Vec u = now_.u0 + s * (now_.u1 - now_.u0);
      solver_.rates(t() + s * h, p, u, f);
      error = h * (rate - f);
    } else {
      Vec f0, f1;
      solver_.rates(t(), x_, now_.u1, f0);
      solver_.rates(t() + h, now_.x, now_.u1, f1);
      error = h / 2 * (f1 - f0);
    }
    largest_ = largest_.size() == 0 ? Vec(x_.cwiseAbs()) : Vec(largest_.cwiseMax(x_.cwiseAbs()));
    const double all = std::max({largest_.maxCoeff(), now_.x.cwiseAbs().maxCoeff(), 1e-12});
    double ratio = 0;
    for (Eigen::Index i = 0; i < error.size(); ++i) {
      const double scale = std::max({std::abs(now_.x[i]), largest_[i], 1e-3 * all});
      ratio = std::max(ratio, std::abs(error[i]) / (options_.tolerance * scale));
    }
    if (std::isnan(ratio)) ratio = 1e6;
    const double order = now_.cubic ? 4 : 2;
    const double factor = std::clamp(0.9 * std::pow(std::max(ratio, 1e-10), -1 / order), 0.2, 3.0);
    const double shortest = 64 * eps * std::max(std::abs(t()), 1e-3 * (options_.until - options_.from));
    if (ratio > 1 && h > shortest) {
      dt_ = std::max(shortest, h * std::min(factor, 0.9));
      return false;
    }
    // A step cut short by the end or an event says little about the next.
    if (h >= 0.5 * dt_ || factor < 1) dt_ = std::min(h >= 0.5 * dt_ ? h * factor : dt_, options_.until - options_.from);
    return true;
  }

  // ---- where mode and signs disagree --------------------------------------------------------------------------------

  /// Jumps and the steps of floor are located whatever theta is: a counter moves by one step at a time.
  bool located(const Disagreement& d) const {
    return d.guard.kind == GuardKind::jump || (d.guard.kind == GuardKind::surface && is_step_[at(d.guard.item)]);
  }

  /// What does not agree with the mode at the end of a step.
  void disagreements(const Step& s, std::vector<Disagreement>& found) const {
    const TestLayout& layout = solver_.layout();
    found.clear();
    for (int i = 0; i < m_; ++i) {
      const char c = mode().switches[at(i)];
      if (!program_.moves(i) || c == '=') continue;
      if (c == '0') {
        const double room = hold_[at(i)] - std::abs(s.u1[i]);
        const int side = s.u1[i] > 0 ? 1 : -1;
        if (room < -bound_margin && !holds(i))
          found.push_back({{GuardKind::sigma, i, side}, hold_[at(i)] - side * s.u0[i], room});
        continue;
      }
      const int side = c == '+' ? 1 : -1;
      if (side * s.tests[i] < 0) found.push_back({{GuardKind::surface, i, side}, side * tests_[i], side * s.tests[i]});
    }
    const double strongest = q_ > 0 ? s.u1.tail(q_).cwiseAbs().maxCoeff() : 0;
    for (int j = 0; j < q_; ++j) {
      if (mode().constraints[at(j)] == 'o') {
        const double g = s.tests[layout.gap(j)];
        if (g < 0) found.push_back({{GuardKind::gap, j, 1}, tests_[layout.gap(j)], g});
      } else if (s.u1[m_ + j] < -bound_margin * strongest && !holds(m_ + j)) {
        found.push_back({{GuardKind::lambda, j, 1}, s.u0[m_ + j], s.u1[m_ + j]});
      }
    }
    find_jumps(s, found);
  }

  bool holds(int item) const {
    return std::any_of(held_.begin(), held_.end(), [item](const auto& h) { return h.first == item; });
  }

  void find_jumps(const Step& s, std::vector<Disagreement>& found) const {
    const TestLayout& layout = solver_.layout();
    const Jumps& jumps = events_.jumps();
    for (int k = 0; k < layout.jumps; ++k) {
      const int side = jumps.side(at(k));
      const double c = s.tests[layout.jump(k)];
      if (jumps.has_clock(at(k)) || side == 0 || side * c >= 0 || !jumps.wanted(at(k), -side)) continue;
      found.push_back({{GuardKind::jump, k, side}, side * tests_[layout.jump(k)], side * c});
    }
  }

  enum class Located {
    ahead,   ///< now_ has been shortened to the first disagreement
    here,    ///< it is there from the beginning
    nowhere  ///< it could not be found
  };

  /// Shortens the step in now_ to the first disagreement in found_ (with theta above 1/2 only what must be located).
  Located locate(double h, bool must) {
    const bool only_some = must && !simpson();
    const auto look = [&](const Step& s, std::vector<Disagreement>& found) {
      disagreements(s, found);
      if (only_some) std::erase_if(found, [&](const Disagreement& d) { return !located(d); });
    };
    look(now_, found_);
    double lo = 0, hi = h;
    std::vector<Disagreement> at_hi = found_, at_try;
    double least_range = HUGE_VAL;
    for (const Disagreement& d : at_hi) least_range = std::min(least_range, d.range());
    Step last = now_;
    const auto same = [](const Disagreement& a, const Disagreement& b) { return a.guard == b.guard; };
    // From a surface just left, the first part of the step may be free of what is found at its end.
    const bool from_zero = std::any_of(at_hi.begin(), at_hi.end(),
                                       [](const Disagreement& d) { return !(d.start > no_distance * -d.value); });
    if (from_zero) {
      const std::vector<Disagreement> at_whole = at_hi;
      double tau = h;
      for (int k = 0; k < 18; ++k) {
        tau /= 4;
        if (in_mode(tau) != StepFate::ok) return Located::nowhere;
        look(now_, at_try);
        if (at_try.empty()) break;
        at_hi = at_try;
        last = now_;
        hi = tau;
      }
      if (!at_try.empty()) {
        const double range = at_whole.front().range();
        found_ = at_try;
        std::erase_if(found_, [&](const Disagreement& d) {
          const auto whole = std::find_if(at_whole.begin(), at_whole.end(), [&](const auto& w) { return same(w, d); });
          return d.start > no_distance * (whole == at_whole.end() ? range : whole->range());
        });
        return found_.empty() ? Located::nowhere : Located::here;
      }
      lo = tau;
      for (Disagreement& d : at_hi) d.start = value_of(d, now_);
    }
    int side = 0;
    double weight_lo = 1, weight_hi = 1, tau_tried = hi, tau_before = lo;
    Disagreement tried{.guard = {GuardKind::surface, -1, 0}};
    for (int k = 0; k < 100; ++k) {
      double tau = hi;
      const Disagreement* first = nullptr;
      for (const Disagreement& d : at_hi) {
        const double a = std::max(d.start, 0.0) * weight_lo, b = -d.value * weight_hi;
        const double estimate = a + b > 0 ? lo + (hi - lo) * a / (a + b) : hi;
        if (!first || estimate < tau) {
          first = &d;
          tau = estimate;
        }
      }
      const double least = 2 * eps * std::max(std::abs(t() + hi), hi);
      if (hi - lo <= least || -first->value <= close_enough * least_range) break;
      if (k == 0 && last.cubic) tau = root_on_cubic(*first, last, lo, hi, tau);
      if (k > 0 && same(*first, tried) && tried.value != tried.start) {  // secant through the last two trials
        const double secant = tau_tried - tried.value * (tau_tried - tau_before) / (tried.value - tried.start);
        if (secant > lo && secant < hi) tau = secant;
      }
      tau = std::clamp(tau, lo + 1e-3 * (hi - lo) * 1e-6, hi - 1e-3 * (hi - lo) * 1e-6);
      if (k > 40) tau = (lo + hi) / 2;
      if (tau <= lo || tau >= hi) break;
      const Disagreement target = *first;
      if (!same(target, tried)) {
        tried = target;  // the trial before: the end of the step
        tau_tried = hi;
      }
      if (in_mode(tau) != StepFate::ok) return Located::nowhere;
      look(now_, at_try);
      tried.start = tried.value;
      tried.value = value_of(target, now_);
      tau_before = tau_tried;
      tau_tried = tau;
      if (at_try.empty()) {
        lo = tau;
        for (Disagreement& d : at_hi) d.start = value_of(d, now_);
        const double left = value_of(target, now_);
        if (left <= close_enough * least_range) {  // close enough from this side
          last = now_;
          hi = tau;
          for (Disagreement& d : at_hi) d.value = value_of(d, now_);
          break;
        }
        weight_hi = side == -1 ? weight_hi / 2 : 1;
        weight_lo = 1;
        side = -1;
      } else {
        for (Disagreement& d : at_try) {
          const auto before =
              std::find_if(at_hi.begin(), at_hi.end(), [&](const Disagreement& o) { return same(o, d); });
          if (before != at_hi.end()) d.start = before->start;
        }
        at_hi = at_try;
        hi = tau;
        last = now_;
        weight_lo = side == 1 ? weight_lo / 2 : 1;
        weight_hi = 1;
        side = 1;
      }
    }
    // What is at zero here takes part; a disagreement that is still ahead of the point does not.
    now_ = last;
    found_.clear();
    for (const Disagreement& d : at_hi) {
      if (d.value <= no_distance * least_range) found_.push_back(d);
    }
    return found_.empty() ? Located::nowhere : Located::ahead;
  }

  /// Where the dense output of a step from here makes a disagreement vanish; `guess` where that is not to be seen.
  double root_on_cubic(const Disagreement& d, const Step& s, double lo, double hi, double guess) {
    if (d.guard.kind == GuardKind::sigma || d.guard.kind == GuardKind::lambda) return guess;
    Vec f0, f1;
    solver_.rates(t(), x_, s.u0, f0);
    solver_.rates(t() + s.h, s.x, s.u1, f1);
    const Vec slope = (s.x - x_) / s.h;
    const Vec c2 = (3 * slope - 2 * f0 - f1) / s.h, c3 = (f0 + f1 - 2 * slope) / (s.h * s.h);
    Step point;
    double a = std::max(d.start, 0.0), b = -d.value;
    for (int k = 0, side = 0; k < 12 && a + b > 0; ++k) {
      const double tau = lo + (hi - lo) * a / (a + b);
      if (!(tau > lo && tau < hi)) break;
      guess = tau;
      point.x = x_ + tau * (f0 + tau * (c2 + tau * c3));
      point.u1 = s.u0 + tau / s.h * (s.u1 - s.u0);
      solver_.tests(t() + tau, point.x, point.u1, point.tests);
      const double value = value_of(d, point);
      if (!std::isfinite(value) || std::abs(value) <= 1e-12 * (d.start - d.value)) break;
      (value > 0 ? lo : hi) = tau;
      (value > 0 ? a : b) = std::abs(value);
      if (value > 0 && side > 0) b /= 2;
      if (value < 0 && side < 0) a /= 2;
      side = value > 0 ? 1 : -1;
    }
    return guess;
  }

  /// The value of a disagreement at the end of another step from the same point.
  double value_of(const Disagreement& d, const Step& s) const {
    const TestLayout& layout = solver_.layout();
    const int i = d.guard.item;
    switch (d.guard.kind) {
      case GuardKind::surface: return d.guard.side * s.tests[i];
      case GuardKind::sigma: return hold_[at(i)] - d.guard.side * s.u1[i];
      case GuardKind::gap: return s.tests[layout.gap(i)];
      case GuardKind::lambda: return s.u1[m_ + i];
      default: return d.guard.side * s.tests[layout.jump(i)];
    }
  }

  // ---- at a located point -------------------------------------------------------------------------------------------

  /// Whether anything has changed there.
  bool happen() {
    std::vector<Guard> guards;
    for (const Disagreement& d : found_) guards.push_back(d.guard);
    return happen_at(std::move(guards));
  }

  bool happen_at(std::vector<Guard> guards) {
    const Mode before = mode();
    const std::vector<std::pair<int, double>> held = held_;
    const std::vector<double> counters = moment_.counters;
    moment_.x = values(x_);
    std::sort(guards.begin(), guards.end(), [](const Guard& a, const Guard& b) { return a.item < b.item; });
    const bool seen = events_.happen(moment_, guards, smooth_.estimate_scale(moment_), resolution(), true);
    take_over();
    const bool moved = mode() != before || moment_.counters != counters || moment_.x != values_before_;
    return (seen && moved) || held != held_;
  }

  /// Conditions that are zero here up to the accuracy of a step are due together with a clock that ticks.
  void add_jumps_here(std::vector<Guard>& guards) {
    const TestLayout& layout = solver_.layout();
    Vec f, later;
    solver_.rates(t(), x_, u_, f);
    const double soon = no_distance * dt_;
    const Vec ahead = x_ + soon * f;
    solver_.tests(t() + soon, ahead, u_, later);
    for (int k = 0; k < layout.jumps; ++k) {
      const int side = events_.jumps().side(at(k));
      if (events_.jumps().has_clock(at(k)) || side == 0 || !events_.jumps().wanted(at(k), -side)) continue;
      if (side * later[layout.jump(k)] < 0) guards.push_back({GuardKind::jump, k, side});
    }
  }

  void tick_clocks() {
    if (recorder_.ended()) return;
    std::vector<Guard> guards;
    for (const int k : events_.jumps().ticking(t(), resolution())) guards.push_back({GuardKind::clock, k, 0});
    if (guards.empty()) return;
    add_jumps_here(guards);
    happen_at(std::move(guards));
  }

  // ---- the step in an unknown mode ----------------------------------------------------------------------------------

  /// A complementarity step over the rest: what changes, changes inside it without being located.
  StepFate unknown_mode(double h, double theta) {
    Step s;
    Mode next;
    StepFate fate = solve_unknown(h, theta, s, next);
    if (fate == StepFate::not_converged) fate = solve_unknown(h, 1.0, s, next);
    if (fate != StepFate::ok) return fate;
    std::vector<Disagreement> crossed;
    const auto look = [&] {
      disagreements(s, crossed);
      std::erase_if(crossed, [&](const Disagreement& d) { return !located(d); });
    };
    look();
    if (!crossed.empty()) {  // always located, on this step by its linear output
      double first = 1;
      for (const Disagreement& d : crossed) {
        if (d.start > 0) first = std::min(first, d.start / (d.start - d.value));
      }
      if (first < 1 - 1e-12 && first > 1e-12) {
        fate = solve_unknown(first * h, theta, s, next);
        if (fate != StepFate::ok) return fate;
      }
    }
    Transition event{.before = mode(), .x_minus = values(x_), .counters_before = moment_.counters};
    const Vec tests_before = tests_;
    const double t_before = t();
    for (const int j : rebounded_) event.impulse.emplace_back(j, s.h * s.u1[m_ + j]);
    held_.clear();
    accept(s, t() + s.h);
    if (recorder_.ended()) return StepFate::ok;
    moment_.mode = next;
    u_ = s.u1;
    project();
    moment_.x = values(x_);
    event.after = next;
    event.counters = moment_.counters;
    if (event.before != event.after || !event.impulse.empty()) {
      place(event, tests_before, t_before);
      recorder_.happened(event, moment_);
    }
    if (!recorder_.ended() && !crossed.empty()) {
      found_ = crossed;
      happen();
    }
    return StepFate::ok;
  }

  /// A change inside a step without being located: a crossing is put where a straight line crosses, the others at the
  /// end.
  void place(Transition& event, const Vec& tests_before, double t_before) const {
    double s = 1;
    for (int i = 0; i < m_; ++i) {
      const double a = tests_before[i], b = tests_[i];
      if (event.before.switches[at(i)] != event.after.switches[at(i)] && a * b < 0) s = std::min(s, a / (a - b));
    }
    event.t = t_before + s * (t() - t_before);
    event.x_plus.resize(event.x_minus.size());
    for (size_t i = 0; i < event.x_plus.size(); ++i)
      event.x_plus[i] = event.x_minus[i] + s * (moment_.x[i] - event.x_minus[i]);
  }

  /// Complementarity with what the problem itself cannot say: which formulas hold for switches inside them, which gaps
  /// close, which static friction still holds.
  StepFate solve_unknown(double h, double theta, Step& s, Mode& next) {
    const int items = m_ + q_;
    std::vector<char> open_formula(at(m_), 0), near(at(q_), 0), may_hold(at(m_), 0), left(at(m_), 0);
    for (int i = 0; i < m_; ++i) may_hold[at(i)] = mode().switches[at(i)] == '0';
    for (int j = 0; j < q_; ++j) near[at(j)] = model_.form.gaps[at(j)].degree != 2 || mode().constraints[at(j)] == 'c';
    const std::vector<double> r = restitutions();
    std::vector<double> rate(at(q_), 0.0);
    if (degree_two_) {
      for (int j = 0; j < q_; ++j) rate[at(j)] = tests_[m_ + q_ + j];
    }
    std::vector<BoundState> state;
    for (int round = 0; round < 2 * items + 10; ++round) {
      Mode key = mode();
      for (int i = 0; i < m_; ++i) {
        if (open_formula[at(i)] && !program_.plain(i)) key.switches[at(i)] = '0';
      }
      solver_.set_mode(key);
      ItemBounds bounds{Vec(items), Vec(items), Vec::Zero(items)};
      for (int i = 0; i < m_; ++i) {
        const bool fixed = !program_.moves(i) || is_step_[at(i)] || mode().switches[at(i)] == '=' ||
                           (!program_.plain(i) && key.switches[at(i)] != '0');
        const double value = solver_.items()[i];
        const double limit = may_hold[at(i)] && !left[at(i)] ? hold_[at(i)] : 1.0;
        bounds.lo[i] = fixed ? value : -limit;
        bounds.hi[i] = fixed ? value : limit;
      }
      for (int j = 0; j < q_; ++j) {
        bounds.lo[m_ + j] = 0;
        bounds.hi[m_ + j] = near[at(j)] ? HUGE_VAL : 0.0;
        if (model_.form.gaps[at(j)].degree == 2) bounds.offset[m_ + j] = r[at(j)] * std::min(rate[at(j)], 0.0);
      }
      const StepFate fate = solver_.complementarity(x_, t(), h, theta, bounds, s, state, trouble_);
      if (fate != StepFate::ok) return fate;
      bool changed = false;
      const auto set = [&](char& flag) {
        changed = changed || !flag;
        flag = 1;
      };
      for (int i = 0; i < m_; ++i) {
        if (!program_.moves(i)) continue;
        if (is_step_[at(i)] || mode().switches[at(i)] == '=') continue;
        if (bounds.lo[i] == bounds.hi[i]) {
          if (s.tests[i] * s.u1[i] < 0) set(open_formula[at(i)]);
          continue;
        }
        if (hold_[at(i)] > 1) {
          const bool stays = (state[at(i)] == BoundState::upper && mode().switches[at(i)] == '+') ||
                             (state[at(i)] == BoundState::lower && mode().switches[at(i)] == '-');
          if (!may_hold[at(i)] && !stays)
            set(may_hold[at(i)]);
          else if (may_hold[at(i)] && state[at(i)] != BoundState::inside)
            set(left[at(i)]);
        }
      }
      for (int j = 0; j < q_; ++j) {
        if (!near[at(j)] && s.tests[solver_.layout().gap(j)] < 0) set(near[at(j)]);
      }
      if (!changed) break;
    }
    next = mode();
    for (int i = 0; i < m_; ++i) {
      if (!program_.moves(i) || is_step_[at(i)] || mode().switches[at(i)] == '=') continue;
      const bool fixed = !program_.plain(i) && !open_formula[at(i)] && mode().switches[at(i)] != '0';
      if (fixed) continue;
      next.switches[at(i)] = state[at(i)] == BoundState::upper ? '+' : state[at(i)] == BoundState::lower ? '-' : '0';
    }
    rebounded_.clear();
    for (int j = 0; j < q_; ++j) {
      const bool pressed = near[at(j)] && state[at(m_ + j)] == BoundState::inside;
      next.constraints[at(j)] = pressed ? 'c' : 'o';
      if (model_.form.gaps[at(j)].degree != 2) continue;
      if (pressed && mode().constraints[at(j)] == 'o') rebounded_.push_back(j);
      if (pressed && r[at(j)] * std::min(rate[at(j)], 0.0) < 0) next.constraints[at(j)] = 'o';
    }
    return StepFate::ok;
  }

  /// Restitutions at the start of the step: they may depend on states.
  std::vector<double> restitutions() {
    std::vector<double> out(at(q_), 0.0);
    if (!degree_two_) return out;
    Mode open = mode();
    open.constraints.assign(at(q_), 'o');
    series_.set_mode(open);
    const std::vector<double> x = values(x_);
    series_.evaluate_with(x, t(), moment_.counters, {});
    const Jet<double>& actions = series_.actions();
    for (int j = 0; j < q_; ++j) {
      if (model_.form.gaps[at(j)].restitution) out[at(j)] = actions.output(program_.restitution(j))[0];
    }
    return out;
  }

  /// Closed contacts go back to their gaps: a few sweeps along the gradients.
  void project() {
    if (!step_.projection || !degree_two_ || mode().constraints.find('c') == std::string::npos) return;
    const TestLayout& layout = solver_.layout();
    const double least = 16 * eps * (1 + x_.cwiseAbs().maxCoeff());
    solver_.set_mode(mode(), held_);
    for (int sweep = 0; sweep < 3; ++sweep) {
      solver_.tests(t(), x_, u_, tests_);
      bool any = false;
      Eigen::SparseMatrix<double, Eigen::RowMajor> P;
      for (int j = 0; j < q_; ++j) {
        if (mode().constraints[at(j)] != 'c' || model_.form.gaps[at(j)].degree != 2) continue;
        const double g = tests_[layout.gap(j)];
        if (std::abs(g) <= least) continue;
        if (!any) P = solver_.slopes(t(), x_, u_).P;
        any = true;
        double square = 0;
        for (Eigen::SparseMatrix<double, Eigen::RowMajor>::InnerIterator it(P, j); it; ++it)
          square += it.value() * it.value();
        if (square == 0) continue;
        for (Eigen::SparseMatrix<double, Eigen::RowMajor>::InnerIterator it(P, j); it; ++it)
          x_[it.col()] -= it.value() * g / square;
      }
      if (!any) return;
    }
    solver_.tests(t(), x_, u_, tests_);
  }

  // ---- what is kept -------------------------------------------------------------------------------------------------

  /// The state moves to the end of the step; sections on the way are reported.
  void accept(const Step& s, double end) {
    if (wants_pieces_) make_piece(s, end);
    recorder_.slid(mode(), s.h);
    for (int i = 0; i < model_.form.visible; ++i) {
      if (mode().switches[at(i)] == '0') recorder_.drifted(mode(), std::abs(s.tests[i]));
    }
    if (!model_.sections.empty()) {
      find_sections(s);
      moment_.x = values(x_);
      recorder_.pass(piece_, crossings_, moment_, resolution());
      if (recorder_.ended()) {
        x_ = Eigen::Map<const Vec>(moment_.x.data(), x_.size());
        return;
      }
    }
    if (recorder_.wants_pieces()) recorder_.keep(piece_, moment_, held_);
    x_ = s.x;
    u_ = s.u1;
    tests_ = s.tests;
    moment_.clock.set(end);
    if (!(x_.cwiseAbs().maxCoeff() < largest_state)) return finish(Why::diverged, "a state grows without bound");
    note_signs();
    project();
    values_before_ = values(x_);
  }

  void make_piece(const Step& s, double end) {
    const size_t n = static_cast<size_t>(x_.size());
    const size_t stride = s.cubic ? 4 : 2;
    piece_.start = t();
    piece_.length = end - t();
    piece_.coefficients.assign(n * stride, 0.0);
    for (size_t i = 0; i < n; ++i) {
      const Eigen::Index e = static_cast<Eigen::Index>(i);
      double* c = &piece_.coefficients[i * stride];
      const double slope = (s.x[e] - x_[e]) / s.h;
      c[0] = x_[e];
      c[1] = slope;
      if (!s.cubic) continue;
      c[1] = s.f0[e];
      c[2] = (3 * slope - 2 * s.f0[e] - s.f1[e]) / s.h;
      c[3] = (s.f0[e] + s.f1[e] - 2 * slope) / (s.h * s.h);
    }
  }

  void note_signs() {
    const TestLayout& layout = solver_.layout();
    for (int k = 0; k < layout.jumps; ++k) {
      // A zero here is judged where it is left or stays.
      if (const int s = sign_of(tests_[layout.jump(k)]); s != 0) events_.jumps().note(at(k), s, 0);
    }
    for (int s = 0; s < layout.sections; ++s) {
      if (const int sign = sign_of(tests_[layout.section(s)]); sign != 0) recorder_.set_section_sign(at(s), sign);
    }
  }

  // ---- sections -----------------------------------------------------------------------------------------------------

  void find_sections(const Step& s) {
    crossings_.clear();
    const TestLayout& layout = solver_.layout();
    for (int k = 0; k < layout.sections; ++k) {
      const int side = recorder_.section_sign(at(k));
      const double last = s.tests[layout.section(k)];
      if (model_.sections[at(k)].kind != Section::Kind::on || side * last >= 0) continue;
      crossings_.push_back({k, passage(k, s), -side});
    }
  }

  /// Where the dense output meets a section whose sign has changed: regula falsi along the piece.
  double passage(int section, const Step& s) {
    const int output = solver_.layout().section(section);
    double lo = 0, hi = piece_.length;
    double a = std::abs(tests_[output]) + 1e-300, b = std::abs(s.tests[output]);
    const int side = recorder_.section_sign(at(section));
    std::vector<double> x(static_cast<size_t>(x_.size()));
    Vec tests;
    int last = 0;
    for (int k = 0; k < 60 && hi - lo > 4 * eps * std::abs(t() + hi); ++k) {
      const double tau = k > 40 ? (lo + hi) / 2 : lo + (hi - lo) * a / (a + b);
      if (tau <= lo || tau >= hi) break;
      Trajectory::evaluate(piece_, program_.states(), tau, x.data());
      const Vec u = s.u0 + tau / piece_.length * (s.u1 - s.u0);
      solver_.tests(t() + tau, Eigen::Map<const Vec>(x.data(), x_.size()), u, tests);
      const double v = side * tests[output];
      if (v == 0) return tau;
      if (v > 0) {
        lo = tau, a = v;
        if (last == 1) b /= 2;
        last = 1;
      } else {
        hi = tau, b = -v;
        if (last == -1) a /= 2;
        last = -1;
      }
    }
    return hi;
  }

  const Program& program_;
  const Model& model_;
  const RunOptions& options_;
  StepOptions step_;
  Series& series_;
  Smooth smooth_;  // for the time scale of the flow at events
  StepSolver& solver_;
  Recorder recorder_;
  Events events_;
  int m_, q_;
  double dt_ = 0;
  Moment moment_;
  Vec x_, u_, tests_;
  std::vector<std::pair<int, double>> held_;
  std::vector<double> hold_, values_before_;
  std::vector<char> is_step_;  // switches that are steps of floor
  std::vector<int> rebounded_;
  Step now_;
  std::vector<Disagreement> found_;
  Piece piece_;
  std::vector<Crossing> crossings_;
  Vec largest_;
  std::string trouble_;
  bool degree_two_ = false, wants_pieces_ = false, any_timed_ = false;
};

}  // namespace

StepMemory::StepMemory() = default;
StepMemory::~StepMemory() = default;

Trajectory simulate_time_stepping(EngineMemory& memory, StepMemory& steps, const RunOptions& options) {
  memory.prepare(options);
  if (!steps.solver)
    steps.solver = std::make_unique<StepSolver>(memory.program, options.parameters);
  else
    steps.solver->bind(options.parameters);
  return Stepper(memory, *steps.solver, options).run();
}

}  // namespace saltus
