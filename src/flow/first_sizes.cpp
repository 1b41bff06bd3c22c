#include "flow/first_sizes.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "model/program.hpp"

namespace saltus {

double take_first_sizes(const Series& series, double longest, std::vector<double>& largest) {
  const int order = series.order(), n = static_cast<int>(largest.size());
  double time = longest;
  for (int i = 0; i < n; ++i) {
    const double* c = series.state(i);
    const int first = static_cast<int>(std::find_if(c, c + order, [](double v) { return v != 0; }) - c);
    int last = order;  // beside a root at zero the last coefficients overflow
    while (last > 1 && !std::isfinite(c[last])) --last;
    for (const int k : {last - 1, last}) {
      if (k > first && c[k] != 0) time = std::min(time, std::pow(std::abs(c[first] / c[k]), 1.0 / (k - first)));
    }
  }
  for (int i = 0; i < n; ++i) {
    const double* c = series.state(i);
    for (int k = 0; k <= order; ++k) {
      if (const double reach = std::abs(c[k]) * std::pow(time, k); std::isfinite(reach))
        largest[at(i)] = std::max(largest[at(i)], reach);
    }
  }
  const std::vector<double> reached = largest;
  for (int i = 0; i < n; ++i) {
    if (reached[at(i)] > 0) continue;
    double least = HUGE_VAL;
    for (const int j : series.program().vanishing(i)) {
      if (reached[at(j)] > 0) least = std::min(least, reached[at(j)]);
    }
    if (std::isfinite(least)) largest[at(i)] = least;
  }
  return time;
}

}  // namespace saltus
