// Data of a mode for ordinary legs, made once: a list of watched functions, and the modes that may follow each of their
// zeros.
//
// An ordinary leg is one step in a mode whose series are a plain jet, trusted at once, with one zero at its end or
// none. Which coefficients of a watch are known to be zero, and its root, belong to a leg; all else to the mode.
#pragma once

#include <memory>
#include <vector>

#include "flow/event/watches.hpp"
#include "flow/events.hpp"

namespace saltus {

struct LegWatch {
  Watch watch;
  int unknown = 0;      ///< that of its switch or constraint; -1: the condition of a jump
  double noise = 0;     ///< of its series
  size_t terms = 0;     ///< that its series has at most
  bool solved = false;  ///< its values are those of an unknown
  LoneGuard lone;
};

struct LegMode {
  long binding = -1;  ///< of the parameters it was made with
  std::vector<LegWatch> watches;
  std::vector<WatchedSeries> controlled;
  bool jumps = false;  ///< may leave it as it is
};

class LegModes {
 public:
  explicit LegModes(const Program& program) : program_(program) {}

  /// The data of the mode of `now`, in which `smooth` stands; nullptr where its series are no plain jet.
  LegMode* of(const Moment& now, Smooth& smooth, Watches& watches, Events& events);

 private:
  const Program& program_;
  std::vector<std::unique_ptr<LegMode>> modes_;  // by their numbers
};

/// The ordinary case of Watches::find_first, forward in time: everything is on its side at the beginning, and one zero
/// or none is found, which nothing else shares its time with. False where more must be looked at.
bool find_alone(LegMode& mode, const Moment& now, const Jumps& jumps, int order, double h, double resolution,
                LegWatch*& first);

}  // namespace saltus
