#include "flow/step/attraction.hpp"

#include "base/index.hpp"
#include "base/numbers.hpp"

namespace saltus {
namespace {

/// Signs of the slopes of the equations of sliding at a point, single ones and then coupled ones.
std::vector<int> slope_signs(Series& series, const Here& here, const Vec& x, double t) {
  std::vector<int> signs;
  const std::vector<double> states(x.data(), x.data() + x.size());
  series.evaluate(states, t, here.moment.counters);
  for (const Series::Single& single : series.singles()) signs.push_back(sign_of(single.slope));
  for (const Series::Block& block : series.blocks()) signs.push_back(block.singular ? 0 : sign_of(block.determinant));
  return signs;
}

bool turned(const std::vector<int>& before, const std::vector<int>& after) {
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] * after[i] < 0) return true;
  }
  return false;
}

}  // namespace

std::vector<Guard> find_lost_attraction(Series& series, StepSolver& solver, const StepRule& rule, const Here& here,
                                        Step& step) {
  series.set_mode(here.mode());
  if (!series.slope_varies()) return {};
  const std::vector<int> before = slope_signs(series, here, here.x, here.t());
  std::vector<int> after = slope_signs(series, here, step.x, here.t() + step.h);
  if (before.size() != after.size() || !turned(before, after)) return {};
  double lo = 0, hi = step.h;
  Step middle;
  for (int halving = 0; halving < 50; ++halving) {
    const double tau = (lo + hi) / 2;
    if (step_in_mode(solver, rule, here, tau, middle) != StepFate::ok) return {};
    const std::vector<int> signs = slope_signs(series, here, middle.x, here.t() + tau);
    if (!turned(before, signs)) {
      lo = tau;
    } else {
      hi = tau;
      after = signs;
      step = middle;
    }
  }
  std::vector<Guard> lost;
  const auto lose = [&](int member) {
    if (const int u = series.active()[at(member)]; u < series.program().switches())
      lost.push_back({GuardKind::slope, u, 0});
  };
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] * after[i] >= 0) continue;
    if (i < series.singles().size())
      lose(series.singles()[i].member);
    else
      for (const int member : series.blocks()[i - series.singles().size()].members) lose(member);
  }
  return lost;
}

}  // namespace saltus
