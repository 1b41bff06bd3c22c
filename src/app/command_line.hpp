// The command line: arguments in, text and exit status out. The only file that knows CLI11.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "app/commands.hpp"

namespace saltus {

/// The command `saltus studio`.
using Studio = std::function<Outcome(const StudioOptions&)>;

/// Runs one command (arguments without the program's name). Results go to `out`, complaints to `talk`.
int command_line(std::vector<std::string> arguments, std::ostream& out, std::ostream& talk, Studio studio = {});

}  // namespace saltus
