#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scratch.hpp"

namespace saltus {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Runs on the model of an oscillator, y = cos t, with sections.
class SectionCommand : public Scratch {
 protected:
  std::string oscillator(const std::string& sections) const {
    return model("equations = \"\"\"\ny' = v\nv' = -y\n\"\"\"\n[initial]\ny = 1\nv = 0\n" + sections);
  }
};

const char* const kTurn = "[section.turn]\non = \"v\"\ndirection = \"falling\"\n";

TEST_F(SectionCommand, GivesThePointsAskedForAfterThoseSkipped) {
  const Ran r = saltus_line({"section", oscillator(kTurn), "-n", "5", "--skip", "3", "--json"});
  EXPECT_EQ(r.status, 0) << r.talk;
  const json j = json::parse(r.out);
  EXPECT_EQ(j["section"], "turn");
  EXPECT_EQ(j["end"]["why"], "count");
  ASSERT_EQ(j["points"].size(), 5u);
  // v = -sin t falls through zero at every full period; the start itself is no event.
  for (size_t k = 0; k < 5; ++k) {
    EXPECT_NEAR(j["points"][k]["t"].get<double>(), 2 * M_PI * static_cast<double>(k + 4), 1e-8);
    EXPECT_NEAR(j["points"][k]["state"]["y"].get<double>(), 1, 1e-8);
  }
}

TEST_F(SectionCommand, AStroboscopeNeedsNoEnd) {
  const json j =
      json::parse(saltus_line({"section", oscillator("[section.s]\nevery = \"pi\"\n"), "-n", "4", "--json"}).out);
  ASSERT_EQ(j["points"].size(), 4u);
  EXPECT_NEAR(j["points"][3]["t"].get<double>(), 4 * M_PI, 1e-12);
  EXPECT_NEAR(j["points"][2]["state"]["y"].get<double>(), -1, 1e-8);
}

TEST_F(SectionCommand, WritesATableAndAPicture) {
  const Ran r = saltus_line({"section", "dry_friction", "-n", "20", "-o", path("r")});
  EXPECT_EQ(r.status, 0) << r.talk;
  for (const char* file : {"data.csv", "plot.svg", "plot.gp", "run.toml"})
    EXPECT_TRUE(fs::exists(folder_ / "r" / file)) << file;
  std::ifstream in(path("r/data.csv"));
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "k,t,y,v");
}

TEST_F(SectionCommand, AgainRepeatsItBitForBit) {
  saltus_line({"section", "lorenz", "-n", "50", "--skip", "7", "-o", path("a"), "--no-plot"});
  saltus_line({"again", path("a/run.toml"), "-o", path("b")});
  EXPECT_EQ(content(path("a/data.csv")), content(path("b/data.csv")));
  EXPECT_GT(fs::file_size(path("b/data.csv")), 1000u);
}

TEST_F(SectionCommand, ASectionThatIsNeverMetEndsTheRun) {
  const Ran r = saltus_line({"section", oscillator("[section.far]\non = \"y - 2\"\n"), "--json"});
  EXPECT_EQ(r.status, 1);
  const json j = json::parse(r.out);
  EXPECT_TRUE(j["points"].empty());
  EXPECT_EQ(j["end"]["why"], "stalled");
}

TEST_F(SectionCommand, AnUpperLimitEndsItToo) {
  const Ran r = saltus_line({"section", oscillator(kTurn), "-n", "50", "--until", "20", "--json"});
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(json::parse(r.out)["points"].size(), 3u);
}

TEST_F(SectionCommand, SeveralSectionsMustBeChosenFrom) {
  const std::string two = oscillator(std::string(kTurn) + "[section.s]\nevery = 1\n");
  const Ran r = saltus_line({"section", two, "-n", "2"});
  EXPECT_EQ(r.status, 2);
  EXPECT_NE(r.talk.find("turn, s"), r.talk.npos) << r.talk;
  EXPECT_EQ(saltus_line({"section", two, "-n", "2", "--section", "trn"}).status, 2);
  EXPECT_EQ(json::parse(saltus_line({"section", two, "-n", "2", "--section", "s", "--json"}).out)["section"], "s");
}

TEST_F(SectionCommand, MistakesAreStatus2) {
  EXPECT_EQ(saltus_line({"section", oscillator(""), "-n", "2"}).status, 2);
  EXPECT_EQ(saltus_line({"section", oscillator(kTurn), "-n", "0"}).status, 2);
  EXPECT_EQ(saltus_line({"section", oscillator(kTurn), "--skip", "-1"}).status, 2);
}

}  // namespace
}  // namespace saltus
