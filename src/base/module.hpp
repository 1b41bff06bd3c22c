// Parts of saltus that are loaded when they are needed, so that a plain start pays nothing for the libraries they use.
#pragma once

#include <filesystem>
#include <string>

namespace saltus {

/// Where the shared object `name` of saltus lies: beside the program or the library this code is in, or in lib/saltus
/// of the installation; empty if nowhere.
std::filesystem::path find_module(const std::string& name);

}  // namespace saltus
