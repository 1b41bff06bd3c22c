// Where an orbit begins: at a guess, or where the returns of a run repeat.
#include <algorithm>
#include <cmath>
#include <deque>

#include <fmt/format.h>

#include "analysis/lookout.hpp"
#include "analysis/orbit_search.hpp"
#include "analysis/thresholds.hpp"
#include "base/index.hpp"

namespace saltus {
namespace {

constexpr long most_reports = 4000;  ///< of progress without a return

void note_size(const Piece& piece, std::vector<double>& size) {
  const size_t stride = piece.coefficients.size() / size.size();
  for (size_t i = 0; i < size.size(); ++i) size[i] = std::max(size[i], std::abs(piece.coefficients[i * stride]));
}

/// Where a run passes late and away from what sets its state: a plane through such a place is passed once in a while
/// also where the run ends with a jump, on whose far side no plane through it is met.
class QuietPlace {
 public:
  /// Away from everything that happens, or from resets alone.
  explicit QuietPlace(bool from_all) : from_all_(from_all) {}

  void note(const Piece& piece) {
    pieces_.push_back(piece);
    if (pieces_.size() > 2000) pieces_.pop_front();
  }
  void note(const Transition& e) {
    if (!from_all_ && e.jumps.empty() && e.hits.empty()) return;
    resets_.push_back(e.t);
    if (resets_.size() > 32) resets_.pop_front();
  }
  /// The middle of the longest of the last stretches between two resets; where there is none nothing is moved.
  void move(std::vector<double>& x, double& t) const {
    double longest = 0, middle = 0;
    for (size_t k = 0; k + 1 < resets_.size(); ++k) {
      const double length = std::abs(resets_[k + 1] - resets_[k]);
      if (length > longest) longest = length, middle = 0.5 * (resets_[k] + resets_[k + 1]);
    }
    for (const Piece& piece : pieces_) {
      const double tau = middle - piece.start;
      if (!(longest > 0) || tau * piece.length < 0 || std::abs(tau) > std::abs(piece.length)) continue;
      Trajectory::evaluate(piece, static_cast<int>(x.size()), tau, x.data());
      t = middle;
      return;
    }
  }

 private:
  bool from_all_;
  std::deque<Piece> pieces_;
  std::deque<double> resets_;
};

}  // namespace

/// A plane normal to the flow, through the guess or late on a first run.
void OrbitSearch::add_plane() {
  const Program& program = *program_;
  std::vector<double> x = options_.run.initial;
  double t = options_.run.from;
  if (!options_.guess) {
    RunOptions o = base(t, std::abs(options_.run.until - options_.run.from));
    QuietPlace place(false);
    on_the_way_.assign(x.size(), 0.0);
    o.on_piece = [&](const Piece& piece, const Arc&) {
      note_size(piece, on_the_way_);
      place.note(piece);
    };
    o.on_transition = [&](const Transition& e) { place.note(e); };
    const Trajectory run = simulate(program, o);
    if (run.end.why != Why::time) throw Failure{"run", "the run ends early: " + run.end.message};
    x = run.end.state;
    t = run.end.t;
    place.move(x, t);
  }
  RunOptions still = base(t, 1);
  still.initial = x;
  still.until = t;
  const Arc arc = simulate(program, still).last;
  Variation variation(program, base(t, 1));
  const Vec f = variation.rates(arc, x, t);
  if (!(f.norm() > 1e-9 * (1 + column_at(x.data(), f.size()).norm())))
    throw Failure{"equilibrium", "the run comes to rest: there is no orbit here; try `equilibrium`"};
  Expr plane = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (left_out_[i]) continue;
    const Expr moved = state_symbol(model(), static_cast<int>(i)) - Expr(x[i]);
    plane = plane + Expr(f[ix(i)] / f.norm()) * around(static_cast<int>(i), moved);
  }
  Model with_plane = model();
  with_plane.sections.push_back(
      {.name = "plane", .kind = Section::Kind::on, .value = plane, .direction = Direction::rising});
  with_plane.form.sections.push_back(plane);
  section_ = static_cast<int>(with_plane.sections.size()) - 1;
  plane_start_ = Begin{x, t, 1};
  use_model(std::move(with_plane));
}

/// How far a state is from a place; a state that grows by multiples of a number comes back to it after each.
Expr OrbitSearch::around(int state, const Expr& moved) const {
  for (const auto& [turning, modulus] : options_.modulo) {
    if (turning == state) return Expr(modulus / (2 * M_PI)) * make(Op::sin, Expr(2 * M_PI / modulus) * moved);
  }
  return moved;
}

OrbitSearch::Begin OrbitSearch::take_guess() {
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

/// True if a point lies near the section and passes it in the right direction; always true for sections that are
/// events.
bool OrbitSearch::is_on_section(const Begin& begin) {
  constexpr double near = 1e-2;  // of the size of the state
  const Section& section = model().sections[at(section_)];
  if (section.kind != Section::Kind::on) return true;
  const Arc arc = arc_at(begin);
  const Variation::GuardSlope slope = variation().section(section_, arc, begin.x, begin.t);
  const double rate = slope.by_state.dot(variation().rates(arc, begin.x, begin.t)) + slope.by_time;
  const bool rises = direction_ * rate > 0;
  if (section.direction != Direction::any && rises != (section.direction == Direction::rising)) return false;
  const ConstView x = column_at(begin.x.data(), ix(begin.x.size()));
  return std::abs(slope.value) <= near * slope.by_state.norm() * x.norm();
}

/// True if a return to the section is no zero of its function: a jump, an impact or a wrap has carried the run over it.
/// Such a section ends no leg.
bool OrbitSearch::leaps_over_section(const Begin& begin) {
  constexpr double far = 1e-6;  // of the size of the state
  if (section_ < 0 || model().sections[at(section_)].kind != Section::Kind::on) return false;
  const Variation::GuardSlope slope = variation().section(section_, arc_at(begin), begin.x, begin.t);
  const ConstView x = column_at(begin.x.data(), ix(begin.x.size()));
  return std::abs(slope.value) > far * slope.by_state.norm() * x.norm();
}

/// The first return of one period that is a zero of the section's function; the given one if there is none.
OrbitSearch::Begin OrbitSearch::off_leaps(const Begin& begin) {
  if (forced_ || begin.returns < 2 || !leaps_over_section(begin)) return begin;
  for (const Begin& later : returns_from(begin, begin.returns - 1, 0)) {
    if (!leaps_over_section(later)) return {later.x, later.t, begin.returns};
  }
  return begin;
}

/// The mode, clocks and constants of the arc where a run begins.
Arc OrbitSearch::arc_at(const Begin& begin) {
  RunOptions still = base(begin.t, 0);
  still.initial = begin.x;
  return simulator_->run(still).last;
}

/// The returns to the section from here.
std::vector<OrbitSearch::Begin> OrbitSearch::returns_from(const Begin& begin, int count, double longest) {
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
OrbitSearch::Begin OrbitSearch::settle() {
  const Begin begin = plane_start_.value_or(Begin{options_.run.initial, options_.run.from, 1});
  const Returns seen = section_ < 0 ? returns_by_clock(begin) : returns_to_section(begin);
  const std::vector<double>& times = seen.times;
  const int returns = period_of(seen);
  on_the_way_.resize(seen.size.size(), 0.0);
  for (size_t i = 0; i < seen.size.size(); ++i) on_the_way_[i] = std::max(on_the_way_[i], seen.size[i]);
  Begin out{seen.last, times.empty() ? begin.t : times.back(), returns};
  if (times.size() > 1) soonest_ = 1e-4 * std::abs(times.back() - times[times.size() - 2]);
  // The orbit is the same in every period: begin in the first, where clocks have counted less.
  if (forced_ && section_ < 0) {
    out.t = begin.t;
    if (last_arc_) count_anew(*last_arc_, begin);
  }
  if (forced_ && section_ >= 0) {
    const size_t back = at(out.returns);
    const double length = times.size() > back ? std::abs(times.back() - times[times.size() - 1 - back]) : clock_;
    out.returns = std::max(1, static_cast<int>(std::round(length / clock_)));
    if (seen.quiet) out.x = seen.quiet->x, out.t = seen.quiet->t;
    wanted_section_ = section_;
    section_ = -1;
  }
  return out;
}

/// One run after the other, on a clock that does not drift.
OrbitSearch::Returns OrbitSearch::returns_by_clock(const Begin& begin) {
  Returns out{.size = std::vector<double>(model().states.size(), 0.0), .last = begin.x};
  long reports = 0;
  RunOptions o = base(begin.t, clock_);
  o.on_piece = [&](const Piece& piece, const Arc&) { note_size(piece, out.size); };
  o.progress = [&](double) {
    return ++reports <= most_reports && (!options_.run.progress || options_.run.progress(0));
  };
  for (long seen = 0; !out.settled && seen < options_.most_returns; ++seen) {
    o.from = begin.t + direction_ * clock_ * static_cast<double>(seen);
    o.until = begin.t + direction_ * clock_ * static_cast<double>(seen + 1);
    o.initial = out.last;
    reports = 0;
    const Trajectory run = simulator_->run(o);
    if (reports > most_reports) throw Failure{"run", "one period takes more steps than a run is given"};
    if (run.end.why != Why::time) throw Failure{"run", "the run ends early: " + run.end.message};
    last_arc_ = run.last;
    add_return(out, o.until, run.end.state);
  }
  return out;
}

/// One run, watched for coming to rest and for never returning.
OrbitSearch::Returns OrbitSearch::returns_to_section(const Begin& begin) {
  Returns out{.size = std::vector<double>(model().states.size(), 0.0), .last = begin.x};
  // A time that is practically infinite, but not so long that the flight of a ball is lost beside it in rounding.
  const double forever = 1e7 * std::max(std::abs(options_.run.until - options_.run.from), 1e-6);
  RunOptions o = base(begin.t, forced_ ? clock_ * (static_cast<double>(options_.most_returns) + 0.5) : forever);
  o.initial = begin.x;
  Lookout lookout(model(), o, section_);
  QuietPlace place(true);  // with a clock an orbit may begin anywhere: not on what ends its legs
  long seen = 0, reports = 0;
  bool gave_up = false;
  o.on_piece = [&](const Piece& piece, const Arc&) {
    if (lookout.watches()) lookout.along(piece);
    note_size(piece, out.size);
    if (forced_) place.note(piece);
  };
  if (forced_) o.on_transition = [&](const Transition& e) { place.note(e); };
  o.on_section = [&](const Passing& p) {
    if (p.section != section_) return true;
    reports = 0;
    lookout.met();
    return add_return(out, p.t, p.state) && ++seen < options_.most_returns;
  };
  o.progress = [&](double) {
    gave_up = ++reports > most_reports || !lookout.verdict().empty();
    return !gave_up && (!options_.run.progress || options_.run.progress(0));
  };
  const Trajectory run = simulator_->run(o);
  if (plane_start_ && lookout.verdict().starts_with("comes to rest"))
    throw Failure{"equilibrium", "the run comes to rest: there is no orbit here; try `equilibrium`"};
  if (out.times.size() < 2 && run.end.why != Why::stop) {
    const std::string& name = model().sections[at(section_)].name;
    const std::string lost = plane_start_ ? "the run does not come back to where it has been: if it comes to rest, try "
                                            "`equilibrium`; if it is on its way to an orbit, a larger `until`"
                                          : fmt::format("the run does not return to the section '{}'", name);
    throw Failure{"section", run.end.message.empty() || gave_up ? lost : "the run ends early: " + run.end.message};
  }
  if (!out.settled && run.end.why != Why::stop && !gave_up && run.end.why != Why::time)
    throw Failure{"run", "the run ends early: " + run.end.message};
  if (forced_) {
    out.quiet = Begin{out.last, out.times.back(), 1};
    place.move(out.quiet->x, out.quiet->t);
  }
  return out;
}

/// True if the search needs more returns. Repetition is judged on the scale of the first returns; where time matters
/// and no clock ticks on the section, so must the phase; a state that may grow by multiples of a number is an angle.
bool OrbitSearch::add_return(Returns& returns, double t, std::span<const double> place) const {
  constexpr size_t enough = 8;
  returns.last.assign(place.begin(), place.end());
  returns.times.push_back(t);
  std::vector<double> x(place.begin(), place.end());
  const auto add_angle = [&x](double angle) { x.insert(x.end(), {std::cos(angle), std::sin(angle)}); };
  if (forced_ && section_ >= 0) add_angle(2 * M_PI * std::remainder(t, clock_) / clock_);
  for (const auto& [state, modulus] : options_.modulo)
    add_angle(2 * M_PI * std::remainder(place[at(state)], modulus) / modulus);
  if (returns.settling) {
    returns.settled = returns.settling->add(x);
    return !returns.settled;
  }
  returns.first.push_back(x);
  if (returns.first.size() < enough) return true;
  const auto before = [&](size_t i) { return on_the_way_.empty() ? 0.0 : on_the_way_[i]; };
  std::vector<double> tolerance(x.size(), 1e-6);
  for (size_t i = 0; i < place.size(); ++i)
    tolerance[i] = left_out_[i] ? HUGE_VAL : 1e-6 * std::max({returns.size[i], beside_transient * before(i), 1e-12});
  for (const auto& [state, modulus] : options_.modulo) tolerance[at(state)] = HUGE_VAL;
  returns.settling.emplace(std::move(tolerance), options_.returns > 0 ? options_.returns : 64);
  for (const std::vector<double>& p : returns.first) returns.settled = returns.settling->add(p);
  return !returns.settled;
}

/// After how many returns they repeat, or nearly do.
int OrbitSearch::period_of(const Returns& returns) const {
  if (returns.settled) {
    const int period = returns.settling->cycle().period;
    return options_.returns > 0 && options_.returns % period == 0 ? options_.returns : period;
  }
  if (options_.returns > 0) return options_.returns;
  const int near = returns.settling ? nearest_recurrence(*returns.settling) : 0;
  if (near > 0) return near;
  throw Failure{"unsettled", fmt::format("the run does not settle on an orbit within {} returns; start nearer to "
                                         "it, or give a guess",
                                         returns.times.size())};
}

int OrbitSearch::nearest_recurrence(const Settling& settling) const {
  const Attractor sample = settling.sample(200);
  const size_t n = settling.tolerance().size(), count = sample.count(n);
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

/// Wraps of time counted as at the beginning of the first period.
void OrbitSearch::count_anew(Arc& arc, const Begin& begin) {
  const Arc first = arc_at(begin);
  for (const Counter& c : model().form.counters) {
    const std::vector<Expr> symbols = symbols_in(std::span(&c.phase, 1));
    const bool timed =
        std::none_of(symbols.begin(), symbols.end(), [](const Expr& e) { return e.is_symbol(SymbolKind::state); });
    if (timed) set_counter(c, first.counters[static_cast<size_t>(c.at)], arc.counters);
  }
}

}  // namespace saltus
