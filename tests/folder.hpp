// Folders of their own for tests that write files.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

namespace saltus {

/// An empty folder that nobody else uses; gone afterwards, unless the environment has SALTUS_KEEP.
struct ScratchFolder {
  std::filesystem::path path;

  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "saltus-test-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("no folder for a test: " + pattern);
    path = pattern;
  }
  ~ScratchFolder() {
    if (getpid() == owner_ && !std::getenv("SALTUS_KEEP")) std::filesystem::remove_all(path);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

 private:
  pid_t owner_ = getpid();  // a forked child must not clear away what its parent uses
};

/// An empty folder named after the running test, there until the program ends.
inline std::filesystem::path fresh_folder() {
  static const ScratchFolder all;
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path folder = all.path / info->test_suite_name() / info->name();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

/// The whole file.
inline std::string content(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace saltus
