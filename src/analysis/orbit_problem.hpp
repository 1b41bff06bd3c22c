// A periodic orbit as a zero problem in parameters: a frozen signature, its equations, multipliers and guards.
//
// The orbit is cut in the middle of its longest leg, away from events. A symmetric orbit is half of it:
// x(T/2) = S x(0), whose matrix N has the multipliers' roots as eigenvalues.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/continuation.hpp"
#include "analysis/jump_watch.hpp"
#include "analysis/leg_chain.hpp"
#include "analysis/orbit.hpp"
#include "analysis/signature.hpp"
#include "analysis/spectrum.hpp"
#include "analysis/symmetry.hpp"

namespace saltus {

/// Where the orbit is cut.
struct Anchor {
  double share = 0;     ///< of the clock, after the start time (forced)
  double time = 0;      ///< autonomous
  Vec normal, through;  ///< phase condition (autonomous)
};

/// A guard of a leg of the signature, and how near to zero it comes.
struct Monitor {
  size_t leg = 0;
  LegGuard guard;
  Lowest lowest;
  std::string name;
  std::optional<JumpWatch> jump{};  ///< of a jump: what may change
};

/// Everything worth knowing about a solution.
struct OrbitView {
  std::vector<Leg> legs;
  double t0 = 0, period = 0;
  Mat matrix;  ///< monodromy, or N of a symmetric orbit; the flow's direction split off where it is autonomous
  double trivial = 1;
  Spectrum multipliers;
  Spectrum roots;  ///< eigenvalues of `matrix`
  bool stable = false;
  std::vector<Monitor> monitors;
  std::vector<LegTrace> traces;
  Shot shot;
};

class OrbitProblem {
 public:
  OrbitProblem(const Model& model, const OrbitOptions& options, std::vector<int> parameters);

  /// Takes a found orbit as the present signature; its unknowns.
  std::optional<Vec> take(const Orbit& orbit);
  /// Takes the signature of an orbit close by, at the phase of the present cut (forced), with the present closing.
  std::optional<Vec> take_near(const Orbit& orbit, const std::vector<double>& parameters, double t);
  /// Takes the signature of a run from a point: the unknowns, or nothing if the run does not close in time.
  std::optional<Vec> take_run(std::vector<double> x, double t, double duration, const std::vector<double>& values);
  /// The direction in states, of unit length in their sizes, that a map near -1 or the half map turns round.
  Vec unfold(const Mat& matrix);
  /// The orbit at which a branch begins, moved: counted twice (a flip), or as a whole (a symmetry broken).
  std::optional<Vec> take_other(const Vec& move, bool twice);
  /// One parameter more; the unknowns with it.
  Vec follow_also(const Vec& z, int parameter, double range);
  /// Takes an edited signature.
  std::optional<Vec> take_legs(std::vector<Leg> legs);
  /// Cuts the orbit elsewhere: in the middle of its longest leg.
  std::optional<Vec> cut_anew(const Vec& z);
  bool needs_cut(const Vec& z) const;
  /// True if tangents grow so much on a leg that it should be in more parts: `take_legs` of those that exist.
  bool needs_nodes(const OrbitView& view) const;
  /// Puts the plane of the phase anew, through its point and across the flow, when an autonomous orbit no longer passes
  /// straight through it. Returns if that was needed.
  bool renew_phase(const Vec& z);
  /// The cosine of the angle between that plane's normal and the flow; 1 where there is none.
  double straightness(const Vec& z);
  /// The signature with all that belongs to it, to come back to.
  struct Frozen {
    std::vector<Leg> legs;
    Anchor anchor;
    Closing closing;
    std::optional<Symmetry> symmetry;
    Vec scale, size, most;
    Expr clock;
    double period;
    Vec widest;
    std::vector<double> told;
  };
  Frozen frozen_signature() const;
  void restore(const Frozen& frozen);

  bool equations(const Vec& z, Vec& r, Mat& J);
  /// True if legs are so many that they are eliminated one after the other; followed by the equations for that.
  bool large() const { return followed_.size() == 1 && LegChain::fits(legs_); }
  bool large_equations(const Vec& z, Vec& r, LargeSlopes& slopes);
  /// The residual alone, in the units of the last equations.
  bool residual(const Vec& z, Vec& r);
  Vec scale() const { return scale_; }
  void set_ranges(const std::vector<double>& ranges) {
    ranges_ = ranges;
    set_scale();
  }
  bool view(const Vec& z, OrbitView& out, bool monitors);

  /// Legs and parameters put in: what later calls see.
  void put(const Vec& z);
  std::vector<double> values_of(const Vec& z) const;
  double period_of(const Vec& z) const;

  const std::vector<Leg>& legs() const { return legs_; }
  const std::optional<Symmetry>& symmetry() const { return symmetry_; }
  bool autonomous() const { return !forced_; }
  const Program& program() const { return program_; }
  Shooting& shooting() { return *shooting_; }
  double start_time() const { return t0_; }
  double direction() const { return direction_; }
  const std::vector<double>& parameters() const { return values_; }

  /// True if this is an orbit of a fraction of the period, counted `times` times. `same`: the distance of states taken
  /// as equal; at a place where two orbits meet they do so with a square root.
  bool repeats(const OrbitView& view, int times = 2, double same = 1e-4) const;
  /// True if the orbit, followed as a whole, is its own image by a sign change of states that the model has.
  bool is_own_image(const Vec& z);
  /// The state on the model's section, near the one told last; where there is none, at the cut.
  std::vector<double> told_state(const OrbitView& view, double& t);
  /// Lowest and highest value of each state.
  void extremes(const OrbitView& view, std::vector<double>& low, std::vector<double>& high) const;
  /// The sizes of the states from now on: those that have become larger have a larger one. Of an autonomous orbit,
  /// which may shrink to a point, they shrink with how far it moves; times have the size of its period.
  void resize(const std::vector<double>& low, const std::vector<double>& high, double period);
  /// Modes in the order they are met, as users see them.
  std::vector<std::string> signature() const;
  /// True if a switch changes the equations near a point: the rates of the modes that differ in it, or the constraints
  /// there.
  bool acts(const Arc& arc, const std::vector<double>& x, double t, int item);

 private:
  struct Told {  // a state that may be told, and its time
    std::vector<double> x;
    double t = 0;
  };

  // ---- parameters and unknowns (orbit_problem.cpp)
  std::vector<double> parameters_with(const std::vector<double>& values) const;
  std::vector<double> followed_of(const std::vector<double>& parameters) const;
  void bind(const std::vector<double>& values);
  void set_clocks();
  void set_scale();
  void prepare_legs();
  Vec pack(const std::vector<double>& values) const;

  // ---- where signatures come from (orbit_problem_signature.cpp)
  void measure(const Trajectory& orbit);
  std::optional<double> modulus_of(Index state) const;
  bool is_clocked(double share) const;
  void find_clock(double orbit_period);
  std::optional<Trajectory> run_for(RunOptions o, double t, double duration);
  std::optional<Vec> cut_run(const std::vector<double>& x, double t, double duration,
                             const std::vector<double>& values);
  void put_phase(const Vec& x, const Vec& f);
  Vec flow_at_cut();

  // ---- what a solution is like (orbit_problem_view.cpp)
  void set_multipliers(OrbitView& out);
  std::vector<std::vector<LegGuard>> guards_of_legs();
  void set_monitors(const std::vector<std::vector<LegGuard>>& guards, OrbitView& out);
  std::vector<Monitor> passed_holds(size_t leg, const Shot::End& end);
  std::vector<Mat> factors_of(const Shot& shot);
  std::vector<Vec> flow_at_legs();
  std::vector<Index> kept_states() const;
  Vec in_units(const Vec& x) const;
  std::vector<Arc> modes_near(const Arc& arc, const std::vector<double>& x, double t, int item);

  // ---- what is told (orbit_problem_told.cpp)
  std::vector<Told> told_by_clock(const OrbitView& view) const;
  double in_first_period(double since) const;
  std::vector<Told> told_on_section(const OrbitView& view, int section);
  struct Look;
  std::vector<Look> looks(const OrbitView& view) const;
  Told seen(const Look& look, double tau) const;
  double section_at(const Look& look, int section, double tau);
  std::vector<Told> crossings(const OrbitView& view, int section);
  std::vector<std::vector<double>> states_at(const OrbitView& view, double t) const;
  std::vector<double> mirrored(std::vector<double> x) const;
  Mode mirrored(const Mode& mode) const;

  Model bare_;
  Program program_;
  const Model& model_;
  OrbitOptions options_;
  std::vector<int> followed_;
  double direction_ = 1;
  bool forced_ = false;
  Expr clock_ = 0.0;  ///< period of a forced orbit
  std::optional<Simulator> simulator_;
  std::optional<Shooting> shooting_;
  std::optional<Symmetry> symmetry_;
  Closing closing_;
  Anchor anchor_;
  std::vector<Leg> legs_;
  std::vector<double> values_;  ///< all parameters
  Mat directions_;
  double t0_ = 0, period_ = 0;
  Vec start_by_;
  Vec scale_, size_, widest_;
  Vec most_;  ///< the largest of each state on the present orbit
  std::vector<double> ranges_;
  std::vector<double> told_;
};

}  // namespace saltus
