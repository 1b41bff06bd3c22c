// Which switches one tape serves.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/program.hpp"
#include "model/read.hpp"

namespace saltus {
namespace {

/// So many blocks with this friction, {0} for their number.
Program blocks(int n, const std::string& friction) {
  std::string equations, initial;
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("  v{0}' = sin(t + {0}) - ", i) + fmt::format(fmt::runtime(friction), i) + "\n";
    initial += fmt::format("v{} = 1\n", i);
  }
  return Program(read_model_text("equations = \"\"\"\n" + equations + "\"\"\"\n[initial]\n" + initial, "blocks"));
}

TEST(Program, OpensItsTapeToManySwitchesThatAreLinearOnTheirSurfaces) {
  for (const char* friction : {"sign(v{0})/(1 + abs(v{0}))", "exp(-abs(v{0} - 2))*sign(v{0} - 2)",
                               "(1 + 1/(1 + 2*abs(v{0})))*sign(2*v{0}, 1.5)"}) {
    const Program many = blocks(8, friction), few = blocks(2, friction);
    EXPECT_FALSE(many.plain(0)) << friction;
    EXPECT_TRUE(many.open(0)) << friction;
    EXPECT_FALSE(few.open(0)) << friction;
    EXPECT_EQ(&many.tape("++++++++"), &many.tape("+0-0+0-0")) << friction;
    EXPECT_NE(&few.tape("++"), &few.tape("+0")) << friction;
    EXPECT_TRUE(many.tape("++++++++").slope_constant) << friction;
  }
}

TEST(Program, CompilesModesForSwitchesThatChooseOrAreBentOnTheirSurfaces) {
  for (const char* friction :
       {"sqrt(abs(v{0}))*sign(v{0})", "if(v{0} > 0, exp(v{0}), -sqrt(1 - v{0}))", "exp(sign(v{0}))"}) {
    const Program many = blocks(8, friction);
    EXPECT_FALSE(many.open(0)) << friction;
    EXPECT_NE(&many.tape("++++++++"), &many.tape("-+++++++")) << friction;
  }
}

}  // namespace
}  // namespace saltus
