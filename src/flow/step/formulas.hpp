// Formulas that a time step evaluates: rates, conditions and their sparse derivatives, for one key of a Program.
//
// The items of a step are the switches and then the constraints; item i has the value u_i (sigma_i or lambda_j) and the
// condition c_i that stands against it: the surface h_i, the gap g_j, or its rate where the gap is of degree 2. A
// surface that is slid on though no item enters its rate (degree d of 2 or more) may be raised: its derivative h^(d -
// 1) stands for it, and it stays zero with that.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/linear.hpp"
#include "code/affine.hpp"
#include "code/jet.hpp"
#include "model/program.hpp"

namespace saltus {

/// Positions among the outputs of StepFormulas::tests.
struct TestLayout {
  int switches = 0, constraints = 0, jumps = 0, sections = 0, counters = 0;

  int surface(int i) const { return i; }
  int gap(int j) const { return switches + j; }
  int gap_rate(int j) const { return switches + constraints + j; }
  int jump(int k) const { return switches + 2 * constraints + k; }
  int section(int s) const { return switches + 2 * constraints + jumps + s; }
  int phase(int c) const { return switches + 2 * constraints + jumps + sections + c; }
  int size() const { return switches + 2 * constraints + jumps + sections + counters; }
};

TestLayout test_layout(const Program& program);

/// Which formulas a mode has.
struct StepKey {
  std::string switches;             ///< as of Program::key
  std::vector<signed char> raised;  ///< per switch: the derivative of its surface that is its condition; empty: none is

  auto operator<=>(const StepKey&) const = default;
};
StepKey step_key(const Program& program, const std::string& switch_modes, bool raise);

/// Derivatives at a point: J = df/dx, G = df/du, C = dc/dx, D = dc/du, P = dg/dx.
struct StepSlopes {
  SparseMat J, G, C, D, P;
};

class StepFormulas {
 public:
  StepFormulas(const Program& program, const StepKey& key, std::span<const double> parameters);

  /// Other parameters.
  void bind(std::span<const double> parameters);

  /// All derivatives depend on parameters only: a step is affine in its unknowns.
  bool affine() const { return affine_; }
  const TestLayout& layout() const { return layout_; }
  /// Output of `tests` that is the condition of an item.
  int condition(int item) const { return condition_outputs_[static_cast<size_t>(item)]; }

  void rates(double t, const Vec& x, const Vec& u, std::span<const double> counters, Vec& f);
  /// Functions in the rates that are constant to all digits away from where they change, and the argument of one where
  /// the rates were last evaluated.
  const std::vector<Operation>& peaks() const { return rates_.peaks; }
  double argument(const Operation& peak) const { return jets_[0][peak.a][0]; }
  /// Surfaces, gaps, gap rates (degree 2), jumps, sections, phases, raised surfaces.
  void tests(double t, const Vec& x, const Vec& u, std::span<const double> counters, Vec& values);
  /// Rates of the conditions along the flow.
  void condition_rates(double t, const Vec& x, const Vec& u, std::span<const double> counters, Vec& values);
  /// Valid until the next call.
  const StepSlopes& slopes(double t, const Vec& x, const Vec& u, std::span<const double> counters);
  /// df/dp and dc/dp, a column per parameter; their formulas are made when they are first asked for.
  void parameter_slopes(double t, const Vec& x, const Vec& u, std::span<const double> counters, Mat& f, Mat& c);

 private:
  struct Entry {
    int row = 0, column = 0, output = 0;
  };
  struct Block {
    int rows = 0, columns = 0;
    std::vector<Entry> entries;
  };
  void make_sums();
  void add_up(const AffineRows& rows, double t, const Vec& x, const Vec& u, Vec& out);
  void put(Jet<double>& jet, double t, const Vec& x, const Vec& u, std::span<const double> counters) const;

  TestLayout layout_;
  std::vector<int> condition_outputs_;
  bool affine_ = true;
  bool known_ = false;  // constant slopes have been evaluated
  Tape rates_, tests_, slopes_, condition_rates_;
  std::vector<Block> blocks_;  // J, G, C, D, P
  std::vector<Jet<double>> jets_;
  struct ByParameter {
    Tape tape;
    Block f, c;
    std::unique_ptr<Jet<double>> jet;
  };
  std::vector<Expr> f_, conditions_;
  TapeInputs inputs_;
  std::vector<double> parameters_;
  std::unique_ptr<ByParameter> by_parameter_;
  StepSlopes slopes_now_;
  /// Rates and conditions of many states as weighted sums of states and items, where they all are.
  std::optional<AffineRows> rate_sums_, test_sums_;
  std::vector<double> inputs_now_;  // states and items
};

}  // namespace saltus
