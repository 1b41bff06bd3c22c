// The Taylor series of one mode at one point: states, surfaces, gaps, and the sliding sigma and closed lambda.
//
// For k = 0, 1, ...:
//   free(k)                              what depends on states only
//   solve residual_k(u_k) = 0            u: sigma of the slid surfaces, lambda of the closed constraints;
//                                        k = 0 by Newton on the multi-affine system, k > 0 linearly with the same
//                                        matrix
//   bound(k)                             what depends on u
//   x_{k+1} = f_k / (k+1)
//
// Unknowns that stand alone with a slope that is constant on the step (a block that sticks) are formulas in the list of
// operations, and the series of their mode are as plain as those of any other. What a mode needs is found once
// (series_plan); slopes, and forces that are redundant, are in series_forces.
#pragma once

#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/linear.hpp"
#include "code/jet.hpp"
#include "code/native.hpp"
#include "code/rounding.hpp"
#include "flow/band_slope.hpp"
#include "flow/trajectory.hpp"
#include "model/program.hpp"

namespace saltus {

enum class SeriesStatus {
  ok,
  undefined,  ///< a rate is not a finite number here
  unsolved,   ///< no sigma and lambda keep the state on the mode's manifold
};

class Series {
 public:
  Series(const Program& program, std::span<const double> parameters, int order);

  int order() const { return order_; }
  const Program& program() const { return program_; }
  const std::vector<double>& parameters() const { return parameters_; }
  const Mode& mode() const { return mode_; }
  const ModeTape& tape() const { return *tape_; }

  void set_mode(const Mode& mode);
  /// Sets the mode that differs in the state of one switch.
  void set_mode(const Mode& mode, int u, char letter);
  /// Other parameters; everything learnt from a past run is forgotten.
  void bind(std::span<const double> parameters);
  /// For parts of a model, which come in many modes: those that differ only in the sides of switches share what has
  /// been found for one of them, and it is made ready at its first step. All modes must have the same formulas.
  void share_sides() { shares_sides_ = true; }
  /// Machine code for the modes that come back often, or for all that come back.
  void use_native(Native native) { native_ = native; }
  /// How many steps a run makes in a mode whose flow is linear before its series become weighted sums
  /// (code/linear_flow).
  void weigh_after(int steps) { steps_before_weights_ = steps; }
  /// A step has been made in the current mode.
  void note_step() { ++plan_->run_steps; }
  /// How many expansions machine code did so far.
  long native_expansions() const { return native_expansions_; }
  /// Restores the initial condition with the same parameters.
  void reset();
  /// About how many numbers it holds, for all modes met so far.
  size_t size() const;

  /// Surfaces that are multiples of each other: (switch -> earlier switch, sign). Their sigma are one unknown.
  using Ties = std::unordered_map<int, std::pair<int, int>>;
  void tie(Ties ties);
  const Ties& ties() const { return ties_; }

  /// Coefficients 0..order of everything at (x, t) in the current mode.
  SeriesStatus expand(std::span<const double> x, double t, std::span<const double> counters, int order);
  /// Values only: rates, surfaces, unknowns at (x, t).
  SeriesStatus evaluate(std::span<const double> x, double t, std::span<const double> counters);

  const double* state(int i) const { return work_->states[static_cast<size_t>(i)]; }
  const double* rate(int i) const { return work_->rates[static_cast<size_t>(i)]; }
  const double* surface(int i) const { return work_->flow.output(program_.surface(i)); }
  const double* gap(int j) const { return work_->flow.output(program_.gap(j)); }
  const double* jump(int k) const { return work_->flow.output(program_.jump(k)); }
  const double* section(int s) const { return work_->flow.output(program_.section(s)); }
  const double* phase(int c) const { return work_->flow.output(program_.phase(c)); }
  /// Functions whose series see nothing of where they change, as far as the mode needs them, and their arguments.
  const std::vector<Operation>& peaks() const { return plan_->scheduled ? plan_->peaks : tape_->flow.peaks; }
  /// High powers, as far as the mode needs them, their bases and exponents.
  const std::vector<HighPower>& powers() const { return plan_->scheduled ? plan_->powers : tape_->flow.powers; }
  const double* base(const HighPower& p) const { return work_->flow[p.base]; }
  double exponent(const HighPower& p) const { return p.exponent >= 0 ? work_->flow[p.exponent][0] : p.power; }
  const double* argument(const Operation& peak) const { return work_->flow[peak.a]; }
  /// Series of an unknown (slid sigma or closed lambda), or its fixed value.
  const double* unknown(int u) const { return work_->unknowns[static_cast<size_t>(u)]; }
  /// Unknowns that stand at a bound because others suffice to keep the mode (redundant forces): they are not watched.
  bool held(int u) const { return held_[static_cast<size_t>(u)]; }
  /// True if no unknown of the current mode enters the equation that would keep the surface of switch u.
  bool idle(int u) const;
  /// How much the unknowns of the mode change the residual of each of them within their bounds, after expand or
  /// evaluate; 0 for the others.
  std::vector<double> reaches() const;
  /// True if forces are redundant in the current mode at the last point.
  bool redundant() const { return any_held_; }
  /// True if forces are redundant as far as the slope at the last point shows, also where no distribution was found.
  bool redundant_mode() const;
  /// Expands, and where forces are redundant finds a distribution of them that stays inside its bounds just after the
  /// point: a vertex of {u in bounds : A u = b(t)}, by pivots. `unsolved` if there is none.
  SeriesStatus distribute(std::span<const double> x, double t, std::span<const double> counters, int order,
                          double time_scale, double direction);
  /// True if an unknown of the current mode stays inside its bounds just after the point of the last expand.
  bool stays_inside(int u, int order, double time_scale, double direction) const {
    return violated_bound(u, time_scale, direction, order) == 0;
  }
  /// Leading coefficients of the distance of an unknown from its bound that are zero, 0 if it is inside.
  int leading_at_bound(int u, int order, double time_scale, double direction) const;
  /// Redundant forces of the current mode are shared evenly from now on, or follow a vertex again.
  void share_evenly(bool even);
  bool is_joint(int u) const { return u >= program_.switches() && program_.joint(u - program_.switches()); }
  /// The unknowns held in the current mode, with their values; to be had again by `hold_at`. Of redundant joints, which
  /// share their forces, those that the others could do without.
  std::vector<std::pair<int, double>> held_values() const;
  void hold_at(const std::vector<std::pair<int, double>>& values);
  /// residual = A u + r of the active unknowns at the point, for a mode that is affine in them. False if not finite.
  bool linear_system(std::span<const double> x, double t, std::span<const double> counters, Mat& A, Vec& r);
  bool linear_system(std::span<const double> x, double t, std::span<const double> counters, SparseMat& A, Vec& r);

  /// d h' / d sigma of a switch alone, where that is a number in the formulas of the current mode and sigma moves h'.
  std::optional<double> side_slope(int u);

  /// True if the flow is linear, driven by polynomials, sines and cosines of time.
  bool linear() const { return plan_->linear; }
  /// The highest frequency of those, after an expand.
  double turning() const;

  /// The order up to which the series of the current mode cost little more than their first terms; 0: none.
  int order_at_once() const { return (plan_->compiled && !shares_sides_) || plan_->weighs ? plan_->order : 0; }

  /// The order that served the current mode best so far; yours to set.
  int& usual_order() { return plan_->order; }

  struct Plan;
  /// The current mode, to come back to it by `go_beside` as long as `binding` is the same.
  Plan* here() const { return plan_; }
  /// To a mode that differs from the current one by this letter of a switch.
  void go_beside(Plan* to, int u, char letter) {
    const int order = plan_->order;
    plan_ = to;
    mode_.switches[static_cast<size_t>(u)] = letter;
    enter(order);
  }
  /// To another mode, as if by way of a third one.
  void go_through(Plan* third, Plan* to, const Mode& mode) {
    if (third->order == 0) third->order = plan_->order;
    const bool stays = plan_ == to;
    plan_ = to;
    mode_ = mode;
    if (!stays) enter(third->order);
  }
  /// True if nothing but its letters and what it slides on has to be known to go on in the current mode.
  bool simple() const { return plain() && plan_->keeps_all && tape_->slope_affine && plan_->blocks.empty(); }
  /// A number of the current mode, of its own as long as this exists, and of the parameters that are bound.
  size_t mode_number() const { return plan_->number; }
  long binding() const { return binding_; }
  /// True if the series of the current mode are those of a plain jet: nothing is solved for, or all of it by formulas.
  bool plain() const {
    return plan_->scheduled && !shares_sides_ && plan_->followers.empty() &&
           (plan_->active.empty() || plan_->has_formula);
  }
  /// True if the last expand was one of a plain jet, as far as its order.
  bool expanded_plainly(int order) const { return work_->reached >= order; }

  const std::vector<int>& active() const { return plan_->active; }
  /// True if the sigma of every switch that is slid on enters an equation that is kept.
  bool keeps_all() const { return plan_->keeps_all; }
  /// True if vector switches leave rest in the current mode (letter '^'): their directions are the guess.
  bool departs() const { return !plan_->departs.empty(); }
  /// Where a mode has several solutions, or directions are given.
  bool keeps_guess() const { return !tape_->slope_affine || departs() || shares_in_discs(); }
  /// The residuals of the active unknowns, in the order of `active`, and their slopes, at a point and at any values of
  /// all unknowns. False where they are not finite.
  bool residuals_at(std::span<const double> x, double t, std::span<const double> counters,
                    std::span<const double> unknowns, Vec& r, Mat& slope);
  /// Starting values for the unknowns of a mode that is not affine in them.
  void guess(std::span<const double> unknowns) { guess_.assign(unknowns.begin(), unknowns.end()); }
  /// Takes the present unknowns as the guess from which a mode with several solutions is continued.
  void guess_present() {
    if (!keeps_guess() || guess_.size() != static_cast<size_t>(program_.unknowns())) return;
    for (const int u : plan_->active) guess_[static_cast<size_t>(u)] = unknown(u)[0];
  }
  /// The guesses of the current mode; none where it is affine.
  void read_guess(std::vector<double>& out) const {
    out.clear();
    if (keeps_guess()) out = guess_;
  }

  /// Unknowns that depend on each other, with d residual / d unknown among them at the last point.
  struct Block {
    std::vector<int> members;         ///< positions in active()
    std::vector<SlopeEntry> entries;  ///< row and column within the block
    Mat slope;
    Mat inverse;  ///< of the basis if singular: rows of held members and columns of dependent rows are zero
    std::optional<BandSlope> band;  ///< of a large one
    bool banded = false;            ///< it is regular and `band` has it; slope and inverse are empty
    bool singular = false;
    std::vector<char> held;       ///< per member, if singular: it stands at a bound, outside the basis
    std::vector<double> held_at;  ///< where
    bool even = false;            ///< if singular: nobody is held, the forces are shared evenly (least squares)
    double determinant = 0;       ///< of the slope with its rows scaled; its sign, if banded
  };
  /// An unknown that no other active unknown influences.
  struct Single {
    int member = 0;                                 ///< position in active()
    std::vector<std::pair<int, double>> entries{};  ///< (output of the slope tape, factor), summed
    int output = -1;                                ///< the only one of them, or -1
    double slope = 0, inverse = 0;
  };
  const std::vector<Block>& blocks() const { return plan_->blocks; }
  /// The inverse of the slope of a block, or of its basis; also of a large one, which nobody else needs.
  static Mat inverse(const Block& block);
  const std::vector<Single>& singles() const { return plan_->singles; }
  /// True if the slope varies along a trajectory; then its determinant is worth watching.
  bool slope_varies() const { return !plan_->slope_rests && !plan_->active.empty(); }
  /// Series of the slope after an expand: fills what `slope_series` reads.
  void expand_slope(int order);
  const double* slope_series(int output) const { return work_->slope.output(static_cast<size_t>(output)); }

  /// Moves x onto what the mode slides on; returns the largest |h| found before. `depth`: how many of h, h', ... count.
  double project(std::span<double> x, double t, std::span<const double> counters, size_t depth = 9);
  /// Projects a state that may be far off, or onto surfaces at small angles to each other: by least squares.
  void project_together(std::span<double> x, double t, std::span<const double> counters);
  /// Puts x onto the joints and closed contacts of the mode, positions before speeds, by Newton's method; the largest
  /// |g| or |g'| before. With `contacts` false joints alone.
  double project_joints(std::span<double> x, double t, std::span<const double> counters, bool contacts = true);

  /// Values of definitions, jump right sides, restitutions and impact directions at (x, t), after expand or evaluate
  /// there.
  const Jet<double>& actions();
  /// Actions with other values of some switches: (switch, sigma).
  const Jet<double>& actions(std::span<const std::pair<int, double>> sigma);
  /// (x, t) for `manifold` and `actions` alone: nothing else has a value there.
  void stand_at(std::span<const double> x, double t, std::span<const double> counters);
  /// Values at (x, t) without solving for anything: the given switches, '0' in the mode, count as sigma = 0.
  void evaluate_with(std::span<const double> x, double t, std::span<const double> counters,
                     std::span<const int> open_switches);
  /// Gradients of the functions an unknown keeps at zero (rows: h, h', ...), after evaluate at (x, t).
  const Jet<double>& manifold();

  /// True if an active constraint is kept by the rate of its gap because no multiplier in the gap is active.
  bool raised(int u) const;
  /// The gap without multipliers that a raised constraint keeps at zero.
  double raised_value(int u);

  /// Bound of the rounding error in an output of the tape at the point of the last expand or evaluate.
  double noise(size_t output);

  /// The rate of a state that no formula gives (model/subsystem): the derivative of this series, 0 behind it. It stays
  /// until it is driven otherwise.
  void drive(int i, std::span<const double> series);

  double hold(int i) const { return hold_[static_cast<size_t>(i)]; }

 private:
  struct Work {
    Jet<double> flow, slope, manifold, actions;
    std::vector<double*> states{}, rates{}, unknowns{};  ///< their series in the flow jet
    std::unique_ptr<Rounding> rounding{};
    const Plan* last = nullptr;         ///< the mode whose series are there
    int reached = -1;                   ///< the order up to which they are right, in a mode that is a plain jet
    std::vector<double> side_slopes{};  ///< per switch, once asked for; infinite where there is none
  };

  /// A slid sigma that equals another one up to sign.
  struct Follower {
    int unknown = 0, leader = 0;
    double sign = 1;
  };

  /// A surface that a state alone is on, at a number: x_i = 0, or the constant in a slot of the manifold tape.
  struct Landing {
    int state = 0;
    int constant = -1;
    double sign = 1;
  };

 public:
  /// Data that depends on the mode only; elsewhere a mode is known by its identity alone.
  struct Plan {
    Mode mode;
    const ModeTape* tape = nullptr;
    Work* work = nullptr;
    std::vector<std::vector<int>> departs{};  ///< positions in `active` of the components that leave rest
    size_t number = 0;                        ///< among all plans that were made
    std::vector<int> active;                  ///< unknowns to be solved for
    std::vector<int> position;                ///< per unknown, among the active ones; -1: none
    std::vector<int> still{};                 ///< switches whose surfaces stay zero by themselves
    std::vector<int> rows;                    ///< the residual each of them is solved from
    std::vector<size_t> outputs;              ///< where those residuals are in the flow tape
    std::vector<Follower> followers;
    std::vector<Block> blocks;
    std::vector<Single> singles;
    // Series in the flow jet, by pointer: they are visited once per order.
    std::vector<double*> unknowns, residuals;  ///< of the active unknowns
    std::vector<double*> bound_rates;          ///< rates that depend on an active unknown
    std::vector<double*> pinned;               ///< rates of the states that are held: exactly zero
    Schedule schedule{};
    int order = 0;           ///< that served it best
    size_t uses = 0;         ///< large modes get a schedule, and all machine code, once they are used often
    size_t uses_before = 0;  ///< in the runs before, of large modes
    int steps = 0;           ///< with the parameters of now, where sides are shared
    int run_steps = 0;       ///< in this run
    bool weighs = false;     ///< from now on they are weighted sums
    bool scheduled = false;
    bool ready = false;  ///< a plain jet, with slopes that are numbers and known
    bool compile_tried = false, compiled = false;
    bool slope_known = false;  ///< slopes that are numbers are formed once
    bool slope_rests = true;   ///< the slope reads nothing that moves in this mode
    std::vector<std::pair<const Plan*, std::vector<int>>> left_by{};  ///< by the mode before: slots to be cleared
    Schedule formula{};  ///< of a mode whose unknowns are formulas: all of it
    bool has_formula = false;
    bool keeps_all = true;            ///< each switch that is slid on has a sigma that keeps something
    bool solvable = false;            ///< no slope of a single unknown is zero
    bool linear = false;              ///< the flow is, with slopes that rest
    std::vector<Operation> peaks{};   ///< of the tape, as far as its schedule does them
    std::vector<HighPower> powers{};  ///< the same
    std::vector<int> turns{};         ///< slots of the arguments of its sines and cosines of time
    std::vector<Landing> landings{};  ///< all that is slid on, where that is so simple
    std::vector<Plan*> beside{};      ///< those with another letter of one switch, once they were asked for
  };

 private:
  Plan& plan_of(const Mode& mode);
  bool serves(const Plan& plan, const Mode& mode) const;
  Plan& plan_beside(const Mode& mode);
  size_t size_of_plan() const;
  void enter(int order);
  void forget_plans();
  void note_use(int order) {
    ++plan_->uses;
    if (!plan_->scheduled) consider_schedule(order);
    if (native_ == Native::off) return;
    if (!plan_->compile_tried) consider_native();
    native_expansions_ += plan_->compiled;
  }
  bool scheduled_at_once(const ModeTape& tape) const;
  size_t often() const;
  void consider_schedule(int order);
  void forget_schedule(Plan& plan);
  void consider_native();
  void compile(bool known);
  void enter_schedule(const Plan* last);
  Plan make_plan(const Mode& mode);
  std::vector<int> held_states(const Plan& plan) const;
  std::vector<Landing> find_landings(const Plan& plan) const;
  bool slope_rests(const Plan& plan) const;
  std::vector<int> unknown_slots(const Plan& plan, const Tape& tape) const;
  void make_schedule(Plan& plan);
  void make_formula(Plan& plan, std::span<const size_t> outputs, std::span<const int> varying) const;
  void choose_rows(Plan& plan, const std::vector<int>& position) const;
  void extend_free(int k);
  void extend_bound(int k);
  void load(std::span<const double> x, double t, std::span<const double> counters, int order);
  bool stands_at(std::span<const double> x, double t, std::span<const double> counters) const;
  bool rates_are_finite() const {
    for (const double* rate : work_->rates) {
      if (!std::isfinite(rate[0])) return false;
    }
    return true;
  }
  void consider_weights(Schedule& schedule);
  void extend_plainly(Schedule& schedule, int order, int first);
  SeriesStatus expand_plain(Schedule& schedule, int order);
  bool is_ready() const;
  SeriesStatus expand_ready(std::span<const double> x, double t, std::span<const double> counters, int order);
  SeriesStatus solve_start();
  bool any_singular() const;
  SeriesStatus start_departure();
  void slope_whole();
  bool solve_beside(const std::vector<char>& given);
  void solve_departure(int k);
  void choose_basis(Block& block);
  bool invert_basis(Block& block);
  bool pivot(double time_scale, double direction, int order, bool& feasible);
  int violated_bound(int u, double time_scale, double direction, int order) const;
  void take_held_values();
  void release_regular_blocks();
  void solve_order(int k);
  void form_slope();
  bool form_band(Block& block);
  bool only_joints(const Block& block) const;
  bool has_parts(const Block& block) const;
  bool shares_in_discs() const;
  void stand_unsolved(std::span<const double> x, double t, std::span<const double> counters, Vec& r);
  void read_residual(int k);
  void note_rates(int k);
  void clear_held_rates(int k);
  /// step = -slope^-1 residual, block by block
  void solve_blocks();
  bool residual_is_rounding() const;
  double* unknown_slot(int u) { return work_->unknowns[static_cast<size_t>(u)]; }
  void copy_inputs(Jet<double>& to, int order) const;
  double value_of_letter(int u, char letter) const;

  const Program& program_;
  std::vector<double> parameters_;
  int order_;
  std::vector<double> hold_;
  std::unordered_map<const ModeTape*, std::unique_ptr<Work>> works_;
  std::unordered_map<std::string, std::unique_ptr<Plan>> plans_;
  size_t plan_size_ = 0;  // of all plans, by their unknowns: a bound of their memory
  size_t met_size_ = 0;   // of those that this run has met
  size_t plans_made_ = 0;
  long binding_ = 0;  // a number of parameters, ties and plans as they are: of no other series either
  Plan* plan_ = nullptr;
  Mode mode_, trial_;
  bool shares_sides_ = false;
  std::array<Plan*, 4> recent_{};  // the last ones: modes come back soon
  size_t next_recent_ = 0;
  const ModeTape* tape_ = nullptr;
  Work* work_ = nullptr;
  std::vector<bool> held_;
  bool any_held_ = false;
  std::vector<double> guess_;
  std::vector<double> counters_;
  Native native_ = Native::automatic;
  long native_expansions_ = 0;
  int steps_before_weights_ = 0;
  double t_ = 0;
  Vec residual_, step_;
  Mat whole_;                                 // slope of a departure
  std::vector<double> departure_rate_;        // r' of each vector switch that leaves rest
  std::vector<std::vector<double>> lengths_;  // series of their |h|
  std::vector<double> scratch_;
  std::vector<double> unsolved_;  // rates before the unknowns of an order are known
  std::vector<double> unpinned_;  // the same of states that are held, where an equation may be left over
  bool leaves_rows_ = false;      // the slope is singular
  Ties ties_;
};

}  // namespace saltus
