// An orbit as a chain of linear maps: how small deviations of the state and of parameters go from node to node, along
// it and through its events. A periodic orbit in; nodes and the links between them out.
//
//     x_{k+1} = X_k x_k + P_k p        along a stretch, and through an event (saltation)
//
// Stretches without events are cut into panels with nodes at Chebyshev's points, so that what varies along the orbit is
// a polynomial on each. Where a mode slides or rests on a contact at the node a link begins with, X forgets what leads
// off. docs/method/phase.md
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
    int arc = 0;  ///< of the orbit's trajectory; after an event the one that follows
    Vec rates;    ///< of the states there
  };
  struct Link {
    enum class Kind {
      flow,   ///< between nodes of a panel
      event,  ///< no time passes: one event, or several at one instant
      span,   ///< a stretch in which events accumulate, as a whole
    };
    Kind kind = Kind::flow;
    Mat X;                     ///< the state at the next node by that at this one
    Mat P;                     ///< and by each direction of the parameters
    Mat shift;                 ///< of an event: how its time moves with both, one row
    int first = 0, count = 0;  ///< transitions of the trajectory; one past the last: the event at its end
  };
  /// A stretch of smooth motion: nodes first .. first + panel_order.
  struct Panel {
    size_t first = 0;
    double length = 0;
  };

  Index states = 0, directions = 0;
  std::vector<Node> nodes;    ///< the last one closes the orbit
  std::vector<Link> links;    ///< from node k to node k + 1
  std::vector<Panel> panels;  ///< in order
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

/// Of an orbit that was found with these options (parameters, tolerance); a column of P for each direction of the
/// parameters. Panels are no longer than `longest`.
OrbitTangents tangents_along(const Program& program, const RunOptions& options, const Orbit& orbit, const Mat& P,
                             double longest);

}  // namespace saltus
