#include "flow/impact.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/index.hpp"
#include "flow/thresholds.hpp"
#include "solve/disc.hpp"
#include "solve/lcp.hpp"

namespace saltus {
namespace {

/// Data of the model at a point that the impact law needs.
class Collision {
 public:
  Collision(Series& series, std::span<const int> contacts, std::vector<int> switches, size_t states)
      : series_(series), program_(series.program()), contacts_(contacts), switches_(std::move(switches)) {
    const Form& form = program_.model().form;
    const int m = program_.switches();
    const Jet<double>& manifold = series.manifold();
    const Jet<double>& actions = series.actions();
    const size_t n = contacts.size(), s = switches_.size();
    gap_rate.resize(ix(n));
    restitution.resize(ix(n));
    gap_gradient.setZero(ix(n), ix(states));
    for (size_t a = 0; a < n; ++a) {
      const ManifoldFunction& rate = series.tape().manifolds[at(m + contacts[a])][1];
      gap_rate[ix(a)] = manifold.output(at(rate.value))[0];
      for (const auto& [i, output] : rate.gradient) gap_gradient(ix(a), i) = manifold.output(at(output))[0];
      restitution[ix(a)] = actions.output(program_.restitution(contacts[a]))[0];
    }
    surface.resize(ix(s));
    surface_gradient.setZero(ix(s), ix(states));
    for (size_t b = 0; b < s; ++b) {
      const std::optional<Expr>& rebound = form.switches[at(switches_[b])].rebound;
      slip.push_back(series.surface(switches_[b])[0]);
      // Tangential restitution e: the laws are those of h+ + e*h-.
      surface[ix(b)] = slip.back() * (rebound ? 1 + constant_value(*rebound, series.parameters()) : 1);
      const std::vector<ManifoldFunction>& functions = series.tape().manifolds[at(switches_[b])];
      if (functions.empty()) continue;  // the surface does not feel forces
      for (const auto& [i, output] : functions[0].gradient) surface_gradient(ix(b), i) = manifold.output(at(output))[0];
    }
    directions_of_ = &form;
    states_ = states;
    if (program_.any_joint()) find_joint_share();
  }

  /// D(sigma): a column per contact.
  Mat directions(const Vec& sigma) {
    std::vector<std::pair<int, double>> values;
    for (size_t b = 0; b < switches_.size(); ++b) values.emplace_back(switches_[b], sigma[ix(b)]);
    const Jet<double>& actions = series_.actions(values);
    Mat D = Mat::Zero(ix(states_), ix(contacts_.size()));
    for (size_t a = 0; a < contacts_.size(); ++a) {
      const auto& direction = directions_of_->gaps[at(contacts_[a])].direction;
      for (size_t d = 0; d < direction.size(); ++d)
        D(direction[d].state, ix(a)) = actions.output(program_.direction(contacts_[a], static_cast<int>(d)))[0];
    }
    return joint_share_.size() > 0 ? Mat(D - joint_share_ * D) : D;
  }

  Vec gap_rate, restitution, surface;
  Mat gap_gradient, surface_gradient;
  std::vector<double> slip;     ///< surfaces before, as they are
  ImpulsePath* path = nullptr;  ///< where directions depend on what impulses change

  void follow(ImpulsePath& bent) {
    path = &bent;
    if (joint_share_.size() > 0) bent.share_with_joints(joint_share_);
  }

 private:
  /// Joints take impulses of either sign, J Lambda_J = -J D Lambda: they are eliminated. With J the gradients of their
  /// rates and D_J their directions, an impulse along d moves x by d - D_J (J D_J)^+ J d.
  void find_joint_share() {
    std::vector<int> joints;
    for (int j = 0; j < program_.constraints(); ++j) {
      if (program_.joint(j) && directions_of_->gaps[at(j)].degree > 0) joints.push_back(j);
    }
    if (joints.empty()) return;
    const Jet<double>& manifold = series_.manifold();
    const Jet<double>& actions = series_.actions();
    Mat J = Mat::Zero(ix(joints.size()), ix(states_)), D = Mat::Zero(ix(states_), ix(joints.size()));
    for (size_t a = 0; a < joints.size(); ++a) {
      const ManifoldFunction& rate = series_.tape().manifolds[at(program_.switches() + joints[a])].back();
      for (const auto& [i, output] : rate.gradient) J(ix(a), i) = manifold.output(at(output))[0];
      const auto& direction = directions_of_->gaps[at(joints[a])].direction;
      for (size_t d = 0; d < direction.size(); ++d)
        D(direction[d].state, ix(a)) = actions.output(program_.direction(joints[a], static_cast<int>(d)))[0];
    }
    joint_share_ = D * Mat(Orthogonal(J * D, independent_column).pseudo_inverse() * J);
  }

  Series& series_;
  const Program& program_;
  std::span<const int> contacts_;
  Mat joint_share_;  // of what moves x, taken back by the joints
  std::vector<int> switches_;
  const Form* directions_of_ = nullptr;
  size_t states_ = 0;
};

/// An answer to the laws.
struct Answer {
  Vec impulse, sigma, change;
  Vec gap_rate, surface;   ///< after the impact
  double normal_work = 0;  ///< sum of the integrals of w_j dLambda_j, of a path that bends
};

/// Contacts hit and letters of switches: the unknowns are the impulses hit and the sigma of letters '0'.
struct Hits {
  std::vector<char> hit;
  std::string letters;
};

/// Several switches whose surfaces no impulse can tell apart (both ends of a rod that lies flat): they share one sigma,
/// so that each contact carries its part of what they need together.
struct Shared {
  std::vector<std::pair<size_t, double>> members;  // switch, sign of its sigma
};

/// How each contact's impulse, and friction in it, moves the surface of a switch.
Vec response(Collision& c, size_t b) {
  const Index s = c.surface.size();
  std::vector<Mat> columns{c.directions(Vec::Zero(s))};
  for (Index k = 0; k < s; ++k) {
    Vec one = Vec::Zero(s);
    one[k] = 1;
    columns.push_back(c.directions(one));
  }
  Vec out(columns.size() * static_cast<size_t>(columns[0].cols()));
  Index place = 0;
  for (const Mat& D : columns) {
    for (Index i = 0; i < D.cols(); ++i) out[place++] = c.surface_gradient.row(ix(b)).dot(D.col(i));
  }
  return out;
}

std::vector<Shared> share(Collision& c, const std::vector<size_t>& slid) {
  std::vector<Shared> out;
  std::vector<Vec> leaders;
  for (const size_t b : slid) {
    const Vec moves = response(c, b);
    size_t which = 0;
    double sign = 0;
    for (; which < out.size() && sign == 0; ++which) {
      const double size = leaders[which].norm() * moves.norm(), along = leaders[which].dot(moves);
      if (size > 0 && std::abs(along) >= (1 - independent_column) * size) sign = along > 0 ? 1 : -1;
    }
    if (sign != 0) {
      out[which - 1].members.emplace_back(b, sign);
    } else {
      out.push_back({{{b, 1.0}}});
      leaders.push_back(moves);
    }
  }
  return out;
}

/// With directions as they are before.
bool solve_straight(Collision& c, const Vec& aim, const Hits& a, Answer& out) {
  const size_t n = a.hit.size(), s = a.letters.size();
  std::vector<size_t> hit, slid;
  for (size_t i = 0; i < n; ++i) {
    if (a.hit[i]) hit.push_back(i);
  }
  out.impulse = Vec::Zero(ix(n));
  out.sigma = Vec::Zero(ix(s));
  for (size_t b = 0; b < s; ++b) {
    if (a.letters[b] == '0') slid.push_back(b);
    out.sigma[ix(b)] = a.letters[b] == '+' ? 1 : a.letters[b] == '-' ? -1 : 0;
  }
  const std::vector<Shared> shared = share(c, slid);
  const Index size = ix(hit.size() + shared.size());
  Mat D = c.directions(out.sigma);
  for (int iteration = 0; iteration < 30; ++iteration) {
    out.change = D * out.impulse;
    if (size == 0) return true;
    Vec r(size);
    Mat J(size, size);
    const auto fill_row = [&](Index row, double value, const auto& gradient) {
      r[row] = value + gradient.dot(out.change);
      for (size_t k = 0; k < hit.size(); ++k) J(row, ix(k)) = gradient.dot(D.col(ix(hit[k])));
    };
    for (size_t k = 0; k < hit.size(); ++k)
      fill_row(ix(k), c.gap_rate[ix(hit[k])] - aim[ix(hit[k])], c.gap_gradient.row(ix(hit[k])));
    const auto leader = [&](size_t k) { return ix(shared[k].members[0].first); };
    for (size_t k = 0; k < shared.size(); ++k)
      fill_row(ix(hit.size() + k), c.surface[leader(k)], c.surface_gradient.row(leader(k)));
    // At no impulse yet, friction is felt as that of a unit impulse: the first step must not be singular.
    const Vec impulse = iteration == 0 ? Vec(Vec::Ones(ix(n))) : out.impulse;
    const double strength = impulse.max_abs();  // sigma times it is an unknown like the impulses
    if (!(strength > 0)) return false;
    for (size_t l = 0; l < shared.size(); ++l) {
      Vec slope = Vec::Zero(D.rows());
      for (const auto& [b, sign] : shared[l].members) {  // D is affine in each sigma
        Vec up = out.sigma, down = out.sigma;
        up[ix(b)] = 1;
        down[ix(b)] = -1;
        slope += sign * (c.directions(up) - c.directions(down)) * (impulse / strength) / 2;
      }
      for (size_t k = 0; k < hit.size(); ++k) J(ix(k), ix(hit.size() + l)) = c.gap_gradient.row(ix(hit[k])).dot(slope);
      for (size_t k = 0; k < shared.size(); ++k)
        J(ix(hit.size() + k), ix(hit.size() + l)) = c.surface_gradient.row(leader(k)).dot(slope);
    }
    // Contacts may say the same twice (a table on four legs): the shortest answer, if it is one.
    const Orthogonal factors(J, independent_column);
    Vec step = -factors.solve(r);
    if (!step.allFinite() || (J * step + r).max_abs() > 1e-9 * r.max_abs()) return false;
    step.tail(ix(shared.size())) /= strength;
    double change = 0;
    for (size_t k = 0; k < hit.size(); ++k) {
      out.impulse[ix(hit[k])] += step[ix(k)];
      change = std::max(change, std::abs(step[ix(k)]) / (std::abs(out.impulse[ix(hit[k])]) + 1e-300));
    }
    for (size_t l = 0; l < shared.size(); ++l) {
      for (const auto& [b, sign] : shared[l].members) out.sigma[ix(b)] += sign * step[ix(hit.size() + l)];
      change = std::max(change, std::abs(step[ix(hit.size() + l)]) / (1 + std::abs(out.sigma[leader(l)])));
    }
    D = c.directions(out.sigma);
    if (change < 4 * eps) break;
    if (iteration == 29 && change > 1e-10) return false;
  }
  out.change = D * out.impulse;
  return true;
}

/// Along a path that bends: Newton's method from where straight impulses lead.
bool solve_bent(Collision& c, const Vec& aim, const Hits& a, Answer& out) {
  std::vector<Index> hit, slid;
  for (size_t i = 0; i < a.hit.size(); ++i) {
    if (a.hit[i]) hit.push_back(ix(i));
  }
  for (size_t b = 0; b < a.letters.size(); ++b) {
    if (a.letters[b] == '0') slid.push_back(ix(b));
  }
  const double speed = c.gap_rate.max_abs();
  if (!solve_straight(c, aim, a, out)) {
    out.sigma = Vec::Zero(ix(a.letters.size()));
    for (size_t b = 0; b < a.letters.size(); ++b)
      out.sigma[ix(b)] = a.letters[b] == '+' ? 1 : a.letters[b] == '-' ? -1 : 0;
  }
  for (const Index b : slid) out.sigma[b] = std::clamp(out.sigma[b], -1.0, 1.0);
  out.impulse.setZero(ix(a.hit.size()));
  for (const Index j : hit) {  // as if alone
    const double own = c.gap_gradient.row(j).dot(c.directions(out.sigma).col(j));
    out.impulse[j] = own > 0 ? (aim[j] - c.gap_rate[j]) / own : speed;
    if (out.impulse[j] == 0) out.impulse[j] = speed;
  }
  const Index n = ix(hit.size()), size = n + ix(slid.size());
  std::optional<ImpulsePath::End> end = c.path->follow(out.impulse, out.sigma);
  for (int round = 0; end && size > 0 && round < 60; ++round) {
    Vec r(size);
    Mat J(size, size);
    for (Index k = 0; k < n; ++k) {
      r[k] = end->gap_rate[hit[ux(k)]] - aim[hit[ux(k)]];
      for (Index l = 0; l < n; ++l) J(k, l) = end->gap_by_impulse(hit[ux(k)], hit[ux(l)]);
      for (Index l = n; l < size; ++l) J(k, l) = end->gap_by_sigma(hit[ux(k)], slid[ux(l - n)]);
    }
    for (Index k = n; k < size; ++k) {
      r[k] = end->surface[slid[ux(k - n)]];
      for (Index l = 0; l < n; ++l) J(k, l) = end->surface_by_impulse(slid[ux(k - n)], hit[ux(l)]);
      for (Index l = n; l < size; ++l) J(k, l) = end->surface_by_sigma(slid[ux(k - n)], slid[ux(l - n)]);
    }
    Vec step = -Orthogonal(J, independent_column).solve(r);
    if (!step.allFinite() || (J * step + r).max_abs() > 1e-6 * r.max_abs()) return false;
    double share = 1, change = 0;  // no step is larger than the impulses themselves, or a sigma's range
    const double strongest = out.impulse.max_abs();
    for (Index k = 0; k < n; ++k) share = std::min(share, 0.9 * strongest / std::abs(step[k]));
    for (Index k = n; k < size; ++k) share = std::min(share, 1 / std::abs(step[k]));
    const Answer last = out;
    for (std::optional<ImpulsePath::End> next; share > 1e-3; share /= 2) {
      out = last;
      for (Index k = 0; k < n; ++k) out.impulse[hit[ux(k)]] += share * step[k];
      for (Index k = n; k < size; ++k) out.sigma[slid[ux(k - n)]] += share * step[k];
      next = c.path->follow(out.impulse, out.sigma);
      if (!next) continue;
      end = std::move(next);
      break;
    }
    if (share <= 1e-3) return false;
    for (Index k = 0; k < n; ++k) change = std::max(change, std::abs(step[k]) / strongest);
    for (Index k = n; k < size; ++k) change = std::max(change, std::abs(step[k]));
    if (change < impulse_path_error) break;
    if (round == 59) return false;
  }
  if (!end) return false;
  out.change = end->change;
  out.gap_rate = end->gap_rate;
  out.surface = end->surface;
  out.normal_work = end->normal_work;
  return true;
}

bool solve_assignment(Collision& c, const Vec& aim, const Hits& a, Answer& out) {
  if (c.path) return solve_bent(c, aim, a, out);
  if (!solve_straight(c, aim, a, out)) return false;
  out.gap_rate = c.gap_rate + c.gap_gradient * out.change;
  out.surface = c.surface + c.surface_gradient * out.change;
  return true;
}

bool fits_laws(const Collision& c, const Vec& aim, const Hits& a, const Answer& answer) {
  const double share = 1e-9;
  const Vec &after = answer.gap_rate, &surface = answer.surface;
  const double speed = c.gap_rate.max_abs();
  const double strongest = answer.impulse.max_abs();
  for (size_t i = 0; i < a.hit.size(); ++i) {
    if (a.hit[i] && answer.impulse[ix(i)] < -share * strongest) return false;
    if (!a.hit[i] && after[ix(i)] < aim[ix(i)] - share * speed) return false;
  }
  for (size_t b = 0; b < a.letters.size(); ++b) {
    const double size = share * (std::abs(c.surface[ix(b)]) + std::abs(surface[ix(b)] - c.surface[ix(b)]));
    if (a.letters[b] == '0' && std::abs(answer.sigma[ix(b)]) > 1 + share) return false;
    if (a.letters[b] == '+' && surface[ix(b)] < -size) return false;
    if (a.letters[b] == '-' && surface[ix(b)] > size) return false;
  }
  return true;
}

/// All assignments, if there are few enough.
bool for_all_assignments(size_t contacts, size_t switches, const std::function<void(const Hits&)>& look) {
  constexpr double most = 5000;
  if (std::pow(2.0, static_cast<double>(contacts)) * std::pow(3.0, static_cast<double>(switches)) > most) return false;
  Hits a{std::vector<char>(contacts, 0), std::string(switches, '+')};
  for (size_t hits = 0; hits < (size_t{1} << contacts); ++hits) {
    for (size_t i = 0; i < contacts; ++i) a.hit[i] = (hits >> i) & 1;
    size_t count = 1;
    for (size_t b = 0; b < switches; ++b) count *= 3;
    for (size_t code = 0; code < count; ++code) {
      for (size_t b = 0, rest = code; b < switches; ++b, rest /= 3) a.letters[b] = "+-0"[rest % 3];
      look(a);
    }
  }
  return true;
}

/// Many contacts: from all that approach hit and all switches as they slip, change what does not fit, one at a time.
bool follow_active_set(Collision& c, const Vec& aim, Hits& a, Answer& answer) {
  const size_t n = a.hit.size(), s = a.letters.size();
  for (size_t i = 0; i < n; ++i) a.hit[i] = c.gap_rate[ix(i)] < 0;
  for (size_t b = 0; b < s; ++b) a.letters[b] = c.surface[ix(b)] > 0 ? '+' : c.surface[ix(b)] < 0 ? '-' : '0';
  for (size_t round = 0; round < 20 * (n + s) + 100; ++round) {
    if (!solve_assignment(c, aim, a, answer)) return false;
    if (fits_laws(c, aim, a, answer)) return true;
    const Vec &after = answer.gap_rate, &surface = answer.surface;
    bool changed = false;
    for (size_t i = 0; i < n && !changed; ++i) {
      const bool pulls = a.hit[i] && answer.impulse[ix(i)] < 0, sinks = !a.hit[i] && after[ix(i)] < aim[ix(i)];
      if (pulls || sinks) changed = true, a.hit[i] = !a.hit[i];
    }
    for (size_t b = 0; b < s && !changed; ++b) {
      const char now = a.letters[b];
      if (now == '0' && std::abs(answer.sigma[ix(b)]) > 1) {
        a.letters[b] = answer.sigma[ix(b)] > 0 ? '+' : '-';
        changed = true;
      } else if ((now == '+' && surface[ix(b)] < 0) || (now == '-' && surface[ix(b)] > 0)) {
        a.letters[b] = '0';
        changed = true;
      }
    }
    if (!changed) return false;
  }
  return false;
}

/// Coulomb's law in discs: Lambda by Newton's law for the directions of friction, these by the discs under Lambda, in
/// turn until nothing changes. Where the two do not feel each other once is enough.
bool solve_with_discs(Collision& c, const Program& program, const std::vector<int>& switches, const Vec& q, Answer& out,
                      std::string& letters) {
  const Index n = q.size(), count = ix(switches.size());
  DiscProblem discs;
  std::vector<int> order;  // of the switches, component by component of each vector switch
  for (const int i : switches) {
    if (program.vector_of(i) < 0) return false;
    if (!program.leads(i)) continue;
    const std::vector<int>& parts = program.parts(program.vector_of(i));
    for (const int part : parts) {
      const auto place = std::find(switches.begin(), switches.end(), part);
      if (place == switches.end()) return false;
      order.push_back(static_cast<int>(place - switches.begin()));
    }
    discs.sizes.push_back(static_cast<int>(parts.size()));
    discs.bound.push_back(1);
  }
  if (order.size() != switches.size()) return false;
  out.sigma = Vec::Zero(count);
  out.impulse = Vec::Zero(n);
  const Mat D0 = c.directions(Vec::Zero(count));
  std::vector<Mat> by_sigma;
  for (const int b : order) by_sigma.push_back(c.directions(Vec::Unit(count, b)) - D0);
  constexpr int most = 500;
  for (int round = 0; round < most; ++round) {
    const Vec before = out.sigma, pushed = out.impulse;
    Mat D = D0;
    for (size_t k = 0; k < order.size(); ++k) D += out.sigma[order[k]] * by_sigma[k];
    const LcpSolution normal = solve_lcp({c.gap_gradient * D, q});
    if (normal.status != SolveStatus::solved) return false;
    out.impulse = normal.z;
    discs.A = Mat::Zero(count, count);
    discs.w = Vec::Zero(count);
    const Vec base = D0 * out.impulse;
    for (size_t i = 0; i < order.size(); ++i) {
      const auto row = c.surface_gradient.row(order[i]);
      discs.w[ix(i)] = c.surface[order[i]] + row.dot(base);
      for (size_t j = 0; j < order.size(); ++j) discs.A(ix(i), ix(j)) = -row.dot(Vec(by_sigma[j] * out.impulse));
    }
    const DiscSolution found = solve_discs(discs);
    if (!found.solved) return false;
    for (size_t k = 0; k < order.size(); ++k) out.sigma[order[k]] = found.s[ix(k)];
    letters.assign(switches.size(), '~');
    Index from = 0;
    for (const int size : discs.sizes) {
      const double scale = discs.w.segment(from, size).norm() + discs.A.block(from, 0, size, count).max_abs();
      for (Index i = from; i < from + size; ++i) {
        if (found.y.segment(from, size).norm() <= same_solution * scale) letters[ux(order[ux(i)])] = '0';
      }
      from += size;
    }
    const double change = std::max((out.sigma - before).max_abs(),
                                   (out.impulse - pushed).max_abs() / std::max(out.impulse.max_abs(), 1e-300));
    if (change > 8 * eps && round + 1 < most) continue;
    if (change > same_solution) return false;
    out.change = D0 * out.impulse;
    for (size_t k = 0; k < order.size(); ++k) out.change += out.sigma[order[k]] * Vec(by_sigma[k] * out.impulse);
    return true;
  }
  return false;
}

/// Work of the impulses, against the mean of the velocities before and after.
double work_in_discs(Collision& c, const Answer& answer, const Vec& after, const Vec& slip) {
  double sum = 0;
  for (Index i = 0; i < answer.impulse.size(); ++i) sum += answer.impulse[i] * (c.gap_rate[i] + after[i]) / 2;
  const Mat D0 = c.directions(Vec::Zero(answer.sigma.size()));
  for (Index b = 0; b < answer.sigma.size(); ++b) {  // friction against h: its size by what it does to h
    const Vec along = c.directions(Vec::Unit(answer.sigma.size(), b)) * answer.impulse - D0 * answer.impulse;
    const double size = c.surface_gradient.row(b).squaredNorm();
    if (size > 0) sum += c.surface_gradient.row(b).dot(along) / size * answer.sigma[b] * (c.surface[b] + slip[b]) / 2;
  }
  return sum;
}

std::string numbers(const Program& program, std::span<const int> contacts, const Collision& c, const Mat& W) {
  std::string text;
  for (size_t i = 0; i < contacts.size() && i < 3; ++i) {
    text += fmt::format("{}'{}': gap velocity {:.6g}, changed by {:.6g} per unit impulse", i ? "; " : "",
                        program.model().constraints[at(contacts[i])].name, c.gap_rate[ix(i)], W(ix(i), ix(i)));
  }
  return text;
}

/// Switches that stand in the directions of these contacts.
std::vector<int> switches_in(const Program& program, std::span<const int> contacts) {
  std::vector<int> out;
  for (const int j : contacts) {
    const std::vector<int>& more = program.impact_switches(j);
    out.insert(out.end(), more.begin(), more.end());
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// Work done by the impulses where the two directions of a contact are coupled: positive is more than nothing.
double work(Collision& c, const Answer& answer) {
  const Vec &after = answer.gap_rate, &surface = answer.surface;
  double sum = 0;
  for (Index i = 0; i < answer.impulse.size(); ++i) sum += answer.impulse[i] * (c.gap_rate[i] + after[i]) / 2;
  const Vec none = Vec::Zero(answer.sigma.size());
  const Mat D0 = c.directions(none);
  for (Index b = 0; b < answer.sigma.size(); ++b) {
    Vec one = none;
    one[b] = 1;
    const Mat friction = c.directions(one) - D0;
    for (Index i = 0; i < answer.impulse.size(); ++i) {
      const double coupling = c.surface_gradient.row(b).dot(D0.col(i));
      if (coupling == 0) continue;
      const double mu = -c.gap_gradient.row(i).dot(friction.col(i)) / coupling;
      const double slip = c.slip[static_cast<size_t>(b)];  // surface is h+ + e*h-
      sum -= mu * answer.impulse[i] * answer.sigma[b] * (2 * slip + surface[b] - c.surface[b]) / 2;
    }
  }
  return sum;
}

/// `mode` without closed contacts, and these switches undecided.
Mode open_mode(const Mode& mode, std::span<const int> switches) {
  Mode open = mode;
  for (char& c : open.constraints) c = 'o';
  for (const int i : switches) open.switches[at(i)] = '0';
  return open;
}

}  // namespace

std::vector<std::vector<size_t>> connected_contacts(Series& series, const Mode& mode, std::span<const int> contacts,
                                                    double direction) {
  const Program& program = series.program();
  const int m = program.switches();
  const std::vector<int> switches = direction > 0 ? switches_in(program, contacts) : std::vector<int>{};
  series.set_mode(open_mode(mode, switches));
  const std::vector<std::vector<ManifoldFunction>>& manifolds = series.tape().manifolds;
  std::vector<size_t> parent;
  const auto root = [&](size_t a) {
    while (parent[a] != a) a = parent[a] = parent[parent[a]];
    return a;
  };
  std::vector<int> mover(at(program.states()), -1), user(at(m), -1);
  const auto join = [&](int& first, size_t a) {
    if (first < 0) first = static_cast<int>(a);
    parent[root(a)] = root(at(first));
  };
  std::vector<int> members(contacts.begin(), contacts.end());  // joints carry impulses from one to the other
  for (int j = 0; j < program.constraints(); ++j) {
    if (program.joint(j) && program.model().form.gaps[at(j)].degree > 0) members.push_back(j);
  }
  parent.resize(members.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  for (size_t a = 0; a < members.size(); ++a) {
    for (const Assignment& d : program.model().form.gaps[at(members[a])].direction) join(mover[at(d.state)], a);
    if (a >= contacts.size()) continue;
    for (const int i : program.impact_switches(contacts[a])) join(user[at(i)], a);
  }
  const auto feels = [&](size_t a, const ManifoldFunction& f) {
    for (const auto& [i, output] : f.gradient) {
      if (mover[at(i)] >= 0) parent[root(a)] = root(at(mover[at(i)]));
    }
  };
  for (size_t a = 0; a < members.size(); ++a) {
    feels(a, manifolds[at(m + members[a])].back());
    if (a >= contacts.size()) continue;
    for (const int i : program.impact_switches(contacts[a])) {
      if (!manifolds[at(i)].empty()) feels(a, manifolds[at(i)][0]);
    }
  }
  std::vector<std::vector<size_t>> out;
  std::vector<int> place(members.size(), -1);
  for (size_t a = 0; a < contacts.size(); ++a) {
    int& group = place[root(a)];
    if (group < 0) {
      group = static_cast<int>(out.size());
      out.emplace_back();
    }
    out[at(group)].push_back(a);
  }
  return out;
}

std::optional<OneHit> hit_one(Series& series, const Mode& mode, int contact, std::span<double> x, double t,
                              std::span<const double> counters, double direction) {
  const Program& program = series.program();
  if (program.any_joint() || program.bends(contact)) return std::nullopt;
  if (direction > 0 && !program.impact_switches(contact).empty()) return std::nullopt;
  if (mode.constraints.find('c') == std::string::npos)
    series.set_mode(mode);
  else
    series.set_mode(open_mode(mode, {}));
  series.stand_at(x, t, counters);
  const ManifoldFunction& function = series.tape().manifolds[at(program.switches() + contact)][1];
  const auto& along = program.model().form.gaps[at(contact)].direction;
  const Jet<double>& manifold = series.manifold();
  const Jet<double>& actions = series.actions();
  const auto D = [&](size_t d) { return actions.output(program.direction(contact, static_cast<int>(d)))[0]; };
  const double rate = manifold.output(at(function.value))[0], w = direction * rate;
  const double r = actions.output(program.restitution(contact))[0];
  double W = 0, size = 0;
  for (const auto& [i, output] : function.gradient) {
    for (size_t d = 0; d < along.size(); ++d) {
      if (along[d].state != i) continue;
      const double product = manifold.output(at(output))[0] * D(d);
      W += product;
      size += std::abs(product);
    }
  }
  const double back = direction > 0 ? r : 1 / r;
  if (!(w < 0 && W > 0 && r >= 0 && std::isfinite(back))) return std::nullopt;
  const double impulse = -(1 + back) * rate / W;
  for (size_t d = 0; d < along.size(); ++d) x[at(along[d].state)] += D(d) * impulse;
  double left = std::abs(rate + W * impulse);
  if (mode.constraints[at(contact)] == 'c') left = std::min(left, std::abs(W * impulse));
  return OneHit{impulse, left <= 16 * eps * (std::abs(rate) + size * std::abs(impulse))};
}

namespace {

/// An impact to be solved: gap rates `aim` after it where contacts are hit, gap rates `measured` before it, and the
/// path of impulses that change their directions, if there is one.
struct ImpactProblem {
  const Program& program;
  std::span<const int> contacts;
  const std::vector<int>& switches;
  double t = 0, direction = 1;
  ImpulsePath* path = nullptr;
  Vec measured{}, aim{};
};

/// The message of an impact that adds energy, if its law is not one that asks for that.
std::string gain_note(const Collision& c, const Answer& answer, double t, double gained, std::string_view why) {
  if (!(gained > clear_gain * c.gap_rate.max_abs() * answer.impulse.max_abs())) return "";
  return fmt::format("the impact at t = {} adds energy ({:.3g}): {}", t, gained, why);
}

constexpr std::string_view coupled_directions =
    "Newton's law with friction can do that where a body couples its directions";

/// Gap rates after the impact by Newton's law; false with a message where the law has none.
bool find_aim(const Collision& c, std::span<const char> resting, ImpactProblem& p, Impact& result) {
  const size_t n = p.contacts.size();
  p.aim = Vec(ix(n));
  for (size_t a = 0; a < n; ++a) {
    const double w = p.direction * c.gap_rate[ix(a)], r = c.restitution[ix(a)];
    const std::string& name = p.program.model().constraints[at(p.contacts[a])].name;
    if (p.direction < 0 && w < 0 && r == 0) {
      result.message = fmt::format("the contact '{}' without restitution forgets where it came from", name);
      return false;
    }
    const bool rests = a < resting.size() && resting[a];
    p.aim[ix(a)] = rests ? 0.0 : p.direction * -(p.direction > 0 ? r : 1 / r) * std::min(w, 0.0);
    if (!(std::isfinite(r) && r >= 0)) {
      result.message = fmt::format("the restitution of '{}' is {}", name, r);
      return false;
    }
  }
  return true;
}

/// The impact with friction in discs (docs/method/vector_friction.md).
bool hit_with_discs(Collision& c, const ImpactProblem& p, Answer& best, Impact& result) {
  std::string letters;
  if (!solve_with_discs(c, p.program, p.switches, p.direction * (c.gap_rate - p.aim), best, letters)) {
    const Mat W = c.gap_gradient * c.directions(Vec::Zero(ix(p.switches.size())));
    result.message = fmt::format("the impact with friction in discs has no solution that was found: {}",
                                 numbers(p.program, p.contacts, c, W));
    return false;
  }
  for (size_t b = 0; b < p.switches.size(); ++b) result.switches.emplace_back(p.switches[b], letters[b]);
  result.letters.assign(letters.begin(), letters.end());
  best.gap_rate = c.gap_rate + c.gap_gradient * best.change;
  const Vec slip = c.surface + c.surface_gradient * best.change;
  result.note = gain_note(c, best, p.t, work_in_discs(c, best, best.gap_rate, slip), coupled_directions);
  if (p.direction < 0) result.message = "an impact with friction in a disc has no unique past";
  return p.direction > 0;
}

/// The impact without friction: one contact by a formula, several by a complementarity problem.
bool hit_smoothly(Collision& c, const ImpactProblem& p, Answer& best, Impact& result) {
  const size_t n = p.contacts.size();
  const Mat D = c.directions(Vec());
  const Mat W = c.gap_gradient * D;
  const Vec q = p.direction * (c.gap_rate - p.aim);
  best.impulse = Vec::Zero(ix(n));
  if (n == 1) {
    if (q[0] < 0 && !(W(0, 0) > 0)) {
      result.message = fmt::format("the contact cannot push its gap open: {}", numbers(p.program, p.contacts, c, W));
      return false;
    }
    if (q[0] < 0) best.impulse[0] = -q[0] / W(0, 0);
  } else {
    LcpSolution solution = solve_lcp({W, q});
    if (solution.status != SolveStatus::solved && p.direction > 0) {
      // Between contacts that face each other there is no rebound. What they let through is zero up to rounding.
      c.gap_rate = p.measured;
      const Vec slack = Vec::Constant(ix(n), 8 * eps * c.gap_rate.max_abs());
      solution = solve_lcp({W, c.gap_rate + slack});
    }
    if (solution.status != SolveStatus::solved) {
      result.message = fmt::format("the impact equations of several contacts have no solution: {}",
                                   numbers(p.program, p.contacts, c, W));
      return false;
    }
    best.impulse = solution.z;
  }
  best.impulse *= p.direction;
  best.change = D * best.impulse;
  best.sigma = Vec();
  best.gap_rate = c.gap_rate + c.gap_gradient * best.change;
  const double gained = best.impulse.dot(c.gap_rate + best.gap_rate) / 2;
  if (p.direction > 0 && !(c.restitution.maxCoeff() > 1))
    result.note =
        gain_note(c, best, p.t, gained, "Newton's law can do that where a contact that parts is pressed by others");
  return true;
}

/// All answers of the laws with friction along lines that differ, by hits and switch states.
std::vector<std::pair<Hits, Answer>> find_answers(Collision& c, const ImpactProblem& p) {
  std::vector<std::pair<Hits, Answer>> answers;
  const auto keep = [&](const Hits& a, const Answer& answer) {
    for (const auto& [other, known] : answers) {
      if ((known.change - answer.change).max_abs() <=
          same_solution * (known.change.max_abs() + answer.change.max_abs()))
        return;
    }
    answers.emplace_back(a, answer);
  };
  Answer answer;
  const size_t n = p.contacts.size();
  const bool all = for_all_assignments(n, p.switches.size(), [&](const Hits& a) {
    if (solve_assignment(c, p.aim, a, answer) && fits_laws(c, p.aim, a, answer)) keep(a, answer);
  });
  if (!all) {
    Hits a{std::vector<char>(n, 0), std::string(p.switches.size(), '0')};
    if (follow_active_set(c, p.aim, a, answer)) keep(a, answer);
  }
  return answers;
}

/// The message of an impact that has not exactly one answer; empty if it has.
std::string explain_answers(Collision& c, const ImpactProblem& p, size_t answers) {
  const std::string& first = p.program.model().constraints[at(p.contacts[0])].name;
  if (p.path && p.path->undecided())
    return fmt::format(
        "impulses change the direction of '{}', which has a product of two signs in it: what such an impact does is "
        "not decided; friction as a sum of signs is",
        first);
  if (answers == 0 && p.path && p.path->lost())
    return fmt::format(
        "the impulse of '{}' leads to where its direction has no value (0/0 where a slip ends): a divisor that stays "
        "above zero says how friction ends, as in u/max(hypot(u, v), 1e-6)",
        first);
  if (answers == 1) return "";
  const Mat W = c.gap_gradient * c.directions(Vec::Zero(ix(p.switches.size())));
  return fmt::format("the impact with friction has {}: {}",
                     answers == 0 ? "no solution" : fmt::format("{} solutions", answers),
                     numbers(p.program, p.contacts, c, W));
}

/// The impact with friction along lines, or by impulses that change their directions.
bool hit_with_friction(Collision& c, const ImpactProblem& p, Answer& best, Impact& result) {
  const std::vector<std::pair<Hits, Answer>> answers = find_answers(c, p);
  result.message = explain_answers(c, p, answers.size());
  if (!result.message.empty()) return false;
  best = answers[0].second;
  for (size_t b = 0; b < p.switches.size(); ++b) {
    const char letter = answers[0].first.letters[b];
    const double after = c.slip[b] - c.surface[ix(b)];  // of one that sticks: -e*h-
    result.switches.emplace_back(p.switches[b], letter);
    result.letters.push_back(letter != '0' || after == 0 ? letter : after > 0 ? '+' : '-');
  }
  const bool asked_for = p.path && (p.direction < 0 || c.restitution.maxCoeff() > 1);
  if (!asked_for) result.note = gain_note(c, best, p.t, p.path ? best.normal_work : work(c, best), coupled_directions);
  return true;
}

/// Moves x by the impulses and notes which contacts stay closed.
void move_by(Collision& c, const Mode& mode, const Answer& best, std::span<const int> contacts, std::span<double> x,
             Impact& result) {
  const Vec& after = best.gap_rate;
  const Vec pushed = c.directions(best.sigma).cwiseAbs() * best.impulse.cwiseAbs();  // before impulses cancel
  for (size_t i = 0; i < x.size(); ++i) {  // what is left of speeds that cancel is zero: in a corner nothing moves
    const double before = std::exchange(x[i], x[i] + best.change[ix(i)]);
    if (std::abs(x[i]) <= 16 * eps * (std::abs(before) + pushed[ix(i)])) x[i] = 0;
  }
  for (size_t a = 0; a < contacts.size(); ++a) {
    double size = std::abs(c.gap_rate[ix(a)]) + c.gap_gradient.row(ix(a)).cwiseAbs().dot(pushed);
    for (size_t i = 0; i < x.size(); ++i) size += std::abs(c.gap_gradient(ix(a), ix(i)) * x[i]);
    // The rate of what was closed is zero up to rounding: it stays closed where the others do not move it.
    double left = std::abs(after[ix(a)]);
    if (mode.constraints[at(contacts[a])] == 'c')
      left = std::min(left, std::abs(c.gap_gradient.row(ix(a)).dot(best.change)));
    result.impulse.push_back(best.impulse[ix(a)]);
    result.closed.push_back(left <= 16 * eps * size);
  }
}

}  // namespace

Impact apply_impact(Series& series, const Mode& mode, std::span<const int> contacts, std::span<double> x, double t,
                    std::span<const double> counters, double direction, const Special& special) {
  const Program& program = series.program();
  Impact result;
  std::vector<int> switches = direction > 0 ? switches_in(program, contacts) : std::vector<int>{};
  result.mode = open_mode(mode, switches);
  std::optional<ImpulsePath> path;
  if (ImpulsePath::needed(program, contacts)) {
    path.emplace(program, series.parameters(), open_mode(mode, {}), contacts, x, t, counters);
    if (direction < 0) path->keep_sets();
    switches = path->sets();
    result.mode = path->mode();
  }
  series.set_mode(result.mode);
  series.evaluate_with(x, t, counters, switches);
  Collision c(series, contacts, switches, x.size());
  if (path) c.follow(*path);
  if (special.plastic) c.restitution.setZero();
  ImpactProblem p{program, contacts, switches, t, direction, path ? &*path : nullptr, c.gap_rate};
  for (size_t a = 0; a < special.resting.size() && a < contacts.size(); ++a) {
    // A resting contact has no rebound; the approach left from its last flight is removed.
    if (special.resting[a] && !(direction * c.gap_rate[ix(a)] < 0)) c.gap_rate[ix(a)] = 0;
  }
  if (!find_aim(c, special.resting, p, result)) return result;

  const bool discs = std::any_of(switches.begin(), switches.end(), [&](int i) { return program.vector_of(i) >= 0; });
  const auto hit = discs ? hit_with_discs : switches.empty() && !path ? hit_smoothly : hit_with_friction;
  Answer best;
  if (!hit(c, p, best, result)) return result;
  result.sigma.assign(best.sigma.begin(), best.sigma.end());
  if (path) {
    path->follow(best.impulse, best.sigma);
    for (const auto& [i, letter] : path->kinks()) {
      result.switches.emplace_back(i, letter);
      result.letters.push_back(letter);
      result.sigma.push_back(letter == '+' ? 1 : letter == '-' ? -1 : 0);
    }
  }
  move_by(c, mode, best, contacts, x, result);
  result.solved = true;
  return result;
}

namespace {

/// Gap rates after an impact that is repeated.
Vec repeated_aim(const Collision& c, double direction) {
  Vec aim(c.gap_rate.size());
  for (Index a = 0; a < aim.size(); ++a) {
    // One that parts is pressed by the others; alone it parts where an orbit is continued past its grazing.
    const bool pressed = aim.size() > 1 && direction * c.gap_rate[a] > 0;
    aim[a] = pressed ? 0.0 : -(direction > 0 ? c.restitution[a] : 1 / c.restitution[a]) * c.gap_rate[a];
  }
  return aim;
}

}  // namespace

std::optional<BentHit> repeat_bent(Series& series, const Hit& hit, std::span<const double> x, double t,
                                   double direction) {
  BentHit out{.path = ImpulsePath(series.program(), series.parameters(), hit.mode, hit.contacts, x, t, hit.counters)};
  if (direction < 0) out.path.keep_sets();
  const std::vector<int>& switches = out.path.sets();
  Hits assignment;
  for (const double impulse : hit.impulse) assignment.hit.push_back(impulse != 0);
  for (const int i : switches) {
    const auto same =
        std::find_if(hit.switches.begin(), hit.switches.end(), [&](const auto& s) { return s.first == i; });
    assignment.letters += same == hit.switches.end() ? '0' : same->second;
  }
  for (size_t b = 0; b < switches.size(); ++b) {
    if (assignment.letters[b] == '0') out.stuck.push_back(ix(b));
  }
  series.set_mode(out.path.mode());
  series.evaluate_with(x, t, hit.counters, switches);
  Collision c(series, hit.contacts, switches, x.size());
  c.follow(out.path);
  Answer answer;
  if (!solve_assignment(c, repeated_aim(c, direction), assignment, answer)) return std::nullopt;
  out.impulse = answer.impulse;
  out.sigma = answer.sigma;
  out.change = answer.change;
  return out;
}

bool repeat_impact(Series& series, const Hit& hit, std::span<double> x, double t, double direction) {
  if (ImpulsePath::needed(series.program(), hit.contacts)) {
    const std::optional<BentHit> bent = repeat_bent(series, hit, x, t, direction);
    for (size_t i = 0; bent && i < x.size(); ++i) x[i] += bent->change[ix(i)];
    return bent.has_value();
  }
  std::vector<int> switches;
  Hits assignment;
  for (const double impulse : hit.impulse) assignment.hit.push_back(impulse != 0);
  for (const auto& [i, letter] : hit.switches) {
    switches.push_back(i);
    assignment.letters += letter;
  }
  series.set_mode(hit.mode);
  series.evaluate_with(x, t, hit.counters, switches);
  Collision c(series, hit.contacts, switches, x.size());
  Answer answer;
  if (!solve_assignment(c, repeated_aim(c, direction), assignment, answer)) return false;
  for (size_t i = 0; i < x.size(); ++i) x[i] += answer.change[ix(i)];
  return true;
}

}  // namespace saltus
