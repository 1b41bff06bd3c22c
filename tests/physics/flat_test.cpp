// Functions that are constant to all digits nearly everywhere, and surfaces that are alike there. Both engines.
#include <gtest/gtest.h>

#include "physics.hpp"

namespace saltus::physics {
namespace {

using enum EventKind;

TEST(AlikeSurfaces, TwoPulsesOfOneStateAreTwo) {
  // exp(-10 (x - c)^2) > 1/2 for |x - c| < sqrt(ln 2/10)
  const double width = 2 * std::sqrt(std::log(2.0) / 10);
  for (const double second : {4.5, 6.0, 9.0}) {
    const System s = system(fmt::format("x' = 1\nz' = if(exp(-10*(x - 4)^2) > 0.5, 1, 0) + if(exp(-10*(x - {})^2) > "
                                        "0.5, 10, 0)",
                                        second),
                            "x = 0\nz = 0");
    expect_end(s.run_both(10), {10, 11 * width}, 1e-9);
  }
}

TEST(AlikeSurfaces, TwoFrontsOfOneStateAreTwo) {
  // tanh(k (x - c)) > h for x > c + atanh(h)/k
  for (const double k : {4, 30, 1000}) {
    const System s = system(fmt::format("x' = 1\nz' = step(tanh({0}*(x - 4)) - 0.3) + 10*step(1/(1 + exp(-{0}*(x - "
                                        "6))) - 0.3) + 100*step(1/(1 + exp(-{0}*(x - 8))) - 0.3)",
                                        k),
                            "x = 0\nz = 0");
    const double logit = std::log(0.3 / 0.7) / k;
    expect_end(s.run_both(10), {10, 6 - std::atanh(0.3) / k + 10 * (4 - logit) + 100 * (2 - logit)}, 1e-8);
  }
}

TEST(AlikeSurfaces, ThresholdsOfLargeStatesAreTwo) {
  for (const double size : {1e17, 1e22, 1e40}) {
    const System s =
        system(fmt::format("n' = {0:g}\nz' = if(n > 2*{0:g}, 1, 0) + if(n > 6*{0:g}, 10, 0)", size), "n = 0\nz = 0");
    const Trajectory run = s.run_both(10);
    EXPECT_EQ(count(run, cross), 2);
    EXPECT_NEAR(run.end.state[1], 48, 1e-9);
  }
}

TEST(AlikeSurfaces, OfOneFormKeepOneUnknown) {
  // sigma_1 and sigma_2 of v and K v are one: v' = 1/2 - (1 + 2) sigma rests at v = 0 with sigma = 1/6.
  const System s = system("v' = 0.5 - sign(v) - 2*sign(K*v)\nK = 3", "v = 2.5");
  const Trajectory run = s.run_both(3);
  expect_events(run, {{1, slide}}, 1e-9);
  expect_end(run, {0}, 1e-12);
}

// A contact whose force acts by a factor that is zero to all digits where models are looked at before they run: the
// ball of height 0.3 falls with g = 1, r = 1/2.
TEST(FlatFactors, DoNotHideAMultiplier) {
  for (const char* factor : {"exp(-1000*(x - 6)^2)", "(1 - tanh(50*(x - 6))^2)"}) {
    const System s = system(fmt::format("x' = 0\nq' = v\nv' = -1 + N*{}", factor), "x = 6\nq = 0.3\nv = 0",
                            "[constraint.N]\ngap = \"q\"\nrestitution = 0.5\n");
    const double falls = std::sqrt(0.6), up = falls / 2, rest = 1.2 - falls;
    expect_end(s.run_both(1.2), {6, up * rest - rest * rest / 2, up - rest}, 1e-9);
  }
}

}  // namespace
}  // namespace saltus::physics
