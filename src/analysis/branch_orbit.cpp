#include "analysis/orbit_curve.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/thresholds.hpp"
#include "base/index.hpp"
#include "model/period.hpp"

namespace saltus {
namespace {

/// Reported quantities may turn by this share of how far a state moves on the orbits before a point is put between.
constexpr double bent = 1e-4;

}  // namespace

/// True if the model depends on time somewhere in the range.
bool OrbitCurve::driven_somewhere() const {
  const auto driven = [&](const std::vector<GivenParameter>& given) {
    return time_counts(model_, parameter_values(model_, given));
  };
  constexpr std::array shares{0.0, 1.0, 0.3819660112501051};  // a drive may vanish at both ends
  for (const double share : shares) {
    const GivenParameter first{options_.parameter, std::lerp(options_.low, options_.high, share)};
    if (driven({first})) return true;
    for (const double other : shares) {
      if (options_.second < 0) break;
      if (driven({first, {options_.second, std::lerp(options_.second_low, options_.second_high, other)}})) return true;
    }
  }
  return false;
}

Branch OrbitCurve::follow() {
  start_.driven = driven_somewhere();
  const Orbit orbit = find_orbit(model_, start_);
  if (!orbit.found) {
    book_.not_found(orbit.why, orbit.message);
    return book_.branch;
  }
  if (std::optional<CurvePoint> first = begin(orbit)) {
    if (options_.seek)
      begin_at_special(*first);
    else
      both_ways(*first);
  }
  return book_.branch;
}

Branch OrbitCurve::follow_cycles(const Birth& birth) {
  const size_t n = birth.x.size();
  Orbit orbit{.found = true, .autonomous = true, .period = birth.period};
  orbit.free.assign(n, false);
  orbit.shift.assign(n, 0.0);
  double largest = 0;
  for (const double v : birth.x) largest = std::max(largest, std::abs(v));
  for (const double share : {1e-3, 1e-2, 1e-4}) {
    book_.branch = {};
    RunOptions o = start_.run;
    o.initial = birth.x;
    const double amplitude = share * (largest > 0 ? largest : 1.0);
    for (size_t i = 0; i < n; ++i) o.initial[i] += amplitude * birth.direction[i];
    o.until = o.from + birth.period;
    o.keep_pieces = o.keep_transitions = true;
    orbit.trajectory = simulate(problem_.program(), o);
    orbit.state = o.initial;
    if (orbit.trajectory.end.why != Why::time) continue;
    const std::optional<Vec> z = prepare(orbit);
    if (!z) continue;
    // The radius at which the orbit starts around the equilibrium is kept; the parameter is free.
    CurvePoint from{.z = *z, .tangent = Vec::Zero(z->size())};
    const Vec size = problem_.shooting().size();
    for (Index i = 0; i < size.size(); ++i) from.tangent[i] = ((*z)[i] - birth.x[static_cast<size_t>(i)]) / size[i];
    from.tangent.normalize();
    if (std::optional<CurvePoint> first = kept_apart(from)) {
      book_.branch.found = true;
      one_way(*first);
      return book_.branch;
    }
  }
  book_.not_found("newton", "no cycle is found near the equilibrium");
  return book_.branch;
}

CurveOptions OrbitCurve::curve_options() const {
  CurveOptions o{.bounds = {{options_.low, options_.high}},
                 .first_step = std::min(first_step_, options_.largest_step),
                 .largest_step = options_.largest_step,
                 .most_points = options_.most_points};
  if (looking_ > 0) o.bounds = {};
  if (!kept_.empty()) o.bounds.push_back({options_.second_low, options_.second_high});
  return o;
}

std::optional<Vec> OrbitCurve::prepare(const Orbit& orbit) {
  book_.branch.autonomous = orbit.autonomous;
  problem_.set_ranges({options_.high - options_.low});
  const std::optional<Vec> z = problem_.take(orbit);
  followed_ = functions();
  curve_.emplace(followed_, curve_options());
  longest_ = options_.longest_time > 0 ? options_.longest_time : 100 * orbit.period;
  first_size_ = problem_.shooting().size();
  largest_extent_ = 0;
  return z;
}

std::optional<CurvePoint> OrbitCurve::begin(const Orbit& orbit) {
  const std::optional<Vec> z = prepare(orbit);
  std::optional<CurvePoint> first;
  if (z) first = curve_->start(*z);
  if (first) view(*first);
  if (!fine_) first.reset();
  book_.branch.found = first.has_value();
  const auto one = [](const std::complex<double>& mu) { return std::abs(mu - 1.0) < 1e-6; };
  if (!first && std::any_of(orbit.multipliers.begin(), orbit.multipliers.end(), one))
    book_.not_found("newton",
                    "the orbit is one of a family at this value of the parameter (a multiplier is 1): there is "
                    "no single one to follow");
  else if (!first)
    book_.not_found("newton", "Newton's method does not converge at the start");
  return first;
}

void OrbitCurve::both_ways(CurvePoint first) {
  const BranchPoint start = told(first);
  const Vec before = problem_.scale();
  problem_.resize(start.lowest, start.highest, start.period);
  // Directions are in units of the sizes.
  first.tangent = first.tangent.cwiseProduct(before).cwiseQuotient(problem_.scale()).normalized();
  const OrbitProblem::Frozen frozen = problem_.frozen_signature();
  const auto walker = [&](const CurvePoint& from, int direction) {
    return [this, &frozen, from, direction, kept = kept_, beside = beside_] {
      problem_.restore(frozen);
      kept_ = kept;
      beside_ = beside;
      curve_->refresh_scale();
      return walk(from, direction);
    };
  };
  book_.both_ways(start, walker(first.reversed(), -1), walker(first, 1));
}

void OrbitCurve::one_way(const CurvePoint& first) {
  book_.one_way(told(first), [&] { return walk(first, 1); });
}

std::optional<CurvePoint> OrbitCurve::kept_apart(const CurvePoint& from) {
  curve_->refresh_scale();
  std::optional<CurvePoint> p = curve_->correct(from, 0, from.z);
  if (p && p->tangent.dot(from.tangent) < 0) p = p->reversed();
  return p;
}

Followed OrbitCurve::functions() {
  return {.equations = [this](const Vec& z, Vec& r, Mat& J) { return problem_.equations(z, r, J); },
          .large = [this] { return problem_.large(); },
          .large_equations = [this](const Vec& z, Vec& r,
                                    LargeSlopes& slopes) { return problem_.large_equations(z, r, slopes); },
          .residual = [this](const Vec& z, Vec& r) { return problem_.residual(z, r); },
          .scale = [this] { return problem_.scale(); },
          .tests = [this](const CurvePoint& p) { return tests(p); },
          .near = [this](const CurvePoint& p) { return problem_.straightness(p.z) > 0.5 && !falls_back(p); },
          .point = [this](const CurvePoint& p) { return point(p); },
          .special = [this](const Located& l) { return special(l); },
          .pass = [this](const Located& l) { return pass(l); },
          .anew = [this](const Located& l) { return past_the_cut(l); },
          .lost = [this](const CurvePoint& p) { return nearly_vanished(p); },
          .renew =
              [this](const CurvePoint& p) {
                // Near a fold the parameter does not say where on the curve it is.
                const bool at_fold = std::abs(p.last_slope()) < 1e-6;
                if (!at_fold && problem_.needs_cut(p.z)) {
                  const OrbitProblem::Frozen frozen = problem_.frozen_signature();
                  const std::optional<Vec> z = problem_.cut_anew(p.z);
                  last_.reset();
                  slope_sign_ = 0;
                  if (z && curve_->start(*z)) return z;
                  problem_.restore(frozen);
                  curve_->refresh_scale();
                }
                if (!at_fold && problem_.needs_nodes(view(p))) {
                  problem_.put(p.z);
                  last_.reset();
                  slope_sign_ = 0;
                  return problem_.take_legs(problem_.legs());
                }
                return problem_.renew_phase(p.z) ? std::optional<Vec>(p.z) : std::nullopt;
              }};
}

/// Impacts that accumulate end in rounding before they vanish: gaps between them are as their times to the fourth
/// power.
std::optional<Located> OrbitCurve::nearly_vanished(const CurvePoint& p) {
  constexpr double small = 1e-3;  // of the period
  const OrbitView& v = view(p);
  if (!fine_ || !kept_.empty()) return std::nullopt;
  for (size_t last = 1; last + 1 < v.legs.size(); ++last) {
    if (v.legs[last].event.resting.empty()) continue;
    double length = std::abs(v.legs[last].length);
    for (size_t first = last; first > 1 && precedes(v.legs[first - 1], v.legs[last]); --first)
      length += std::abs(v.legs[first - 1].length);
    if (!(length < small * v.period)) continue;
    const Test test{fmt::format("time {}", last), v.legs[last].length * problem_.direction(), true};
    return Located{.test = test, .point = p, .before = p, .behind = p};
  }
  return std::nullopt;
}

bool OrbitCurve::falls_back(const CurvePoint& p) {
  constexpr double same = 1e-9;
  const OrbitView& v = view(p);
  if (!fine_ || !kept_.empty()) return false;
  return (!repeats_[0] && problem_.repeats(v, 2, same)) || (!repeats_[1] && problem_.repeats(v, 3, same));
}

BranchEnd OrbitCurve::walk(const CurvePoint& from, int direction) {
  stop_.reset();
  limit_.reset();
  largest_extent_ = 0;
  growing_ = 0;
  last_period_ = 0;
  last_value_ = HUGE_VAL;
  last_lowest_.clear();
  last_highest_.clear();
  singular_ = {};
  seen_.resize(0);
  slope_sign_ = 0;
  walk_begin_ = book_.branch.points.size();
  walk_specials_ = book_.branch.special.size();
  passed_.clear();
  extent_ = Vec::Zero(problem_.program().states());
  begun_ = told(from);
  slowest_ = {};
  repeats_ = {problem_.repeats(view(from), 2), problem_.repeats(view(from), 3)};
  last_ = Last{from, begun_, Vec(), book_.branch.special.size()};
  const CurveEnd end = curve_->walk(from);
  // Where steps are lost in rounding before the orbit has quite shrunk.
  if (!stop_ && end.why == "failed" && book_.branch.autonomous && kept_.empty() && !book_.branch.points.empty() &&
      extent_of(book_.branch.points.back()) < 1e-2 * largest_extent_) {
    stop_ = {.why = "closed", .detail = "the orbit shrinks onto an equilibrium"};
    add_equilibrium(BranchPoint(book_.branch.points.back()));
  }
  if (!stop_ && end.why == "failed" && book_.branch.autonomous && kept_.empty()) {
    const bool slow = slowest_.speed < lingering && last_period_ > begun_.period;
    if (const std::optional<Equilibrium> saddle = slow ? saddle_beside() : std::nullopt)
      stop_ = {.why = "homoclinic", .detail = told_limit(*saddle)}, limit_ = limit_beside(*saddle);
    else
      explain_loss();
  }
  const double value = kept_.empty() || book_.branch.points.empty() ? end.value : book_.branch.points.back().values[0];
  if (stop_) return {direction, stop_->why, stop_->detail, limit_.value_or(value)};
  return {direction, end.why, end.detail, value};
}

OrbitCurve::Slowest OrbitCurve::slowest_on(const OrbitView& v) {
  const Vec& size = problem_.shooting().size();
  const size_t n = model_.states.size();
  Slowest out{.growth = v.multipliers.empty() ? 0 : std::abs(v.multipliers[0])};
  for (const LegTrace& trace : v.traces) {
    for (const LegTrace::Stretch& stretch : trace.stretches) {
      const std::vector<double>& c = stretch.piece.coefficients;
      const size_t stride = c.size() / n;
      Vec f = Vec::Zero(size.size());
      for (size_t i = 0; i < n && stride > 1; ++i) f[ix(i)] = c[i * stride + 1];
      const double speed = f.cwiseQuotient(size).norm() * v.period;
      if (!(speed < out.speed)) continue;
      out.speed = speed;
      out.state.clear();
      for (size_t i = 0; i < n; ++i) out.state.push_back(c[i * stride]);
    }
  }
  return out;
}

std::optional<Equilibrium> OrbitCurve::saddle_beside() {
  if (slowest_.state.empty() || book_.branch.points.empty()) return std::nullopt;
  const BranchPoint& last = book_.branch.points.back();
  const auto rest_at = [&](double value) -> std::optional<Equilibrium> {
    RunOptions run = start_.run;
    run.parameters = parameter_values(model_, std::vector<GivenParameter>{{options_.parameter, value}});
    run.initial = slowest_.state;
    run.until = run.from;
    const Equilibrium rest = find_equilibrium(problem_.program(), {run});
    if (rest.kind != Equilibrium::Kind::equilibrium && rest.kind != Equilibrium::Kind::pseudo) return std::nullopt;
    for (size_t i = 0; i < rest.state.size(); ++i) {
      double off = rest.state[i] - slowest_.state[i];
      for (const auto& [state, modulus] : start_.modulo) {
        if (state == static_cast<int>(i)) off = std::remainder(off, modulus);
      }
      if (std::abs(off) > beside_saddle * (last.highest[i] - last.lowest[i])) return std::nullopt;
    }
    return rest;
  };
  const double value = last.values[0], reach = beside_saddle_node * (options_.high - options_.low);
  if (const std::optional<Equilibrium> rest = rest_at(value)) {
    const auto& e = rest->eigenvalues;
    const bool leaves = !e.empty() && e.front().real() > 0, comes = !e.empty() && e.back().real() < 0;
    const bool flat = std::any_of(e.begin(), e.end(), [&](const std::complex<double>& z) {
      return std::abs(z) < flat_rate * std::max(std::abs(e.front()), std::abs(e.back()));
    });
    return (leaves && comes) || flat ? rest : std::nullopt;
  }
  // Where there is none yet, but a little farther on, two are born: a saddle and a node.
  const std::optional<Equilibrium> above = rest_at(value + reach);
  return above ? above : rest_at(value - reach);
}

std::optional<double> OrbitCurve::limit_beside(const Equilibrium& saddle) const {
  std::vector<const BranchPoint*> last;
  for (auto p = book_.branch.points.rbegin(); p != book_.branch.points.rend() && last.size() < 2; ++p) {
    if (p->label.empty()) last.push_back(&*p);
  }
  double leaves = HUGE_VAL, comes = HUGE_VAL;
  for (const std::complex<double>& e : saddle.eigenvalues) {
    if (e.real() > 0) leaves = std::min(leaves, e.real());
    if (e.real() < 0) comes = std::min(comes, -e.real());
  }
  const double rate = std::min(leaves, comes);
  if (last.size() < 2 || !std::isfinite(rate) || !(last[0]->period > last[1]->period)) return std::nullopt;
  const double part = problem_.symmetry() ? 0.5 : 1.0;  // of a period between two visits to the saddle
  const double nearer = std::expm1(rate * part * (last[0]->period - last[1]->period));
  return last[0]->values[0] + (last[0]->values[0] - last[1]->values[0]) / nearer;
}

std::string OrbitCurve::told_limit(const Equilibrium& saddle) const {
  const std::string grows = "the period grows without bound";
  const std::optional<double> limit = limit_beside(saddle);
  if (!limit) return grows;
  return fmt::format("{} towards {} = {:.8g}", grows, model_.parameters[at(options_.parameter)].name, *limit);
}

/// An orbit that has become so unstable that rounding grows to its own size, because it lingers at an equilibrium: it
/// is lost before its period has no bound.
void OrbitCurve::explain_loss() {
  constexpr double slow = 1e-2, lost = 1e16;  // of the mean speed; one over rounding
  if (!(slowest_.growth > lost && slowest_.speed < slow)) return;
  std::vector<std::string> state;
  for (size_t i = 0; i < model_.states.size(); ++i)
    state.push_back(fmt::format("{} = {:.4g}", model_.states[i].name, slowest_.state[i]));
  stop_ = {
      .why = "failed",
      .detail = fmt::format("the orbit lingers at an equilibrium ({}), and its period grows: over one period rounding "
                            "grows by {:.1g}, and the orbit is lost",
                            fmt::join(state, ", "), slowest_.growth)};
}

const OrbitView& OrbitCurve::view(const CurvePoint& p) {
  if (seen_.size() != p.z.size() || seen_ != p.z || seen_legs_ != problem_.legs().size()) {
    view_ = {};
    fine_ = problem_.view(p.z, view_, true);
    seen_ = p.z;
    seen_legs_ = problem_.legs().size();
  }
  return view_;
}

std::vector<Test> OrbitCurve::tests(const CurvePoint& p) {
  const OrbitView& v = view(p);
  std::vector<Test> out{{"fold", fine_ ? slope(p) : p.last_slope(), false, true},
                        {"branch", p.orientation, false, true}};
  if (!fine_) return out;
  out.push_back({problem_.symmetry() ? "symmetry" : "flip", flip_test(v.roots)});
  out.push_back({"torus", torus_test(v.roots)});
  for (Test& t : signature_tests(v)) out.push_back(std::move(t));
  return out;
}

std::vector<Test> OrbitCurve::signature_tests(const OrbitView& v) const {
  std::vector<Test> out;
  for (size_t i = 0; i < v.legs.size(); ++i)
    out.push_back({fmt::format("time {}", i), v.legs[i].length * problem_.direction(), true});
  for (const Monitor& m : v.monitors) {
    // A gap goes with the square of the time between two impacts: on the shortest legs it is rounding.
    const bool rounding =
        m.guard.guard.kind == GuardKind::gap && std::abs(v.legs[m.leg].length) < time_of_rounding * v.period;
    if (!rounding || v.legs[m.leg].event.resting.empty()) out.push_back({m.name, m.lowest.value, true});
  }
  return out;
}

BranchPoint OrbitCurve::told(const CurvePoint& p) {
  const OrbitView& v = view(p);
  BranchPoint out{.values = problem_.values_of(p.z), .period = v.period, .stable = v.stable, .spectrum = v.multipliers};
  out.state = problem_.told_state(v, out.t);
  problem_.extremes(v, out.lowest, out.highest);
  out.signature = problem_.signature();
  return out;
}

bool OrbitCurve::point(const CurvePoint& p) {
  if (looking_ > 0) return --looking_ > 0;
  const BranchPoint now = told(p);
  if (book_.branch.autonomous) slowest_ = slowest_on(view(p));
  const size_t specials = book_.branch.special.size();
  for (size_t i = 0; i < now.lowest.size(); ++i) {
    // A state that rests on its orbits (a map: jumps alone move it) moves from orbit to orbit.
    double& extent = extent_[static_cast<Index>(i)];
    const double on_orbit = now.highest[i] - now.lowest[i];
    extent = std::max(extent, on_orbit > 0 ? on_orbit : std::abs(now.state[i] - begun_.state[i]));
  }
  const bool same_unknowns = last_ && last_->point.z.size() == p.z.size();
  const bool connected = same_unknowns && last_->specials == specials;
  Vec slope;
  if (connected) {
    const double step = length_between(last_->point, p);
    slope = (column_of(now.state) - column_of(last_->told.state)) / step;
    const bool turns = last_->slope.size() == 0 || exceeds((slope - last_->slope) * step, 4 * bent);
    if (turns) fill(last_->point, last_->told, p, now, 0);
  }
  if (same_unknowns && comes_round(p, now)) return false;
  last_ = Last{p, now, slope, specials};
  const bool goes_on = book_.point(now);
  problem_.resize(now.lowest, now.highest, now.period);
  if (!stop_ && walked() >= options_.most_points) stop_ = {.why = "points"};
  return !ends_at(now) && goes_on;
}

bool OrbitCurve::comes_round(const CurvePoint& p, const BranchPoint& now) {
  const double value = begun_.values[0], from = last_->told.values[0] - value, to = now.values[0] - value;
  const bool one_parameter = kept_.empty();
  if (walked() < 4 || from * to >= 0) return false;
  const double share = from / (from - to);
  const auto near = [&](const std::vector<double>& x, const std::vector<double>& there, double close) {
    Vec moved = column_of(x) - column_of(there);
    for (const auto& [state, modulus] : start_.modulo) {
      double& turned = moved[static_cast<Index>(state)];
      turned = std::remainder(turned, modulus);
    }
    return !exceeds(moved, close);
  };
  constexpr double close = 0.05;
  if (!near(now.lowest, begun_.lowest, close) || !near(now.highest, begun_.highest, close)) return false;
  Vec guess = (1 - share) * last_->point.z + share * p.z;
  const Index first = guess.size() - static_cast<Index>(begun_.values.size());
  guess[first] = value;
  const std::optional<CurvePoint> there = curve_->correct_at(p, guess, first);
  if (!there) return false;
  const BranchPoint again = told(*there);
  constexpr double same = 1e-6;
  if (!one_parameter &&
      std::abs(again.values[1] - begun_.values[1]) > same * (options_.second_high - options_.second_low))
    return false;
  // Without a clock there may be no section to compare states on.
  const auto alike = [](const std::complex<double>& a, const std::complex<double>& b) {
    return std::abs(a - b) <= same * (1 + std::abs(a));
  };
  const bool by_numbers =
      book_.branch.autonomous && std::abs(again.period - begun_.period) < same * begun_.period &&
      std::equal(again.spectrum.begin(), again.spectrum.end(), begun_.spectrum.begin(), begun_.spectrum.end(), alike);
  // On a section that an event makes, states may be equal at two phases of the clock: resets to one value.
  const bool at_one_phase =
      book_.branch.autonomous || std::abs(std::remainder(again.t - begun_.t, begun_.period)) < same * begun_.period;
  if (!by_numbers && (!at_one_phase || !near(again.state, begun_.state, same))) return false;
  book_.point(again);
  stop_ = {.why = "closed"};
  return true;
}

bool OrbitCurve::is_known(const SpecialPoint& s) const {
  const auto alike = [](const Spectrum& a, const Spectrum& b) {
    const auto near = [](const std::complex<double>& p, const std::complex<double>& q) {
      return p == q || std::abs(p - q) < same_multipliers * (1 + std::abs(q));
    };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), near);
  };
  return std::any_of(options_.known.begin(), options_.known.end(), [&](const SpecialPoint& k) {
    return k.type == s.type && std::abs(k.values[0] - s.values[0]) < same_value * (options_.high - options_.low) &&
           std::abs(k.period - s.period) < same_orbit * s.period &&
           (alike(k.spectrum, s.spectrum) || (k.after && alike(*k.after, s.spectrum)));
  });
}

bool OrbitCurve::passes_again(const SpecialPoint& s, const BranchPoint& here) {
  const std::string& type = s.type;
  if (type != "branch" && kept_.empty() && is_known(s)) {
    stop_ = {.why = "closed", .detail = "from here on lie orbits of a branch already followed, or their mirror images"};
    return true;
  }
  const auto is_same = [&](const Passed& p, const Passed& q) {
    const double range = options_.high - options_.low;
    if (p.type != q.type || std::abs(p.there.values[0] - q.there.values[0]) > same_value * range) return false;
    if (std::abs(p.there.period - q.there.period) > same_orbit * q.there.period) return false;
    const auto near = [&](const std::vector<double>& a, const std::vector<double>& b) {
      return !exceeds(column_of(a) - column_of(b), same_orbit);
    };
    return near(p.there.lowest, q.there.lowest) && near(p.there.highest, q.there.highest);
  };
  const Passed now{type, here, s.values[0] > s.near_values[0]};
  const auto again = std::find_if(passed_.begin(), passed_.end(), [&](const Passed& p) { return is_same(p, now); });
  if (again == passed_.end() || type == "branch") {
    passed_.push_back(now);
    return false;
  }
  // A curve that goes round comes to the first one first, the same way.
  const bool closes = again == passed_.begin() && (type == "fold" || again->rises == now.rises);
  if (closes)
    stop_ = {.why = "closed"};
  else
    stop_ = {.why = "failed", .detail = "the branch comes back on itself: how it goes on is lost in rounding"};
  return true;
}

double OrbitCurve::length_between(const CurvePoint& a, const CurvePoint& b) {
  return (b.z - a.z).cwiseQuotient(problem_.scale()).dot(a.tangent);
}

bool OrbitCurve::exceeds(const Vec& moved, double share) const {
  for (Index i = 0; i < moved.size(); ++i)
    if (std::abs(moved[i]) > share * extent_[i]) return true;
  return false;
}

void OrbitCurve::fill(const CurvePoint& a, const BranchPoint& from, const CurvePoint& b, const BranchPoint& to,
                      int depth) {
  constexpr int deepest = 4;
  if (depth >= deepest || walked() + 1 >= options_.most_points) return;
  const std::optional<CurvePoint> middle = curve_->correct(a, length_between(a, b) / 2, 0.5 * (a.z + b.z));
  if (!middle) return;
  const BranchPoint between = told(*middle);
  const Vec straight = 0.5 * (column_of(from.state) + column_of(to.state));
  if (!exceeds(column_of(between.state) - straight, bent)) return;
  fill(a, from, *middle, between, depth + 1);
  book_.point(between);
  fill(*middle, between, b, to, depth + 1);
}

double OrbitCurve::extent_of(const BranchPoint& p) const {
  double out = 0;
  for (size_t i = 0; i < p.lowest.size(); ++i)
    out = std::max(out, (p.highest[i] - p.lowest[i]) / first_size_[static_cast<Index>(i)]);
  return out;
}

bool OrbitCurve::ends_at(const BranchPoint& p) {
  constexpr double beyond = 1e6, shrunk = 1e-5;  // of the largest at the start, and on the branch
  double size = 0;
  for (size_t i = 0; i < p.lowest.size(); ++i)
    size = std::max(size, std::max(std::abs(p.lowest[i]), std::abs(p.highest[i])) / first_size_[static_cast<Index>(i)]);
  const double extent = extent_of(p);
  largest_extent_ = std::max(largest_extent_, extent);
  const bool one_parameter = book_.branch.autonomous && kept_.empty();
  const bool slows = one_parameter && p.period > last_period_ && slowest_.speed < lingering && keeps_its_shape(p);
  const bool too_long = p.period > longest_, grows = grows_on_the_spot(p);
  const std::optional<Equilibrium> saddle =
      one_parameter && (too_long || grows || slows) ? saddle_beside() : std::nullopt;
  // So unstable that rounding is a share of what is left of the way.
  const bool unstable = slowest_.growth > unstable_beside_saddle;
  const std::optional<double> limit = slows && saddle && unstable ? limit_beside(*saddle) : std::nullopt;
  const bool at_limit = limit && std::abs(*limit - p.values[0]) < beside_homoclinic * (options_.high - options_.low);
  if (at_limit)
    stop_ = {.why = "homoclinic", .detail = told_limit(*saddle)}, limit_ = limit;
  else if ((too_long || grows) && (!one_parameter || saddle))
    stop_ = {.why = "homoclinic", .detail = "the period grows without bound"};
  else if (too_long)
    stop_ = {.why = "failed", .detail = "the period grows beyond the longest time, and no saddle is near the orbit"};
  else if (size > beyond)
    stop_ = {.why = "failed", .detail = "the orbit grows beyond all bounds"};
  else if (book_.branch.autonomous && kept_.empty() && p.period < shrunk * begun_.period)
    stop_ = {.why = "closed", .detail = "the period shrinks to zero"};
  else if (book_.branch.autonomous && kept_.empty() && extent < shrunk * largest_extent_) {
    stop_ = {.why = "closed", .detail = "the orbit shrinks onto an equilibrium"};
    add_equilibrium(p);
  }
  return stop_.has_value();
}

bool OrbitCurve::grows_on_the_spot(const BranchPoint& p) {
  constexpr int count = 3;
  constexpr double still =
      1e-6;  // share of the range by which the parameter moves while the period grows by a factor e
  const double largest = p.spectrum.empty() ? 0 : std::abs(p.spectrum[0]);
  const bool grows = p.period > last_period_, neutral = largest > 0.5 && largest < 2;
  const double growth = grows && last_period_ > 0 ? std::log(p.period / last_period_) : 0;
  const bool rests = std::abs(p.values[0] - last_value_) < still * growth * (options_.high - options_.low);
  growing_ = book_.branch.autonomous && grows && rests && !neutral && keeps_its_shape(p) ? growing_ + 1 : 0;
  last_period_ = p.period;
  last_value_ = p.values[0];
  last_lowest_ = p.lowest;
  last_highest_ = p.highest;
  return growing_ >= count;
}

bool OrbitCurve::keeps_its_shape(const BranchPoint& p) const {
  constexpr double still = 1e-3;
  for (size_t i = 0; i < last_lowest_.size(); ++i) {
    const double moved = std::max(std::abs(p.lowest[i] - last_lowest_[i]), std::abs(p.highest[i] - last_highest_[i]));
    if (moved > still * (p.highest[i] - p.lowest[i])) return false;
  }
  return true;
}

void OrbitCurve::add_equilibrium(const BranchPoint& p) {
  const double value = p.values[0], reach = 1e-3 * (options_.high - options_.low);
  RunOptions run = start_.run;
  run.parameters = parameter_values(model_, std::vector<GivenParameter>{{options_.parameter, value}});
  for (size_t i = 0; i < run.initial.size(); ++i) run.initial[i] = 0.5 * (p.lowest[i] + p.highest[i]);
  const Branch rest =
      follow_equilibrium(model_, {run}, {.parameter = options_.parameter, .low = value - reach, .high = value + reach});
  const SpecialPoint* nearest = nullptr;
  for (const SpecialPoint& s : rest.special) {
    if (s.type != "hopf" && s.type != "boundary-equilibrium") continue;
    if (!nearest || std::abs(s.values[0] - value) < std::abs(nearest->values[0] - value)) nearest = &s;
  }
  if (!nearest) return;
  SpecialPoint s{.type = nearest->type, .detail = stop_->detail, .values = nearest->values, .state = nearest->state};
  s.period = nearest->period > 0 ? nearest->period : p.period;
  s.spectrum = p.spectrum;
  s.near_values = p.values, s.near_state = p.state, s.near_t = p.t, s.near_period = p.period;
  BranchPoint here = p;
  here.values = s.values, here.state = s.state, here.period = s.period;
  book_.special(std::move(s), std::move(here));
}

SpecialPoint OrbitCurve::place(const std::string& type, const Located& l) {
  const BranchPoint b = told(l.before);
  const BranchPoint p = told(l.point);
  SpecialPoint s{.type = type,
                 .values = p.values,
                 .state = p.state,
                 .t = p.t,
                 .period = p.period,
                 .spectrum = p.spectrum,
                 .signature = p.signature};
  s.near_values = b.values;
  s.near_state = b.state;
  s.near_t = b.t;
  s.near_period = b.period;
  return s;
}

bool OrbitCurve::add(SpecialPoint s, const CurvePoint& at_point) {
  book_.special(std::move(s), told(at_point));
  return true;
}

double OrbitCurve::turning(const CurvePoint& p) {
  return std::copysign(1.0, p.orientation) * passes_test(view(p).roots, 1);
}

bool OrbitCurve::turns(const Located& l) {
  constexpr double rounding = 1e-6;
  const double before = turning(l.before), behind = turning(l.behind);
  return before * behind <= 0 && std::max(std::abs(before), std::abs(behind)) > rounding;
}

double OrbitCurve::slope(const CurvePoint& p) {
  constexpr double clear = 1e-6, rounding = 1e-9;
  const double slope = p.last_slope(), by_multipliers = turning(p);
  if (std::abs(slope) > clear && by_multipliers != 0) slope_sign_ = slope * by_multipliers > 0 ? 1 : -1;
  return std::abs(slope) > rounding || slope_sign_ == 0 ? slope : rounding * slope_sign_ * by_multipliers;
}

bool OrbitCurve::special(const Located& l) {
  // A multiplier passes 1 at a fold; where the parameter rests but for rounding (a Hopf point, a family) none does.
  if (l.test.name == "fold" && !l.meets && !turns(l)) return true;
  const OrbitView& v = view(l.point);
  if (l.test.name == "torus" && !on_circle(v.roots)) return true;  // a neutral saddle
  const bool flips = l.test.name == "flip" || l.test.name == "symmetry";
  const auto turned = [](const std::complex<double>& mu) { return std::abs(mu + 1.0) < 1e-3; };
  if (flips && std::none_of(v.roots.begin(), v.roots.end(), turned)) return true;  // it passed -1 through infinity
  std::string type = l.test.name;
  // Where curves meet the fold of one of them is no fold: a branch that ends on a symmetric one.
  const bool pitchfork = type == "fold" && l.meets;
  if (pitchfork) type = "branch";
  if (looking_ > 0) {
    if (!is_sought(l, type)) return true;
    sought_signature_ = problem_.frozen_signature();
    return false;
  }
  SpecialPoint s = place(type, l);
  if (pitchfork) s.detail = "pitchfork";
  if (type == "branch" && !book_.branch.special.empty()) {  // one special point per place
    const SpecialPoint& last = book_.branch.special.back();
    if (last.type == "branch" && std::abs(last.values[0] - s.values[0]) < 1e-6 * (options_.high - options_.low))
      return true;
  }
  if (passes_again(s, told(l.point))) return false;
  if (type == "branch" && problem_.is_own_image(l.point.z) && !problem_.is_own_image(l.before.z)) {
    s.detail = "pitchfork";
    stop_ = {.why = "closed", .detail = "beyond lie the mirror images of the same orbits"};
    add(std::move(s), l.point);
    return false;
  }
  if (type == "branch" && problem_.repeats(v)) {
    s.detail = "an orbit of half the period, counted twice, flips here";
    s.counted_twice = true;
    stop_ = {.why = "closed", .detail = "beyond lie the same orbits again, half a period later"};
    add(std::move(s), l.point);
    return false;
  }
  return add(std::move(s), l.point);
}

Branch follow_cycles(const Model& model, const OrbitOptions& start, const Birth& birth, const BranchOptions& options) {
  return OrbitCurve(model, start, options).follow_cycles(birth);
}

Branch follow_orbit(const Model& model, const OrbitOptions& start, const BranchOptions& options) {
  // The equilibrium onto which an orbit has shrunk is special on the branch of equilibria.
  if (options.seek && (options.seek->type == "hopf" || options.seek->type == "boundary-equilibrium"))
    return follow_equilibrium(model, {start.run}, options);
  return OrbitCurve(model, start, options).follow();
}

}  // namespace saltus
