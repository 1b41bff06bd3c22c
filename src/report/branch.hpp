// Branches as words, JSON, tables and a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ask/follow.hpp"
#include "report/run_figure.hpp"

namespace saltus {

/// The table of a branch, line by line: it can be printed while the branch is followed.
class BranchLines {
 public:
  BranchLines(const Model& model, const std::vector<FollowedRange>& ranges) : model_(model), ranges_(ranges) {}

  std::string head(bool equilibria) const;
  /// The head, and where it is followed from.
  std::string start(const BranchPoint& p) const;
  std::string special(const SpecialPoint& s) const;
  std::string end(const BranchEnd& e) const;

 private:
  std::string line(const std::string& label, const std::string& type, const std::vector<double>& values,
                   const std::string& rest) const;

  const Model& model_;
  const std::vector<FollowedRange>& ranges_;
};

std::string words_of(const FollowAnswer& answer);
/// The words behind the printed table of a branch.
std::string closing_words(const FollowAnswer& answer);
std::string json_of(const FollowAnswer& answer);

/// "data": all points in order, with values, states, extremes over a period, period, largest multiplier, label,
/// signature; "special": the special points; of further branches "data-2" and so on. None where nothing was found.
std::vector<Table> tables_of(const FollowAnswer& answer);

/// Complains (usage) about what cannot be the ordinate: NAME, max(NAME), min(NAME), period; empty: the first state.
void check_measure(const std::string& measure, const Model& model, bool equilibria);

/// Stable solid, unstable dashed, special points marked and labelled; several branches in one picture. `below`: points
/// x, y that lie under it.
Picturing picture_of(const FollowAnswer& answer, const std::string& measure, std::optional<Table> below = {});

/// The state whose points a picture of that measure shows.
size_t measured_state(const std::string& measure, const Model& model);

}  // namespace saltus
