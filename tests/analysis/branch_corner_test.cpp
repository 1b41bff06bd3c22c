#include <cmath>

#include <gtest/gtest.h>

#include "branches.hpp"
#include "model/read.hpp"
#include "run_of.hpp"

// Corners: two events that change places.

namespace saltus {
namespace {

// The orbit of two periods meets the tip of the ramp with its voltage: piecewise exponentials, 30 digits.
TEST(Corner, IsWhereTheVoltageOfTheBuckConverterMeetsTheTipOfItsRamp) {
  const Model model = read_model(SALTUS_SOURCE_DIR "/models/buck/model.toml");
  OrbitOptions start{.run = run_of(model, 0.02), .section = 0};
  start.run.parameters[0] = 24;
  BranchOptions range{.parameter = 0, .low = 20, .high = 40};
  const Branch first = follow_orbit(model, start, range);
  const auto flips = of_type(first, "flip");
  ASSERT_EQ(flips.size(), 1u);
  EXPECT_NEAR(flips[0]->values[0], 24.516572828, 1e-8);
  const Branch two = begun_at(*flips[0], model, start, range);
  expect_special(two, "corner", 36.353237064076765, 1e-10);
  EXPECT_TRUE(of_type(two, "grazing").empty());
}

}  // namespace
}  // namespace saltus
