#include "flow/time_stepping.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "code/rounding.hpp"
#include "flow/step_choice.hpp"
#include "flow/step_solve.hpp"
#include "solve/contact.hpp"

namespace saltus {
namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();
constexpr int most_splits = 8;          // of one step; what changes more often is left to the complementarity problem
constexpr int split_up_to = 2000;       // unknowns; a split costs several factorisations
constexpr double choice_step = 1e-5;    // of the complementarity step that chooses a mode, in units of the step
constexpr double close_enough = 1e-14;  // of a located zero, in units of the change over the step
constexpr int most_halvings = 40;

size_t at(int i) { return static_cast<size_t>(i); }
int sign_of(double v) { return v > 0 ? 1 : v < 0 ? -1 : 0; }

/// Something that does not agree with the mode at the end of a step; `value` is negative (or a zero that was crossed).
struct Disagreement {
  enum class Kind { surface, sigma, gap, lambda, jump, wrap };
  Kind kind = Kind::surface;
  int index = 0;  // of the switch, constraint, jump or counter
  double start = 0, value = 0;

  /// How much it changes over the step: what counts as zero is measured by that.
  double range() const { return std::max(start, 0.0) - value; }
};

class Stepper {
 public:
  Stepper(const Program& program, const RunOptions& options)
      : program_(program),
        model_(program.model()),
        options_(options),
        step_(*options.step),
        solver_(program, options.parameters),
        m_(program.switches()),
        q_(program.constraints()),
        t_(options.from),
        x_(Eigen::Map<const Vec>(options.initial.data(), static_cast<Eigen::Index>(options.initial.size()))) {
    counters_.assign(model_.form.counters.size(), 0.0);
    jump_sign_.assign(model_.form.jumps.size(), 0);
    section_sign_.assign(model_.sections.size(), 0);
    touching_.assign(at(q_), 0);
    for (const Switch& s : model_.form.switches) hold_.push_back(constant_value(s.hold, options.parameters));
    for (const Gap& g : model_.form.gaps) {
      degree_two_ = degree_two_ || g.degree == 2;
      restitution_.push_back(g.restitution ? constant_value(*g.restitution, options.parameters) : 0.0);
    }
    for (size_t s = 0; s < model_.sections.size(); ++s) {
      if (model_.sections[s].kind == Section::Kind::every)
        every_.push_back({static_cast<int>(s), constant_value(model_.sections[s].value, options.parameters), 1});
      watches_sections_ = true;
    }
    for (const auto& [name, side] : options.leave) {
      for (int i = 0; i < m_; ++i) {
        if (model_.form.switches[at(i)].name == name) leave_[i] = side;
      }
    }
    result_.states = program.states();
    result_.sliding.assign(at(m_), {});
    wants_pieces_ = options.keep_pieces || options.on_piece || watches_sections_;
    dt_ = step_.dt > 0 ? step_.dt : (options.until - options.from) / 100;
  }

  Trajectory run() {
    const auto begin = std::chrono::steady_clock::now();
    start();
    for (long k = 1; !ended_ && t_ < options_.until; ++k) {
      if (step_.dt > 0) {
        const double next = options_.from + step_.dt * static_cast<double>(k);
        const bool last = next > options_.until - 1e-9 * step_.dt;
        advance_to(last ? options_.until : next);
      } else {
        advance_to(std::min(options_.until, t_ + dt_));
      }
      if (++result_.cost.steps >= options_.max_steps)
        finish(Why::stalled, fmt::format("{} steps were not enough", options_.max_steps));
      if (result_.cost.events >= options_.max_events)
        finish(Why::stalled, fmt::format("{} events were not enough", options_.max_events));
      if (result_.cost.steps % 256 == 0 && options_.progress && !options_.progress(t_))
        finish(Why::cancelled, "interrupted");
    }
    if (!ended_) finish(Why::time, "");
    result_.cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::move(result_);
  }

 private:
  // ---- start and end ----------------------------------------------------------------------------------------------

  void start() {
    result_.start_time = options_.from;
    result_.start_state = options_.initial;
    mode_.switches.assign(at(m_), '+');
    mode_.constraints.assign(at(q_), 'o');
    look_at_start();
    const Vec x_before = x_;
    rebounded_.clear();
    if (!impacts()) return;
    choose_mode(true);
    result_.start_mode = mode_;
    slides_ = std::count(mode_.switches.begin(), mode_.switches.end(), '0');
    note_signs();
    if (!ended_ && !rebounded_.empty()) record(mode_, x_before, {});
    if (step_.dt == 0) first_step();
  }

  /// Counters, and the signs of surfaces and gaps; what is zero within rounding is touched.
  void look_at_start() {
    Rounding point(program_.points(), options_.parameters);
    std::vector<double> sigma(at(m_), 1.0);
    touched_.clear();
    for (int round = 0; round < 2 || (program_.any_nested() && round < m_ + 2); ++round) {
      solver_.set_mode(mode_);
      solver_.tests(t_, x_, solver_.items(), tests_);
      for (size_t c = 0; c < counters_.size(); ++c)
        counters_[c] = std::floor(tests_[solver_.layout().phase(static_cast<int>(c))] + 1e-12);
      solver_.set_counters(counters_);
      point.evaluate(options_.initial, t_, sigma, counters_);
      touched_.clear();
      for (int i = 0; i < m_; ++i) {
        const int s = point.sign(program_.point(i, 0));
        sigma[at(i)] = s;
        mode_.switches[at(i)] = s > 0 ? '+' : s < 0 ? '-' : program_.moves(i) ? '+' : '0';
        if (s == 0 && program_.moves(i)) touched_.push_back(i);
      }
    }
    for (int j = 0; j < q_; ++j) {
      if (model_.form.gaps[at(j)].degree != 2) continue;
      if (point.sign(program_.point(m_ + j, 0)) == 0) touching_[at(j)] = 1;
    }
  }

  /// A first guess of the step from the size of states and rates.
  void first_step() {
    Vec f;
    solver_.rates(t_, x_, u_, f);
    const double all = std::max(x_.cwiseAbs().maxCoeff(), 1e-12);
    double shortest = (options_.until - options_.from) / 100;
    for (Eigen::Index i = 0; i < f.size(); ++i) {
      if (f[i] != 0) shortest = std::min(shortest, 1e-2 * (std::abs(x_[i]) + 1e-2 * all) / std::abs(f[i]));
    }
    dt_ = std::max(shortest, 1e-12 * (options_.until - options_.from));
  }

  void finish(Why why, std::string message) {
    if (ended_) return;
    ended_ = true;
    result_.end = {why, std::move(message), why == Why::time ? options_.until : t_, values(x_), mode_};
  }

  static std::vector<double> values(const Vec& x) { return {x.data(), x.data() + x.size()}; }
  void say(const std::string& message) {
    if (std::find(result_.messages.begin(), result_.messages.end(), message) == result_.messages.end())
      result_.messages.push_back(message);
  }

  bool simpson() const { return step_.theta == 0.5; }

  // ---- one step ---------------------------------------------------------------------------------------------------

  void advance_to(double end) {
    int splits = 0, halvings = 0;
    double longest = HUGE_VAL;  // of a part, where Newton's method or the error wants short ones
    while (!ended_ && t_ < end) {
      double h = end - t_;
      // The steps of a grid differ in their last bits; the same h keeps the factors.
      if (step_.dt > 0 && std::abs(h - step_.dt) < 1e-9 * step_.dt) h = step_.dt;
      const bool whole = h <= longest;
      h = std::min(h, longest);
      if (t_ + h == t_) return;
      StepFate fate = in_mode(h);
      if (fate == StepFate::ok && step_.dt == 0 && !error_allows(h)) {
        end = t_ + dt_;
        continue;
      }
      if (fate == StepFate::ok) {
        disagreements(now_, found_);
        if (found_.empty()) {
          accept(now_, whole ? end : t_ + h);
          longest *= 2;
          continue;
        }
        const bool splittable = simpson() && splits < most_splits && solver_.size() <= split_up_to;
        const bool must = only_jumps(found_);
        if ((splittable || must) && locate(h, must)) {
          if (++splits > 1000) return finish(Why::zeno, "jumps follow each other without time passing");
          const double at_event = std::abs(t_ + now_.h - end) <= 4 * eps * std::abs(end) ? end : t_ + now_.h;
          accept(now_, at_event);
          if (!ended_) arrive(found_);
          continue;
        }
      }
      if (fate == StepFate::undefined) return end_undefined();
      if (fate == StepFate::not_converged && ++halvings < most_halvings) {
        longest = h / 4;
        continue;
      }
      // Only backward Euler settles on a surface of higher degree.
      fate = unknown_mode(h, fate == StepFate::higher_degree ? 1.0 : step_.theta);
      if (fate == StepFate::ok) {
        longest *= 2;
        continue;
      }
      if (fate == StepFate::undefined) return end_undefined();
      if (fate == StepFate::unsolved) return finish(Why::inconsistent, trouble_);
      if (fate == StepFate::not_converged && ++halvings < most_halvings) {
        longest = h / 4;
        continue;
      }
      if (!ended_) finish(Why::stalled, fmt::format("the equations of a step of {:.3g} could not be solved", h));
    }
  }

  StepFate in_mode(double h) {
    solver_.set_mode(mode_);
    if (simpson()) return solver_.simpson(x_, t_, h, wants_pieces_ || step_.dt == 0, now_);
    return solver_.theta_step(x_, t_, h, step_.theta, now_);
  }

  void end_undefined() {
    const double largest = x_.cwiseAbs().maxCoeff();
    if (largest > 1e100) return finish(Why::diverged, fmt::format("a state has grown beyond {:.3g}", largest));
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
      solver_.rates(t_ + s * h, p, u, f);
      error = h * (rate - f);
    } else {
      Vec f0, f1;
      solver_.rates(t_, x_, now_.u1, f0);
      solver_.rates(t_ + h, now_.x, now_.u1, f1);
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
    const double shortest = 64 * eps * std::max(std::abs(t_), 1e-3 * (options_.until - options_.from));
    if (ratio > 1 && h > shortest) {
      dt_ = std::max(shortest, h * std::min(factor, 0.9));
      return false;
    }
    // A step cut short by the end or an event says little about the next.
    if (h >= 0.5 * dt_ || factor < 1) dt_ = std::min(h >= 0.5 * dt_ ? h * factor : dt_, options_.until - options_.from);
    return true;
  }

  // ---- where mode and signs disagree ------------------------------------------------------------------------------

  /// What does not agree with the mode at the end of a step.
  void disagreements(const Step& s, std::vector<Disagreement>& found) const {
    using Kind = Disagreement::Kind;
    const TestLayout& layout = solver_.layout();
    found.clear();
    for (int i = 0; i < m_; ++i) {
      const char c = mode_.switches[at(i)];
      if (!program_.moves(i)) continue;
      if (c == '0') {
        const double room = hold_[at(i)] - std::abs(s.u1[i]);
        if (room < 0) found.push_back({Kind::sigma, i, hold_[at(i)] - std::copysign(1.0, s.u1[i]) * s.u0[i], room});
        continue;
      }
      const double side = c == '+' ? 1 : -1;
      if (side * s.tests[i] < 0) found.push_back({Kind::surface, i, side * tests_[i], side * s.tests[i]});
    }
    for (int j = 0; j < q_; ++j) {
      if (mode_.constraints[at(j)] == 'o') {
        const double g = s.tests[layout.gap(j)];
        if (g < 0) found.push_back({Kind::gap, j, tests_[layout.gap(j)], g});
      } else if (s.u1[m_ + j] < 0) {
        found.push_back({Kind::lambda, j, s.u0[m_ + j], s.u1[m_ + j]});
      }
    }
    find_jumps(s, found);
  }

  void find_jumps(const Step& s, std::vector<Disagreement>& found) const {
    using Kind = Disagreement::Kind;
    const TestLayout& layout = solver_.layout();
    for (int k = 0; k < layout.jumps; ++k) {
      const int side = jump_sign_[at(k)];
      const double c = s.tests[layout.jump(k)];
      const Direction wanted = model_.form.jumps[at(k)].direction;
      if (side == 0 || side * c > 0 || (wanted == Direction::rising && side > 0) ||
          (wanted == Direction::falling && side < 0))
        continue;
      found.push_back({Kind::jump, k, side * tests_[layout.jump(k)], side * c});
    }
    for (int c = 0; c < layout.counters; ++c) {
      const double left = counters_[at(c)] + 1 - s.tests[layout.phase(c)];
      if (left <= 0) found.push_back({Kind::wrap, c, counters_[at(c)] + 1 - tests_[layout.phase(c)], left});
    }
  }

  static bool only_jumps(const std::vector<Disagreement>& found) {
    using Kind = Disagreement::Kind;
    return std::any_of(found.begin(), found.end(),
                       [](const Disagreement& d) { return d.kind == Kind::jump || d.kind == Kind::wrap; });
  }

  /// Shortens the step in now_ to the first disagreement in found_ (only jumps and wraps if `jumps_only` and theta
  /// above 1/2). False where it is there from the beginning.
  bool locate(double h, bool must) {
    const bool jumps_only = must && !simpson();
    const auto look = [&](const Step& s, std::vector<Disagreement>& found) {
      found.clear();
      if (jumps_only) return find_jumps(s, found);
      disagreements(s, found);
    };
    look(now_, found_);
    double lo = 0, hi = h;
    std::vector<Disagreement> at_hi = found_, at_try;
    double least_range = HUGE_VAL;
    for (const Disagreement& d : at_hi) least_range = std::min(least_range, d.range());
    Step last = now_;
    const auto same = [](const Disagreement& a, const Disagreement& b) {
      return a.kind == b.kind && a.index == b.index;
    };
    // From a surface just left, the first part of the step may be free of what is found at its end.
    const bool from_zero =
        std::any_of(at_hi.begin(), at_hi.end(), [](const Disagreement& d) { return !(d.start > 1e-9 * -d.value); });
    if (from_zero) {
      double tau = h;
      for (int k = 0; k < 18; ++k) {
        tau /= 4;
        if (in_mode(tau) != StepFate::ok) return false;
        look(now_, at_try);
        if (at_try.empty()) break;
        at_hi = at_try;
        last = now_;
        hi = tau;
      }
      if (!at_try.empty()) return false;
      lo = tau;
      for (Disagreement& d : at_hi) d.start = value_of(d, now_);
    }
    int side = 0;
    double weight_lo = 1, weight_hi = 1, tau_tried = hi, tau_before = lo;
    Disagreement tried{.index = -1};
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
      const double least = 2 * eps * std::max(std::abs(t_ + hi), hi);
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
      if (in_mode(tau) != StepFate::ok) return false;
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
      if (d.value <= 1e-9 * least_range) found_.push_back(d);
    }
    return !found_.empty();
  }

  /// Where the dense output of a step from here makes a disagreement vanish; `guess` where that is not to be seen.
  double root_on_cubic(const Disagreement& d, const Step& s, double lo, double hi, double guess) {
    if (d.kind == Disagreement::Kind::sigma || d.kind == Disagreement::Kind::lambda) return guess;
    Vec f0, f1;
    solver_.rates(t_, x_, s.u0, f0);
    solver_.rates(t_ + s.h, s.x, s.u1, f1);
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
      solver_.tests(t_ + tau, point.x, point.u1, point.tests);
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
    using Kind = Disagreement::Kind;
    const TestLayout& layout = solver_.layout();
    switch (d.kind) {
      case Kind::surface: return (mode_.switches[at(d.index)] == '+' ? 1 : -1) * s.tests[d.index];
      case Kind::sigma: return hold_[at(d.index)] - std::abs(s.u1[d.index]);
      case Kind::gap: return s.tests[layout.gap(d.index)];
      case Kind::lambda: return s.u1[m_ + d.index];
      case Kind::jump: return jump_sign_[at(d.index)] * s.tests[layout.jump(d.index)];
      case Kind::wrap: return counters_[at(d.index)] + 1 - s.tests[layout.phase(d.index)];
    }
    return 0;
  }

  // ---- at a located point -----------------------------------------------------------------------------------------

  void arrive(const std::vector<Disagreement>& found) {
    using Kind = Disagreement::Kind;
    const Mode before = mode_;
    const Vec x_before = x_;
    std::vector<int> jumps;
    rebounded_.clear();
    touched_.clear();
    bool moved = false;
    for (const Disagreement& d : found) {
      if (d.kind == Kind::jump) jumps.push_back(d.index);
      if (d.kind == Kind::wrap) counters_[at(d.index)] += 1;
      if (d.kind == Kind::surface || d.kind == Kind::sigma) touched_.push_back(d.index);
      if (d.kind == Kind::gap) touching_[at(d.index)] = 1;
      moved = moved || d.kind == Kind::jump || d.kind == Kind::wrap;
    }
    solver_.set_counters(counters_);
    for (const int k : jumps) jump(k);
    if (moved) signs_after_jump();
    if (impacts()) {
      choose_mode(false);
      note_signs();
      for (const int k : jumps) {
        if (jump_sign_[at(k)] == -sign_after_[at(k)]) jump_sign_[at(k)] = sign_after_[at(k)];
      }
    }
    ++result_.cost.events;
    count_slides(before);
    record(before, x_before, jumps);
    if (!ended_) record_at_event(jumps);
  }

  void jump(int k) {
    // Actions are rare: the program's own tape serves them.
    const ModeTape& tape = program_.tape(mode_.switches);
    Jet<double> jet(tape.actions, 0);
    jet.bind(options_.parameters);
    for (size_t i = 0; i < tape.actions.states.size(); ++i)
      jet[tape.actions.states[i]][0] = x_[static_cast<Eigen::Index>(i)];
    for (size_t i = 0; i < tape.actions.sigmas.size(); ++i)
      jet[tape.actions.sigmas[i]][0] = u_[static_cast<Eigen::Index>(i)];
    for (size_t j = 0; j < tape.actions.lambdas.size(); ++j) jet[tape.actions.lambdas[j]][0] = 0;
    for (size_t c = 0; c < counters_.size(); ++c) jet[tape.actions.counters[c]][0] = counters_[c];
    jet.set_time(t_, 0);
    jet.free(0);
    jet.bound(0);
    Vec next = x_;
    const auto& set = model_.form.jumps[at(k)].set;
    for (size_t s = 0; s < set.size(); ++s)
      next[set[s].state] = jet.output(program_.jump_value(k, static_cast<int>(s)))[0];
    sign_after_.resize(jump_sign_.size());
    sign_after_[at(k)] = -jump_sign_[at(k)];
    x_ = next;
  }

  /// Signs of everything that the jump of a state or counter may have turned.
  void signs_after_jump() {
    solver_.set_mode(mode_);
    solver_.tests(t_, x_, u_, tests_);
    for (int i = 0; i < m_; ++i) {
      if (!program_.moves(i) || mode_.switches[at(i)] == '0') continue;
      const int s = sign_of(tests_[i]);
      if (s != 0) mode_.switches[at(i)] = s > 0 ? '+' : '-';
    }
    for (int j = 0; j < q_; ++j) {
      if (model_.form.gaps[at(j)].degree == 2 && touching_[at(j)]) {
        const double g = tests_[solver_.layout().gap(j)];
        if (g > 1e-9) touching_[at(j)] = 0;
      }
    }
  }

  /// Newton's law for the contacts that touch, until none approaches. False if the run has ended.
  bool impacts() {
    if (!degree_two_) return true;
    for (int round = 0; round < 100; ++round) {
      std::vector<int> contacts;
      for (int j = 0; j < q_; ++j) {
        if (touching_[at(j)] && model_.form.gaps[at(j)].degree == 2) contacts.push_back(j);
      }
      if (contacts.empty()) return true;
      Mode open = mode_;
      open.constraints.assign(at(q_), 'o');
      solver_.set_mode(open);
      Vec u = u_.size() == 0 ? solver_.items() : u_;
      for (int i = 0; i < m_; ++i) {
        if (mode_.switches[at(i)] != '0') u[i] = solver_.items()[i];
      }
      u.tail(q_).setZero();
      solver_.tests(t_, x_, u, tests_);
      const auto rate = [&](int j) { return tests_[solver_.layout().gap_rate(j)]; };
      double speed = 0;
      for (const int j : contacts) speed = std::max(speed, std::abs(rate(j)));
      if (std::none_of(contacts.begin(), contacts.end(),
                       [&](int j) { return rate(j) < -1e-13 * speed && rate(j) < 0; }))
        return true;
      const StepSlopes& s = solver_.slopes(t_, x_, u);
      const Eigen::Index n = static_cast<Eigen::Index>(contacts.size());
      const SparseMat CG = s.C * s.G;
      ImpactProblem problem{Mat(n, n), Vec(n), Vec(n)};
      for (Eigen::Index a = 0; a < n; ++a) {
        const int j = contacts[static_cast<size_t>(a)];
        problem.before[a] = rate(j);
        problem.restitution[a] = restitution_[at(j)];
        for (Eigen::Index b = 0; b < n; ++b) problem.W(a, b) = CG.coeff(m_ + j, m_ + contacts[static_cast<size_t>(b)]);
      }
      const ImpactSolution impact = solve_impact(problem);
      if (impact.status != SolveStatus::solved || (n == 1 && !(problem.W(0, 0) > 0))) {
        finish(impact.status == SolveStatus::no_solution ? Why::inconsistent : Why::nonunique,
               fmt::format(
                   "the impact on '{}' has no unique answer: gap velocity {:.6g}, its change by a unit impulse {:.6g}",
                   model_.constraints[at(contacts[0])].name, problem.before[0], problem.W(0, 0)));
        return false;
      }
      for (Eigen::Index a = 0; a < n; ++a) {
        const int j = contacts[static_cast<size_t>(a)];
        x_ += impact.impulse[a] * s.G.col(m_ + j);
        if (std::find(rebounded_.begin(), rebounded_.end(), j) == rebounded_.end()) rebounded_.push_back(j);
      }
    }
    finish(Why::inconsistent, "impacts follow each other without time passing");
    return false;
  }

  /// The mode that a very short complementarity step from here ends in.
  void choose_mode(bool at_start) {
    if (ended_) return;
    const double h = choice_step * dt_;
    if (solver_.size() <= 60 && !unique_here(h, at_start)) return;
    Step s;
    Mode next;
    const StepFate fate = solve_unknown(h, 1.0, s, next, true);
    if (fate == StepFate::unsolved) return finish(Why::inconsistent, trouble_);
    if (fate != StepFate::ok) return;  // the next step says what is wrong
    for (int j = 0; j < q_; ++j) {
      if (model_.form.gaps[at(j)].degree == 2 && next.constraints[at(j)] == 'o') touching_[at(j)] = 0;
    }
    for (const auto& [i, side] : chosen_) next.switches[at(i)] = side;
    chosen_.clear();
    mode_ = next;
    u_ = s.u1;
    solver_.guess(s.u1);
    solver_.set_mode(mode_);
    solver_.tests(t_, x_, u_, tests_);
    if (step_.projection) project();
  }

  /// Whether the surfaces and gaps at zero here leave one choice only; otherwise says so, and may end the run.
  bool unique_here(double h, bool at_start) {
    std::vector<int> zeros = touched_;
    for (int i = 0; i < m_; ++i) {
      if (mode_.switches[at(i)] == '0' && program_.moves(i)) zeros.push_back(i);
    }
    for (int j = 0; j < q_; ++j) {
      if (touching_[at(j)]) zeros.push_back(m_ + j);
    }
    std::sort(zeros.begin(), zeros.end());
    zeros.erase(std::unique(zeros.begin(), zeros.end()), zeros.end());
    // Where a holding switch may both stick and slip, it sticks: that is no second answer.
    const bool holding = std::any_of(zeros.begin(), zeros.end(), [&](int i) { return i < m_ && hold_[at(i)] > 1; });
    if (zeros.empty() || holding) return true;
    Mode open = mode_;
    for (const int i : zeros) {
      if (i < m_) open.switches[at(i)] = '0';
    }
    solver_.set_mode(open);
    Vec u = solver_.items();
    for (const int i : zeros) u[i] = u_.size() > 0 ? u_[i] : 0.0;
    Mat M;
    Vec q;
    solver_.condense(x_, t_, h, u, M, q);
    if (!M.allFinite() || !q.allFinite()) return true;
    const Eigen::Index n = static_cast<Eigen::Index>(zeros.size());
    ZeroSet set{Mat(n, n), Vec(n), Vec(n), Vec(n)};
    Vec rest = u;
    for (const int i : zeros) rest[i] = 0;
    const Vec fixed = q + M * rest;
    for (Eigen::Index a = 0; a < n; ++a) {
      const int i = zeros[static_cast<size_t>(a)];
      const double sign = i < m_ ? -1 : 1;
      set.q[a] = sign * fixed[i];
      set.lo[a] = i < m_ ? -hold_[at(i)] : 0.0;
      set.hi[a] = i < m_ ? hold_[at(i)] : HUGE_VAL;
      for (Eigen::Index b = 0; b < n; ++b) set.M(a, b) = sign * M(i, zeros[static_cast<size_t>(b)]);
    }
    const Answers answers = count_answers(set);
    if (answers.solutions.size() == 1 || !answers.counted) return true;
    std::string names;
    for (const int i : zeros)
      names += (names.empty() ? "" : ", ") +
               (i < m_ ? model_.form.switches[at(i)].name : model_.constraints[at(i - m_)].name);
    if (answers.solutions.empty()) {
      finish(Why::inconsistent,
             fmt::format("no force at '{}' is consistent at t = {:.9g}: its rate is {:.6g} and changes by "
                         "{:.6g} per unit",
                         names, t_, set.q[0] / h, set.M(0, 0) / h));
      return false;
    }
    for (const int i : zeros) {
      if (const auto choice = leave_.find(i); choice != leave_.end()) chosen_[i] = choice->second;
    }
    if (!chosen_.empty()) return true;
    const std::string message = fmt::format("the solution is not unique at t = {:.9g}: {} ways to go on from '{}'", t_,
                                            answers.solutions.size(), names);
    if (at_start) {
      say(message + "; it stays there");
      for (const int i : zeros) {
        if (i < m_) chosen_[i] = '0';
      }
      return true;
    }
    finish(Why::nonunique, message + "; --leave chooses");
    return false;
  }

  // ---- the step in an unknown mode --------------------------------------------------------------------------------

  /// A complementarity step over the rest: what changes, changes inside it without being located.
  StepFate unknown_mode(double h, double theta) {
    Step s;
    Mode next;
    StepFate fate = solve_unknown(h, theta, s, next, false);
    if (fate == StepFate::not_converged) fate = solve_unknown(h, 1.0, s, next, false);
    if (fate != StepFate::ok) return fate;
    std::vector<Disagreement> crossed;
    now_ = s;
    find_jumps(now_, crossed);
    if (!crossed.empty()) {  // jumps and wraps are always located, on this step by its linear output
      double first = 1;
      for (const Disagreement& d : crossed) {
        if (d.start > 0) first = std::min(first, d.start / (d.start - d.value));
      }
      if (first < 1 - 1e-12 && first > 1e-12) {
        fate = solve_unknown(first * h, theta, s, next, false);
        if (fate != StepFate::ok) return fate;
      }
    }
    const Mode before = mode_;
    const Vec x_before = x_, tests_before = tests_;
    const double t_before = t_;
    mode_ = next;
    accept(s, t_ + s.h);
    if (step_.projection) project();
    if (before != mode_ || !rebounded_.empty()) ++result_.cost.events;
    count_slides(before);
    if (!ended_) record_unlocated(before, x_before, tests_before, t_before);
    if (!ended_) record_at_event({});
    if (!ended_ && !crossed.empty()) arrive(crossed);
    return StepFate::ok;
  }

  /// Complementarity with what the problem itself cannot say: which formulas hold for switches inside them, which gaps
  /// close, which static friction still holds. `choosing`: only touching contacts can close, at their present rate.
  StepFate solve_unknown(double h, double theta, Step& s, Mode& next, bool choosing) {
    const int items = m_ + q_;
    std::vector<char> open_formula(at(m_), 0), near(at(q_), 0), may_hold(at(m_), 0), left(at(m_), 0);
    for (const int i : choosing ? touched_ : std::vector<int>{}) open_formula[at(i)] = 1;
    for (int i = 0; i < m_; ++i) may_hold[at(i)] = mode_.switches[at(i)] == '0';
    if (choosing) {
      for (const int i : touched_) may_hold[at(i)] = 1;
    }
    for (int j = 0; j < q_; ++j)
      near[at(j)] = model_.form.gaps[at(j)].degree != 2 || touching_[at(j)] || mode_.constraints[at(j)] == 'c';
    const std::vector<double> r = choosing ? std::vector<double>(at(q_), 0.0) : restitution_;
    std::vector<double> rate(at(q_), 0.0);
    if (degree_two_) {
      for (int j = 0; j < q_; ++j) rate[at(j)] = tests_[m_ + q_ + j];
    }
    std::vector<BoundState> state;
    for (int round = 0; round < 2 * items + 10; ++round) {
      Mode key = mode_;
      for (int i = 0; i < m_; ++i) {
        if (open_formula[at(i)] && !program_.plain(i)) key.switches[at(i)] = '0';
      }
      solver_.set_mode(key);
      ItemBounds bounds{Vec(items), Vec(items), Vec::Zero(items)};
      for (int i = 0; i < m_; ++i) {
        const bool fixed = !program_.moves(i) || (!program_.plain(i) && key.switches[at(i)] != '0');
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
      const StepFate fate = solver_.complementarity(x_, t_, h, theta, bounds, s, state, trouble_);
      if (fate != StepFate::ok) return fate;
      bool changed = false;
      const auto set = [&](char& flag) {
        changed = changed || !flag;
        flag = 1;
      };
      for (int i = 0; i < m_; ++i) {
        if (!program_.moves(i)) continue;
        if (bounds.lo[i] == bounds.hi[i]) {
          if (s.tests[i] * s.u1[i] < 0) set(open_formula[at(i)]);
          continue;
        }
        if (hold_[at(i)] > 1) {
          const bool stays = (state[at(i)] == BoundState::upper && mode_.switches[at(i)] == '+') ||
                             (state[at(i)] == BoundState::lower && mode_.switches[at(i)] == '-');
          if (!may_hold[at(i)] && !stays)
            set(may_hold[at(i)]);
          else if (may_hold[at(i)] && state[at(i)] != BoundState::inside)
            set(left[at(i)]);
        }
      }
      for (int j = 0; j < q_; ++j) {
        if (!near[at(j)] && !choosing && s.tests[solver_.layout().gap(j)] < 0) set(near[at(j)]);
      }
      if (!changed) break;
    }
    next = mode_;
    for (int i = 0; i < m_; ++i) {
      if (!program_.moves(i)) continue;
      const bool fixed = !program_.plain(i) && !open_formula[at(i)] && mode_.switches[at(i)] != '0';
      if (fixed) continue;
      next.switches[at(i)] = state[at(i)] == BoundState::upper ? '+' : state[at(i)] == BoundState::lower ? '-' : '0';
    }
    if (!choosing) rebounded_.clear();
    for (int j = 0; j < q_; ++j) {
      const bool pressed = near[at(j)] && state[at(m_ + j)] == BoundState::inside;
      next.constraints[at(j)] = pressed ? 'c' : 'o';
      if (model_.form.gaps[at(j)].degree != 2 || choosing) continue;
      if (pressed && mode_.constraints[at(j)] == 'o') rebounded_.push_back(j);
      if (pressed && r[at(j)] * std::min(rate[at(j)], 0.0) < 0) next.constraints[at(j)] = 'o';
      touching_[at(j)] = next.constraints[at(j)] == 'c';
    }
    return StepFate::ok;
  }

  /// Closed contacts go back to their gaps: a few sweeps along the gradients.
  void project() {
    if (!degree_two_ || mode_.constraints.find('c') == std::string::npos) return;
    const TestLayout& layout = solver_.layout();
    const double least = 16 * eps * (1 + x_.cwiseAbs().maxCoeff());
    solver_.set_mode(mode_);
    for (int sweep = 0; sweep < 3; ++sweep) {
      solver_.tests(t_, x_, u_, tests_);
      bool any = false;
      Eigen::SparseMatrix<double, Eigen::RowMajor> P;
      for (int j = 0; j < q_; ++j) {
        if (mode_.constraints[at(j)] != 'c' || model_.form.gaps[at(j)].degree != 2) continue;
        const double g = tests_[layout.gap(j)];
        if (std::abs(g) <= least) continue;
        if (!any) P = solver_.slopes(t_, x_, u_).P;
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
    solver_.tests(t_, x_, u_, tests_);
  }

  // ---- what is kept -----------------------------------------------------------------------------------------------

  /// The state moves to the end of the step; sections on the way are reported.
  void accept(const Step& s, double end) {
    if (wants_pieces_) make_piece(s, end);
    for (int i = 0; i < m_; ++i) {
      if (mode_.switches[at(i)] != '0') continue;
      result_.sliding[at(i)].time += s.h;
      result_.sliding[at(i)].largest_error = std::max(result_.sliding[at(i)].largest_error, std::abs(s.tests[i]));
    }
    if (watches_sections_ && pass_sections(s, end)) return;
    if (wants_pieces_) keep_piece();
    x_ = s.x;
    u_ = s.u1;
    t_ = end;
    tests_ = s.tests;
    if (!std::isfinite(x_.sum()) || x_.cwiseAbs().maxCoeff() > 1e300)
      return finish(Why::diverged, "a state grows without bound");
    note_signs();
    if (step_.projection) project();
  }

  void make_piece(const Step& s, double end) {
    const size_t n = static_cast<size_t>(x_.size());
    const size_t stride = s.cubic ? 4 : 2;
    piece_.start = t_;
    piece_.length = end - t_;
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

  void keep_piece() {
    if (options_.on_piece) options_.on_piece(piece_, mode_);
    if (!options_.keep_pieces) return;
    if (result_.modes.empty() || !(result_.modes.back() == mode_)) result_.modes.push_back(mode_);
    piece_.mode = static_cast<int>(result_.modes.size()) - 1;
    result_.pieces.push_back(piece_);
  }

  void note_signs() {
    const TestLayout& layout = solver_.layout();
    for (int k = 0; k < layout.jumps; ++k) {
      if (const int s = sign_of(tests_[layout.jump(k)]); s != 0) jump_sign_[at(k)] = s;
    }
    for (int s = 0; s < layout.sections; ++s) {
      if (const int sign = sign_of(tests_[layout.section(s)]); sign != 0) section_sign_[at(s)] = sign;
    }
  }

  void count_slides(const Mode& before) {
    for (int i = 0; i < m_; ++i) slides_ += mode_.switches[at(i)] == '0' && before.switches[at(i)] != '0' ? 1 : 0;
  }

  /// What a user sees of an arrival: jumps, impacts, then the change of mode.
  void record(const Mode& before, const Vec& x_before, const std::vector<int>& jumps) {
    if (!options_.keep_events && !options_.on_event) return;
    const bool jumped = !jumps.empty();
    if (jumped) {
      Event event{.t = t_, .kind = EventKind::jump, .before = before, .after = before, .jumped = values(x_before)};
      for (const int k : jumps) event.on.push_back(model_.jumps[at(k)].name);
      emit(std::move(event), x_);
    }
    record_mode(before, x_before, t_, x_, jumped);
  }

  void record_mode(const Mode& before, const Vec& x_before, double t, const Vec& x, bool jumped) {
    const auto letter = [this](const Mode& mode, int u) {
      return u < m_ ? mode.switches[at(u)] : mode.constraints[at(u - m_)];
    };
    std::vector<int> changed;
    for (int u = 0; u < m_ + q_; ++u) {
      if (letter(before, u) != letter(mode_, u)) changed.push_back(u);
    }
    const bool closes = changed.size() == 1 && changed[0] >= m_ && letter(mode_, changed[0]) == 'c';
    if (!rebounded_.empty() && !closes) {
      jumped = true;
      Event event{.t = t, .kind = EventKind::impact, .before = before, .after = before, .jumped = values(x_before)};
      for (const int j : rebounded_) event.on.push_back(model_.constraints[at(j)].name);
      emit(std::move(event), x);
    }
    if (changed.empty()) return;
    Event event{.t = t, .kind = EventKind::mode, .before = before, .after = mode_};
    if (!jumped && !rebounded_.empty()) event.jumped = values(x_before);
    for (const int u : changed)
      event.on.push_back(u < m_ ? model_.form.switches[at(u)].name : model_.constraints[at(u - m_)].name);
    if (changed.size() == 1) event.kind = kind_of_change(letter(before, changed[0]), letter(mode_, changed[0]));
    emit(std::move(event), x);
  }

  /// A change inside a step without being located: a crossing is put where a straight line crosses, the others at the
  /// end.
  void record_unlocated(const Mode& before, const Vec& x_before, const Vec& tests_before, double t_before) {
    if (!options_.keep_events && !options_.on_event) return;
    double s = 1;
    for (int i = 0; i < m_; ++i) {
      const double a = tests_before[i], b = tests_[i];
      if (before.switches[at(i)] != mode_.switches[at(i)] && a * b < 0) s = std::min(s, a / (a - b));
    }
    record_mode(before, x_before, t_before + s * (t_ - t_before), x_before + s * (x_ - x_before), false);
  }

  void emit(Event event, const Vec& x) {
    event.state = values(x);
    if (options_.on_event) options_.on_event(event);
    if (!options_.keep_events) return;
    if (static_cast<long>(result_.events.size()) >= options_.max_kept_events)
      return say(fmt::format("only the first {} events are kept; later ones are counted", options_.max_kept_events));
    result_.events.push_back(std::move(event));
  }

  // ---- sections ---------------------------------------------------------------------------------------------------

  struct Every {
    int section = 0;
    double interval = 0;
    long next = 1;
  };
  struct Passage {
    int section = 0;
    double tau = 0;
  };

  /// Reports the sections met on the piece just made. True if the run ends at one of them.
  bool pass_sections(const Step& s, double end) {
    std::vector<Passage> passages;
    const TestLayout& layout = solver_.layout();
    for (int k = 0; k < layout.sections; ++k) {
      const Section& section = model_.sections[at(k)];
      if (section.kind != Section::Kind::on || section_sign_[at(k)] == 0) continue;
      const double last = s.tests[layout.section(k)];
      if (section_sign_[at(k)] * last >= 0) continue;
      const bool rising = last > 0;
      if (section.direction != Direction::any && (section.direction == Direction::rising) != rising) continue;
      passages.push_back({k, passage(k, s)});
    }
    for (Every& e : every_) {
      for (;; ++e.next) {
        const double due = options_.from + e.interval * static_cast<double>(e.next);
        if (due > end + 4 * eps * std::abs(end)) break;
        passages.push_back({e.section, std::min(due - t_, piece_.length)});
      }
    }
    std::stable_sort(passages.begin(), passages.end(),
                     [](const Passage& a, const Passage& b) { return a.tau < b.tau; });
    std::vector<double> x(static_cast<size_t>(x_.size()));
    for (const Passage& p : passages) {
      if (p.tau >= piece_.length)
        x = values(s.x);
      else
        Trajectory::evaluate(piece_, program_.states(), p.tau, x.data());
      if (!pass(p.section, t_ + p.tau, x)) continue;
      piece_.length = p.tau;
      keep_piece();
      t_ += p.tau;
      x_ = Eigen::Map<const Vec>(x.data(), x_.size());
      finish(counted_out_ ? Why::count : Why::stop, fmt::format("section '{}'", model_.sections[at(p.section)].name));
      return true;
    }
    return false;
  }

  /// Where the dense output meets a section whose sign has changed: regula falsi along the piece.
  double passage(int section, const Step& s) {
    const int output = solver_.layout().section(section);
    double lo = 0, hi = piece_.length;
    double a = std::abs(tests_[output]) + 1e-300, b = std::abs(s.tests[output]);
    const int side = section_sign_[at(section)];
    std::vector<double> x(static_cast<size_t>(x_.size()));
    Vec tests;
    int last = 0;
    for (int k = 0; k < 60 && hi - lo > 4 * eps * std::abs(t_ + hi); ++k) {
      const double tau = k > 40 ? (lo + hi) / 2 : lo + (hi - lo) * a / (a + b);
      if (tau <= lo || tau >= hi) break;
      Trajectory::evaluate(piece_, program_.states(), tau, x.data());
      const Vec u = s.u0 + tau / piece_.length * (s.u1 - s.u0);
      solver_.tests(t_ + tau, Eigen::Map<const Vec>(x.data(), x_.size()), u, tests);
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

  bool pass(int s, double t, const std::vector<double>& x) {
    if (options_.keep_events || options_.on_event) {
      Event event{
          .t = t, .kind = EventKind::section, .on = {model_.sections[at(s)].name}, .before = mode_, .after = mode_};
      emit(std::move(event), Eigen::Map<const Vec>(x.data(), static_cast<Eigen::Index>(x.size())));
    }
    if (s == options_.section && ++section_points_ >= options_.section_count && options_.section_count > 0)
      counted_out_ = true;
    const bool wants_more = !options_.on_section || options_.on_section({s, t, x, result_.cost.events, slides_});
    return counted_out_ || model_.sections[at(s)].stop || !wants_more;
  }

  /// Sections on a contact or a jump, at the event just recorded.
  void record_at_event(const std::vector<int>& jumps) {
    for (size_t s = 0; s < model_.sections.size(); ++s) {
      const Section& section = model_.sections[s];
      if (section.kind != Section::Kind::jump && section.kind != Section::Kind::constraint) continue;
      const std::vector<int>& happened = section.kind == Section::Kind::jump ? jumps : rebounded_;
      if (std::find(happened.begin(), happened.end(), section.index) == happened.end()) continue;
      if (pass(static_cast<int>(s), t_, values(x_)))
        finish(counted_out_ ? Why::count : Why::stop, fmt::format("section '{}'", section.name));
    }
  }

  const Program& program_;
  const Model& model_;
  const RunOptions& options_;
  StepOptions step_;
  StepSolver solver_;
  int m_, q_;
  double t_, dt_ = 0;
  Vec x_, u_, tests_;
  Mode mode_;
  std::vector<double> counters_, hold_, restitution_;
  std::vector<int> jump_sign_, sign_after_, section_sign_;
  std::vector<char> touching_;  // contacts whose gap is zero
  std::vector<int> touched_;    // switches whose surface or bound was just met
  std::vector<int> rebounded_;
  std::map<int, char> leave_, chosen_;
  std::vector<Every> every_;
  Step now_;
  std::vector<Disagreement> found_;
  Piece piece_;
  Vec largest_;
  std::string trouble_;
  bool degree_two_ = false, watches_sections_ = false, wants_pieces_ = false, ended_ = false, counted_out_ = false;
  long section_points_ = 0, slides_ = 0;
  Trajectory result_;
};

}  // namespace

Trajectory simulate_time_stepping(const Program& program, const RunOptions& options) {
  return Stepper(program, options).run();
}

}  // namespace saltus
