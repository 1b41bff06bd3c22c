#include "analysis/phase.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "analysis/thresholds.hpp"
#include "base/index.hpp"

namespace saltus {
namespace {

using Link = OrbitTangents::Link;

PhaseResponse none(std::string why, std::string message) {
  PhaseResponse out;
  out.why = std::move(why);
  out.message = std::move(message);
  return out;
}

/// The left vector of the multiplier 1 with f.Z = 1, states on their own scales.
Vec left_vector(const Mat& M, const Vec& rates, const std::vector<Index>& kept, const Vec& scale) {
  const Index n = ix(kept.size());
  const Vec s = scale.entries_at(kept);
  const Mat scaled = s.cwiseInverse().asDiagonal() * M.part(kept) * s.asDiagonal();
  const Vec f = rates.entries_at(kept).cwiseQuotient(s);
  const double length = f.norm();
  Mat A = Mat::Zero(n + 1, n);
  A.topRows(n) = scaled.transpose() - Mat::Identity(n, n);
  for (Index i = 0; i < n; ++i) A(n, i) = f[i] / length;
  Vec b = Vec::Zero(n + 1);
  b[n] = 1 / length;
  const Vec z = Orthogonal(A).solve(b).cwiseQuotient(s);
  Vec out = Vec::Zero(scale.size());
  out.set_entries_at(kept, z);
  return out;
}

/// Z at the nodes of a link but its last, by that at its last: on a panel (X(s)^-1)^T X^T Z, onto what is slid on.
void carry_back(const OrbitTangents& orbit, const Link& link, std::vector<Vec>& z) {
  z[link.from] = link.X.transpose() * z[link.to];
  if (link.kind != Link::Kind::panel) return;
  const OrbitTangents::Panel& panel = orbit.panels[link.panel];
  const Vec whole = panel.X.back().transpose() * z[link.to];
  for (size_t j = 1; j < panel_order; ++j) {
    const Vec here = Lu(panel.X[j].transpose()).solve(whole);
    z[link.from + j] = panel.onto.empty() ? here : Vec(panel.onto[j].transpose() * here);
  }
}

/// How each event moves with parameters, measured from the first one, so that no section enters.
std::vector<std::vector<double>> events_by(const OrbitTangents& orbit, Mat x) {
  std::vector<std::vector<double>> out;
  std::vector<double> first;
  for (const Link& link : orbit.links) {
    out.emplace_back();
    if (link.kind == Link::Kind::event && link.shift.allFinite()) {
      for (Index c = 0; c < orbit.directions; ++c)
        out.back().push_back(Vec(link.shift.leftCols(orbit.states).transpose()).dot(x.col(c)) +
                             link.shift(0, orbit.states + c));
      if (first.empty()) first = out.back();
      for (size_t c = 0; c < first.size(); ++c) out.back()[c] -= first[c];
    }
    x = link.X * x + link.P;
  }
  return out;
}

}  // namespace

PhaseResponse phase_response(const OrbitTangents& orbit, const Orbit& found, std::span<const double> size) {
  for (const std::complex<double>& m : found.multipliers) {
    if (!std::isfinite(m.real()))
      return none("unstable",
                  "a direction is infinitely unstable: points beside the orbit leave it at once and have no phase");
    if (std::abs(m - 1.0) <= same_multiplier)
      return none("not unique",
                  fmt::format("a second multiplier is 1 (to within {:.1g}): the orbit is one of a family or at a "
                              "bifurcation, and its phase response is not unique",
                              std::abs(m - 1.0)));
  }
  const Mat M = orbit.monodromy();
  if (!M.allFinite()) return none("grazing", "an event is met without speed: derivatives are infinite");
  const std::vector<Index> kept = closing_states(found);
  const Vec scale = scales_of(size);
  const Vec& f = orbit.start_rates;
  PhaseResponse out{.found = true};
  out.z.assign(orbit.nodes.size(), Vec());
  out.z.back() = left_vector(M, f, kept, scale);
  for (size_t k = orbit.links.size(); k-- > 0;) carry_back(orbit, orbit.links[k], out.z);
  const Vec open = (out.z.front() - out.z.back()).cwiseProduct(scale), whole = out.z.back().cwiseProduct(scale);
  out.error = open.norm() / whole.norm();
  const Mat by = orbit.by_parameters();
  for (Index c = 0; c < orbit.directions; ++c) out.period_by.push_back(-out.z.back().dot(by.col(c)));
  out.event_by = events_by(orbit, moved_start(M, by, f, out.period_by, kept, scale));
  return out;
}

// ---- two copies ----------------------------------------------------------------------------------------------------

namespace {

/// H at any phase: quadrature over the panels of the orbit, cut where the other copy meets an event.
class Drift {
 public:
  Drift(const OrbitTangents& orbit, const Orbit& found, const PhaseResponse& phase, const Coupling& coupling)
      : orbit_(orbit),
        found_(found),
        phase_(phase),
        coupling_(coupling),
        rates_(ux(orbit.states)),
        own_(ux(orbit.states)) {
    for (const Vec& z : phase.z) z_.insert(z_.end(), z.begin(), z.end());
    for (const Link& link : orbit.links) {
      if (link.kind == Link::Kind::event) breaks_.push_back(orbit.nodes[link.from].t - found.trajectory.start_time);
    }
    breaks_.push_back(0);
  }

  double operator()(double share) const {
    const double T = std::abs(found_.period), shift = share * T;
    double sum = 0;
    for (const OrbitTangents::Panel& panel : orbit_.panels) {
      const double start = orbit_.nodes[panel.first].t - found_.trajectory.start_time;
      std::vector<double> cuts{0, 1};
      for (const double b : breaks_) {
        double at = std::fmod(b - shift - start, T);
        if (at < 0) at += T;
        if (at > 0 && at < panel.length) cuts.push_back(at / panel.length);
      }
      std::sort(cuts.begin(), cuts.end());
      for (size_t i = 1; i < cuts.size(); ++i) sum += over(panel, start + shift, cuts[i - 1], cuts[i]);
    }
    return sum / T;
  }

 private:
  /// Over a part of a panel; `other`: the time of the other copy where the panel begins.
  double over(const OrbitTangents::Panel& panel, double other, double from, double to) const {
    const size_t n = ux(orbit_.states);
    double sum = 0;
    for (size_t j = 0; j <= panel_order; ++j) {
      const double place = from + panel_nodes()[j] * (to - from);
      // The ends of a part belong to it, whatever rounding says about the event there.
      const double inside = std::clamp(place, from + inside_part * (to - from), to - inside_part * (to - from));
      for (size_t i = 0; i < n; ++i) own_[i] = along(panel, place, i);
      const std::vector<double> there = state_at(other + inside * panel.length);
      std::fill(rates_.begin(), rates_.end(), 0.0);
      coupling_(own_, there, rates_);
      double product = 0;
      for (size_t i = 0; i < n; ++i) product += panel_value(&z_[panel.first * n + i], n, place) * rates_[i];
      sum += panel_weights()[j] * product;
    }
    return sum * (to - from) * panel.length;
  }

  double along(const OrbitTangents::Panel& panel, double place, size_t state) const {
    std::array<double, panel_order + 1> values{};
    for (size_t j = 0; j <= panel_order; ++j) values[j] = orbit_.nodes[panel.first + j].x[state];
    return panel_value(values.data(), 1, place);
  }

  /// The orbit at a time since its start; states that grow do so by their multiple in every period.
  std::vector<double> state_at(double t) const {
    const double T = std::abs(found_.period), laps = std::floor(t / T);
    const double end = found_.trajectory.end.t - found_.trajectory.start_time;
    const double place = std::clamp(t - laps * T, 0.0, end);
    std::vector<double> out = found_.trajectory(found_.trajectory.start_time + place);
    for (size_t i = 0; i < out.size() && i < found_.shift.size(); ++i) out[i] += laps * found_.shift[i];
    return out;
  }

  const OrbitTangents& orbit_;
  const Orbit& found_;
  const PhaseResponse& phase_;
  const Coupling& coupling_;
  mutable std::vector<double> rates_, own_;
  std::vector<double> z_, breaks_;
};

/// A zero between two phases of different signs, by bisection with secants (Illinois).
double zero_between(const std::function<double(double)>& of, double a, double fa, double b, double fb) {
  for (int step = 0; step < 200 && b - a > phase_resolution; ++step) {
    double c = (a * fb - b * fa) / (fb - fa);
    if (!(c > a && c < b) || step % 3 == 2) c = 0.5 * (a + b);
    const double fc = of(c);
    if (fc == 0) return c;
    if ((fc > 0) == (fa > 0)) {
      a = c, fa = fc;
    } else {
      b = c, fb = fc;
    }
  }
  return 0.5 * (a + b);
}

}  // namespace

Interaction interaction_of(const OrbitTangents& orbit, const Orbit& found, const PhaseResponse& phase,
                           const Coupling& coupling, int count) {
  const Drift H(orbit, found, phase, coupling);
  Interaction out;
  for (int j = 0; j < count; ++j) out.value.push_back(H(static_cast<double>(j) / count));
  // The difference of the phases drifts by H(-phi) - H(phi), which is odd: in phase and in antiphase it may rest.
  const std::function<double(double)> drift = [&](double phi) { return H(-phi) - H(phi); };
  double largest = 0;
  for (const double h : out.value) largest = std::max(largest, std::abs(h));
  if (largest == 0) return out;
  const double beside = beside_locked;
  std::vector<LockedPhase> half;
  double a = beside, fa = drift(a);
  out.locked.push_back({0, fa < 0});
  for (int j = 1; 2 * j <= count; ++j) {
    const bool last = 2 * (j + 1) > count;
    const double b = last ? 0.5 - beside : static_cast<double>(j) / count;
    const double fb = last ? drift(b) : out.value[at(count - j)] - out.value[at(j)];
    if ((fa > 0) != (fb > 0)) half.push_back({zero_between(drift, a, fa, b, fb), fa > 0});
    a = b, fa = fb;
  }
  for (const LockedPhase& l : half) out.locked.push_back(l);
  out.locked.push_back({0.5, fa > 0});
  for (size_t k = half.size(); k-- > 0;) out.locked.push_back({1 - half[k].phase, half[k].stable});
  return out;
}

}  // namespace saltus
