// An event of one surface or contact that nobody else takes part in: all of it that does not depend on when and where
// it happens.
//
// The same few changes of mode come back in every cycle of a run. What follows a guard in a mode is looked up once:
// which rates decide, the mode that follows, the event as it is told. Made by Events, kept with what is watched in the
// mode.
#pragma once

#include <array>
#include <cstdint>

#include "flow/series.hpp"
#include "flow/trajectory.hpp"

namespace saltus {

/// A switch that changes its letter, and nothing else does; or a contact that rebounds.
struct Change {
  Series::Plan* to = nullptr;  ///< the mode that follows; as long as nobody knows it is that of no change
  int tries = 0;               ///< to find it
  bool shown = false;          ///< users see the switch, and that it changes
  bool slides = false;         ///< sliding begins, where users see it
  Event event;                 ///< but for time and state
  Arc after;
};

/// The guard of one surface or gap, and what may follow it.
struct LoneGuard {
  bool decides = false;  ///< nobody else takes part, and rates tell what follows
  bool meets = false;    ///< a section is at zero with it
  bool hits = false;     ///< a contact, of which there is no other: it rebounds
  Guard guard;
  char before = '+';                ///< the letter of its switch
  double slope = 0;                 ///< of h' by sigma
  double hold = 1;                  ///< bound of sigma
  uint64_t key = 0;                 ///< of the event, for sequences of them
  std::array<Change, 3> changes{};  ///< to +, - and 0

  Change& change(char letter) { return changes[letter == '+' ? 0 : letter == '-' ? 1 : 2]; }
};

}  // namespace saltus
