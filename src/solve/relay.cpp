#include "solve/relay.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "solve/active_set.hpp"

namespace saltus {
namespace {

BoxProblem box_of(const RelayProblem& p, const Vec& limit) { return {-p.B, -p.a, -limit, limit}; }
SparseBoxProblem box_of(const SparseRelayProblem& p, const Vec& limit) { return {-p.B, -p.a, -limit, limit}; }

template <class Problem>
bool well_formed(const Problem& p) {
  const Index n = p.a.size();
  if (p.hold.size() != 0 && p.hold.size() != n) return false;
  return p.hold.size() == 0 || (p.hold.allFinite() && p.hold.minCoeff() >= 1);
}

RelaySolution relay_of(const BoxSolution& s, const BoxScales& scales) {
  RelaySolution r;
  r.sigma = s.x;
  r.y = -s.w;
  r.status = s.status;
  r.residual = s.residual;
  r.iterations = s.iterations;
  r.degenerate = s.degenerate;
  r.mode.assign(static_cast<size_t>(s.x.size()), 0);
  for (Index i = 0; i < s.x.size(); ++i) {
    const bool still = std::abs(s.w[i]) <= 1e-10 * scales.row[i];
    if (!still) r.mode[static_cast<size_t>(i)] = s.w[i] < 0 ? 1 : -1;
    if (s.state[static_cast<size_t>(i)] == BoundState::inside) r.y[i] = 0;  // known exactly: it is slid on
  }
  return r;
}

/// Releases holding switches one set at a time: those that cannot hold within s_i leave, and from then on count as
/// ordinary ones; the rest is solved again. Each round releases at least one, so this ends.
template <class Problem>
RelaySolution solve(const Problem& p, const RelayOptions& options, ActiveFactor* memory) {
  const Index n = p.a.size();
  RelaySolution result;
  result.status = SolveStatus::bad_input;
  if (!well_formed(p) || p.B.rows() != n || p.B.cols() != n) return result;
  Vec limit = p.hold.size() == n ? p.hold : Vec::Ones(n);
  BoxOptions box_options{.tolerance = options.tolerance, .x0 = options.sigma0, .shortest = true};
  ActiveFactor own;  // kept from round to round
  int iterations = 0;
  for (;;) {
    const auto box = box_of(p, limit);
    const BoxSolution s = solve_box(box, box_options, memory ? memory : &own);
    if (s.status == SolveStatus::bad_input) return result;
    iterations += s.iterations;
    result = relay_of(s, box_scales(box.M, box.q, s.x));
    result.iterations = iterations;
    bool released = false;
    for (Index i = 0; i < n; ++i) {
      if (limit[i] == 1 || result.mode[static_cast<size_t>(i)] == 0) continue;
      limit[i] = 1;
      released = true;
    }
    if (!released) return result;
    box_options.x0 = s.x;
  }
}

}  // namespace

RelaySolution solve_relay(const RelayProblem& p, const RelayOptions& options, ActiveFactor* memory) {
  return solve(p, options, memory);
}

RelaySolution solve_relay(const SparseRelayProblem& p, const RelayOptions& options, ActiveFactor* memory) {
  return solve(p, options, memory);
}

std::vector<Vec> all_relay_solutions(const RelayProblem& p, double tolerance) {
  const int n = static_cast<int>(p.a.size());
  if (n > 10) throw Error(ErrorKind::usage, fmt::format("{} switches: all relay solutions can be listed up to 10", n));
  const Vec limit = p.hold.size() == n ? p.hold : Vec::Ones(n);
  ActiveFactor factor;
  std::vector<Vec> found;
  std::vector<int> mode(static_cast<size_t>(n), -1);
  for (bool more = true; more;) {
    Vec sigma(n);
    std::vector<char> slid(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) {
      sigma[i] = mode[static_cast<size_t>(i)];
      slid[static_cast<size_t>(i)] = mode[static_cast<size_t>(i)] == 0;
    }
    bool fits = factor.solve(p.B, slid, -p.a, sigma) != LinearFate::inconsistent;
    const Vec y = p.a + p.B * sigma;
    const BoxScales scales = box_scales(p.B, p.a, sigma);
    for (int i = 0; i < n && fits; ++i) {
      if (slid[static_cast<size_t>(i)])
        fits = std::abs(sigma[i]) <= limit[i] + tolerance;
      else
        fits = mode[static_cast<size_t>(i)] * y[i] >= -tolerance * scales.row[i];
    }
    const auto same = [&](const Vec& other) { return (other - sigma).max_abs() <= 1e-8; };
    if (fits && std::none_of(found.begin(), found.end(), same)) found.push_back(sigma.cwiseMax(-limit).cwiseMin(limit));
    more = false;
    for (int& m : mode) {
      if (m < 1) {
        ++m;
        more = true;
        break;
      }
      m = -1;
    }
  }
  return found;
}

}  // namespace saltus
