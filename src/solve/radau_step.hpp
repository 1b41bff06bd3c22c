// One implicit step of x' = f(x, s) by Radau collocation (solve/radau): a state in, a polynomial out.
//
//   factor   (mu_k/h - J) for each k, unless h and J are those of the last step
//   Newton   from the polynomial of the last step where that reaches far enough, otherwise from rest
//   error    distance to a formula of lower order, and the defect between stages; both damped by (mu_0/h - J)^-1 as
//            stiff components are
//
// Sizes are counted in units that the caller gives for each state: 1 is what a step may err by.
#pragma once

#include <complex>
#include <functional>
#include <span>
#include <vector>

#include "base/linear.hpp"
#include "solve/radau.hpp"

namespace saltus {

class RadauStep {
 public:
  /// f(s, x) -> rates; false where they have no value.
  using Rates = std::function<bool(double s, const double* x, double* rates)>;
  enum class Outcome { solved, diverged, undefined };

  RadauStep(int stages, size_t states);

  /// df/dx, to a digit or two, from now on.
  void linearise(const Mat& J);
  /// The step just solved counts: the next one begins where it ends.
  void accept() { last_h_ = h_, last_ = polynomial_; }
  /// Forgets it.
  void restart() { last_h_ = 0; }
  /// From (s, x) over h. A state is not followed closer than to what rounding of the rates, J eps |x|, makes of it:
  /// no step would be short enough for that.
  Outcome solve(const Rates& f, std::span<const double> x, double s, double h, std::span<const double> unit);
  /// Error of the step just solved. `again`: after a step that has failed, where stiff components spoil the first look.
  double error(const Rates& f, std::span<const double> x, double s, bool again);
  /// How fast Newton's method converged: the factor from one iteration to the next.
  double convergence() const { return convergence_; }
  /// Polynomials of the step just solved, in powers of s from its start, `degree() + 1` coefficients for each state.
  const std::vector<double>& polynomial() const { return polynomial_; }
  size_t degree() const { return stages_; }
  /// Order of `error` in h.
  double order() const { return static_cast<double>(stages_) + 1; }

 private:
  using Complex = std::complex<double>;
  /// (mu/h - J) as L and U, by rows.
  struct Factors {
    std::vector<Complex> lu;
    std::vector<size_t> pivots;
    bool regular = false;
  };

  bool factor(double h);
  void factor(const Complex& diagonal, Factors& out) const;
  void solve(const Factors& factors, std::vector<Complex>& b) const;
  void predict(std::span<const double> x, double h);
  void correct();
  void set_units(std::span<const double> x, std::span<const double> wanted);
  void form_polynomial(std::span<const double> x);
  double error_at_end(const Rates& f, std::span<const double> x, double s, bool again);
  double error_within(const Rates& f, double s);
  double solved_size();
  double size_of(const std::vector<double>& z) const;

  const Radau& radau_;
  size_t stages_, n_;
  Mat J_;
  std::vector<Factors> factors_;
  double factored_h_ = 0, h_ = 0;
  std::vector<double> z_, f_, open_, dz_;  // [stage * n + state]; open: h A F - Z
  std::vector<Complex> right_;             // of the system at work
  std::vector<double> polynomial_, last_;  // [state * (stages + 1) + k]: of this step, and of the last that counted
  std::vector<double> stage_, at_start_, error_;
  std::vector<double> unit_;  // what each state may err by in this step
  double last_h_ = 0, convergence_ = 1;
};

}  // namespace saltus
