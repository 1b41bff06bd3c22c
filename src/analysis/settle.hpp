// When a sequence of points has settled on a cycle: points of a section go in one by one, a period comes out.
//
// A point that comes back within the tolerance is not enough: a sequence that converges slowly comes back every time.
// So the distances from cycle to cycle must shrink like a geometric sequence, and either what that sequence still has
// before it lies within the tolerance, or its limit can be told within the tolerance (docs/method/cell_mapping.md).
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace saltus {

/// What a trajectory settles on, seen on a section.
struct Attractor {
  int period = 0;              ///< in points of the section; 0: none was found
  std::vector<double> points;  ///< [point * states + state]: those of one period, or a sample where there is none

  std::size_t count(std::size_t states) const { return points.size() / states; }
  std::span<const double> point(std::size_t i, std::size_t states) const {
    return {points.data() + i * states, states};
  }
};

/// The largest difference of two points in units of the tolerance; infinite tolerances do not count.
double distance_in(std::span<const double> tolerance, std::span<const double> a, std::span<const double> b);

/// Whether two cycles are one within ten tolerances: every point of each is near one of the other. Two samples without
/// a period are one if each covers the other to a tenth of their common extent.
bool same_attractor(const Attractor& a, const Attractor& b, std::span<const double> tolerance);

class Settling {
 public:
  /// One tolerance per state, in its units; periods up to `most_period` are found.
  Settling(std::vector<double> tolerance, int most_period);

  /// Forgets all points.
  void clear() { count_ = 0; }
  /// The next point; whether the sequence has settled by now.
  bool add(std::span<const double> x);
  long count() const { return count_; }

  /// The cycle on which the sequence has settled.
  const Attractor& cycle() const { return cycle_; }
  /// The latest points, at most so many, as an attractor without a period.
  Attractor sample(int most) const;
  std::span<const double> tolerance() const { return tolerance_; }

 private:
  /// Of differences. Where one real multiplier is slower than all others, they are the same for all states and points.
  struct Ratios {
    double lowest = std::numeric_limits<double>::max(), highest = 0;
    bool agree() const { return lowest > 0 && highest < 0.99 && highest <= 1.1 * lowest; }
  };
  std::span<const double> latest(long back) const;
  double between(long back, long period) const { return distance_in(tolerance_, latest(back), latest(back + period)); }
  double between_cycles(int period, int cycle) const;
  bool stands_still(int period) const;
  bool shrinks_quickly(int period) const;
  bool shrinks_slowly(int period);
  bool little_is_left(int period) const;
  bool limits_agree(int period);
  void limit(long back, long base, std::span<double> x, Ratios& ratios) const;
  double apart_by(const Attractor& cycle, int shift) const;
  void keep_cycle(int period);

  std::vector<double> tolerance_;
  int most_period_;
  long kept_;
  std::vector<double> points_;  // the latest `kept_`, in a ring
  long count_ = 0;
  std::vector<double> limits_, earlier_limit_;  // scratch of shrinks_slowly
  Attractor cycle_;
};

}  // namespace saltus
