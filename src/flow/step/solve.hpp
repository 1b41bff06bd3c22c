// One time step as a problem: from x0 at t0 over h, with the items u (sigma, lambda) as unknowns.
//
// In a known mode, theta = 1/2 (Lobatto IIIA of order 4, "Simpson"): u is linear over the step, u(tau) = a + b (tau/h -
// 1/2) for the items that slide or are closed and constant for the others,
//
//   x1 = x0 + h/6 (f0 + 4 fm + f1),   xm = (x0 + x1)/2 + h/8 (f0 - f1),   c(xm) = 0,   c(x1) = 0.
//
// In a known mode, any theta: u is constant over the step,
//
//   x1 = x0 + h ((1 - theta) f(x0, t0, u) + theta f(x1, t1, u)),           c(x1) = 0.
//
// With the mode unknown the last line becomes complementarity between u and c(x1): a box problem, with Newton's method
// around it where f or c is not affine. docs/method/time_stepping.md
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "flow/step/formulas.hpp"
#include "flow/trajectory.hpp"
#include "solve/box.hpp"

namespace saltus {

enum class StepFate {
  ok,
  singular,       ///< the mode's equations do not determine the items
  higher_degree,  ///< no item enters the rate of a condition, and raising it does not help: a symmetric rule would ring
  not_converged,  ///< Newton's method failed: the step is too long
  undefined,      ///< a rate is not a finite number
  unsolved,       ///< no solution of the complementarity problem was found
};

/// A step that has been computed, not yet accepted.
struct Step {
  double h = 0;
  Vec x;                   ///< state at the end
  Vec u0, u1;              ///< items at both ends
  Vec um;                  ///< and in the middle of a Simpson step
  Vec f0, f1;              ///< rates at both ends of a Simpson step, if wanted; else empty
  Vec tests;               ///< at the end, by TestLayout
  bool algebraic = false;  ///< u0 is what the conditions at the start say; else that of the line through um and u1
  bool cubic = false;      ///< a Simpson step: the cubic through both ends and rates is its dense output
};

/// Bounds of the items and what is added to their conditions, for a step whose mode is unknown.
struct ItemBounds {
  Vec lo, hi, offset;
};

class StepSolver {
 public:
  StepSolver(const Program& program, std::span<const double> parameters);

  /// Other parameters, and everything learnt from a past run forgotten; formulas are kept.
  void bind(std::span<const double> parameters);
  /// The formulas of a mode and its active items: switches at '0' and constraints at 'c', without those that redundant
  /// forces hold at a bound. `raise`: surfaces of higher degree that are slid on are raised (flow/step/formulas).
  void set_mode(const Mode& mode, std::span<const std::pair<int, double>> held = {}, bool raise = false);
  void set_counters(const std::vector<double>& counters) { counters_ = counters; }
  const TestLayout& layout() const { return formulas_->layout(); }
  bool affine() const { return formulas_->affine(); }
  /// Items of the mode that slide or are closed.
  const std::vector<int>& active() const { return active_; }
  /// True if conditions of the mode are raised.
  bool raised() const { return raised_; }
  /// Moves x along the directions of the active items to where their conditions hold, to first order.
  void meet_conditions(double t, const Vec& u, Vec& x);
  /// Unknowns of the largest problem.
  int size() const { return n_ + items_; }

  void rates(double t, const Vec& x, const Vec& u, Vec& f) { formulas_->rates(t, x, u, counters_, f); }
  const std::vector<Operation>& peaks() const { return formulas_->peaks(); }
  double argument(const Operation& peak) const { return formulas_->argument(peak); }
  void tests(double t, const Vec& x, const Vec& u, Vec& values) { formulas_->tests(t, x, u, counters_, values); }
  void condition_rates(double t, const Vec& x, const Vec& u, Vec& values) {
    formulas_->condition_rates(t, x, u, counters_, values);
  }
  const StepSlopes& slopes(double t, const Vec& x, const Vec& u) { return formulas_->slopes(t, x, u, counters_); }

  /// Item values of the current mode: +1, -1, 0; lambda 0. Active ones keep their last value as a guess.
  const Vec& items() const { return u_; }
  void guess(const Vec& u) { u_guess_ = u; }
  /// In the complementarity problem to come this switch is expected to slide; dense problems expect nothing.
  void expect_sliding(int item);

  /// `start`: the items where the step begins, for those that states tell.
  StepFate simpson(const Vec& x0, double t0, double h, const Vec& start, bool want_rates, Step& out);
  StepFate theta_step(const Vec& x0, double t0, double h, double theta, Step& out);
  /// `state` says at which bound each item ended. With `unsolved`, `message` gives numbers.
  StepFate complementarity(const Vec& x0, double t0, double h, double theta, const ItemBounds& bounds, Step& out,
                           std::vector<BoundState>& state, std::string& message);

  /// The condensed problem at (x0, t0) over h for the items alone: c(x1) = q + M u to first order (theta = 1).
  void condense(const Vec& x0, double t0, double h, const Vec& u, Mat& M, Vec& q);

 private:
  /// The linear system of a step in a mode, for what is small enough to be dense.
  struct Factor {
    const StepFormulas* formulas = nullptr;
    std::vector<int> active;
    double h = 0, theta = 0;  // theta 0: Simpson
    bool regular = false, higher_degree = false, by_states = false;
    int size = 0;
    Lu lu;
    Lu sharp;  // of what sharpen solves, while the slopes are constant
    std::vector<char> algebraic;
    bool sharpens = false;
  };

  /// The matrix with all items, sparse; a mode keeps those that are not active from moving. So it outlives changes of
  /// mode, and is the matrix of the complementarity problem (theta > 0): its unknowns are the impulses h u, and a
  /// switch at +1 wants h >= 0, so that rows of switches have the other sign.
  struct Whole {
    const StepFormulas* formulas = nullptr;
    double h = 0, theta = 0;
    bool regular = false, by_states = false;
    SparseBoxProblem problem;   // M is the matrix; the rest of it is of the last complementarity problem
    std::vector<int> place;     // of each unknown: states, items, and once more items for their slopes (Simpson)
    std::vector<char> entered;  // Simpson: per item, whether any item enters the rate of its condition
    std::array<SparseMat, 3> by_power;  // Simpson: M = sum of h^k by_power[k]
    ActiveFactor factor;
    bool factored = false;  // the factor has seen the matrix
    std::vector<char> free;
    Vec rhs, x;
    RowSums sums;
  };

  /// Items at the end of a step from the rates of their conditions: the linear ones are off by the square of the step.
  void sharpen(double t1, Step& step);
  /// True if the condition of each active item is moved by some of them there. Iterates of a step that is too long may
  /// lie where formulas end (abs(x)^(3/2) in the mode `+`, at x < 0), and have no slopes.
  bool moves_conditions(double t, const Vec& x, const Vec& u);
  bool is_algebraic(double t, const Vec& x, const Vec& u);
  void assemble(double h, double theta, const StepSlopes& s, Factor& factor);
  void expand_simpson(const StepSlopes& s, Whole& whole);
  void assemble(double h, double theta, const StepSlopes& s, Whole& whole);
  bool is_current(const Factor& factor, double h, double theta) const;
  bool is_current(const Whole& whole, double h, double theta) const;
  bool solve(Factor& factor, Vec& r);
  bool solve(Whole& whole, Vec& r);
  void order_states(const StepSlopes& s);
  std::vector<int> places(int copies) const;
  /// A switch at +1 wants h >= 0: its condition enters complementarity with the other sign.
  double side(int item) const { return item < m_ ? -1.0 : 1.0; }
  void grow_scale(const Vec& x);
  double size_of(const Vec& d, const Vec& x) const;

  const Program& program_;
  std::vector<double> parameters_;
  int n_, m_, items_;
  std::map<StepKey, std::unique_ptr<StepFormulas>> all_;
  StepFormulas* formulas_ = nullptr;
  bool algebraic_ = false;                       // states tell all active items, by their conditions
  const StepFormulas* algebraic_for_ = nullptr;  // under these formulas,
  bool algebraic_there_ = false;
  std::vector<int> algebraic_active_;  // and if these are active
  std::vector<int> state_order_;       // in sparse matrices
  std::vector<int> anchors_;           // per item: the state it stands beside in them
  std::vector<double> counters_;
  std::vector<int> active_;
  Vec u_, u_guess_;
  Mode mode_;  // whose formulas and active items these are, and what was held
  std::vector<std::pair<int, double>> held_;
  bool raise_ = false, raised_ = false;
  Factor simpson_, theta_;
  Whole simpson_whole_, theta_whole_;
  /// Slopes as dense matrices with their products; kept while they are constant.
  struct {
    const StepFormulas* of = nullptr;
    Mat J, G, C, D, JJ, JG, CJ, CG;
  } dense_;
  Vec scale_;
  Vec f0_, f1_, fm_, xm_, um_, r_, tests_m_;
};

}  // namespace saltus
