// A branch of equilibria as it is followed: rest in one mode, what is special on it, how it goes on where a letter
// changes.
//
//   branch_equilibrium            the curve: start, equations, tests, what is told of a point
//   branch_equilibrium_other      from a special point: another branch, cycles born there, its curve in two parameters
//   branch_equilibrium_boundary   where a guard is zero: the letters that take over
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/branch_book.hpp"
#include "analysis/continuation.hpp"
#include "analysis/kept_test.hpp"
#include "analysis/lyapunov.hpp"
#include "analysis/spectrum.hpp"
#include "flow/variation.hpp"

namespace saltus {

/// The name of a boundary equilibrium from the number of its half-branches on the side from which it is met and beyond,
/// and from the passages of the set of its one-sided matrices through the imaginary axis (Leine 2000, chapter 5).
std::string boundary_name(int here, int beyond, const std::vector<SetPassage>& passages);

/// A guard at an equilibrium: the sign it must have, its value.
struct GuardValue {
  Guard guard;
  double value = 0;  ///< positive: admissible
};

class EquilibriumCurve {
 public:
  EquilibriumCurve(const Model& model, const EquilibriumOptions& start, const BranchOptions& options)
      : program_(model),
        model_(program_.model()),
        start_(start),
        options_(options),
        variation_(program_, start.run),
        book_(options_) {
    followed_ = {options.parameter};
  }
  Branch follow();

 private:
  Index n() const { return program_.states(); }
  CurveOptions curve_options() const;
  /// Down first; what is found is turned round, so that points are in order along the curve.
  void both_ways(const CurvePoint& first);
  /// Ends in terms of the first parameter.
  BranchEnd walk(const CurvePoint& from, int direction);
  Followed problem();
  std::vector<double> values_of(const Vec& z) const { return {z.begin() + n(), z.end()}; }
  void begin(const Arc& arc, const std::vector<double>& x);
  void bind(const Vec& z);
  double time() const { return start_.run.from; }
  std::vector<double> state_of(const Vec& z) const { return {z.begin(), z.begin() + program_.states()}; }
  /// [F; Q^T f] with F what is slid on and closed, Q along it.
  bool equations(const Vec& z, Vec& r, Mat& J);
  /// The flow's matrix in the mode, on what it slides on.
  Mat matrix(const Arc& arc, const std::vector<double>& x);
  Spectrum eigenvalues_at(const Vec& z);
  std::vector<GuardValue> guards(const Arc& arc, const std::vector<double>& x);
  static std::string name_of(const Guard& g);
  std::vector<Test> tests(const CurvePoint& p);
  bool slides() const;
  BranchPoint told(const CurvePoint& p);
  bool point(const CurvePoint& p);
  SpecialPoint place(const std::string& type, const CurvePoint& p, const CurvePoint& before);
  bool add(SpecialPoint s);
  bool special(const Located& l);

  /// Equilibria on one side of a boundary equilibrium, in one mode.
  struct HalfBranch {
    Arc arc;
    double side = 0;  ///< sign of the parameter's change from the place on
    double turn = 0;  ///< how far its direction is from that of the incoming one
    std::vector<double> state;
    double value = 0;
  };
  /// Where guards of an equilibrium are zero: all half-branches but the one it was met along, the one that goes on
  /// first.
  struct Boundary {
    double incoming = 0;  ///< side from which it was met
    std::vector<Guard> zero;
    std::vector<HalfBranch> half_branches{};
  };

  // ---- from a special point -----------------------------------------------------------------------------------------

  void begin_at_special(const CurvePoint& first);
  /// True if this is the point sought, which is then kept and ends the walk.
  bool is_sought(const Located& l, const std::string& type);
  void follow_other(const Located& l);
  /// A cycle that is born where an equilibrium meets a boundary: one that runs settle on, forward or backward, and
  /// whose size grows in proportion to the distance from there.
  std::optional<OrbitOptions> cycle_beside(const Located& l, const Boundary& boundary);
  /// A displacement from there that grows in proportion to the distance and is as large as what moves apart.
  Vec beside(const Located& l, const Boundary& boundary, double distance);
  bool follow_from_boundary(const Located& l);
  bool follow_half_branch(const Located& l, const HalfBranch& half);
  static double extent_of(const Orbit& orbit);
  /// The cycles born at a Hopf point.
  void follow_born(const Located& l);
  /// Both ways from a point on a direction that is no tangent of the curve it lies on.
  void both_sides_of(const CurvePoint& along);
  /// The curve of the special point in two parameters.
  void follow_special(const Located& l);
  double kept_value(const Vec& z);
  /// Where the curve of a special point is special itself.
  std::vector<Test> curve_tests(const CurvePoint& p);
  /// The first Lyapunov coefficient of a Hopf point; nothing where it slides or rests.
  std::optional<double> lyapunov(const Vec& z);

  // ---- boundary equilibria ------------------------------------------------------------------------------------------

  /// An equilibrium in a mode near a special one, at another value of the parameter.
  std::optional<std::vector<double>> rest_in(const Arc& arc, const std::vector<double>& x, double value);
  /// All modes in which what is at zero here has another letter.
  std::vector<Arc> neighbours(const std::vector<Guard>& zero) const;
  bool admissible(const Arc& arc, const std::vector<double>& x);
  std::vector<Guard> zero_guards(const Located& l);
  Boundary boundary_at(const Located& l);
  /// True if only switch states change: the surface has no effect near the point.
  bool passes_unnoticed(const Located& l, const Boundary& boundary);
  SpecialPoint boundary_point(const Located& l, const Boundary& boundary);
  Passage pass(const Located& l);

  Program program_;
  const Model& model_;
  EquilibriumOptions start_;
  BranchOptions options_;
  Variation variation_;
  BranchBook book_;
  Followed following_;
  std::optional<Continuation> curve_;
  Arc arc_;
  Mat basis_;
  Vec scale_;
  std::vector<double> parameters_;
  Mat directions_;
  std::vector<int> followed_;
  int looking_ = 0;  ///< points still to be looked at for a special point sought
  std::optional<Located> sought_;
  std::string kept_;  ///< the test kept at zero on a curve in two parameters
  Singularity singular_;
  std::optional<LyapunovCoefficient> lyapunov_;
  Mode lyapunov_mode_;  // for which that is
};

}  // namespace saltus
