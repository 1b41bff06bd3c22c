// A branch of periodic orbits as it is followed: the orbit's zero problem, what is special on it, how it goes on where
// its signature changes.
//
//   branch_orbit          the curve: start, tests, what is told of a point, where it ends
//   branch_orbit_other    from a special point: another branch, or its curve in two parameters
//   branch_orbit_kind     what it means that a guard or the length of a leg vanishes
//   branch_orbit_change   the signature behind such a place, the matrices on both sides, the passage
#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/branch_book.hpp"
#include "analysis/continuation.hpp"
#include "analysis/kept_test.hpp"
#include "analysis/orbit_problem.hpp"

namespace saltus {

/// A leg shorter than this share of the period has gone at a special point.
constexpr double vanished = 1e-5;

class OrbitCurve {
 public:
  OrbitCurve(const Model& model, const OrbitOptions& start, const BranchOptions& options)
      : model_(model), start_(start), options_(options), problem_(model, start, {options.parameter}), book_(options_) {}
  Branch follow();
  /// Cycles born at an equilibrium: small ones first, away from it.
  Branch follow_cycles(const Birth& birth);

 private:
  bool driven_somewhere() const;
  CurveOptions curve_options() const;
  std::optional<Vec> prepare(const Orbit& orbit);
  std::optional<CurvePoint> begin(const Orbit& orbit);
  void both_ways(CurvePoint first);
  /// From a point near the special one at which the branch begins, away from it.
  void one_way(const CurvePoint& first);
  /// Newton's method on the hyperplane through a point across its direction; that direction is the way to go.
  std::optional<CurvePoint> kept_apart(const CurvePoint& from);
  Followed functions();
  /// The orbit, counted once, if a step has led to an orbit of a fraction of the period: another branch, close by.
  std::optional<Located> nearly_vanished(const CurvePoint& p);
  bool falls_back(const CurvePoint& p);
  /// Ends in terms of the first parameter.
  BranchEnd walk(const CurvePoint& from, int direction);
  const OrbitView& view(const CurvePoint& p);
  std::vector<Test> tests(const CurvePoint& p);
  /// The guards and lengths of legs, beyond whose zero the signature is another one.
  std::vector<Test> signature_tests(const OrbitView& v) const;
  BranchPoint told(const CurvePoint& p);
  bool point(const CurvePoint& p);
  /// Points between two, where what is told turns: it may do so where the unknowns hardly move.
  void fill(const CurvePoint& a, const BranchPoint& from, const CurvePoint& b, const BranchPoint& to, int depth);
  /// True if the curve has come back to where the walk began, through changes of its signature.
  bool comes_round(const CurvePoint& p, const BranchPoint& now);
  /// True if the walk has passed this special point before: the curve goes round, or back on itself. Then it stops.
  bool passes_again(const SpecialPoint& s, const BranchPoint& here);
  /// True for a special point of a branch followed before, or of its mirror image.
  bool is_known(const SpecialPoint& s) const;
  double length_between(const CurvePoint& a, const CurvePoint& b);
  /// True if a state moves by more than a share of its range on the orbits.
  bool exceeds(const Vec& moved, double share) const;
  /// Points of the walk that goes on.
  int walked() const { return static_cast<int>(book_.branch.points.size() - walk_begin_); }
  /// How far states move on an orbit, in units of their sizes at the start.
  double extent_of(const BranchPoint& p) const;
  /// Where an orbit is none any more: its period, its size, its extent.
  bool ends_at(const BranchPoint& p);
  /// Near a homoclinic orbit the period grows with the logarithm of the distance in the parameter: that ends first. On
  /// a family of orbits at one value of the parameter multipliers stay near 1.
  bool grows_on_the_spot(const BranchPoint& p);
  /// Where an orbit is slowest, in units of its mean speed, and its largest multiplier.
  struct Slowest {
    double growth = 0, speed = HUGE_VAL;
    std::vector<double> state{};
  };
  Slowest slowest_on(const OrbitView& v);
  void explain_loss();
  /// The saddle, saddle-node or pseudo-saddle beside the slowest part of the last orbit; nothing if there is none.
  std::optional<Equilibrium> saddle_beside();
  /// Where the last points of a branch that tends to a homoclinic orbit lead: the distance in the parameter goes as
  /// exp(-l T), l the smaller of the saddle's leading rates.
  std::optional<double> limit_beside(const Equilibrium& saddle) const;
  std::string told_limit(const Equilibrium& saddle) const;
  /// True if states go as far as at the last point: near a homoclinic orbit time passes beside the equilibrium, along a
  /// canard on the way.
  bool keeps_its_shape(const BranchPoint& p) const;
  /// Adds the special equilibrium onto which an orbit has shrunk.
  void add_equilibrium(const BranchPoint& p);
  SpecialPoint place(const std::string& type, const Located& l);
  bool add(SpecialPoint s, const CurvePoint& at_point);
  /// The determinant of equations and parameter apart, by multipliers: its sign is that of the parameter's slope, or
  /// always the other one.
  double turning(const CurvePoint& p);
  /// True if the test changes sign where the slope does.
  bool turns(const Located& l);
  /// How the parameter changes along the curve; where that is rounding (a canard), what multipliers say of it.
  double slope(const CurvePoint& p);
  bool special(const Located& l);

  // ---- from a special point -----------------------------------------------------------------------------------------

  void begin_at_special(const CurvePoint& first);
  /// True if this is the point sought, which is then kept and ends the walk.
  bool is_sought(const Located& l, const std::string& type);
  void follow_other(const Located& l);
  /// The other branch where two cross: both ways, away from there. False if none is found.
  bool follow_crossing(const Located& l, const Vec& direction);
  /// Where the branch of a flip, counted twice, or of a symmetry that is broken begins.
  std::optional<CurvePoint> unfolded(const Located& l, bool twice);
  /// An orbit of it, so far away in the direction that is turned round.
  std::optional<CurvePoint> moved_by(double share, const Vec& direction, const Located& l, bool twice);
  /// True if the first point lies where expected, satisfies the model, and is no orbit counted twice.
  bool begins_here(const CurvePoint& first, const Located& l, const Vec& direction, double share);
  /// The orbit, counted once, of an orbit counted twice.
  OrbitOptions half_of(const Located& l);
  /// Where multipliers jump over the unit circle: another orbit that runs settle on close by, of a multiple of the
  /// period or without the symmetry.
  std::optional<OrbitOptions> orbit_beside(const Located& l);
  /// A run from the orbit at a special point that settles at another value of the parameter.
  OrbitOptions settling_from(const Located& l, double value);
  /// The curve of the special point in two parameters.
  void follow_special(const Located& l);
  /// The orbit without an impact that is met without speed; the gap of that impact is kept. Where it happens, its
  /// time goes with a square root.
  std::optional<Vec> without_kept_impact(const Located& l);
  double kept_value(const Vec& z);
  /// Where the curve of a special point is special itself.
  std::vector<Test> curve_tests(const CurvePoint& p);
  void add_resonances(const Spectrum& roots, std::vector<Test>& out) const;
  /// Tests that are zero at a point of the curve: they are so all along it, by what is kept.
  std::set<std::string> zeros_at(const Vec& z);
  std::optional<Passage> past_the_cut_on_curve(const Located& l);
  /// Where another test is zero and the point stays what it is: a surface that moves nothing.
  std::optional<Passage> pass_on_curve(const Located& l);
  std::optional<Vec> renew_on_curve(const CurvePoint& p);
  /// The orbit cut elsewhere, with the same events; what is kept has another name then.
  std::optional<Vec> cut_on_curve(const Vec& z);

  // ---- what a change is ---------------------------------------------------------------------------------------------

  /// Legs next to each other that have no length at a special point: [first, last], none if first > last.
  struct Vanishing {
    size_t first = 1, last = 0;
    bool any() const { return first <= last; }
  };
  Vanishing vanishing(const OrbitView& v, const std::string& test) const;
  static bool met(const Transition& event, int item);
  /// A gap that comes down to zero: of a body an impact without speed, of a diode, whose gap is a current, it blocks.
  std::string touch_of(size_t constraint) const;
  /// The type of a point where legs vanish, from the switch states before, on and after them.
  std::string type_of_vanishing(const OrbitView& v, const Vanishing& gone);
  /// True if the field behind a surface pushes back where the orbit touches the surface.
  bool pushes_back(const OrbitView& v, const Monitor& m, const std::vector<double>& x, double t);
  /// True if a surface is met with zero speed in a mode.
  bool without_speed(const Arc& arc, int item, const std::vector<double>& x, double t, double period);
  /// True if a guard is nearest to zero where the orbit is cut.
  static bool at_cut(const Monitor& m, size_t legs);
  std::string type_of_monitor(const OrbitView& v, const Monitor& m, const std::vector<double>& x, double t);
  /// The type of the zero of a breaking test; empty if the zero is of no consequence.
  std::string type_of(const Located& l);
  bool admissible(const OrbitView& v) const;

  // ---- behind a change ----------------------------------------------------------------------------------------------

  struct OneSided {
    Mat matrix;
    bool infinite = false;
    Spectrum multipliers;
  };
  /// A point of another signature: legs from a run near the change, then Newton with the parameter kept.
  struct Side {
    Vec z;
    OrbitProblem::Frozen frozen;
    double side = 0;
  };
  /// The limit of matrices at u -> 0 by the polynomial through them.
  static Mat limit(const std::vector<double>& u, std::vector<Mat> m);
  Spectrum multipliers_of(const Mat& M) const;
  OneSided one_sided(const std::vector<double>& u, const std::vector<Mat>& m);
  /// The matrix on the side from which the branch comes.
  OneSided matrix_before(const Located& l);
  std::optional<Side> try_side(const OrbitProblem::Frozen& legs, Vec z, double value, double side, const Located& l);
  /// The signature without the legs that vanish, at the special point.
  std::optional<Vec> without(const Vanishing& gone, const Located& l);
  bool moves_nothing(const Shot::End& end);
  /// The leg that ends in an impact, or a jump that is one, whose speed vanishes.
  std::optional<size_t> vanishing_impact(const OrbitView& v);
  /// The signature without that impact, at the special point.
  std::optional<Vec> without_impact(size_t leg, const Located& l);
  /// How many times an orbit beside a change counts one of a part of its period.
  int times_of(const Side& side);
  /// The orbit, counted once, when an impact vanishes and leaves an orbit counted several times.
  std::optional<OrbitOptions> orbit_without_impact(const Located& l);
  /// True if an orbit found near a special point converges to the orbit there, with a square root at
  /// least: where what happens jumps, another orbit may lie beside it.
  bool begins_at(const Side& side, double value, double eps, const Located& l);
  /// From the orbit at a special point, at the cut, in units of the sizes.
  double distance_from(const Vec& z, const Located& l);
  std::optional<Side> on_side(const Vec& z, double value, double eps, double side, const Located& l);
  std::optional<Side> both_sides(const Vec& z, double value, double eps, double incoming, const Located& l);
  /// The signature that takes over behind a change, and on which side of the parameter it is admissible: what a run
  /// from just beyond does, or the same without the legs that have gone.
  std::optional<Side> other_side(const Located& l, double incoming);
  /// The signature of a run from so far beyond, if it is another one; how far away in the parameter to look for it.
  struct Beyond {
    std::optional<Vec> z{};
    double eps = 0;
  };
  Beyond run_beyond(const Located& l, double reach, const OrbitProblem::Frozen& old);
  /// The orbit of the same period on which a run settles close by: an orbit that touches a surface with
  /// its whole length has another signature than a run that starts on it.
  std::optional<Side> settled_side(const Located& l, double incoming);
  OneSided matrix_after(const Side& side, double value);
  /// True if an orbit that exists only backward in time ends at this place.
  bool meets_backward(const BranchPoint& p, double value);
  bool meets_cut(const Located& l);
  /// Where an event meets the cut, which means nothing: the orbit cut elsewhere, before that.
  std::optional<Passage> past_the_cut(const Located& l);
  Passage pass(const Located& l);

  const Model& model_;
  OrbitOptions start_;
  BranchOptions options_;
  OrbitProblem problem_;
  Followed followed_;
  std::optional<Continuation> curve_;
  BranchBook book_;
  int looking_ = 0;  ///< points still to be looked at for a special point sought
  std::optional<Located> sought_;
  OrbitProblem::Frozen sought_signature_;
  std::string kept_;              ///< the test kept at zero on a curve in two parameters
  std::set<std::string> beside_;  ///< tests that mean nothing there: zero with it, or of what moves nothing
  Singularity singular_;
  double first_step_ = 0.005;  ///< of a walk: smaller where a branch begins beside another one
  double longest_ = 0;
  Vec first_size_;
  double largest_extent_ = 0;
  std::optional<double> limit_;    ///< where a branch tends that ends shortly before
  std::optional<BranchEnd> stop_;  ///< why the walk was stopped
  int slope_sign_ = 0;             ///< of the slope and what multipliers say of it, together; 0: not known
  int growing_ = 0;                ///< points in succession at which the period grows and the parameter rests
  double last_period_ = 0, last_value_ = 0;
  std::vector<double> last_lowest_, last_highest_;
  size_t walk_begin_ = 0, walk_specials_ = 0;  ///< points and special ones told before this walk
  struct Last {
    CurvePoint point;
    BranchPoint told;
    Vec slope;  ///< of what is told, along the curve
    size_t specials = 0;
  };
  std::optional<Last> last_;  ///< the point before, on the same curve
  Vec extent_;                ///< how far each state moves on the orbits so far
  BranchPoint begun_;         ///< where the walk began
  struct Passed {
    std::string type;
    BranchPoint there;
    bool rises = false;  ///< the parameter, on the way there
  };
  std::vector<Passed> passed_;     ///< special points of the walk, in order
  std::array<bool, 2> repeats_{};  ///< whether that is counted twice, or three times
  OrbitView view_;
  Vec seen_;
  size_t seen_legs_ = 0;
  bool fine_ = false;
  Slowest slowest_;  // of the last point
};

}  // namespace saltus
