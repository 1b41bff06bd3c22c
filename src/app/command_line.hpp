// The command line: arguments in, text and exit status out. The only file that knows CLI11.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace saltus {

/// Runs one command (arguments without the program's name). Results go to `out`, complaints to `talk`.
int command_line(std::vector<std::string> arguments, std::ostream& out, std::ostream& talk);

}  // namespace saltus
