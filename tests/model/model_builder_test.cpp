#include "model/model_builder.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "expr/print.hpp"

namespace saltus {
namespace {

std::string report(const ModelBuilder& builder) {
  try {
    builder.build();
  } catch (const Error& error) {
    return error.report();
  }
  return "no complaint";
}

TEST(ModelBuilder, MayBeUsedAgainAfterBuilding) {
  ModelBuilder builder("m");
  builder.equations("x' = -k*x").parameter("k", 2).initial("x", 1);
  const Model first = builder.build();
  EXPECT_TRUE(same_model(first, builder.build()));
  const Model second = builder.equations("y' = x").initial("y", "k + 1").build();
  EXPECT_EQ(second.states.size(), 2u);
  EXPECT_EQ(initial_values(second, {5})[1], 6) << "initial values follow the parameters";
}

TEST(ModelBuilder, NumbersKeepEveryBit) {
  const double third = 1.0 / 3;
  const Model m = ModelBuilder("m").equations("x' = k").parameter("k", third).initial("x", -third).build();
  EXPECT_EQ(parameter_values(m)[0], third);
  EXPECT_EQ(initial_values(m, {third})[0], -third);
}

TEST(ModelBuilder, ComplainsAboutItsOwnPieces) {
  EXPECT_EQ(report(ModelBuilder("m").equations("x' = -x\ny' = omga").initial("x", 1)),
            "equations:2:6: unknown name 'omga'\n"
            "  y' = omga\n"
            "       ^~~~\n"
            "define it: a parameter, a state (with ') or a name with its own equation\n");
  EXPECT_EQ(report(ModelBuilder("m").equations("x' = N").initial("x", 1).constraint("N", "x +", "")),
            "gap:1:3: nothing follows '+'\n"
            "  x +\n"
            "    ^\n"
            "to continue on the next line, start that line with the operator\n");
  EXPECT_NE(report(ModelBuilder("m")).find("there are no equations"), std::string::npos);
  EXPECT_NE(report(ModelBuilder("m").equations("x' = 1").initial("x", INFINITY)).find("inf"), std::string::npos);
}

TEST(ModelBuilder, TextGivenByAProgramMayComeFromAnywhere) {
  std::string equations = "x' = k*x", name = "k";
  ModelBuilder builder("m");
  builder.equations(equations).parameter(name, 1).initial("x", 1);
  equations = "garbage";
  name = "garbage";
  EXPECT_EQ(print(builder.build().states[0].rate), "k*x");
}

}  // namespace
}  // namespace saltus
