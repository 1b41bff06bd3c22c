// Decides if a sequence of points has settled, and with what period: the one answer for sweeps, basins and orbits.
// Points of a section go in one by one until they have settled, or a record of them is judged as a whole.
//
// A point that comes back within the tolerance is not enough: a sequence that converges slowly comes back every time.
// So the distances from cycle to cycle must shrink like a geometric sequence, and either what that sequence still has
// before it lies within the tolerance, or its limit can be told within the tolerance (docs/method/cell_mapping.md). A
// record too short to show that is judged by how its phases move over its thirds (docs/method/many_runs.md).
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace saltus {

/// The limit set of a trajectory, seen on a section.
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

/// True if two cycles are one within ten tolerances: every point of each is near one of the other. Two samples without
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
  /// The period of what a sequence that has not settled goes to, where that can be told; 0: it cannot.
  int heading() const;
  /// Where no more points come: the cycle that the record as a whole shows, or at most so many points without a period;
  /// nothing where they are still on their way to a cycle, and do not show where it lies.
  std::optional<Attractor> verdict(int most) const;
  /// The latest points, at most so many, as an attractor without a period.
  Attractor sample(int most) const;
  std::span<const double> tolerance() const { return tolerance_; }

 private:
  /// Ratios of successive differences. Where one real multiplier is slower than all others, they are the same for all
  /// states and points.
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
  bool keep_cycle(int period, double joined);

  std::vector<double> tolerance_;
  int most_period_;
  long kept_;
  std::vector<double> points_;  // the latest `kept_`, in a ring
  long count_ = 0;
  std::vector<double> limits_, earlier_limit_;  // scratch of shrinks_slowly
  Attractor cycle_;
};

struct Recurrence {
  long period = 0;          ///< 0: none found
  bool slow = false;        ///< none found, because a sequence that looks periodic is still on its way
  bool on_its_way = false;  ///< that of the cycle to which the points go: where it lies is not known yet
  bool arrived = false;     ///< all points of the record lie on the cycle, none before it
};

/// The period of a record of points, one after another, each with as many components as there are tolerances (all above
/// 0; infinite: the component does not count): that of the cycle on which it has settled by its end. Periods up to
/// `longest`, but no longer than a third of the points.
Recurrence find_period(std::span<const double> points, std::span<const double> tolerance, long longest);

}  // namespace saltus
