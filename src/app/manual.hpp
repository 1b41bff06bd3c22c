// Manual pages, section 1, in the macros of man(7).
#pragma once

#include <string>
#include <vector>

#include "app/known_command.hpp"

namespace saltus {

/// saltus(1).
std::string manual_page(const std::vector<KnownCommand>& commands, const std::string& version);
/// saltus-run(1) and so on.
std::string manual_page(const KnownCommand& command, const std::string& version);

}  // namespace saltus
