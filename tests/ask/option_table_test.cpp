#include "ask/option_table.hpp"

#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace saltus {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  return {std::istream_iterator<std::string>(in), {}};
}

TEST(OptionTable, DescribesEachFlagOfACommandOnce) {
  const std::set<std::string> commands{"check",     "run",   "section",  "sweep", "basins", "orbit", "follow",
                                       "exponents", "phase", "response", "fit",   "again",  "studio"};
  std::map<std::string, std::set<std::string>> flags;
  for (const OptionFact& o : option_table()) {
    EXPECT_FALSE(o.name.empty());
    for (const std::string& command : words(o.commands)) {
      EXPECT_TRUE(commands.count(command)) << command;
      EXPECT_TRUE(flags[command].insert(std::string(o.flags)).second) << command << " " << o.flags;
    }
  }
}

TEST(OptionTable, SaysWhatACommandTakes) {
  ASSERT_NE(find_option("settle", "sweep"), nullptr);
  EXPECT_EQ(find_option("settle", "run"), nullptr);
  EXPECT_EQ(find_option("points", "section")->flag(), "-n");
  EXPECT_EQ(find_option("vary", "sweep")->flag(), "--vary");
  EXPECT_EQ(find_option("from", "run")->words(), "start time (to show a later part of a run: --window) (0)");
  EXPECT_EQ(commands_with("--settle"), "sweep");
  EXPECT_EQ(commands_with("--engine"), "run, section, sweep, basins");
  EXPECT_EQ(commands_with("--none-such"), "");
}

TEST(OptionTable, KnowsRanges) {
  EXPECT_NO_THROW(check_range("tolerance", 0.1));
  EXPECT_THROW(check_range("tolerance", 0.2), Error);
  EXPECT_THROW(check_range("theta", 0.4), Error);
  EXPECT_THROW(check_range("tolerance", std::nan("")), Error);
  EXPECT_NO_THROW(check_range("until", -1e300));
}

}  // namespace
}  // namespace saltus
