// What happens to folders and processes when things go wrong: nobody's results are lost, and every end has a message.
#include "app/result_folder.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.hpp"

namespace saltus {
namespace {

namespace fs = std::filesystem;

class Faults : public Scratch {
 protected:
  static std::string read(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  static std::vector<std::string> names(const fs::path& folder) {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  /// The program itself, in the scratch folder, with what it says in out.txt and talk.txt.
  pid_t start(
      std::vector<std::string> arguments, const std::function<void()>& prepare = [] {}) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    if (::chdir(folder_.c_str()) != 0) ::_exit(99);
    for (const auto& [name, fd] : {std::pair{"out.txt", 1}, std::pair{"talk.txt", 2}})
      ::dup2(::open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666), fd);
    prepare();
    arguments.insert(arguments.begin(), SALTUS_BINARY);
    std::vector<char*> argv;
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(98);
  }
  static int wait_for(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
};

const std::vector<std::vector<std::string>> every_command{
    {"run", "dry_friction", "--store", "pieces"},
    {"run", "dry_friction", "--engine", "both", "--dt", "0.01"},
    {"run", "dry_friction", "--format", "h5"},
    {"section", "dry_friction", "-n", "5"},
    {"sweep", "dry_friction", "omega=0.5:1:2", "-n", "5", "--skip", "5"},
    {"basins", "impact_oscillator", "--section", "strobe", "u=0:5:3", "v=-5:5:3"},
};

TEST_F(Faults, ResultsAreReplacedOnlyByForceAndThenWhole) {
  ASSERT_EQ(saltus_line({"run", "dry_friction", "--store", "pieces", "-q", "-o", path("r")}).status, 0);
  const std::string before = read(path("r/data.csv"));
  for (std::vector<std::string> line : every_command) {
    line.insert(line.end(), {"-q", "-o", path("r")});
    const Ran r = saltus_line(line);
    EXPECT_EQ(r.status, 4) << line[0];
    EXPECT_TRUE(contains(r.talk, "holds results")) << r.talk;
    EXPECT_TRUE(contains(r.talk, "--force")) << r.talk;
  }
  EXPECT_EQ(read(path("r/data.csv")), before);
  std::ofstream(path("r/notes.txt")) << "mine";
  ASSERT_EQ(saltus_line({"section", "dry_friction", "-n", "5", "-q", "--no-plot", "-o", path("r"), "--force"}).status,
            0);
  EXPECT_EQ(names(path("r")), (std::vector<std::string>{"data.csv", "notes.txt", "run.toml"}));
  EXPECT_EQ(saltus_line({"run", "dry_friction", "--force"}).status, 2) << "there is nothing to replace";
}

TEST_F(Faults, EveryFileThatACommandWritesIsKnownAsAResult) {
  int n = 0;
  for (std::vector<std::string> line : every_command) {
    const std::string folder = path(std::to_string(n++));
    line.insert(line.end(), {"-q", "-o", folder});
    ASSERT_EQ(saltus_line(line).status, 0) << line[0];
    for (const std::string& name : names(folder)) EXPECT_TRUE(is_result_file(name)) << line[0] << ": " << name;
  }
}

TEST_F(Faults, AnUnfinishedComputationIsLeftToAgainEvenByForce) {
  fs::create_directory(path("r"));
  std::ofstream(path("r/checkpoint")) << "of somebody";
  std::ofstream(path("r/run.toml")) << "theirs";
  for (std::vector<std::string> line : every_command) {
    line.insert(line.end(), {"-q", "--force", "-o", path("r")});
    const Ran r = saltus_line(line);
    EXPECT_EQ(r.status, 4) << line[0];
    EXPECT_TRUE(contains(r.talk, "unfinished")) << r.talk;
    EXPECT_TRUE(contains(r.talk, "saltus again")) << r.talk;
  }
  EXPECT_EQ(names(path("r")), (std::vector<std::string>{"checkpoint", "run.toml"}));
  EXPECT_EQ(read(path("r/run.toml")), "theirs");
}

TEST_F(Faults, AFolderInUseIsLeftAlone) {
  fs::create_directory(path("r"));
  const int other = ::open(path("r").c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
  for (std::vector<std::string> line : every_command) {
    line.insert(line.end(), {"-q", "--force", "-o", path("r")});
    const Ran r = saltus_line(line);
    EXPECT_EQ(r.status, 4) << line[0];
    EXPECT_TRUE(contains(r.talk, "another saltus")) << r.talk;
  }
  EXPECT_TRUE(fs::is_empty(path("r")));
  ::close(other);
  EXPECT_EQ(saltus_line({"run", "dry_friction", "-q", "--no-plot", "-o", path("r")}).status, 0);
}

TEST_F(Faults, AgainRemovesWhatAKillLeft) {
  const pid_t child = start({"sweep", "dry_friction", "omega=0.15:2:100000", "-q", "--no-plot", "-o", "r"});
  while (!fs::exists(path("r/checkpoint"))) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(child, SIGKILL);
  EXPECT_EQ(wait_for(child), -SIGKILL);
  std::ofstream(path("r/.saltus-1-0.part")) << "half a table";
  fs::create_directory(path("r/.saltus-abcdef"));
  // so many values take too long for a test: what counts is that `again` takes the folder and cleans it
  const pid_t second = start({"again", "r/run.toml", "-q"});
  while (fs::exists(path("r/.saltus-1-0.part"))) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::ofstream(path("r/.saltus-2-0.part")) << "by a drawing program that did not notice";
  ::kill(second, SIGTERM);
  EXPECT_EQ(wait_for(second), 130);
  EXPECT_FALSE(fs::exists(path("r/.saltus-abcdef")));
  EXPECT_FALSE(fs::exists(path("r/.saltus-2-0.part")));
  EXPECT_TRUE(fs::exists(path("r/checkpoint")));
  EXPECT_TRUE(fs::exists(path("r/data.csv")));
}

/// A run that is never over: a million points of a section, over and over.
const std::vector<std::string> endless_sweep{"sweep",  "dry_friction", "omega=1:2:2", "-n", "3",
                                             "--skip", "10000000000",  "--no-plot",   "-o", "r"};
const std::vector<std::string> endless_basins{
    "basins",     "dry_friction",       "y=-1:1:2", "v=-1:1:2",  "--method", "direct", "-n",
    "1000000000", "--period-tolerance", "1e-300",   "--no-plot", "-o",       "r"};

TEST_F(Faults, SignalsEndLongItemsWithinASecondAndTablesAreWritten) {
  for (const auto& line : {endless_sweep, endless_basins}) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      fs::remove_all(path("r"));
      const pid_t child = start(line);
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
      const auto asked = std::chrono::steady_clock::now();
      ::kill(child, signal);
      EXPECT_EQ(wait_for(child), 130) << line[0] << " " << read(path("talk.txt"));
      EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(2)) << line[0];
      EXPECT_TRUE(fs::exists(path("r/data.csv"))) << line[0];
      EXPECT_TRUE(contains(read(path("talk.txt")), "saltus again r/run.toml")) << read(path("talk.txt"));
    }
  }
}

TEST_F(Faults, SignalsEndTheStudioInOrder) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    for (const char* said : {"out.txt", "talk.txt"}) fs::remove(path(said));
    const pid_t child = start({"studio", "--no-browser", "--port", "0"});
    for (int i = 0; i < 500 && !contains(read(path("out.txt")) + read(path("talk.txt")), "http"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ::kill(child, signal);
    EXPECT_EQ(wait_for(child), 0) << signal;
  }
}

TEST_F(Faults, NohupIsRespected) {
  const pid_t child =
      start({"run", "dry_friction", "--until", "50000", "--no-plot", "-o", "r"}, [] { std::signal(SIGHUP, SIG_IGN); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ::kill(child, SIGHUP);
  EXPECT_EQ(wait_for(child), 0);
}

TEST_F(Faults, AFullDiskCostsTheFilesAndNotTheSummary) {
  const auto nearly_full = [] {
    const rlimit limit{2000, 2000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  };
  EXPECT_EQ(wait_for(start({"run", "dry_friction", "-o", "r"}, nearly_full)), 4);
  EXPECT_TRUE(contains(read(path("out.txt")), "end        t = 60")) << read(path("out.txt"));
  EXPECT_TRUE(contains(read(path("talk.txt")), "data.csv")) << read(path("talk.txt"));
  EXPECT_TRUE(fs::exists(path("r/run.toml")));
  EXPECT_FALSE(fs::exists(path("r/data.csv")));

  const auto full = [] {
    const rlimit limit{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(97);
    ::dup2(ends[1], 1), ::dup2(ends[1], 2);  // files cannot hold what is said
  };
  EXPECT_EQ(wait_for(start({"run", "dry_friction", "-o", "f"}, full)), 4);
  // Without run.toml nobody could go on: no checkpoint without it.
  for (const auto& [line, folder] : {std::pair{endless_sweep, "s"}, std::pair{endless_basins, "b"}}) {
    std::vector<std::string> there(line.begin(), line.end() - 1);
    there.push_back(folder);
    EXPECT_EQ(wait_for(start(there, full)), 4);
    EXPECT_TRUE(fs::is_empty(path(folder))) << line[0];
  }
}

TEST_F(Faults, WhatIsSaidGoesIntoNoFile) {
  const auto closed = [] {
    for (int fd = 0; fd <= 2; ++fd) ::close(fd);
  };
  const pid_t child =
      start({"follow", "duffing", "gamma=0.1:0.3", "--step", "1e-5", "--points", "1000000", "-o", "r"}, closed);
  while (!fs::exists(path("r/checkpoint"))) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::seconds(1));  // the head of the table is said
  ::kill(child, SIGKILL);
  EXPECT_EQ(wait_for(child), -SIGKILL);
  EXPECT_FALSE(contains(read(path("r/checkpoint")), "largest multiplier"));
  EXPECT_EQ(wait_for(start({"run", "dry_friction", "-o", "s"}, closed)), 4) << "nobody has seen the summary";
}

TEST_F(Faults, AStandardInputThatCannotBeReadOrDoesNotEndIsFileTrouble) {
  EXPECT_EQ(wait_for(start({"check", "-"}, [] { ::close(0); })), 4) << read(path("talk.txt"));
  EXPECT_TRUE(contains(read(path("talk.txt")), "cannot read 'standard input'")) << read(path("talk.txt"));
  const auto from = [](const char* file) { return [file] { ::dup2(::open(file, O_RDONLY), 0); }; };
  EXPECT_EQ(wait_for(start({"check", "-"}, from("/"))), 4) << read(path("talk.txt"));
  EXPECT_EQ(wait_for(start({"check", "-"}, from("/dev/zero"))), 4) << read(path("talk.txt"));
  EXPECT_TRUE(contains(read(path("talk.txt")), "256 MB")) << read(path("talk.txt"));
}

TEST_F(Faults, JsonIsPrintedEvenIfThePictureCannotBe) {
  const Ran r = saltus_line({"run", "dry_friction", "--json", "--plot", path("nowhere/p.svg")});
  EXPECT_EQ(r.status, 4);
  EXPECT_TRUE(r.out.starts_with("{")) << r.out;
  EXPECT_TRUE(contains(r.talk, "nowhere")) << r.talk;
}

#ifndef __SANITIZE_ADDRESS__  // which needs the whole address space, and ends the program itself
TEST_F(Faults, WithoutMemoryThereIsAMessage) {
  const auto poor = [] {
    const rlimit limit{300'000'000, 300'000'000};
    ::setrlimit(RLIMIT_AS, &limit);
  };
  EXPECT_EQ(wait_for(start({"sweep", "dry_friction", "omega=0.1:1:100000000", "-j", "1"}, poor)), 1);
  EXPECT_TRUE(contains(read(path("talk.txt")), "not enough memory")) << read(path("talk.txt"));
  // More threads than there is memory for their stacks: fewer do it, or it is said.
  for (int i = 0; i < 5; ++i) {
    const int status =
        wait_for(start({"sweep", "dry_friction", "omega=0.5:1:40", "-n", "5", "-j", "1000", "--json"}, poor));
    EXPECT_TRUE(status == 0 || status == 1) << status << read(path("talk.txt"));
    EXPECT_EQ(status == 1, contains(read(path("talk.txt")), "not enough memory")) << read(path("talk.txt"));
  }
}
#endif

TEST_F(Faults, AWorkingFolderThatIsGoneIsFileTrouble) {
  fs::create_directory(path("gone"));
  const int status = wait_for(start({"run", "dry_friction"}, [&] {
    if (::chdir("gone") != 0 || ::rmdir("../gone") != 0) ::_exit(97);
  }));
  EXPECT_EQ(status, 4) << read(path("talk.txt"));
}

TEST_F(Faults, AFileThatCannotBeReadIsNoFolderToWriteTo) {
  const auto says = [&](const std::vector<std::string>& line, const std::string& what, const std::string& remedy) {
    const Ran r = saltus_line(line);
    EXPECT_EQ(r.status, 4) << r.talk;
    EXPECT_TRUE(contains(r.talk, what)) << r.talk;
    EXPECT_TRUE(contains(r.talk, remedy)) << r.talk;
  };
  const std::string missing = "omega=@" + path("missing.txt"), folder = "omega=@" + path("");
  says({"sweep", "dry_friction", missing}, "No such file", "check the name");
  says({"sweep", "dry_friction", folder}, "Is a directory", "give a file in it");
  std::ofstream(path("theirs.toml")) << "equations = \"x' = 1\"";
  fs::permissions(path("theirs.toml"), fs::perms::none);
  if (::access(path("theirs.toml").c_str(), R_OK) == 0) return;  // root may read everything
  says({"run", path("theirs.toml")}, "Permission denied", "may not read it");
}

TEST_F(Faults, APastThatCallsItselfIsAMistake) {
  std::ofstream(path("run.toml")) << "saltus = \"0.1.0\"\ncommand = \"again\"\nname = \"x\"\nmodel = \"\"\n[options]\n";
  const Ran r = saltus_line({"again", path("run.toml")});
  EXPECT_EQ(r.status, 2);
  EXPECT_TRUE(contains(r.talk, "repeats itself")) << r.talk;
}

TEST_F(Faults, ValuesWhoseClockIsNoTimeAreRowsThatEndBadly) {
  const Ran r =
      saltus_line({"sweep", "dry_friction", "omega=-1:1:5", "-n", "5", "--skip", "5", "--no-plot", "-o", path("r")});
  EXPECT_EQ(r.status, 0);
  const std::string data = read(path("r/data.csv"));
  EXPECT_TRUE(contains(data, "undefined,the interval of the section 'strobe' is -")) << data;
  EXPECT_TRUE(contains(data, "0.5,1,")) << data;
  EXPECT_TRUE(contains(data, ",count,")) << data;
}

TEST_F(Faults, WhatWouldNeedTooMuchMemoryIsSaidBefore) {
  const auto refuses = [&](const std::vector<std::string>& line, int status, const std::string& part) {
    const Ran r = saltus_line(line);
    EXPECT_EQ(r.status, status) << line[0] << r.talk;
    EXPECT_TRUE(contains(r.talk, part)) << r.talk;
  };
  refuses({"sweep", "dry_friction", "omega=@/dev/zero"}, 2, "line 1 is no text of numbers");
  refuses({"section", "dry_friction", "-n", "100000000"}, 2, "too much memory");
  refuses({"section", "dry_friction", "-n", "1000000000"}, 2, "give -n 1 to 100000000");
  refuses({"sweep", "dry_friction", "omega=1:2:5", "-n", "1000000000"}, 2, "too many points");
  refuses({"orbit", "duffing", "--starts", "2000000000", "--box", "x=-1:1"}, 2, "too many starts");
  refuses({"sweep", "dry_friction", "omega=1:2:1000", "-n", "1000000"}, 2, "numbers");
  refuses({"run", "dry_friction", "--engine", "both", "--dt", "0.01", "--sample", "1e-9"}, 2, "rows");
  const std::string tiny =
      model("equations = \"x' = 1\"\n[initial]\nx = 0\n[section.s]\nevery = 1e-300\n[run]\nuntil = 1");
  refuses({"run", tiny, "--json"}, 3, "1e+300 times");
}

TEST_F(Faults, ACheckpointOfAnotherVersionNamesIt) {
  const std::vector<std::string> line{"sweep", "dry_friction", "omega=0.5:1:2", "-n", "5", "-q", "-o", path("r")};
  ASSERT_EQ(saltus_line(line).status, 0);
  std::ofstream(path("r/checkpoint"), std::ios::binary) << "saltus checkpoint 7\n" << std::string(100, 'x');
  const Ran r = saltus_line({"again", path("r/run.toml")});
  EXPECT_EQ(r.status, 4);
  EXPECT_TRUE(contains(r.talk, "version 7")) << r.talk;
}

TEST_F(Faults, AJumpToNoNumberIsToldWithoutASign) {
  const Ran r = saltus_line({"run",
                             model("equations = \"x' = 1\"\n[initial]\nx = 0\n[jump.a]\non = \"x - 1\"\n"
                                   "set = { x = \"log(-x)\" }\n[run]\nuntil = 3"),
                             "-o", path("r")});
  EXPECT_EQ(r.status, 1);
  EXPECT_TRUE(contains(r.out, "t = 1, x = nan")) << r.out;
}

TEST_F(Faults, AnEmptyFileSaysSo) {
  std::ofstream(path("empty.toml")) << "";
  for (const char* command : {"check", "run", "section"}) {
    const Ran r = saltus_line({command, path("empty.toml")});
    EXPECT_EQ(r.status, 3) << command;
    EXPECT_TRUE(contains(r.talk, "empty")) << r.talk;
  }
}

TEST_F(Faults, AByteOrderMarkShiftsNoPlace) {
  const std::string text = "equations = \"x' = yy\"\n[initial]\nx = 0\n";
  const Ran without = saltus_line({"check", model(text)});
  const Ran with = saltus_line({"check", model("\xEF\xBB\xBF" + text)});
  EXPECT_TRUE(contains(without.talk, "model.toml:1:19")) << without.talk;
  EXPECT_EQ(with.talk, without.talk);
}

TEST_F(Faults, AnyNameGivesAPicture) {
  const std::string file = model(
      "name = \"a \\\"b\\\" 'c' ]]> & <d>\\n second {x} ^_@ %d $1 \\\\ \\u0007 \\u00e9\"\n"
      "equations = \"x' = v\\nv' = -x - 0.3*sign(v)\"\n[initial]\nx = 1\nv = 0\n[run]\nuntil = 5\n");
  const std::string strange = path("new\nline ]]>& \"'.toml");
  fs::copy_file(file, strange);
  for (const std::string& name : {file, strange}) {
    fs::remove_all(path("r"));
    const Ran r = saltus_line({"run", name, "-o", path("r")});
    EXPECT_EQ(r.status, 0) << r.talk;
    EXPECT_EQ(r.talk, "");
    ASSERT_TRUE(fs::exists(path("r/plot.svg")));
    // rsvg reads XML as strictly as any
    const std::string command = "rsvg-convert '" + path("r/plot.svg") + "' > /dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
}

TEST_F(Faults, ARestitutionAboveOneIsNoted) {
  const std::string file = model(
      "equations = \"q' = v\\nv' = -1 + N\"\n[parameters]\nr = 0.5\n[initial]\nq = 1\nv = 0\n"
      "[constraint.N]\ngap = \"q\"\nrestitution = \"r\"\n[run]\nuntil = 2\n");
  const Ran more = saltus_line({"run", file, "-p", "r=1.5", "-o", path("more"), "--no-plot"});
  EXPECT_TRUE(contains(more.out, "restitution of 'N' is 1.5")) << more.out;
  EXPECT_FALSE(contains(saltus_line({"run", file, "-o", path("less"), "--no-plot"}).out, "restitution"));
  EXPECT_EQ(saltus_line({"run", file, "-p", "r=-0.1", "-o", path("bad")}).status, 3);
  EXPECT_FALSE(fs::exists(path("bad")));
}

TEST_F(Faults, AMillionBracketsAreAnAnswer) {
  const std::string many(1'000'000, '[');
  std::ofstream(path("deep.toml")) << many;
  std::ofstream(path("deep_run.toml")) << "saltus = \"0.1.0\"\nx = " << many;
  std::ofstream(path("deep_equation.toml")) << "equations = \"x' = " << std::string(1'000'000, '(') << "\"\n";
  for (const char* file : {"deep.toml", "deep_run.toml", "deep_equation.toml"}) {
    for (const char* command : {"check", "run", "again"}) {
      const int status = saltus_line({command, path(file)}).status;
      EXPECT_TRUE(status == 2 || status == 3) << command << " " << file << " " << status;
    }
  }
  EXPECT_EQ(saltus_line({"sweep", "dry_friction", "omega=@" + path("deep.toml")}).status, 2);
}

TEST_F(Faults, ThreadsAreOneOrMore) {
  for (const char* text : {"0", "", "-1", "two", "1x", "99999999999"}) {
    const Ran r = saltus_line({"sweep", "dry_friction", "omega=1:2:3", "-j", text});
    EXPECT_EQ(r.status, 2) << text;
    EXPECT_TRUE(contains(r.talk, "threads")) << r.talk;
  }
}

}  // namespace
}  // namespace saltus
