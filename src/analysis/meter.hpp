// Means and extremes of quantities along a run: integrals by Gauss and Kronrod on each piece of the dense output, where
// every quantity is analytic, so that switching costs no accuracy; extremes and crossings of levels located in it.
// docs/method/measures.md.
//
//     Meter meter(program, options, measures);
//     meter.piece(piece, arc);                       // each piece of the run, in order
//     const Gathered all = meter.take();
//     value(measures[0], all)
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/quantities.hpp"
#include "expr/expr.hpp"

namespace saltus {

/// A number that a stretch of a run has: the mean of a quantity, its root mean square, ...
struct Measure {
  enum class Kind {
    mean,
    rms,
    pp,  ///< peak to peak: the largest minus the smallest value
    min,
    max,
    above,  ///< time during which it exceeds `level`
  };
  std::string name;  ///< as it was asked for: "mean(Pin)"
  Kind kind = Kind::mean;
  int column = -1;    ///< of `quantity_names`; -1: a formula of them
  Expr formula = {};  ///< symbols of the kind `argument` are columns
  Expr level = {};    ///< constant
};

/// Sums gathered over a stretch, per measure.
struct Gathered {
  double time = 0;
  std::vector<double> sum;        ///< integral of the quantity, of its square, or of 1 where it exceeds the level
  std::vector<double> low, high;  ///< extremes

  explicit Gathered(std::size_t measures = 0);
  /// The stretch and one that follows it.
  void add(const Gathered& next);
};

/// NaN of a stretch without length, and where the quantity has no value.
double value(const Measure& measure, std::size_t index, const Gathered& all);

class Meter {
 public:
  Meter(const Program& program, const RunOptions& options, std::vector<Measure> measures);

  const std::vector<Measure>& measures() const { return measures_; }
  /// A piece of the run, or its part from tau = a to tau = b.
  void piece(const Piece& piece, const Arc& arc) { stretch(piece, arc, 0, piece.length); }
  void stretch(const Piece& piece, const Arc& arc, double a, double b);
  /// All since the last call.
  Gathered take();

 private:
  struct Node {
    double tau = 0;
    std::vector<double> q;  // per measure
  };

  double quantity(const Measure& measure) const;
  Node at_tau(const Piece& piece, double tau);
  void gather(const Piece& piece, double a, double b, int depth);
  void look_for_extremes(const Piece& piece, const std::vector<Node>& nodes);
  double peak(const Piece& piece, std::size_t m, double left, double right, double sign);
  double time_above(const Piece& piece, std::size_t m, const std::vector<Node>& nodes);

  int states_;
  std::vector<Measure> measures_;
  std::vector<double> parameters_, levels_ = {};
  Quantities quantities_;
  std::vector<double> x_, row_;
  bool begun_ = false;
  bool sums_ = false, extremes_ = false;  // some measure needs them
  bool states_only_ = true;               // no measure needs more than the polynomials
  Gathered gathered_;
};

/// Measures over the intervals between points of a section: the last ones are kept, and those of a period summed.
class SectionMeter {
 public:
  /// `most` points; `on_piece`: a point is told before the piece on which it lies.
  SectionMeter(const Program& program, const RunOptions& options, std::vector<Measure> measures, std::size_t most,
               bool on_piece);

  void point(double t);
  void piece(const Piece& piece, const Arc& arc);
  /// Over the last `points` intervals, or as many as there are.
  std::vector<double> values(std::size_t points) const;
  std::size_t intervals() const { return kept_.size(); }

 private:
  void close();

  Meter meter_;
  std::size_t most_;
  bool on_piece_;
  bool open_ = false;  // a point has been met
  std::vector<double> waiting_ = {};
  std::vector<Gathered> kept_ = {};
};

}  // namespace saltus
