// What is told of an orbit: a state on its section, extremes, modes, sizes.
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

double polynomial_slope(std::span<const double> c, double tau) {
  double sum = 0;
  for (size_t k = c.size(); k-- > 1;) sum = sum * tau + static_cast<double>(k) * c[k];
  return sum;
}

/// The least and the largest value of a polynomial on a step: at its ends, or where its slope changes sign.
std::pair<double, double> extremes_of(std::span<const double> c, double length) {
  constexpr int parts = 8;
  double low = c[0], high = c[0], before = polynomial_slope(c, 0);
  const auto see = [&](double value) { low = std::min(low, value), high = std::max(high, value); };
  for (int k = 1; k <= parts; ++k) {
    double a = length * (k - 1) / parts, b = length * k / parts;
    see(polynomial_at(c, b));
    const double behind = polynomial_slope(c, b);
    if ((before > 0) != (behind > 0)) {
      for (int halving = 0; halving < 40; ++halving) {
        const double middle = 0.5 * (a + b);
        ((polynomial_slope(c, middle) > 0) == (before > 0) ? a : b) = middle;
      }
      see(polynomial_at(c, a));
    }
    before = behind;
  }
  return {low, high};
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

/// Where the clock of the section strikes, at the phase of the start, in the period that is covered.
std::vector<OrbitProblem::Told> OrbitProblem::told_by_clock(const OrbitView& view) const {
  std::vector<Told> out;
  const int section = options_.section;
  const double every = section >= 0 ? constant_value(model_.sections[at(section)].value, values_) : period_;
  const double half = symmetry_ ? view.period / 2 : view.period, from = options_.run.from;
  const long first = std::lround(std::floor((view.t0 - from) / every)) - 1;
  for (long k = first; k < first + 3 + std::lround(view.period / every) * 2; ++k) {
    const double when = from + static_cast<double>(k) * every;
    const double since = direction_ * (when - view.t0);
    if (since < 0 || since >= view.period) continue;
    const bool second = symmetry_ && since >= half;
    const double look = view.t0 + direction_ * (second ? since - half : since);
    for (const std::vector<double>& x : states_at(view, look)) out.push_back({second ? mirrored(x) : x, when});
  }
  return out;
}

/// Where the orbit meets a section: at its events, or where a function crosses zero.
std::vector<OrbitProblem::Told> OrbitProblem::told_on_section(const OrbitView& view, int section) const {
  std::vector<Told> out;
  const Section& wanted = model_.sections[at(section)];
  for (size_t i = 0; i < view.legs.size(); ++i) {
    if (wanted.kind == Section::Kind::on) {
      for (const LegTrace::Stretch& s : view.traces[i].stretches) add_crossings(s, section, out);
    } else if (view.legs[i].happens) {
      for (int k = meetings(view.legs[i].event, wanted); k > 0; --k)
        out.push_back({view.shot.ends[i].x_plus, view.shot.ends[i].t});
    }
  }
  if (symmetry_ && wanted.kind != Section::Kind::on) {  // the other half, where the section looks alike
    for (size_t k = 0, count = out.size(); k < count; ++k)
      out.push_back({mirrored(out[k].x), out[k].t + direction_ * view.period / 2});
  }
  return out;
}

/// Crossings of a section's function on a stretch, in the section's direction.
void OrbitProblem::add_crossings(const LegTrace::Stretch& s, int section, std::vector<Told>& out) const {
  const Direction wanted = model_.sections[at(section)].direction;
  const std::vector<double>& c = s.sections[at(section)];
  const auto value = [&](double tau) {
    double sum = 0;
    for (size_t k = c.size(); k-- > 0;) sum = sum * tau + c[k];
    return sum;
  };
  constexpr int parts = 8;
  for (int k = 0; k < parts; ++k) {
    double a = s.piece.length * k / parts, b = s.piece.length * (k + 1) / parts;
    const double fa = value(a), fb = value(b);
    if (fa == 0 || (fa > 0) == (fb > 0)) continue;
    const bool rising = (fb > fa) == (direction_ > 0);
    if (wanted == Direction::rising && !rising) continue;
    if (wanted == Direction::falling && rising) continue;
    for (int halving = 0; halving < 60; ++halving) {
      const double middle = 0.5 * (a + b);
      ((value(middle) > 0) == (fa > 0) ? a : b) = middle;
    }
    Told crossing{std::vector<double>(at(program_.states())), s.piece.start + b};
    Trajectory::evaluate(s.piece, program_.states(), b, crossing.x.data());
    out.push_back(std::move(crossing));
  }
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

/// Whether a share of the period is whole periods of the model's own time.
bool OrbitProblem::is_clocked(double share) const {
  const std::optional<Period> clock = forced_ ? period_in_time(model_, values_) : std::nullopt;
  if (!clock) return true;
  const double count = share / clock->value;
  return std::abs(count - std::round(count)) < 1e-6;
}

bool OrbitProblem::repeats(const OrbitView& view, int times) const {
  if (symmetry_ || !is_clocked(view.period / times)) return false;
  constexpr double same = 1e-4;  // at a place where two orbits meet they do so with a square root
  const double middle = view.t0 + direction_ * view.period / times;
  const std::vector<std::vector<double>> there = states_at(view, middle);
  if (there.empty()) return false;
  for (Index i = 0; i < size_.size(); ++i) {
    const double shifted = view.legs[0].x[i] + closing_.shift[i] / times;
    if (!closing_.free[ux(i)] && std::abs(there[0][ux(i)] - shifted) > same * size_[i]) return false;
  }
  return true;
}

void OrbitProblem::extremes(const OrbitView& view, std::vector<double>& low, std::vector<double>& high) const {
  const size_t n = at(program_.states());
  low.assign(n, HUGE_VAL);
  high.assign(n, -HUGE_VAL);
  for (const LegTrace& trace : view.traces) {
    for (const LegTrace::Stretch& s : trace.stretches) {
      const size_t stride = s.piece.coefficients.size() / n;
      for (size_t i = 0; i < n; ++i) {
        const std::span<const double> c(&s.piece.coefficients[i * stride], stride);
        const auto [least, most] = extremes_of(c, s.piece.length);
        low[i] = std::min(low[i], least), high[i] = std::max(high[i], most);
      }
    }
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
  const bool shorter = !forced_ && period > 0 && period < period_;
  if (shorter) period_ = period;
  const auto most = [&](size_t i) { return std::max(std::abs(low[i]), std::abs(high[i])); };
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
  if (shorter || size_ != before) set_scale();
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
    for (const Leg& leg : legs_) {
      Mode mirrored = leg.arc.mode;
      for (size_t i = 0; i < symmetry_->switches.size(); ++i) {
        const auto& [to, sign] = symmetry_->switches[i];
        const char c = leg.arc.mode.switches[i];
        mirrored.switches[at(to)] = sign > 0 || (c != '+' && c != '-') ? c : c == '+' ? '-' : '+';
      }
      add(mirrored);
    }
  }
  if (out.size() > 1 && out.front() == out.back()) out.pop_back();
  return out;
}

}  // namespace saltus
