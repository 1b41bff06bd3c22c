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

// sin(t)^p > 1/2 for |t - pi/2| < acos(2^(-1/p)), over pi; its integral over pi is pi times the product of (k-1)/k, k
// even up to p.
TEST(HighPowers, AreSeenAsRatesAndSurfaces) {
  for (const int p : {20, 30, 40, 62, 100, 200}) {
    double mean = 1;
    for (int k = 2; k <= p; k += 2) mean *= (k - 1.0) / k;
    const double width = 2 * std::acos(std::pow(0.5, 1.0 / p));
    for (const char* of : {"t", "x"}) {
      const System s =
          system(fmt::format("x' = 1\ny' = sin({0})^{1}\nz' = step(sin({0})^{1} - 0.5)", of, p), "x = 0\ny = 0\nz = 0");
      const Trajectory run = s.run(4 * pi, 1e-10);
      EXPECT_NEAR(run.end.state[1], 4 * pi * mean, 1e-8) << p << of;
      EXPECT_NEAR(run.end.state[2], 4 * width, 1e-8) << p << of;
    }
  }
}

TEST(HighPowers, OfTimeAreSeen) {
  // (t/5)^n > 1/2 for t > 5 * 2^(-1/n); 1/(1 + (t - 7)^40) > 0.4 for |t - 7| < 1.5^(1/40)
  for (const int n : {40, 100, 1000}) {
    const System s = system(fmt::format("y' = step((t/5)^{} - 0.5)", n), "y = 0");
    EXPECT_NEAR(s.run(8, 1e-10).end.state[0], 8 - 5 * std::pow(0.5, 1.0 / n), 1e-9) << n;
  }
  const System plateau = system("y' = step(1/(1 + (t - 7)^40) - 0.4)", "y = 0");
  EXPECT_NEAR(plateau.run(10, 1e-10).end.state[0], 2 * std::pow(1.5, 1.0 / 40), 1e-9);
  // The integral of (t/5)^100 exp(-(t/5)^100) over t > 0 is 5/100 Gamma(1.01).
  const System pulse = system("y' = (t/5)^100*exp(-(t/5)^100)", "y = 0");
  EXPECT_NEAR(pulse.run(10, 1e-10).end.state[0], 0.05 * std::tgamma(1.01), 1e-9);
}

// A surface slides until 3 sin(t)^40 exceeds 1.
TEST(HighPowers, MoveASigmaToItsBound) {
  const System s = system("x' = 3*sin(t)^40 - sign(x)", "x = 0");
  const Trajectory run = s.run(1.5, 1e-10);
  expect_events(run, {{std::asin(std::pow(1.0 / 3, 1.0 / 40)), leave}}, 1e-8);
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
