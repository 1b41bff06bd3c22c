// Every message about a wrong model is a golden file: tests/errors/NAME.toml gives tests/errors/NAME.txt.
// SALTUS_UPDATE_GOLDEN=1 writes the .txt files; read what changed before committing it.
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "model/read.hpp"
#include "model/start.hpp"
#include "model_files.hpp"

namespace saltus {
namespace {

const std::filesystem::path folder = SALTUS_SOURCE_DIR "/tests/errors";

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

std::string report_of(const std::filesystem::path& path) {
  try {
    const Model m = read_model_text(content(path), path.filename().string());
    const auto p = parameter_values(m);
    check_start(m, p, initial_values(m, p), m.run.from ? constant_value(*m.run.from, p) : 0);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::model) << path;
    return error.report();
  }
  return "no complaint\n";
}

std::vector<std::filesystem::path> files(const std::string& extension) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == extension) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Mistakes, GetTheirMessages) {
  const bool update = std::getenv("SALTUS_UPDATE_GOLDEN") != nullptr;
  for (const auto& path : files(".toml")) {
    const std::string report = report_of(path);
    const auto golden = std::filesystem::path(path).replace_extension(".txt");
    if (update) std::ofstream(golden, std::ios::binary) << report;
    EXPECT_EQ(report, content(golden)) << path;
    EXPECT_NE(report, "no complaint\n") << path;
  }
}

TEST(Mistakes, AreAllThere) {
  EXPECT_GE(files(".toml").size(), 60u);
  EXPECT_EQ(files(".toml").size(), files(".txt").size());
}

TEST(Mistakes, AreOneMessageThatEndsWithAdvice) {
  for (const auto& path : files(".txt")) {
    const std::string text = content(path);
    EXPECT_TRUE(text.starts_with(path.stem().string() + ".toml")) << path;
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 7) << path;
    EXPECT_EQ(text.find("saltus::"), std::string::npos) << path;
    EXPECT_EQ(text.find("toml::"), std::string::npos) << path;
    const size_t last = text.rfind('\n', text.size() - 2);
    EXPECT_NE(last, std::string::npos) << path << " has no advice";
    EXPECT_NE(text[text.find_first_not_of(" \t", last + 1)], '^') << path << " has no advice";
  }
}

}  // namespace
}  // namespace saltus
