#include "flow/event_driven.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>

#include <fmt/format.h>

#include "code/rounding.hpp"
#include "flow/choose.hpp"
#include "flow/impact.hpp"
#include "flow/series.hpp"
#include "flow/stiff.hpp"
#include "flow/taylor.hpp"
#include "solve/polynomial.hpp"

namespace saltus {
namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();
size_t at(int i) { return static_cast<size_t>(i); }

/// What a root on the step means.
enum class Watched { surface, sigma, gap, lambda, slope, jump, wrap };

struct Watch {
  Watched what = Watched::surface;
  int item = 0;       // switch, constraint, jump or counter
  int output = 0;     // of the slope tape
  int sample = 0;     // among the sampled functions of a stiff step
  double offset = 0;  // subtracted from the series before looking for zeros
  int known = 0;      // leading zero coefficients
  int sign = 0;       // sign the function has before the event, 0: either
  double root = 0;    // where it was found on this step
  bool found = false;
  bool late = false;  // the sign was wrong at the start of the step: it happened between two steps
};

/// Compensated sum: time does not lose the small steps.
class Clock {
 public:
  explicit Clock(double t) : high_(t) {}
  void advance(double step) {
    const double sum = high_ + step;
    const double part = sum - high_;
    low_ += (high_ - (sum - part)) + (step - part);
    high_ = sum;
  }
  void set(double t) {
    high_ = t;
    low_ = 0;
  }
  double now() const { return high_ + low_; }
  /// The step from now to a given time.
  double until(double t) const { return (t - high_) - low_; }

 private:
  double high_, low_ = 0;
};

class Engine {
 public:
  Engine(const Program& program, const RunOptions& options)
      : program_(program),
        model_(program.model()),
        options_(options),
        order_(taylor_order(local_tolerance(options.tolerance))),
        series_(program, options.parameters, order_),
        control_(program.states(), local_tolerance(options.tolerance), std::abs(options.until - options.from)),
        clock_(options.from),
        direction_(options.until < options.from ? -1.0 : 1.0),
        x_(options.initial),
        point_(program.points(), options.parameters) {
    for (const auto& [name, side] : options.leave) {
      for (int i = 0; i < program.switches(); ++i) {
        if (model_.form.switches[at(i)].name == name) leave_[i] = side;
      }
    }
    counters_.assign(model_.form.counters.size(), 0.0);
    jump_sign_.assign(model_.form.jumps.size(), 0);
    section_sign_.assign(model_.sections.size(), 0);
    section_seen_.assign(model_.sections.size(), -HUGE_VAL);
    for (size_t s = 0; s < model_.sections.size(); ++s) {
      if (model_.sections[s].kind != Section::Kind::every) continue;
      every_.push_back({static_cast<int>(s), constant_value(model_.sections[s].value, options.parameters), 1});
    }
    result_.states = program.states();
    result_.sliding.assign(at(program.switches()), {});
    known_.assign(at(program.unknowns()), 0);
    next_sign_ = section_sign_;
    if (options.stiff) stiff_.emplace(program, options.tolerance, direction_, order_);
  }

  Trajectory run() {
    const auto begin = std::chrono::steady_clock::now();
    start();
    while (!ended_ && !finished()) {
      if (!step()) break;
      if (++result_.cost.steps >= options_.max_steps)
        finish(Why::stalled, fmt::format("{} steps were not enough", options_.max_steps));
      if (result_.cost.steps % 256 == 0 && options_.progress && !options_.progress(clock_.now()))
        finish(Why::cancelled, "interrupted");
    }
    if (!ended_) finish(Why::time, "");
    result_.cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::move(result_);
  }

 private:
  // ---- start and end --------------------------------------------------------------------------------------------

  void start() {
    result_.start_time = options_.from;
    result_.start_state = x_;
    mode_.switches.assign(at(program_.switches()), '+');
    mode_.constraints.assign(at(program_.constraints()), 'o');
    series_.tie(find_ties());
    count_wraps();
    arrive({}, true, true);
    started_ = true;
    result_.start_mode = mode_;
    slides_ = std::count(mode_.switches.begin(), mode_.switches.end(), '0');
    note_signs();
    if (!ended_ && !rebounded_.empty()) record(mode_, result_.start_state, {});
  }

  /// Surfaces that are constant multiples of each other under these parameters (v and K*v).
  Series::Ties find_ties() const {
    const int m = program_.switches();
    std::map<std::vector<int>, std::vector<int>> alike;  // by the states and times they depend on
    for (int i = 0; i < m; ++i) {
      std::vector<int> support;
      for (const Expr& s : symbols_in(std::span(&model_.form.switches[at(i)].surface, 1))) {
        if (s.symbol().kind != SymbolKind::parameter)
          support.push_back(static_cast<int>(s.symbol().kind) * 1'000'000 + s.symbol().index);
      }
      std::sort(support.begin(), support.end());
      if (program_.moves(i)) alike[support].push_back(i);
    }
    Series::Ties ties;
    std::vector<std::vector<double>> values;  // of all surfaces at a few points, only if there is something to compare
    for (const auto& [support, members] : alike) {
      if (members.size() < 2) continue;
      if (values.empty()) values = probe_surfaces();
      for (size_t b = 1; b < members.size(); ++b) {
        for (size_t a = 0; a < b; ++a) {
          const size_t i = at(members[a]), j = at(members[b]);
          const double ratio = values[0][j] / values[0][i];
          bool same = std::isfinite(ratio) && ratio != 0;
          for (const auto& point : values)
            same = same && std::abs(point[j] - ratio * point[i]) <= 1e-12 * std::abs(point[j]);
          if (!same) continue;
          ties[members[b]] = {members[a], ratio > 0 ? 1 : -1};
          break;
        }
      }
    }
    return ties;
  }

  std::vector<std::vector<double>> probe_surfaces() const {
    Rounding point(program_.points(), options_.parameters);
    std::vector<std::vector<double>> out;
    std::vector<double> x(x_.size()), sigma(at(program_.switches()), 1.0), counters(counters_.size(), 0.0);
    double u = 0.318;
    for (int k = 0; k < 4; ++k) {
      for (double& v : x) {
        u = std::fmod(u * 997.13 + 0.6180339, 1.0);
        v = u * 2.3 - 0.9;
      }
      point.evaluate(x, options_.from + 0.377 + 1.19 * k, sigma, counters);
      std::vector<double>& row = out.emplace_back();
      for (int i = 0; i < program_.switches(); ++i) row.push_back(point.value(program_.point(i, 0)));
    }
    return out;
  }

  bool finished() const { return direction_ * clock_.until(options_.until) <= 0; }

  void finish(Why why, std::string message) {
    if (ended_) return;
    ended_ = true;
    result_.end = {why, std::move(message), why == Why::time ? options_.until : clock_.now(), x_, mode_};
  }

  double time_scale() const { return scale_ > 0 ? scale_ : 1.0; }
  double resolution() const { return 8 * eps * std::max(std::abs(clock_.now()), time_scale() * 1e-3); }

  // ---- choosing modes -------------------------------------------------------------------------------------------

  ChoiceOptions choice_options(bool at_start) const {
    return {.direction = direction_, .time_scale = time_scale(), .at_start = at_start, .leave = leave_};
  }

  /// At a state just reached: impacts, then the mode. `zeros` is what is known to vanish here; after a jump of the
  /// state (or at the start) every sign is evaluated anew. Returns false if the run has ended.
  bool arrive(std::vector<AtZero> zeros, bool jumped, bool at_start) {
    rebounded_.clear();
    if (jumped) look(zeros);
    for (int round = 0; approaching(zeros); ++round) {
      if (round > 100) {
        finish(Why::inconsistent, "impacts follow each other without time passing");
        return false;
      }
      if (!rebound(zeros)) return false;
      look(zeros);
    }
    if (scale_ == 0) estimate_scale();
    return settle(zeros, at_start);
  }

  /// Signs of all surfaces and gaps that are not listed yet; those that vanish join the list.
  void look(std::vector<AtZero>& zeros) {
    const int m = program_.switches();
    const auto listed = [&](int u) {
      return std::any_of(zeros.begin(), zeros.end(), [u](const AtZero& z) { return z.unknown == u; });
    };
    // What rested before is likely to rest on: it may have drifted by more than the last bits.
    const auto bounds = [&](int u) {
      const bool rested = u < m ? mode_.switches[at(u)] == '0' : mode_.constraints[at(u - m)] == 'c';
      return rested && started_ ? 1e6 : 4;
    };
    const auto vanishing = [&](int u) {
      int k = 0;
      while (k < program_.point_degree(u) && point_.sign(program_.point(u, k), bounds(u)) == 0) ++k;
      return k;
    };
    sigma_.assign(at(m), 0.0);
    evaluate_point();
    for (int i = 0; i < m; ++i) {
      if (program_.nested(i)) evaluate_point();
      const int sign = point_.sign(program_.point(i, 0), bounds(i));
      if (!listed(i)) {
        if (sign == 0 && program_.moves(i)) {
          zeros.push_back({.unknown = i, .known = vanishing(i)});
          if (mode_.switches[at(i)] == '0') mode_.switches[at(i)] = '+';
        } else {
          mode_.switches[at(i)] = sign > 0 ? '+' : sign < 0 ? '-' : '0';
        }
      }
      sigma_[at(i)] = sign;
    }
    if (!series_.ties().empty()) add_ties(zeros);
    if (program_.constraints() > 0) evaluate_point();  // with the signs just found
    for (int j = 0; j < program_.constraints(); ++j) {
      if (listed(m + j)) continue;
      if (model_.form.gaps[at(j)].degree == 0) {
        zeros.push_back({.unknown = m + j, .known = 0});
      } else if (point_.sign(program_.point(m + j, 0), bounds(m + j)) == 0) {
        zeros.push_back({.unknown = m + j, .known = std::max(1, vanishing(m + j))});
      } else {
        mode_.constraints[at(j)] = 'o';
      }
    }
  }

  void evaluate_point() { point_.evaluate(x_, clock_.now(), sigma_, counters_); }

  void read_sigma() {
    sigma_.clear();
    for (const char c : mode_.switches) sigma_.push_back(c == '+' ? 1.0 : c == '-' ? -1.0 : 0.0);
  }

  /// Whether a touching contact moves into its wall.
  bool approaching(const std::vector<AtZero>& zeros) {
    const int m = program_.switches();
    bool any = false;
    for (const AtZero& z : zeros)
      any = any || (z.unknown >= m && model_.form.gaps[at(z.unknown - m)].degree == 2 && z.known < 2);
    if (!any) return false;
    read_sigma();
    evaluate_point();
    return std::any_of(zeros.begin(), zeros.end(), [&](const AtZero& z) {
      if (z.unknown < m || model_.form.gaps[at(z.unknown - m)].degree != 2 || z.known >= 2) return false;
      return point_.sign(program_.point(z.unknown, 1)) * direction_ < 0;
    });
  }

  /// Newton's law for all contacts that touch. What it stops is known to rest; the other contacts are looked at anew.
  bool rebound(std::vector<AtZero>& zeros) {
    const int m = program_.switches();
    std::vector<int> contacts;
    for (const AtZero& z : zeros) {
      if (z.unknown >= m && model_.form.gaps[at(z.unknown - m)].degree == 2) contacts.push_back(z.unknown - m);
    }
    Mode free = mode_;  // the impulse acts along df/dlambda with the current sigma
    for (char& c : free.constraints) c = 'o';
    series_.set_mode(free);
    if (series_.evaluate(x_, clock_.now(), counters_) != SeriesStatus::ok) return fail_undefined();
    const Impact impact = apply_impact(series_, contacts, x_, direction_);
    if (!impact.solved) {
      finish(Why::nonunique, impact.message);
      return false;
    }
    std::erase_if(zeros,
                  [&](const AtZero& z) { return z.unknown < m || model_.form.gaps[at(z.unknown - m)].degree == 2; });
    for (size_t a = 0; a < contacts.size(); ++a) {
      rebounded_.push_back(contacts[a]);
      zeros.push_back({.unknown = m + contacts[a], .known = impact.closed[a] ? 2 : 1});
    }
    return true;
  }

  /// A first guess of the time in which the flow changes, needed before the first step.
  void estimate_scale() {
    double shortest = std::abs(options_.until - options_.from);
    series_.set_mode(mode_);
    if (series_.expand(x_, clock_.now(), counters_, order_) == SeriesStatus::ok) {
      shortest = std::min(
          shortest,
          StepControl(program_.states(), local_tolerance(options_.tolerance), shortest).step(series_, order_, {}));
    }
    scale_ = shortest > 0 && std::isfinite(shortest) ? shortest : 1.0;
  }

  /// Chooses among the zeros and makes the mode current. Returns false if the run has ended.
  bool settle(std::vector<AtZero> zeros, bool at_start) {
    std::fill(known_.begin(), known_.end(), 0);
    if (!zeros.empty()) {
      Choice choice = choose_mode(series_, x_, clock_.now(), counters_, mode_, zeros, choice_options(at_start));
      if (choice.outcome == Choice::Outcome::none) {  // a field may end at its surface: land on it exactly
        land_on(zeros);
        for (AtZero& z : zeros) {  // a rebound too short to be seen has ended
          if (z.unknown >= program_.switches() && !rebounded_.empty()) z.known = rest_of(z.unknown);
        }
        choice = choose_mode(series_, x_, clock_.now(), counters_, mode_, zeros, choice_options(at_start));
      }
      if (!choice.message.empty() && choice.outcome != Choice::Outcome::none) say(choice.message);
      if (choice.outcome == Choice::Outcome::none) {
        finish(Why::inconsistent, choice.message);
        return false;
      }
      if (choice.outcome == Choice::Outcome::several) {
        finish(Why::nonunique, choice.message + "; --leave chooses");
        return false;
      }
      mode_ = choice.mode;
      known_ = choice.leading;
      series_.guess(choice.sigma);
    }
    if (std::vector<AtZero> moved = walls_that_moved(); !moved.empty()) {
      if (approaching(moved) && !rebound(moved)) return false;
      return settle(std::move(moved), at_start);
    }
    series_.set_mode(mode_);
    project();
    if (program_.any_nested()) refresh_nested();
    return true;
  }

  /// Closed contacts whose wall has changed its velocity with a switch: they open, or are hit.
  std::vector<AtZero> walls_that_moved() {
    std::vector<AtZero> out;
    const int m = program_.switches();
    for (int j = 0; j < program_.constraints(); ++j) {
      const Gap& gap = model_.form.gaps[at(j)];
      if (mode_.constraints[at(j)] != 'c' || gap.degree != 2 || !contains_kind(gap.gap, SymbolKind::sigma)) continue;
      read_sigma();
      evaluate_point();
      if (point_.sign(program_.point(m + j, 1), 1e6) == 0) continue;
      mode_.constraints[at(j)] = 'o';
      out.push_back({.unknown = m + j, .known = 1});
    }
    return out;
  }

  void land_on(const std::vector<AtZero>& zeros) {
    const int m = program_.switches();
    Mode all = mode_;
    for (const AtZero& z : zeros) {
      (z.unknown < m ? all.switches[at(z.unknown)] : all.constraints[at(z.unknown - m)]) = z.unknown < m ? '0' : 'c';
    }
    series_.set_mode(all);
    series_.project(x_, clock_.now(), counters_);
  }

  /// Surfaces that depend on switches may have changed sign with them.
  void refresh_nested() {
    for (int round = 0; round < program_.switches(); ++round) {
      series_.set_mode(mode_);
      if (series_.evaluate(x_, clock_.now(), counters_) != SeriesStatus::ok) return;
      bool changed = false;
      for (int i = 0; i < program_.switches(); ++i) {
        char& c = mode_.switches[at(i)];
        if (!program_.nested(i) || c == '0' || known_[at(i)] > 0) continue;
        const double h = series_.surface(i)[0];
        const char now = h > 0 ? '+' : h < 0 ? '-' : c;
        changed = changed || now != c;
        c = now;
      }
      if (!changed) return;
    }
  }

  void project() {
    const double error = series_.project(x_, clock_.now(), counters_);
    if (!tracking_error_) return;
    for (int i = 0; i < program_.switches(); ++i) {
      if (mode_.switches[at(i)] == '0')
        result_.sliding[at(i)].largest_error = std::max(result_.sliding[at(i)].largest_error, error);
    }
  }

  void count_wraps() {
    for (size_t c = 0; c < counters_.size(); ++c) {
      counters_[c] = std::floor(evaluate(model_.form.counters[c].phase, [&](const Symbol& s) -> double {
        switch (s.kind) {
          case SymbolKind::state: return x_[at(s.index)];
          case SymbolKind::parameter: return options_.parameters[at(s.index)];
          case SymbolKind::counter: return counters_[at(s.index)];
          case SymbolKind::time: return clock_.now();
          default: return 0;
        }
      }));
    }
  }

  void say(const std::string& message) {
    if (result_.messages.size() < 100) result_.messages.push_back(message);
  }

  // ---- one step ---------------------------------------------------------------------------------------------------

  /// Returns false if the run has ended.
  bool step() {
    if (stiff_ && !after_event_) return step_stiff();
    series_.set_mode(mode_);
    const double t = clock_.now();
    const SeriesStatus status = series_.expand(x_, t, counters_, order_);
    if (status == SeriesStatus::undefined) return fail_undefined();
    if (status == SeriesStatus::unsolved) {
      finish(Why::inconsistent, "the sliding equations have no solution any more");
      return false;
    }
    list_watches();
    const double natural = control_.step(series_, order_, watched_series());
    if (std::isfinite(natural) && natural > 0) scale_ = std::min(natural, std::abs(options_.until - options_.from));
    double length = std::min(natural, std::abs(clock_.until(options_.until)));
    for (const Every& e : every_) length = std::min(length, std::abs(clock_.until(next_time(e))));
    if (!(length > 0) || !std::isfinite(length)) length = std::abs(clock_.until(options_.until));
    if (natural == 0 && analytic_order() >= 1 && !rough_) {
      return step_rough(direction_ * std::min(length, tangent_scale() * std::pow(options_.tolerance, 2.0 / 3.0)));
    }
    rough_ = false;
    if (natural < 4 * eps * std::abs(t) || natural < 1e-300)
      return arrives_at_once() ? happen(0) : fail_stalled(natural);

    Watch* first = nullptr;
    for (;;) {
      first = find_first(direction_ * length);
      const double tau = first ? first->root : direction_ * length;
      copy_piece(tau);
      if (!model_.sections.empty()) find_sections(tau);
      if (acceptable(tau)) break;
      // Too long for the defect: the series does not see what the flow meets. Try half of it.
      length = std::abs(tau) / 2;
      if (length < 4 * eps * std::abs(t) || length < 1e-300) return fail_stalled(length);
      series_.set_mode(mode_);
      series_.expand(x_, t, counters_, order_);
      list_watches();
    }
    after_event_ = false;
    const double tau = piece_.length;
    record_sections(tau);
    if (ended_) return false;
    advance(tau, first != nullptr, length);
    if (ended_) return false;
    if (!every_.empty()) record_every();
    return !ended_ && (!first || happen(tau));
  }

  /// How many coefficients of the states are finite: at the edge of a root's domain only the first ones are.
  int analytic_order() const {
    int k = 0;
    const auto finite = [&](int order) {
      for (int i = 0; i < program_.states(); ++i) {
        if (!std::isfinite(series_.state(i)[order])) return false;
      }
      return true;
    };
    while (k < order_ && finite(k + 1)) ++k;
    return k;
  }

  /// Steps shrink towards a singularity that lies on a surface: what reaches zero within the resolution of time is
  /// there.
  bool arrives_at_once() {
    bool any = false;
    for (Watch& w : watches_) {
      const double* c = function(w);
      const double value = c[0] - w.offset, rate = c[1] * direction_;
      w.found =
          w.known == 0 && value * rate < 0 && std::abs(value) <= 64 * eps * std::abs(clock_.now()) * std::abs(rate);
      w.root = 0;
      any = any || w.found;
    }
    return any;
  }

  /// The time in which the tangent changes the states.
  double tangent_scale() const {
    double shortest = std::abs(options_.until - options_.from);
    for (size_t i = 0; i < x_.size(); ++i) {
      const double* c = series_.state(static_cast<int>(i));
      if (c[0] != 0 && c[1] != 0) shortest = std::min(shortest, std::abs(c[0] / c[1]));
    }
    return shortest;
  }

  /// A start where the field has no series (a square root at zero): one step too short to matter, by its tangent.
  bool step_rough(double tau) {
    rough_ = true;
    copy_piece(tau);
    const size_t stride = at(order_) + 1;
    for (size_t i = 0; i < x_.size(); ++i) std::fill_n(&piece_.coefficients[i * stride + 2], stride - 2, 0.0);
    next_.resize(x_.size());
    advance(tau, false, std::abs(tau));
    return !ended_;
  }

  /// A step of the stiff flow: the piece comes from CVODE, what is watched is sampled along it.
  bool step_stiff() {
    series_.set_mode(mode_);
    double longest = std::abs(clock_.until(options_.until));
    for (const Every& e : every_) longest = std::min(longest, std::abs(clock_.until(next_time(e))));
    const StiffStatus made = stiff_->step(series_, x_, clock_.now(), counters_, longest, piece_);
    if (made == StiffStatus::ok && series_.evaluate(x_, clock_.now(), counters_) == SeriesStatus::ok) {
      list_watches();
      const StiffStatus seen = stiff_->sample(series_, counters_, sampled_functions(), piece_, sampled_);
      if (seen == StiffStatus::ok) return finish_stiff_step();
    }
    series_.evaluate(x_, clock_.now(), counters_);
    if (made == StiffStatus::undefined) return fail_undefined();
    if (made == StiffStatus::stalled) return fail_stalled(0);
    finish(Why::inconsistent, "the sliding equations have no solution any more");
    return false;
  }

  bool finish_stiff_step() {
    reading_samples_ = true;
    Watch* first = find_first(piece_.length);
    const double tau = first ? first->root : piece_.length;
    if (!model_.sections.empty()) find_sections(tau);
    reading_samples_ = false;
    piece_.length = tau;
    scale_ = std::abs(tau) > 0 ? std::abs(tau) : scale_;
    record_sections(tau);
    if (ended_) return false;
    next_.resize(x_.size());
    advance(tau, first != nullptr, std::abs(tau));
    if (ended_) return false;
    if (!every_.empty()) record_every();
    return !ended_ && (!first || happen(tau));
  }

  std::vector<SampledFunction> sampled_functions() {
    using Kind = SampledFunction::Kind;
    std::vector<SampledFunction> out;
    for (Watch& w : watches_) {
      w.sample = static_cast<int>(out.size());
      switch (w.what) {
        case Watched::surface: out.push_back({Kind::surface, w.item, 0}); break;
        case Watched::sigma: out.push_back({Kind::unknown, w.item, std::abs(w.offset)}); break;
        case Watched::gap: out.push_back({Kind::gap, w.item, 0}); break;
        case Watched::lambda: out.push_back({Kind::unknown, program_.switches() + w.item, 0}); break;
        case Watched::slope: out.push_back({Kind::slope, w.output, 0}); break;
        case Watched::jump: out.push_back({Kind::jump, w.item, 0}); break;
        case Watched::wrap: out.push_back({Kind::phase, w.item, std::abs(w.offset)}); break;
      }
    }
    first_section_sample_ = static_cast<int>(out.size());
    for (size_t s = 0; s < model_.sections.size(); ++s) out.push_back({Kind::section, static_cast<int>(s), 0});
    return out;
  }

  bool fail_undefined() {
    std::string name;
    for (int i = 0; i < program_.states(); ++i) {
      if (!std::isfinite(series_.rate(i)[0])) {
        name = model_.states[at(i)].name;
        break;
      }
    }
    finish(Why::undefined, name.empty() ? "the equations have no finite value here"
                                        : fmt::format("the rate of '{}' is not a finite number here", name));
    return false;
  }

  bool fail_stalled(double length) {
    double largest = 0, start = 1;
    for (size_t i = 0; i < x_.size(); ++i) {
      largest = std::max(largest, std::abs(x_[i]));
      start = std::max(start, std::abs(result_.start_state[i]));
    }
    if (largest > 1e6 * start) {
      finish(Why::diverged, fmt::format("the state grows without bound: |x| = {:.3g}", largest));
    } else {
      finish(Why::stalled, fmt::format("steps have shrunk to {:.3g}: the rates have a singularity here", length));
    }
    return false;
  }

  void copy_piece(double tau) {
    piece_.start = clock_.now();
    piece_.length = tau;
    const size_t stride = at(order_) + 1;
    piece_.coefficients.resize(x_.size() * stride);
    for (size_t i = 0; i < x_.size(); ++i) {
      std::copy_n(series_.state(static_cast<int>(i)), stride, &piece_.coefficients[i * stride]);
    }
  }

  /// The defect at the end of the step (and inside it where the series may be blind).
  bool acceptable(double tau) {
    const bool blind = series_.tape().flow.may_hide;
    next_.resize(x_.size());
    if (blind && !defect_small(tau * 0.5)) return false;
    return defect_small(tau);
  }

  bool defect_small(double tau) {
    Trajectory::evaluate(piece_, program_.states(), tau, next_.data());
    const SeriesStatus status = series_.evaluate(next_, piece_.start + tau, counters_);
    if (status == SeriesStatus::unsolved) return true;  // sliding ends here; the events say how
    if (status == SeriesStatus::undefined) return false;
    return control_.defect_small(piece_, series_, tau, order_);
  }

  void advance(double tau, bool at_event, double length) {
    Trajectory::evaluate(piece_, program_.states(), tau, next_.data());
    const bool to_end = !at_event && length >= std::abs(clock_.until(options_.until));
    if (to_end) {
      clock_.set(options_.until);
    } else {
      clock_.advance(tau);
    }
    x_.swap(next_);
    control_.accept(x_);
    for (int i = 0; i < program_.switches(); ++i) {
      if (mode_.switches[at(i)] == '0') result_.sliding[at(i)].time += std::abs(tau);
    }
    keep_piece();
    std::fill(known_.begin(), known_.end(), 0);
    if (!at_event) {
      series_.set_mode(mode_);
      tracking_error_ = true;
      project();
      tracking_error_ = false;
      for (double v : x_) {
        if (!(std::abs(v) < 1e200)) finish(Why::diverged, "the state grows without bound");
      }
    }
  }

  void keep_piece() {
    if (!options_.keep_pieces && !options_.on_piece) return;
    piece_.mode = mode_index();
    if (options_.on_piece) options_.on_piece(piece_, mode_);
    if (options_.keep_pieces) result_.pieces.push_back(piece_);
  }

  int mode_index() {
    if (result_.modes.empty() || !(result_.modes.back() == mode_)) {
      const auto it = std::find(result_.modes.begin(), result_.modes.end(), mode_);
      if (it != result_.modes.end()) return static_cast<int>(it - result_.modes.begin());
      result_.modes.push_back(mode_);
    }
    return static_cast<int>(result_.modes.size()) - 1;
  }

  // ---- events -------------------------------------------------------------------------------------------------------

  void list_watches() {
    watches_.clear();
    const int m = program_.switches();
    for (int i = 0; i < m; ++i) {
      if (!program_.moves(i)) continue;
      const char c = mode_.switches[at(i)];
      if (c != '0') {
        watches_.push_back({.what = Watched::surface, .item = i, .known = known_[at(i)], .sign = c == '+' ? 1 : -1});
      } else if (series_.tape().degree[at(i)] >= 0 && !series_.clamped(i) && !series_.ties().contains(i)) {
        const double s = series_.hold(i);
        const double start = series_.unknown(i)[0];
        const int known = known_[at(i)];
        watches_.push_back(
            {.what = Watched::sigma, .item = i, .offset = s, .known = start > 0 ? known : 0, .sign = -1});
        watches_.push_back(
            {.what = Watched::sigma, .item = i, .offset = -s, .known = start < 0 ? known : 0, .sign = 1});
      }
    }
    for (int j = 0; j < program_.constraints(); ++j) {
      const bool open = mode_.constraints[at(j)] == 'o';
      watches_.push_back(
          {.what = open ? Watched::gap : Watched::lambda, .item = j, .known = known_[at(m + j)], .sign = 1});
    }
    if (series_.slope_varies()) list_slopes();
    for (size_t k = 0; k < model_.form.jumps.size(); ++k) {
      watches_.push_back({.what = Watched::jump,
                          .item = static_cast<int>(k),
                          .known = jump_sign_[k] == 0 ? 1 : 0,
                          .sign = jump_sign_[k]});
    }
    for (size_t c = 0; c < counters_.size(); ++c) {
      const bool wrapped = wrapped_.size() > c && wrapped_[c];
      watches_.push_back(
          {.what = Watched::wrap, .item = static_cast<int>(c), .offset = counters_[c] + (direction_ > 0 ? 1 : 0)});
      watches_.push_back({.what = Watched::wrap,
                          .item = static_cast<int>(c),
                          .offset = counters_[c] + (direction_ > 0 ? 0 : 1),
                          .known = wrapped ? 1 : 0});
    }
  }

  /// Sliding may stop being attractive inside its range: watch the slope of single surfaces.
  void list_slopes() {
    if (!stiff_ || after_event_) series_.expand_slope(order_);
    for (const Series::Single& single : series_.singles()) {
      const int u = series_.active()[at(single.member)];
      if (u < program_.switches() && single.output >= 0) {
        watches_.push_back({.what = Watched::slope, .item = u, .output = single.output});
      }
    }
  }

  /// What is watched (and the sections) for the step control.
  std::span<const WatchedSeries> watched_series() {
    controlled_.clear();
    for (const Watch& w : watches_) controlled_.push_back({function(w), std::abs(w.offset)});
    for (size_t s = 0; s < model_.sections.size(); ++s) {
      if (model_.sections[s].kind == Section::Kind::on)
        controlled_.push_back({series_.section(static_cast<int>(s)), 0});
    }
    return controlled_;
  }

  const double* sample(int index) const { return &sampled_[at(index) * (at(order_) + 1)]; }

  const double* function(const Watch& w) const {
    if (reading_samples_) return sample(w.sample);
    switch (w.what) {
      case Watched::surface: return series_.surface(w.item);
      case Watched::sigma: return series_.unknown(w.item);
      case Watched::gap: return series_.gap(w.item);
      case Watched::lambda: return series_.unknown(program_.switches() + w.item);
      case Watched::slope: return series_.slope_series(w.output);
      case Watched::jump: return series_.jump(w.item);
      case Watched::wrap: return series_.phase(w.item);
    }
    return nullptr;
  }

  /// The earliest event on the step, with all that happen at the same time marked as found.
  Watch* find_first(double h) {
    Watch* first = nullptr;
    for (Watch& w : watches_) {
      w.found = w.late = false;
      locate(w, h);
      if (!w.found) continue;
      if (!first || std::abs(w.root) < std::abs(first->root)) first = &w;
      if (std::abs(w.root) < std::abs(h)) h = w.root;  // nothing later matters, but ties do
      if (h == 0) h = direction_ * resolution();
    }
    return first;
  }

  void locate(Watch& w, double h) {
    const double* c = function(w);
    const size_t count = at(order_) + 1;
    // What is negligible in time is looked at together with the first event.
    const double reach = h + direction_ * resolution();
    std::span<const double> series(c, count);
    if (w.offset != 0) {
      shifted_.assign(c, c + count);
      shifted_[0] -= w.offset;
      series = shifted_;
    }
    if (w.known == 0 && w.sign != 0 && series[0] * w.sign < 0) {
      w.found = w.late = true;
      w.root = 0;
      return;
    }
    double from = 0;
    for (int attempt = 0; attempt < 16; ++attempt) {
      const Root root = leftmost_root(series, {.h = reach, .from = from, .known_zeros = w.known});
      if (root.kind == RootKind::none) return;
      if (root.kind == RootKind::crossing && wanted(w, root.sign_after)) {
        w.found = true;
        w.root = std::abs(root.at) > std::abs(h) ? h : root.at;
        return;
      }
      from = root.at;  // a touch, or a crossing in a direction that does not count
    }
  }

  bool wanted(const Watch& w, int sign_after) const {
    if (w.what != Watched::jump) return true;
    const Direction d = model_.form.jumps[at(w.item)].direction;
    return d == Direction::any || (d == Direction::rising) == (sign_after > 0);
  }

  /// Everything found within the resolution of time happens together at the end of the step just made.
  bool happen(double tau) {
    after_event_ = true;
    if (stiff_) stiff_->restart();
    std::vector<const Watch*> now;
    for (const Watch& w : watches_) {
      if (w.found && std::abs(w.root - tau) <= resolution()) now.push_back(&w);
    }
    ++result_.cost.events;
    if (result_.cost.events > options_.max_events) {
      finish(Why::stalled, fmt::format("{} events were not enough", options_.max_events));
      return false;
    }
    const Mode before = mode_;
    const std::vector<double> x_before = x_;
    bool wrapped = false;
    std::vector<AtZero> zeros;
    std::vector<int> jumps, touched;
    wrapped_.assign(counters_.size(), false);
    for (const Watch* w : now) {
      const int m = program_.switches();
      switch (w->what) {
        case Watched::surface:
          zeros.push_back({.unknown = w->item, .known = 1});
          touched.push_back(w->item);
          break;
        case Watched::sigma:
          zeros.push_back({.unknown = w->item,
                           .known = rest_of(w->item),
                           .leaving = w->late         ? '\0'
                                      : w->offset > 0 ? '+'
                                                      : '-'});
          touched.push_back(w->item);
          break;
        case Watched::gap:
          zeros.push_back({.unknown = m + w->item, .known = model_.form.gaps[at(w->item)].degree == 0 ? 0 : 1});
          touched.push_back(m + w->item);
          break;
        case Watched::lambda:
          zeros.push_back({.unknown = m + w->item, .known = rest_of(m + w->item), .leaving = w->late ? '\0' : 'o'});
          touched.push_back(m + w->item);
          break;
        case Watched::slope: {
          finish(Why::nonunique,
                 fmt::format(
                     "sliding on '{}' stops being attractive at t = {}: the solution is not unique; --leave chooses",
                     model_.form.switches[at(w->item)].name, clock_.now()));
          return false;
        }
        case Watched::jump: jumps.push_back(w->item); break;
        case Watched::wrap:
          counters_[at(w->item)] += (w->offset == counters_[at(w->item)] + 1) ? 1 : -1;
          wrapped_[at(w->item)] = true;
          wrapped = true;
          break;
      }
    }
    add_neighbours(zeros);
    if (!series_.ties().empty()) add_ties(zeros);
    if (!jumps.empty()) apply_jumps(jumps);
    const bool anew = wrapped || !jumps.empty();
    if (anew) zeros.clear();
    bool going_on = arrive(std::move(zeros), anew, false);
    for (int round = 0; going_on && !jumps.empty(); ++round) {
      const std::vector<int> next = triggered(jumps);
      if (next.empty()) break;
      if (round == 1000) {
        finish(Why::stalled,
               fmt::format("jumps follow each other without time passing ('{}')", model_.jumps[at(next[0])].name));
        return false;
      }
      apply_jumps(next);
      going_on = arrive({}, true, false);
      jumps = next;
    }
    note_signs();
    count_slides(before);
    record(before, x_before, jumps);
    if (!model_.sections.empty()) record_at_event(jumps);
    return going_on && !ended_ && finish_chatter(touched);
  }

  /// Surfaces slid on and contacts closed take part in the choice even if they are not the event.
  void add_neighbours(std::vector<AtZero>& zeros) const {
    const int m = program_.switches();
    const auto listed = [&](int u) {
      return std::any_of(zeros.begin(), zeros.end(), [u](const AtZero& z) { return z.unknown == u; });
    };
    for (int i = 0; i < m; ++i) {
      const bool slid = mode_.switches[at(i)] == '0' && program_.moves(i);
      if (slid && !listed(i)) zeros.push_back({.unknown = i, .known = rest_of(i), .fresh = false});
    }
    for (int j = 0; j < program_.constraints(); ++j) {
      const bool takes_part = mode_.constraints[at(j)] == 'c' || model_.form.gaps[at(j)].degree == 0;
      if (takes_part && !listed(m + j)) zeros.push_back({.unknown = m + j, .known = rest_of(m + j), .fresh = false});
    }
  }

  /// A multiple of a surface is zero with it, whatever rounding says.
  void add_ties(std::vector<AtZero>& zeros) const {
    const auto find = [&](int u) {
      return std::find_if(zeros.begin(), zeros.end(), [u](const AtZero& z) { return z.unknown == u; });
    };
    for (const auto& [u, tie] : series_.ties()) {
      const auto [leader, sign] = tie;
      const auto a = find(u), b = find(leader);
      if ((a == zeros.end()) == (b == zeros.end())) continue;
      AtZero other = a == zeros.end() ? *b : *a;
      other.unknown = a == zeros.end() ? u : leader;
      if (other.leaving && sign < 0) other.leaving = other.leaving == '+' ? '-' : '+';
      zeros.push_back(other);
    }
    for (const auto& [u, tie] : series_.ties()) {  // both leave if one does
      const auto a = find(u), b = find(tie.first);
      if (a == zeros.end()) continue;
      if (b->leaving && !a->leaving) a->leaving = tie.second > 0 ? b->leaving : b->leaving == '+' ? '-' : '+';
      a->fresh = a->fresh || b->fresh;
    }
  }

  /// How many of h, h', ... vanish for something that rests on its surface.
  int rest_of(int u) const {
    const bool algebraic = u >= program_.switches() && model_.form.gaps[at(u - program_.switches())].degree == 0;
    return algebraic ? 0 : program_.point_degree(u);
  }

  void apply_jumps(const std::vector<int>& jumps) {
    series_.set_mode(mode_);
    series_.evaluate(x_, clock_.now(), counters_);
    const Jet<double>& values = series_.actions();
    std::vector<double> next = x_;
    for (const int k : jumps) {
      const LoweredJump& jump = model_.form.jumps[at(k)];
      for (size_t s = 0; s < jump.set.size(); ++s) {
        next[at(jump.set[s].state)] = values.output(program_.jump_value(k, static_cast<int>(s)))[0];
      }
    }
    x_ = next;
  }

  /// Jumps whose function the last ones have carried over zero in their direction.
  std::vector<int> triggered(const std::vector<int>& last) {
    std::vector<int> out;
    const std::vector<int> old = jump_sign_;
    note_signs();
    for (size_t k = 0; k < jump_sign_.size(); ++k) {
      if (std::find(last.begin(), last.end(), static_cast<int>(k)) != last.end()) continue;
      if (old[k] * jump_sign_[k] < 0 && wanted({.what = Watched::jump, .item = static_cast<int>(k)}, jump_sign_[k])) {
        out.push_back(static_cast<int>(k));
      }
    }
    return out;
  }

  /// Signs of jump conditions and sections at the current state, where the next step starts from.
  void note_signs() {
    if (ended_ || (model_.form.jumps.empty() && model_.sections.empty())) return;
    series_.set_mode(mode_);
    if (series_.evaluate(x_, clock_.now(), counters_) != SeriesStatus::ok) return;
    const auto sign = [](double c) { return c > 0 ? 1 : c < 0 ? -1 : 0; };
    for (size_t k = 0; k < jump_sign_.size(); ++k) jump_sign_[k] = sign(series_.jump(static_cast<int>(k))[0]);
    for (size_t s = 0; s < section_sign_.size(); ++s) section_sign_[s] = sign(series_.section(static_cast<int>(s))[0]);
  }

  void count_slides(const Mode& before) {
    for (size_t i = 0; i < mode_.switches.size(); ++i)
      slides_ += mode_.switches[i] == '0' && before.switches[i] != '0' ? 1 : 0;
  }

  /// What a user sees of an arrival: jumps, impacts, then the change of mode.
  void record(const Mode& before, const std::vector<double>& x_before, const std::vector<int>& jumps) {
    if (!options_.keep_events && !options_.on_event) return;
    const int m = program_.switches();
    const auto letter = [m](const Mode& mode, int u) {
      return u < m ? mode.switches[at(u)] : mode.constraints[at(u - m)];
    };
    std::vector<int> changed;
    for (int u = 0; u < program_.unknowns(); ++u) {
      if (letter(before, u) != letter(mode_, u)) changed.push_back(u);
    }
    bool jumped = !jumps.empty();
    if (jumped) {
      Event event{.t = clock_.now(), .kind = EventKind::jump, .before = before, .after = before, .jumped = x_before};
      for (const int k : jumps) event.on.push_back(model_.jumps[at(k)].name);
      emit(std::move(event));
    }
    const bool closes = changed.size() == 1 && changed[0] >= m && letter(mode_, changed[0]) == 'c';
    if (!rebounded_.empty() && !closes) {
      jumped = true;
      Event event{.t = clock_.now(), .kind = EventKind::impact, .before = before, .after = before, .jumped = x_before};
      for (const int j : rebounded_) event.on.push_back(model_.constraints[at(j)].name);
      emit(std::move(event));
    }
    if (changed.empty()) return;
    Event event{.t = clock_.now(), .kind = EventKind::mode, .before = before, .after = mode_};
    if (!jumped && !rebounded_.empty()) event.jumped = x_before;
    for (const int u : changed)
      event.on.push_back(u < m ? model_.form.switches[at(u)].name : model_.constraints[at(u - m)].name);
    if (changed.size() == 1) {
      const char from = letter(before, changed[0]), to = letter(mode_, changed[0]);
      event.kind = to == 'c'     ? EventKind::close
                   : to == 'o'   ? EventKind::open
                   : to == '0'   ? EventKind::slide
                   : from == '0' ? EventKind::leave
                                 : EventKind::cross;
    }
    emit(std::move(event));
  }

  void emit(Event event) {
    event.state = x_;
    emit_as_is(std::move(event));
  }

  void emit_as_is(Event event) {
    if (options_.on_event) options_.on_event(event);
    if (!options_.keep_events) return;
    if (static_cast<long>(result_.events.size()) >= options_.max_kept_events) {
      if (!events_full_)
        say(fmt::format("only the first {} events are kept; later ones are counted", options_.max_kept_events));
      events_full_ = true;
      return;
    }
    result_.events.push_back(std::move(event));
  }

  // ---- chatter ----------------------------------------------------------------------------------------------------

  struct Past {
    double t = 0;
    std::vector<int> touched;
    bool impact = false;
    std::vector<double> x;
  };

  /// Recognises events whose intervals shrink geometrically and goes to their limit. Returns false if the run has
  /// ended.
  bool finish_chatter(const std::vector<int>& touched) {
    constexpr size_t memory = 40;
    past_.push_back({clock_.now(), touched, !rebounded_.empty(), x_});
    if (past_.size() > memory) past_.pop_front();
    const std::optional<double> rest = time_to_limit();
    if (!rest) return true;
    if (!options_.zeno_stop) return go_to_limit(*rest);
    series_.set_mode(mode_);
    if (series_.evaluate(x_, clock_.now(), counters_) == SeriesStatus::ok) x_ = extrapolate(*rest);
    clock_.advance(direction_ * *rest);
    finish(Why::zeno, "events accumulate here");
    return false;
  }

  /// Time left until the events accumulate, if the last ones repeat with intervals in a constant ratio below one and
  /// what is left is too short to matter for anything but these events.
  std::optional<double> time_to_limit() {
    const size_t n = past_.size();
    for (size_t period = 1; period <= 8 && 4 * period < n; ++period) {
      bool repeats = true;
      for (size_t i = 0; i < 3 * period && repeats; ++i) {
        const Past &a = past_[n - 1 - i], &b = past_[n - 1 - i - period];
        repeats = a.touched == b.touched && a.impact == b.impact && !a.touched.empty();
      }
      if (!repeats) continue;
      const auto interval = [&](size_t k) {
        return std::abs(past_[n - 1 - k * period].t - past_[n - 1 - (k + 1) * period].t);
      };
      const double d0 = interval(0), d1 = interval(1), d2 = interval(2), d3 = interval(3);
      if (!(d0 < d1 && d1 < d2 && d2 < d3)) continue;
      const double longest = std::abs(past_.front().t - past_.back().t);
      const double ratio = d0 / d1;
      const double rest = d0 * ratio / (1 - ratio);
      const double drift = std::abs(d1 / d2 - ratio) + std::abs(d2 / d3 - ratio);
      const bool steady = drift < 0.02 * (1 - ratio) + 64 * resolution() / d0;
      sequence_start_ = std::max(sequence_start_, longest);
      const bool short_enough = rest < 1e-7 * std::min(sequence_start_, time_scale());
      exhausted_ = d0 < 1e3 * resolution();
      if (ratio < 0.9999 && (exhausted_ || (steady && short_enough))) {
        period_ = period;
        ratio_ = ratio;
        return rest;
      }
      return std::nullopt;
    }
    sequence_start_ = 0;
    return std::nullopt;
  }

  /// The limit: what chattered has come to rest; everything else went on as in the mode in which it rests.
  bool go_to_limit(double rest) {
    const int m = program_.switches();
    std::vector<int> resting;
    for (size_t i = 0; i < period_; ++i) {
      const Past& p = past_[past_.size() - 1 - i];
      resting.insert(resting.end(), p.touched.begin(), p.touched.end());
    }
    std::sort(resting.begin(), resting.end());
    resting.erase(std::unique(resting.begin(), resting.end()), resting.end());
    const Mode last = mode_;
    const std::vector<double> x_last = x_;
    const Clock clock_last = clock_;
    Mode limit = mode_;
    for (const int u : resting) (u < m ? limit.switches[at(u)] : limit.constraints[at(u - m)]) = u < m ? '0' : 'c';
    series_.set_mode(limit);
    series_.project(x_, clock_.now(), counters_);
    const bool exists = series_.evaluate(x_, clock_.now(), counters_) == SeriesStatus::ok;
    if (exists) {
      x_ = extrapolate(rest);
      clock_.advance(direction_ * rest);
      series_.project(x_, clock_.now(), counters_);
      std::vector<AtZero> zeros;
      for (const int u : resting) zeros.push_back({.unknown = u, .known = rest_of(u)});
      mode_ = last;
      add_neighbours(zeros);
      const Choice choice = choose_mode(series_, x_, clock_.now(), counters_, mode_, zeros, choice_options(false));
      const bool rests =
          choice.outcome != Choice::Outcome::none && std::any_of(resting.begin(), resting.end(), [&](int u) {
            return (u < m ? choice.mode.switches[at(u)] : choice.mode.constraints[at(u - m)]) == (u < m ? '0' : 'c');
          });
      if (rests) {
        past_.clear();
        sequence_start_ = 0;
        rebounded_.clear();
        ++result_.cost.events;
        if (!settle(zeros, false)) return false;
        note_signs();
        count_slides(last);
        Event event{.t = clock_.now(), .kind = EventKind::chatter, .before = last, .after = mode_};
        for (const int u : resting)
          event.on.push_back(u < m ? model_.form.switches[at(u)].name : model_.constraints[at(u - m)].name);
        event.jumped = x_last;
        const double smallest = 16 * eps * std::max(std::abs(clock_.now()), rest);
        event.count =
            static_cast<long>(period_) * std::max(1L, static_cast<long>(std::log(smallest / rest) / std::log(ratio_)));
        emit(std::move(event));
        return !ended_;
      }
    }
    // No rest at the limit: go on event by event, as long as time can tell them apart.
    mode_ = last;
    x_ = x_last;
    clock_ = clock_last;
    series_.set_mode(mode_);
    if (exhausted_)
      finish(Why::zeno,
             fmt::format("events accumulate at t = {} and none of the model's modes goes on from there", clock_.now()));
    return !ended_;
  }

  /// The states at the limit: each follows its own geometric sequence, or its rate where that is not to be seen.
  std::vector<double> extrapolate(double rest) const {
    const size_t n = past_.size();
    const std::vector<double>&a = past_[n - 1].x, &b = past_[n - 1 - period_].x, &c = past_[n - 1 - 2 * period_].x;
    std::vector<double> out = x_;
    for (size_t i = 0; i < x_.size(); ++i) {
      const double last = a[i] - b[i], before = b[i] - c[i], ratio = last / before;
      const bool seen = std::abs(before) > 64 * eps * std::abs(a[i]);
      if (seen && std::abs(ratio) < 0.99995) {
        out[i] = a[i] + last * ratio / (1 - ratio);
      } else {
        out[i] = x_[i] + direction_ * rest * series_.rate(static_cast<int>(i))[0];
      }
    }
    return out;
  }

  // ---- sections ---------------------------------------------------------------------------------------------------

  struct Every {
    int section = 0;
    double interval = 0;
    long next = 1;
  };

  double next_time(const Every& e) const {
    return options_.from + direction_ * e.interval * static_cast<double>(e.next);
  }

  /// Points where the piece just made passes through sections; the piece itself is not cut.
  void find_sections(double tau) {
    passages_.clear();
    for (size_t s = 0; s < model_.sections.size(); ++s) {
      if (model_.sections[s].kind != Section::Kind::on) continue;
      const double* series =
          reading_samples_ ? sample(first_section_sample_ + static_cast<int>(s)) : series_.section(static_cast<int>(s));
      const std::span<const double> c(series, at(order_) + 1);
      const int sign = section_sign_[s];
      if (sign != 0 && c[0] * sign < 0) passages_.push_back({static_cast<int>(s), 0.0, -sign});
      double from = 0;
      for (int found = 0; found < 1000; ++found) {
        const Root root = leftmost_root(c, {.h = tau, .from = from, .known_zeros = sign == 0 ? 1 : 0});
        if (root.kind == RootKind::none) break;
        if (root.kind == RootKind::crossing) passages_.push_back({static_cast<int>(s), root.at, root.sign_after});
        from = root.at;
      }
      const double end = saltus::evaluate(c, tau);
      if (end != 0) next_sign_[s] = end > 0 ? 1 : -1;
    }
  }

  void record_sections(double tau) {
    std::stable_sort(passages_.begin(), passages_.end(),
                     [](const Passage& a, const Passage& b) { return std::abs(a.tau) < std::abs(b.tau); });
    std::vector<double> x(x_.size());
    for (const Passage& p : passages_) {
      if (std::abs(p.tau) > std::abs(tau)) break;
      const Section& section = model_.sections[at(p.section)];
      // Backward in time a rising crossing is met from above.
      const int sign = direction_ > 0 ? p.sign : -p.sign;
      const double t = piece_.start + p.tau;
      if (std::abs(t - section_seen_[at(p.section)]) <= 4 * resolution()) continue;
      if (std::abs(t - options_.from) <= 4 * resolution()) continue;
      section_seen_[at(p.section)] = t;
      if (section.direction != Direction::any && (section.direction == Direction::rising) != (sign > 0)) continue;
      Trajectory::evaluate(piece_, program_.states(), p.tau, x.data());
      if (pass(p.section, t, x)) {
        piece_.length = p.tau;
        keep_piece();
        x_ = x;
        clock_.advance(p.tau);
        finish(counted_out_ ? Why::count : Why::stop, fmt::format("section '{}'", section.name));
        return;
      }
    }
    section_sign_ = next_sign_;
  }

  /// Reports a point of a section. Returns whether the run ends here.
  bool pass(int s, double t, const std::vector<double>& x) {
    const bool wants_more = !options_.on_section || options_.on_section({s, t, x, result_.cost.events, slides_});
    if (options_.keep_events || options_.on_event) {
      Event event{
          .t = t, .kind = EventKind::section, .on = {model_.sections[at(s)].name}, .before = mode_, .after = mode_};
      event.state = x;
      emit_as_is(std::move(event));
    }
    if (s == options_.section && ++section_points_ >= options_.section_count && options_.section_count > 0)
      counted_out_ = true;
    return counted_out_ || !wants_more || model_.sections[at(s)].stop;
  }

  /// Sections at fixed intervals that are due now.
  void record_every() {
    for (Every& e : every_) {
      if (std::abs(clock_.until(next_time(e))) > 4 * resolution()) continue;
      ++e.next;
      if (pass(e.section, clock_.now(), x_))
        finish(counted_out_ ? Why::count : Why::stop, fmt::format("section '{}'", model_.sections[at(e.section)].name));
    }
  }

  /// Sections on a contact or a jump, at the event just recorded.
  void record_at_event(const std::vector<int>& jumps) {
    for (size_t s = 0; s < model_.sections.size(); ++s) {
      const Section& section = model_.sections[s];
      const std::vector<int>& happened = section.kind == Section::Kind::jump ? jumps : rebounded_;
      if (section.kind != Section::Kind::jump && section.kind != Section::Kind::constraint) continue;
      if (std::find(happened.begin(), happened.end(), section.index) == happened.end()) continue;
      if (pass(static_cast<int>(s), clock_.now(), x_))
        finish(counted_out_ ? Why::count : Why::stop, fmt::format("section '{}'", section.name));
    }
  }

  struct Passage {
    int section = 0;
    double tau = 0;
    int sign = 0;
  };

  const Program& program_;
  const Model& model_;
  const RunOptions& options_;
  int order_;
  Series series_;
  StepControl control_;
  Clock clock_;
  double direction_;
  std::vector<double> x_, next_;
  std::vector<double> counters_;
  std::vector<bool> wrapped_;
  Mode mode_;
  std::vector<int> known_;
  std::map<int, char> leave_;
  std::vector<int> jump_sign_, section_sign_;
  std::vector<double> section_seen_;
  std::vector<Every> every_;
  std::vector<int> rebounded_;
  std::vector<Watch> watches_;
  std::vector<double> shifted_;
  std::vector<WatchedSeries> controlled_;
  Piece piece_;
  double scale_ = 0;
  bool started_ = false;
  bool ended_ = false;
  bool rough_ = false;  // the last step was made without a series
  bool events_full_ = false;
  bool tracking_error_ = false;
  std::optional<StiffFlow> stiff_;
  bool after_event_ = true;  // the step after an event is a Taylor step: it knows which coefficients vanish
  bool reading_samples_ = false;
  std::vector<double> sampled_;
  int first_section_sample_ = 0;
  Rounding point_;
  std::vector<double> sigma_;
  std::deque<Past> past_;
  double sequence_start_ = 0;  // longest interval of the current geometric sequence
  size_t period_ = 1;
  bool exhausted_ = false;  // events have become too close for time to tell them apart
  double ratio_ = 0.5;
  std::vector<Passage> passages_;
  std::vector<int> next_sign_;
  long section_points_ = 0;
  long slides_ = 0;
  bool counted_out_ = false;
  Trajectory result_;
};

}  // namespace

Trajectory simulate_event_driven(const Program& program, const RunOptions& options) {
  return Engine(program, options).run();
}

}  // namespace saltus
