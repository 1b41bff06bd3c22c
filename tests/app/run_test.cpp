#include "app/commands.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/wait.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/view.hpp"
#include "ask/gallery.hpp"
#include "ask/past.hpp"
#include "scratch.hpp"

namespace saltus {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::vector<std::string>> read_csv(const fs::path& path) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    rows.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
  }
  return rows;
}

using RunCommand = Scratch;

const char* const kOscillator = R"(
equations = """
  y' = v
  v' = -y
  twice = 2*y
"""
[initial]
y = 1
v = 0
)";

TEST_F(RunCommand, JsonHasEverythingTheContractNames) {
  const Ran r = saltus_line({"run", "dry_friction", "--json", "-p", "F=0.3", "--tolerance", "1e-9"});
  EXPECT_EQ(r.status, 0);
  const json j = json::parse(r.out);
  EXPECT_EQ(j["model"], "Dry-friction oscillator");
  EXPECT_EQ(j["parameters"]["F"], 0.3);
  EXPECT_EQ(j["engine"], "event");
  EXPECT_EQ(j["tolerance"], 1e-9);
  EXPECT_EQ(j["switches"], json::array({"v"}));
  EXPECT_EQ(j["constraints"], json::array());
  EXPECT_EQ(j["start"]["t"], 0);
  EXPECT_EQ(j["start"]["mode"], "+");
  EXPECT_EQ(j["end"]["why"], "time");
  EXPECT_EQ(j["end"]["t"], 60);
  EXPECT_TRUE(j["end"]["state"].contains("v"));
  EXPECT_TRUE(j["messages"].is_array());
  ASSERT_FALSE(j["events"].empty());
  for (const char* key : {"t", "kind", "on", "mode", "state"}) EXPECT_TRUE(j["events"][0].contains(key)) << key;
  EXPECT_EQ(j["events"][0]["mode"].size(), 2u);
  for (const char* key : {"steps", "events", "seconds"}) EXPECT_TRUE(j["cost"].contains(key)) << key;
}

TEST_F(RunCommand, JsonGivesTheStateBeforeAnImpact) {
  const json j = json::parse(saltus_line({"run", "bouncing_ball", "--json", "--until", "1"}).out);
  const json& impact = j["events"][0];
  EXPECT_EQ(impact["kind"], "impact");
  EXPECT_NEAR(impact["t"].get<double>(), std::sqrt(2 / 9.81), 1e-12);
  EXPECT_NEAR(impact["before"]["v"].get<double>(), -std::sqrt(2 * 9.81), 1e-9);
  EXPECT_NEAR(impact["state"]["v"].get<double>(), 0.8 * std::sqrt(2 * 9.81), 1e-9);
}

TEST_F(RunCommand, JsonWritesNoFolderUnlessAsked) {
  EXPECT_EQ(saltus_line({"run", model(kOscillator), "--until", "1", "--json", "-o", path("r"), "--no-plot"}).status, 0);
  EXPECT_TRUE(fs::exists(path("r/data.csv")));
}

TEST_F(RunCommand, LeavesAFolderWithDataEventsPictureAndRecord) {
  const Ran r = saltus_line({"run", "dry_friction", "-o", path("r")});
  EXPECT_EQ(r.status, 0);
  for (const char* file : {"data.csv", "events.csv", "plot.svg", "plot.gp", "run.toml"})
    EXPECT_TRUE(fs::exists(folder_ / "r" / file)) << file;
  EXPECT_EQ(std::count(r.out.begin(), r.out.end(), '\n'), 5) << r.out;
  const auto rows = read_csv(path("r/data.csv"));
  EXPECT_EQ(rows[0], (std::vector<std::string>{"t", "y", "v", "force", "friction", "energy", "sigma(v)"}));
  EXPECT_EQ(rows.back()[0], "60");
}

TEST_F(RunCommand, FoldersAreNumbered) {
  const fs::path former = fs::current_path();
  fs::current_path(folder_);
  saltus_line({"run", "pendulum", "--no-plot"});
  const Ran second = saltus_line({"run", "pendulum", "--no-plot"});
  fs::current_path(former);
  EXPECT_TRUE(fs::exists(path("pendulum-run-001/data.csv")));
  EXPECT_TRUE(fs::exists(path("pendulum-run-002/data.csv")));
  EXPECT_TRUE(contains(second.out, "pendulum-run-002"));
}

TEST_F(RunCommand, RowsFollowTheSolutionAndNamedQuantities) {
  saltus_line({"run", model(kOscillator), "--until", "10", "-o", path("r"), "--no-plot"});
  const auto rows = read_csv(path("r/data.csv"));
  ASSERT_GT(rows.size(), 60u);  // smooth enough for a curve
  for (size_t i = 1; i < rows.size(); ++i) {
    const double t = std::stod(rows[i][0]);
    EXPECT_NEAR(std::stod(rows[i][1]), std::cos(t), 1e-8);
    EXPECT_NEAR(std::stod(rows[i][3]), 2 * std::cos(t), 1e-8);
    if (i > 1) {
      EXPECT_LT(t - std::stod(rows[i - 1][0]), 0.3);
    }
  }
}

TEST_F(RunCommand, SigmaIsSolvedWhileSliding) {
  // Pushed by 0.5 against friction 1: it sticks, and sigma balances the push.
  saltus_line({"run", model("equations = \"\"\"\nv' = 0.5*t - sign(v)\n\"\"\"\n[initial]\nv = 0\n"), "--until", "1",
               "--sample", "0.25", "-o", path("r"), "--no-plot"});
  const auto rows = read_csv(path("r/data.csv"));
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0][2], "sigma(v)");
  for (size_t i = 1; i < rows.size(); ++i) EXPECT_NEAR(std::stod(rows[i][2]), 0.5 * std::stod(rows[i][0]), 1e-14);
}

TEST_F(RunCommand, JumpsInterruptTheRows) {
  saltus_line({"run", "bouncing_ball", "--until", "1", "-o", path("r"), "--no-plot"});
  const auto rows = read_csv(path("r/data.csv"));
  const auto gap = std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row[0] == "nan"; });
  ASSERT_NE(gap, rows.end());
  const auto &before = *(gap - 1), &after = *(gap + 1);
  EXPECT_EQ(before[0], after[0]);
  EXPECT_NEAR(std::stod(after[2]), -0.8 * std::stod(before[2]), 1e-12);
}

TEST_F(RunCommand, SampleGivesExactlyTheTimesAsked) {
  saltus_line({"run", model(kOscillator), "--until", "1", "--sample", "0.1", "-o", path("r"), "--no-plot"});
  const auto rows = read_csv(path("r/data.csv"));
  ASSERT_EQ(rows.size(), 12u);
  for (size_t k = 0; k <= 10; ++k) {
    EXPECT_DOUBLE_EQ(std::stod(rows[k + 1][0]), 0.1 * static_cast<double>(k));
    EXPECT_NEAR(std::stod(rows[k + 1][1]), std::cos(0.1 * static_cast<double>(k)), 1e-9);
  }
}

TEST_F(RunCommand, SampleStepsGivesFewerRowsThanSmooth) {
  saltus_line({"run", "pendulum", "-o", path("a"), "--no-plot"});
  saltus_line({"run", "pendulum", "-o", path("b"), "--no-plot", "--sample", "steps"});
  EXPECT_LT(read_csv(path("b/data.csv")).size(), read_csv(path("a/data.csv")).size());
}

TEST_F(RunCommand, StoredPiecesAreThePolynomials) {
  saltus_line({"run", model(kOscillator), "--until", "2", "-o", path("r"), "--no-plot", "--store", "pieces"});
  const auto rows = read_csv(path("r/pieces.csv"));
  ASSERT_GE(rows.size(), 2u);
  EXPECT_EQ(rows[0][3], "y[0]");
  // At the start cos: 1, 0, -1/2.
  EXPECT_EQ(std::stod(rows[1][3]), 1);
  EXPECT_EQ(std::stod(rows[1][4]), 0);
  EXPECT_DOUBLE_EQ(std::stod(rows[1][5]), -0.5);
}

TEST_F(RunCommand, ARunOfNoLengthHasOneRow) {
  const Ran r = saltus_line({"run", "dry_friction", "--from", "3", "--until", "3", "-o", path("r")});
  EXPECT_EQ(r.status, 0);
  const auto rows = read_csv(path("r/data.csv"));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1][0], "3");
  EXPECT_EQ(rows[1][2], "2");
}

TEST_F(RunCommand, RunsBackward) {
  const Ran r = saltus_line({"run", model(kOscillator), "--until", "-1", "-o", path("r")});
  EXPECT_EQ(r.status, 0);
  const auto rows = read_csv(path("r/data.csv"));
  EXPECT_EQ(rows.back()[0], "-1");
  EXPECT_NEAR(std::stod(rows.back()[2]), std::sin(1.0), 1e-9);
}

TEST_F(RunCommand, TolerancesAtTheirLimitsWork) {
  for (const char* tolerance : {"1e-15", "0.1"}) {
    const Ran r = saltus_line({"run", model(kOscillator), "--until", "3", "--json", "--tolerance", tolerance});
    EXPECT_EQ(r.status, 0) << tolerance;
    EXPECT_NEAR(json::parse(r.out)["end"]["state"]["y"].get<double>(), std::cos(3.0), 0.3) << tolerance;
  }
}

TEST_F(RunCommand, ABlowUpEndsWithStatus1AndKeepsTheRows) {
  const Ran r = saltus_line({"run", model("equations = \"\"\"\nx' = x^2\n\"\"\"\n[initial]\nx = 1\n"), "--until", "2",
                             "-o", path("r"), "--no-plot"});
  EXPECT_EQ(r.status, 1);
  EXPECT_TRUE(contains(r.out, "diverged") || contains(r.out, "stalled")) << r.out;
  const auto rows = read_csv(path("r/data.csv"));
  ASSERT_GT(rows.size(), 10u);
  const double t = std::stod(rows[10][0]);
  EXPECT_NEAR(std::stod(rows[10][1]) * (1 - t), 1, 1e-8);
}

TEST_F(RunCommand, AnUndefinedRateEndsWithStatus1) {
  const Ran r = saltus_line(
      {"run", model("equations = \"\"\"\nx' = sqrt(x - 2)\n\"\"\"\n[initial]\nx = 1\n"), "--until", "2", "--json"});
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(json::parse(r.out)["end"]["why"], "undefined");
}

TEST_F(RunCommand, QuietSaysNothingButWhyItEndedBadly) {
  EXPECT_EQ(saltus_line({"run", "pendulum", "-q", "-o", path("r"), "--no-plot"}).out, "");
  const Ran bad = saltus_line({"run", model("equations = \"\"\"\nx' = x^2\n\"\"\"\n[initial]\nx = 1\n"), "--until", "2",
                               "-o", path("s"), "--no-plot", "-q"});
  EXPECT_EQ(bad.out, "");
  EXPECT_FALSE(bad.talk.empty());
}

TEST_F(RunCommand, MistakesAreStatus2) {
  const std::vector<std::vector<std::string>> mistakes{
      {"--until", "abc"},    {"--tolerance", "1"},  {"--engine", "evnt"}, {"--flow", "tailor"},  {"--sample", "0"},
      {"--sample", "-1"},    {"--store", "peaces"}, {"--zeno", "never"},  {"--leave", "w=+1"},   {"--leave", "v=2"},
      {"--format", "xls"},   {"--show", "w"},       {"-o", ""},           {"--plot", "picture"}, {"--until", "1/0"},
      {"--sample", "1e-12"}, {"--leave", "v"},
  };
  for (const auto& options : mistakes) {
    std::vector<std::string> line{"run", "dry_friction", "-o", path("r"), "--no-plot"};
    line.insert(line.end(), options.begin(), options.end());
    const Ran r = saltus_line(line);
    EXPECT_EQ(r.status, 2) << options[0] << " " << options[1] << ": " << r.talk;
    EXPECT_EQ(r.out, "");
    EXPECT_FALSE(fs::exists(path("r/data.csv")));
  }
}

TEST_F(RunCommand, WithoutAnEndItAsksForOne) {
  const Ran r = saltus_line({"run", model(kOscillator)});
  EXPECT_EQ(r.status, 2);
  EXPECT_TRUE(contains(r.talk, "--until"));
}

TEST_F(RunCommand, AFolderThatCannotBeMadeIsStatus4) {
  std::ofstream(path("file")) << "x";
  EXPECT_EQ(saltus_line({"run", "pendulum", "-o", path("file/r")}).status, 4);
  EXPECT_EQ(saltus_line({"run", "pendulum", "-o", path("file")}).status, 4);
  EXPECT_EQ(saltus_line({"run", "pendulum", "--json", "--plot", path("none/p.svg")}).status, 4);
}

TEST_F(RunCommand, PicturesComeInThreeKinds) {
  for (const char* kind : {"svg", "png", "pdf"}) {
    const std::string file = path(std::string("p.") + kind);
    EXPECT_EQ(saltus_line({"run", "dry_friction", "--json", "--plot", file, "--show", "friction, sigma( v )"}).status,
              0);
    EXPECT_GT(fs::file_size(file), 1000u) << kind;
  }
}

TEST_F(RunCommand, PictureSaysWhenVectorFrictionSlips) {
  const std::string file = path("puck.svg");
  ASSERT_EQ(saltus_line({"run", "puck", "--json", "--plot", file}).status, 0);
  std::ifstream in(file);
  const std::string svg(std::istreambuf_iterator<char>(in), {});
  EXPECT_NE(svg.find(">slips<"), std::string::npos);
  EXPECT_EQ(svg.find("&lt; 0<"), std::string::npos);
}

TEST_F(RunCommand, Hdf5HoldsTheSameTables) {
  EXPECT_EQ(saltus_line({"run", "dry_friction", "-o", path("r"), "--no-plot", "--format", "h5"}).status, 0);
  EXPECT_TRUE(fs::exists(path("r/data.h5")));
  EXPECT_FALSE(fs::exists(path("r/data.csv")));
}

TEST_F(RunCommand, AgainRepeatsEveryGalleryModelBitForBit) {
  for (const GalleryModel& m : gallery()) {
    const std::string name(m.name), first = path(name), second = path(name + "-again");
    const Ran r = saltus_line({"run", name, "-o", first, "--no-plot"});
    if (r.status > 1) continue;  // a run that cannot start leaves nothing to repeat
    const Ran again = saltus_line({"again", first + "/run.toml", "-o", second});
    EXPECT_EQ(again.status, r.status) << name << ": " << again.talk;
    for (const char* file : {"/data.csv", "/events.csv", "/run.toml"})
      EXPECT_EQ(content(first + file), content(second + file)) << name << file;
  }
}

TEST_F(RunCommand, AgainKeepsParametersStartAndOptions) {
  saltus_line({"run", "dry_friction", "-p", "F=0.3", "-x", "v=-1/3", "--until", "7*omega", "--sample", "omega/9",
               "--tolerance", "1e-8", "--show", "energy", "-o", path("a"), "--no-plot"});
  saltus_line({"again", path("a/run.toml"), "-o", path("b")});
  EXPECT_EQ(content(path("a/data.csv")), content(path("b/data.csv")));
  EXPECT_GT(fs::file_size(path("b/data.csv")), 100u);
  EXPECT_EQ(content(path("a/run.toml")), content(path("b/run.toml")));
  EXPECT_FALSE(fs::exists(path("b/plot.svg")));
}

TEST_F(RunCommand, ARecordStandsForItsModel) {
  saltus_line({"run", "dry_friction", "-p", "F=0.3", "-o", path("a"), "--no-plot"});
  const Ran r = saltus_line({"check", path("a/run.toml"), "--json"});
  EXPECT_EQ(r.status, 0) << r.talk;
  EXPECT_EQ(json::parse(r.out)["parameters"]["F"], 0.3);
}

TEST_F(RunCommand, AgainComplainsAboutWhatIsNoRecord) {
  EXPECT_EQ(saltus_line({"again", path("none.toml")}).status, 4);
  EXPECT_EQ(saltus_line({"again", model(kOscillator)}).status, 2);
  std::ofstream(path("run.toml")) << "saltus = \"0.1.0\"\ncommand = 3\n";
  EXPECT_EQ(saltus_line({"again", path("run.toml")}).status, 3);
}

TEST(Past, ReadsBackWhatItWrote) {
  const Past past{.version = "9.8",
                  .command = "run",
                  .name = "a \"b\"",
                  .model = "name = \"x'''\"\nequations = 1\n",
                  .options = {{"leave", {"v=+1", "w - u=0"}}, {"no-plot", {}}, {"until", {"60"}}}};
  const fs::path file = fresh_folder() / "run.toml";
  std::ofstream(file) << write_past(past);
  const auto read = read_past(file);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->version, past.version);
  EXPECT_EQ(read->name, past.name);
  EXPECT_EQ(read->model, past.model);
  EXPECT_EQ(read->options, past.options);
  EXPECT_EQ(arguments_of(*read, "m.toml"),
            (std::vector<std::string>{"m.toml", "--leave=v=+1", "--leave=w - u=0", "--no-plot", "--until=60"}));
}

TEST(Columns, AreFoundByNameWithoutSpaces) {
  const std::vector<std::string> known{"t", "x", "sigma(atan2(x, y))"};
  EXPECT_EQ(find_columns({"sigma(atan2(x,y)),x"}, known), (std::vector<std::string>{"sigma(atan2(x, y))", "x"}));
  EXPECT_THROW(find_columns({"y"}, known), Error);
  EXPECT_THROW(find_columns({"t"}, known), Error);
}

/// Starts a run without end, sends the signal once it computes (its folder is there), and gives the exit status.
int interrupt(const std::string& signal, const std::string& options, const std::string& folder,
              const std::string& out) {
  const std::string command = SALTUS_BINARY " run lorenz --until 1e9 --no-plot -o " + folder + options + " > " + out +
                              " & pid=$!; while [ ! -d " + folder + " ]; do sleep 0.02; done; sleep 0.2; kill -" +
                              signal + " $pid; wait $pid";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(RunCommand, InterruptedItKeepsItsResultsAndExitsWith130) {
  EXPECT_EQ(interrupt("INT", "", path("r"), path("out")), 130);
  EXPECT_TRUE(contains(content(path("out")), "cancelled")) << content(path("out"));
  EXPECT_GT(fs::file_size(path("r/data.csv")), 1000u);
}

TEST_F(RunCommand, TerminatedItDoesTheSame) {
  EXPECT_EQ(interrupt("TERM", " --json", path("r"), path("out")), 130);
  EXPECT_EQ(json::parse(content(path("out")))["end"]["why"], "cancelled");
  EXPECT_GT(fs::file_size(path("r/data.csv")), 1000u);
}

TEST_F(RunCommand, ManyRowsAreThinned) {
  const Ran r = saltus_line({"run", "harmonic", "--until", "200000", "-o", path("r"), "--no-plot"});
  EXPECT_EQ(r.status, 0);
  EXPECT_TRUE(contains(r.out, "thinned")) << r.out;
  EXPECT_LE(read_csv(path("r/data.csv")).size(), 1'000'002u);
}

// A cycle of radius 1 on which the angle is time: half a turn later it is on the other side.
TEST_F(RunCommand, FromAnOrbitStartsWhenRunsDoWhereTimeDoesNotCount) {
  const std::string cycle = model(R"(
equations = """
  x' = x*(1 - x^2 - y^2) - y
  y' = y*(1 - x^2 - y^2) + x
"""
[initial]
x = 1.2
y = 0.1
)");
  ASSERT_EQ(saltus_line({"orbit", cycle, "--until", "30", "-q", "-o", path("orbit")}).status, 0);
  const auto start = json_of("run", {path("orbit/run.toml"), "--until", "0"})["end"];
  const auto end = json_of("run", {path("orbit/run.toml"), "--until", "pi"})["end"];
  EXPECT_NEAR(end["t"].get<double>(), M_PI, 1e-15);
  for (const char* name : {"x", "y"})
    EXPECT_NEAR(end["state"][name].get<double>(), -start["state"][name].get<double>(), 1e-9) << name;
  EXPECT_NEAR(std::hypot(end["state"]["x"].get<double>(), end["state"]["y"].get<double>()), 1, 1e-9);
}

}  // namespace
}  // namespace saltus
