#include "solve/piecewise.hpp"

#include <cmath>

#include "base/numbers.hpp"
#include "solve/matrix.hpp"

namespace saltus {

Relation relay(double level) { return {.value = -level, .jumps = {{0, 2 * level}}}; }

Relation relay_with_dead_zone(double width, double level) {
  return {.value = -level, .jumps = {{-width, level}, {width, level}}};
}

Relation saturation(double lo, double hi, double slope) {
  return {.value = lo, .kinks = {{lo / slope, slope}, {hi / slope, -slope}}};
}

Relation dead_zone(double width, double slope) {
  return {.value = slope * width, .slope = slope, .kinks = {{-width, -slope}, {width, slope}}};
}

PiecewiseSolution solve_piecewise(const PiecewiseProblem& p, const BoxOptions& options) {
  const Index n = p.a.size();
  PiecewiseSolution s;
  if (p.B.rows() != n || p.B.cols() != n || static_cast<Index>(p.relations.size()) != n) {
    s.status = SolveStatus::bad_input;
    s.residual = inf;
    return s;
  }

  // Unknowns: y (free), then for each jump a relay sigma in [-1, 1], for each kink v = max(0, y - at).
  Index size = n;
  for (const Relation& r : p.relations) size += static_cast<Index>(r.jumps.size() + r.kinks.size());
  Mat L = Mat::Zero(n, size);  // lambda = l + L x
  Vec l(n);
  BoxProblem box{Mat::Zero(size, size), Vec::Zero(size), Vec::Constant(size, -inf), Vec::Constant(size, inf)};
  Index k = n;
  for (Index i = 0; i < n; ++i) {
    const Relation& r = p.relations[static_cast<size_t>(i)];
    l[i] = r.value;
    L(i, i) = r.slope;
    for (const Relation::Jump& jump : r.jumps) {
      l[i] += jump.height / 2;
      L(i, k) = jump.height / 2;
      box.M(k, i) = -1, box.q[k] = jump.at;  // w = at - y: negative above, where sigma = +1
      box.lo[k] = -1, box.hi[k] = 1;
      ++k;
    }
    for (const Relation::Kink& kink : r.kinks) {
      L(i, k) = kink.change;
      box.M(k, i) = -1, box.M(k, k) = 1, box.q[k] = kink.at;  // 0 <= v perp v - (y - at) >= 0
      box.lo[k] = 0;
      ++k;
    }
  }
  box.M.topRows(n) = -p.B * L;
  box.M.topLeftCorner(n, n) += Mat::Identity(n, n);
  box.q.head(n) = -p.a - p.B * l;

  const BoxSolution solution = solve_box(box, options);
  s.status = solution.status;
  s.residual = solution.residual;
  if (solution.x.size() == size) {
    s.y = solution.x.head(n);
    s.lambda = l + L * solution.x;
  }
  return s;
}

}  // namespace saltus
