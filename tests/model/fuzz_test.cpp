// Replays the fuzz corpus and deterministic mutations of it, without clang: no crash, no hang, only models and Errors.
#include <chrono>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "../fuzz/read_model_once.hpp"
#include "model_files.hpp"

namespace saltus {
namespace {

using saltus::testing::read_model_once;

std::vector<std::string> corpus() {
  std::vector<std::string> out;
  for (const char* folder : {"/tests/fuzz/corpus", "/tests/errors", "/tests/reference/cases"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::string(SALTUS_SOURCE_DIR) + folder)) {
      if (entry.path().extension() != ".toml") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      std::ostringstream text;
      text << file.rdbuf();
      out.push_back(text.str());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// One or two small accidents: bytes lost, changed, repeated, or replaced by a piece of another file.
std::string mutated(std::string text, const std::vector<std::string>& others, std::mt19937& random) {
  static const std::vector<std::string> words{"sign(", ")",    "(",  "if(",  " and ", "'", "\"\"\"", "\n",
                                              "=",     "[",    "]",  "{",    "}",     "#", "1e308",  "-",
                                              "^",     "mod(", "\\", "\xff", ",",     ".", "x"};
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  for (size_t k = 0, n = 1 + below(2); k < n; ++k) {
    const size_t at = below(text.size() + 1), length = std::min(below(30), text.size() - at);
    switch (random() % 6) {
      case 0: text.erase(at, length); break;
      case 1: text.insert(at, words[below(words.size())]); break;
      case 2: text.insert(at, text.substr(at, length)); break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(random() % 256);
        break;
      case 4: {
        const std::string& other = others[below(others.size())];
        text.insert(at, other.substr(below(other.size()), below(60)));
        break;
      }
      default: text.resize(at); break;
    }
  }
  return text;
}

void read_in_time(const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  read_model_once(text);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(seconds, 5) << text;
}

TEST(Fuzz, TheCorpusReadsOrIsRefused) {
  const auto texts = corpus();
  EXPECT_GT(texts.size(), 150u);
  for (const std::string& text : texts) read_in_time(text);
}

TEST(Fuzz, SmallAccidentsAreModelsOrErrors) {
  const auto texts = corpus();
  std::vector<std::string> good;  // most of the corpus is wrong on purpose and never gets as far as lowering
  for (const std::string& text : texts) {
    if (read_model_once(text)) good.push_back(text);
  }
  std::mt19937 random(2026);
  int models = 0;
  for (int k = 0; k < 8000; ++k) {
    const auto& seeds = random() % 4 == 0 ? texts : good;
    models += read_model_once(mutated(seeds[random() % seeds.size()], texts, random));
  }
  EXPECT_GT(models, 200) << "the mutations should often leave a model";
}

}  // namespace
}  // namespace saltus
