#include "analysis/orbit.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analysis/orbit_search.hpp"
#include "analysis/thresholds.hpp"
#include "base/index.hpp"
#include "model/period.hpp"

namespace saltus {
namespace {

constexpr double closes = 1e-7;      ///< relative error of a run that counts as closed
constexpr int most_signatures = 12;  ///< changes of the signature before giving up

}  // namespace

Orbit find_orbit(const Program& program, const OrbitOptions& options) { return OrbitSearch(program, options).find(); }

Orbit find_orbit(const Model& model, const OrbitOptions& options) { return find_orbit(Program(model), options); }

Orbit try_orbit(const Model& model, const OrbitOptions& options) { return try_orbit(Program(model), options); }

Orbit try_orbit(const Program& program, const OrbitOptions& options) {
  try {
    return find_orbit(program, options);
  } catch (const Error& error) {
    return {.found = false, .why = "start", .message = error.what()};
  }
}

OrbitSearch::OrbitSearch(const Program& program, const OrbitOptions& options)
    : options_(options), direction_(options.backward ? -1.0 : 1.0), program_(&program) {
  if (std::any_of(model().sections.begin(), model().sections.end(), [](const Section& s) { return s.stop; })) {
    Model endless = model();
    for (Section& s : endless.sections) s.stop = false;
    use_model(std::move(endless));
  }
  section_ = options.section;
  const bool by_clock = section_ >= 0 && model().sections[at(section_)].kind == Section::Kind::every;
  const std::optional<Period> period = period_in_time(model(), options.run.parameters);
  forced_ = (period.has_value() || !model().autonomous()) &&
            (options.driven || by_clock || time_counts(model(), options.run.parameters));
  if (period && forced_) clock_ = period->value;
  if (by_clock) {
    const double every = constant_value(model().sections[at(section_)].value, options.run.parameters);
    const double ratio = clock_ > 0 ? every / clock_ : 0;
    const bool whole = std::abs(ratio - std::round(ratio)) < 1e-9 && ratio > 0.5;
    if (forced_ && (clock_ == 0 || whole)) clock_ = every;
    section_ = -1;
  }
  leave_out();
}

Orbit OrbitSearch::find() {
  Orbit orbit{.autonomous = !forced_, .backward = options_.backward};
  try {
    if (forced_ && !(clock_ > 0))
      throw Failure{"clock", "time enters the equations without an evident period; give a section with 'every'"};
    if (!forced_ && section_ < 0) add_plane();
    make_engines();
    Begin begin = options_.guess ? take_guess() : off_leaps(settle());
    if (!forced_ && !options_.guess && !plane_start_ && leaps_over_section(begin)) {
      add_plane();
      make_engines();
      begin = off_leaps(settle());
    }
    solve(begin, orbit);
    simulator_->give_back();
    shooting_->give_back();
  } catch (const Failure& failure) {
    orbit.found = false;
    orbit.why = failure.why;
    orbit.message = failure.message;
    orbit.residual = failure.residual;
  }
  return orbit;
}

/// Another model from here on than that of the program that was given.
void OrbitSearch::use_model(Model model) {
  shooting_.reset();
  simulator_.reset();
  own_program_.emplace(std::move(model));
  program_ = &*own_program_;
}

void OrbitSearch::make_engines() {
  simulator_.emplace(*program_);
  shooting_.emplace(*program_, options_.run, forced_, direction_);
}

void OrbitSearch::solve(Begin begin, Orbit& orbit) {
  if (last_arc_) land(begin, *last_arc_);
  Lap now = lap(begin, false);
  require_whole(now);
  for (int attempt = 0;; ++attempt) {
    size_ = sizes_of(now);
    find_shift(begin, now);
    std::vector<Leg> legs = legs_of(begin, now);
    if (!newton(legs, begin, now, orbit)) fail_newton(legs.size(), orbit.residual);
    land(begin, legs.front().arc);
    now = lap_of_solved(begin);
    if (now.judged) break;
    if (now.whole && open_by(begin, now) < closes * std::max(1.0, 1e-3 * now.monodromy.norm()) &&
        same_signature(legs_of(begin, now), legs))
      break;
    require_whole(now);
    if (attempt >= most_signatures) fail_signature(legs_of(begin, now), legs, open_by(begin, now));
  }
  require_motion(begin, now);
  shorten(begin, now, orbit);
  if (wanted_section_ >= 0) to_section(begin, now);
  tell(begin, now, orbit);
}

/// The unit of each state: its size on the orbit. A state that is zero there but for the residue of the
/// search is measured by what it was on the way, or by the others.
std::vector<double> OrbitSearch::sizes_of(const Lap& lap) const {
  constexpr double nothing = beside_transient;
  std::vector<double> out = sizes_on(lap.run.pieces, model().states.size());
  const double largest = *std::max_element(out.begin(), out.end());
  for (size_t i = 0; i < out.size(); ++i) {
    const double before = on_the_way_.empty() ? 0.0 : on_the_way_[i];
    out[i] = std::max(out[i], nothing * std::max(before, std::abs(options_.run.initial[i])));
    if (out[i] == 0) out[i] = largest > 0 ? nothing * largest : 1.0;
  }
  return out;
}

void OrbitSearch::fail_newton(size_t legs, double residual) const {
  const std::string leg = fmt::format("leg {} of {}", shooting_->failed_leg() + 1, legs);
  throw Failure{"newton",
                std::isnan(residual)
                    ? fmt::format("{} cannot be followed in its mode; start nearer to the orbit", leg)
                    : fmt::format("Newton's method does not converge (residual {:.2g}, {}); start nearer to the orbit",
                                  residual, leg),
                residual};
}

void OrbitSearch::fail_signature(const std::vector<Leg>& found, const std::vector<Leg>& frozen, double open) const {
  size_t i = 0;
  while (i < std::min(found.size(), frozen.size()) && found[i].arc.mode == frozen[i].arc.mode) ++i;
  throw Failure{"signature",
                fmt::format("Newton left the admissible signature at leg {}: the orbit it finds is not one of the "
                            "model; start nearer to it",
                            i + 1),
                open};
}

void OrbitSearch::require_whole(const Lap& lap) const {
  if (lap.whole) return;
  throw Failure{"section", lap.run.end.why == Why::time || lap.run.end.why == Why::cancelled
                               ? "the run does not return to the section"
                               : "the run ends before it closes: " + lap.run.end.message};
}

/// A point at which an autonomous system rests closes after any time.
void OrbitSearch::require_motion(const Begin& begin, const Lap& now) {
  if (forced_) return;
  const Arc arc = now.run.arcs.empty() ? now.run.last : now.run.arcs.front();
  const Vec f = variation().rates(arc, begin.x, begin.t);
  const double period = std::abs(now.run.end.t - begin.t);
  for (size_t i = 0; i < begin.x.size(); ++i) {
    if (!left_out_[i] && std::abs(f[ix(i)]) * period > 1e-9 * std::max(size_[i], 1e-300)) return;
  }
  throw Failure{"equilibrium", "what is found is a point at rest: try `equilibrium`, or start farther from it"};
}

/// The smallest number of returns after which it closes.
void OrbitSearch::shorten(Begin& begin, Lap& now, Orbit& orbit) {
  for (int k = 1; k < begin.returns; ++k) {
    if (begin.returns % k != 0) continue;
    Begin shorter = begin;
    shorter.returns = k;
    Lap less = lap(shorter, true);
    if (!less.whole || open_by(shorter, less) > closes) continue;
    std::vector<Leg> legs = legs_of(shorter, less);
    Orbit better = orbit;
    if (newton(legs, shorter, less, better)) {
      orbit = better;
      less = lap_of_solved(shorter);
    }
    begin = shorter;
    now = std::move(less);
    return;
  }
}

/// On to where the orbit meets the section that was asked for.
void OrbitSearch::to_section(Begin& begin, Lap& now) {
  section_ = wanted_section_;
  const std::vector<Begin> seen = returns_from(begin, 1, clock_ * begin.returns * 1.01);
  section_ = -1;
  if (seen.empty()) return;
  begin.x = seen[0].x;
  begin.t = seen[0].t;
  now = lap(begin, true);
  Orbit orbit;
  std::vector<Leg> legs = legs_of(begin, now);
  if (newton(legs, begin, now, orbit)) now = lap_of_solved(begin);
}

void OrbitSearch::find_shift(const Begin& begin, const Lap& lap) {
  shift_.assign(begin.x.size(), 0.0);
  for (const auto& [state, modulus] : options_.modulo)
    shift_[at(state)] = modulus * std::round((lap.run.end.state[at(state)] - begin.x[at(state)]) / modulus);
}

double OrbitSearch::open_by(const Begin& begin, const Lap& lap) const {
  double largest = 0;
  for (size_t i = 0; i < begin.x.size(); ++i) {
    if (left_out_[i]) continue;
    const double size = std::max(size_[i], 1e-300);
    largest = std::max(largest, std::abs(begin.x[i] + shift_[i] - lap.run.end.state[i]) / size);
  }
  return largest;
}

/// A state that nothing depends on, not even itself, need not come back.
void OrbitSearch::leave_out() {
  const size_t n = model().states.size();
  left_out_.assign(n, true);
  std::vector<Expr> all = model().form.f;
  for (const Switch& s : model().form.switches) all.push_back(s.surface);
  for (const Gap& g : model().form.gaps) all.push_back(g.gap);
  for (const Counter& c : model().form.counters) all.push_back(c.phase);
  for (const LoweredJump& j : model().form.jumps) {
    all.push_back(j.on);
    for (const Assignment& a : j.set) all.push_back(a.value);
    for (const Assignment& a : j.set) left_out_[at(a.state)] = false;
    if (j.when) all.push_back(*j.when);
  }
  if (section_ >= 0) all.push_back(model().form.sections[at(section_)]);
  for (const Expr& s : symbols_in(all)) {
    if (s.is_symbol(SymbolKind::state)) left_out_[at(s.symbol().index)] = false;
  }
  if (std::all_of(left_out_.begin(), left_out_.end(), [](bool b) { return b; })) left_out_.assign(n, false);
}

RunOptions OrbitSearch::base(double from, double length) const {
  RunOptions o = options_.run;
  o.from = from;
  o.until = from + direction_ * length;
  o.keep_events = false;
  o.keep_pieces = false;
  o.section = -1;
  o.section_count = 0;
  return o;
}

}  // namespace saltus
