// How often a run tells how far it is, and can be cancelled.
#pragma once

namespace saltus {

/// Steps between two calls of RunOptions::progress: some hundred microseconds of even a large model.
inline constexpr long steps_per_report = 16;

}  // namespace saltus
