// The document that a command line prints with --json.
#pragma once

#include <nlohmann/json.hpp>

#include "scratch.hpp"

namespace saltus {

inline nlohmann::json json_of(const std::string& command, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), command);
  arguments.push_back("--json");
  const Ran r = saltus_line(arguments);
  EXPECT_EQ(r.status, 0) << r.talk;
  return nlohmann::json::parse(r.out);
}

}  // namespace saltus
