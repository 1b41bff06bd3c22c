// Sequences of events that accumulate: what is recognised, and where it ends.
#include "flow/chatter.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace saltus {
namespace {

double never(double, std::span<const int>, std::span<const double>) { return 0; }

Transition event_on(int item, int side) {
  return {.before = {side > 0 ? "+" : "-", ""}, .guards = {{GuardKind::surface, item, side}}};
}

/// Events at the partial sums of a geometric series; the sides follow a pattern.
std::optional<Accumulation> feed(Chatter& chatter, double ratio, int count, const std::vector<int>& sides) {
  std::optional<Accumulation> found;
  double t = 0, step = 1;
  const std::vector<int> touched{0};
  for (int k = 0; k < count && !found; ++k, step *= ratio) {
    t += step;
    chatter.note(event_on(0, sides[static_cast<size_t>(k) % sides.size()]));
    chatter.add(t, touched, std::vector<double>{t});
    found = chatter.find(1e-15, 1.0, 1e-10, never, never);
  }
  return found;
}

TEST(Chatter, AGeometricSequenceEndsAtItsSum) {
  Chatter chatter;
  const auto found = feed(chatter, 0.5, 100, {1});
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->ratio, 0.5, 1e-9);
  const auto limit = chatter.limit(*found, 0);
  ASSERT_TRUE(limit);
  EXPECT_NEAR(*limit, 2, 1e-14);
  EXPECT_EQ(chatter.members(*found), std::vector<int>{0});
}

TEST(Chatter, EventsOfDifferentSidesAreNotAlike) {
  Chatter chatter;
  const auto found = feed(chatter, 0.5, 100, {1, -1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->period, 2u);
  EXPECT_NEAR(found->ratio, 0.25, 1e-9);
}

TEST(Chatter, HeightsThatRoundingHidesEndWhereItWasForetold) {
  // Hits at 2 - 2^(1-k) with speeds 2^-k, each put off by what rounding of a height of 1 makes of its time.
  Chatter chatter;
  std::optional<Accumulation> found;
  double t = 0, speed = 1, noise = 1;
  const auto blur = [](double, std::span<const int>, std::span<const double> x) { return 1e-16 / x[0]; };
  for (int k = 0; k < 50 && !found; ++k, speed /= 2, noise = -noise) {
    chatter.note(event_on(0, 1));
    t = 2 - 2 * speed + noise * 1e-16 / speed;
    chatter.add(t, std::vector<int>{0}, std::vector<double>{speed});
    found = chatter.find(1e-15, 1.0, 1e-10, blur, never);
  }
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->blurred);
  EXPECT_GT(speed, 1e-8);
  EXPECT_NEAR(t + found->rest, 2, 1e-11);
  EXPECT_NEAR(chatter.limit(*found, 0).value(), 0, 2e-16 / speed);  // as far off as the times, at a rate of one
}

TEST(Chatter, TwoHitsThatFollowEachOtherSoonAreNoSequence) {
  Chatter chatter;
  const auto blur = [](double, std::span<const int>, std::span<const double>) { return 1e-13; };
  for (const double t : {0.0, 1.0, 1.0 + 1e-11}) {
    chatter.note(event_on(0, 1));
    chatter.add(t, std::vector<int>{0}, std::vector<double>{t});
    EXPECT_FALSE(chatter.find(1e-15, 1.0, 1e-10, blur, never));
  }
}

TEST(Chatter, ALongRegularSequenceIsNone) {
  Chatter chatter;
  EXPECT_FALSE(feed(chatter, 1.0, 1000, {1}));
  Chatter slow;
  EXPECT_FALSE(feed(slow, 0.99995, 1000, {1}));
}

}  // namespace
}  // namespace saltus
