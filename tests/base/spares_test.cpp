#include "base/spares.hpp"

#include <gtest/gtest.h>

namespace saltus {
namespace {

TEST(Spares, ComeBackByTypeTheLastOneFirst) {
  Spares spares;
  EXPECT_EQ(spares.take<int>(), nullptr);
  spares.give(std::make_unique<int>(1));
  spares.give(std::make_unique<int>(2));
  spares.give(std::make_unique<double>(3));
  EXPECT_EQ(*spares.take<int>(), 2);
  EXPECT_EQ(*spares.take<int>(), 1);
  EXPECT_EQ(spares.take<int>(), nullptr);
  EXPECT_EQ(*spares.take<double>(), 3);
}

TEST(Spares, AreLetGoWhereEnoughAreKept) {
  Spares spares;
  const auto counted = std::make_shared<int>(0);
  using Thing = std::shared_ptr<int>;
  for (int i = 0; i < 100; ++i) spares.give(std::make_unique<Thing>(counted));
  EXPECT_LT(counted.use_count(), 50);
  EXPECT_GT(counted.use_count(), 2);
}

}  // namespace
}  // namespace saltus
