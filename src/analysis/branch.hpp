// Branches of equilibria and periodic orbits in a parameter, through smooth and discontinuous bifurcations.
//
//   start      the equilibrium or orbit at the present value
//   curve      continuation of its zero problem, both ways; guards are test functions beside the eigenvalues
//   change     where a guard touches zero the mode or signature is another one: who is admissible on which side tells
//              whether the branch passes or turns
//   tell       points in order along the curve, special points with labels, why it ends
//
// docs/method/branches.md
#pragma once

#include <complex>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/equilibrium.hpp"
#include "analysis/orbit.hpp"
#include "analysis/spectrum.hpp"

namespace saltus {

struct BranchOptions {
  int parameter = 0;  ///< of the model
  double low = 0, high = 0;
  int second = -1;  ///< a second parameter: the curve of a special point
  double second_low = 0, second_high = 0;
  int most_points = 2000;      ///< each way
  double largest_step = 0.02;  ///< as a share of the range and of the sizes of the states
  double longest_time = 0;     ///< a longer period counts as homoclinic; 0: 100 times that of the start
  /// A special point near the start, to begin from: another branch there, or with a second parameter its curve.
  struct Seek {
    std::string type;
    double value = 0;
    int other = 0;  ///< which of the branches that begin there, where there are several
  };
  std::optional<Seek> seek;
  std::vector<struct SpecialPoint> known;  ///< of branches followed before: what comes to one of them ends there
  std::map<std::string, int> labels;  ///< how many there are already of each kind, by letters: numbers go on from there
  /// Called at each point; false: enough.
  std::function<bool(const struct BranchPoint&)> on_point;
  std::function<void(const struct SpecialPoint&)> on_special;
  std::function<void(const struct BranchPoint&)> on_start;  ///< before it is followed from there
  std::function<void(const struct BranchEnd&)> on_end;      ///< of each way
  class WalkLog* log = nullptr;                             ///< what was followed before, and what is from now on
};

struct BranchPoint {
  std::vector<double> values;  ///< of the parameter, or of both
  std::vector<double> state;
  double t = 0, period = 0;
  bool stable = false;
  Spectrum spectrum;  ///< multipliers, or eigenvalues of equilibria
  std::vector<std::string> signature;
  std::string label;
  std::vector<double> lowest, highest;  ///< of each state over a period
};

struct SpecialPoint {
  std::string label, type, detail;
  std::vector<double> values;
  std::vector<double> state;
  double t = 0, period = 0;
  Spectrum spectrum;
  std::optional<Spectrum> after;                    ///< on the other side, where it jumps
  std::optional<std::vector<std::string>> crosses;  ///< passages of Leine's set: "+1", "-1", "complex"
  std::vector<double> crosses_at{};                 ///< their places q in it, from 0 to 1
  std::optional<bool> persists;
  bool counted_twice = false;  ///< an orbit of half the period flips here
  std::vector<std::string> signature;
  /// A regular point of the branch near by, to start again from.
  std::vector<double> near_values, near_state;
  double near_t = 0, near_period = 0;
  void set_crosses(const std::vector<SetPassage>& passages);
  /// Where another branch begins: points on it.
  struct Other {
    double value = 0;
    std::vector<double> state;
    Arc arc;
  };
  std::vector<Other> others;
};

struct BranchEnd {
  int direction = 1;
  std::string why, detail;
  double value = 0;
};

struct Branch {
  bool found = false;
  std::string why, message;  ///< if there is no start
  bool equilibria = false, autonomous = false;
  std::vector<BranchPoint> points;
  std::vector<SpecialPoint> special;
  std::vector<BranchEnd> ends;
};

/// The letters of a label: "LP" for a fold.
std::string label_letters(const std::string& type);

/// True if another branch may begin at the point: at points of some types, and where multipliers jump over the unit
/// circle.
bool branches_at(const SpecialPoint& special);

/// Where a cycle is born: an equilibrium, a direction in the plane of its pair of eigenvalues, the period.
struct Birth {
  std::vector<double> x;
  std::vector<double> direction;
  double period = 0;
};

Branch follow_equilibrium(const Model& model, const EquilibriumOptions& start, const BranchOptions& options);
Branch follow_orbit(const Model& model, const OrbitOptions& start, const BranchOptions& options);
/// The cycles born at a Hopf point; `start` has its parameters.
Branch follow_cycles(const Model& model, const OrbitOptions& start, const Birth& birth, const BranchOptions& options);

}  // namespace saltus
