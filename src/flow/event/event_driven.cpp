#include "flow/event/event_driven.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/index.hpp"
#include "flow/event/clusters.hpp"
#include "flow/event/leg_modes.hpp"
#include "flow/event/watches.hpp"
#include "flow/events.hpp"
#include "flow/leading.hpp"
#include "flow/recorder.hpp"
#include "flow/smooth.hpp"
#include "flow/thresholds.hpp"
#include "flow/vector_rest.hpp"
#include "model/polynomial_form.hpp"
#include "solve/polynomial.hpp"

namespace saltus {

/// Runs, one after the other; their memory is used again.
class EventEngine {
 public:
  EventEngine(EngineMemory& memory, const RunOptions& options, Trajectory& result)
      : memory_(memory),
        program_(memory.program),
        model_(program_.model()),
        smooth_(*memory.series, memory.order, memory.orders, options),
        watches_(program_, 1),
        recorder_(program_, options, result),
        events_(*memory.series, *memory.point, memory.chatter, recorder_, options) {}

  void run(const RunOptions& options, Trajectory& result) {
    const auto begin = std::chrono::steady_clock::now();
    begin_run(options, result);
    start();
    while (!recorder_.ended() && !finished()) {
      guards_.clear();
      const Leg legs = may_be_ordinary_ ? make_legs() : Leg::other;
      if (legs == Leg::made) continue;
      const Clusters::Outcome outcome =
          clusters_ ? clusters_->run(now_, guards_, time_scale()) : Clusters::Outcome::step;
      if (outcome == Clusters::Outcome::end) continue;
      if (outcome == Clusters::Outcome::step && legs != Leg::event) step();
      if (!guards_.empty() && !recorder_.ended()) {
        begin_event();
        events_.happen(now_, guards_, time_scale(), resolution());
      }
      recorder_.step(now_);
    }
    recorder_.finish(Why::time, "", now_);
    if (!smooth_.may_turn_stiff() && smooth_.idle_steps() > 1000 && 2 * smooth_.idle_steps() > recorder_.steps())
      recorder_.say(
          fmt::format("{} of {} steps were short for stability, not for accuracy: `flow` stiff is likely to be faster",
                      smooth_.idle_steps(), recorder_.steps()));
    result.cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  // ---- start and end ------------------------------------------------------------------------------------------------

  void begin_run(const RunOptions& options, Trajectory& result) {
    options_ = &options;
    direction_ = options.until < options.from ? -1.0 : 1.0;
    smooth_.begin_run(memory_.order, memory_.orders, options);
    watches_.begin_run(direction_);
    recorder_.begin_run(options, result);
    events_.begin_run(options);
    clusters_.reset();
    if (Clusters::may_serve(program_)) clusters_.emplace(memory_, options, recorder_, events_.jumps());
    now_.clock.set(options.from);
    now_.x = options.initial;
    now_.guess.clear();
    now_.arrival = std::nan("");
    guards_.clear();
    next_sign_.clear();
    first_scale_ = 0;
    blind_steps_ = rough_steps_ = short_steps_ = singular_watches_ = 0;
    longest_natural_ = rest_scale_ = 0;
    balanced_at_ = std::nan("");
    after_event_ = true;
    may_be_ordinary_ = options.legs && direction_ > 0 && program_.vectors() == 0 && events_.jumps_are_plain() &&
                       !options.stiff && !clusters_;
    ticks_ = std::isfinite(events_.jumps().next_tick());
    horizon_ = std::abs(options.until - options.from);
    longest_leg_ = 1000 * recorder_.shortest_interval();
    leaps_ = may_leap();
    crossings_.clear();
  }

  void start() {
    events_.start(now_, [this] { return first_scale(); });
  }

  /// The time scale of the flow where the run starts, before anything is known of its mode.
  double first_scale() {
    if (first_scale_ > 0) return first_scale_;
    first_scale_ = 1;
    if (program_.unknowns() == 0 && events_.jumps().size() == 0) return first_scale_;
    return first_scale_ = smooth_.estimate_scale(first_moment());
  }

  Moment first_moment() const {
    Moment first{.x = options_->initial,
                 .counters = std::vector<double>(at(model_.form.counter_values), 0.0),
                 .mode = {std::string(at(program_.switches()), '+'), program_.open_constraints()}};
    first.clock.set(options_->from);
    return first;
  }

  bool finished() const { return direction_ * now_.clock.until(options_->until) <= 0; }

  bool time_scale_known() const { return smooth_.time_scale() > 0 || first_scale_ > 0; }
  /// The time scale of the flow, or of its start as long as it shows none; where it is not known, the series are then
  /// those of the start.
  double time_scale() { return smooth_.time_scale() > 0 ? smooth_.time_scale() : first_scale(); }
  double resolution() { return same_time_bits * eps * std::max(std::abs(now_.t()), time_scale() * same_time_share); }

  // ---- one step -----------------------------------------------------------------------------------------------------

  /// Moves `now_` to the end of the next piece; `guards_` are zero there.
  void step() {
    if (smooth_.stiff() && !after_event_) return stiff_step();
    const double t = now_.t();
    const SeriesStatus status = smooth_.begin(now_);
    if (status != SeriesStatus::ok) return fail(status);
    read_determinants(determinants_);
    if (program_.vectors() > 0 && come_near_rest()) return;
    watches_.list(now_, smooth_, events_.jumps(), true);
    if (end_where_undefined()) return;
    std::span<const WatchedSeries> watched = watches_.series(smooth_);
    const double natural = smooth_.natural(watched);
    if (!time_scale_known()) {
      first_scale();
      watched = expand_again();
    }
    const double longest = longest_step();
    double length = std::min(natural, longest);
    if (!(length > 0) || !std::isfinite(length)) length = longest;
    const double shortest = std::max(shortest_step_bits * eps * std::abs(t), 1e-300);
    if (natural < shortest) return rough_step(natural, watched);
    longest_natural_ = std::max(longest_natural_, std::min(natural, horizon()));
    if (natural < shrunk_share * longest_natural_) {
      if (const Watch* there = watches_.within_rounding(smooth_, natural)) return land(*there, natural, watched);
    }
    const Watch* first = nullptr;
    const double resolved = resolution();
    for (;;) {
      first = watches_.find_first(smooth_, events_.jumps(), direction_ * length, resolved, false);
      const double tau = first ? first->root : direction_ * length;
      if (first && first->late && watches_.is_at_pole(*first, smooth_, resolved) && step_over(few_singular_watches))
        return;
      smooth_.cut(now_, tau);
      find_sections(tau, false, first != nullptr);
      if (smooth_.trusts(now_, tau, watched)) break;
      smooth_.begin(now_);
      if (const double touch = watches_.find_touch(smooth_, tau, resolved); touch != 0) {
        // The flow arrives at a surface along its tangent and may not leave it again: a tank that runs empty.
        smooth_.cut(now_, touch);
        find_sections(touch, false);
        if (smooth_.trusts(now_, 0.75 * touch, watched)) {
          smooth_.piece().length = touch;
          first = watches_.touched();
          break;
        }
      }
      // Too long for the defect: the series does not see what the flow meets. Try half of it.
      length = std::abs(tau) / 2;
      watched = expand_again();
      if (length < shortest) return rough_step(length, watched);
    }
    rough_steps_ = singular_watches_ = 0;
    blind_steps_ = length < blind_share * std::min(natural, longest) ? blind_steps_ + 1 : 0;
    const double short_step = std::max(short_of_run * measure(longest_natural_), short_of_longest * longest_natural_);
    short_steps_ = length < short_step ? short_steps_ + 1 : 0;
    const bool creeps = short_steps_ > 0 && short_steps_ % few_blind_steps == 0;
    if (program_.vectors() == 0 && determinants_.empty() && (creeps || blind_steps_ > few_blind_steps) &&
        come_to_rest())
      return;
    if (!first && length < std::min(natural, longest)) smooth_.note_cut(length);
    if (blind_steps_ > most_blind_steps) return stall(length);
    if (!determinants_.empty()) {
      read_determinants(determinants_at_end_);
      for (size_t b = 0; b < determinants_.size(); ++b) {
        if (determinants_[b] * determinants_at_end_[b] >= 0) continue;
        const double where = where_determinant_vanishes();
        // The slope is known to some last bits.
        const double bits = tangent_bits * eps * std::max(std::abs(now_.t()), std::abs(where));
        if (first && std::abs(smooth_.piece().length - where) <= std::max(resolution(), bits)) break;  // that decides
        return fail_at_determinant(where);
      }
    }
    return advance(first, natural, watched);
  }

  // ---- vector switches near rest
  // --------------------------------------------------------------------------------------

  /// Vector switches that will be at rest in no time, or pass it as nearly, go there with frozen forces. The series are
  /// those of now.
  bool come_near_rest() {
    if (!time_scale_known()) return false;
    Series& series = smooth_.series();
    const double soon = frozen_share * time_scale();
    std::vector<int> near;
    bool any = false;
    for (int v = 0; v < program_.vectors(); ++v) {
      const int lead = program_.parts(v)[0];
      if (now_.mode.switches[at(lead)] != '~') continue;
      const double* r = series.surface(lead);
      const double falls = -r[1] * direction_;
      if (!(falls > 0) || !(r[0] < 100 * soon * falls)) continue;
      near.push_back(v);
      any = any || r[0] < soon * falls;
    }
    if (!any) return false;
    const std::optional<FrozenEnd> end = follow_to_rest(series, now_, near, direction_);
    const std::span<const WatchedSeries> watched = expand_again();
    if (!end || end->time > std::abs(now_.clock.until(options_->until))) return false;
    cut_rough(direction_ * end->time);
    advance(nullptr, 0, watched);
    now_.x = end->x;
    for (const int v : end->rests) guards_.push_back({GuardKind::surface, program_.parts(v)[0], 1});
    return true;
  }

  /// Vector switches that have left rest along their departure series slip from here on.
  void end_departure() {
    if (!smooth_.series().departs()) return;
    for (char& c : now_.mode.switches) {
      if (c == '^') c = '~';
    }
    now_.guess.clear();
  }

  // ---- ordinary legs ------------------------------------------------------------------------------------------------

  enum class Leg { made, event, other };

  /// Ordinary legs, one after the other, each to the same bits as by `step`; `other`: the next one is not ordinary, and
  /// nothing of it has been changed; `event`: what its end does is not, and `guards_` are zero there.
  Leg make_legs() {
    smooth_.series().set_mode(now_.mode);
    LegMode* mode = leg_modes_.of(now_, smooth_, watches_, events_);
    while (mode && !finished() && !(smooth_.stiff() && !after_event_)) {
      LegWatch* first = nullptr;
      const double natural = smooth_.begin_leg(now_, mode->controlled);
      const double length = natural > 0 ? ordinary_length(*mode, natural, first) : 0;
      if (length == 0) {
        smooth_.give_up();
        return Leg::other;
      }
      take_leg(*mode, length, natural, first);
      if (recorder_.ended()) {
        recorder_.step(now_);
        return Leg::made;
      }
      if (first) {
        if (!end_leg(*mode, *first)) return Leg::event;
        mode = leg_modes_.of(now_, smooth_, watches_, events_);
      } else if (ticks_ && add_ticks()) {
        if (!tick(*mode)) return Leg::event;
      } else {
        recorder_.drifted(now_.mode, smooth_.series().project(now_.x, now_.t(), now_.counters));
        if (!events_.passes_no_jump(now_)) guards_ = events_.crossed(now_);
        if (!guards_.empty()) return Leg::event;
      }
      recorder_.step(now_);
      if (recorder_.ended()) return Leg::made;
    }
    return mode && finished() ? Leg::made : Leg::other;
  }

  /// Up to the first zero, or as long as the series carry; 0 where the leg is not ordinary.
  double ordinary_length(LegMode& mode, double natural, LegWatch*& first) {
    const double t = std::abs(now_.t()), scale = smooth_.time_scale();
    const double longest = ticks_ ? longest_step() : std::min(now_.clock.until(options_->until), longest_leg_),
                 length = std::min(natural, longest);
    const double longest_natural = std::max(longest_natural_, std::min(natural, horizon_));
    if (!(natural >= std::max(shortest_step_bits * eps * t, 1e-300)) || !(scale > 0) || !(length > 0)) return 0;
    if (natural < shrunk_share * longest_natural) return 0;
    leg_is_short_ = length < std::max(short_of_run * measure(longest_natural), short_of_longest * longest_natural);
    if (leg_is_short_ && (short_steps_ + 1) % few_blind_steps == 0) return 0;
    const double resolved = same_time_bits * eps * std::max(t, scale * same_time_share);
    if (!find_alone(mode, now_, events_.jumps(), smooth_.order(), length, resolved, first)) return 0;
    const double tau = first ? first->watch.root : length;
    if (first && ticks_ && ticks_after(tau, 4 * resolved)) return 0;
    const bool quiet = smooth_.is_quiet(tau);
    if (quiet && !smooth_.trusts_quietly(tau)) return 0;
    if (recorder_.has_surface_sections()) find_sections(tau, false, first != nullptr);
    smooth_.mark(now_, tau);
    leg_is_read_ = !crossings_.empty() || recorder_.is_due(now_, tau + 4 * resolved);
    if (leg_is_read_ || recorder_.wants_pieces()) smooth_.copy_piece();
    return quiet || smooth_.trusts(now_, tau, mode.controlled) ? tau : 0;
  }

  /// To the end of the leg.
  void take_leg(LegMode& mode, double tau, double natural, const LegWatch* first) {
    rough_steps_ = blind_steps_ = singular_watches_ = 0;
    short_steps_ = leg_is_short_ ? short_steps_ + 1 : 0;
    longest_natural_ = std::max(longest_natural_, std::min(natural, horizon_));
    if (first && !crossings_.empty()) recorder_.wait_for_event(crossings_, tau, resolution());
    const bool happens = first ? leaps_ : ticks_ && ticks_after(tau, resolution());
    if (leg_is_read_) recorder_.pass(smooth_.piece(), crossings_, now_, resolution(), happens);
    if (recorder_.ended()) return;
    recorder_.slid(now_.mode, tau);
    if (recorder_.wants_pieces()) recorder_.keep(smooth_.piece(), now_);
    now_.arrival = first ? watches_.arrival(first->watch, smooth_, tau) : std::nan("");
    const std::vector<double>& end = smooth_.end();
    move_clock(tau, first == nullptr);
    smooth_.accept(tau, natural, mode.controlled);
    std::copy(end.begin(), end.end(), now_.x.begin());
    after_event_ = false;
    if (tau > resolution()) std::fill(now_.known.begin(), now_.known.end(), 0);
    for (size_t s = 0; s < next_sign_.size(); ++s) recorder_.set_section_sign(s, next_sign_[s]);
    recorder_.has_grown(now_);
  }

  /// Makes the event at the end of the leg, if rates decide it.
  bool end_leg(const LegMode& mode, LegWatch& first) {
    begin_event();
    const double resolved = resolution();
    const bool alone = first.watch.root > resolved;  // otherwise what was zero before may be known to be so still
    const bool jumps = mode.jumps && first.watch.guard.kind == GuardKind::jump;
    if (alone && jumps && events_.jump_alone(now_, first.watch.guard, smooth_.time_scale(), resolved)) return true;
    if (alone && !jumps && events_.happen(now_, first.lone, smooth_.time_scale(), resolved)) return true;
    guards_.assign(1, first.watch.guard);
    return false;
  }

  /// The tick of a clock, if it is the only one and its jump is simple.
  bool tick(const LegMode& mode) {
    begin_event();
    if (guards_.size() != 1 || !mode.jumps) return false;
    if (!events_.jump_alone(now_, guards_[0], smooth_.time_scale(), resolution())) return false;
    guards_.clear();
    return true;
  }

  void begin_event() {
    rough_steps_ = 0;
    after_event_ = true;
    smooth_.restart();
  }

  /// The series of `now_`, after others, and what is watched on them.
  std::span<const WatchedSeries> expand_again() {
    smooth_.begin(now_);
    watches_.list(now_, smooth_, events_.jumps(), true);
    return watches_.series(smooth_);
  }

  /// The series carry less than time can see: along the tangent out of a singularity (a square root at zero), or into
  /// what is about to happen.
  void rough_step(double carried, std::span<const WatchedSeries> watched) {
    if ((program_.vectors() == 0 && come_to_rest()) || pass_singular_watch()) return;
    const double unit = eps * std::abs(now_.t());
    if (smooth_.analytic_order() >= 1) {
      const double rough = smooth_.tangent_length(now_, longest_step(), direction_);
      if (watches_.arrive_within(4 * std::max(rough, tangent_bits * unit))) return found_here();
      if (rough > 0 && rough_steps_ < most_rough_steps) {
        ++rough_steps_;
        cut_rough(direction_ * rough);
        return advance(nullptr, carried, watched);
      }
    }
    if (watches_.arrive_within(64 * unit)) return found_here();
    if (drop_underflows()) return;
    stall(carried);
  }

  /// A watched function has no series here (a pole, a cut, the end of its domain), but the states have: they go on over
  /// it, and its value behind it tells what has happened.
  bool pass_singular_watch() {
    if (!smooth_.carries_states(std::min(smooth_.least_step(now_.t()), longest_step()))) return false;
    if (watches_.closes_within(smooth_.least_step(now_.t()))) {
      found_here();
      return true;
    }
    return step_over(most_singular_watches);
  }

  bool step_over(int most_in_a_row) {
    if (++singular_watches_ > most_in_a_row) return false;
    const double length = std::min(smooth_.least_step(now_.t()), longest_step());
    smooth_.cut(now_, direction_ * length);
    find_sections(direction_ * length, false);
    advance(nullptr, 0, {});
    return true;
  }

  /// A surface or gap that has no value here, nor has had any since a singularity was passed: nobody could say on which
  /// side it is.
  bool end_where_undefined() {
    for (const Watch& w : watches_.all()) {
      if (!std::isnan(w.c[0])) continue;
      if (w.guard.kind != GuardKind::surface && w.guard.kind != GuardKind::gap) continue;
      recorder_.end_without_value(w.guard, now_);
      return true;
    }
    return false;
  }

  /// States whose squares underflow leave series without digits (hypot(u, v) of speeds that have died out): instead of
  /// ending the run they are zero, if they would stay there. Whether there were any.
  bool drop_underflows() {
    std::vector<double> x = now_.x;
    std::vector<int> dropped;
    for (int i = 0; i < program_.states(); ++i) {
      double& value = x[at(i)];
      if (value == 0 || std::abs(value) > underflowing_square) continue;
      value = 0;
      dropped.push_back(i);
    }
    Series& series = smooth_.series();
    series.set_mode(now_.mode);
    if (dropped.empty() || series.evaluate(x, now_.t(), now_.counters) != SeriesStatus::ok) return false;
    if (!std::all_of(dropped.begin(), dropped.end(), [&](int i) { return series.rate(i)[0] == 0; })) return false;
    now_.x = x;
    rough_steps_ = 0;
    return true;
  }

  void cut_rough(double tau) {
    smooth_.cut_rough(now_, tau);
    find_sections(tau, false);
  }

  /// A surface is within its last digit of zero, which the series would not bring nearer: along the tangent onto it.
  void land(const Watch& there, double natural, std::span<const WatchedSeries> watched) {
    cut_rough(there.root);
    advance(&there, natural, watched);
    events_.land(now_, guards_);
  }

  /// States that have all but vanished, fall to zero in no time and would stay there (h' = -sqrt(h)) are there. Whether
  /// there were any.
  bool come_to_rest() {
    if (come_to_balance()) return true;
    bool any = false;
    for (size_t i = 0; i < now_.x.size(); ++i) any = any || (now_.x[i] != 0 && has_vanished(i));
    if (!any) return false;
    if (rest_scale_ == 0) rest_scale_ = smooth_.estimate_scale(first_moment());
    if (put_to_rest()) return true;
    smooth_.begin(now_);  // the series as they were
    return false;
  }

  /// States that are next to nothing and come into balance before time can see it (a trickle into a tank with an
  /// outflow like a root: h' = a - sqrt(h), h = a^2 after 2 a) are there, and go on by implicit steps. Whether there
  /// were any.
  bool come_to_balance() {
    if (balanced_at_ == now_.t()) return false;  // implicit steps have not got away from here
    bool any = false;
    for (size_t i = 0; i < now_.x.size(); ++i) {
      const std::optional<double> there = balance(i);
      if (!there || !smooth_.turn_now()) continue;
      now_.x[i] = *there;
      any = true;
    }
    if (!any) {
      smooth_.begin(now_);
      return false;
    }
    balanced_at_ = now_.t();
    std::fill(now_.known.begin(), now_.known.end(), 0);
    blind_steps_ = rough_steps_ = short_steps_ = 0;
    after_event_ = false;
    return true;
  }

  /// Where between zero and almost nothing the rate of a state is zero, if the flow takes it there at once.
  std::optional<double> balance(size_t i) {
    Series& series = smooth_.series();
    series.set_mode(now_.mode);
    std::vector<double> x = now_.x;
    const auto rate = [&](double value) {
      x[i] = value;
      if (series.evaluate(x, now_.t(), now_.counters) != SeriesStatus::ok) return std::nan("");
      return direction_ * series.rate(static_cast<int>(i))[0];
    };
    const double begin = rate(0);
    if (!(std::abs(begin) > 0) || !std::isfinite(begin)) return std::nullopt;
    const double side = begin > 0 ? 1 : -1,
                 at_once = balanced_at_once * std::max(measure(longest_natural_), std::abs(now_.t()));
    // The distance that the root would cover at once from zero, or from where it comes.
    double lo = 0, hi = std::max(std::abs(begin) * at_once, side * now_.x[i]);
    if (side * now_.x[i] < 0 || hi > at_once * std::max(std::abs(begin), std::abs(rate(now_.x[i]))))
      return std::nullopt;
    if (!(side * rate(side * hi) < 0)) return std::nullopt;
    constexpr int most_halvings_of_powers = 12, most_halvings_of_digits = 60;
    int above = std::ilogb(hi) + 1, below = std::numeric_limits<double>::min_exponent - 53;
    for (int k = 0; k < most_halvings_of_powers && above - below > 1; ++k) {
      const int middle = below + (above - below) / 2;
      (side * rate(side * std::ldexp(1.0, middle)) > 0 ? below : above) = middle;
    }
    lo = std::ldexp(1.0, below), hi = std::min(hi, std::ldexp(1.0, above));
    for (int k = 0; k < most_halvings_of_digits && hi - lo > eps * hi; ++k) {
      const double middle = 0.5 * (lo + hi);
      (side * rate(side * middle) > 0 ? lo : hi) = middle;
    }
    return lo > underflowing_square * underflowing_square ? std::optional(side * lo) : std::nullopt;
  }

  /// The others go on along their tangents until the last of them is there.
  bool put_to_rest() {
    if (smooth_.begin(now_) != SeriesStatus::ok) return false;
    Series& series = smooth_.series();
    std::vector<double> x = now_.x;
    std::vector<int> resting;
    double time = 0;
    for (int i = 0; i < program_.states(); ++i) {
      if (x[at(i)] == 0 || !has_vanished(at(i))) continue;
      const double arrives = time_to_zero(series.state(i), direction_);
      if (!(arrives > 0 && arrives < soon_at_rest * rest_scale_)) continue;
      x[at(i)] = 0;
      resting.push_back(i);
      time = std::max(time, arrives);
    }
    if (resting.empty()) return false;
    if (series.evaluate(x, now_.t(), now_.counters) != SeriesStatus::ok) {
      std::erase_if(resting, [&](int i) { return !std::isnan(series.rate(i)[0]); });
      if (!resting.empty()) recorder_.end_where_rest_is_open(resting, now_);
      return !resting.empty();
    }
    std::vector<int> balanced;  // not at zero, but next to it: something flows in
    for (const int i : resting) {
      if (series.rate(i)[0] != 0) balanced.push_back(i);
    }
    std::swap(now_.x, x);
    const bool stay = std::all_of(balanced.begin(), balanced.end(),
                                  [&](int i) { return smooth_.may_turn_stiff() && balance(at(i)).has_value(); });
    std::swap(now_.x, x);
    if (!stay) return false;
    const std::span<const WatchedSeries> watched = expand_again();
    cut_rough(direction_ * std::min(time, longest_step()));
    advance(nullptr, 0, watched);
    for (const int i : resting) now_.x[at(i)] = 0;
    for (const int i : balanced) now_.x[at(i)] = balance(at(i)).value_or(0);
    if (!balanced.empty()) smooth_.turn_now();
    blind_steps_ = rough_steps_ = short_steps_ = 0;
    if (!recorder_.ended()) add_surfaces_of_rest();
    return true;
  }

  /// Surfaces that are zero with what has come to rest are reached with it.
  void add_surfaces_of_rest() {
    Series& series = smooth_.series();
    series.set_mode(now_.mode);
    if (series.evaluate(now_.x, now_.t(), now_.counters) != SeriesStatus::ok) return;
    for (int i = 0; i < program_.switches(); ++i) {
      const char c = now_.mode.switches[at(i)];
      if (program_.moves(i) && (c == '+' || c == '-') && series.surface(i)[0] == 0)
        guards_.push_back({GuardKind::surface, i, 0});
    }
  }
  bool has_vanished(size_t i) const { return std::abs(now_.x[i]) < vanished_share * smooth_.largest(i); }
  double horizon() const { return horizon_; }
  /// How long the run is; where its end is no more than a bound, its past tells, with the longest step it could make.
  double measure(double longest_natural) const {
    if (options_->to_the_end) return horizon_;
    return std::min(horizon_, std::max(std::abs(now_.clock.until(options_->from)), longest_natural));
  }

  /// The distance to the end, the next tick of a clock, and not over more points of a section than memory should hold.
  double longest_step() const {
    double length = std::abs(now_.clock.until(options_->until));
    length = std::min(length, 1000 * recorder_.shortest_interval());
    if (const double tick = events_.jumps().next_tick(); std::isfinite(tick))
      length = std::min(length, std::max(now_.clock.until(tick), 0.0));
    return length;
  }

  /// The piece has been made: sections on it, the state at its end, what happens there.
  void advance(const Watch* first, double natural, std::span<const WatchedSeries> watched) {
    Piece& piece = smooth_.piece();
    const double tau = piece.length;
    if (first && !crossings_.empty()) recorder_.wait_for_event(crossings_, tau, resolution());
    if (!model_.sections.empty())
      recorder_.pass(piece, crossings_, now_, resolution(),
                     (first && may_leap()) || (ticks_ && ticks_after(tau, resolution())));
    if (recorder_.ended()) return;
    recorder_.slid(now_.mode, std::abs(tau));
    if (recorder_.wants_pieces()) recorder_.keep(piece, now_, smooth_.series().held_values());
    const std::vector<double>& end = smooth_.end();
    smooth_.series().guess_present();
    move_clock(tau, first == nullptr);
    smooth_.accept(std::abs(tau), natural, watched);
    std::copy(end.begin(), end.end(), now_.x.begin());
    after_event_ = false;
    if (program_.vectors() > 0) end_departure();
    const double resolved = resolution();
    if (first) watches_.found_at(tau, resolved, guards_);
    if (first && first->late && watches_.has_leapt(*first, smooth_)) events_.note_leap();
    const bool by_series = natural > 0;  // not along a stiff step, whose functions are sampled
    now_.arrival = first && by_series && guards_.size() == 1 ? watches_.arrival(*first, smooth_, tau) : std::nan("");
    if (ticks_) add_ticks();
    if (std::abs(tau) > resolved) std::fill(now_.known.begin(), now_.known.end(), 0);
    for (size_t s = 0; s < next_sign_.size(); ++s) recorder_.set_section_sign(s, next_sign_[s]);
    if (recorder_.has_grown(now_) || !guards_.empty()) return;
    smooth_.series().set_mode(now_.mode);
    recorder_.drifted(now_.mode, smooth_.series().project(now_.x, now_.t(), now_.counters));
    if (events_.jumps().size() > 0) guards_ = events_.crossed(now_);
  }

  /// True if states may jump at an event that is no tick: sections by the clock then look after it.
  bool may_leap() const {
    return events_.jumps().size() > 0 || std::any_of(model_.form.gaps.begin(), model_.form.gaps.end(),
                                                     [](const Gap& gap) { return gap.degree == 2; });
  }
  /// True if a clock ticks that much after now, up to `resolved`.
  bool ticks_after(double tau, double resolved) {
    return std::abs(now_.clock.until(events_.jumps().next_tick()) - tau) <= resolved;
  }
  /// Clocks that tick here join the guards. Whether there are any.
  bool add_ticks() {
    const double resolved = resolution();
    if (!(events_.jumps().next_tick() <= now_.t() + resolved)) return false;
    for (const int k : events_.jumps().ticking(now_.t(), resolved)) guards_.push_back({GuardKind::clock, k, 0});
    return true;
  }

  void found_here() {
    watches_.found_at(0, resolution(), guards_);
    events_.land(now_, guards_);
  }

  void move_clock(double tau, bool free) {
    if (free && std::abs(tau) >= std::abs(now_.clock.until(options_->until))) {
      now_.clock.set(options_->until);
    } else if (ticks_ && ticks_after(tau, resolution())) {
      now_.clock.set(events_.jumps().next_tick());
    } else {
      now_.clock.advance(tau);
    }
  }

  // ---- a step of the stiff flow: the piece is implicit, what is watched is sampled along it
  // ----------------------

  void stiff_step() {
    const StiffStatus made = smooth_.stiff_step(now_, longest_step());
    const SeriesStatus status = smooth_.series().evaluate(now_.x, now_.t(), now_.counters);
    if (made == StiffStatus::ok && status == SeriesStatus::ok) {
      watches_.list(now_, smooth_, events_.jumps(), false);
      const std::vector<SampledFunction> sampled = watches_.sampled();
      if (smooth_.sample(now_, sampled) == StiffStatus::ok) {
        Piece& piece = smooth_.piece();
        const Watch* first = watches_.find_first(smooth_, events_.jumps(), piece.length, resolution(), true);
        if (first) {
          watches_.polish(*first, now_, smooth_, sampled);
          piece.length = first->root;
        }
        find_sections(piece.length, true);
        return advance(first, 0, {});
      }
    }
    // Taylor series know more of singular places, and what to say of them.
    smooth_.leave_stiff();
    after_event_ = true;
    step();
  }

  // ---- ends ---------------------------------------------------------------------------------------------------------

  void fail(SeriesStatus status) {
    if (status == SeriesStatus::undefined) {
      std::vector<double> rates;
      for (int i = 0; i < program_.states(); ++i) rates.push_back(smooth_.series().rate(i)[0]);
      return recorder_.end_undefined(rates, now_);
    }
    const std::vector<int>& active = smooth_.series().active();
    if (active.size() == 1 && is_wished(active[0])) return guards_.push_back({GuardKind::slope, active[0], 0});
    recorder_.end_sliding(active, smooth_.series().slope_varies(), now_);
  }

  /// True if the user has chosen a side for a surface.
  bool is_wished(int u) const {
    return !options_->leave.empty() && u < model_.form.visible && smooth_.series().slope_varies() &&
           options_->leave.contains(model_.form.switches[at(u)].name);
  }

  void stall(double length) {
    if (!end_where_undefined_soon()) recorder_.stall(length, smooth_.estimate_scale(first_moment()), now_);
  }

  /// Where a rate ends with a surface (min(sqrt(x), 1)), no step leads there, and the surface is what has no value.
  bool end_where_undefined_soon() {
    Series& series = smooth_.series();
    series.set_mode(now_.mode);
    if (series.evaluate(now_.x, now_.t(), now_.counters) != SeriesStatus::ok) return false;
    const double soon = direction_ * same_time_bits * resolution();
    std::vector<double> x = now_.x;
    for (size_t i = 0; i < x.size(); ++i) x[i] += soon * series.rate(static_cast<int>(i))[0];
    series.evaluate(x, now_.t() + soon, now_.counters);
    watches_.list(now_, smooth_, events_.jumps(), false);
    return end_where_undefined();
  }

  /// Signs of the determinants of the coupled sliding equations at the point of the last evaluation.
  void read_determinants(std::vector<int>& signs) const {
    signs.clear();
    if (!smooth_.series().slope_varies()) return;
    for (const Series::Block& block : smooth_.series().blocks())
      signs.push_back(block.singular ? 0 : block.determinant > 0 ? 1 : -1);
  }

  double where_determinant_vanishes() {
    const Piece& piece = smooth_.piece();
    double before = 0, after = piece.length;
    std::vector<double> x(now_.x.size());
    for (int halving = 0; halving < 60; ++halving) {
      const double middle = 0.5 * (before + after);
      Trajectory::evaluate(piece, program_.states(), middle, x.data());
      const bool solved = smooth_.series().evaluate(x, piece.start + middle, now_.counters) == SeriesStatus::ok;
      read_determinants(determinants_at_end_);
      (solved && determinants_at_end_ == determinants_ ? before : after) = middle;
    }
    return after;
  }

  /// Sliding stops being attractive inside its range: the run ends where on the piece a determinant vanishes.
  void fail_at_determinant(double where) {
    Piece& piece = smooth_.piece();
    piece.length = where;
    if (recorder_.wants_pieces()) recorder_.keep(piece, now_);
    Trajectory::evaluate(piece, program_.states(), where, now_.x.data());
    now_.clock.advance(where);
    return fail(SeriesStatus::unsolved);
  }

  // ---- sections -----------------------------------------------------------------------------------------------------

  /// True if a function has just come back from infinity (1/u where u has passed zero): it falls as fast as it is
  /// large, in no time. One that has passed zero between two pieces rises.
  bool is_behind_a_pole(std::span<const double> c) {
    if (c.size() < 3 || !(c[0] * c[1] * direction_ < 0)) return false;
    const double power = c[0] * c[2] / (c[1] * c[1]);  // (m + 1)/(2 m) behind a pole of order m
    return power > 0.4 && power < 1.1 && std::abs(c[0]) < soon_at_rest * time_scale() * std::abs(c[1]);
  }

  /// Zeros of the functions of `on` sections along the piece. Where an event ends it, a section that shares zeros with
  /// the guard shares this one, too, whatever last bit their roots differ by.
  void find_sections(double tau, bool samples, bool event = false) {
    crossings_.clear();
    next_sign_.resize(model_.sections.size());
    for (size_t s = 0; s < model_.sections.size(); ++s) {
      if (model_.sections[s].kind != Section::Kind::on) continue;
      const SharedZero& shared = recorder_.section_shared(s);
      if (shared.rests(now_.mode)) {
        next_sign_[s] = 0;
        continue;
      }
      const int number = static_cast<int>(s);
      const double* series =
          samples ? smooth_.sample(watches_.first_section_sample() + number) : smooth_.series().section(number);
      const std::span<const double> c(series, at(smooth_.order()) + 1);
      const int sign = recorder_.section_sign(s);
      if (sign != 0 && c[0] * sign < 0 && !is_behind_a_pole(c)) crossings_.push_back({number, 0.0, -sign});
      const int known = std::max(sign == 0 ? 1 : 0, shared.known(now_));
      const double reach = event && known > 0 ? tau + direction_ * resolution() : tau;
      double from = 0;
      int after = 0;
      for (int found = 0; found < 1000; ++found) {
        const Root root = from == 0 ? first_root(c.data(), c.size(), reach, known, 0)
                                    : leftmost_root(c, {.h = reach, .from = from, .known_zeros = known});
        if (root.kind == RootKind::none) break;
        if (root.kind == RootKind::crossing) {
          const double there = from == 0 ? with_known_zeros(c, known, root.at, resolution()) : root.at;
          crossings_.push_back({number, std::abs(there) > std::abs(tau) ? tau : there, root.sign_after});
          after = root.sign_after;
        }
        if (root.last) break;
        from = root.at;
      }
      // Behind the last zero; without any it is the same all along, and at the end it may be rounding.
      const double inside = known == 0 && c[0] != 0 ? c[0] : saltus::evaluate(c, tau / 2);
      next_sign_[s] = after != 0 ? after : inside > 0 ? 1 : inside < 0 ? -1 : sign;
    }
  }

  EngineMemory& memory_;
  const Program& program_;
  const Model& model_;
  const RunOptions* options_ = nullptr;
  double direction_ = 1;
  Smooth smooth_;
  Watches watches_;
  Recorder recorder_;
  Events events_;
  LegModes leg_modes_{program_};
  std::optional<Clusters> clusters_;
  Moment now_;
  std::vector<Guard> guards_;             // zero at the end of the last piece
  double first_scale_ = 0;                // time scale before the first step; 0: nobody has asked for it
  double rest_scale_ = 0;                 // the same, for what comes to rest, also where nothing else asks
  double longest_natural_ = 0;            // step that the series of this run carried
  int blind_steps_ = 0;                   // in a row: the defect allows but a small share of what the series promises
  int short_steps_ = 0;                   // in a row: no share of the run
  int rough_steps_ = 0;                   // made without a series since the last one that had one
  int singular_watches_ = 0;              // steps in a row over what is watched and has no series
  double horizon_ = 0, longest_leg_ = 0;  // as far as the end; over no more points of a section than memory should hold
  bool leaps_ = false;                    // may_leap()
  bool leg_is_short_ = false;             // no share of the run
  bool leg_is_read_ = false;              // a section is met on it
  bool may_be_ordinary_ = false;          // forward in time, as a whole, with jumps on what is plain
  bool ticks_ = false;                    // jumps have clocks
  bool after_event_ = true;            // the step after an event is a Taylor step: it knows which coefficients vanish
  double balanced_at_ = std::nan("");  // when states were last put into balance
  std::vector<int> determinants_, determinants_at_end_;
  std::vector<Crossing> crossings_;
  std::vector<int> next_sign_;
};

namespace {

/// Surfaces that are constant multiples of each other under these parameters (v and K*v): by their form, which holds
/// everywhere; functions that are alike at some points (two fronts of one state) are not.
Series::Ties find_ties(const Program& program, std::span<const double> parameters) {
  const Model& model = program.model();
  std::map<std::vector<int>, std::vector<int>> alike;  // by the states and times they depend on
  for (int i = 0; i < program.switches(); ++i) {
    if (!program.moves(i) || program.nested(i)) continue;
    std::vector<int> support;
    for (const Expr& s : symbols_in(std::span(&model.form.switches[at(i)].surface, 1))) {
      if (s.symbol().kind != SymbolKind::parameter)
        support.push_back(static_cast<int>(s.symbol().kind) * 1'000'000 + s.symbol().index);
    }
    std::sort(support.begin(), support.end());
    alike[support].push_back(i);
  }
  Series::Ties ties;
  for (const auto& [support, members] : alike) {
    if (members.size() < 2) continue;
    std::vector<PolynomialForm> forms;
    for (const int i : members) forms.push_back(polynomial_form(model.form.switches[at(i)].surface, parameters));
    for (size_t b = 1; b < members.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        const double factor = ratio(forms[b], forms[a]);
        if (factor == 0) continue;
        ties[members[b]] = {members[a], factor > 0 ? 1 : -1};
        break;
      }
    }
  }
  return ties;
}

}  // namespace

EngineMemory::~EngineMemory() = default;

EngineMemory::EngineMemory(const Program& shared) : program(shared) {
  const auto only = [](const Expr& e, std::initializer_list<SymbolKind> kinds) {
    const std::vector<Expr> symbols = symbols_in(std::span(&e, 1));
    return std::all_of(symbols.begin(), symbols.end(), [&](const Expr& s) {
      return std::find(kinds.begin(), kinds.end(), s.symbol().kind) != kinds.end();
    });
  };
  const std::vector<Gap>& gaps = program.model().form.gaps;
  plain_gaps = std::all_of(gaps.begin(), gaps.end(), [&](const Gap& g) {
    return only(g.gap, {SymbolKind::state, SymbolKind::time, SymbolKind::parameter}) &&
           (!g.restitution || only(*g.restitution, {SymbolKind::parameter}));
  });
}

bool EngineMemory::start_is_clear(const RunOptions& options) {
  if (!point || !plain_gaps || program.any_joint() || parameters != options.parameters) return false;
  point->evaluate(options.initial, options.from, {}, {});
  for (int j = 0; j < program.constraints(); ++j) {
    if (!(point->value(program.point(program.switches() + j, 0)) >= 0)) return false;
  }
  return true;
}

void EngineMemory::prepare(const RunOptions& options) {
  const bool new_parameters = !series || parameters != options.parameters;
  if (!series || tolerance != options.tolerance) {
    tolerance = options.tolerance;
    parameters = options.parameters;
    order = cheapest_order(local_tolerance(tolerance), program.tape(std::string(at(program.switches()), '+')).flow);
    series.emplace(program, parameters, order);
    const double local = local_tolerance(tolerance);
    orders = order_table(local, order);
  } else if (new_parameters) {
    parameters = options.parameters;
    series->bind(parameters);
  }
  if (new_parameters) {
    point.emplace(program.points(), parameters);
    ties = find_ties(program, parameters);
  }
  series->tie(ties);
  series->reset();
  series->use_native(options.native);
  constexpr int worth_weights = 40;  // steps: as much work as weights are
  series->weigh_after(options.one_of_many ? 0 : worth_weights);
  chatter.clear();
}

void simulate_event_driven(EngineMemory& memory, const RunOptions& options, Trajectory& result) {
  memory.prepare(options);
  const long native = memory.series->native_expansions();
  if (!memory.engine) memory.engine = std::make_unique<EventEngine>(memory, options, result);
  memory.engine->run(options, result);
  result.cost.native = memory.series->native_expansions() - native;
}

}  // namespace saltus
