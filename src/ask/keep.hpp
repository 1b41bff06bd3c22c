// Where finished parts of a long computation are kept for the case that the program is killed.
#pragma once

#include <filesystem>
#include <string>

namespace saltus {

struct Keep {
  std::filesystem::path path = {};  ///< empty: none
  std::string identity = {};        ///< all that the result depends on
};

}  // namespace saltus
