// Tangents through an impact: Newton's and Coulomb's laws linearised.
#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "flow/impact.hpp"
#include "flow/thresholds.hpp"
#include "flow/variation.hpp"

namespace saltus {

/// An impact with everything frozen that was decided in it.
struct Variation::Impact {
  const TangentTape& tape;
  std::vector<int> struck, stuck;  ///< contacts with an impulse, switches that stick
  const Jet<double>&minus, &plus;  ///< what events look at, at x- and at x+
  Mat D;                           ///< directions of the impulses
  Vec impulse;                     ///< Lambda: x+ = x- + D Lambda
};

/// With w the gap rates and r the restitution, the change D Lambda obeys
///   w_j(x+) + r_j w_j(x-) = 0 for every contact struck,   h_i(x+) = 0 for every switch that sticks
/// in which Lambda and the sigma of what sticks are unknown.
bool Variation::pass_hit(const Hit& hit, std::span<double> x, double t, Mat& z, const Mat& dt) {
  const std::vector<double> x_minus(x.begin(), x.end());
  if (!repeat_impact(*memory_.series, hit, x, t, direction_)) return false;
  turn_through(hit, x_minus, x, t, z, dt);
  return true;
}

/// Z through an impact between two states.
void Variation::turn_through(const Hit& hit, std::span<const double> x_minus, std::span<const double> x_plus, double t,
                             Mat& z, const Mat& dt) {
  if (ImpulsePath::needed(program_, hit.contacts)) return turn_along(hit, x_minus, x_plus, t, z, dt);
  const Impact impact = impact_between(hit, x_minus, x_plus, t);
  const Index struck = ix(impact.struck.size()), all = struck + ix(impact.stuck.size());

  const Mat moved = z + turn(impact, z, dt);
  Mat by_unknown(program_.states(), all), J(all, all), r(all, z.cols());
  by_unknown << impact.D, turn_by_sigma(impact);
  const auto demand = [&](Index k, int row) {  // that a function stays what it is at x+
    J.row(k) = row_slope(row, impact.plus, impact.tape) * by_unknown;
    r.row(k) = row_tangent(row, impact.plus, impact.tape, moved, &dt);
  };
  for (Index k = 0; k < struck; ++k) {
    const int j = impact.struck[ux(k)];
    demand(k, gap_rate(impact, j));
    r.row(k) += rebound(impact, j, z, dt);
  }
  for (Index k = struck; k < all; ++k) demand(k, program_.event_surface(impact.stuck[ux(k - struck)]));
  if (all == 0) {
    z = moved;
  } else if (program_.any_joint()) {  // which may be redundant
    z = moved - by_unknown * Mat(Orthogonal(J, independent_column).pseudo_inverse() * r);
  } else {
    z = moved - by_unknown * Lu(J).solve_columns(r);
  }
}

/// Turns tangents along a path that bends: they obey dZ/ds = sum_j Lambda_j dD_j, and so do those by Lambda and sigma.
void Variation::turn_along(const Hit& hit, std::span<const double> x_minus, std::span<const double> x_plus, double t,
                           Mat& z, const Mat& dt) {
  std::optional<BentHit> bent = repeat_bent(*memory_.series, hit, x_minus, t, direction_);
  if (!bent || program_.any_joint()) {  // how the share of joints turns with the position is not known here
    z.fill(std::nan(""));
    return;
  }
  const Impact impact = impact_between(hit, x_minus, x_plus, t);
  const Mat before = z;
  ImpulsePath& path = bent->path;
  const std::optional<ImpulsePath::End> end = path.follow(bent->impulse, bent->sigma);
  Mat own(ix(path.moved().size()), z.cols()), others = z;
  for (size_t a = 0; a < path.moved().size(); ++a) {
    own.row(ix(a)) = z.row(path.moved()[a]);
    others.row(path.moved()[a]).setZero();
  }
  const auto place = [&](int i) {
    return std::lower_bound(path.moved().begin(), path.moved().end(), i) - path.moved().begin();
  };
  const auto forcing = [&](const Jet<double>& jet, const TangentTape& tape) {
    Mat B = Mat::Zero(own.rows(), own.cols());
    for (size_t k = 0; k < hit.contacts.size(); ++k) {
      const auto& direction = model_.form.gaps[at(hit.contacts[k])].direction;
      for (size_t q = 0; q < direction.size(); ++q) {
        const int row = program_.event_direction(hit.contacts[k], static_cast<int>(q));
        B.row(place(direction[q].state)) += bent->impulse[ix(k)] * row_tangent(row, jet, tape, others, &dt);
      }
    }
    return B;
  };
  if (!end || !path.carry(own, forcing)) {
    z.fill(std::nan(""));
    return;
  }
  std::vector<Index> unknowns;
  for (size_t k = 0; k < hit.contacts.size(); ++k) {
    if (hit.impulse[k] != 0) unknowns.push_back(ix(k));
  }
  const Index struck = ix(unknowns.size()), all = struck + ix(bent->stuck.size());
  for (const Index b : bent->stuck) unknowns.push_back(ix(hit.contacts.size()) + b);
  Mat by_unknown = Mat::Zero(program_.states(), all), J(all, all), r(all, z.cols());
  for (size_t a = 0; a < path.moved().size(); ++a) {
    z.row(path.moved()[a]) = own.row(ix(a));
    for (Index k = 0; k < all; ++k) by_unknown(path.moved()[a], k) = end->by_unknown(ix(a), unknowns[ux(k)]);
  }
  for (Index k = 0; k < all; ++k) {
    const bool contact = k < struck;
    const int item = contact ? hit.contacts[ux(unknowns[ux(k)])] : path.sets()[ux(bent->stuck[ux(k - struck)])];
    const int row = contact ? path.tape().rungs[at(program_.switches() + item)][1] : program_.event_surface(item);
    J.row(k) = row_slope(row, path.jet(), path.tape()) * by_unknown;
    r.row(k) = row_tangent(row, path.jet(), path.tape(), z, &dt);
    if (contact) r.row(k) += rebound(impact, item, before, dt);
  }
  if (all > 0) z -= by_unknown * Lu(J).solve_columns(r);
}

Variation::Impact Variation::impact_between(const Hit& hit, std::span<const double> x_minus,
                                            std::span<const double> x_plus, double t) {
  const TangentTape& tape = program_.tangent(hit.mode.switches);
  std::vector<double> sigma(at(program_.switches()), 0.0);
  for (size_t i = 0; i < sigma.size(); ++i) {
    const char c = hit.mode.switches[i];
    sigma[i] = c == '+' ? 1.0 : c == '-' ? -1.0 : c == '=' ? model_.form.switches[i].at_zero : 0.0;
  }
  for (size_t b = 0; b < hit.switches.size(); ++b) sigma[at(hit.switches[b].first)] = hit.sigma[b];
  auto& [before, after] = lent_->impact_jets[&tape.event.tape];
  Impact out{tape,
             {},
             {},
             impact_point(before, hit, tape.event.tape, x_minus, sigma, t),
             impact_point(after, hit, tape.event.tape, x_plus, sigma, t),
             {},
             {}};
  for (const auto& [i, letter] : hit.switches) {
    if (letter == '0') out.stuck.push_back(i);
  }
  for (size_t k = 0; k < hit.contacts.size(); ++k) {
    if (hit.impulse[k] != 0) out.struck.push_back(hit.contacts[k]);
  }
  for (int j = 0; j < program_.constraints() && !out.struck.empty(); ++j) {
    if (program_.joint(j) && model_.form.gaps[at(j)].degree > 0) out.struck.push_back(j);
  }

  out.D = Mat::Zero(program_.states(), ix(out.struck.size()));
  for (size_t k = 0; k < out.struck.size(); ++k) {
    const auto& direction = model_.form.gaps[at(out.struck[k])].direction;
    for (size_t q = 0; q < direction.size(); ++q) {
      const int row = program_.event_direction(out.struck[k], static_cast<int>(q));
      out.D(direction[q].state, ix(k)) = value_of(out.minus, row);
    }
  }
  // Impulses at this state, which may differ from those of the event that is repeated.
  Vec change(program_.states());
  for (int i = 0; i < program_.states(); ++i) change[i] = x_plus[at(i)] - x_minus[at(i)];
  if (out.struck.size() == 1) {
    out.impulse = Vec::Constant(1, out.D.col(0).dot(change) / out.D.col(0).squaredNorm());
  } else if (!out.struck.empty()) {
    out.impulse = Orthogonal(out.D).solve(change);
  }
  return out;
}

const Jet<double>& Variation::impact_point(std::unique_ptr<Jet<double>>& jet, const Hit& hit, const Tape& tape,
                                           std::span<const double> x, std::span<const double> sigma, double t) const {
  if (!jet) {
    jet = std::make_unique<Jet<double>>(tape, 0);
    jet->bind(options_.parameters);
  }
  for (size_t i = 0; i < tape.states.size(); ++i) *(*jet)[tape.states[i]] = x[i];
  for (size_t i = 0; i < tape.sigmas.size(); ++i) *(*jet)[tape.sigmas[i]] = sigma[i];
  for (size_t i = 0; i < tape.lambdas.size(); ++i) *(*jet)[tape.lambdas[i]] = 0.0;
  for (size_t c = 0; c < tape.counters.size(); ++c) {
    if (tape.counters[c] >= 0) jet->set_counter(c, hit.counters[c]);
  }
  jet->set_time(t, 0);
  jet->free(0);
  jet->bound(0);
  return *jet;
}

/// How D Lambda moves with the state before, Lambda and sigma held.
Mat Variation::turn(const Impact& impact, const Mat& z, const Mat& dt) const {
  Mat out = Mat::Zero(z.rows(), z.cols());
  for (size_t k = 0; k < impact.struck.size(); ++k) {
    const auto& direction = model_.form.gaps[at(impact.struck[k])].direction;
    for (size_t q = 0; q < direction.size(); ++q) {
      const int row = program_.event_direction(impact.struck[k], static_cast<int>(q));
      out.row(direction[q].state) += impact.impulse[ix(k)] * row_tangent(row, impact.minus, impact.tape, z, &dt);
    }
  }
  return out;
}

/// How D Lambda moves with the sigma of each switch that sticks.
Mat Variation::turn_by_sigma(const Impact& impact) const {
  Mat out = Mat::Zero(program_.states(), ix(impact.stuck.size()));
  for (size_t k = 0; k < impact.struck.size(); ++k) {
    const auto& direction = model_.form.gaps[at(impact.struck[k])].direction;
    for (size_t q = 0; q < direction.size(); ++q) {
      const int row = program_.event_direction(impact.struck[k], static_cast<int>(q));
      for (const SlopeEntry& e : impact.tape.event.by_unknown) {
        if (e.row != row) continue;
        for (size_t s = 0; s < impact.stuck.size(); ++s) {
          if (impact.stuck[s] == e.column)
            out(direction[q].state, ix(s)) += impact.impulse[ix(k)] * value_of(impact.minus, e.output);
        }
      }
    }
  }
  return out;
}

int Variation::gap_rate(const Impact& impact, int contact) const {
  return impact.tape.rungs[at(program_.switches() + contact)].back();  // of a joint of degree 1, its value
}

/// How r w(x-) of a contact moves: backward in time r is 1/restitution.
Mat Variation::rebound(const Impact& impact, int contact, const Mat& z, const Mat& dt) const {
  if (program_.joint(contact)) return Mat::Zero(1, z.cols());
  const int rate = gap_rate(impact, contact), factor = program_.event_restitution(contact);
  const double speed = value_of(impact.minus, rate), restitution = value_of(impact.minus, factor);
  // A contact that was about to open and is pressed by the others ends without velocity.
  // (Alone it does so only where an orbit is continued past its grazing: there the law of the impact stays.)
  if (impact.struck.size() > 1 && direction_ * speed > 0) return Mat::Zero(1, z.cols());
  const double back = direction_ > 0 ? restitution : 1 / restitution;
  return back * row_tangent(rate, impact.minus, impact.tape, z, &dt) +
         (direction_ > 0 ? 1.0 : -back * back) * speed * row_tangent(factor, impact.minus, impact.tape, z, &dt);
}

}  // namespace saltus
