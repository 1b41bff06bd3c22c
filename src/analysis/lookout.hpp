// Decides if a run that waits for its section will ever meet it again. It may have come to rest, or go round a cycle
// that passes the section by; then there is no point in going on.
//
//   rest    over windows of steps that grow, what the state still moves shrinks to half or less, within the tolerance
//   cycle   the points in which it crosses a plane through itself have settled (analysis/settle)
//
// Both are forgotten whenever the section is met.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/settle.hpp"
#include "flow/simulate.hpp"

namespace saltus {

class Lookout {
 public:
  /// `section` of the model is waited for, under the parameters of `options`.
  Lookout(const Model& model, const RunOptions& options, int section);

  /// True if anything must be watched: a section by the clock is always met.
  bool watches() const { return watches_; }
  /// The section has been met.
  void met();
  /// The next piece of the run.
  void along(const Piece& piece);
  /// Why the section will not be met any more, in words; empty as long as it may.
  const std::string& verdict() const { return verdict_; }

 private:
  enum class Time { absent, periodic, other };

  void look_for_rest();
  void look_for_cycle(const Piece& piece);
  void place_plane();
  double height(const std::vector<double>& x) const;
  void tell(const char* what);

  std::string section_;
  bool watches_ = false;
  Time time_ = Time::absent;
  double period_ = 0, tolerance_ = 0;
  long steps_ = 0, points_ = 0;  // since the section was met; points in all
  std::vector<double> start_, end_, scale_;

  long window_ = 0, next_look_ = 0;           // of rest, in steps
  std::vector<double> earlier_;               // the state when this window began
  std::vector<double> moved_, moved_before_;  // how far from it each state has been, and in the window before

  long next_plane_ = 0;  // when it is put anew
  std::vector<double> foot_, normal_;
  std::optional<Settling> settling_;
  std::string verdict_;
};

}  // namespace saltus
