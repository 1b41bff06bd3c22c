// A step whose mode is unknown: complementarity between the items and their conditions at its end, and what that
// problem itself cannot say: which formulas hold for switches inside them, which gaps close, which static friction
// still holds.
#pragma once

#include <string>
#include <vector>

#include "flow/series.hpp"
#include "flow/step/judge.hpp"

namespace saltus {

/// The end of a step of unknown mode.
struct UnknownStep {
  Step step;
  Mode mode;                   ///< at its end
  std::vector<int> rebounded;  ///< contacts that were hit on the way
  std::string trouble;         ///< numbers, where there is no solution
  double theta = 1;
  Mode formulas;                             ///< the mode whose formulas were used
  std::vector<int> solved;                   ///< items inside their bounds
  std::vector<std::pair<int, double>> hits;  ///< of them those of contacts that rebound, with their restitution
};

class UnknownMode {
 public:
  UnknownMode(const Program& program, Series& series, StepSolver& solver, const Judge& judge);

  StepFate solve(const Here& here, double h, double theta, UnknownStep& out);
  /// Closed contacts go back to their gaps: a few sweeps along the gradients.
  void project(Here& here);

 private:
  /// Findings of the solves: an entry once set stays, so the rounds end.
  struct Findings {
    std::vector<char> interpolated;  // switches inside formulas whose sign disagreed with their side
    std::vector<char> may_hold;      // switches whose surface static friction may hold
    std::vector<char> left;          // ... and which have left it
    std::vector<char> near;          // constraints that take part
  };
  bool decided(const Here& here, int i) const;
  ItemBounds bounds(const Here& here, const Mode& key, const Findings& known, const std::vector<double>& push) const;
  bool learn(const Here& here, const Step& step, const ItemBounds& bounds, Findings& known) const;
  void tell_solved(const Here& here, const Findings& known, const std::vector<double>& push, UnknownStep& out) const;
  void read_mode(const Here& here, const Findings& known, const std::vector<double>& push, UnknownStep& out) const;
  /// r min(g', 0) of each contact at the start of the step; restitutions may depend on states.
  std::vector<double> rebounds(const Here& here);

  const Program& program_;
  const Model& model_;
  Series& series_;
  StepSolver& solver_;
  const Judge& judge_;
  int m_, q_;
  bool contacts_ = false;
  std::vector<BoundState> state_;
};

}  // namespace saltus
