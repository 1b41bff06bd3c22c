// `saltus studio`: a page in a browser, served by this program to this machine alone.
#pragma once

#include "app/commands.hpp"

namespace saltus {

/// Prints the link and serves the page until it is interrupted.
Outcome studio(const StudioOptions& options);

}  // namespace saltus
