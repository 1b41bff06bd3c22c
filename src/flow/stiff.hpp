// One smooth step in the mode of a Series by an implicit method of high order (Radau collocation): state in, polynomial
// out.
//
//   fresh (start, event, change of mode):  scales and the first length from the series at x
//   left over from the last internal step: the piece is the rest of that step
//   otherwise:                             one internal step (solve/radau_step), with the Jacobian of the mode's rates
//   piece: the collocation polynomial, moved linearly by the rounding between it and x:
//          it starts exactly at x and ends where the next internal step starts
//
//   sample: everything watched along the piece as polynomials through its true values at Chebyshev points;
//           a function not resolved by one polynomial shortens the piece, the rest is handed out by the next step
//   polish: a zero that such a polynomial has, by true values
//
// The local error of a step is kept below a tenth of the tolerance times the scale of each state: the larger of |x_i|
// and a thousandth of the largest |x_i| so far. docs/method/stiff.md
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "flow/series.hpp"
#include "flow/trajectory.hpp"

namespace saltus {

enum class StiffStatus {
  ok,
  undefined,  ///< a rate is not a finite number here
  unsolved,   ///< no sigma and lambda keep the state on the mode's manifold
  stalled,    ///< no step is short enough for the tolerance or for Newton's method
};

/// A function of states and time whose zeros are looked for on a piece.
struct SampledFunction {
  /// unknown: sigma or lambda by the number of the unknown; slope: by the output of the slope tape.
  enum class Kind { surface, unknown, gap, jump, section, phase, slope };
  Kind kind = Kind::surface;
  int index = 0;
  double scale = 0;  ///< least size its values are compared with
};

class StiffFlow {
 public:
  /// `order`: degree of the pieces, at least 4; steps have 3, 5 or 7 stages. `direction` is -1 for backward time.
  /// Tolerances below 1e-12 count as 1e-12.
  StiffFlow(const Program& program, double tolerance, double direction, int order);
  ~StiffFlow();
  StiffFlow(StiffFlow&&) noexcept;
  StiffFlow& operator=(StiffFlow&&) noexcept;

  /// To be called whenever state, mode or counters changed by anything but a step. The past is forgotten, except for
  /// the largest size each state has had.
  void restart() { fresh_ = true; }

  /// The piece from (x, t) in the mode of `series`, not longer than `longest` > 0. x is the end of the last piece up to
  /// rounding and projection; if it is not, the flow restarts by itself. Fills start, length and coefficients.
  StiffStatus step(Series& series, std::span<const double> x, double t, std::span<const double> counters,
                   double longest, Piece& piece);

  /// Coefficients in tau of the functions along the piece just made, order + 1 for each, of degree 8 at most. Their
  /// value at tau = 0 is the true one. Shortens the piece where a function is not resolved to the tolerance, down to a
  /// 256th, or cannot be evaluated.
  /// `undefined`: a surface or gap stops having a value within the last digits of time.
  StiffStatus sample(Series& series, std::span<const double> counters, std::span<const SampledFunction> functions,
                     Piece& piece, std::vector<double>& coefficients);

  /// The zero near `root` of a function less `offset` on the piece just sampled, by its true values, on the far side:
  /// polynomials through samples know it to the tolerance only, and what is not zero there has not happened.
  double polish(Series& series, std::span<const double> counters, const SampledFunction& function, double offset,
                const Piece& piece, double root) const;

  /// Internal steps so far.
  long steps() const { return steps_; }

 private:
  struct Solver;

  StiffStatus start(std::span<const double> x, double t, double longest);
  StiffStatus advance(std::span<const double> x, double t, double longest);
  StiffStatus accept(double h, double wanted, bool failed);
  bool continues(std::span<const double> x) const;
  void cut_piece(std::span<const double> x, double t, double longest, Piece& piece);

  size_t n_;
  double tolerance_, direction_;
  int order_;
  std::unique_ptr<Solver> solver_;
  bool fresh_ = true;
  // The last internal step, in s = direction*(t - its start):
  double length_ = 0;
  double piece_from_ = 0, here_ = 0;  // start of the last piece, end of what was handed out
  std::vector<double> points_;        // of sample, on [0, 1]
  std::vector<double> noise_;         // of what is sampled since the last start: shorter pieces make it no smaller
  long steps_ = 0;
};

}  // namespace saltus
