// Which states vanish together, by their rates as they are written.
#include "model/vanishing.hpp"

#include <gtest/gtest.h>

#include "model/model_builder.hpp"

namespace saltus {
namespace {

using Sets = std::vector<std::vector<int>>;

Sets sets_of(const std::string& equations, const std::vector<std::string>& states) {
  ModelBuilder builder("test");
  builder.equations(equations);
  for (const std::string& name : states) builder.initial(name, 0.1);
  return vanishing_sets(builder.build().form.f);
}

TEST(Vanishing, OfPopulations) {
  EXPECT_EQ(sets_of("x' = x*(1 - y)\ny' = -y + x*y", {"x", "y"}), (Sets{{0}, {1}}));
  EXPECT_EQ(sets_of("x' = 2*x*y - x^2/y\ny' = 1 - y", {"x", "y"}), (Sets{{0}, {}}));
  EXPECT_EQ(sets_of("x' = x^1.5*sin(x)\ny' = x/(1 + y)", {"x", "y"}), (Sets{{0}, {0, 1}}));
}

TEST(Vanishing, OfThoseThatLiveOnEachOther) {
  const std::string epidemic = "S' = 0.02 - 9*S*I\nE' = 9*S*I - E\nI' = E - 2*I\nR' = 2*I - 0.02*R";
  EXPECT_EQ(sets_of(epidemic, {"S", "E", "I", "R"}), (Sets{{}, {1, 2}, {1, 2}, {1, 2, 3}}));
  EXPECT_EQ(sets_of("x' = t*x - 5*y\ny' = 5*x + t*y", {"x", "y"}), (Sets{{0, 1}, {0, 1}}));
}

TEST(Vanishing, NothingThatIsDriven) {
  for (const char* rate :
       {"1", "y", "x + 1", "x*y + y", "sin(x)", "y/x", "sqrt(x)", "x^0.5", "2^x", "x^y", "x - sign(y)"})
    EXPECT_EQ(sets_of(std::string("x' = ") + rate + "\ny' = 1", {"x", "y"}), (Sets{{}, {}})) << rate;
}

}  // namespace
}  // namespace saltus
