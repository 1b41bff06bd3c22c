#include "solve/one_box.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "solve/one_box_rules.hpp"

namespace saltus {
namespace {

/// Of random steps of up to 37 terms.
void expect_all_told(Root (*settle)(std::span<const double> c, double h, double noise)) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  int settled = 0, crossings = 0, returns = 0;
  constexpr int trials = 3000, points = 1000;
  for (int trial = 0; trial < trials; ++trial) {
    const double decay = 0.3 + 0.6 * uniform(random), h = (trial % 2 ? -1 : 1) * std::exp(4 * normal(random));
    std::vector<double> c(static_cast<size_t>(4 + trial % 34));
    double power = 1;
    for (double& ck : c) {
      ck = normal(random) * power;
      power *= decay / h;
    }
    const Root root = settle(c, h, 0);
    if (root.kind == RootKind::unclear) continue;
    ++settled;
    const bool found = root.kind == RootKind::crossing;
    crossings += found;
    returns += found && !root.last;
    if (found) {
      ASSERT_GT(root.at / h, 0);
      ASSERT_LE(root.at / h, 1);
      ASSERT_EQ(root.sign_after, -sign_of(c[0]));
      ASSERT_NE(sign_of(evaluate(c, root.at)), sign_of(c[0])) << "it lies on the far side";
      ASSERT_NE(sign_of(evaluate(c, root.at * (1 - 4e-16))), -sign_of(c[0])) << "and next to the root";
    }
    for (int i = 1; i <= points; ++i) {
      const double tau = h * i / points;
      const bool after = found && tau / h > root.at / h;
      if (after && !root.last) break;
      ASSERT_EQ(sign_of(evaluate(c, tau)), after ? -sign_of(c[0]) : sign_of(c[0]))
          << "trial " << trial << ", tau " << tau;
    }
  }
  EXPECT_GT(settled, trials * 3 / 4) << "most steps are this simple";
  EXPECT_GT(crossings, trials / 10);
  EXPECT_GT(returns, 10);
}

TEST(OneBox, TellsAllThatHappensOnAStep) { expect_all_told(settle_in_one_box); }

TEST(OneBox, TellsTheSameInRegistersOfTwoNumbers) { expect_all_told(one_box::settle<one_box::Two>); }

RootKind kind_of(const std::vector<double>& c, double h, double noise = 0) {
  return settle_in_one_box(c, h, noise).kind;
}

TEST(OneBox, LeavesATouchToTheWalk) {
  EXPECT_EQ(kind_of({1, -4, 4}, 1), RootKind::unclear) << "(1 - 2 tau)^2";
  EXPECT_EQ(kind_of({1, -1}, 1), RootKind::unclear) << "a root at the end";
  EXPECT_EQ(kind_of({1e-17, 1, -1}, 0.5), RootKind::unclear) << "a start that may be a root";
}

TEST(OneBox, TheNoiseWidensTheBand) {
  const std::vector<double> c{1, -0.9};
  EXPECT_EQ(kind_of(c, 1, 0.05), RootKind::none);
  EXPECT_EQ(kind_of(c, 1, 0.2), RootKind::unclear);
}

}  // namespace
}  // namespace saltus
