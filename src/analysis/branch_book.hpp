// The record of a branch while it is followed: points and special points in order, labels, the reason of its end.
//
// A walk is what lies on one side of the start. Walks that a past computation finished are taken from its log and not
// walked again: a branch that was interrupted becomes the same branch as one that was not.
#pragma once

#include <functional>
#include <optional>

#include "analysis/branch.hpp"
#include "analysis/checkpoint.hpp"

namespace saltus {

/// One side of a branch, from the start outwards.
struct Walk {
  std::vector<BranchPoint> points;
  std::vector<SpecialPoint> special;  ///< without what they know of other branches
  BranchEnd end;
};

/// The finished walks of a computation, in the order in which they are made; kept in a checkpoint.
class WalkLog {
 public:
  /// Throws Error(file) as Checkpoint does.
  WalkLog(const std::filesystem::path& path, const std::string& identity);

  /// The next one, if it was finished before.
  std::optional<Walk> next();
  void add(const Walk& walk);
  /// One was not finished: none behind it counts.
  void close() { open_ = false; }

 private:
  std::vector<Bytes> known_;
  std::size_t made_ = 0;
  bool open_ = true;
  Checkpoint checkpoint_;
};

class BranchBook {
 public:
  explicit BranchBook(const BranchOptions& options) : options_(options) {}

  Branch branch;

  /// Writes a point down; false: enough.
  bool point(BranchPoint p);
  /// Writes a special point down, with a label.
  void special(SpecialPoint s, BranchPoint p);
  /// Takes the last special point back: a better name for its place is known.
  void take_back();
  /// Forgets points and special points: what is followed from here on is another branch.
  void clear();
  /// Records a search without a result, with its reason.
  void not_found(std::string why, std::string message);

  using Walker = std::function<BranchEnd()>;
  /// Down first; what is found is turned round, so that points are in order along the curve. A walker begins with what
  /// the start left behind, whatever was walked before.
  void both_ways(const BranchPoint& start, const Walker& down, const Walker& up);
  /// From a start near a special point, away from it.
  void one_way(const BranchPoint& start, const Walker& up);
  /// The points that a walker finds, or found in the past.
  BranchEnd walked(const Walker& walker);
  void begin_at(const BranchPoint& start);
  void turn_round();

 private:
  /// Tells the last special point once nothing can take it back.
  void tell();

  const BranchOptions& options_;
  bool untold_ = false;
};

}  // namespace saltus
