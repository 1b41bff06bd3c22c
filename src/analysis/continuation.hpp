// Pseudo-arclength continuation: a zero problem and tests in, a curve with its special points out.
//
//   F(z) = 0 has one equation fewer than unknowns; its solutions are a curve with the unit tangent t, F_z t = 0
//   from a start, both ways, until an end:
//     predict   z + ds t
//     correct   Newton on [F(z); t.(z - predicted)], rows bordered                  too hard or too bent: ds smaller
//     test      every test function at the new point; which have changed sign
//     locate    the zeros between the two points, each on the curve itself: z(s) solves [F; t.(z - z0) = s]
//     pass      a special point that changes the problem: the problem says how the curve goes on
//
// Lengths are measured in units of each unknown's own size. The driver knows nothing of what is followed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/linear.hpp"

namespace saltus {

/// A function on the curve whose zeros are special.
struct Test {
  std::string name;  ///< the same function at the next point has the same name
  double value = 0;
  bool breaks = false;  ///< beyond its zero the problem is another one
  bool meets = false;   ///< it may vanish because another curve is met
};

struct CurvePoint {
  Vec z;
  Vec tangent;             ///< unit, in units of the scale
  double orientation = 0;  ///< determinant of [F_z; t], its rows of length one, or what is left of it: changes sign
                           ///< where curves meet
  int iterations = 0;

  /// This point, walked through in the other direction.
  CurvePoint reversed() const { return {z, -tangent, -orientation, iterations}; }
  double last() const { return z[z.size() - 1]; }
  /// How the last unknown changes along the curve.
  double last_slope() const { return tangent[tangent.size() - 1]; }
};

/// Where a test vanishes, with the points between which it does.
struct Located {
  Test test;
  CurvePoint point, before, behind;
  double distance = 0;  ///< from `before`
  bool meets = false;   ///< the orientation changes sign between the points on both sides: another curve is met there
  std::optional<Vec> other{};  ///< its direction, where it is known
};

/// How a curve goes on behind a special point at which the problem changes.
struct Passage {
  bool goes_on = false;
  Vec z;                    ///< a point of the new problem
  double along = 0;         ///< sign of the last unknown's change from there on
  std::string why, detail;  ///< if it ends
};

/// [F_z; border] where F_z is too large to be one matrix; unknowns and border in units of the scale.
struct LargeSlopes {
  /// y with F_z y = r and border.y = value.
  std::function<Vec(const Vec& border, const Vec& r, double value)> solve;
  /// Zero where the determinant is, and of its sign.
  std::function<double(const Vec& border)> orientation;
};

/// A zero problem to follow. All functions see the problem as it stands: `pass` may change it.
struct Followed {
  /// F and F_z; false where they are not to be had.
  std::function<bool(const Vec& z, Vec& r, Mat& J)> equations;
  /// True if F_z is too large to be one dense matrix now; may be left out.
  std::function<bool()> large{};
  /// Then F, and F_z as it is; false where they are not to be had.
  std::function<bool(const Vec& z, Vec& r, LargeSlopes& slopes)> large_equations{};
  /// True if F_z is made of differences: the residual after a step is then more than its square.
  bool slopes_differ = false;
  /// F alone, in the units of the last F_z, where that is less work; may be left out.
  std::function<bool(const Vec& z, Vec& r)> residual{};
  /// The size of each unknown; it may change from step to step.
  std::function<Vec()> scale;
  std::function<std::vector<Test>(const CurvePoint&)> tests;
  /// True if a corrected point is near enough to the last one for the problem as it stands; else the step is shortened.
  std::function<bool(const CurvePoint&)> near;
  /// A new point has been accepted. False: enough.
  std::function<bool(const CurvePoint&)> point;
  /// A zero of a test that does not break the problem. False: enough.
  std::function<bool(const Located&)> special;
  /// A zero of one that does.
  std::function<Passage(const Located&)> pass;
  /// Where the signature is meaningless: the start of the step in other unknowns, from which the step is made again, or
  /// nothing.
  std::function<std::optional<Passage>(const Located&)> anew{};
  /// Where no step can be made any more: what has vanished there but for rounding. Or nothing.
  std::function<std::optional<Located>(const CurvePoint&)> lost{};
  /// Called between steps; may change the unknowns. Gives the point anew, or nothing.
  std::function<std::optional<Vec>(const CurvePoint&)> renew;
};

struct Bound {
  double low = 0, high = 0;
};

struct CurveOptions {
  std::vector<Bound> bounds;  ///< of the last unknowns, in their order
  double first_step = 0.005;  ///< in units of the scale
  double largest_step = 0.02, smallest_step = 1e-9;
  int most_points = 2000;  ///< each way
  double bend = 0.9;       ///< smallest cosine between successive tangents
};

struct CurveEnd {
  std::string why;  ///< range, points, closed, signature, failed, stopped
  std::string detail;
  double value = 0;  ///< of the last unknown
};

class Continuation {
 public:
  Continuation(const Followed& followed, const CurveOptions& options) : followed_(followed), options_(options) {}

  /// Newton's method from a guess with the last unknown kept; the tangent points to where it grows.
  std::optional<CurvePoint> start(Vec z) const;
  /// From a point along its tangent until an end.
  CurveEnd walk(CurvePoint from);

  /// The sizes of the unknowns as they are now, for those who correct points without walking.
  void refresh_scale() { scale_ = followed_.scale(); }
  /// z with t.(z - from) = s, near a guess.
  std::optional<CurvePoint> correct(const CurvePoint& from, double s, Vec guess, bool rough = false) const;
  /// The corrected point with one unknown kept.
  std::optional<CurvePoint> correct_at(const CurvePoint& along, Vec guess, Index kept) const;

 private:
  /// The unknown that has left its bounds, or at them points out of them: -1 if none.
  Index outside(const Vec& z, const Vec& tangent) const;
  /// `rough`: the last step, whose square is rounding, need not be checked, and is made with the matrix before it.
  std::optional<CurvePoint> newton(Vec z, const Vec& border, double value, const Vec& along, bool rough = false) const;
  /// Onto the bound that an unknown has left; nothing if that fails.
  std::optional<CurvePoint> at_bound(const CurvePoint& along, Vec guess, Index out) const;
  Vec between(const CurvePoint& a, const CurvePoint& b, double s, double step) const;
  std::optional<Located> locate(const CurvePoint& a, const CurvePoint& b, double step, const Test& from,
                                const Test& to) const;
  /// A place where another curve is met: Newton's method along one of them does not get there.
  void refine(Located& l, double step) const;

  /// Zeros that are not found: any, or one of a test that breaks the problem.
  struct Lost {
    bool any = false, breaks = false;
  };
  /// The zeros of all tests between two points, in order.
  std::vector<Located> zeros_between(const CurvePoint& a, const CurvePoint& b, double step,
                                     const std::vector<Test>& from, const std::vector<Test>& to, Lost& lost) const;
  double comes_round(const CurvePoint& from, const CurvePoint& to, double made, const CurvePoint& origin) const;
  /// Tests that vanish before the first break and have their sign again behind it: a multiplier that passes -1 on its
  /// way to infinity.
  void add_before_break(const CurvePoint& a, const CurvePoint& b, double step, const std::vector<Test>& from,
                        std::vector<Located>& found) const;

  const Followed& followed_;
  CurveOptions options_;
  mutable Vec scale_;
};

}  // namespace saltus
