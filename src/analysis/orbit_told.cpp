// Reported quantities of an orbit that has been found: period, legs, multipliers.
#include <algorithm>
#include <cmath>

#include "analysis/orbit_search.hpp"
#include "analysis/spectrum.hpp"
#include "analysis/symmetry.hpp"
#include "base/index.hpp"
#include "flow/recorder.hpp"

namespace saltus {

void OrbitSearch::tell(const Begin& begin, Lap& now, Orbit& orbit) {
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
  for (Index i = 0; i < now.monodromy.rows(); ++i) {
    const Vec row = now.monodromy.row(i).transpose();
    orbit.monodromy.emplace_back(row.begin(), row.end());
  }
  orbit.symmetric = now.run.dense() && find_symmetry(*program_, variation(),
                                                     {&now.run, direction_ * orbit.period, left_out_, shift_,
                                                      column_at(size_.data(), ix(size_.size()))});
  tell_legs(begin, now, orbit);
  std::erase_if(now.run.events, [](const Event& e) { return e.kind == EventKind::section; });
  orbit.trajectory = std::move(now.run);
}

/// The stretches between events, and what ends each.
void OrbitSearch::tell_legs(const Begin& begin, const Lap& now, Orbit& orbit) const {
  const int visible = model().form.visible;
  double t = begin.t;
  size_t k = 0;
  for (const Transition& e : now.run.transitions) {
    const std::vector<Event> events = events_of(e, model());
    const double stretch = k < now.stretch.size() ? now.stretch[k] : 1;
    ++k;
    if (events.empty() || e.guards.empty()) continue;
    std::string text(kind_name(events.back().kind));
    for (const std::string& on : events.back().on) text += " " + on;
    orbit.legs.push_back({visible_mode(e.before, visible), std::abs(e.t - t), text, stretch});
    t = e.t;
  }
  const bool by_event = section_ >= 0 && model().sections[at(section_)].kind != Section::Kind::on;
  if (!by_event)
    orbit.legs.push_back({visible_mode(now.run.last.mode, visible), std::abs(now.run.end.t - t),
                          section_ >= 0 ? "section" : "clock", 1});
}

/// The monodromy as the product of what its legs do, with the rates where each begins; as that of the run where it
/// counts more than its legs (a section on a surface, chatter).
std::vector<Mat> OrbitSearch::factors_of(const Begin& begin, Lap& now, std::vector<Vec>& flow) {
  const std::vector<Leg>& legs = solved_;
  const bool told = !now.factors.empty();
  std::vector<Mat> out = told ? std::move(now.factors) : shooting_->factors(legs, solved_shot_);
  Mat product = Mat::Identity(now.monodromy.rows(), now.monodromy.cols());
  for (size_t i = 0; i < legs.size(); ++i) product = out[i] * product;
  if (!forced_) flow = shooting_->flow_at(legs, begin.t);
  // A run along an unstable orbit is the less accurate of the two.
  constexpr double alike = 1e-4;
  if (told || (product - now.monodromy).norm() <= alike * now.monodromy.norm()) {
    now.monodromy = product;
    return out;
  }
  const Arc arc = now.run.arcs.empty() ? now.run.last : now.run.arcs.front();
  flow = {variation().rates(arc, begin.x, begin.t)};
  return {now.monodromy};
}

/// A run that repeats an unstable orbit leaves it again: its length is that of the legs.
double OrbitSearch::solved_period() const {
  double sum = 0;
  for (const Leg& leg : solved_) sum += leg.length;
  return std::abs(sum);
}

void OrbitSearch::multipliers(const Begin& begin, Lap& now, Orbit& orbit) {
  std::vector<Index> kept;
  for (size_t i = 0; i < left_out_.size(); ++i) {
    if (!left_out_[i]) kept.push_back(ix(i));
  }
  // States may have very different sizes: compare them on their own scales.
  Vec scale(ix(kept.size()));
  for (size_t i = 0; i < kept.size(); ++i) scale[ix(i)] = std::max(size_[ux(kept[i])], 1e-300);
  std::vector<Vec> flow;
  std::vector<Mat> factors = factors_of(begin, now, flow);
  for (Mat& M : factors) M = scale.cwiseInverse().asDiagonal() * M.part(kept) * scale.asDiagonal();
  if (!forced_) {
    for (Vec& f : flow) f = f.entries_at(kept).cwiseQuotient(scale);
    orbit.trivial = {carried_along(factors, flow), 0};
    for (Vec& f : flow) f.normalize();
    // The flow is carried along: what is left lives on its complement.
    factors = across(factors, flow);
  }
  orbit.multipliers = spectrum_of_product(factors);
  if (options_.backward) turn_back(orbit.multipliers);
  sort_multipliers(orbit.multipliers);
  orbit.stable = inside_circle(orbit.multipliers);
}

}  // namespace saltus
