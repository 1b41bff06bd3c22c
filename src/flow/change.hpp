// An event of one surface or contact that nobody else takes part in: all of it that does not depend on when and where
// it happens.
//
// The same few changes of mode come back in every cycle of a run. What follows a guard in a mode is looked up once:
// which rates decide, the mode that follows, the event as it is told. Made by Events, kept with what is watched in the
// mode. A step in time (of mod(t, T), a table, a clock) goes on as time does: it is counted, and what depends on it is
// on the side where that puts it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "code/rounding.hpp"
#include "flow/series.hpp"
#include "flow/trajectory.hpp"

namespace saltus {

/// A switch that changes its letter, with those that depend on it, and nothing else does; or a contact that rebounds.
struct Change {
  Series::Plan* to = nullptr;       ///< the mode that follows; as long as nobody knows it is that of no change
  Series::Plan* through = nullptr;  ///< behind a step in time that is not counted yet
  int tries = 0;                    ///< to find it
  bool shown = false;               ///< users see it
  bool slides = false;              ///< sliding begins, where users see it
  Event event;                      ///< but for time and state
  Arc after;
};

/// The guard of one surface or gap, and what may follow it.
struct LoneGuard {
  bool decides = false;  ///< nobody else takes part, and rates tell what follows
  bool meets = false;    ///< a section is at zero with it
  bool hits = false;     ///< a contact, of which there is no other: it rebounds
  Guard guard;
  char before = '+';                 ///< the letter of its switch
  double slope = 0;                  ///< of h' by sigma
  double hold = 1;                   ///< bound of sigma
  const Counter* counter = nullptr;  ///< whose step it is
  std::vector<int> dependents;       ///< of a step in time
  std::optional<Rounding> point;     ///< where they are
  uint64_t key = 0;                  ///< of the event, for sequences of them
  std::vector<Change> changes;       ///< to +, - and 0; or by the sides of its dependents, a bit each

  Change& change(char letter) { return changes[letter == '+' ? 0 : letter == '-' ? 1 : 2]; }
};

}  // namespace saltus
