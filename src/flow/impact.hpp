// Newton's impact law for all contacts that touch at one instant, Coulomb's law for the switches in their directions.
//
//   x+ = x- + sum_j D_j(sigma) Lambda_j,    D_j = df/dlambda_j, affine in each sigma
//   0 <= Lambda_j  perp  w_j+ + r_j min(w_j-, 0) >= 0          w: gap rates
//   sigma_i in Sgn h_i(x+)                                     for every switch in some D_j
//
// Where impulses change their own directions (mu*N*tanh(v)), x+ is the end of a path instead (flow/impulse_path).
// With switches all assignments of (hit or not) and (+ - 0) are tried, each by Newton's method: it is affine for given
// sigma and at most bilinear otherwise. Beyond a few thousand of them an active set is followed.
// docs/method/impacts.md
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flow/impulse_path.hpp"
#include "flow/series.hpp"

namespace saltus {

struct Impact {
  bool solved = false;
  std::vector<double> impulse;                 ///< per contact
  std::vector<bool> closed;                    ///< per contact: it takes an impulse and ends without velocity
  std::vector<std::pair<int, char>> switches;  ///< that took part, with their letters after it
  std::vector<double> sigma;                   ///< of those
  std::vector<char> letters;                   ///< of those in the mode after it: a rebounding tangent slips
  Mode mode;                                   ///< whose formulas were used: those switches '0', contacts open
  std::string message;                         ///< why not solved
  std::string note;                            ///< what a person should know of the answer
};

/// Places of contacts that feel each other's impulses, group by group: one moves a state that the gap rate, or a
/// surface in the direction, of another depends on.
std::vector<std::vector<size_t>> connected_contacts(Series& series, const Mode& mode, std::span<const int> contacts,
                                                    double direction);

/// One contact that takes no other with it.
struct OneHit {
  double impulse = 0;
  bool closed = false;  ///< it ends without velocity
};
/// One contact without friction in closed form: Lambda = -(1 + r) w / (grad w . D); x is changed. Nothing, with x as it
/// was, where the law has no such answer.
std::optional<OneHit> hit_one(Series& series, const Mode& mode, int contact, std::span<double> x, double t,
                              std::span<const double> counters, double direction);

/// Deviations from the model.
struct Special {
  bool plastic = false;         ///< no contact rebounds, whatever r is
  std::vector<char> resting{};  ///< per contact: its rate is zero, whatever rounding says; or nothing
};
/// Changes x by the impulses of the given contacts (degree 2, touching). `mode`: whose switches hold where they do not
/// take part. Backward in time (direction -1) the law is inverted.
Impact apply_impact(Series& series, const Mode& mode, std::span<const int> contacts, std::span<double> x, double t,
                    std::span<const double> counters, double direction, const Special& special = {});

/// Repeats an impact with its findings fixed: the contacts with an impulse are hit, the switches have their states.
/// Changes x; false where these equations have no solution.
bool repeat_impact(Series& series, const Hit& hit, std::span<double> x, double t, double direction);

/// An impact along a path that bends, with everything fixed that was decided in it.
struct BentHit {
  ImpulsePath path;
  Vec impulse{}, sigma{}, change{};  ///< per contact, per set of the path, per state
  std::vector<Index> stuck{};        ///< places of the sets that end on their surfaces
};
std::optional<BentHit> repeat_bent(Series& series, const Hit& hit, std::span<const double> x, double t,
                                   double direction);

}  // namespace saltus
