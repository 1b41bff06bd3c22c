#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "json_of.hpp"

namespace saltus {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class BasinsCommand : public Scratch {
 protected:
  static json ask(const std::vector<std::string>& arguments) { return json_of("basins", arguments); }
  static std::string complaint(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "basins");
    const Ran r = saltus_line(arguments);
    EXPECT_EQ(r.status, 2) << r.out;
    return r.talk;
  }
  /// x = -a and x = a attract, x = 0 divides them; y and z go to 0.
  std::string wells() const {
    return model(
        "equations = '''\nx' = x*a^2 - x^3\ny' = -y\nz' = -z\n'''\n[parameters]\na = 1\n"
        "[initial]\nx = 1\ny = 0\nz = 0\n[section.s]\nevery = \"1\"\n");
  }
  static size_t lines(const fs::path& path) {
    const std::string text = content(path);
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
};

TEST_F(BasinsCommand, TellsAxesCellsAttractorsAndFractions) {
  for (const std::string method : {"cells", "direct"}) {
    const json j = ask({wells(), "x=-2:2:20", "y=-1:1:10", "--method", method});
    EXPECT_EQ(j["axes"], json({"x", "y"}));
    EXPECT_EQ(j["cells"], json({20, 10}));
    EXPECT_EQ(j["method"], method);
    EXPECT_EQ(j["sink"], 0);
    ASSERT_EQ(j["attractors"].size(), 2u);
    for (int k = 0; k < 2; ++k) {
      const json& a = j["attractors"][static_cast<size_t>(k)];
      EXPECT_EQ(a["id"], k + 1);
      EXPECT_EQ(a["period"], 1);
      EXPECT_EQ(a["fraction"], 0.5);
      ASSERT_EQ(a["points"].size(), 1u);
      EXPECT_NEAR(a["points"][0]["x"].get<double>(), 2 * k - 1, 1e-4);
    }
  }
}

TEST_F(BasinsCommand, WritesTablesPictureAndRecord) {
  const Ran r = saltus_line({"basins", wells(), "x=-2.1:2.1:20", "y=-1:1:9", "-o", path("out")});
  EXPECT_EQ(r.status, 0) << r.talk;
  EXPECT_TRUE(contains(r.out, "attractor  1: period 1, fraction 0.5"));
  EXPECT_EQ(content(path("out/data.csv")).substr(0, 50), "cell,x,y,image,group,cycle,transient,period\n1,-1.9");
  EXPECT_EQ(lines(path("out/data.csv")), 181u);
  EXPECT_EQ(content(path("out/groups.csv")),
            "group,what,period,cells,fraction,cycles\n1,attractor,1,90,0.5,1\n2,attractor,1,90,0.5,1\n");
  EXPECT_EQ(lines(path("out/attractors.csv")), 3u);
  EXPECT_EQ(lines(path("out/cycles.csv")), 3u);
  EXPECT_TRUE(fs::exists(path("out/plot.svg")));
  EXPECT_FALSE(fs::exists(path("out/checkpoint")));
  EXPECT_TRUE(contains(content(path("out/plot.gp")), "1: period 1, 50 %"));
}

TEST_F(BasinsCommand, IsRepeatedByItsRecord) {
  std::ofstream(path("edges")) << "-2 -1\n0 0.25 # narrow\n2\n";
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"x=@" + path("edges"), "y=-1:1:3", "-x", "z=y+2*a", "--join", "touch:2"},
        {"x=-2:2:12", "y=-1:1:8", "--method", "direct", "--refine", "--period", "2"},
        {"x=-2:2", "y=-1:1", "--random", "100", "--seed", "5"}}) {
    std::vector<std::string> line{"basins", wells(), "-p", "a=0.9", "-q", "--no-plot", "-o", path("first")};
    line.insert(line.end(), more.begin(), more.end());
    ASSERT_EQ(saltus_line(line).status, 0) << saltus_line(line).talk;
    ASSERT_EQ(saltus_line({"again", path("first/run.toml"), "-q", "-o", path("second")}).status, 0);
    for (const char* file : {"data.csv", "groups.csv", "attractors.csv", "run.toml"})
      EXPECT_EQ(content(path("first/") + file), content(path("second/") + file)) << file;
    fs::remove_all(path("first"));
    fs::remove_all(path("second"));
  }
}

TEST_F(BasinsCommand, WritesTheSameBytesForAnyNumberOfThreads) {
  for (const std::string method : {"cells", "direct"}) {
    for (const std::string threads : {"1", "3"})
      ASSERT_EQ(saltus_line({"basins", wells(), "x=-2:2:50", "y=-1:1:40", "--method", method, "-j", threads, "-q",
                             "--no-plot", "--force", "-o", path(threads)})
                    .status,
                0);
    for (const char* file : {"/data.csv", "/groups.csv", "/attractors.csv", "/run.toml"})
      EXPECT_EQ(content(path("1") + file), content(path("3") + file)) << file;
  }
}

TEST_F(BasinsCommand, TakesStatesThatFollowFromTheVariedOnes) {
  const std::string file = model(
      "equations = '''\nx' = -x\ny' = -y\nz' = z - z^3\n'''\n[parameters]\nc = 0.5\n[initial]\nx = 1\ny = 0\nz = 1\n"
      "[section.s]\nevery = \"1\"\n");
  const json plain = ask({file, "x=-1:1:8", "y=-1:1:8", "--method", "direct"});
  EXPECT_EQ(plain["attractors"].size(), 1u);
  const json j = ask({file, "x=-1:1:8", "y=-1:1:8", "--method", "direct", "-x", "z=x-c"});
  ASSERT_EQ(j["attractors"].size(), 2u);  // z starts below 0 for x below 1/2: six columns of eight
  EXPECT_EQ(j["attractors"][0]["fraction"], 0.75);
  EXPECT_NEAR(j["attractors"][0]["points"][0]["z"].get<double>(), -1, 1e-4);
}

TEST_F(BasinsCommand, ShowsAPlaneOfMoreAxes) {
  const Ran r = saltus_line(
      {"basins", wells(), "x=-2:2:6", "y=-1:1:4", "z=0:1:10", "--show", "z,x", "--at", "y=0.3", "-o", path("out")});
  EXPECT_EQ(r.status, 0) << r.talk;
  EXPECT_EQ(lines(path("out/data.csv")), 241u);
  EXPECT_TRUE(contains(content(path("out/plot.gp")), "y = 0.25"));
}

TEST_F(BasinsCommand, SaysWhatIsWrongAndWhatToDo) {
  const std::string file = wells();
  EXPECT_TRUE(contains(complaint({file}), "name two states"));
  EXPECT_TRUE(contains(complaint({file, "q=1:2:3"}), "no state 'q'"));
  EXPECT_TRUE(contains(complaint({file, "a=1:2:3"}), "'a' is a parameter"));
  EXPECT_TRUE(contains(complaint({file, "x=1:2:3", "x=1:2:3"}), "'x' is varied twice"));
  EXPECT_TRUE(contains(complaint({file, "x=1:2:0"}), "0 is no number of cells"));
  EXPECT_TRUE(contains(complaint({file, "x=1:1:5"}), "a single point"));
  EXPECT_TRUE(contains(complaint({file, "x=2:1:5"}), "write the lower end first: 1:2"));
  EXPECT_TRUE(contains(complaint({file, "x=1,3,2"}), "the edge 2 comes after 3"));
  EXPECT_TRUE(contains(complaint({file, "x"}), "'x' is no axis"));
  EXPECT_TRUE(contains(complaint({file, "x=1:2:3", "-x", "x=1"}), "'x' is varied"));
  EXPECT_TRUE(contains(complaint({file, "x=1:2:3", "-x", "z=x+q"}), "unknown name 'q'"));
  EXPECT_TRUE(contains(complaint({file, "x=1:2:3", "--refine"}), "add --method direct"));
  EXPECT_TRUE(contains(complaint({file, "x=1:2:3", "--join", "tuch"}), "did you mean 'touch'?"));
  EXPECT_TRUE(contains(complaint({file, "x=1:2:3", "--join", "run:2"}), "no such distance"));
  EXPECT_TRUE(contains(complaint({file, "x=1:2:3", "--random", "9"}), "with --random write 1:2"));
  EXPECT_TRUE(contains(complaint({file, "x=1:2:3", "--at", "y=0"}), "no axis beside the plane"));
  EXPECT_TRUE(contains(complaint({file, "x=0:1:100000", "y=0:1:100000"}), "too many"));
  EXPECT_TRUE(contains(complaint({"bouncing_ball", "q=1:2:3"}), "the model has no section"));
  EXPECT_TRUE(contains(complaint({"impact_oscillator", "u=1:2:3"}), "choose with --section"));
  EXPECT_FALSE(fs::exists("model-basins-001"));
}

TEST_F(BasinsCommand, WarnsOfAMapThatChangesWithTime) {
  const Ran r = saltus_line(
      {"basins", "impact_oscillator", "--section", "hit", "u=1:2:3", "v=0:1:3", "--no-plot", "-o", path("out")});
  EXPECT_TRUE(contains(r.out, "note       time appears in the equations"));
}

TEST_F(BasinsCommand, KilledAtAnyMomentIsFinishedByAgainWithTheSameBytes) {
  const std::vector<std::string> line{"basins", "buck",     "-p",     "Vin=13.4", "i=0.4:0.7:24", "v=11.5:12.3:24",
                                      "-q",     "--method", "direct", "-o",       path("killed"), "--no-plot"};
  std::vector<std::string> whole = line;
  *(whole.end() - 2) = path("whole");
  ASSERT_EQ(saltus_line(whole).status, 0);
  std::vector<std::string> next = line;
  int kills = 0;
  for (int round = 0; round < 200; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::vector<char*> arguments{const_cast<char*>(SALTUS_BINARY)};
      for (std::string& a : next) arguments.push_back(a.data());
      arguments.push_back(nullptr);
      ::execv(SALTUS_BINARY, arguments.data());
      ::_exit(127);
    }
    ::usleep(static_cast<useconds_t>(60'000 + 20'000 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      break;
    }
    ++kills;
    if (fs::exists(path("killed/checkpoint"))) next = {"again", path("killed/run.toml"), "-q"};
  }
  EXPECT_GT(kills, 0);
  EXPECT_FALSE(fs::exists(path("killed/checkpoint")));
  for (const char* file : {"/data.csv", "/groups.csv", "/attractors.csv", "/run.toml"})
    EXPECT_EQ(content(path("whole") + file), content(path("killed") + file)) << file;
}

}  // namespace
}  // namespace saltus
