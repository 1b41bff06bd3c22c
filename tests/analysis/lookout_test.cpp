#include "analysis/lookout.hpp"

#include <gtest/gtest.h>

#include "model/read.hpp"

namespace saltus {
namespace {

struct Watched {
  std::string verdict;
  long steps = 0, points = 0;
};

/// A run as `section` and `sweep` make it, with section 0 awaited.
Watched watch(const std::string& equations, const std::string& initial, const std::string& on, double until = 1e12) {
  const Program program(read_model_text("equations = \"\"\"\n" + equations + "\n\"\"\"\n[initial]\n" + initial +
                                        "\n[section.s]\non = \"" + on + "\"\n"));
  RunOptions o;
  o.initial = initial_values(program.model(), {});
  o.until = until;
  o.section = 0;
  o.section_count = 1000;
  Lookout lookout(program.model(), o, 0);
  Watched out;
  o.on_section = [&](const Passing&) {
    ++out.points;
    lookout.met();
    return true;
  };
  o.on_piece = [&](const Piece& piece, const Arc&) { lookout.along(piece); };
  o.progress = [&](double) { return lookout.verdict().empty(); };
  out.steps = simulate(program, o).cost.steps;
  out.verdict = lookout.verdict();
  return out;
}

TEST(Lookout, SeesRest) {
  const Watched node = watch("x' = -x + 1\ny' = -3*y", "x = 0\ny = 1", "x - 2");
  EXPECT_EQ(node.verdict, "comes to rest without meeting 's'");
  EXPECT_LT(node.steps, 5000);
  const Watched spiral = watch("x' = v\nv' = -x - 0.2*v", "x = 3\nv = 0", "x - 1");
  EXPECT_EQ(spiral.verdict, "comes to rest: 's' is not met any more");
  EXPECT_GE(spiral.points, 3);
  EXPECT_LT(spiral.steps, 5000);
}

TEST(Lookout, SeesRestBehindAFastDirection) {
  const Watched w = watch("x' = -1000*(x - y)\ny' = 1 - y", "x = 0\ny = 0", "x - 2");
  EXPECT_EQ(w.verdict, "comes to rest without meeting 's'");
  EXPECT_LT(w.steps, 50'000);
}

TEST(Lookout, TakesNoSlowPassageForRest) {  // next to a saddle, then far away
  const Watched saddle = watch("x' = x - x^3\ny' = -2000*y", "x = 1e-9\ny = 1", "x - 0.9", 100);
  EXPECT_EQ(saddle.points, 1) << saddle.verdict;
  const Watched drift = watch("x' = -1000*(x - y)\ny' = 1e-3", "x = 0\ny = 0", "x - 0.01", 20);
  EXPECT_EQ(drift.points, 1) << drift.verdict;
}

TEST(Lookout, SeesACycleBesideTheSection) {
  const Watched free = watch("x' = v\nv' = 0.5*(1 - x^2)*v - x", "x = 0.1\nv = 0", "x - 5");
  EXPECT_EQ(free.verdict, "goes round a cycle without meeting 's'");
  EXPECT_LT(free.steps, 50'000);
  const Watched driven = watch("x' = v\nv' = -x - 0.3*v + sin(1.3*t)", "x = 0\nv = 0", "x - 5");
  EXPECT_EQ(driven.verdict, "goes round a cycle without meeting 's'");
  const Watched friction = watch("x' = v\nv' = -x - sign(v - 1)*(1 + 0.1*exp(-abs(v - 1)))", "x = 0\nv = 0", "x - 50");
  EXPECT_FALSE(friction.verdict.empty());
  EXPECT_LT(friction.steps, 200'000);
}

TEST(Lookout, LetsChaosGoOn) {
  const Watched w =
      watch("x' = 10*(y - x)\ny' = x*(28 - z) - y\nz' = x*y - 8/3*z", "x = 1\ny = 1\nz = 20", "z - 27", 400);
  EXPECT_EQ(w.verdict, "");
  EXPECT_GT(w.points, 500);
}

}  // namespace
}  // namespace saltus
