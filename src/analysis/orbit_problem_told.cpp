// Reported quantities of an orbit: a state on its section, extremes, modes, sizes.
#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "analysis/orbit_problem.hpp"
#include "base/index.hpp"
#include "model/period.hpp"

namespace saltus {
namespace {

/// How often an event is on a section of a constraint or of a jump.
int meetings(const Transition& event, const Section& section) {
  long count = 0;
  if (section.kind == Section::Kind::constraint) {
    for (const Hit& hit : event.hits) count += std::count(hit.contacts.begin(), hit.contacts.end(), section.index);
  }
  if (section.kind == Section::Kind::jump) {
    count = std::count_if(event.jumps.begin(), event.jumps.end(),
                          [&](const JumpDone& jump) { return jump.jump == section.index; });
  }
  return static_cast<int>(count);
}

double polynomial_at(std::span<const double> c, double tau) {
  double sum = 0;
  for (size_t k = c.size(); k-- > 0;) sum = sum * tau + c[k];
  return sum;
}

}  // namespace

std::vector<double> OrbitProblem::told_state(const OrbitView& view, double& t) {
  const int section = options_.section;
  const bool by_clock = section < 0 || model_.sections[at(section)].kind == Section::Kind::every;
  std::vector<Told> candidates;
  if (forced_ && by_clock)
    candidates = told_by_clock(view);
  else if (section >= 0)
    candidates = told_on_section(view, section);
  if (candidates.empty()) {
    t = view.t0;
    return {view.legs[0].x.begin(), view.legs[0].x.end()};
  }
  const auto distance = [&](const Told& c) {
    double sum = 0;
    for (size_t i = 0; i < c.x.size(); ++i) sum += std::pow((c.x[i] - told_[i]) / size_[ix(i)], 2);
    return sum;
  };
  const auto nearest = std::min_element(candidates.begin(), candidates.end(),
                                        [&](const Told& a, const Told& b) { return distance(a) < distance(b); });
  t = nearest->t;
  told_ = nearest->x;
  return told_;
}

/// Where the clock of the section strikes, in the period that is covered. Time is told within the first period of the
/// model's own: at another value of the parameter clocks have counted to another time, not to another phase.
std::vector<OrbitProblem::Told> OrbitProblem::told_by_clock(const OrbitView& view) const {
  std::vector<Told> out;
  const int section = options_.section;
  const double every = section >= 0 ? constant_value(model_.sections[at(section)].value, values_) : period_;
  const double half = symmetry_ ? view.period / 2 : view.period;
  const double from = options_.clock_from.value_or(options_.run.from);
  const long first = std::lround(std::floor((view.t0 - from) / every)) - 1;
  for (long k = first; k < first + 3 + std::lround(view.period / every) * 2; ++k) {
    const double when = from + static_cast<double>(k) * every;
    const double since = direction_ * (when - view.t0);
    if (since < 0 || since >= view.period) continue;
    const bool second = symmetry_ && since >= half;
    const double look = view.t0 + direction_ * (second ? since - half : since);
    const double phase = from + in_first_period(static_cast<double>(k) * every);
    for (const std::vector<double>& x : states_at(view, look)) out.push_back({second ? mirrored(x) : x, phase});
  }
  return out;
}

/// A time without whole periods of the model's own time.
double OrbitProblem::in_first_period(double since) const {
  constexpr double whole = 1e-9;
  const std::optional<Period> clock = forced_ ? period_in_time(model_, values_) : std::nullopt;
  if (!clock) return since;
  const double left = since - clock->value * std::floor(since / clock->value);
  return std::min(left, clock->value - left) < whole * clock->value ? 0.0 : left;
}

/// Where the orbit meets a section: at its events, or where a function crosses zero.
std::vector<OrbitProblem::Told> OrbitProblem::told_on_section(const OrbitView& view, int section) {
  const Section& wanted = model_.sections[at(section)];
  if (wanted.kind == Section::Kind::on) return crossings(view, section);
  std::vector<Told> out;
  for (size_t i = 0; i < view.legs.size(); ++i) {
    if (!view.legs[i].happens) continue;
    for (int k = meetings(view.legs[i].event, wanted); k > 0; --k)
      out.push_back({view.shot.ends[i].x_plus, view.shot.ends[i].t});
  }
  if (symmetry_) {  // the other half, where the section looks alike
    for (size_t k = 0, count = out.size(); k < count; ++k)
      out.push_back({mirrored(out[k].x), out[k].t + direction_ * view.period / 2});
  }
  return out;
}

/// A step of the orbit on which a section's function is looked at; of a symmetric orbit also its image, half a period
/// later, where that function is another one.
struct OrbitProblem::Look {
  const LegTrace::Stretch* stretch = nullptr;
  Arc arc;
  double later = 0;
  bool image = false;
};

OrbitProblem::Told OrbitProblem::seen(const Look& look, double tau) const {
  Told out{std::vector<double>(at(program_.states())), look.stretch->piece.start + tau + look.later};
  Trajectory::evaluate(look.stretch->piece, program_.states(), tau, out.x.data());
  if (look.image) out.x = mirrored(std::move(out.x));
  return out;
}

double OrbitProblem::section_at(const Look& look, int section, double tau) {
  if (!look.image) return polynomial_at(look.stretch->sections[at(section)], tau);
  const Told there = seen(look, tau);
  return shooting_->variation().section(section, look.arc, there.x, there.t).value;
}

std::vector<OrbitProblem::Look> OrbitProblem::looks(const OrbitView& view) const {
  std::vector<Look> out;
  for (const bool image : {false, true}) {
    if (image && !symmetry_) continue;
    for (size_t i = 0; i < view.legs.size(); ++i) {
      Arc arc = view.legs[i].arc;
      if (image) arc.mode = mirrored(arc.mode);
      for (const LegTrace::Stretch& s : view.traces[i].stretches)
        out.push_back({&s, arc, image ? direction_ * view.period / 2 : 0.0, image});
    }
  }
  return out;
}

/// Crossings of a section's function all round the orbit, in the section's direction; where it comes to zero with an
/// event, what is behind that.
std::vector<OrbitProblem::Told> OrbitProblem::crossings(const OrbitView& view, int section) {
  constexpr int parts = 8;
  constexpr double nothing = 1e-10;  // of the largest value on the orbit
  struct Sample {
    size_t look = 0;
    double tau = 0, value = 0;
  };
  const std::vector<Look> all = looks(view);
  std::vector<Sample> samples;
  double largest = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    for (int k = 0; k < parts; ++k) {
      const double tau = all[i].stretch->piece.length * (k + 0.5) / parts;
      samples.push_back({i, tau, section_at(all[i], section, tau)});
      largest = std::max(largest, std::abs(samples.back().value));
    }
  }
  const auto sign = [&](double value) { return std::abs(value) <= nothing * largest ? 0 : value > 0 ? 1 : -1; };
  const Direction wanted = model_.sections[at(section)].direction;
  std::vector<Told> out;
  const auto halve = [&](size_t look, double a, double b, int before) {
    for (int halving = 0; halving < 60; ++halving) {
      const double middle = 0.5 * (a + b);
      (section_at(all[look], section, middle) * before > 0 ? a : b) = middle;
    }
    out.push_back(seen(all[look], b));
  };
  for (size_t k = 0; k < samples.size(); ++k) {
    const Sample &a = samples[k], &b = samples[(k + 1) % samples.size()];
    const int before = sign(a.value);
    if (before == 0 || sign(b.value) == before) continue;
    const bool rising = (before < 0) == (direction_ > 0);
    if (wanted != Direction::any && rising != (wanted == Direction::rising)) continue;
    const double end = all[a.look].stretch->piece.length;
    if (a.look == b.look && k + 1 < samples.size()) {
      halve(a.look, a.tau, b.tau, before);
      continue;
    }
    const int at_end = sign(section_at(all[a.look], section, end));
    const int behind = sign(section_at(all[b.look], section, 0));
    if (at_end == -before)
      halve(a.look, a.tau, end, before);
    else if (at_end == 0 || behind == 0)
      out.push_back(seen(all[b.look], 0));
    else if (behind == before)
      halve(b.look, 0, b.tau, before);
  }
  return out;
}

/// The state at a time of the orbit, after what happens then; two where pieces meet.
std::vector<std::vector<double>> OrbitProblem::states_at(const OrbitView& view, double t) const {
  std::vector<std::vector<double>> out;
  const double same_time = 1e-11 * view.period + 1e-14 * std::abs(t);
  for (size_t i = 0; i < view.legs.size(); ++i) {
    if (view.legs[i].happens && std::abs(view.shot.ends[i].t - t) < same_time) out = {view.shot.ends[i].x_plus};
  }
  if (!out.empty()) return out;
  for (const LegTrace& trace : view.traces) {
    for (const LegTrace::Stretch& s : trace.stretches) {
      const double tau = t - s.piece.start;
      if (direction_ * tau < 0 || direction_ * (tau - s.piece.length) > 0) continue;
      out.emplace_back(at(program_.states()));
      Trajectory::evaluate(s.piece, program_.states(), tau, out.back().data());
    }
  }
  return out;
}

std::vector<double> OrbitProblem::mirrored(std::vector<double> x) const {
  for (size_t i = 0; i < x.size(); ++i) x[i] *= symmetry_->sign[ix(i)];
  return x;
}

Mode OrbitProblem::mirrored(const Mode& mode) const {
  Mode out = mode;
  for (size_t i = 0; i < symmetry_->switches.size(); ++i) {
    const auto& [to, sign] = symmetry_->switches[i];
    const char c = mode.switches[i];
    out.switches[at(to)] = sign > 0 || (c != '+' && c != '-') ? c : c == '+' ? '-' : '+';
  }
  return out;
}

/// True if a fraction of the period is a whole number of periods of the model's own time.
bool OrbitProblem::is_clocked(double share) const {
  const std::optional<Period> clock = forced_ ? period_in_time(model_, values_) : std::nullopt;
  if (!clock) return true;
  const double count = share / clock->value;
  return std::abs(count - std::round(count)) < 1e-6;
}

bool OrbitProblem::repeats(const OrbitView& view, int times, double same) const {
  if (symmetry_ || !is_clocked(view.period / times)) return false;
  const double part = view.period / times;
  for (const double share : {0.0, 0.183, 0.427, 0.611, 0.869}) {  // where it is cut it may come near itself by chance
    const double t = view.t0 + direction_ * share * part;
    const std::vector<std::vector<double>> here = states_at(view, t), there = states_at(view, t + direction_ * part);
    if (here.empty() || there.empty()) return false;
    for (Index i = 0; i < size_.size(); ++i) {
      const double shifted = here[0][ux(i)] + closing_.shift[i] / times;
      if (!closing_.free[ux(i)] && std::abs(there[0][ux(i)] - shifted) > same * size_[i]) return false;
    }
  }
  return true;
}

void OrbitProblem::extremes(const OrbitView& view, std::vector<double>& low, std::vector<double>& high) const {
  const size_t n = at(program_.states());
  low.assign(n, HUGE_VAL);
  high.assign(n, -HUGE_VAL);
  for (const LegTrace& trace : view.traces) {
    for (const LegTrace::Stretch& s : trace.stretches) widen(s.piece, low, high);
  }
  if (!symmetry_) return;
  for (size_t i = 0; i < n; ++i) {
    if (symmetry_->sign[ix(i)] > 0) continue;
    const double most = std::max(high[i], -low[i]);
    low[i] = -most, high[i] = most;
  }
}

void OrbitProblem::resize(const std::vector<double>& low, const std::vector<double>& high, double period) {
  const Vec before = size_;
  const bool other_period = !forced_ && period > 0 && period != period_;
  if (other_period) period_ = period;
  const auto most = [&](size_t i) { return modulus_of(ix(i)).value_or(std::max(std::abs(low[i]), std::abs(high[i]))); };
  if (widest_.size() != size_.size()) widest_ = Vec::Zero(size_.size());
  double share = 0;  // how far states move, of the farthest they have moved
  for (size_t i = 0; i < low.size(); ++i) {
    double& widest = widest_[ix(i)];
    widest = std::max(widest, high[i] - low[i]);
    if (!closing_.free[i] && widest > 0) share = std::max(share, (high[i] - low[i]) / widest);
  }
  for (size_t i = 0; i < low.size(); ++i) {
    if (!std::isfinite(most(i)) || most(i) == 0) continue;
    double& size = size_[ix(i)];
    size = forced_ || closing_.free[i] ? std::max(size, most(i)) : std::max(high[i] - low[i], share * most(i));
  }
  bool vanishes = false;
  for (size_t i = 0; i < low.size(); ++i) {
    if (shooting_->vanishing(ix(i)).empty() || !std::isfinite(most(i))) continue;
    most_[ix(i)] = most(i);
    vanishes = true;
  }
  if (other_period || vanishes || size_ != before) set_scale();
}

std::vector<std::string> OrbitProblem::signature() const {
  std::vector<std::string> out;
  const int visible = model_.form.visible;
  const auto add = [&](const Mode& mode) {
    std::string text = visible_mode(mode, visible).text();
    if (out.empty() || out.back() != text) out.push_back(std::move(text));
  };
  for (const Leg& leg : legs_) add(leg.arc.mode);
  if (symmetry_) {
    for (const Leg& leg : legs_) add(mirrored(leg.arc.mode));
  }
  if (out.size() > 1 && out.front() == out.back()) out.pop_back();
  return out;
}

}  // namespace saltus
