// An orbit as a chain of linear maps: how small deviations of the state and of parameters go from node to node, along
// it and through its events. A periodic orbit in; nodes and the links between them out.
//
//     x_{k+1} = X_k x_k + P_k p        along a panel, through an event (saltation), or over a span
//
// Stretches without events are cut into panels with nodes at Chebyshev's points, so that what varies along the orbit is
// a polynomial on each. Inside a panel tangents are those of the smooth flow, which can be inverted; what a sliding
// mode or a closed contact forgets is taken off at its beginning. docs/method/phase.md
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/orbit.hpp"
#include "base/linear.hpp"

namespace saltus {

class Program;

struct OrbitTangents {
  struct Node {
    double t = 0;
    std::vector<double> x;
  };
  /// A stretch of smooth motion with the nodes first .. first + panel_order.
  struct Panel {
    size_t first = 0;
    double length = 0;
    std::vector<Mat> X;  ///< at each node: the state by that at the beginning, along the smooth flow
    std::vector<Mat> P;  ///< and by each direction of the parameters since the beginning
    /// Onto what is slid on and closed at each node, along the forces that keep it there; empty: nothing is.
    std::vector<Mat> onto;
  };
  struct Link {
    enum class Kind {
      panel,
      event,  ///< no time passes: one event, or several at one instant
      span,   ///< a stretch that is known as a whole only: events accumulate, or the flow forgets too much
    };
    Kind kind = Kind::panel;
    size_t from = 0, to = 0;   ///< nodes
    size_t panel = 0;          ///< of a panel
    Mat X, P;                  ///< the state at its end by that at its beginning, and by each direction
    Mat shift;                 ///< of an event: how its time moves with both, one row
    int first = 0, count = 0;  ///< of an event: transitions of the trajectory; one past the last: that at its end
  };

  Index states = 0, directions = 0;
  std::vector<Node> nodes;  ///< the last one closes the orbit
  std::vector<Panel> panels;
  std::vector<Link> links;  ///< in order
  Vec start_rates;          ///< of the states at the first node
  std::vector<std::string> notes;

  /// The monodromy, and how the end moves with parameters at a fixed time and start.
  Mat monodromy() const;
  Mat by_parameters() const;
};

inline constexpr int panel_order = 16;
/// Chebyshev's points on 0 .. 1 and the weights of their quadrature (Clenshaw and Curtis).
std::span<const double> panel_nodes();
std::span<const double> panel_weights();
/// The value of a function at a place of a panel (0 .. 1), from `stride`-spaced values at its nodes, by the barycentric
/// formula.
double panel_value(const double* values, size_t stride, double place);

/// Along a dense run over one period with these options (parameters, tolerance); a column of P for each direction of
/// the parameters. Panels are no longer than `longest`.
OrbitTangents tangents_along(const Program& program, const RunOptions& options, const Trajectory& run, const Mat& P,
                             double longest);

/// The unit of each state, from its largest value: a state that stays at zero has the largest of all.
Vec scales_of(std::span<const double> size);
/// The states of an orbit that have to come back.
std::vector<Index> closing_states(const Orbit& found);
/// dx0/dp at fixed phase: (M - 1) dx0 = -x_p - f dT/dp, the shortest solution; a column for each direction.
Mat moved_start(const Mat& M, const Mat& by, const Vec& rates, const std::vector<double>& period_by,
                const std::vector<Index>& kept, const Vec& scale);
/// dT/dp of an autonomous orbit, from the same equation.
std::vector<double> moved_period(const Mat& M, const Mat& by, const Vec& rates, const std::vector<Index>& kept,
                                 const Vec& scale, double period);

}  // namespace saltus
