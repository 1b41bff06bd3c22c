// The nonsmooth system: what a person wrote, and the one form it lowers to.
//
//   x' = f(x, t, p, sigma, lambda)                                affine in each lambda_j; see below for sigma_i
//   switch      sigma_i in Sgn h_i(x, t, p)                       -1, +1, or solved in [-hold, hold] while sliding
//   constraint  0 <= lambda_j  perp  g_j(x, t, p, lambda) >= 0    restitution r_j if g is of degree 2
//   joint       g_j(x, t, p, lambda) = 0                          lambda_j of either sign
//   jump        when c_k(x, t, p) crosses zero, or a clock ticks: x becomes R_k(x, t, p), if a condition holds
//
// f is meant for sigma_i = +1 and -1 and keeps its formulas as written (exp(b*sigma*w) stays), so that a mode evaluates
// its own side only; where a switch slides, model/program replaces f by the multi-affine interpolation between its two
// sides.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "expr/expr.hpp"

namespace saltus {

enum class Direction { any, rising, falling };
std::string_view direction_name(Direction direction);

// ---- as written -------------------------------------------------------------------------------------------------

struct State {
  std::string name;  ///< the speed of a coordinate x is called x'
  Expr rate;         ///< where balances give it: its own symbol, rate_symbol()
  Expr initial;
  Place place{};
  int speed = -1;  ///< of a coordinate: the state that is its speed, and its rate

  /// False if balances give the rate.
  bool has_line() const { return !rate.is_symbol(SymbolKind::rate); }
};

/// An equation linear in rates that need not stand alone: (m1 + m2)*x'' + m2*l*cos(th)*th'' = F.
struct Balance {
  Expr left, right;
  Place place{};
  bool made = false;  ///< of the Lagrangian
};

/// An equation as it stands in the file: a rate of a state, a name for a formula, or a balance.
struct WrittenLine {
  enum Kind { rate, name, balance } kind = rate;
  int index = 0;
  friend bool operator==(const WrittenLine&, const WrittenLine&) = default;
};

struct Parameter {
  std::string name;
  Expr value;  ///< in constants and other parameters, never in a circle
  Place place{};
};

/// A name for a formula.
struct Definition {
  std::string name;
  Expr value;
  Place place{};
  bool made = false;  ///< of the Lagrangian: kinetic, potential, energy
};

/// Parameters A[1,2] given together: a vector (one column) or a matrix. Entries that are 0 are no parameters.
struct ParameterArray {
  std::string name;
  int rows = 0, columns = 1;
  bool matrix = false;
  std::string file{};  ///< where it stands, as a whole path; empty: in the model file
};

struct Constraint {
  std::string name;  ///< of its multiplier
  Expr gap;
  bool joint = false;  ///< `equals` instead of `gap`: it stays zero, its multiplier has either sign
  std::optional<Expr> restitution;
  std::optional<Expr> friction{};    ///< Coulomb's coefficient, where the multiplier acts by virtual power
  std::vector<Expr> slip{};          ///< tangential velocities: one, or two components
  std::vector<Expr> slip_sign{};     ///< sign(slip), or the components of unit(slip)
  std::optional<Expr> tangential{};  ///< restitution_tangential
  Place place{};                     ///< of the gap
  Place restitution_place{};         ///< of the restitution, if there is one
  Place friction_place{};            ///< of `friction` or `slip`
};

struct Assignment {
  int state = 0;
  Expr value;
};

/// Equations of motion from the Lagrangian L(q, q', t): d/dt dL/dq' - dL/dq = forces - d(dissipation)/dq'.
struct Mechanics {
  Expr lagrangian;
  std::vector<Assignment> forces;  ///< by coordinate
  std::optional<Expr> dissipation;
  Place place{};
};

/// States change at once: when `on` crosses zero, or at the times phase + k*every.
struct Jump {
  std::string name;
  Expr on = 0.0;  ///< 0 where there is a clock
  Direction direction = Direction::any;
  bool level = false;                ///< it also happens where `on` is found beyond zero in its direction
  std::optional<Expr> every, phase;  ///< in parameters and constants
  std::optional<Expr> when;          ///< a condition on the values just before; without it the jump always happens
  std::vector<Assignment> set;
  Place place{};  ///< of `on` or `every`
};

/// Where a Poincaré map looks: every so often, or when something happens.
struct Section {
  enum class Kind { every, on, constraint, jump };
  std::string name;
  Kind kind = Kind::every;
  Expr value;     ///< the interval of `every`, the zero function of `on`
  int index = 0;  ///< of the constraint or jump
  Direction direction = Direction::any;
  bool stop = false;
  Place place{};
};

/// A function given by points, in the model file or in a file of its own.
struct PointTable {
  std::string name;
  std::shared_ptr<const Interpolant> curve;
  std::string file{};                  ///< where the points stand, as a whole path; empty: in the model file
  std::vector<std::string> columns{};  ///< of that file, by name or position; empty: the first two
  std::uint64_t checksum = 0;          ///< of that file
};

/// The label of a quantity in plots.
struct Label {
  std::string name;
  std::string text;
};

/// Defaults of options, from the table [run].
struct RunDefaults {
  std::optional<Expr> from, until;
  std::optional<double> tolerance, dt;
  std::optional<std::string> engine;
};

// ---- lowered ----------------------------------------------------------------------------------------------------

struct Switch {
  std::string name;  ///< the surface as first written
  Expr surface;      ///< h; depends on no switch but those earlier in Form::order
  Expr hold = 1.0;   ///< static over dynamic ratio s: on h = 0 it stays while |sigma| <= s
  int vector = -1;   ///< it is a component of this vector switch (Form::vectors)
  bool holds = false;
  Place hold_place{};             ///< of the formula that says so
  std::optional<Expr> rebound{};  ///< tangential restitution e: after an impact sigma belongs to h+ + e*h-
  bool selects = false;           ///< it chooses between formulas, so the formula not chosen must not be evaluated
  int at_zero = 0;                ///< sigma where h stays zero whatever sigma is: x > y is false, x >= y true, sign 0
  bool kink = false;         ///< only |h| enters (abs, min, max, sat): no rate jumps, and sigma cannot move its surface
  bool hidden = false;       ///< no letter of a mode: a step of floor, a break of a table, a kink inside an `on`
  bool discrete = false;     ///< h changes at events only (states of rate 0, floors, other switches)
  bool may_be_zero = false;  ///< it may rest on its surface with sigma = 0, which no function of it takes for +1 or -1
  std::vector<int> acts_on{};    ///< states whose rate it enters
  std::vector<int> interacts{};  ///< switches it multiplies
};

struct Gap {
  Expr gap;            ///< g
  bool joint = false;  ///< g = 0 at all times; the letter of a joint in modes is always 'c'
  int degree = 0;      ///< 0: g contains a multiplier; 1, 2: lambda enters its first or second derivative
  std::optional<Expr> restitution{};
  std::vector<Assignment> direction{};  ///< df/dlambda: how the multiplier acts on each state's rate
};

/// floor(phase) = c + (sigma_below + sigma_above)/2 with the surfaces phase - c and phase - c - 1: the whole number c
/// is moved after a step has been crossed, so that the phase may rise, fall, turn and slide on a step.
///
/// A table is the same with a piece of its curve instead of c: the surfaces are the two breaks next to the phase, and
/// the numbers of the piece stand behind c among the values of the counters.
struct Counter {
  Expr phase;
  int below = 0, above = 0;                    ///< its two hidden switches
  int at = 0;                                  ///< where c stands among the values of all counters
  std::shared_ptr<const Interpolant> curve{};  ///< of a table
  std::string name{};                          ///< of the table
};

struct LoweredJump {
  Expr on = 0.0;
  Direction direction = Direction::any;
  std::optional<Expr> every{}, phase{};  ///< a clock, in parameters and constants; then `on` is 0
  // Numbers at one point: nonsmooth functions and comparisons stand as they are (truth is 1 or 0), names are expanded.
  std::optional<Expr> when{};
  std::vector<Assignment> set{};
};

/// unit(a, b): its components are switches on a and b that share their letter, `~` slipping (sigma = h/|h|) or `0` at
/// rest (any sigma in the disc or ball of radius Switch::hold of the first). The first one is the visible one.
struct VectorSwitch {
  std::vector<int> parts;
};

struct Form {
  std::vector<Expr> f;           ///< one rate per state
  std::vector<Switch> switches;  ///< the visible ones first
  int visible = 0;               ///< how many of them have a letter in modes
  std::vector<VectorSwitch> vectors{};
  std::vector<int> order;  ///< switches such that each surface depends on earlier ones only
  std::vector<Gap> gaps;   ///< one per constraint
  std::vector<Counter> counters;
  int counter_values = 0;  ///< numbers that all counters have together
  std::vector<LoweredJump> jumps;
  std::vector<Expr> sections;     ///< zero function of each `on` section (0 for the others)
  std::vector<Expr> definitions;  ///< value of each named quantity
};

// ---- the model --------------------------------------------------------------------------------------------------

struct Model {
  std::string name;
  std::string ref;
  std::vector<State> states;
  std::vector<Parameter> parameters;
  std::vector<Definition> definitions;
  std::vector<Constraint> constraints;
  std::vector<Jump> jumps;
  std::vector<Section> sections;
  std::vector<PointTable> tables;
  RunDefaults run;
  std::vector<Balance> balances;
  std::optional<Mechanics> mechanics;
  std::vector<ParameterArray> arrays;
  std::vector<WrittenLine> order;  ///< equations as they stand in the file
  std::vector<Label> labels;
  std::vector<std::string> unused;  ///< parameters and names with an equation that nothing uses
  std::vector<int> structural;      ///< parameters that decide which equations there are: N of x[i] for i = 1..N

  Form form;

  std::vector<std::string> state_names() const;
  std::vector<std::string> parameter_names() const;
  /// True if time appears in the equations.
  bool autonomous() const;
};

Expr state_symbol(const Model& model, int i);
Expr parameter_symbol(const Model& model, int i);
/// The rate of a state as an unknown of the balances, x'' for the state x'.
Expr rate_symbol(const Model& model, int i);
Expr sigma_symbol(const Form& form, int i);
/// Numbers of the present piece of a table, as they stand behind its counter; polynomials have four.
enum class TableValue { from = 0, to = 1, origin = 2, value = 3, below = 7, above = 11 };
constexpr int table_values = 15;
Expr table_symbol(const Counter& counter, TableValue which, int power = 0);
/// The form as a person reads it: without hidden switches, `wraps1` for what a floor has counted.
Form shown_form(const Form& form);

// Values of counters: engines keep them in one list, in the order of the symbols of kind counter.

/// Makes `whole` what the counter has counted, and looks up what depends on it.
void set_counter(const Counter& counter, double whole, std::span<double> values);
/// Which of the values its lower step subtracts from the phase.
int lower_step(const Counter& counter);
/// The count of the counter where its phase has this value.
double count_at(const Counter& counter, double phase);
/// The whole number whose lower step is nearest to the phase.
double nearest_step(const Counter& counter, double phase);

/// A parameter that has been given a number instead of its formula.
struct GivenParameter {
  int parameter = 0;
  double value = 0;
};

/// Numbers for the parameters, in order; what depends on those given follows them.
std::vector<double> parameter_values(const Model& model, std::span<const GivenParameter> given = {});
/// The parameters in a circle of formulas, each using the next; empty if there is none.
std::vector<int> parameter_circle(const Model& model);
/// Numbers for the initial state under given parameters.
std::vector<double> initial_values(const Model& model, const std::vector<double>& parameters);
/// True if a symbol stands for a number once parameters have values: a parameter, a constant, a table.
bool is_constant(const Expr& symbol);
/// The value of a formula in parameters and constants.
double constant_value(const Expr& e, const std::vector<double>& parameters);

/// The words of the model file for what a table does between and beyond its points.
std::string_view between_name(const Interpolant& curve);
std::string_view outside_name(const Interpolant& curve);

/// The text for a quantity in plots: its label, or its name.
std::string label_of(const Model& model, const std::string& name);

/// True if two models are equal (places in files do not count).
bool same_model(const Model& a, const Model& b);

}  // namespace saltus
