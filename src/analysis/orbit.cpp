#include "analysis/orbit.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "analysis/lookout.hpp"
#include "analysis/settle.hpp"
#include "analysis/signature.hpp"
#include "analysis/spectrum.hpp"
#include "analysis/symmetry.hpp"
#include "base/index.hpp"
#include "flow/recorder.hpp"
#include "flow/variation.hpp"
#include "model/period.hpp"

namespace saltus {
namespace {

constexpr double closes = 1e-7;      ///< relative error of a run that counts as closed
constexpr double converged = 1e-12;  ///< relative residual of Newton's method
constexpr int most_signatures = 12;  ///< changes of the signature before giving up

/// Where an orbit begins, and how it closes.
struct Begin {
  std::vector<double> x;
  double t = 0;
  int returns = 1;
};

struct Failure {
  std::string why, message;
  double residual = 0;
};

class OrbitSearch {
 public:
  OrbitSearch(const Model& model, const OrbitOptions& options)
      : options_(options), direction_(options.backward ? -1.0 : 1.0), model_(model) {
    for (Section& s : model_.sections) s.stop = false;
    const std::optional<Period> period = period_in_time(model_, options.run.parameters);
    forced_ = period.has_value() || !model_.autonomous();
    if (period) clock_ = period->value;
    section_ = options.section;
    if (section_ >= 0 && model_.sections[at(section_)].kind == Section::Kind::every) {
      const double every = constant_value(model_.sections[at(section_)].value, options.run.parameters);
      const double ratio = clock_ > 0 ? every / clock_ : 0;
      const bool whole = std::abs(ratio - std::round(ratio)) < 1e-9 && ratio > 0.5;
      if (forced_ && (clock_ == 0 || whole)) clock_ = every;
      section_ = -1;
    }
    leave_out();
  }

  Orbit find() {
    Orbit orbit{.autonomous = !forced_, .backward = options_.backward};
    try {
      if (forced_ && !(clock_ > 0))
        throw Failure{"clock", "time enters the equations without an evident period; give a section with 'every'"};
      if (!forced_ && section_ < 0) add_plane();
      program_.emplace(model_);
      simulator_.emplace(*program_);
      variation_.emplace(*program_, base(0, 1));
      shooting_.emplace(*program_, options_.run, forced_, direction_);
      Begin begin = options_.guess ? take_guess() : settle();
      solve(begin, orbit);
    } catch (const Failure& failure) {
      orbit.found = false;
      orbit.why = failure.why;
      orbit.message = failure.message;
      orbit.residual = failure.residual;
    }
    return orbit;
  }

 private:
  // ---- the ground ---------------------------------------------------------------------------------------------------

  /// A state that nothing depends on, not even itself, need not come back.
  void leave_out() {
    const size_t n = model_.states.size();
    left_out_.assign(n, true);
    std::vector<Expr> all = model_.form.f;
    for (const Switch& s : model_.form.switches) all.push_back(s.surface);
    for (const Gap& g : model_.form.gaps) all.push_back(g.gap);
    for (const Counter& c : model_.form.counters) all.push_back(c.phase);
    for (const LoweredJump& j : model_.form.jumps) {
      all.push_back(j.on);
      for (const Assignment& a : j.set) all.push_back(a.value);
      for (const Assignment& a : j.set) left_out_[at(a.state)] = false;
      if (j.when) all.push_back(*j.when);
    }
    if (section_ >= 0) all.push_back(model_.form.sections[at(section_)]);
    for (const Expr& s : symbols_in(all)) {
      if (s.is_symbol(SymbolKind::state)) left_out_[at(s.symbol().index)] = false;
    }
    if (std::all_of(left_out_.begin(), left_out_.end(), [](bool b) { return b; })) left_out_.assign(n, false);
  }

  RunOptions base(double from, double length) const {
    RunOptions o = options_.run;
    o.from = from;
    o.until = from + direction_ * length;
    o.keep_events = false;
    o.keep_pieces = false;
    o.section = -1;
    o.section_count = 0;
    return o;
  }

  /// A plane normal to the flow, through the guess or where the first run ends.
  void add_plane() {
    const Program program(model_);
    std::vector<double> x = options_.run.initial;
    double t = options_.run.from;
    if (!options_.guess) {
      const Trajectory run = simulate(program, base(t, std::abs(options_.run.until - options_.run.from)));
      if (run.end.why != Why::time) throw Failure{"run", "the run ends early: " + run.end.message};
      x = run.end.state;
      t = run.end.t;
    }
    RunOptions still = base(t, 1);
    still.initial = x;
    still.until = t;
    const Arc arc = simulate(program, still).last;
    Variation variation(program, base(t, 1));
    const Vec f = variation.rates(arc, x, t);
    if (!(f.norm() > 1e-9 * (1 + Eigen::Map<const Vec>(x.data(), f.size()).norm())))
      throw Failure{"equilibrium", "the run comes to rest: there is no orbit here; try `equilibrium`"};
    Expr plane = 0.0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (left_out_[i]) continue;
      plane = plane + Expr(f[ix(i)] / f.norm()) * (state_symbol(model_, static_cast<int>(i)) - Expr(x[i]));
    }
    model_.sections.push_back(
        {.name = "plane", .kind = Section::Kind::on, .value = plane, .direction = Direction::rising});
    model_.form.sections.push_back(plane);
    section_ = static_cast<int>(model_.sections.size()) - 1;
    plane_start_ = Begin{x, t, 1};
  }

  // ---- where to begin -----------------------------------------------------------------------------------------------

  Begin take_guess() {
    Begin begin{options_.run.initial, options_.run.from, std::max(1, options_.returns)};
    if (forced_) {
      if (options_.time > 0) begin.returns = std::max(1, static_cast<int>(std::round(options_.time / clock_)));
      return begin;
    }
    // On the section already, or just before it: then the first crossing is the beginning.
    std::vector<Begin> seen = returns_from(begin, options_.time > 0 ? 64 : begin.returns + 1, options_.time * 1.5);
    const bool just_before = seen.size() > 1 && std::abs(seen[0].t - begin.t) < 1e-3 * std::abs(seen[1].t - seen[0].t);
    if (just_before || (seen.size() > 1 && !is_on_section(begin))) {
      seen[0].returns = begin.returns;
      begin = seen[0];
      seen.erase(seen.begin());
    }
    if (!seen.empty()) soonest_ = 1e-4 * std::abs(seen[0].t - begin.t);
    if (options_.time > 0) {
      int best = 0;
      for (size_t k = 0; k < seen.size(); ++k) {
        if (std::abs(std::abs(seen[k].t - begin.t) - options_.time) <
            std::abs(std::abs(seen[at(best)].t - begin.t) - options_.time))
          best = static_cast<int>(k);
      }
      begin.returns = best + 1;
    }
    return begin;
  }

  /// Whether a point lies near the section and passes it the right way; of sections that are events nobody can tell.
  bool is_on_section(const Begin& begin) {
    constexpr double near = 1e-2;  // of the size of the state
    const Section& section = model_.sections[at(section_)];
    if (section.kind != Section::Kind::on) return true;
    RunOptions still = base(begin.t, 1);
    still.initial = begin.x;
    still.until = begin.t;
    const Arc arc = simulator_->run(still).last;
    const Variation::GuardSlope slope = variation_->section(section_, arc, begin.x, begin.t);
    const double rate = slope.by_state.dot(variation_->rates(arc, begin.x, begin.t)) + slope.by_time;
    const bool rises = direction_ * rate > 0;
    if (section.direction != Direction::any && rises != (section.direction == Direction::rising)) return false;
    const Eigen::Map<const Vec> x(begin.x.data(), ix(begin.x.size()));
    return std::abs(slope.value) <= near * slope.by_state.norm() * x.norm();
  }

  /// The returns to the section from here.
  std::vector<Begin> returns_from(const Begin& begin, int count, double longest) {
    RunOptions o = base(begin.t, longest > 0 ? longest : 1e9);
    o.initial = begin.x;
    o.section = section_;
    o.section_count = count;
    std::vector<Begin> out;
    o.on_section = [&](const Passing& p) {
      if (p.section == section_) out.push_back({{p.state.begin(), p.state.end()}, p.t, 1});
      return true;
    };
    long reports = 0;
    o.progress = [&](double) { return ++reports < 2000; };
    simulator_->run(o);
    return out;
  }

  /// Runs until the returns repeat.
  Begin settle() {
    const size_t n = model_.states.size();
    Begin begin{options_.run.initial, options_.run.from, 1};
    if (plane_start_) begin = *plane_start_;
    std::vector<double> scale(n, 0.0);
    std::vector<std::vector<double>> first;
    std::vector<double> times;
    std::optional<Settling> settling;
    Begin last;
    bool settled = false;
    const int longest = options_.returns > 0 ? options_.returns : 64;
    const auto add = [&](double t, std::span<const double> x) {
      last.x.assign(x.begin(), x.end());
      last.t = t;
      times.push_back(t);
      if (!settling) {
        first.emplace_back(x.begin(), x.end());
        if (first.size() < 8) return true;
        std::vector<double> tolerance(n);
        for (size_t i = 0; i < n; ++i) {
          tolerance[i] = left_out_[i] ? HUGE_VAL : 1e-6 * std::max(scale[i], 1e-12);
          for (const auto& [state, modulus] : options_.modulo) {
            if (at(state) == i) tolerance[i] = HUGE_VAL;
          }
        }
        settling.emplace(std::move(tolerance), longest);
        for (const std::vector<double>& p : first) settled = settling->add(p);
        return !settled;
      }
      settled = settling->add(x);
      return !settled;
    };
    RunOptions o = base(begin.t, forced_ ? clock_ * (static_cast<double>(options_.most_returns) + 0.5) : 1e12);
    o.initial = begin.x;
    std::optional<Lookout> lookout;
    if (section_ >= 0) lookout.emplace(model_, o, section_);
    o.on_piece = [&](const Piece& piece, const Arc&) {
      if (lookout && lookout->watches()) lookout->along(piece);
      const size_t stride = piece.coefficients.size() / n;
      for (size_t i = 0; i < n; ++i) scale[i] = std::max(scale[i], std::abs(piece.coefficients[i * stride]));
    };
    long seen = 0, reports = 0;
    bool gave_up = false;
    o.on_section = [&](const Passing& p) {
      if (p.section != section_) return true;
      reports = 0;
      lookout->met();
      return add(p.t, p.state) && ++seen < options_.most_returns;
    };
    o.progress = [&](double) {
      gave_up = ++reports > 4000 || (lookout && !lookout->verdict().empty());
      return !gave_up && (!options_.run.progress || options_.run.progress(0));
    };
    if (section_ < 0) {  // by the clock: one run after the other, on a clock that does not drift
      Begin now = begin;
      for (; !settled && seen < options_.most_returns; ++seen) {
        RunOptions one = o;
        one.from = begin.t + direction_ * clock_ * static_cast<double>(seen);
        one.until = begin.t + direction_ * clock_ * static_cast<double>(seen + 1);
        one.initial = now.x;
        const Trajectory run = simulator_->run(one);
        if (run.end.why != Why::time) throw Failure{"run", "the run ends early: " + run.end.message};
        now.x = run.end.state;
        last_arc_ = run.last;
        add(one.until, now.x);
      }
    } else {
      const Trajectory run = simulator_->run(o);
      if (plane_start_ && lookout->verdict().starts_with("comes to rest"))
        throw Failure{"equilibrium", "the run comes to rest: there is no orbit here; try `equilibrium`"};
      if (times.size() < 2 && run.end.why != Why::stop)
        throw Failure{"section", run.end.message.empty() || gave_up
                                     ? fmt::format("the run does not return to the section '{}'",
                                                   model_.sections[at(section_)].name)
                                     : "the run ends early: " + run.end.message};
      if (!settled && run.end.why != Why::stop && !gave_up && run.end.why != Why::time)
        throw Failure{"run", "the run ends early: " + run.end.message};
    }
    if (settled) {
      last.returns = settling->cycle().period;
      if (options_.returns > 0 && options_.returns % last.returns == 0) last.returns = options_.returns;
    } else {
      last.returns = options_.returns > 0 ? options_.returns : 0;
      if (settling && last.returns == 0) last.returns = nearest_recurrence(*settling);
      if (last.returns == 0)
        throw Failure{"unsettled", fmt::format("the run does not settle on an orbit within {} returns; start nearer to "
                                               "it, or give a guess",
                                               times.size())};
    }
    if (times.size() > 1) soonest_ = 1e-4 * std::abs(times.back() - times[times.size() - 2]);
    // The orbit is the same in every period: begin in the first, where clocks have counted less.
    if (forced_ && section_ < 0) {
      last.t = begin.t;
      if (last_arc_) count_anew(*last_arc_, begin);
    }
    if (forced_ && section_ >= 0) {
      const size_t back = at(last.returns);
      const double length = times.size() > back ? std::abs(times.back() - times[times.size() - 1 - back]) : clock_;
      last.returns = std::max(1, static_cast<int>(std::round(length / clock_)));
      wanted_section_ = section_;
      section_ = -1;
    }
    return last;
  }

  /// Wraps of time counted as at the beginning of the first period.
  void count_anew(Arc& arc, const Begin& begin) {
    RunOptions still = base(begin.t, 0);
    still.initial = begin.x;
    const Arc first = simulator_->run(still).last;
    for (const Counter& c : model_.form.counters) {
      const std::vector<Expr> symbols = symbols_in(std::span(&c.phase, 1));
      const bool timed =
          std::none_of(symbols.begin(), symbols.end(), [](const Expr& e) { return e.is_symbol(SymbolKind::state); });
      if (timed) set_counter(c, first.counters[static_cast<size_t>(c.at)], arc.counters);
    }
  }

  int nearest_recurrence(const Settling& settling) const {
    const Attractor sample = settling.sample(200);
    const size_t n = model_.states.size(), count = sample.count(n);
    int best = 0;
    double nearest = 1e4;
    for (size_t p = 1; p <= 8 && p < count; ++p) {
      const double d = distance_in(settling.tolerance(), sample.point(count - 1, n), sample.point(count - 1 - p, n));
      if (d < 0.5 * nearest) {
        nearest = d;
        best = static_cast<int>(p);
      }
    }
    return best;
  }

  // ---- one period as a run ------------------------------------------------------------------------------------------

  struct Lap {
    Trajectory run;
    Mat monodromy;
    std::vector<double> times;    // of each return
    std::vector<double> stretch;  // per transition
    std::vector<std::string> notes;
    bool whole = false;
  };

  /// Contacts at rest may be violated by rounding where the phase is counted anew: lands on them.
  void land(Begin& begin, const Arc& arc) {
    if (program_->constraints() == 0) return;
    variation_->begin(Mat());
    variation_->land(arc, begin.x, begin.t);
  }

  /// A state that lies on the section but for rounding may meet it at once: that is no return.
  Lap lap(const Begin& begin, bool tangents) {
    Lap out = lap(begin, tangents, begin.returns);
    if (out.times.empty() || std::abs(out.times[0] - begin.t) > soonest_) return out;
    out = lap(begin, tangents, begin.returns + 1);
    out.times.erase(out.times.begin());
    return out;
  }

  Lap lap(const Begin& begin, bool tangents, int passings) {
    Lap out;
    const size_t n = model_.states.size();
    RunOptions o = base(begin.t, forced_ || section_ < 0 ? clock_ * begin.returns : 1e9);
    o.initial = begin.x;
    o.keep_pieces = true;
    o.keep_events = true;
    o.keep_transitions = true;
    if (section_ >= 0) {
      o.section = section_;
      o.section_count = passings;
    }
    o.on_section = [&](const Passing& p) {
      if (p.section != section_) return true;
      out.times.push_back(p.t);
      return true;
    };
    if (tangents) {
      variation_.emplace(*program_, o);
      variation_->begin(Mat::Identity(ix(n), ix(n)));
      o.on_piece = [&](const Piece& piece, const Arc& arc) { variation_->along(piece, arc); };
      o.on_transition = [&](const Transition& e) {
        const Mat before = variation_->tangents();
        variation_->through(e);
        const double size = before.norm();
        out.stretch.push_back(size > 0 ? variation_->tangents().norm() / size : 0);
      };
    }
    long reports = 0;
    o.progress = [&](double) { return ++reports < 4000; };
    o.max_events = 200'000;
    out.run = simulator_->run(o);
    out.whole = section_ >= 0 ? out.run.end.why == Why::count : out.run.end.why == Why::time;
    meet_event(out, tangents);
    if (tangents) {
      out.monodromy = variation_->tangents();
      out.notes = variation_->notes();
    }
    return out;
  }

  /// Where the section lies on a surface of the model, the run ends just before the event with which it began.
  void meet_event(Lap& out, bool tangents) {
    if (!out.whole || section_ < 0 || out.run.arcs.empty()) return;
    const Arc &last = out.run.last, &first = out.run.arcs.front();
    if (last.mode == first.mode || model_.sections[at(section_)].kind != Section::Kind::on) return;
    Transition e{.t = out.run.end.t, .before = last.mode, .after = first.mode};
    e.x_minus = e.x_plus = out.run.end.state;
    e.counters_before = e.counters = last.counters;
    for (size_t i = 0; i < last.mode.switches.size(); ++i) {
      const char from = last.mode.switches[i], to = first.mode.switches[i];
      if (from == to) continue;
      const int item = static_cast<int>(i);
      if (from == '0')
        e.guards.push_back({GuardKind::sigma, item, to == '+' ? 1 : -1});
      else
        e.guards.push_back({GuardKind::surface, item, from == '+' ? 1 : -1});
    }
    if (e.guards.empty()) return;
    if (tangents) {
      const double before = variation_->tangents().norm();
      variation_->through(e);
      out.stretch.push_back(before > 0 ? variation_->tangents().norm() / before : 0);
    }
    for (Event& event : events_of(e, model_)) out.run.events.push_back(std::move(event));
  }

  // ---- Newton's method ----------------------------------------------------------------------------------------------

  std::vector<Leg> legs_of(const Begin& begin, const Lap& lap) const {
    const bool by_event = section_ >= 0 && model_.sections[at(section_)].kind != Section::Kind::on;
    std::vector<Leg> legs = saltus::legs_of(lap.run, begin.x, begin.t, direction_, !by_event);
    if (!by_event && section_ >= 0) legs.back().end = Leg::End::section;
    return legs;
  }

  bool equations(const std::vector<Leg>& legs, double t0, Vec& r, Mat& J) {
    const Eigen::Index n = ix(model_.states.size());
    Closing closing{.free = left_out_, .sign = Vec::Ones(n), .shift = Eigen::Map<const Vec>(shift_.data(), n)};
    return shooting_->equations(legs, closing, t0, {}, section_, r, J);
  }

  /// Newton's method on the frozen signature. Says whether it has converged; `begin` is moved.
  bool newton(std::vector<Leg>& legs, Begin& begin, Orbit& orbit) {
    const Eigen::Index n = ix(model_.states.size());
    Vec scale = Vec::Constant(n, 1e-300);
    double length = 0;
    for (const Leg& leg : legs) {
      scale = scale.cwiseMax(leg.x.cwiseAbs());
      length += std::abs(leg.length);
    }
    for (size_t i = 0; i < size_.size(); ++i) scale[ix(i)] = std::max(scale[ix(i)], size_[i]);
    shooting_->set_size(scale, length);
    legs = with_nodes(std::move(legs), *shooting_, begin.t);
    const auto size_of = [&](const Vec& r) {
      double largest = 0;
      for (Eigen::Index i = 0; i < r.size(); ++i) {
        const Eigen::Index within = i % (n + 1);
        largest = std::max(largest, std::abs(r[i]) / (within == n ? length : scale[within]));
      }
      return largest;
    };
    Vec r;
    Mat J;
    if (!equations(legs, begin.t, r, J)) return false;
    double size = size_of(r);
    double best = size;
    int still = 0, tries = 8;
    for (int iteration = 0; iteration < 40; ++iteration) {
      orbit.residual = size;
      if (size < 1e-15) break;
      const Lu lu(J);
      const Vec step = -lu.solve(r);
      if (!step.allFinite()) return false;
      const double moves = size_of(step);
      ++orbit.iterations;
      double share = 1;
      std::vector<Leg> next;
      bool better = false;
      for (int halving = 0; halving < 12; ++halving, share /= 2) {
        next = legs;
        bool sane = true;
        for (size_t i = 0; i < legs.size(); ++i) {
          next[i].x += share * step.segment((n + 1) * ix(i), n);
          next[i].length += share * step[(n + 1) * ix(i) + n];
          sane = sane && std::abs(next[i].length) < 4 * length;
        }
        if (!sane || !equations(next, begin.t, r, J)) continue;
        const double now = size_of(r);
        // The next step, with the matrix as it is, tells whether this one leads nearer also where residuals do not.
        const bool falls = now < 0.9 * size || now < 1e-9;
        const bool nearer = falls || (tries > 0 && size_of(lu.solve(r)) < (1 - share / 2) * moves);
        if (nearer || share < 1e-3) {
          better = true;
          if (!falls) --tries;
          size = now;
          break;
        }
      }
      if (!better) return size < converged * 1e3;
      legs = std::move(next);
      still = size >= 0.5 * best ? still + 1 : 0;
      best = std::min(best, size);
      if ((size < converged && moves < 1e-9) || (still >= 2 && best < converged * 1e3)) break;
    }
    orbit.residual = size;
    if (!(size < converged * 1e3)) return false;
    begin.x.assign(legs.front().x.begin(), legs.front().x.end());
    solved_ = legs;
    return true;
  }

  // ---- the search ---------------------------------------------------------------------------------------------------

  void note_sizes(const Lap& lap) {
    const size_t n = model_.states.size();
    size_.assign(n, 0.0);
    for (const Piece& p : lap.run.pieces) {
      const size_t stride = p.coefficients.size() / n;
      for (size_t i = 0; i < n; ++i) {
        size_[i] = std::max({size_[i], std::abs(p.coefficients[i * stride]),
                             stride > 1 ? std::abs(p.coefficients[i * stride + 1] * p.length) : 0.0});
      }
    }
  }

  double open_by(const Begin& begin, const Lap& lap) const {
    double largest = 0;
    for (size_t i = 0; i < begin.x.size(); ++i) {
      if (left_out_[i]) continue;
      const double size = std::max(size_[i], 1e-300);
      largest = std::max(largest, std::abs(begin.x[i] + shift_[i] - lap.run.end.state[i]) / size);
    }
    return largest;
  }

  void find_shift(const Begin& begin, const Lap& lap) {
    shift_.assign(begin.x.size(), 0.0);
    for (const auto& [state, modulus] : options_.modulo)
      shift_[at(state)] = modulus * std::round((lap.run.end.state[at(state)] - begin.x[at(state)]) / modulus);
  }

  void solve(Begin begin, Orbit& orbit) {
    if (last_arc_) land(begin, *last_arc_);
    Lap now = lap(begin, false);
    require_whole(now);
    for (int attempt = 0;; ++attempt) {
      note_sizes(now);
      find_shift(begin, now);
      std::vector<Leg> legs = legs_of(begin, now);
      const std::vector<Leg> frozen = legs;
      if (!newton(legs, begin, orbit))
        throw Failure{"newton",
                      fmt::format("Newton's method does not converge (residual {:.2g}, leg {} of {}); start nearer to "
                                  "the orbit",
                                  orbit.residual, shooting_->failed_leg() + 1, legs.size()),
                      orbit.residual};
      land(begin, legs.front().arc);
      now = lap(begin, true);
      if (now.whole && open_by(begin, now) < closes * std::max(1.0, 1e-3 * now.monodromy.norm()) &&
          same_signature(legs_of(begin, now), frozen))
        break;
      require_whole(now);
      if (attempt >= most_signatures) {
        const std::vector<Leg> other = legs_of(begin, now);
        size_t i = 0;
        while (i < std::min(other.size(), frozen.size()) && other[i].arc.mode == frozen[i].arc.mode) ++i;
        throw Failure{
            "signature",
            fmt::format("Newton left the admissible signature at leg {}: the orbit it finds is not one of the "
                        "model; start nearer to it",
                        i + 1),
            open_by(begin, now)};
      }
    }
    require_motion(begin, now);
    shorten(begin, now, orbit);
    if (wanted_section_ >= 0) to_section(begin, now);
    tell(begin, now, orbit);
  }

  void require_whole(const Lap& lap) const {
    if (lap.whole) return;
    throw Failure{"section", lap.run.end.why == Why::time || lap.run.end.why == Why::cancelled
                                 ? "the run does not return to the section"
                                 : "the run ends before it closes: " + lap.run.end.message};
  }

  /// A point at which an autonomous system rests closes after any time.
  void require_motion(const Begin& begin, const Lap& now) {
    if (forced_) return;
    const Arc arc = now.run.arcs.empty() ? now.run.last : now.run.arcs.front();
    const Vec f = variation_->rates(arc, begin.x, begin.t);
    const double period = std::abs(now.run.end.t - begin.t);
    for (size_t i = 0; i < begin.x.size(); ++i) {
      if (!left_out_[i] && std::abs(f[ix(i)]) * period > 1e-9 * std::max(size_[i], 1e-300)) return;
    }
    throw Failure{"equilibrium", "what is found is a point at rest: try `equilibrium`, or start farther from it"};
  }

  /// The smallest number of returns after which it closes.
  void shorten(Begin& begin, Lap& now, Orbit& orbit) {
    for (int k = 1; k < begin.returns; ++k) {
      if (begin.returns % k != 0) continue;
      Begin shorter = begin;
      shorter.returns = k;
      Lap less = lap(shorter, true);
      if (!less.whole || open_by(shorter, less) > closes) continue;
      std::vector<Leg> legs = legs_of(shorter, less);
      Orbit better = orbit;
      if (newton(legs, shorter, better)) {
        orbit = better;
        less = lap(shorter, true);
      }
      begin = shorter;
      now = std::move(less);
      return;
    }
  }

  /// On to where the orbit meets the section that was asked for.
  void to_section(Begin& begin, Lap& now) {
    section_ = wanted_section_;
    const std::vector<Begin> seen = returns_from(begin, 1, clock_ * begin.returns * 1.01);
    section_ = -1;
    if (seen.empty()) return;
    begin.x = seen[0].x;
    begin.t = seen[0].t;
    now = lap(begin, true);
    Orbit orbit;
    std::vector<Leg> legs = legs_of(begin, now);
    if (newton(legs, begin, orbit)) now = lap(begin, true);
  }

  // ---- the answer ---------------------------------------------------------------------------------------------------

  void tell(const Begin& begin, Lap& now, Orbit& orbit) {
    orbit.found = true;
    orbit.state = begin.x;
    orbit.t = begin.t;
    orbit.period = section_ < 0 ? clock_ * begin.returns : solved_period();
    orbit.returns = begin.returns;
    orbit.mode = now.run.start_mode;
    orbit.residual = std::max(0.0, std::min(orbit.residual, open_by(begin, now)));
    orbit.notes = now.notes;
    orbit.free = left_out_;
    orbit.shift = shift_;
    multipliers(begin, now, orbit);
    for (Eigen::Index i = 0; i < now.monodromy.rows(); ++i) {
      const Vec row = now.monodromy.row(i).transpose();
      orbit.monodromy.emplace_back(row.begin(), row.end());
    }
    orbit.symmetric = now.run.dense() && find_symmetry(*program_, *variation_,
                                                       {&now.run, direction_ * orbit.period, left_out_, shift_,
                                                        Eigen::Map<const Vec>(size_.data(), ix(size_.size()))});
    const int visible = model_.form.visible;
    double t = begin.t;
    size_t k = 0;
    for (const Transition& e : now.run.transitions) {
      const std::vector<Event> events = events_of(e, model_);
      const double stretch = k < now.stretch.size() ? now.stretch[k] : 1;
      ++k;
      if (events.empty() || e.guards.empty()) continue;
      std::string text(kind_name(events.back().kind));
      for (const std::string& on : events.back().on) text += " " + on;
      orbit.legs.push_back({visible_mode(e.before, visible), std::abs(e.t - t), text, stretch});
      t = e.t;
    }
    const bool by_event = section_ >= 0 && model_.sections[at(section_)].kind != Section::Kind::on;
    if (!by_event)
      orbit.legs.push_back({visible_mode(now.run.last.mode, visible), std::abs(now.run.end.t - t),
                            section_ >= 0 ? "section" : "clock", 1});
    std::erase_if(now.run.events, [](const Event& e) { return e.kind == EventKind::section; });
    orbit.trajectory = std::move(now.run);
  }

  /// The monodromy as the product of what its legs do, with the rates where each begins; as that of the run where it
  /// counts more than its legs (a section on a surface, chatter).
  std::vector<Mat> factors_of(const Begin& begin, Lap& now, std::vector<Vec>& flow) {
    const std::vector<Leg>& legs = solved_;
    Vec r;
    Mat J;
    Shot shot;
    std::vector<Mat> out;
    Mat product = Mat::Identity(now.monodromy.rows(), now.monodromy.cols());
    const Eigen::Index n = product.rows();
    const Closing closing{.free = left_out_, .sign = Vec::Ones(n), .shift = Vec::Zero(n)};
    if (shooting_->equations(legs, closing, begin.t, {}, section_, r, J, &shot)) {
      out = shooting_->factors(legs, shot);
      double t = begin.t;
      for (size_t i = 0; i < legs.size(); ++i) {
        product = out[i] * product;
        flow.push_back(variation_->rates(legs[i].arc, std::vector<double>(legs[i].x.begin(), legs[i].x.end()), t));
        t += legs[i].length;
      }
    }
    // A run along an unstable orbit is the less accurate of the two.
    constexpr double alike = 1e-4;
    if (!out.empty() && (product - now.monodromy).norm() <= alike * now.monodromy.norm()) {
      now.monodromy = product;
      return out;
    }
    const Arc arc = now.run.arcs.empty() ? now.run.last : now.run.arcs.front();
    flow = {variation_->rates(arc, begin.x, begin.t)};
    return {now.monodromy};
  }

  /// A run that repeats an unstable orbit leaves it again: its length is that of the legs.
  double solved_period() const {
    double sum = 0;
    for (const Leg& leg : solved_) sum += leg.length;
    return std::abs(sum);
  }

  void multipliers(const Begin& begin, Lap& now, Orbit& orbit) {
    std::vector<Eigen::Index> kept;
    for (size_t i = 0; i < left_out_.size(); ++i) {
      if (!left_out_[i]) kept.push_back(ix(i));
    }
    // States may have very different sizes: compare them on their own scales.
    Vec scale(ix(kept.size()));
    for (size_t i = 0; i < kept.size(); ++i) scale[ix(i)] = std::max(size_[ux(kept[i])], 1e-300);
    std::vector<Vec> flow;
    std::vector<Mat> factors = factors_of(begin, now, flow);
    for (Mat& M : factors) M = Mat(scale.cwiseInverse().asDiagonal() * Mat(M(kept, kept)) * scale.asDiagonal());
    if (!forced_) {
      for (Vec& f : flow) f = Vec(f(kept).cwiseQuotient(scale));
      orbit.trivial = {carried_along(factors, flow), 0};
      for (Vec& f : flow) f.normalize();
      // The flow is carried along: what is left lives on its complement.
      factors = across(factors, flow);
    }
    orbit.multipliers = spectrum_of_product(factors);
    if (options_.backward) {
      for (std::complex<double>& mu : orbit.multipliers)
        mu = std::abs(mu) < 1e-13 ? std::complex<double>(HUGE_VAL, 0) : 1.0 / mu;
    }
    sort_multipliers(orbit.multipliers);
    orbit.stable = std::all_of(orbit.multipliers.begin(), orbit.multipliers.end(),
                               [](const std::complex<double>& mu) { return std::abs(mu) < 1; });
  }

  OrbitOptions options_;
  double direction_;
  Model model_;
  std::optional<Program> program_;
  std::optional<Simulator> simulator_;
  std::optional<Variation> variation_;
  std::optional<Shooting> shooting_;
  bool forced_ = false;
  double clock_ = 0;
  int section_ = -1, wanted_section_ = -1;
  std::optional<Begin> plane_start_;
  std::vector<Leg> solved_;      ///< by Newton's method
  std::optional<Arc> last_arc_;  ///< at the end of the run that settled
  std::vector<bool> left_out_;
  std::vector<double> size_, shift_;
  double soonest_ = 0;  ///< no return comes within this time
};

}  // namespace

Orbit find_orbit(const Model& model, const OrbitOptions& options) { return OrbitSearch(model, options).find(); }

Orbit try_orbit(const Model& model, const OrbitOptions& options) {
  try {
    return find_orbit(model, options);
  } catch (const Error& error) {
    return {.found = false, .why = "start", .message = error.what()};
  }
}

}  // namespace saltus
