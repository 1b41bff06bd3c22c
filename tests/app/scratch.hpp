// Command lines run inside the test, in a folder of their own.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

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

inline std::string content(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// A folder for each test, gone afterwards.
class Scratch : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "saltus-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Writes a model file and gives its path.
  std::string model(const std::string& text) const {
    std::ofstream(path("model.toml")) << text;
    return path("model.toml");
  }

  std::filesystem::path folder_;
};

}  // namespace saltus
