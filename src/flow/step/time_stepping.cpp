#include "flow/step/time_stepping.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/index.hpp"
#include "base/numbers.hpp"
#include "flow/event/event_driven.hpp"
#include "flow/events.hpp"
#include "flow/recorder.hpp"
#include "flow/smooth.hpp"
#include "flow/step/attraction.hpp"
#include "flow/step/dense.hpp"
#include "flow/step/length.hpp"
#include "flow/step/locate.hpp"
#include "flow/step/tangent.hpp"
#include "flow/step/unknown_mode.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

constexpr int most_dips = 8;            // below zero on one step, each before the last
constexpr double tangent_speed = 0.01;  // share of the speed of approach that is left on a surface reached tangentially

std::vector<double> values(const Vec& x) { return {x.data(), x.data() + x.size()}; }

class Stepper {
 public:
  Stepper(EngineMemory& memory, StepSolver& solver, const RunOptions& options, Trajectory& result)
      : model_(memory.program.model()),
        options_(options),
        series_(*memory.series),
        smooth_(series_, memory.order, memory.orders, options),
        solver_(solver),
        result_(result),
        recorder_(memory.program, options, result),
        events_(series_, *memory.point, memory.chatter, recorder_, options),
        judge_(memory.program, options.parameters, events_.jumps()),
        length_(memory.program, options, solver),
        unknown_(memory.program, series_, solver, judge_),
        wants_pieces_(recorder_.wants_pieces() || !model_.sections.empty()),
        rule_{options.step->theta, wants_pieces_ || length_.adaptive()},
        most_splits_(solver.size() <= split_often_up_to ? most_splits_of_few
                     : solver.size() <= split_up_to     ? most_splits_of_many
                                                        : 0) {}

  void run() {
    const auto begin = std::chrono::steady_clock::now();
    start();
    while (!recorder_.ended() && t() < options_.until) {
      if (t() >= end_) next_step();
      const Part part = next_part();
      if (t() + part.h == t() && part.h > 0) {
        if (!come_to_rest()) stall(part.h);
      } else if (part.h > 0) {
        const StepFate fate = step_in_mode(solver_, rule_, here_, part.h, step_);
        if (fate == StepFate::ok && leaves_domain(step_)) {
          if (!recorder_.ended()) longest_ = part.h / 2;
        } else if (fate == StepFate::ok && !(length_.allows(here_, step_) && tells())) {
          end_ = t() + length_.dt();
        } else if (fate == StepFate::ok && agrees()) {
          if (!rests_within(part.h, part.h) && !ends_within(part.h)) accept_sliding(part);
        } else if (!rests_within(part.h, 2 * part.h) && !(fate == StepFate::ok && splits()) && !holds_redundant(fate) &&
                   !rest_by_themselves(fate) && (forces_swing(fate) || !shortens(fate, part.h))) {
          step_across(part, fate);
        }
      }
      tick_clocks();
      here_.moment.x = values(here_.x);
      recorder_.step(here_.moment);
    }
    finish(Why::time, "");
    result_.cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  /// A step that is split, or shortened for Newton's method: its length, and the time at its end.
  struct Part {
    double h = 0, end = 0;
  };

  double t() const { return here_.t(); }
  double resolution() const { return same_time_bits * eps * std::max(std::abs(t()), length_.dt() * same_time_share); }

  // ---- start and ends -----------------------------------------------------------------------------------------------

  void start() {
    Moment& now = here_.moment;
    now.clock.set(options_.from);
    now.x = options_.initial;
    now.mode.switches.assign(model_.form.switches.size(), '+');
    now.mode.constraints = series_.program().open_constraints();
    now.counters.assign(at(model_.form.counter_values), 0.0);
    end_ = options_.from;
    first_scale_ = smooth_.estimate_scale(now);
    events_.start(now, [this] { return first_scale_; });
    take_over();
    if (!recorder_.ended() && !length_.start(here_)) end_undefined();
  }

  void finish(Why why, std::string message) {
    here_.moment.x = values(here_.x);
    recorder_.finish(why, std::move(message), here_.moment);
  }

  /// Steps cannot be shorter. Where a rate ends with a surface (min(sqrt(x), 1)), the surface is what has no value.
  void stall(double h) {
    here_.moment.x = values(here_.x);
    if (const std::optional<Guard> without = without_value(tests_after(same_time_bits * resolution())))
      return recorder_.end_without_value(*without, here_.moment);
    recorder_.stall(h, first_scale_, here_.moment);
  }

  void end_undefined() {
    Vec f;
    solver_.rates(t(), here_.x, here_.u, f);
    here_.moment.x = values(here_.x);
    recorder_.end_undefined({f.data(), static_cast<size_t>(f.size())}, here_.moment);
  }

  /// After an event: state, mode and what is held are those of the moment.
  void take_over() {
    Moment& now = here_.moment;
    here_.x = column_at(now.x.data(), static_cast<Index>(now.x.size()));
    if (recorder_.ended()) return;
    hold_redundant();
    solver_.set_counters(now.counters);
    here_.u.resize(series_.program().unknowns());
    for (int i = 0; i < here_.u.size(); ++i) here_.u[i] = series_.unknown(i)[0];
    solver_.set_mode(now.mode, here_.held);
    solver_.guess(here_.u);
    solver_.tests(t(), here_.x, here_.u, here_.tests);
    if (length_.misses_sizes(here_)) length_.take_sizes(smooth_.estimate_sizes(now));
  }

  /// Forces that nothing determines stay at a bound.
  void hold_redundant() {
    here_.held.clear();
    series_.set_mode(here_.mode());
    if (series_.evaluate(here_.moment.x, t(), here_.moment.counters) == SeriesStatus::ok)
      here_.held = series_.held_values();
  }

  // ---- one step -----------------------------------------------------------------------------------------------------

  /// To the next point of the grid, or as far as the error of the last step allows.
  void next_step() {
    splits_ = shortened_ = 0;
    longest_ = HUGE_VAL;
    began_ = t();
    if (length_.adaptive()) {
      end_ = std::min(options_.until, t() + length_.dt());
    } else {
      const double next = options_.from + length_.dt() * ++grid_;
      end_ = next > options_.until - same_grid_point * length_.dt() ? options_.until : next;
    }
    largest_ = largest_.size() == 0 ? Vec(here_.x.cwiseAbs()) : Vec(largest_.cwiseMax(here_.x.cwiseAbs()));
    if (length_.forced() > most_forced_steps && !come_to_rest()) return stall(length_.dt());
    if (!(end_ > t()) && !come_to_rest())
      recorder_.stall(fmt::format("a step of {:.3g} does not move time", length_.dt()), here_.moment);
  }

  /// The step to the end, a clock, a switch of time alone, or as far as Newton's method allows.
  Part next_part() {
    Part part{here_.moment.clock.until(end_), end_};
    // The steps of a grid differ in their last bits; the same h keeps the factors.
    if (!length_.adaptive() && std::abs(part.h - length_.dt()) < same_grid_point * length_.dt()) part.h = length_.dt();
    const double longest = std::min(longest_, length_.until_timed(here_, std::min(part.h, longest_)));
    if (longest < part.h) part = {longest, t() + longest};
    const double tick = events_.jumps().next_tick();
    if (std::isfinite(tick) && here_.moment.clock.until(tick) <= part.h + resolution())
      part = {std::max(here_.moment.clock.until(tick), 0.0), std::abs(tick - end_) <= resolution() ? end_ : tick};
    return part;
  }

  /// A long step, whose length nothing but its error limits: whether what happens along it is to be seen. If not, it
  /// must be shorter.
  bool tells() {
    along_ = {};
    if (!length_.adaptive()) return true;
    along_ = look_along(solver_, judge_, here_, step_, recorder_, rests_);
    if (!(step_.h > shortest_told_share * (options_.until - options_.from))) {  // as it is
      along_.told = true;
      along_.passes = 0;
      return true;
    }
    if (along_.told && along_.passes == 0) return true;
    length_.shorten(along_.told ? along_.passes : step_.h / 4, t());
    return false;
  }

  /// At its end; and a long step inside too, where time may have made something happen before.
  bool agrees() {
    judge_.look(here_, step_, false, found_);
    std::erase_if(found_, [&](const Disagreement& d) { return rests_beside(d.guard, step_); });
    if (!found_.empty() && !along_.timed) return false;
    return !dips() && found_.empty();
  }

  /// True if a surface or gap has no value at the end of a step, which is then too long; the run ends where it cannot
  /// be shorter. Where something happens as early as that, it comes first: a contact closes at the end of a root's
  /// domain.
  bool leaves_domain(const Step& step) {
    const std::optional<Guard> without = without_value(step.tests);
    if (!without) return false;
    if (!without_value(here_.tests)) {
      if (step.h > resolution()) return true;
      std::vector<Disagreement> at_once;
      judge_.look(here_, step, false, at_once);
      if (!at_once.empty()) return false;
    }
    here_.moment.x = values(here_.x);
    recorder_.end_without_value(*without, here_.moment);
    return true;
  }

  /// The first surface or gap that the mode needs the value of, and that has none.
  std::optional<Guard> without_value(const Vec& tests) const {
    const TestLayout& layout = judge_.layout();
    for (int i = 0; i < layout.switches; ++i) {
      const char c = here_.mode().switches[at(i)];
      if (series_.program().moves(i) && (c == '+' || c == '-') && std::isnan(tests[i]))
        return Guard{GuardKind::surface, i, 0};
    }
    for (int j = 0; j < layout.constraints; ++j) {
      if (here_.mode().constraints[at(j)] == 'o' && std::isnan(tests[layout.gap(j)]))
        return Guard{GuardKind::gap, j, 0};
    }
    return std::nullopt;
  }

  bool slides() const { return here_.mode().switches.find('0') != std::string::npos; }

  /// True if a surface is that of one slid on, in this mode (|c - 1/2| = 1/2 and c = 1): it is zero along the step, and
  /// its signs are rounding.
  bool rests_beside(const Guard& guard, const Step& step) {
    constexpr double inside = 0.37;  // not where something periodic is likely to be zero
    constexpr double alike = 16;     // inside, what is slid on is as far from zero as the step is inaccurate there
    if (guard.kind != GuardKind::surface || !slides()) return false;
    const auto is_near = [&](double share, const Vec& x) {
      return events_.is_near(here_.moment, values(x), t() + share * step.h, guard.item);
    };
    if (!is_near(0, here_.x) || !is_near(1, step.x)) return false;
    const Vec x = states_along(here_, step, inside);
    Vec tests;
    solver_.tests(t() + inside * step.h, x, step.u1, tests);
    double slid = 0;
    for (int i = 0; i < judge_.layout().switches; ++i) {
      if (here_.mode().switches[at(i)] == '0') slid = std::max(slid, std::abs(tests[i]));
    }
    return std::abs(tests[guard.item]) <= alike * slid || is_near(inside, x);
  }

  /// True if something happens where what is watched seems to dip below zero inside the step: this is then the step.
  bool dips() {
    Step inside;
    if (along_.dip == 0 || step_in_mode(solver_, rule_, here_, along_.dip, inside) != StepFate::ok) return false;
    std::vector<Disagreement> earlier;
    judge_.look(here_, inside, false, earlier);
    std::erase_if(earlier, [&](const Disagreement& d) { return rests_beside(d.guard, inside); });
    if (earlier.empty()) return false;
    found_ = std::move(earlier);
    step_ = std::move(inside);
    return true;
  }

  /// Up to where something slid on stops being attractive.
  void accept_sliding(const Part& part) {
    if (!solver_.affine() && here_.mode() != slid_in_) {
      slid_in_ = here_.mode();
      series_.set_mode(slid_in_);
      slope_varies_ = series_.slope_varies();
    }
    std::vector<Guard> lost;
    if (!solver_.affine() && slope_varies_) lost = find_lost_attraction(series_, solver_, rule_, here_, step_);
    const bool began_on = !surfaces_here().empty();
    std::vector<Guard> beside;
    if (!began_on && slides()) {
      for (const Guard& g : judge_.watched(here_)) {
        if (g.kind == GuardKind::surface && step_.tests[g.item] == 0 && rests_beside(g, step_)) beside.push_back(g);
      }
    }
    accept(step_, lost.empty() ? part.end : t() + step_.h);
    longest_ *= 2;
    if (recorder_.ended()) return;
    std::vector<Guard> reached = surfaces_here();
    std::erase_if(reached, [&](const Guard& r) {
      return std::any_of(beside.begin(), beside.end(), [&](const Guard& g) { return g.item == r.item; });
    });
    if (lost.empty() && !began_on && !reached.empty()) happen_at(std::move(reached));
    if (lost.empty() || recorder_.ended()) return;
    const Mode before = here_.mode();
    happen_at(lost);
    if (here_.mode() == before && !recorder_.ended())
      recorder_.end_sliding(series_.active(), series_.slope_varies(), here_.moment);
  }

  /// Goes to the first disagreement and lets happen what happens there. False: nothing has changed by that, or nothing
  /// is to be located.
  bool splits() {
    const bool must = std::any_of(found_.begin(), found_.end(), [&](const auto& d) { return judge_.must_locate(d); });
    const bool may = rule_.simpson() && splits_ < most_splits_;
    if (!may && !must) return shortened_for_events();
    if (!rule_.simpson()) std::erase_if(found_, [&](const auto& d) { return !judge_.must_locate(d); });
    const OnStep where = locate_first();
    if (where == OnStep::nowhere) return false;
    if (where == OnStep::ahead && !(along_.told && along_.passes == 0)) {
      end_ = t() + length_.dt();
      return true;
    }
    ++splits_;
    if (where == OnStep::ahead) {
      tell_tangents();
      const double event = t() + step_.h;
      accept(step_, std::abs(event - end_) <= 4 * eps * std::abs(end_) ? end_ : event, true);
    }
    return recorder_.ended() || happen(where == OnStep::ahead);
  }

  /// Locates the first event. Watched functions are sampled again up to there: behind it, they may have gone so far
  /// that a dip on the way (past a disc, to the floor) was hidden beside that.
  OnStep locate_first() {
    along_ = {};
    for (int k = 0; k < most_dips; ++k) {
      const OnStep where = locate(solver_, rule_, judge_, here_, step_, rests_, found_);
      if (where != OnStep::ahead || !length_.adaptive() || !rule_.simpson() || !tells() || !dips()) return where;
    }
    return OnStep::nowhere;
  }

  /// Adaptive: where a step has had all the splits it may have, the next ones are as long as it has come.
  bool shortened_for_events() {
    if (!length_.adaptive() || !rule_.simpson() || splits_ == 0 || !(t() > began_)) return false;
    length_.shorten(t() - began_, t());
    end_ = t();
    return true;
  }

  /// Where a rate has no value at the end of the step, or Newton's method fails, the step is too long: a field that
  /// ends at its surface is followed up to it. False: that is not the trouble.
  bool shortens(StepFate fate, double h) {
    if (fate != StepFate::undefined && fate != StepFate::not_converged) return false;
    if (++shortened_ > most_halvings) return false;
    longest_ = h / 4;
    const double soon = std::max(tangent_share_of_step * length_.dt(), tangent_bits * eps * std::abs(t()));
    if (!surfaces_here().empty() || h <= soon) arrive(h, 8 * soon);
    return true;
  }

  /// Surfaces that are not slid on and have been come to, to the last digit.
  std::vector<Guard> surfaces_here() const {
    std::vector<Guard> out;
    const std::string& letters = here_.mode().switches;
    for (size_t i = 0; i < letters.size(); ++i) {
      const bool watched = series_.program().moves(static_cast<int>(i)) && (letters[i] == '+' || letters[i] == '-');
      if (watched && here_.tests[static_cast<Index>(i)] == 0)
        out.push_back({GuardKind::surface, static_cast<int>(i), 0});
    }
    return out;
  }

  /// States that have all but vanished and would stay there (h' = -sqrt(h)) are there. Whether there were any.
  bool come_to_rest() {
    Vec x = here_.x;
    const Rest rest = find_rest(x);
    if (rest == Rest::none || rest == Rest::open) return rest == Rest::open;
    here_.x = x;
    solver_.tests(t(), here_.x, here_.u, here_.tests);
    shortened_ = 0;
    longest_ = HUGE_VAL;
    if (rest == Rest::held) happen_at(surfaces_here());
    return true;
  }

  /// `free`: in the present mode; `held`: by surfaces that are zero there; `open`: their rates are 0/0, which has ended
  /// the run.
  enum class Rest { none, free, held, open };

  /// True if there are states that have all but vanished and would stay at zero; x is then without them.
  Rest find_rest(Vec& x) {
    Vec f;
    std::vector<Index> resting;
    for (Index i = 0; i < x.size(); ++i) {
      if (x[i] == 0 || !(std::abs(x[i]) < vanished_share * largest_[i])) continue;
      x[i] = 0;
      resting.push_back(i);
    }
    if (resting.empty()) return Rest::none;
    solver_.rates(t(), x, here_.u, f);
    const auto stays = [&](Index i) { return f[i] == 0; };
    std::vector<int> open;  // 0/0
    for (const Index i : resting) {
      if (std::isnan(f[i])) open.push_back(static_cast<int>(i));
    }
    if (!open.empty()) {
      here_.moment.x = values(here_.x);
      recorder_.end_where_rest_is_open(open, here_.moment);
      return Rest::open;
    }
    if (f.allFinite() && std::all_of(resting.begin(), resting.end(), stays)) return Rest::free;
    return held_at_zero(x, resting) ? Rest::held : Rest::none;
  }

  /// True if such states are kept at zero, against a disturbance, by surfaces that are zero with them (terminal
  /// sliding): some of these are slid on, the others stay zero by themselves.
  bool held_at_zero(const Vec& x, const std::vector<Index>& resting) {
    constexpr size_t most = 4;
    Vec tests;
    solver_.tests(t(), x, here_.u, tests);
    std::vector<size_t> zero;
    for (int i = 0; i < judge_.layout().switches; ++i) {
      if (series_.program().moves(i) && tests[i] == 0) zero.push_back(at(i));
    }
    bool held = false;
    for (unsigned slid = 1; !held && zero.size() <= most && slid < 1u << zero.size(); ++slid) {
      Mode mode = here_.mode();
      for (size_t k = 0; k < zero.size(); ++k) mode.switches[zero[k]] = slid >> k & 1u ? '0' : '=';
      held = keeps_at_zero(mode, x, resting);
    }
    series_.set_mode(here_.mode());
    return held;
  }

  bool keeps_at_zero(const Mode& mode, const Vec& x, const std::vector<Index>& resting) {
    series_.set_mode(mode);
    if (series_.evaluate(values(x), t(), here_.moment.counters) != SeriesStatus::ok) return false;
    for (int i = 0; i < judge_.layout().switches; ++i) {
      if (mode.switches[at(i)] == '0' && !(std::abs(series_.unknown(i)[0]) < series_.hold(i))) return false;
    }
    return std::all_of(resting.begin(), resting.end(), [&](Index i) {
      const int state = static_cast<int>(i);
      return std::abs(series_.rate(state)[0]) <= zero_bounds * series_.noise(series_.program().rate(state));
    });
  }

  /// With what is slid on or closed solved for at x. False: there is no such rate.
  bool rates_in_mode(const Vec& x, Vec& f) {
    series_.set_mode(here_.mode());
    if (series_.evaluate(values(x), t(), here_.moment.counters) != SeriesStatus::ok) return false;
    f.resize(x.size());
    for (Index i = 0; i < x.size(); ++i) f[i] = series_.rate(static_cast<int>(i))[0];
    return true;
  }

  /// A state that has all but vanished and ends like a root (x' = -sqrt(x)) before the step does: a step that is solved
  /// for to the last digit of what the state has been does not see that. It goes there and rests. `soon`: a time within
  /// which it ends, as far as its rate tells.
  bool rests_within(double h, double soon) {
    std::vector<Index> small;
    for (Index i = 0; i < here_.x.size(); ++i) {
      if (here_.x[i] != 0 && std::abs(here_.x[i]) < vanished_share * largest_[i]) small.push_back(i);
    }
    if (small.empty()) return false;
    Vec f, nearer, x = here_.x;
    if (!rates_in_mode(x, f)) return false;
    for (const Index i : small) x[i] /= 4;
    if (!rates_in_mode(x, nearer)) return false;
    double longest = 0;
    const auto is_root = [&](Index i) {
      const double power = std::log(f[i] / nearer[i]) / std::log(4.0);  // p of x' = -x^p
      const double left = -here_.x[i] / ((1 - power) * f[i]);
      if (!(power > flattest_power && power < steepest_power && left > 0 && left < soon)) return false;
      longest = std::max(longest, left);
      return true;
    };
    std::erase_if(small, is_root);
    for (const Index i : small) {  // what is carried along by the others is there no later (x1' = x2)
      const double left = -here_.x[i] / f[i];
      if (!(left > 0 && left < longest)) return false;
    }
    longest = std::min(longest, h);
    if (t() + longest == t()) return false;
    Vec end = here_.x;
    const Rest rest = find_rest(end);
    if (rest == Rest::none) return false;
    for (Index i = 0; rest != Rest::open && i < end.size(); ++i) {
      if (here_.x[i] == end[i]) end[i] += longest * f[i];
    }
    if (rest != Rest::open) go_straight(longest, end);
    if (std::vector<Guard> reached = surfaces_here(); !recorder_.ended() && !reached.empty())
      happen_at(std::move(reached));
    return true;
  }

  /// True if a surface whose distance is in the last digits of its terms ends within h (sqrt(abs(x - 1))*sign(x - 1)).
  bool ends_within(double h) {
    constexpr double further = 1e4;  // times the distance from the surface, to tell how it is come to
    std::vector<Guard> reached;
    SparseMat slopes;  // of surfaces, as columns
    Vec x = here_.x, rate, before;
    double left = 0;
    const double largest = largest_.max_abs();
    for (int i = 0; i < judge_.layout().switches; ++i) {
      const char letter = here_.mode().switches[at(i)];
      const double value = here_.tests[i];
      if (!(letter == '+' ? value > 0 : letter == '-' && value < 0)) continue;
      if (!series_.program().moves(i) || std::abs(value) >= vanished_share * largest) continue;
      if (slopes.size() == 0) {
        slopes = solver_.slopes(t(), here_.x, here_.u).C.transpose();
        solver_.condition_rates(t(), here_.x, here_.u, rate);
      }
      Vec normal = Vec::Zero(x.size());
      for (const auto [state, slope] : slopes.column(i)) normal[state] = slope;
      const double square = normal.dot(normal);
      if (!(square > 0 && std::abs(value) < vanished_share * normal.cwiseAbs().dot(largest_))) continue;
      normal *= value / square;
      solver_.condition_rates(t(), here_.x + (further - 1) * normal, here_.u, before);
      const double power = std::log(before[i] / rate[i]) / std::log(further);  // p of h' = -h^p
      const double time = -value / ((1 - power) * rate[i]);
      if (!(power > flattest_power && power < steepest_power && time > 0 && time < h)) continue;
      solver_.condition_rates(t(), here_.x - normal, here_.u, before);
      if (before[i] * value > 0) continue;  // an inflow keeps it from there
      left = std::max(left, time);
      x -= normal;
      reached.push_back({GuardKind::surface, i, 0});
    }
    if (reached.empty()) return false;
    if (t() + left > t()) go_straight(left, x);
    if (!recorder_.ended()) happen_at(std::move(reached));
    return true;
  }

  void go_straight(double h, const Vec& x) {
    step_ = {.h = h, .x = x, .u0 = here_.u, .u1 = here_.u, .f0 = {}, .f1 = {}, .tests = {}};
    solver_.tests(t() + h, step_.x, step_.u1, step_.tests);
    accept(step_, t() + h, straight());
  }

  /// The equations of a mode that a step across has found may leave forces open: now they are held.
  bool holds_redundant(StepFate fate) {
    if (fate != StepFate::not_converged || !here_.held.empty() || shortened_ > 0) return false;
    hold_redundant();
    return !here_.held.empty();
  }

  /// Surfaces that are slid on while their sigma moves nothing (abs(x)^(5/3)*sign(x) at x = 0), and that others keep at
  /// zero, stay there by themselves: they leave the equations.
  bool rest_by_themselves(StepFate fate) {
    if (fate != StepFate::higher_degree) return false;
    const StepSlopes& slopes = solver_.slopes(t(), here_.x, here_.u);
    const auto nothing = [](const SparseMat::Column& column) {
      double sum = 0;
      for (const auto [row, slope] : column) sum += std::abs(slope);
      return sum == 0;
    };
    Mode mode = here_.mode();
    std::vector<int> idle;
    for (int i = 0; i < judge_.layout().switches; ++i) {
      if (mode.switches[at(i)] != '0' || !nothing(slopes.G.column(i)) || !nothing(slopes.D.column(i))) continue;
      mode.switches[at(i)] = '=';
      idle.push_back(i);
    }
    here_.moment.x = values(here_.x);
    if (idle.empty() || !stay_zero(mode, idle)) return false;
    here_.moment.mode = mode;
    take_over();
    return true;
  }

  /// True if surfaces do not move in a mode, but for rounding.
  bool stay_zero(const Mode& mode, const std::vector<int>& surfaces) {
    series_.set_mode(mode);
    bool stay = series_.expand(here_.moment.x, t(), here_.moment.counters, 2) == SeriesStatus::ok;
    double noise = 0;
    for (int i = 0; stay && i < series_.program().states(); ++i) noise += series_.noise(series_.program().rate(i));
    for (const int i : surfaces) stay = stay && std::abs(series_.surface(i)[1]) <= near_bounds * noise;
    series_.set_mode(here_.mode());
    return stay;
  }

  /// Newton's method fails at the whole step although contacts are closed: their forces may be nearly redundant (a rod
  /// that lies almost flat), which complementarity does not mind.
  bool forces_swing(StepFate fate) const {
    return fate == StepFate::not_converged && shortened_ == 0 &&
           here_.mode().constraints.find('c') != std::string::npos;
  }

  /// The last bit up to a surface along a straight line, if it is no longer than `most`.
  void arrive(double h, double most) {
    Vec f;
    solver_.rates(t(), here_.x, here_.u, f);
    const auto reach = [&](double tau) {
      step_ = {.h = tau, .x = here_.x + tau * f, .u0 = here_.u, .u1 = here_.u, .f0 = {}, .f1 = {}, .tests = {}};
      solver_.tests(t() + tau, step_.x, step_.u1, step_.tests);
    };
    reach(8 * h);
    judge_.look(here_, step_, false, found_);
    double first = 1;
    for (const Disagreement& d : found_) first = std::min(first, std::max(d.start, 0.0) / d.range());
    std::erase_if(found_,
                  [&](const auto& d) { return std::max(d.start, 0.0) > first * (1 + located_share) * d.range(); });
    if (found_.empty() || first * step_.h > most) return;
    reach(first * step_.h);
    tell_tangents();
    if (step_.h > 0) accept(step_, t() + step_.h, straight(), true);
    if (!recorder_.ended()) happen();
  }

  /// Reports tangents: a surface reached without speed may not be left again, and is examined on the surface.
  void tell_tangents() {
    for (Disagreement& d : found_) {
      if (d.guard.kind != GuardKind::jump && is_tangent(d)) d.guard.side = 0;
    }
  }

  /// True if what arrives at zero at the end of the step has lost its speed by then.
  bool is_tangent(const Disagreement& d) {
    Step on{.h = step_.h, .x = {}, .u0 = {}, .u1 = step_.u1, .f0 = {}, .f1 = {}, .tests = {}};
    Vec f;
    solver_.rates(t() + step_.h, step_.x, step_.u1, f);
    if (!f.allFinite()) return false;
    on.x = step_.x + step_.h * f;
    solver_.tests(t() + 2 * step_.h, on.x, on.u1, on.tests);
    return std::abs(judge_.value(d, on) - judge_.value(d, step_)) < tangent_speed * d.start;
  }

  // ---- at a located point -------------------------------------------------------------------------------------------

  /// True if anything has changed there. `ahead`: what was located was ahead of the step, and what else is zero there
  /// too.
  bool happen(bool ahead = false) {
    std::vector<Guard> guards;
    for (const Disagreement& d : found_) guards.push_back(d.guard);
    for (const Disagreement& d : found_) {
      if (d.guard.kind != GuardKind::jump) continue;
      const std::optional<Guard> shared = shared_guard(d.guard);
      if (shared && std::find(guards.begin(), guards.end(), *shared) == guards.end()) guards.push_back(*shared);
    }
    add_ticks_here(guards);
    const auto jumps = [](const Guard& g) { return g.kind == GuardKind::jump; };
    const bool any_jump = std::any_of(guards.begin(), guards.end(), jumps);
    if (any_jump || (ahead && judge_.layout().switches > 1))
      add_surfaces_here(tests_after(any_jump ? located_share * length_.dt() : resolution()), guards);
    return happen_at(std::move(guards));
  }

  /// The surface or gap that is zero with a jump: where jumps are located it takes part, though it need not be located.
  std::optional<Guard> shared_guard(const Guard& jump) const {
    const SharedZero& shared = events_.jumps().shared(at(jump.item));
    const int m = judge_.layout().switches, side = shared.side * jump.side;
    if (shared.unknown < 0 || shared.rests(here_.mode())) return std::nullopt;
    if (shared.unknown < m) return Guard{GuardKind::surface, shared.unknown, side};
    return side > 0 ? std::optional(Guard{GuardKind::gap, shared.unknown - m, side}) : std::nullopt;
  }

  bool happen_at(std::vector<Guard> guards) {
    const Moment before = here_.moment;
    const std::vector<std::pair<int, double>> held = here_.held;
    Moment& now = here_.moment;
    now.x = values(here_.x);
    std::sort(guards.begin(), guards.end(), [](const Guard& a, const Guard& b) { return a.item < b.item; });
    const std::vector<double> x = now.x;
    const bool seen = events_.happen(now, guards, smooth_.estimate_scale(now, first_scale_), resolution(), true);
    take_over();
    const bool moved = now.mode != before.mode || now.counters != before.counters || now.x != x;
    if (moved) {  // another field
      shortened_ = 0;
      longest_ = HUGE_VAL;
    }
    return (seen && moved) || held != here_.held;
  }

  void tick_clocks() {
    if (recorder_.ended()) return;
    std::vector<Guard> guards;
    add_ticks_here(guards);
    if (guards.empty()) return;
    const Vec soon = tests_soon();
    add_jumps_here(soon, guards);
    add_surfaces_here(soon, guards);
    happen_at(std::move(guards));
  }

  void add_ticks_here(std::vector<Guard>& guards) const {
    for (const int k : events_.jumps().ticking(t(), resolution())) guards.push_back({GuardKind::clock, k, 0});
  }

  /// Watched functions as soon after the present point as a step can resolve.
  Vec tests_soon() { return tests_after(located_share * length_.dt()); }

  Vec tests_after(double later) {
    Vec f, soon;
    solver_.rates(t(), here_.x, here_.u, f);
    solver_.tests(t() + later, here_.x + later * f, here_.u, soon);
    return soon;
  }

  /// Conditions that are zero here up to the accuracy of a step are due together with a clock that ticks.
  void add_jumps_here(const Vec& soon, std::vector<Guard>& guards) const {
    const TestLayout& layout = judge_.layout();
    for (int k = 0; k < layout.jumps; ++k) {
      const int side = events_.jumps().side(at(k));
      if (events_.jumps().has_clock(at(k)) || side == 0 || !events_.jumps().wanted(at(k), -side)) continue;
      if (side * soon[layout.jump(k)] < 0) guards.push_back({GuardKind::jump, k, side});
    }
  }

  /// Surfaces that are zero here as exactly take part: they may turn back what has been located, also a jump's
  /// condition.
  void add_surfaces_here(const Vec& soon, std::vector<Guard>& guards) const {
    for (const Guard& g : judge_.watched(here_)) {
      const bool listed = std::find(guards.begin(), guards.end(), g) != guards.end();
      if (g.kind == GuardKind::surface && !listed && g.side * soon[g.item] < 0) guards.push_back(g);
    }
  }

  // ---- the step in an unknown mode ----------------------------------------------------------------------------------

  /// A complementarity step over the rest: what changes, changes inside it without being located.
  void step_across(const Part& part, StepFate in_mode) {
    const double rest = here_.moment.clock.until(part.end);
    const double left = std::abs(rest - part.h) < same_grid_point * part.h ? part.h : std::min(part.h, rest);
    const double h = std::min(left, length_.longest_unjudged());
    if (!(h > 0)) return;
    UnknownStep across;
    if (in_mode == StepFate::ok) {
      for (const Disagreement& d : found_)
        if (d.guard.kind == GuardKind::surface) solver_.expect_sliding(d.guard.item);
    }
    const StepFate fate = solve_across(h, in_mode, across);
    if (fate == StepFate::undefined) {
      if (!come_to_rest()) end_undefined();
      return;
    }
    if (fate == StepFate::unsolved) {  // products of forces and slips may only need a shorter step
      if (solver_.affine() || shortened_ >= most_unsolved_tries || !shortens(StepFate::not_converged, h))
        finish(Why::inconsistent, across.trouble);
      return;
    }
    if (fate != StepFate::ok) {
      if (!shortens(fate, h) && !come_to_rest()) stall(h);
      return;
    }
    if (leaves_domain(across.step)) {
      longest_ = across.step.h / 2;
      return;
    }
    Transition event{.before = here_.mode(), .x_minus = values(here_.x), .counters_before = here_.moment.counters};
    const Vec tests_before = here_.tests;
    const double t_before = t();
    for (const int j : across.rebounded)
      event.impulse.emplace_back(j, across.step.h * across.step.u1[judge_.layout().switches + j]);
    here_.held.clear();
    accept(across.step, across.step.h == left ? part.end : t() + across.step.h, made_across(across));
    longest_ *= 2;
    length_.crossed();
    if (recorder_.ended()) return;
    here_.moment.mode = across.mode;
    here_.u = across.step.u1;
    project();
    here_.moment.x = values(here_.x);
    event.after = across.mode;
    event.counters = here_.moment.counters;
    if (event.before != event.after || !event.impulse.empty()) {
      place(event, tests_before, t_before);
      recorder_.happened(event, here_.moment);
    }
    if (!recorder_.ended() && !found_.empty()) happen();
  }

  /// Solves it; what must be located, is, by the linear output of the step: `found_`.
  StepFate solve_across(double h, StepFate in_mode, UnknownStep& across) {
    // Only backward Euler settles on a surface of higher degree.
    double theta = in_mode == StepFate::higher_degree ? 1.0 : rule_.theta;
    StepFate fate = unknown_.solve(here_, h, theta, across);
    if (fate == StepFate::not_converged) fate = unknown_.solve(here_, h, theta = 1.0, across);
    if (fate != StepFate::ok) return fate;
    judge_.look(here_, across.step, true, found_);
    double first = 1;
    for (const Disagreement& d : found_) {
      if (d.start > 0) first = std::min(first, d.start / d.range());
    }
    return first < 1 - 1e-12 && first > 1e-12 ? unknown_.solve(here_, first * h, theta, across) : StepFate::ok;
  }

  /// A change inside a step without being located: a crossing is put where a straight line crosses, the others at the
  /// end.
  void place(Transition& event, const Vec& tests_before, double t_before) const {
    double s = 1;
    for (int i = 0; i < judge_.layout().switches; ++i) {
      const double a = tests_before[i], b = here_.tests[i];
      if (event.before.switches[at(i)] != event.after.switches[at(i)] && a * b < 0) s = std::min(s, a / (a - b));
    }
    event.t = t_before + s * (t() - t_before);
    event.x_plus.resize(event.x_minus.size());
    for (size_t i = 0; i < event.x_plus.size(); ++i)
      event.x_plus[i] = event.x_minus[i] + s * (here_.moment.x[i] - event.x_minus[i]);
  }

  void project() {
    if (options_.step->projection) unknown_.project(here_);
  }

  // ---- what is kept -------------------------------------------------------------------------------------------------

  /// How a step in the present mode is made.
  StepMade made_in_mode(const Step& s) const {
    StepMade made{.rule = s.cubic ? StepMade::Rule::simpson : StepMade::Rule::theta, .theta = rule_.theta};
    made.mode = here_.mode();
    made.solved = solver_.active();
    made.u0 = s.cubic ? s.u0 : s.u1;
    made.um = s.um;
    made.u1 = s.cubic && !s.algebraic ? Vec(2 * s.um - s.u0) : s.u1;  // as solved for, not as sharpened
    made.algebraic = s.algebraic;
    return made;
  }

  /// Along the rates at the start, as they are.
  StepMade straight() const {
    StepMade made{.rule = StepMade::Rule::theta, .theta = 0};
    made.mode = here_.mode();
    made.u0 = made.u1 = here_.u;
    return made;
  }

  StepMade made_across(const UnknownStep& across) const {
    StepMade made{.rule = StepMade::Rule::theta, .theta = across.theta};
    made.mode = across.formulas;
    made.solved = across.solved;
    made.hits = across.hits;
    made.u0 = made.u1 = across.step.u1;
    return made;
  }

  void tell_made(StepMade made, double h, const Vec& x1) const {
    made.t = t();
    made.h = h;
    made.counters = here_.moment.counters;
    made.x0 = here_.x;
    made.x1 = x1;
    options_.on_step(made);
  }

  void accept(const Step& s, double end, bool happens = false) {
    accept(s, end, options_.on_step ? made_in_mode(s) : StepMade{}, happens);
  }

  /// The state moves to the end of the step; sections on the way are reported. `happens`: something does at its end.
  void accept(const Step& s, double end, const StepMade& made, bool happens = false) {
    if (wants_pieces_) make_piece(here_, s, end, piece_);
    recorder_.slid(here_.mode(), s.h);
    for (int i = 0; i < model_.form.visible; ++i) {
      if (here_.mode().switches[at(i)] == '0') recorder_.drifted(i, std::abs(s.tests[i]));
    }
    Moment& now = here_.moment;
    now.x = values(here_.x);
    if (!model_.sections.empty()) {
      // A section that is met with a jump, but for rounding, is met before it.
      Vec soon;
      const bool jumps = jumps_after(s, soon);
      find_crossings(solver_, model_, recorder_, here_, s, piece_, crossings_, jumps ? &soon : nullptr);
      if (happens) recorder_.wait_for_event(crossings_, piece_.length, resolution() + located_share * length_.dt());
      const double tick = events_.jumps().next_tick();
      recorder_.pass(piece_, crossings_, now, resolution(),
                     std::isfinite(tick) && std::abs(tick - end) <= resolution());
      if (recorder_.ended()) {
        const Vec reached = column_at(now.x.data(), here_.x.size());
        if (options_.on_step) tell_made(made, now.t() - piece_.start, reached);
        here_.x = reached;
        return;
      }
    }
    if (options_.on_step) tell_made(made, s.h, s.x);
    if (recorder_.wants_pieces()) recorder_.keep(piece_, now, here_.held);
    here_.x = s.x;
    here_.u = s.u1;
    here_.tests = s.tests;
    now.clock.set(end);
    now.x = values(here_.x);
    std::fill(now.known.begin(), now.known.end(), 0);
    if (recorder_.has_grown(now)) return;
    note_signs();
    project();
  }

  /// True if a jump is due at the end of a step, or within the accuracy with which it is located; `soon`: the tests
  /// then.
  bool jumps_after(const Step& s, Vec& soon) {
    const TestLayout& layout = judge_.layout();
    if (layout.jumps == 0) return false;
    Vec f;
    const double more = located_share * length_.dt();
    solver_.rates(t() + s.h, s.x, s.u1, f);
    solver_.tests(t() + s.h + more, s.x + more * f, s.u1, soon);
    for (int k = 0; k < layout.jumps; ++k) {
      const int side = events_.jumps().side(at(k));
      if (!events_.jumps().has_clock(at(k)) && side * soon[layout.jump(k)] < 0 &&
          judge_.may_happen({GuardKind::jump, k, side}))
        return true;
    }
    return false;
  }

  void note_signs() {
    const TestLayout& layout = judge_.layout();
    for (int k = 0; k < layout.jumps; ++k) {
      // A zero here is judged where it is left or stays.
      Jumps& jumps = events_.jumps();
      const int s = sign_of(here_.tests[layout.jump(k)]);
      const bool rounding = jumps.at_zero(at(k)) && jumps.side(at(k)) * s < 0;  // it has not yet come to its side
      if (s != 0 && !rounding && !jumps.shared(at(k)).rests(here_.mode())) jumps.note(at(k), s, 0);
    }
    for (int s = 0; s < layout.sections; ++s) {
      if (recorder_.section_shared(at(s)).rests(here_.mode())) continue;
      const auto met =
          std::find_if(crossings_.begin(), crossings_.end(), [s](const Crossing& c) { return c.section == s; });
      const int sign = met != crossings_.end() ? met->sign : sign_of(here_.tests[layout.section(s)]);
      if (sign != 0) recorder_.set_section_sign(at(s), sign);
    }
  }

  const Model& model_;
  const RunOptions& options_;
  Series& series_;
  Smooth smooth_;  // for the time scale of the flow at events
  StepSolver& solver_;
  Trajectory& result_;
  Recorder recorder_;
  Events events_;
  Judge judge_;
  StepLength length_;
  UnknownMode unknown_;
  const RestsBeside rests_ = [this](const Guard& g, const Step& s) { return rests_beside(g, s); };
  bool wants_pieces_;
  StepRule rule_;
  int most_splits_;
  Here here_;
  double first_scale_ = 1;                 // of the flow where the run starts
  Step step_;                              // the last one solved in a known mode
  Along along_;                            // the last step, if it is adaptive
  std::vector<Disagreement> found_;        // on it
  double grid_ = 0, began_ = 0, end_ = 0;  // the number of the present step, where it begins and ends
  int splits_ = 0, shortened_ = 0;         // of the present step
  double longest_ = HUGE_VAL;              // part of it that Newton's method is given
  Vec largest_;                            // |x| of the run so far
  Mode slid_in_;                           // the mode in which
  bool slope_varies_ = false;              // d(h')/dsigma varies
  Piece piece_;
  std::vector<Crossing> crossings_;
};

}  // namespace

StepMemory::StepMemory() = default;
StepMemory::~StepMemory() = default;

void simulate_time_stepping(EngineMemory& memory, StepMemory& steps, const RunOptions& options, Trajectory& result) {
  memory.prepare(options);
  if (!steps.solver)
    steps.solver = std::make_unique<StepSolver>(memory.program, options.parameters);
  else
    steps.solver->bind(options.parameters);
  Stepper(memory, *steps.solver, options, result).run();
}

}  // namespace saltus
