// Branches of orbits and equilibria, and curves of their special points: `ask(FollowQuestion) -> FollowAnswer`.
//
//     FollowQuestion question{.start = {.system = System::example("popp")}, .ranges = {{"nu", 0.5, 2}}};
//     const FollowAnswer branch = ask(question);
//     const FollowAnswer doubled = ask(begin_at(question, question.ranges, branch.branches[0].special[0]));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/branch.hpp"
#include "ask/ask.hpp"
#include "ask/keep.hpp"
#include "ask/orbit.hpp"

namespace saltus {

/// A parameter, or a monotone formula of one (1/omega), and where it goes from and to.
struct FollowRange {
  std::string name;
  Formula from, to;
  std::string given = {};  ///< as somebody wrote it, for complaints; empty: the name
};

struct FollowQuestion {
  OrbitQuestion start;       ///< what is followed: the orbit it finds at the present values, or
  bool equilibrium = false;  ///< the equilibrium there
  std::vector<FollowRange> ranges;
  std::optional<BranchOptions::Seek> seek = {};  ///< a special point near the start: `begin_at` sets it,
  std::string of = {};                           ///< and its label
  bool all = false;                              ///< every branch that begins at a special point as well
  int points = 2000;                             ///< at most, each way
  std::optional<double> step = {};               ///< longest, as a share of the range (0.02)
  std::optional<Formula> longest_time = {};      ///< a longer period counts as homoclinic (100 times the first)
};

/// The question that begins at a special point of a branch which was followed in `followed`: with one range another
/// branch there, with two the curve of that point.
FollowQuestion begin_at(FollowQuestion question, const std::vector<FollowRange>& followed, const SpecialPoint& there);

/// The quantity that is followed, with the parameter behind it.
struct FollowedRange {
  std::string name;
  Expr quantity;
  int parameter = 0;
  double from = 0, to = 0;              ///< of the quantity
  double low = 0, high = 0, start = 0;  ///< of the parameter; `start`: where the range begins
};

/// The quantity where its parameter has this value.
double value_of(const FollowedRange& followed, const Model& model, double parameter);

struct FollowPlan {
  System system;
  bool equilibrium = false, all = false;
  std::string of;
  std::vector<FollowedRange> ranges;  ///< one, or two
  OrbitOptions start;                 ///< of an equilibrium its run
  BranchOptions branch;
};

struct FollowAnswer {
  System system;
  RunOptions options;  ///< what the engine was told
  std::vector<FollowedRange> ranges;
  std::string of;                ///< label of the special point it began at; empty: none
  bool all = false;              ///< the branches at special points were asked for
  std::vector<Branch> branches;  ///< the first always; Branch::found says whether there is one
  bool cancelled = false;        ///< asked to stop: the branches are as far as they came
};

/// Throws Error for what cannot be asked.
FollowPlan plan(const FollowQuestion& question);
/// With a checkpoint, what was followed before an interruption is not followed again.
FollowAnswer ask(const FollowPlan& plan, const Observer& observer = {}, const Keep& checkpoint = {});

}  // namespace saltus
