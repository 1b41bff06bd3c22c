#include "flow/impact_path.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/index.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

constexpr int columns_of_extrapolation = 7;

class Path {
 public:
  Path(const Directions& directions, const Vec& before, std::span<const int> moved, const Vec& impulse)
      : directions_(directions), before_(before), moved_(moved), impulse_(impulse) {}

  Mat run() {
    Mat Y = Mat::Zero(before_.size(), impulse_.size());
    double s = 0, h = 1;
    for (int step = 0; step < most_path_steps && s < 1; ++step) {
      h = std::min(h, 1 - s);
      linearise(Y);
      double error = 0;
      const Mat next = extrapolated(Y, h, error);
      if (!next.allFinite()) return next;
      const double allowed = path_accuracy * (1e-300 + next.max_abs());
      if (error <= allowed || h < shortest_path_step) {
        Y = next;
        s += h;
      }
      const double factor = 0.8 * std::pow(allowed / (error + 1e-300), 1.0 / columns_of_extrapolation);
      h *= std::clamp(factor, 0.1, 5.0);
    }
    return Y;
  }

 private:
  Vec at_mean(const Mat& Y) const { return before_ + Y * impulse_; }

  /// Derivatives of D by the moved states, by differences: they steer steps and do not enter the answer.
  void linearise(const Mat& Y) {
    const Vec x = at_mean(Y);
    D_ = directions_(x);
    slopes_.clear();
    J_ = Mat::Zero(ix(moved_.size()), ix(moved_.size()));
    const double reach = std::max((D_ * impulse_).max_abs(), 1e-300);
    for (size_t k = 0; k < moved_.size(); ++k) {
      Vec there = x;
      const double by = 1e-7 * std::max(std::min(std::abs(x[moved_[k]]), reach), 1e-6 * reach);
      there[moved_[k]] += by;
      Mat slope = (directions_(there) - D_) / by;
      const Vec column = slope * impulse_;
      for (size_t i = 0; i < moved_.size(); ++i) J_(ix(i), ix(k)) = column[moved_[i]];
      slopes_.push_back(std::move(slope));
    }
  }

  /// n linearly implicit Euler steps of length h/n.
  Mat steps(const Mat& Y, double h, int n) const {
    const double tau = h / n;
    const Index m = ix(moved_.size());
    Mat system = Mat::Zero(m, m);
    for (Index i = 0; i < m; ++i) {
      for (Index k = 0; k < m; ++k) system(i, k) = (i == k ? 1 : 0) - tau * J_(i, k);
    }
    const Orthogonal factors(system, 0);
    Mat now = Y;
    for (int step = 0; step < n; ++step) {
      const Mat D = step == 0 ? D_ : directions_(at_mean(now));
      const Vec rate = D * impulse_;
      Vec right(m);
      for (Index i = 0; i < m; ++i) right[i] = tau * rate[moved_[static_cast<size_t>(i)]];
      const Vec dx = factors.solve(right);
      Mat change = D;
      for (size_t k = 0; k < slopes_.size(); ++k) change += slopes_[k] * dx[ix(k)];
      now += change * tau;
    }
    return now;
  }

  /// Aitken and Neville: the error of an Euler step is a series in its length.
  Mat extrapolated(const Mat& Y, double h, double& error) const {
    std::array<Mat, columns_of_extrapolation> row;
    for (int k = 0; k < columns_of_extrapolation; ++k) {
      Mat fine = steps(Y, h, k + 1);
      for (int j = 0; j < k; ++j) {  // row holds T of k steps; fine becomes T of k + 1
        const Mat coarse = row[static_cast<size_t>(j)];
        row[static_cast<size_t>(j)] = fine;
        const double ratio = static_cast<double>(k + 1) / (k - j);
        fine = fine + (fine - coarse) / (ratio - 1);
      }
      row[static_cast<size_t>(k)] = fine;
    }
    const Mat& best = row[columns_of_extrapolation - 1];
    error = (best - row[columns_of_extrapolation - 2]).max_abs();
    return best;
  }

  const Directions& directions_;
  const Vec& before_;
  std::span<const int> moved_;
  const Vec& impulse_;
  Mat D_, J_;
  std::vector<Mat> slopes_;
};

}  // namespace

Mat mean_directions(const Directions& directions, const Vec& before, std::span<const int> moved, const Vec& impulse) {
  return Path(directions, before, moved, impulse).run();
}

}  // namespace saltus
