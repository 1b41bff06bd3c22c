// Replays what the fuzz targets start from and deterministic mutations of it, without clang.
#include <algorithm>
#include <random>

#include "../fuzz/app_once.hpp"
#include "scratch.hpp"

namespace saltus {
namespace {

std::vector<std::string> seeds(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(SALTUS_SOURCE_DIR "/tests/fuzz/" + folder)) {
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    found.push_back(text.str());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string mutated(std::string text, std::mt19937& random) {
  for (unsigned k = 0, n = 1 + random() % 3; k < n; ++k) {
    const size_t at = random() % (text.size() + 1), length = random() % 20;
    switch (random() % 4) {
      case 0: text.erase(at, length); break;
      case 1: text.insert(at, 1, static_cast<char>(random() % 256)); break;
      case 2: text.insert(at, text.substr(random() % (text.size() + 1), length)); break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(random() % 256);
    }
  }
  return text;
}

template <class Once>
void try_all(const std::string& folder, const Once& once) {
  const auto texts = seeds(folder);
  ASSERT_FALSE(texts.empty());
  for (const std::string& text : texts) once(text);
  std::mt19937 random(2026);
  for (int k = 0; k < 2000; ++k) once(mutated(texts[random() % texts.size()], random));
}

class Fuzz : public Scratch {};

TEST_F(Fuzz, CommandLinesAreReadOrRefused) { try_all("command_line", saltus::fuzz::command_line_once); }
TEST_F(Fuzz, RecordsOfResultsAreReadOrDamaged) { try_all("past", saltus::fuzz::past_once); }
TEST_F(Fuzz, CheckpointsOpenOrAreRefused) {
  try_all("checkpoint", [&](const std::string& bytes) { saltus::fuzz::checkpoint_once(bytes, path("c")); });
}

}  // namespace
}  // namespace saltus
