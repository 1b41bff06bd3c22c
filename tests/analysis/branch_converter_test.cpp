#include <cmath>

#include <gtest/gtest.h>

#include "branches.hpp"
#include "model/read.hpp"
#include "run_of.hpp"

// Converters: the current of a diode comes down to zero.

namespace saltus {
namespace {

// A boost converter between continuous and discontinuous conduction: the current is zero where the switch closes again,
// which with matrix exponentials (mpmath, 30 digits) is one equation for v and R. Multipliers are those of
// exp(A_off 0.6 T) exp(A_on 0.4 T), and behind its projection onto i = 0.
TEST(Converter, IsFollowedThroughTheBoundaryOfDiscontinuousConductionBothWays) {
  const Model model = read_model_text(R"M(
equations = """
  i' = (12 - (1 - q)*v + d)/50e-6
  v' = ((1 - q)*i - v/R)/100e-6
  q = step(0.4*T - mod(t, T))
"""
[parameters]
R = 20
T = 1e-5
[initial]
i = 0.1
v = 12
[constraint.d]
gap = "i"
[section.strobe]
every = "T"
)M");
  for (const double from : {40.0, 100.0}) {
    OrbitOptions start{.run = run_of(model, 1e-2), .section = 0};
    start.run.parameters[0] = from;
    const Branch b = follow_orbit(model, start, {.parameter = 0, .low = 20, .high = 200});
    ASSERT_TRUE(b.found) << b.message;
    for (const BranchEnd& end : b.ends) EXPECT_EQ(end.why, "range") << end.detail;
    ASSERT_EQ(b.special.size(), 1u) << from;
    const SpecialPoint& s = b.special[0];
    EXPECT_EQ(s.type, "blocking");
    EXPECT_NEAR(s.values[0], 69.42111159233984, 1e-9);
    EXPECT_EQ(s.persists, true);
    const Spectrum& continuous = from < 69 ? s.spectrum : *s.after;
    const Spectrum& discontinuous = from < 69 ? *s.after : s.spectrum;
    EXPECT_NEAR(continuous[0].real(), 0.995685025957391554, 1e-8);
    EXPECT_NEAR(std::abs(continuous[0].imag()), 0.0846869652937746782, 1e-8);
    EXPECT_NEAR(discontinuous[0].real(), 0.994966856255096020, 1e-7);
    EXPECT_NEAR(std::abs(discontinuous[1]), 0, 1e-9);
  }
}

// The same for two thresholds instead of a clock: no voltage across the diode is needed to see the current touch zero.
TEST(Converter, WithTwoThresholdsIsFollowedIntoDiscontinuousConduction) {
  const Model model = read_model_text(R"M(
equations = """
  i' = (q*12 - vout + d)/10e-6
  vc' = (i - vout/R)/100e-6
  q' = 0
  vout = (vc + 0.02*i)/(1 + 0.02/R)
"""
[parameters]
R = 1
[initial]
i = 0
vc = 0
q = 1
[constraint.d]
gap = "i"
[jump.off]
on = "vout - 3.32"
direction = "rising"
set = { q = 0 }
[jump.on]
on = "vout - 3.28"
direction = "falling"
set = { q = 1 }
[section.on]
on = "on"
)M");
  const Branch b =
      follow_orbit(model, {.run = run_of(model, 1e-3), .section = 0}, {.parameter = 0, .low = 0.5, .high = 50});
  ASSERT_TRUE(b.found) << b.message;
  for (const BranchEnd& end : b.ends) EXPECT_EQ(end.why, "range") << end.detail;
  ASSERT_EQ(b.special.size(), 1u);
  EXPECT_EQ(b.special[0].type, "blocking");
  for (const BranchPoint& p : b.points) {
    const bool blocks = p.values[0] > b.special[0].values[0];
    if (p.label.empty()) {
      EXPECT_EQ(p.lowest[0] < 1e-9, blocks) << p.values[0];
    }
  }
}

}  // namespace
}  // namespace saltus
