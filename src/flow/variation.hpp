// Derivatives of a trajectory by its start and by parameters: tangents carried along pieces and through transitions.
//
//   along a piece       X' = f_x X + f_u U + f_p P      0 = R_x X + R_u U + R_p P
//                       as Taylor series beside those of the states; U: tangents of sliding sigma and closed lambda,
//                       solved with the matrix R_u that the states use
//   at a transition     dt = -(h_x X + h_p P)/h'        when the guard is met
//                       Z  = X + f- dt                  the state at the event, moved with it
//                       Z  = R_x Z + R_t dt + R_p P     jumps, then impacts
//                       X  = Z - f+ dt
//
// A column is a direction (x, p): the state moves by X, the parameters by P, which stays as it is. The start time is
// the direction X = -f. Entering a sliding set makes the columns dependent: what is forgotten is forgotten.
// docs/method/variations.md
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/index.hpp"
#include "base/linear.hpp"
#include "code/plain.hpp"
#include "code/sides.hpp"
#include "flow/event/event_driven.hpp"
#include "flow/simulate.hpp"
#include "flow/tangent_lanes.hpp"
#include "flow/trajectory.hpp"

namespace saltus {

class Variation {
 public:
  /// `options` of the run to be followed: parameters, tolerance, direction.
  Variation(const Program& program, const RunOptions& options);

  /// The tangents from here on: a column per direction, rows by state and by parameter. Unless told otherwise they are
  /// brought onto what is slid on where the next piece begins.
  void begin(Mat x, Mat p = {}, bool rests = true);
  const Mat& tangents() const { return x_; }
  void set_tangents(Mat x) {
    x_ = std::move(x);
    passages_.clear();
  }
  /// Forgets the events met so far: another run begins.
  void forget_events();
  /// The tangents moved by others along a stretch, with the same events to come.
  void carry(Mat x) { x_ = std::move(x); }
  /// Only the first so many directions from here on.
  void shrink(Index directions) {
    p_ = Mat(p_.leftCols(directions));
    last_shift_ = Mat(last_shift_.leftCols(directions));
  }

  /// Over a piece of the run, which starts where the last one ended.
  /// `between`: on long pieces, after each stretch of it but the last; it may set other tangents.
  void along(const Piece& piece, const Arc& arc, const std::function<void()>& between = {});
  /// At the start of a piece, before going along it: states that rest at zero from here on where their own slopes are
  /// infinite (the end of x' = -sqrt(x)) have no tangents any more. Whether they had.
  bool forget(const Piece& piece, const Arc& arc);
  /// Over a piece, stopping on the way: `at` gets the tangents at each of these times after its start, which rise (fall
  /// backward) from 0 to its length.
  void along(const Piece& piece, const Arc& arc, std::span<const double> stops,
             const std::function<void(size_t, const Mat&)>& at);
  /// How the time of an event moves that is about to be gone through.
  Mat shift(const Transition& event);
  /// Over a part of a piece, from one time after its start to another.
  void along(const Piece& piece, const Arc& arc, double from, double to);
  /// Over a piece as far as tau, which lies on it; the tangents stay at its start.
  Mat within(const Piece& piece, const Arc& arc, double tau);
  /// Through what happened at an event.
  void through(const Transition& event);
  /// How the time of the last event moves with each direction.
  const Mat& last_shift() const { return last_shift_; }
  /// Onto what is slid on and closed at a point: a state off it is brought back along the forces that keep it there.
  void rest(const Arc& arc, std::span<const double> x, double t);

  /// Where the derivative is one-sided, or infinite: what a person should know.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Leaves what was made for modes met to the program, for the next one: this one is of no more use.
  void give_back() { program_.give_back(std::move(lent_)); }

  // ---- parts, for those who solve for orbits ------------------------------------------------------------------------

  Series& series() { return *memory_.series; }
  EngineMemory& memory() { return memory_; }
  /// The rates at a point; not finite where there are none.
  Vec rates(const Arc& arc, std::span<const double> x, double t);
  const std::vector<double>& parameters() const { return options_.parameters; }
  /// Other parameters from here on; what was made for modes met before is kept.
  void bind(const std::vector<double>& parameters);
  /// Derivatives of the rates: columns by state, then by each column of P, a direction of the parameters.
  Mat rate_slopes(const Arc& arc, std::span<const double> x, double t, const Mat& P);
  /// A guard at a point of a mode: its value, and its slopes by state, by time and along each column of P.
  struct GuardSlope {
    double value = 0, by_time = 0;
    Vec by_state, by_parameter;
  };
  GuardSlope guard(const Guard& g, const Arc& arc, std::span<const double> x, double t, const Mat& P = {});
  /// Its value alone.
  double guard_value(const Guard& g, const Arc& arc, std::span<const double> x, double t);
  /// A guard along the flow from a point: coefficients 0..order in time, and how each moves with the columns of (X, P).
  struct GuardSeries {
    Vec value;
    Mat tangent;  ///< row k: coefficient k
  };
  GuardSeries guard_series(const Guard& g, const Arc& arc, std::span<const double> x, double t, int order, Mat X,
                           Mat P);
  GuardSlope section(int s, const Arc& arc, std::span<const double> x, double t);
  double section_value(int s, const Arc& arc, std::span<const double> x, double t);
  /// The rates at the point that was looked at last.
  Vec last_rates() const;
  /// Moves x through the jumps and impacts of an event with everything frozen that was decided there, and Z with it.
  /// False where the equations of an impact have no solution.
  bool reset(const Transition& event, const Arc& arc, std::span<double> x, double t, Mat& z, const Mat& dt);
  /// Freezes the jumps of an event: the nonsmooth functions in what they set keep to what they choose there.
  void freeze(Transition& event, const Arc& arc);
  /// Where a root ends (h' = -sqrt(h)): a surface is met without speed and stayed on, because slopes across it are
  /// infinite.
  struct RootEnd {
    double value = 0;  ///< h
    Vec normal;        ///< h_x
    Vec direction;     ///< D, along which rates change with h; h_x D = 1
    Mat off;           ///< h_x X + h_p P
  };
  /// The root that an event at a point ends, if it ends one.
  std::optional<RootEnd> root_end(const Transition& event, const Arc& before, std::span<const double> x, double t);
  /// Onto a surface where a root has ended, on the side of the guard: beyond it the field has no values. While it rests
  /// there, h' = 0 as well.
  void land_on_root(const Guard& g, const Arc& arc, std::span<double> x, double t);
  /// The tangents there: what is left above the surface has gone where D leads.
  void end_root(const RootEnd& root) { x_ -= root.direction * root.off; }
  /// How far a frozen jump is from one that would do something else.
  struct JumpRoom {
    size_t place = 0;        ///< of the jump among those of the event
    bool condition = false;  ///< of its `when`; else of a choice in what it sets
    double value = 0;        ///< negative: it would not have been so
  };
  std::vector<JumpRoom> jump_room(const Transition& event, const Arc& arc, std::span<const double> x, double t);
  /// How far the `when` of a jump is from its contrary: positive where it holds; infinite where there is none. The
  /// state is the one that the jumps of the event before it leave.
  double condition(int jump, const Transition* event, const Arc& arc, std::span<const double> x, double t);
  /// The functions of sliding surfaces and closed contacts, which must stay zero, with their rates and slopes by state,
  /// then by parameter.
  void manifold(const Arc& arc, std::span<const double> x, double t, Vec& values, Mat& slopes, const Mat& P = {});
  /// Moves x onto what is slid on and closed, and the tangents with it.
  void land(const Arc& arc, std::span<double> x, double t);

 private:
  /// Other tangents in the place of (X, P), which come back at its end.
  class OtherTangents {
   public:
    OtherTangents(Variation& of, Mat x, Mat p);
    ~OtherTangents();
    OtherTangents(const OtherTangents&) = delete;
    OtherTangents& operator=(const OtherTangents&) = delete;

   private:
    Variation& of_;
    Mat x_, p_;
  };
  /// A direction per state, then one per column of P.
  OtherTangents all_directions(const Mat& P);

  // ---- series and tapes at a point (variation.cpp)
  void enter(const Arc& arc);
  bool expand(std::span<const double> x, double t, const Arc& arc, int order);
  struct TangentJet {
    Jet<double> jet;
    const Schedule* entered = nullptr;  ///< what was computed last
  };
  TangentJet& jet_of(const Tape& tape, int order);
  void load(Jet<double>& jet, double t, std::span<const double> counters, int order, const Piece* piece = nullptr);
  void load_tangents(double t, const Arc& arc, int order, const Piece* piece = nullptr);
  const Jet<double>& load_events(double t, const Arc& arc, int order);
  static double value_of(const Jet<double>& jet, int output) {
    const double v = jet.output(at(output))[0];
    return std::isfinite(v) ? v : 0.0;
  }
  bool moves_parameters() const { return p_.size() > 0 && !p_.isZero(0); }
  void note(std::string text);

  // ---- what a mode needs (variation_plan.cpp)
  struct Plan {
    Mode mode;
    std::vector<int> held{};  ///< unknowns that stand at a bound
    const TangentTape* tape = nullptr;
    std::vector<int> stand{};  ///< per unknown: position among the active ones, or -1
    std::vector<double> stand_sign{};
    std::vector<int> position{};  ///< by residual: position among the active unknowns, or -1
    TangentSystem system{};
    Schedule schedule{};  ///< of the derivatives by states and unknowns
    long uses = 0;
    bool compile_tried = false;
    std::vector<int> moving{};  ///< parameters, for which the following was made
    std::vector<SlopeEntry> by_parameter{};
    Schedule parameter_schedule{};
  };
  Plan& plan_of(const Arc& arc);
  void make_plan(Plan& plan);
  void find_standing(Plan& plan) const;
  void sort_terms(Plan& plan);
  std::vector<int> varying_slots(const Tape& tape) const;
  void sort_parameters(Plan& plan);
  void consider_native(Plan& plan);

  // ---- along a piece (variation_along.cpp)
  void move_along(const Piece& piece, const Arc& arc, double tau, const std::function<void()>& between = {},
                  double from = 0);
  void stop_on_the_way(int order, double done, double move);
  bool leave_root(const Piece& piece, const Arc& arc, double tau);
  void add_parameters(int order);
  void take_solution();
  void expand_tangents(int order);
  int expand_along(const Piece& piece, const Arc& arc, double done);
  bool is_series(const Piece& piece) const;
  double trusted_length(double left, int order);

  // ---- what events look at (variation_guards.cpp)
  const Jet<double>& event_point(const Arc& arc, std::span<const double> x, double t);
  Mat row_tangent(int row, const Jet<double>& jet, const TangentTape& tape, const Mat& z, const Mat* dt) const;
  Mat row_slope(int row, const Jet<double>& jet, const TangentTape& tape) const;
  Mat unknown_tangent(int u) const;
  Mat event_tangent(int row);
  struct Watched {  // what a guard compares with its bound: a row of the event tape, or an unknown
    const double* series = nullptr;
    int row = -1, unknown = -1;
    double bound = 0;
  };
  Watched watched(const Guard& g) const;
  Mat bound_tangent(const Guard& g) const;
  Mat guard_tangent(const Guard& g);
  GuardSlope slopes(double value, double rate, const Mat& tangent) const;
  void add_event_series(int row, const Arc& arc, double t, Mat& tangent);
  void add_unknown_series(int u, Mat& tangent) const;
  Mat formula_shift(const Expr& e) const;
  Mat shift_of(const Guard& g, double t);
  Mat tick_shift(const LoweredJump& jump, double t) const;

  // ---- through a transition (variation_events.cpp)
  void pass(const Transition& event);
  void pass_at_start(const Transition& event, const Arc& before);
  bool only_meets_rest(const Transition& event) const;
  void start_to_slide(const Transition& event, const Arc& after);
  bool only_starts_to_slide(const Transition& event) const;
  Arc arc_before(const Transition& event) const;
  Mat shifts_of(const Transition& event);
  std::optional<Mat> one_by_one(const Transition& event, const Arc& before, std::span<const size_t> order);
  bool through_several(const Transition& event, const Arc& before, const Mat& shifts);

  // ---- at the end of a chatter (variation_chatter.cpp)
  struct Passage {  // an event, and how times and states move with the tangents there
    Guard guard;
    Mode before;
    Mat shift, after;
  };
  void remember(const Transition& event);
  void accumulate(const Transition& event);
  std::array<const Passage*, 3> last_in_step() const;

  // ---- jumps (variation_jumps.cpp) and impacts (variation_impact.cpp)
  struct Multipliers {
    std::vector<double> lambda;
    Mat tangent;
  };
  struct JumpSlope {
    int state = 0;
    SymbolKind by = SymbolKind::state;
    int index = 0;
    Plain formula;
  };
  struct JumpFormulas {
    std::vector<Sides> sides;  // kept; none: as it falls
    std::vector<std::pair<int, Plain>> values;
    std::vector<JumpSlope> slopes;
    std::vector<Plain> room;
  };
  struct Impact;
  Multipliers multipliers(const Arc& arc, std::span<const double> x, double t, const Mat& z, const Mat& dt);
  std::vector<double> lambdas(const Arc& arc, std::span<const double> x, double t);
  JumpFormulas& jump_formulas(const JumpDone& jump);
  Plain* margin_of(int jump);
  void pass_jump(const JumpDone& jump, const Multipliers& before, std::span<double> x, double t, Mat& z, const Mat& dt);
  bool pass_hit(const Hit& hit, std::span<double> x, double t, Mat& z, const Mat& dt);
  void turn_through(const Hit& hit, std::span<const double> x_minus, std::span<const double> x_plus, double t, Mat& z,
                    const Mat& dt);
  void turn_along(const Hit& hit, std::span<const double> x_minus, std::span<const double> x_plus, double t, Mat& z,
                  const Mat& dt);
  Impact impact_between(const Hit& hit, std::span<const double> x_minus, std::span<const double> x_plus, double t);
  const Jet<double>& impact_point(std::unique_ptr<Jet<double>>& jet, const Hit& hit, const Tape& tape,
                                  std::span<const double> x, std::span<const double> sigma, double t) const;
  Mat turn(const Impact& impact, const Mat& z, const Mat& dt) const;
  Mat turn_by_sigma(const Impact& impact) const;
  int gap_rate(const Impact& impact, int contact) const;
  Mat rebound(const Impact& impact, int contact, const Mat& z, const Mat& dt) const;

  // ---- what is slid on and closed (variation_rest.cpp)
  struct Ground {
    Mat directions, functions;
    Vec values;
    Mat by_parameter;
  };
  Ground ground(const Arc& arc, std::span<const double> x, double t);
  void keep_at_zero(const Vec& slope, double value, bool tangents, std::span<double> x);
  void rest(const Ground& g);

  /// Data of the modes met before, by this variation and by earlier ones.
  struct Memory {
    explicit Memory(const Program& program) : engine(program) {}
    /// Makes it fit a run.
    void prepare(const RunOptions& options);
    void forget_plans();
    /// About how many numbers it holds.
    size_t size() const;

    EngineMemory engine;
    std::vector<std::unique_ptr<Plan>> plans{};
    std::unordered_map<const Tape*, std::unique_ptr<TangentJet>> jets{};
    /// Jets of the tapes of events, before and after an impact.
    std::unordered_map<const Tape*, std::pair<std::unique_ptr<Jet<double>>, std::unique_ptr<Jet<double>>>>
        impact_jets{};
    std::vector<std::list<JumpFormulas>> jump_formulas{};  ///< by jump, a set for each choice of sides
    std::vector<std::optional<Plain>> conditions{};        ///< margins of `when`, by jump
  };

  const Program& program_;
  const Model& model_;
  RunOptions options_;
  std::unique_ptr<Memory> lent_;
  EngineMemory& memory_;
  double direction_, tolerance_;
  int order_;
  Mat x_, p_;
  bool left_out_ = false;          // a slope that is infinite where tangents were expanded last
  std::vector<char> rested_;       // per state: whether it was at rest at zero on the last piece
  bool first_ = true;              // not brought onto what is slid on yet
  Arc last_arc_;                   // of the last piece
  double last_time_ = 0;           // of the last transition
  Mat last_shift_;                 // how it moved
  std::vector<Passage> passages_;  // the latest events
  TangentRows tangents_;           // series of X and U, as Plan::system has them
  std::vector<double> point_;
  std::span<const double> stops_;  // of the piece gone along: times at which the tangents are asked for
  const std::function<void(size_t, const Mat&)>* at_stop_ = nullptr;
  size_t next_stop_ = 0;
  Plan* plan_ = nullptr;  // of the last point
  std::vector<std::string> notes_;
};

}  // namespace saltus
