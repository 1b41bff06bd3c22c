// Command lines run inside the test, in a folder of their own.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../folder.hpp"
#include "app/command_line.hpp"

namespace saltus {

struct Ran {
  int status;
  std::string out, talk;
};

inline Ran saltus_line(std::vector<std::string> arguments) {
  std::ostringstream out, talk;
  const int status = command_line(std::move(arguments), out, talk);
  return {status, out.str(), talk.str()};
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// A folder for each test, gone afterwards.
class Scratch : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Writes a model file and gives its path.
  std::string model(const std::string& text) const {
    std::ofstream(path("model.toml")) << text;
    return path("model.toml");
  }

  ScratchFolder scratch_;
  std::filesystem::path folder_ = scratch_.path;
};

}  // namespace saltus
