// Vector switches (unit(a, b)) where their argument is zero: which rest, which leave, and where to.
// docs/method/vector_friction.md
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/index.hpp"
#include "flow/act.hpp"
#include "flow/leading.hpp"
#include "flow/thresholds.hpp"
#include "solve/disc.hpp"

namespace saltus {

void Act::set_vector(Moment& now, int v, char letter) const {
  for (const int part : program_.parts(v)) now.mode.switches[at(part)] = letter;
}

/// A vector switch with all components at zero is to be decided, and is taken to rest until then.
void Act::look_at_vector(Moment& now, int v, bool at_start) {
  bool zero = true;
  for (const int part : program_.parts(v)) {
    const bool rested = now.mode.switches[at(part)] == '0' && !at_start;
    zero = zero && point_.sign(program_.point(part, 0), rested ? rested_bounds : zero_bounds) == 0;
  }
  set_vector(now, v, zero ? '0' : '~');
  for (const int part : program_.parts(v)) sigma_[at(part)] = 0;
}

/// The guard of a vector switch: it has come to rest (|h| = 0), or |s| has reached its bound. False for other guards.
bool Act::meets_vector(Moment& now, const Guard& g) {
  const bool of_switch = g.kind == GuardKind::surface || g.kind == GuardKind::sigma;
  if (!of_switch || program_.vector_of(g.item) < 0) return false;
  const int v = program_.vector_of(g.item);
  if (g.kind == GuardKind::surface) set_vector(now, v, '0');
  if (g.kind == GuardKind::sigma) released_.push_back(v);
  return true;
}

/// y = w - A s of the components of those at rest, with what else is unknown eliminated, about the given unknowns.
struct Act::VectorRates {
  DiscProblem discs;
  std::vector<int> rest;  // positions in active(): components, in order
  std::vector<int> other;
  Mat back, back_by_s;  // other -= back r_other + ...
  Vec r;
};

bool Act::vector_rates(const Moment& now, std::span<const int> resting, const std::vector<double>& unknowns,
                       VectorRates& out) {
  Vec r;
  Mat S;
  if (!series_.residuals_at(now.x, now.t(), now.counters, unknowns, r, S)) return false;
  const std::vector<int>& active = series_.active();
  std::vector<int> place(at(program_.unknowns()), -1);
  for (size_t a = 0; a < active.size(); ++a) place[at(active[a])] = static_cast<int>(a);
  out.rest.clear();
  out.other.clear();
  for (const int v : resting) {
    for (const int part : program_.parts(v)) {
      if (place[at(part)] < 0) return false;
      out.rest.push_back(place[at(part)]);
      place[at(part)] = -1;
    }
  }
  for (const int u : active) {
    if (place[at(u)] >= 0) out.other.push_back(place[at(u)]);
  }
  const auto part = [&](const std::vector<int>& rows, const std::vector<int>& columns) {
    Mat block(ix(rows.size()), ix(columns.size()));
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t j = 0; j < columns.size(); ++j) block(ix(i), ix(j)) = S(rows[i], columns[j]);
    }
    return block;
  };
  const auto values = [&](const std::vector<int>& rows) {
    Vec v(ix(rows.size()));
    for (size_t i = 0; i < rows.size(); ++i) v[ix(i)] = r[rows[i]];
    return v;
  };
  Mat slope = part(out.rest, out.rest);
  Vec y = values(out.rest);
  out.r = values(out.other);
  if (!out.other.empty()) {
    const Mat inverse = Orthogonal(part(out.other, out.other), independent_column).pseudo_inverse();
    const Mat so = part(out.rest, out.other), os = part(out.other, out.rest);
    out.back = inverse;
    out.back_by_s = inverse * os;
    slope = slope - so * out.back_by_s;
    y -= so * Vec(inverse * out.r);
  }
  Vec s(ix(out.rest.size()));
  for (size_t i = 0; i < out.rest.size(); ++i) s[ix(i)] = unknowns[at(active[at(out.rest[i])])];
  out.discs.A = -slope;
  out.discs.w = y - slope * s;
  return true;
}

/// The discs of all that rest at once, beside the equations of contacts, joints and scalar switches as they are: by
/// Newton's method, one step where the mode is affine.
bool Act::solve_vectors(const Moment& now, std::span<const int> resting, const std::vector<double>& bound,
                        std::vector<double>& unknowns, VectorRates& rates, Vec& y) {
  constexpr int most = 40;
  const std::vector<int>& active = series_.active();
  if (!series_.tape().slope_affine) {  // a normal force that the discs depend on
    if (!vector_rates(now, resting, unknowns, rates)) return false;
    const Vec shift = rates.other.empty() ? Vec() : Vec(rates.back * rates.r);
    for (Index i = 0; i < shift.size(); ++i) unknowns[at(active[at(rates.other[ux(i)])])] -= shift[i];
  }
  for (int step = 0; step < most; ++step) {
    if (!vector_rates(now, resting, unknowns, rates)) return false;
    rates.discs.sizes.clear();
    for (const int v : resting) rates.discs.sizes.push_back(static_cast<int>(program_.parts(v).size()));
    rates.discs.bound = bound;
    const DiscSolution found = solve_discs(rates.discs);
    if (!found.solved) return false;
    y = found.y;
    double change = 0;
    Vec ds(found.s.size());
    for (Index i = 0; i < ds.size(); ++i) {
      double& s = unknowns[at(active[at(rates.rest[ux(i)])])];
      ds[i] = found.s[i] - s;
      change = std::max(change, std::abs(ds[i]));
      s = found.s[i];
    }
    if (!rates.other.empty()) {
      const Vec shift = rates.back * rates.r + rates.back_by_s * ds;
      for (Index i = 0; i < shift.size(); ++i) {
        double& u = unknowns[at(active[at(rates.other[ux(i)])])];
        u -= shift[i];
        change = std::max(change, std::abs(shift[i]) / (1 + std::abs(u)));
      }
    }
    if (series_.tape().slope_affine || change < same_solution * 1e-3) return true;
  }
  return false;
}

/// True if |s| of a vector switch at its bound goes on growing: b^2 - s.s by its first coefficient that counts.
bool Act::outgrows(const Moment& now, int v, double bound) {
  series_.set_mode(now.mode);
  const int order = std::min(decision_order, series_.order());
  if (series_.expand(now.x, now.t(), now.counters, order) != SeriesStatus::ok) return false;
  std::vector<double> room(at(order) + 1, 0.0);
  for (const int part : program_.parts(v)) {
    const double* s = series_.unknown(part);
    for (int k = 0; k <= order; ++k) {
      for (int j = 0; j <= k; ++j) room[at(k)] -= s[j] * s[k - j];
    }
  }
  room[0] = 0;
  return leading_coefficient(room.data(), 1, order - 1, scale(), direction_, sigma_rate_noise * bound * bound / scale())
             .sign < 0;
}

/// Redundant forces (feet) at rest: of all distributions the one that uses the least common share of the discs.
void Act::spread_in_discs(VectorRates& rates, std::vector<double>& unknowns) {
  DiscProblem problem = rates.discs;
  if (Orthogonal(problem.A, independent_column).rank() == problem.A.rows()) return;
  const std::vector<double> bound = problem.bound;
  const double size = problem.w.max_abs() + problem.A.max_abs();
  Vec best;
  double low = 0, high = 1;
  constexpr int halvings = 40;
  for (int i = 0; i < halvings; ++i) {
    const double share = i == 0 ? 1.0 : 0.5 * (low + high);
    for (size_t k = 0; k < bound.size(); ++k) problem.bound[k] = share * bound[k];
    const DiscSolution found = solve_discs(problem);
    const bool rests = found.solved && found.y.max_abs() <= clear_leave * size;
    if (rests) best = found.s;
    (rests ? high : low) = share;
    if (i == 0 && !rests) return;
  }
  for (size_t i = 0; i < rates.rest.size(); ++i) unknowns[at(series_.active()[at(rates.rest[i])])] = best[ix(i)];
}

/// The first force of a joint inside abs whose letter is not its side just after now, as the mode gives it; -1: none,
/// -2: the mode gives no forces. `decided`: one that must have a side.
int Act::misfit_force(Moment& now, int decided) {
  series_.set_mode(now.mode);
  const int order = std::min(decision_order, series_.order());
  if (series_.expand(now.x, now.t(), now.counters, order) != SeriesStatus::ok) return -2;
  int first = -1;
  for (const int i : joint_forces_) {
    const double* force = series_.unknown(program_.switches() + force_of(i));
    const auto [leading, side] = leading_coefficient(force, 0, order - 2, scale(), direction_);
    now.known[at(i)] = side == 0 ? 0 : leading;  // where it passes zero its guard begins behind
    const bool fits = side == 0 ? i != decided : (side > 0) == (now.mode.switches[at(i)] == '+');
    if (first < 0 && !fits) first = i;
  }
  return first;
}

/// Forces of joints inside abs: N = a + b |N|, by their sides. Of those that do not fit the first is turned, which ends
/// where friction is small enough to leave one N for every a (Murty's method).
std::optional<Fate> Act::settle_forces(Moment& now) {
  const auto turn = [&now](int i) { now.mode.switches[at(i)] = now.mode.switches[at(i)] == '+' ? '-' : '+'; };
  const auto fate = [&](Why why, int i, const char* what) {
    return Fate{why, fmt::format("{} '{}' keeps its joint under the friction that it makes at t = {}", what,
                                 model_.form.switches[at(i)].name, now.t())};
  };
  constexpr size_t most_turned_freely = 10;
  const size_t most = size_t{2} << std::min(joint_forces_.size(), most_turned_freely);
  int misfit = misfit_force(now, -1);
  for (size_t round = 0; misfit >= 0; ++round) {
    if (round == most) return fate(Why::inconsistent, misfit, "no force");
    turn(misfit);
    misfit = misfit_force(now, -1);
  }
  if (misfit == -2) return std::nullopt;
  const std::vector<int> known = now.known;
  for (const int i : joint_forces_) {
    turn(i);
    const bool another = misfit_force(now, i) == -1;
    turn(i);
    if (another) return fate(Why::nonunique, i, "the solution is not unique: more than one force");
  }
  now.known = known;
  series_.set_mode(now.mode);
  return std::nullopt;
}

std::optional<Fate> Act::settle_vectors(Moment& now) {
  const std::vector<int> released = std::exchange(released_, {});
  std::vector<int> resting;
  for (int v = 0; v < program_.vectors(); ++v) {
    char& letter = now.mode.switches[at(program_.parts(v)[0])];
    if (letter == '^') set_vector(now, v, '0');
    if (letter == '0') resting.push_back(v);
  }
  if (resting.empty()) return std::nullopt;
  const auto is_released = [&](int v) { return std::find(released.begin(), released.end(), v) != released.end(); };
  std::vector<double> bound;
  for (const int v : resting) bound.push_back(is_released(v) ? 1.0 : series_.hold(program_.parts(v)[0]));
  series_.set_mode(now.mode);
  if (series_.hold(program_.parts(resting[0])[0]) > 0) series_.project(now.x, now.t(), now.counters);
  std::vector<double> unknowns(at(program_.unknowns()), 0.0);
  for (int u = 0; u < program_.unknowns(); ++u) unknowns[at(u)] = series_.unknown(u)[0];
  VectorRates rates;
  Vec y;
  std::vector<char> leaves(resting.size(), 0);
  for (size_t round = 0; round <= resting.size(); ++round) {
    for (const int v : resting) {
      for (const int part : program_.parts(v)) unknowns[at(part)] = 0;
    }
    series_.set_mode(now.mode);
    if (!solve_vectors(now, resting, bound, unknowns, rates, y))
      return Fate{Why::inconsistent,
                  fmt::format("no friction in the disc of '{}' fits at t = {}",
                              model_.form.switches[at(program_.parts(resting[0])[0])].name, now.t())};
    bool anew = false;  // those that slip under static friction slip for good
    Index from = 0;
    for (size_t k = 0; k < resting.size(); ++k) {
      const Index d = ix(program_.parts(resting[k]).size());
      const double size = rates.discs.w.segment(from, d).norm() + rates.discs.A.block(from, from, d, d).max_abs();
      leaves[k] = y.segment(from, d).norm() > clear_leave * size;
      if (leaves[k] && bound[k] > 1) {
        bound[k] = 1;
        anew = true;
      }
      from += d;
    }
    if (!anew) break;
  }
  if (std::find(leaves.begin(), leaves.end(), 1) == leaves.end() && rates.other.empty())
    spread_in_discs(rates, unknowns);
  series_.guess(unknowns);
  for (size_t k = 0; k < resting.size(); ++k) {
    if (leaves[k]) continue;
    double length = 0;
    for (const int part : program_.parts(resting[k])) length = std::hypot(length, unknowns[at(part)]);
    if (length < bound[k] * (1 - bound_margin)) continue;
    leaves[k] = outgrows(now, resting[k], bound[k]);
  }
  for (size_t k = 0; k < resting.size(); ++k) {
    if (leaves[k]) set_vector(now, resting[k], '^');
  }
  series_.set_mode(now.mode);
  series_.guess(unknowns);
  now.guess = unknowns;
  return std::nullopt;
}

}  // namespace saltus
