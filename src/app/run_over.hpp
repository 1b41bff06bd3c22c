// `saltus run A --over B` and `-p F=0.3,0.4,0.5`: several runs in one picture.
#pragma once

#include <vector>

#include "app/commands.hpp"
#include "ask/past.hpp"

namespace saltus {

/// The measures and the window, as they are recorded.
std::vector<Past::Option> recorded_view(const RunRequest& request);

/// True if several runs are asked for.
bool asks_for_several(const RunRequest& request);

/// All runs: tables data-1, events-1, data-2, ..., a picture with a legend, a summary of each or {"runs": [..]}.
Outcome run_over(const RunRequest& request, const Observer& observer);

}  // namespace saltus
