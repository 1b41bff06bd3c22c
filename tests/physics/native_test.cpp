// Runs with machine code and without: no result may differ by a bit, in any model of the gallery.
#include <filesystem>
#include <fstream>

#include "physics.hpp"

namespace saltus::physics {
namespace {

Trajectory run_with(const System& s, RunOptions options, Native native) {
  options.native = native;
  return s.run(options);
}

void expect_equal(const Trajectory& a, const Trajectory& b, const std::string& name) {
  EXPECT_EQ(a.end.why, b.end.why) << name;
  EXPECT_EQ(a.end.t, b.end.t) << name;
  EXPECT_EQ(a.end.state, b.end.state) << name;
  EXPECT_EQ(a.cost.steps, b.cost.steps) << name;
  ASSERT_EQ(a.events.size(), b.events.size()) << name;
  for (size_t i = 0; i < a.events.size(); ++i) {
    ASSERT_EQ(a.events[i].t, b.events[i].t) << name << ", event " << i;
    ASSERT_EQ(a.events[i].state, b.events[i].state) << name << ", event " << i;
  }
}

class NativeRun : public testing::Test {
 protected:
  void SetUp() override {
#ifndef SALTUS_HAS_NATIVE
    GTEST_SKIP() << "built without LLVM";
#endif
  }
};

TEST_F(NativeRun, GivesTheSameBitsInEveryModelOfTheGallery) {
  int models = 0;
  long native = 0;
  for (const auto& folder : std::filesystem::directory_iterator(SALTUS_SOURCE_DIR "/models")) {
    const std::string name = folder.path().filename();
    if (!std::filesystem::exists(folder.path() / "model.toml")) continue;
    const System s = gallery_system(name);
    if (s.program.model().run.engine.value_or("event") == "step") continue;
    RunOptions options = s.options(0, 1e-9);
    options.until = s.program.model().run.until ? constant_value(*s.program.model().run.until, s.parameters) : 50.0;
    options.max_steps = 3000;
    const Trajectory with = run_with(s, options, Native::on), without = run_with(s, options, Native::off);
    expect_equal(with, without, name);
    EXPECT_EQ(without.cost.native, 0) << name;
    native += with.cost.native;
    ++models;
  }
  EXPECT_GT(models, 40);
  EXPECT_GT(native, 10'000);
}

TEST_F(NativeRun, BeginsInTheMiddleOfALongRunWithoutTrace) {
  const System s = system("x' = y\ny' = -1.0625*sin(x)", "x = 2\ny = 0");  // no other test has this code
  const RunOptions options = s.options(20'000, 1e-9);
  const Trajectory later = run_with(s, options, Native::automatic), again = run_with(s, options, Native::automatic),
                   from_start = run_with(s, options, Native::on), without = run_with(s, options, Native::off);
  expect_equal(from_start, without, "pendulum");
  expect_equal(later, without, "pendulum");
  expect_equal(again, without, "pendulum");
  EXPECT_GT(later.cost.native, 0);
  EXPECT_LT(later.cost.native, from_start.cost.native);
  // With the code of the run before; a start that is known from two runs is looked at once more, along the same series.
  EXPECT_LE(std::abs(again.cost.native - from_start.cost.native), 1);
}

TEST(NativeOption, BelongsToTheEventDrivenEngine) {
  const System s = gallery_system("dry_friction");
  RunOptions options = s.options(1);
  options.step = StepOptions{.dt = 0.01};
  options.native = Native::on;
  EXPECT_THROW(s.run(options), Error);
}

}  // namespace
}  // namespace saltus::physics
