// Completion by the commands the program really has, through the door that scripts of shells use.
#include "app/completion.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "app/command_line.hpp"
#include "scratch.hpp"

namespace saltus {
namespace {

/// Words offered for the last of those typed.
std::vector<std::string> offered(std::vector<std::string> words) {
  words.insert(words.begin(), {"completion", "--of"});
  std::ostringstream out, talk;
  EXPECT_EQ(command_line(words, out, talk, {}), 0) << talk.str();
  std::vector<std::string> found;
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) found.push_back(line.substr(0, line.find('\t')));
  return found;
}

using Words = std::vector<std::string>;

TEST(Completion, KnowsCommandsOptionsAndTheirValues) {
  EXPECT_EQ(offered({"ru"}), Words{"run"});
  EXPECT_EQ(offered({"help", "exa"}), Words{"examples"});
  EXPECT_EQ(offered({"run", "m.toml", "--unt"}), Words{"--until"});
  EXPECT_EQ(offered({"basins", "m.toml", "--method", ""}), (Words{"cells", "direct"}));
  EXPECT_EQ(offered({"check", "m.toml", "--unt"}), Words{}) << "check has no such option";
  EXPECT_EQ(offered({"nonsense", ""}), Words{});
}

TEST(Completion, KnowsModelsAndWhatTheyHave) {
  EXPECT_EQ(offered({"run", "dry_f"}), Words{"dry_friction"});
  EXPECT_EQ(offered({"run", "dry_friction", "-p", ""}), (Words{"F=", "omega="}));
  EXPECT_EQ(offered({"run", "dry_friction", "--until", "3", "-x", ""}), (Words{"v=", "y="}));
  EXPECT_EQ(offered({"sweep", "dry_friction", "o"}), Words{"omega="});
  EXPECT_EQ(offered({"basins", "dry_friction", "y=-1:1:9", ""}), (Words{"v=", "y="}));
  EXPECT_EQ(offered({"section", "-n", "5", "dry_friction", "--section", ""}), Words{"strobe"});
  EXPECT_EQ(offered({"run", "no_such_model", "-p", ""}), Words{});
}

TEST(Completion, EveryOptionOfTheHelpPageIsOfferedAndInTheManual) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "saltus_pages";
  std::filesystem::create_directories(folder);
  std::ostringstream out, talk, help;
  ASSERT_EQ(command_line({"completion", "--pages", folder.string()}, out, talk, {}), 0) << talk.str();
  ASSERT_EQ(command_line({"help", "sweep"}, help, talk, {}), 0);
  std::stringstream page;
  page << std::ifstream(folder / "saltus-sweep.1").rdbuf();
  const Words words = offered({"sweep", "dry_friction", "-"}), longer = offered({"sweep", "dry_friction", "--"});
  std::istringstream lines(help.str());
  int seen = 0;
  for (std::string word; lines >> word;) {
    if (!word.starts_with("--") || word.size() < 4 || word.find_first_of(".,;:)") != std::string::npos) continue;
    ++seen;
    EXPECT_TRUE(std::find(longer.begin(), longer.end(), word) != longer.end()) << word;
    std::string escaped;
    for (const char c : word) escaped += c == '-' ? "\\-" : std::string(1, c);
    EXPECT_NE(page.str().find(escaped), std::string::npos) << word;
  }
  EXPECT_GT(seen, 20);
  if (std::system("command -v man groff > /dev/null") == 0) {
    const std::string format =
        "for f in '" + folder.string() + "'/*.1; do groff -man -ww -Tutf8 \"$f\" 2>&1 > /dev/null; done | grep .";
    EXPECT_NE(std::system(format.c_str()), 0) << "a manual page has warnings";
  }
}

TEST(Completion, BashReadsItsScript) {
  const std::string program = SALTUS_BINARY, folder = program.substr(0, program.rfind('/'));
  const std::string script = "PATH='" + folder +
                             "':$PATH; source <(saltus completion bash); COMP_LINE='saltus run dry_friction -p om'; "
                             "COMP_POINT=${#COMP_LINE}; _saltus; [ \"${COMPREPLY[*]}\" = omega= ]";
  std::ofstream(testing::TempDir() + "complete.sh") << script;
  EXPECT_EQ(std::system(("bash '" + testing::TempDir() + "complete.sh'").c_str()), 0);
}

TEST(Completion, UnknownShellsAreRefused) {
  std::ostringstream out, talk;
  EXPECT_EQ(command_line({"completion", "tcsh"}, out, talk, {}), 2);
  EXPECT_NE(talk.str().find("bash, zsh and fish"), std::string::npos) << talk.str();
}

}  // namespace
}  // namespace saltus
