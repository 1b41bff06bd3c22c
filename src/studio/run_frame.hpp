// A run for the page.
#pragma once

#include <string>

#include "ask/run.hpp"

namespace saltus {

struct RunFrameNotes {
  bool drag = false;  ///< something is being dragged
  bool late = false;  ///< cut because it took too long
  double until = 0;   ///< where it should have ended
};

/// Rows thinned to what a screen shows, the first events, modes over time, and how it ended.
std::string run_frame(long id, const RunAnswer& answer, const RunFrameNotes& notes);

}  // namespace saltus
