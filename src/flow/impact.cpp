#include "flow/impact.hpp"

#include <cmath>

#include <fmt/format.h>

#include "solve/lcp.hpp"

namespace saltus {
namespace {

size_t at(int i) { return static_cast<size_t>(i); }
Eigen::Index ix(size_t i) { return static_cast<Eigen::Index>(i); }

}  // namespace

Impact apply_impact(Series& series, std::span<const int> contacts, std::span<double> x, double direction) {
  const Program& program = series.program();
  const Form& form = program.model().form;
  const int m = program.switches();
  const size_t n = contacts.size();
  const Jet<double>& manifold = series.manifold();
  const Jet<double>& actions = series.actions();

  Vec w(ix(n)), r(ix(n));
  Mat W(ix(n), ix(n));
  std::vector<std::vector<std::pair<int, double>>> directions(n);
  for (size_t a = 0; a < n; ++a) {
    const int j = contacts[a];
    for (size_t d = 0; d < form.gaps[at(j)].direction.size(); ++d) {
      directions[a].emplace_back(form.gaps[at(j)].direction[d].state,
                                 actions.output(program.direction(j, static_cast<int>(d)))[0]);
    }
    r[ix(a)] = actions.output(program.restitution(j))[0];
  }
  for (size_t a = 0; a < n; ++a) {
    const ManifoldFunction& rate = series.tape().manifolds[at(m + contacts[a])][1];
    w[ix(a)] = manifold.output(at(rate.value))[0];
    std::vector<double> gradient(x.size(), 0.0);
    for (const auto& [i, output] : rate.gradient) gradient[at(i)] = manifold.output(at(output))[0];
    for (size_t b = 0; b < n; ++b) {
      double sum = 0;
      for (const auto& [i, v] : directions[b]) sum += gradient[at(i)] * v;
      W(ix(a), ix(b)) = sum;
    }
  }

  Impact result;
  Vec q(ix(n));
  for (size_t a = 0; a < n; ++a) {
    const bool approaching = direction * w[ix(a)] < 0;
    if (direction < 0 && approaching && r[ix(a)] == 0) {
      result.message = fmt::format("the contact '{}' without restitution forgets where it came from",
                                   program.model().constraints[at(contacts[a])].name);
      return result;
    }
    const double restitution = direction > 0 ? r[ix(a)] : (r[ix(a)] > 0 ? 1 / r[ix(a)] : 0);
    q[ix(a)] = direction * (1 + restitution) * w[ix(a)];
  }
  Vec impulse;
  if (n == 1) {
    impulse = Vec::Zero(1);
    if (q[0] < 0) {
      if (!(W(0, 0) > 0)) {
        result.message = fmt::format("the contact '{}' cannot push its gap open (W = {:.6g})",
                                     program.model().constraints[at(contacts[0])].name, W(0, 0));
        return result;
      }
      impulse[0] = -q[0] / W(0, 0);
    }
  } else {
    const LcpSolution solution = solve_lcp({W, q});
    if (solution.status != SolveStatus::solved) {
      result.message = "the impact equations of several contacts have no solution";
      return result;
    }
    impulse = solution.z;
  }
  for (size_t a = 0; a < n; ++a) {
    for (const auto& [i, v] : directions[a]) x[at(i)] += direction * v * impulse[ix(a)];
  }
  const Vec after = w + direction * (W * impulse);
  for (size_t a = 0; a < n; ++a) {
    const double size = std::abs(w[ix(a)]) + (W.row(ix(a)).cwiseAbs() * impulse.cwiseAbs())(0);
    result.closed.push_back(std::abs(after[ix(a)]) <= 16 * 2.2e-16 * size);
  }
  result.solved = true;
  return result;
}

}  // namespace saltus
