#include "flow/step/choice.hpp"

#include <algorithm>
#include <cmath>

#include <Eigen/LU>

#include "solve/lcp.hpp"

namespace saltus {
namespace {

constexpr Eigen::Index most_items = 6;
constexpr double tolerance = 1e-9;

/// The solution in which every item is at its lower bound (0), inside (1) or at its upper bound (2), if there is one.
bool solve_case(const ZeroSet& set, const std::vector<int>& states, Vec& u) {
  const Eigen::Index n = set.q.size();
  std::vector<Eigen::Index> inside;
  u = Vec::Zero(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const int s = states[static_cast<size_t>(i)];
    if (s == 1) inside.push_back(i);
    if (s == 0) u[i] = set.lo[i];
    if (s == 2) u[i] = set.hi[i];
  }
  const Eigen::Index k = static_cast<Eigen::Index>(inside.size());
  const Vec w0 = set.M * u + set.q;
  Mat A(k, k);
  Vec b(k);
  for (Eigen::Index a = 0; a < k; ++a) {
    b[a] = -w0[inside[static_cast<size_t>(a)]];
    for (Eigen::Index c = 0; c < k; ++c)
      A(a, c) = set.M(inside[static_cast<size_t>(a)], inside[static_cast<size_t>(c)]);
  }
  if (k > 0) {
    const Eigen::FullPivLU<Mat> lu(A);
    if (lu.rank() < k) return false;
    const Vec solved = lu.solve(b);
    for (Eigen::Index a = 0; a < k; ++a) u[inside[static_cast<size_t>(a)]] = solved[a];
  }
  const Vec w = set.M * u + set.q;
  for (Eigen::Index i = 0; i < n; ++i) {
    const double row = std::abs(set.q[i]) + set.M.row(i).cwiseAbs().dot(u.cwiseAbs());
    const int s = states[static_cast<size_t>(i)];
    if (s == 0 && !(w[i] >= -tolerance * row)) return false;
    if (s == 2 && !(w[i] <= tolerance * row)) return false;
    if (s == 1 &&
        !(u[i] >= set.lo[i] - tolerance * (1 + std::abs(u[i])) && u[i] <= set.hi[i] + tolerance * (1 + std::abs(u[i]))))
      return false;
  }
  return true;
}

}  // namespace

Answers count_answers(const ZeroSet& set) {
  const Eigen::Index n = set.q.size();
  if (n > most_items) return {};
  if (is_p_matrix(set.M)) return {};
  Answers answers{.counted = true, .solutions = {}};
  std::vector<int> states(static_cast<size_t>(n), 0);
  for (;;) {
    bool possible = true;
    for (size_t i = 0; i < states.size(); ++i) {
      if (states[i] == 2 && std::isinf(set.hi[static_cast<Eigen::Index>(i)])) possible = false;
    }
    Vec u;
    if (possible && solve_case(set, states, u)) {
      const Vec w = set.M * u;
      const bool known = std::any_of(answers.solutions.begin(), answers.solutions.end(), [&](const Vec& other) {
        return (set.M * other - w).cwiseAbs().maxCoeff() <=
               tolerance * (w.cwiseAbs().maxCoeff() + set.q.cwiseAbs().maxCoeff());
      });
      if (!known) answers.solutions.push_back(u);
    }
    size_t i = 0;
    while (i < states.size() && ++states[i] > 2) states[i++] = 0;
    if (i == states.size()) break;
  }
  return answers;
}

}  // namespace saltus
