#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "json_of.hpp"

namespace saltus {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class SweepCommand : public Scratch {
 protected:
  static json ask(const std::vector<std::string>& arguments) { return json_of("sweep", arguments); }
  static std::vector<double> values_of(const json& j) {
    std::vector<double> values;
    for (const json& row : j["rows"]) values.push_back(row["value"].get<double>());
    return values;
  }
  /// x' = -x + a: ends at x = a.
  std::string decay() const {
    return model(
        "equations = \"x' = a - x\"\n[parameters]\na = 1\nb = 2\n[initial]\nx = 0\n[section.s]\nevery = \"5\"\n");
  }
  const std::vector<std::string> quick{"-n", "6", "--skip", "6"};
  json quickly(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), quick.begin(), quick.end());
    return ask(arguments);
  }
};

TEST_F(SweepCommand, TellsPeriodPointsSlidingEventsAndEnd) {
  const json j = ask({"dry_friction", "1/omega=0.5,3,6", "-n", "12", "--skip", "60"});
  EXPECT_EQ(j["parameter"], "1/omega");
  ASSERT_EQ(j["rows"].size(), 3u);
  const std::vector<int> sliding{0, 2, 4};
  for (size_t i = 0; i < 3; ++i) {
    const json& row = j["rows"][i];
    EXPECT_EQ(row["period"], 1);
    EXPECT_EQ(row["sliding"], sliding[i]);
    EXPECT_EQ(row["points"].size(), 12u);
    EXPECT_EQ(row["end"], "count");
  }
  EXPECT_NEAR(j["rows"][1]["points"][11]["y"].get<double>(), -0.72126788320629290, 1e-8);
  EXPECT_EQ(j["rows"][0]["events"], 2);  // two crossings of v = 0
}

TEST_F(SweepCommand, MovesWhatDependsOnTheParameter) {  // the strobe, the force and the start follow omega
  const std::string file = model(
      "equations = \"\"\"\ny' = v\nv' = -y - c*v + f*sin(omega*t)\n\"\"\"\n[parameters]\nc = \"omega/2\"\nf = \"3*c\"\n"
      "T = \"2*pi/omega\"\nomega = 1\n[initial]\ny = \"c\"\nv = 0\n[section.s]\nevery = \"T\"\n");
  const json j = ask({file, "omega=0.8,1.5,3", "-n", "5", "--skip", "60"});
  for (const json& row : j["rows"]) {
    const double w = row["value"].get<double>(), c = w / 2, f = 3 * c;
    const double steady = -f * c * w / (std::pow(1 - w * w, 2) + std::pow(c * w, 2));
    EXPECT_NEAR(row["points"][4]["y"].get<double>(), steady, 1e-7) << w;
    EXPECT_NEAR(row["time"].get<double>(), 2 * M_PI / w, 1e-9) << w;
  }
}

TEST_F(SweepCommand, CountsRunsThatEndEarlyAndThoseThatNeverMeetTheSection) {
  const std::string file = model(
      "equations = \"\"\"\ny' = v\nv' = -y - a*v + a*b*v/(1 + y^2)\n\"\"\"\n[parameters]\na = 1\nb = 0\n[initial]\n"
      "y = 1\nv = 0\n[section.s]\non = \"y + 0.5\"\ndirection = \"rising\"\n");
  // a = 3: straight to rest; a = 0.1: around and then to rest; b = 2: a cycle
  const Ran answer = saltus_line({"sweep", file, "a=3,0.1,1", "-n", "5", "--skip", "40", "--json"});
  EXPECT_EQ(answer.status, 1);
  const json j = json::parse(answer.out);
  EXPECT_EQ(j["early"], 3);
  EXPECT_EQ(j["never_met"], 2);
  EXPECT_EQ(j["rows"][0]["message"], "comes to rest without meeting 's'");
  EXPECT_EQ(j["rows"][1]["message"], "comes to rest: 's' is not met any more");
  const Ran r =
      saltus_line({"sweep", file, "a=3,0.1,1", "-n", "5", "--skip", "40", "-p", "b=0", "-o", path("out"), "--no-plot"});
  EXPECT_TRUE(contains(r.out, "early      3 of 3 ended early, 2 of them never met the section")) << r.out;
}

TEST_F(SweepCommand, AFewOutliersDoNotSquashTheDiagram) {
  // x at the strobe is a, but for one value of a where it is a thousand times larger
  const std::string file = model(
      "equations = \"x' = a + if(a > 0.994 and a < 0.996, 1000, 0) - x\"\n[parameters]\na = 1\n[initial]\nx = 0\n"
      "[section.s]\nevery = 50\n");
  saltus_line({"sweep", file, "a=0:1:201", "-n", "3", "--skip", "2", "-o", path("out")});
  std::ifstream in(path("out/plot.gp"));
  const std::string plot(std::istreambuf_iterator<char>(in), {});
  const size_t at = plot.find("set yrange [");
  ASSERT_NE(at, std::string::npos) << plot;
  double low = 0, high = 0;
  ASSERT_EQ(std::sscanf(plot.c_str() + at, "set yrange [%lf:%lf]", &low, &high), 2) << plot.substr(at, 60);
  EXPECT_LT(high, 2);
  EXPECT_GT(high, 1);
  EXPECT_TRUE(contains(plot, "3 points of x outside the picture, between 0 and 1001")) << plot;
}

TEST_F(SweepCommand, TakesRangesListsAndFiles) {
  EXPECT_EQ(values_of(quickly({decay(), "a=1:3:5"})), (std::vector<double>{1, 1.5, 2, 2.5, 3}));
  EXPECT_EQ(values_of(quickly({decay(), "a=3,1,1/4"})), (std::vector<double>{3, 1, 0.25}));
  EXPECT_EQ(values_of(quickly({decay(), "a=1:1:1"})), (std::vector<double>{1}));
  std::ofstream(path("values")) << "# a comment\n1 2\n2.5, 7\n\n1/8\n";
  EXPECT_EQ(values_of(quickly({decay(), "a=@" + path("values")})), (std::vector<double>{1, 2, 2.5, 7, 0.125}));
  EXPECT_EQ(values_of(quickly({decay(), "a=1:2"})).size(), 400u);
  const auto log = values_of(quickly({decay(), "a=1e-3:1e3:7", "--log"}));
  for (size_t i = 0; i < 7; ++i) EXPECT_NEAR(std::log10(log[i]), static_cast<double>(i) - 3, 1e-12);
}

TEST_F(SweepCommand, DrawsRandomValuesBySeed) {
  const auto first = values_of(quickly({decay(), "a=2:3", "--random", "50"}));
  ASSERT_EQ(first.size(), 50u);
  EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
  EXPECT_GE(first.front(), 2);
  EXPECT_LT(first.back(), 3);
  EXPECT_EQ(values_of(quickly({decay(), "a=2:3", "--random", "50"})), first);
  EXPECT_NE(values_of(quickly({decay(), "a=2:3", "--random", "50", "--seed", "2"})), first);
}

TEST_F(SweepCommand, WritesTablesAndAPicture) {
  const Ran r = saltus_line({"sweep", "dry_friction", "1/omega=2.5:3:6", "-n", "6", "--skip", "40", "-o", path("r")});
  EXPECT_EQ(r.status, 0) << r.talk;
  EXPECT_TRUE(contains(r.out, "periods    1 in 6")) << r.out;
  EXPECT_TRUE(contains(r.out, "sliding    2 in 6")) << r.out;
  EXPECT_TRUE(content(path("r/data.csv"))
                  .starts_with("1/omega,omega,start,period,slow,time,sliding,events,seen,end,message\n2.5,0.4,1,1,0,"));
  EXPECT_TRUE(content(path("r/points.csv")).starts_with("1/omega,y,v\n2.5,"));
  for (const char* file : {"plot.svg", "plot.gp", "run.toml"})
    EXPECT_TRUE(fs::exists(path("r/" + std::string(file)))) << file;
  EXPECT_FALSE(fs::exists(path("r/checkpoint")));
}

TEST_F(SweepCommand, GivesTheSameFilesWithAnyNumberOfThreads) {
  for (const char* threads : {"1", "2", "5"}) {
    saltus_line({"sweep", "impact_oscillator", "w=2.5:3:9", "--section", "strobe", "--starts", "3", "--box",
                 "u=1:5,v=-5:5", "-n", "20", "--skip", "50", "-j", threads, "-o", path(threads), "-q", "--no-plot"});
    EXPECT_EQ(content(path(threads) + "/data.csv"), content(path("1/data.csv")));
    EXPECT_EQ(content(path(threads) + "/points.csv"), content(path("1/points.csv")));
  }
  EXPECT_GT(content(path("1/points.csv")).size(), 10000u);
}

TEST_F(SweepCommand, OfTwoParametersMapsThePeriods) {
  const Ran r =
      saltus_line({"sweep", "buck", "Vin=22:34:5", "R=20:24:3", "-n", "24", "--settle", "3000", "-o", path("r")});
  EXPECT_EQ(r.status, 0) << r.talk;
  EXPECT_TRUE(content(path("r/data.csv")).starts_with("Vin,R,start,period,"));
  EXPECT_TRUE(fs::exists(path("r/plot.svg")));
  EXPECT_FALSE(fs::exists(path("r/points.csv")));
  const json j = ask({"buck", "Vin=22,28", "R=22,23", "-n", "24", "--settle", "3000"});
  EXPECT_EQ(j["parameter"], json({"Vin", "R"}));
  ASSERT_EQ(j["rows"].size(), 4u);
  EXPECT_EQ(j["rows"][1]["value"], json({28, 22}));
  EXPECT_EQ(j["rows"][0]["period"], 1);
  EXPECT_EQ(j["rows"][1]["period"], 2);
}

TEST_F(SweepCommand, TellsTheLargestExponent) {
  const json j = ask({"dry_friction", "1/omega=3", "-n", "12", "--skip", "60", "--colour", "exponent"});
  EXPECT_NEAR(j["rows"][0]["exponent"].get<double>(), std::log(0.35631659303098879) / (6 * M_PI), 1e-8);
  EXPECT_FALSE(ask({"dry_friction", "1/omega=3", "-n", "12", "--skip", "60"})["rows"][0].contains("exponent"));

  const std::string stops =
      model("equations = \"x' = -a*sign(x)\"\n[parameters]\na = 1\n[initial]\nx = 3.5\n[section.s]\nevery = \"1\"\n");
  EXPECT_EQ(quickly({stops, "a=1,2", "--colour", "exponent"})["rows"][1]["exponent"], "-inf");
}

TEST_F(SweepCommand, DrawsExponents) {
  const Ran one =
      saltus_line({"sweep", decay(), "a=1:3:5", "-n", "6", "--skip", "6", "--colour", "exponent", "-o", path("one")});
  EXPECT_EQ(one.status, 0) << one.talk;
  EXPECT_NE(one.out.find("exponents  largest from -1 to -1"), one.out.npos) << one.out;
  const std::string table = content(path("one/data.csv"));
  EXPECT_NE(table.find(",events,exponent,seen,"), table.npos) << table;
  EXPECT_TRUE(fs::exists(path("one/plot.svg")));
  const Ran two = saltus_line(
      {"sweep", decay(), "a=1:3:5", "b=1:2:3", "-n", "6", "--skip", "6", "--colour", "exponent", "-o", path("two")});
  EXPECT_EQ(two.status, 0) << two.talk;
  EXPECT_NE(content(path("two/plot.gp")).find("largest exponent"), std::string::npos);
  const Ran again = saltus_line({"again", path("two/run.toml"), "-o", path("three")});
  EXPECT_EQ(again.status, 0) << again.talk;
  EXPECT_EQ(content(path("two/data.csv")), content(path("three/data.csv")));
}

TEST_F(SweepCommand, StartsWhereItIsTold) {
  const std::string bistable =
      model("equations = \"x' = mu + x - x^3\"\n[parameters]\nmu = 0\n[initial]\nx = -1\n[section.s]\nevery = \"4\"\n");
  const auto ends = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{bistable, "mu=-0.2:0.2:3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::string signs;
    const json j = quickly(arguments);
    for (const json& row : j["rows"]) signs += row["points"][5]["x"].get<double>() > 0 ? '+' : '-';
    return signs;
  };
  EXPECT_EQ(ends({}), "---");
  EXPECT_EQ(ends({"-x", "x=1"}), "+++");
  EXPECT_EQ(ends({"--start", "1"}), "+++");
  EXPECT_EQ(ends({"--start", "-1", "--start", "1"}), "-+-+-+");
  std::ofstream(path("starts")) << "2\n-2\n0.5\n";
  EXPECT_EQ(ends({"--start", "@" + path("starts")}), "+-++-++-+");
  EXPECT_EQ(ends({"--start", "random", "--box", "x=0.3:2"}), "+++");
  const std::string several = ends({"--starts", "8", "--box", "x=-2:2"});
  EXPECT_EQ(several.size(), 24u);
  EXPECT_NE(several.find('+'), several.npos);
  EXPECT_NE(several.find('-'), several.npos);
}

TEST_F(SweepCommand, CountsOnlyTheComponentsThatAreAskedFor) {
  // phi turns and turns; what comes back is w.
  const std::string turning = model(
      "equations = \"\"\"\nphi' = w\nw' = a - w\n\"\"\"\n[parameters]\na = 1\n[initial]\nphi = 0\nw = "
      "0\n[section.s]\nevery = \"5\"\n");
  EXPECT_EQ(quickly({turning, "a=1,2"})["rows"][0]["period"], 0);
  EXPECT_EQ(quickly({turning, "a=1,2", "--period-tolerance", "phi=inf"})["rows"][0]["period"], 1);
  EXPECT_EQ(quickly({turning, "a=1,2", "--period-tolerance", "1e9"})["rows"][0]["period"], 1);
}

TEST_F(SweepCommand, IsRepeatedBitForBit) {
  std::ofstream(path("values")) << "2.5 2.6 2.7\n";
  saltus_line({"sweep",
               "impact_oscillator",
               "w=@" + path("values"),
               "--section",
               "strobe",
               "--starts",
               "2",
               "--box",
               "u=1:5",
               "--continue",
               "both",
               "-n",
               "9",
               "--skip",
               "20",
               "--seed",
               "7",
               "-o",
               path("first"),
               "-q"});
  fs::remove(path("values"));
  const Ran r = saltus_line({"again", path("first/run.toml"), "-o", path("second"), "-q"});
  EXPECT_EQ(r.status, 0) << r.talk;
  for (const char* file : {"data.csv", "points.csv", "run.toml", "plot.svg"})
    EXPECT_EQ(content(path("first/" + std::string(file))), content(path("second/" + std::string(file)))) << file;
}

TEST_F(SweepCommand, ComplainsUsefully) {
  const auto complaint = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "sweep");
    const Ran r = saltus_line(arguments);
    EXPECT_EQ(r.status, 2);
    return r.talk;
  };
  EXPECT_TRUE(contains(complaint({"dry_friction"}), "nothing is varied"));
  EXPECT_TRUE(contains(complaint({"dry_friction", "omga=1:2:3"}), "did you mean 'omega'"));
  EXPECT_TRUE(contains(complaint({"dry_friction", "omega=1:2:0"}), "no number of values"));
  EXPECT_TRUE(contains(complaint({"dry_friction", "omega=1:2:3:4"}), "too many colons"));
  EXPECT_TRUE(contains(complaint({"dry_friction", "omega=0:2:3", "--log"}), "both above zero"));
  EXPECT_TRUE(contains(complaint({"dry_friction", "F*omega=1:2:3"}), "several parameters"));
  EXPECT_TRUE(contains(complaint({"dry_friction", "(omega-1)^2=1:2:3"}), "vary omega itself"));
  EXPECT_TRUE(contains(complaint({"dry_friction", "omega=1:2:3", "omega=1:2:3"}), "varied twice"));
  EXPECT_TRUE(contains(complaint({"dry_friction", "omega=1:2:3", "--starts", "3"}), "--box y=-2:2"));
  EXPECT_TRUE(contains(complaint({"dry_friction", "omega=1:2:3", "--box", "w=1:2"}), "no state 'w'"));
  EXPECT_TRUE(contains(complaint({"dry_friction", "omega=1:2:3", "--start", "1"}), "y,v"));
  EXPECT_TRUE(contains(complaint({"dry_friction", "omega=1:2:3", "--continue", "upp"}), "did you mean 'up'"));
  EXPECT_TRUE(contains(complaint({"dry_friction", "omega=1:2:3", "-n", "1"}), "-n 3 to 10000000"));
  EXPECT_TRUE(contains(complaint({"dry_friction", "omega=1:2:3", "--colour", "exponent", "--engine", "step"}),
                       "exponents come from the engine 'event'"));
  EXPECT_TRUE(contains(complaint({"dry_friction", "omega=1:2:3", "--colour", "exponents"}), "did you mean 'exponent'"));
  EXPECT_TRUE(contains(complaint({"impact_oscillator", "w=1:2:3"}), "sections: strobe, hit"));
  EXPECT_EQ(saltus_line({"sweep", "dry_friction", "omega=@/nowhere"}).status, 4);
}

// ---- the program itself, killed and multiplied
// -------------------------------------------------------------------------

class SweepProgram : public Scratch {
 protected:
  static pid_t start(std::vector<std::string> arguments) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    std::vector<char*> list;
    for (std::string& a : arguments) list.push_back(a.data());
    list.push_back(nullptr);
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    ::execvp(list[0], list.data());
    ::_exit(127);
  }
  static int wait_for(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  static void rest(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }
  static std::vector<std::string> line(const std::string& folder) {
    return {SALTUS_BINARY, "sweep",    "dry_friction", "1/omega=0.3:7:60", "-n",
            "20",          "--skip",   "400",          "--continue",       "both",
            "-j",          "2",        "-q",           "--no-plot",        "-o",
            folder,        "--colour", "exponent"};
  }
  void expect_same(const std::string& folder) const {
    for (const char* file : {"/data.csv", "/points.csv", "/run.toml"})
      EXPECT_TRUE(content(folder + file) == content(path("whole") + file)) << folder << file;
  }
};

TEST_F(SweepProgram, KilledAgainAndAgainEndsWithTheSameFiles) {
  ASSERT_EQ(wait_for(start(line(path("whole")))), 0);
  pid_t child = start(line(path("torn")));
  for (int waited = 0; waited < 30'000 && !fs::exists(path("torn/run.toml")); waited += 5) rest(5);
  int kills = 0;
  for (; kills < 6; ++kills) {
    rest(40 + 25 * kills);
    ::kill(child, SIGKILL);
    if (wait_for(child) == 0) break;
    ASSERT_TRUE(fs::exists(path("torn/run.toml"))) << kills;
    EXPECT_FALSE(fs::exists(path("torn/data.csv")));
    child = start({SALTUS_BINARY, "again", path("torn/run.toml"), "-q"});
  }
  EXPECT_GE(kills, 2);
  if (kills == 6) {
    EXPECT_EQ(wait_for(child), 0);
  }
  expect_same(path("torn"));
  EXPECT_FALSE(fs::exists(path("torn/checkpoint")));
}

TEST_F(SweepProgram, InterruptedKeepsItsRowsAndIsFinishedByAgain) {
  ASSERT_EQ(wait_for(start(line(path("whole")))), 0);
  const pid_t child = start(line(path("torn")));
  while (!fs::exists(path("torn/checkpoint")) || fs::file_size(path("torn/checkpoint")) < 8000) rest(5);
  ::kill(child, SIGINT);
  EXPECT_EQ(wait_for(child), 130);
  const std::string rows = content(path("torn/data.csv"));
  EXPECT_GT(std::count(rows.begin(), rows.end(), '\n'), 5);
  EXPECT_LT(std::count(rows.begin(), rows.end(), '\n'), 121);
  EXPECT_EQ(wait_for(start({SALTUS_BINARY, "again", path("torn/run.toml"), "-q"})), 0);
  expect_same(path("torn"));
}

TEST_F(SweepProgram, LeavesAnUnfinishedSweepOfAnotherKindAlone) {
  const pid_t child = start(line(path("torn")));
  while (!fs::exists(path("torn/checkpoint")) || fs::file_size(path("torn/checkpoint")) < 8000) rest(5);
  ::kill(child, SIGKILL);
  wait_for(child);
  const std::string record = content(path("torn/run.toml")), kept = content(path("torn/checkpoint"));
  const Ran r = saltus_line({"sweep", "dry_friction", "omega=1:2:3", "-o", path("torn")});
  EXPECT_EQ(r.status, 4);
  EXPECT_TRUE(contains(r.talk, "unfinished computation")) << r.talk;
  EXPECT_EQ(content(path("torn/run.toml")), record);
  EXPECT_TRUE(content(path("torn/checkpoint")) == kept);
}

#ifdef SALTUS_MPIRUN
TEST_F(SweepProgram, GivesTheSameFilesOnSeveralRanks) {
  ASSERT_EQ(wait_for(start(line(path("whole")))), 0);
  for (const char* count : {"2", "4"}) {
    std::vector<std::string> arguments{SALTUS_MPIRUN,
                                       "--allow-run-as-root",
                                       "--oversubscribe",
                                       "-x",
                                       "ASAN_OPTIONS=detect_leaks=0",  // OpenMPI has some
                                       "-n",
                                       count};
    for (const std::string& a : line(path(count))) arguments.push_back(a);
    EXPECT_EQ(wait_for(start(arguments)), 0);
    expect_same(path(count));
  }
}
#endif

}  // namespace
}  // namespace saltus
