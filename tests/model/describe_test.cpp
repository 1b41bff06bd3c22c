#include "model/describe.hpp"

#include <gtest/gtest.h>

#include "expr/print.hpp"
#include "model/model_builder.hpp"

namespace saltus {
namespace {

Model planar(const std::string& x_rate, const std::string& y_rate, double a = 0.4) {
  return ModelBuilder("m")
      .equations("x' = " + x_rate + "\n y' = " + y_rate)
      .parameter("a", a)
      .parameter("m", 2)
      .initial("x", 1)
      .initial("y", 2)
      .build();
}

SurfaceBehaviour first_surface(const Model& m) { return describe_surface(m, 0, parameter_values(m)); }

TEST(Surface, OfDryFrictionAttractsWhileTheForceIsSmall) {
  const auto b = first_surface(planar("y", "-x + sin(t) - a*sign(y)"));
  EXPECT_EQ(b.kind, SurfaceKind::sliding);
  EXPECT_EQ(b.attraction, Attraction::attracting);
  EXPECT_EQ(print(b.sigma), "(sin(t) - x)/a");
}

TEST(Surface, RepelsWithTheOppositeSign) {
  const auto b = first_surface(planar("y", "-x + a*sign(y)"));
  EXPECT_EQ(b.kind, SurfaceKind::sliding);
  EXPECT_EQ(b.attraction, Attraction::repelling);
}

TEST(Surface, FollowsTheSignOfAParameter) {
  EXPECT_EQ(first_surface(planar("y", "-x - a*sign(y)", -0.4)).attraction, Attraction::repelling);
}

TEST(Surface, AttractsOnlyInPartWhereThePushChangesSign) {
  const auto b = first_surface(planar("y", "-x*sign(y)"));
  EXPECT_EQ(b.kind, SurfaceKind::sliding);
  EXPECT_EQ(b.attraction, Attraction::varying);
  EXPECT_EQ(print(b.push), "-x");
}

TEST(Surface, OfAnAbsoluteValueIsAKink) {
  EXPECT_EQ(first_surface(planar("a - abs(x)", "-y")).kind, SurfaceKind::kink);
  EXPECT_EQ(first_surface(planar("y", "-x - if(x > a, m*(x - a), 0)")).kind, SurfaceKind::kink);
  EXPECT_EQ(first_surface(planar("1e-9*abs(x)", "-y")).kind, SurfaceKind::kink);
}

TEST(Surface, OfSmallButRealJumpIsNoKink) {
  EXPECT_EQ(first_surface(planar("y", "-x - 1e-12*sign(y)")).kind, SurfaceKind::sliding);
}

TEST(Surface, IsCrossedWhereItsRateDoesNotJump) {
  EXPECT_EQ(first_surface(planar("y", "-sign(x)")).kind, SurfaceKind::crossed);
  EXPECT_EQ(first_surface(planar("y", "-x + sign(sin(t))")).kind, SurfaceKind::crossed);
}

TEST(Surface, ThatMovesNothingIsSilent) {
  const Model m = ModelBuilder("m").equations("x' = -x\n s = sign(x)").initial("x", 1).build();
  EXPECT_EQ(first_surface(m).kind, SurfaceKind::silent);
}

TEST(Surface, WrittenTwiceSlidesWithTheKnownSigma) {
  // With x' = -2*sigma, y' = -0.75 + 2.25*sigma: h' = 0.75 - 4.25*sigma, sigma = 3/17.
  const auto b = first_surface(planar("if(x > y, -2, 2)", "if(y > x, -3, 1.5)"));
  ASSERT_EQ(b.kind, SurfaceKind::sliding);
  EXPECT_EQ(b.attraction, Attraction::attracting);
  ASSERT_TRUE(b.sigma.is_number());
  EXPECT_NEAR(b.sigma.value(), 3.0 / 17, 1e-15);
}

TEST(Surface, InsideANonlinearFunctionIsTakenByItsTwoValues) {
  const auto b = first_surface(planar("y", "-x - a*sign(y)*(2 - exp(-abs(y)))"));
  ASSERT_EQ(b.kind, SurfaceKind::sliding);
  const double sigma = evaluate(b.sigma, [](const Symbol& s) {
    return s.name == "x" ? -0.2 : s.name == "a" ? 0.4 : 0.0;
  });
  EXPECT_NEAR(sigma, 0.5, 1e-15);
}

TEST(Surface, DividesOutWhatBothSidesShare) {
  const auto b = first_surface(planar("y", "(-x - a*sign(y))/m"));
  EXPECT_EQ(print(b.sigma), "-(x/a)");
}

TEST(PrintedSize, CountsSharedPartsEachTime) {
  Expr e = state_symbol(planar("y", "-x"), 0);
  for (int i = 0; i < 100; ++i) e = e + pow(e, 2);
  EXPECT_GT(printed_size(e), 1e30);
  EXPECT_LT(printed_size(Expr(1)), 10);
}

}  // namespace
}  // namespace saltus
